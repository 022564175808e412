"""Options that every command with a model shares, and those of commands that can use more than one machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from climassay.cli.option_groups import with_flags
from climassay.cli.output import WorkspaceOptions, waiting
from climassay.errors import InputError
from climassay.redaction import TrustedUrl
from climassay.session import ModelOptions

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from climassay.distributed import WorkerPool
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
ProfileOption = Annotated[
    Literal["small", "strong"] | None,
    typer.Option(help="Ask the model as a small or a strong one; by default its size decides."),
]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Ask everything afresh.")]


@dataclass(frozen=True)
@with_flags(
    ModelOptions,
    only=("concurrency", "deadline", "timeout", "max_output_tokens", "reasoning_effort", "dtype"),
)
class ReachOptions(ModelOptions):
    """How a model is loaded or reached."""

    base_url: BaseUrlOption = None


@dataclass(frozen=True)
@with_flags(ModelOptions, only=("prompts",))
class PromptOptions(ModelOptions):
    """With which prompts a model is asked."""


@dataclass(frozen=True)
@with_flags(ModelOptions, only=("dtype", "deadline", "timeout", "reasoning_effort"))
class CheckOptions(ModelOptions):
    """How a model that is checked is loaded or reached."""

    base_url: BaseUrlOption = None


@dataclass(frozen=True)
@with_flags(ModelOptions, only=("prompts",))
class PromptedOptions(ReachOptions):
    """How a model is loaded or reached, and with which prompts it is asked."""


@dataclass(frozen=True)
@with_flags(ModelOptions, only=("price_in", "price_out"))
class LoadingOptions(PromptedOptions):
    """How a model is asked as well, what it costs, and whether earlier answers of it serve."""

    no_cache: NoCacheOption = False


@dataclass(frozen=True)
@with_flags(ModelOptions, only=("prompts", "deadline", "timeout", "max_output_tokens", "reasoning_effort"))
class RequestOptions(ModelOptions):
    """How the models that a file names are asked."""

    no_cache: NoCacheOption = False


@dataclass(frozen=True)
class RayOptions:
    """Where local models and encoders compute."""

    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|local",
            help="Compute in workers of a Ray cluster: HOST:PORT of its head, auto, or local for one on this machine.",
        ),
    ] = None
    ray_workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that hold the model; by default one a GPU, else one a CPU.")
    ] = None
    ray_gpus_per_worker: Annotated[
        float | None, typer.Option(min=0, help="GPUs of each, or a part of one; by default 1 where there are any.")
    ] = None

    @contextmanager
    def opened(self, *, quiet: bool) -> Iterator["WorkerPool | None"]:
        """The workers; None where the command computes in its own process.

        Raises:
            InputError: The cluster cannot be joined or is too small, or its options come without ``--ray``.
            MissingExtraError: Ray is not installed.
        """
        if self.ray is None:
            if self.ray_workers is not None or self.ray_gpus_per_worker is not None:
                raise InputError("--ray-workers and --ray-gpus-per-worker go with --ray: name the cluster, or local.")
            yield None
            return
        from contextlib import ExitStack

        from climassay.distributed import ClusterOptions, open_pool

        options = ClusterOptions(self.ray, self.ray_workers, self.ray_gpus_per_worker)
        with ExitStack() as stack:
            with waiting(f"Joining Ray ({self.ray}) ...", quiet=quiet):
                pool = stack.enter_context(open_pool(options))
            yield pool


@dataclass(frozen=True)
class ModelSetup(LoadingOptions, RayOptions, WorkspaceOptions):
    """The model, and where its answers are kept."""

    model: ModelOption = "local:smollm2"
    token_budget: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of tokens in one forward pass: bounds the memory.")
    ] = None

    def session(self, options: ModelOptions | None = None, **more: Any) -> "AbstractContextManager[Session]":
        """The session of the command, with the model's options and its workers."""
        return super().session(options or self, where=self, **more)
