"""Language models and prompts: list them, check a model, export prompt templates."""

from pathlib import Path
from typing import Any

from climassay.models import ModelOptions
from climassay.models.provider import check_model as run_model_check
from climassay.models.servers import OPENAI, configuration_file, normalised_base_url, providers
from climassay.prompts import export_prompts as write_prompts
from climassay.prompts import load_prompt, prompt_names
from climassay.reporting import Table, counted
from climassay.reporting.results import AssembledResult, listing
from climassay.session import Place, Session

NAMING = (
    "Others are named local:FOLDER or local:HUB-ID (a causal language model as safetensors; +adapter=FOLDER adds a "
    "PEFT adapter) and openai:NAME, with --base-url for any OpenAI-compatible server, or PROVIDER:NAME for a "
    "provider of your own configuration."
)
CHECK_SECONDS = 45.0
"""Default timeout in seconds for a request of a model check."""


def list_models() -> AssembledResult:
    """List the bundled models and the configured providers, and explain how other models are named.

    Raises:
        InputError: The configuration file of the providers cannot be read.
    """
    from climassay.models.bundled import BUNDLED, bundled_status

    base_urls = {
        name: normalised_base_url(provider.base_url) for name, provider in providers().items() if name != OPENAI
    }
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
    tables = [Table.of("", ("name", "model", "kind", "licence", "state", "size"), rows, left_columns=5)]
    if base_urls:
        server_rows = [(f"{name}:NAME", url) for name, url in base_urls.items()]
        tables.append(Table.of(f"providers of {configuration_file()}", ("name", "server"), server_rows, left_columns=2))
    return AssembledResult(
        {"bundled": records, "providers": base_urls, "others": NAMING}, tables, records, noted=(NAMING,)
    )


def check_model(
    name: str,
    *,
    prompt: str = "In one sentence, why is the sky blue?",
    again: bool = False,
    workspace: Place = None,
) -> AssembledResult:
    """Load a model, send one prompt, and report the model's properties, its speed and its server's capabilities.

    Three short requests determine the capabilities of a server, which are stored in the workspace. Each request has a
    timeout of 45 seconds; use --deadline for a server that needs longer because it first has to load its model.

    Args:
        name: Model, for example local:smollm2 or openai:gpt-4o-mini.
        prompt: Prompt to send.
        again: Whether the server is probed again instead of using its stored capabilities.
        workspace: Session, workspace or folder of a workspace; the options of a session apply to the model.

    Raises:
        InputError: The name is invalid, or an option does not apply to the model.
        ModelError: The model cannot be loaded.
    """
    with Session.opened(workspace) as session, session.progress.status(f"Loading {name} ..."):
        options = session.options.with_defaults(ModelOptions(deadline=CHECK_SECONDS))
        report = run_model_check(name, options, prompt=prompt, again=again, folder=session.workspace.root)
    lines: list[tuple[str, str | None]] = [
        ("model", report.name),
        ("fingerprint", report.fingerprint),
        ("licence", report.licence or "not stated"),
        ("can", ", ".join(report.abilities)),
        ("device", report.device),
        ("dtype", report.dtype),
        ("threads", None if report.threads is None else str(report.threads)),
        ("loaded in", f"{report.load_seconds:.1f} s"),
        *([] if report.capabilities is None else report.capabilities.describe()),
        ("prefill", _format_rate(report.prefill_tokens_per_second)),
        ("decode", _format_rate(report.decode_tokens_per_second)),
        ("prompt", report.prompt),
        ("answer", report.answer),
    ]
    notes = () if report.answer.strip() else ("The answer is empty: look at the model and its template on the server.",)
    return AssembledResult(
        report, printed_lines=[f"{label:<12} {value}" for label, value in lines if value is not None], noted=notes
    )


def _format_rate(tokens_per_second: float | None) -> str | None:
    return None if tokens_per_second is None else f"{tokens_per_second:.0f} tokens/s"


def list_prompts() -> AssembledResult:
    """List the built-in prompts with the SHA-256 of each template."""
    prompts = [{"name": prompt.name, "sha256": prompt.sha256} for prompt in map(load_prompt, prompt_names())]
    return listing("Prompts", prompts, {"name": "name", "sha256": "sha256"}, left_columns=2)


def show_prompt(name: str) -> AssembledResult:
    """Print a prompt's template.

    Args:
        name: Name of the prompt; ``climassay prompts list`` lists them.

    Raises:
        InputError: The prompt does not exist.
    """
    prompt = load_prompt(name)
    data = {"name": prompt.name, "sha256": prompt.sha256, "template": prompt.source}
    return AssembledResult(data, printed_lines=(prompt.source.removesuffix("\n"),))


def export_prompts(folder: Path | str) -> AssembledResult:
    """Write all built-in prompts to a folder, in which they can be edited; commands use it with ``--prompts``.

    Args:
        folder: Folder to write to; existing files are kept.

    Raises:
        InputError: The folder cannot be written to.
    """
    folder = Path(folder)
    paths = write_prompts(folder)
    return AssembledResult({"written": paths}, printed_lines=(f"{counted(len(paths), 'prompt')} written to {folder}.",))
