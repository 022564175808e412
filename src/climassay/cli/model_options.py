"""Options that every command with a model shares."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import stderr_console

if TYPE_CHECKING:
    from climassay.distributed import WorkerPool
    from climassay.models.contract import Generator
    from climassay.workspace import Workspace

ModelOption = Annotated[
    str,
    typer.Option("--model", "-m", help="local:smollm2, local:FOLDER_OR_HUB_ID or openai:MODEL (see --base-url)."),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(help="Address of an OpenAI-compatible server, for openai: models (or $OPENAI_BASE_URL)."),
]
ConcurrencyOption = Annotated[int | None, typer.Option(min=1, help="Most requests at a time, for openai: models.")]
DtypeOption = Annotated[str | None, typer.Option(help="float32, bfloat16 or float16, for local: models.")]
DeadlineOption = Annotated[
    float | None,
    typer.Option(min=1, help="Seconds after which a request to an openai: model has failed, retries included."),
]
PriceInOption = Annotated[float | None, typer.Option(min=0, help="US dollars per million prompt tokens.")]
PriceOutOption = Annotated[float | None, typer.Option(min=0, help="US dollars per million completion tokens.")]
PromptsOption = Annotated[
    Path | None, typer.Option(help="Folder of your own prompt templates (see climassay prompts export).")
]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Ask everything afresh.")]


def model_from_options(
    name: str,
    workspace: "Workspace",
    *,
    base_url: str | None,
    concurrency: int | None,
    dtype: str | None,
    price_in: float | None,
    price_out: float | None,
    deadline: float | None,
    quiet: bool,
    pool: "WorkerPool | None" = None,
) -> "Generator":
    """Load the model that the shared options name, into the workers where there are some, telling the user."""
    from contextlib import nullcontext

    from climassay.models import load_model
    from climassay.models.openai_prices import model_price
    from climassay.models.openai_retry import RetryPolicy

    price = model_price(name, price_in, price_out, workspace.root)
    with nullcontext() if quiet else stderr_console().status(f"Loading {name} ..."):
        return (load_model if pool is None else pool.load_model)(
            name,
            base_url=base_url,
            concurrency=concurrency,
            dtype=dtype,
            price=price,
            policy=None if deadline is None else RetryPolicy(deadline=deadline),
        )
