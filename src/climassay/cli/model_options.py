"""Options that every command with a model shares."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from climassay.cli.output import WorkspaceOption, opened_session
from climassay.cli.ray_option import RayOptions
from climassay.redaction import TrustedUrl
from climassay.session import ModelOptions

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from climassay.session import Session

ModelOption = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="local:smollm2, local:FOLDER_OR_HUB_ID, openai:MODEL (see --base-url) or PROVIDER:MODEL."
    ),
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="As for other commands, by default local:smollm2; repeat to compare several."),
]
BaseUrlOption = Annotated[
    TrustedUrl | None,
    typer.Option(
        parser=TrustedUrl,
        metavar="URL",
        help="Address of an OpenAI-compatible server, for openai: models (or $OPENAI_BASE_URL); it gets the API key.",
    ),
]
ConcurrencyOption = Annotated[
    int | None, typer.Option(min=1, help="Maximum number of concurrent requests to a server.")
]
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
    typer.Option(min=1, help="Maximum number of tokens of each answer; what a model thinks before it comes on top."),
]
ReasoningEffortOption = Annotated[
    str | None,
    typer.Option(help="Effort of an openai: model that reasons, for example low, medium or high."),
]
ProfileOption = Annotated[
    Literal["small", "strong"] | None,
    typer.Option(help="Ask the model as a small or a strong one; by default its size decides."),
]
PriceInOption = Annotated[float | None, typer.Option(min=0, help="US dollars per million prompt tokens.")]
PriceOutOption = Annotated[float | None, typer.Option(min=0, help="US dollars per million completion tokens.")]
PromptsOption = Annotated[
    Path | None, typer.Option(help="Folder of your own prompt templates (see climassay prompts export).")
]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Ask everything afresh.")]


@dataclass(frozen=True)
class ReachOptions(ModelOptions):
    """How a model is loaded or reached."""

    base_url: BaseUrlOption = None
    concurrency: ConcurrencyOption = None
    deadline: DeadlineOption = None
    timeout: TimeoutOption = None
    max_output_tokens: MaxOutputTokensOption = None
    reasoning_effort: ReasoningEffortOption = None
    dtype: DtypeOption = None


@dataclass(frozen=True)
class PromptedOptions(ReachOptions):
    """How a model is loaded or reached, and with which prompts it is asked."""

    prompts: PromptsOption = None


@dataclass(frozen=True)
class LoadingOptions(PromptedOptions):
    """How a model is asked as well, what it costs, and whether earlier answers of it serve."""

    price_in: PriceInOption = None
    price_out: PriceOutOption = None
    no_cache: NoCacheOption = False


@dataclass(frozen=True)
class RequestOptions(ModelOptions):
    """How the models that a file names are asked."""

    prompts: PromptsOption = None
    deadline: DeadlineOption = None
    timeout: TimeoutOption = None
    max_output_tokens: MaxOutputTokensOption = None
    reasoning_effort: ReasoningEffortOption = None
    no_cache: NoCacheOption = False


@dataclass(frozen=True)
class ModelSetup(LoadingOptions, RayOptions):
    """The model, and where its answers are kept."""

    model: ModelOption = "local:smollm2"
    token_budget: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of tokens in one forward pass: bounds the memory.")
    ] = None
    workspace: WorkspaceOption = None

    def session(self, as_json: bool) -> "AbstractContextManager[Session]":
        """The session of the command; with JSON no progress is shown."""
        return opened_session(self.workspace, self, as_json=as_json, where=self)
