"""Options that every command with a model shares."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import typer

from climassay.cli.output import waiting
from climassay.secrecy import TrustedUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from climassay.distributed import WorkerPool
    from climassay.models.contract import Generator
    from climassay.models.openai_prices import Price
    from climassay.workspace import Workspace

ModelOption = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="local:smollm2, local:FOLDER_OR_HUB_ID, openai:MODEL (see --base-url) or PROVIDER:MODEL."
    ),
]
BaseUrlOption = Annotated[
    TrustedUrl | None,
    typer.Option(
        parser=TrustedUrl,
        metavar="URL",
        help="Address of an OpenAI-compatible server, for openai: models (or $OPENAI_BASE_URL); it gets the API key.",
    ),
]
ConcurrencyOption = Annotated[int | None, typer.Option(min=1, help="Most requests at a time, for openai: models.")]
DtypeOption = Annotated[
    str | None, typer.Option(help="float32, bfloat16 or float16, for local: models; by default what is fastest here.")
]
DeadlineOption = Annotated[
    float | None,
    typer.Option(min=1, help="Seconds after which a request to an openai: model has failed, retries included."),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(min=1, help="Seconds that one attempt of it may take; by default as long as the deadline allows."),
]
MaxOutputTokensOption = Annotated[
    int | None,
    typer.Option(min=1, help="Most tokens of each generated answer; what a model thinks before it comes on top."),
]
ReasoningEffortOption = Annotated[
    str | None,
    typer.Option(help="How much an openai: model that reasons is to think, for example low, medium or high."),
]
ProfileOption = Annotated[
    Literal["small", "strong"] | None,
    typer.Option(help="How the model is asked, as a small or a strong one; by default its size decides."),
]
PriceInOption = Annotated[float | None, typer.Option(min=0, help="US dollars per million prompt tokens.")]
PriceOutOption = Annotated[float | None, typer.Option(min=0, help="US dollars per million completion tokens.")]
PromptsOption = Annotated[
    Path | None, typer.Option(help="Folder of your own prompt templates (see climassay prompts export).")
]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Ask everything afresh.")]


@dataclass(frozen=True)
class ReachOptions:
    """How a model is loaded or reached."""

    base_url: BaseUrlOption = None
    concurrency: ConcurrencyOption = None
    deadline: DeadlineOption = None
    timeout: TimeoutOption = None
    max_output_tokens: MaxOutputTokensOption = None
    reasoning_effort: ReasoningEffortOption = None
    dtype: DtypeOption = None

    def load(
        self,
        name: str,
        workspace: "Workspace",
        *,
        quiet: bool,
        pool: "WorkerPool | None" = None,
        base_url: str | None = None,
        dtype: str | None = None,
    ) -> "Generator":
        """A model by its name, loaded into the workers where there are some, telling the user.

        Args:
            name: Of the model.
            workspace: Where it is kept what a server's model can do.
            quiet: Tell nothing.
            pool: The workers.
            base_url: Its server where the user names none.
            dtype: Number format of a local model where the user names none, for example that of a trained file.

        Raises:
            ModelError: There is no such model, or it cannot be loaded.
            InputError: Its options do not go together.
        """
        from climassay.models import load_model
        from climassay.models.openai_retry import retry_policy
        from climassay.models.servers import is_served

        with waiting(f"Loading {name} ...", quiet=quiet):
            return (load_model if pool is None else pool.load_model)(
                name,
                base_url=self.base_url or base_url,
                concurrency=self.concurrency,
                dtype=self.dtype or (None if is_served(name) else dtype),
                price=self.price(name, workspace),
                policy=retry_policy(self.deadline, self.timeout),
                max_output_tokens=self.max_output_tokens,
                reasoning_effort=self.reasoning_effort,
                folder=workspace.root,
            )

    def loader(self, workspace: Path | None, *, quiet: bool) -> "Callable[..., Generator]":
        """Loads models by their names, each with those of the options that go with it.

        The workspace is opened only when a model is loaded. For what else it takes, see :meth:`load`.
        """
        from climassay.workspace import Workspace

        return lambda name, **others: self.fitting(name).load(name, Workspace.open(workspace), quiet=quiet, **others)

    def fitting(self, name: str) -> Self:
        """Those of the options that go with a model, for commands that may ask several: no server for a local one."""
        from climassay.models.servers import OPENAI, is_served

        if not is_served(name):
            return replace(self, base_url=None, reasoning_effort=None)
        return replace(self, base_url=self.base_url if name.startswith(f"{OPENAI}:") else None, dtype=None)

    def fitting_each(self, names: "Iterable[str]") -> dict[str, Self]:
        """For each of a command's models, by name, those of the options that go with it.

        Each gets all of them where one goes with none of the models, so that it is refused when they are loaded.
        """
        found = {name: self.fitting(name) for name in names}
        for option in ("base_url", "reasoning_effort", "dtype"):
            if getattr(self, option) is not None and all(getattr(one, option) is None for one in found.values()):
                return dict.fromkeys(found, self)
        return found

    def price(self, name: str, workspace: "Workspace") -> "Price | None":
        """What a server's model costs, as far as it is known."""
        from climassay.models.openai_prices import model_price

        return model_price(name, None, None, workspace.root)


@dataclass(frozen=True)
class LoadingOptions(ReachOptions):
    """How a model is asked as well, what it costs, and whether earlier answers of it serve."""

    prompts: PromptsOption = None
    price_in: PriceInOption = None
    price_out: PriceOutOption = None
    no_cache: NoCacheOption = False

    def price(self, name: str, workspace: "Workspace") -> "Price | None":
        """As given; otherwise as far as it is known."""
        from climassay.models.openai_prices import model_price

        return model_price(name, self.price_in, self.price_out, workspace.root)
