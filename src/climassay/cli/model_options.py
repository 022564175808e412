"""Options that every command with a model shares."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import waiting

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


@dataclass(frozen=True)
class LoadingOptions:
    """How a model is loaded or reached, and whether earlier answers of it serve."""

    prompts: PromptsOption = None
    base_url: BaseUrlOption = None
    concurrency: ConcurrencyOption = None
    deadline: DeadlineOption = None
    dtype: DtypeOption = None
    price_in: PriceInOption = None
    price_out: PriceOutOption = None
    no_cache: NoCacheOption = False

    def load(self, name: str, workspace: "Workspace", *, quiet: bool, pool: "WorkerPool | None" = None) -> "Generator":
        """A model by its name, loaded into the workers where there are some, telling the user.

        Raises:
            ModelError: There is no such model, or it cannot be loaded.
            InputError: Its options do not go together.
        """
        from climassay.models import load_model
        from climassay.models.openai_prices import model_price
        from climassay.models.openai_retry import RetryPolicy

        price = model_price(name, self.price_in, self.price_out, workspace.root)
        with waiting(f"Loading {name} ...", quiet=quiet):
            return (load_model if pool is None else pool.load_model)(
                name,
                base_url=self.base_url,
                concurrency=self.concurrency,
                dtype=self.dtype,
                price=price,
                policy=None if self.deadline is None else RetryPolicy(deadline=self.deadline),
            )
