"""Language models and prompts: list them, check a model, export prompt templates."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.models import ModelOptions
from climassay.models.provider import check_model as checked
from climassay.models.servers import OPENAI, configuration_file, normalised_base_url, providers
from climassay.prompts import export_prompts as write_prompts
from climassay.prompts import load_prompt, prompt_names
from climassay.reporting import Table, counted
from climassay.reporting.results import Shown, listing
from climassay.session import Place, Session
from climassay.settings import with_changes

if TYPE_CHECKING:
    from climassay.models.openai.capabilities import Capabilities

NAMING = (
    "Others are named local:FOLDER or local:HUB-ID (a causal language model as safetensors; +adapter=FOLDER adds a "
    "PEFT adapter) and openai:NAME, with --base-url for any OpenAI-compatible server, or PROVIDER:NAME for a "
    "provider of your own configuration."
)
CHECK_SECONDS = 45.0
"""Default timeout in seconds for a request of a model check."""


def list_models() -> Shown:
    """List the bundled models and how to name others.

    Raises:
        InputError: The configuration cannot be read.
    """
    from climassay.models.bundled import BUNDLED, bundled_status

    served = {name: normalised_base_url(provider.base_url) for name, provider in providers().items() if name != OPENAI}
    records: list[dict[str, Any]] = []
    rows = []
    for status in map(bundled_status, BUNDLED):
        model = status.model
        records.append(
            {
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
        )
        size = "-" if status.size is None else f"{status.size / 1e6:.0f} MB"
        state = "ready" if status.converted else "verified, to be converted at first use"
        if not status.verified:
            state = "installed, to be verified at first use"
        if not status.installed:
            state = "not installed: climassay models install"
        rows.append((f"local:{model.name}", model.title, model.kind, model.licence, state, size))
    tables = [Table.of("", ("name", "model", "kind", "licence", "state", "size"), rows, left=5)]
    if served:
        named = [(f"{name}:NAME", url) for name, url in served.items()]
        tables.append(Table.of(f"providers of {configuration_file()}", ("name", "server"), named, left=2))
    return Shown({"bundled": records, "providers": served, "others": NAMING}, tables, records, noted=(NAMING,))


def check_model(
    name: str,
    *,
    device: str | None = None,
    adapter: str | None = None,
    prompt: str = "In one sentence, why is the sky blue?",
    again: bool = False,
    workspace: Place = None,
) -> Shown:
    """Load a model, send one prompt, and report what it is, its speed, and what its server supports.

    Three short requests find out what a server's model supports; the answer is kept in the workspace. The server has 45
    seconds for each, unless --deadline says otherwise: one that first has to load its model may need longer.

    Args:
        name: Model, for example local:smollm2 or openai:gpt-4o-mini.
        device: Device of a local model, for example cpu or cuda.
        adapter: Folder of a PEFT adapter, for a local model.
        prompt: Prompt to send.
        again: Probe the server again instead of using its stored capabilities.
        workspace: Session, whose options reach the model, workspace or folder of a workspace.

    Raises:
        InputError: The name is invalid, or an option does not apply to the model.
        ModelError: The model cannot be loaded.
    """
    with Session.opened(workspace) as session, session.progress.status(f"Loading {name} ..."):
        options = with_changes(session.options, device=device, adapter=adapter)
        options = options.with_defaults(ModelOptions(deadline=CHECK_SECONDS))
        report = checked(
            name,
            options,
            prompt=prompt,
            again=again,
            folder=session.workspace.root,
        )
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
    noted = () if report.answer.strip() else ("The answer is empty: look at the model and its template on the server.",)
    return Shown(
        report, printed_lines=[f"{label:<12} {value}" for label, value in lines if value is not None], noted=noted
    )


def _capability_lines(known: "Capabilities") -> Iterator[tuple[str, str | None]]:
    """Yield the capabilities of a server as labels and texts; a text is None if it does not apply."""
    status = "" if known.logprobs_status is None else f" with {known.logprobs_status}"
    logprobs = {
        "given": "given, but of thoughts: options are named in an answer instead"
        if known.is_reasoning_model
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
    thinks = {True: f"yes; {known.reasoning_budget:,} tokens on top of each limit", False: "none seen", None: None}
    accepted_options = [name for name in known.accepted if name not in ("max_tokens", "max_completion_tokens")]
    continues = {
        True: "yes: options are weighed where the model goes on with the beginning of its answer",
        False: "no: options are weighed at the beginning of the answer",
        None: None,
    }
    counts = {True: None, False: "of what it does not have in its cache; shortened prompts are not seen", None: None}
    yield "logprobs", logprobs[known.logprobs] if known.logprobs else "not known"
    yield "continues", continues[known.continues]
    yield "counts", counts[known.counts_cached]
    yield "JSON schema", schema[known.schema_support] if known.schema_support else "not known"
    yield "limit", known.token_limit
    yield "takes", ", ".join(accepted_options) or None
    yield "refuses", ", ".join(known.dropped) or None
    yield "thinks", thinks[known.is_reasoning_model]
    yield "window", None if known.window is None else f"{known.window:,} tokens"
    yield "learnt on", known.learned_on or None


def _rate(tokens_per_second: float | None) -> str | None:
    return None if tokens_per_second is None else f"{tokens_per_second:.0f} tokens/s"


def list_prompts() -> Shown:
    """List the built-in prompts and the hashes of their texts."""
    listed = [{"name": prompt.name, "sha256": prompt.sha256} for prompt in map(load_prompt, prompt_names())]
    return listing("Prompts", listed, {"name": "name", "sha256": "sha256"}, left=2)


def show_prompt(name: str) -> Shown:
    """Print a prompt's template.

    Args:
        name: Name of a prompt.

    Raises:
        InputError: The dataset does not exist.
    """
    prompt = load_prompt(name)
    data = {"name": prompt.name, "sha256": prompt.sha256, "template": prompt.source}
    return Shown(data, printed_lines=(prompt.source.removesuffix("\n"),))


def export_prompts(folder: Path | str) -> Shown:
    """Write all prompts to a folder; edit them there and pass it to a command with --prompts.

    Args:
        folder: Folder to write to; existing files are kept.

    Raises:
        InputError: The folder cannot be written to.
    """
    folder = Path(folder)
    written = write_prompts(folder)
    return Shown({"written": written}, printed_lines=(f"{counted(len(written), 'prompt')} written to {folder}.",))
