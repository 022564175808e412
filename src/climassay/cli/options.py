"""What commands share: options, sessions, JSON, progress bars. Results go to stdout, everything else to stderr."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from climassay.cli.option_groups import with_flags
from climassay.errors import InputError
from climassay.redaction import TrustedUrl
from climassay.session import ModelOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from rich.console import Console

    from climassay.distributed import WorkerPool
    from climassay.progress import Progress as ShownProgress
    from climassay.reporting.results import Result
    from climassay.session import Session

WorkspaceOption = Annotated[
    Path | None,
    Option("--workspace", "-w", help="Folder of collections and records.", envvar="CLIMASSAY_WORKSPACE"),
]
WIDE = 160
"""Columns of tables that go to a file or a pipe."""
JsonOption = Annotated[bool, Option("--json", help="Print one JSON document instead of tables.")]


def check_files(files: list[Path] | None) -> list[Path]:
    """Refuse files that a result cannot be saved in, before any work is done.

    Raises:
        InputError: One has another ending, or is a folder.
    """
    for file in files or ():
        from climassay.reporting.results import RESULT_SUFFIXES, unknown_suffix

        if file.is_dir():
            raise InputError(f"{file} is a folder: name a file.")
        if file.suffix.lower() not in RESULT_SUFFIXES:
            raise unknown_suffix(file)
    return files or []


FilesOption = Annotated[
    list[Path] | None,
    Option(
        "--output",
        "-o",
        "--html",
        "--csv",
        "--markdown",
        metavar="FILE",
        callback=check_files,
        help="Save the result too, as the ending says: .csv, .xlsx, .jsonl, .json, .md or .html; repeat.",
    ),
]


def stdout_console() -> "Console":
    """Console for results; wide where nobody's screen limits it, so that tables in files and pipes are whole."""
    from rich.console import Console

    unlimited = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = WIDE if unlimited else None
    # Documents and names may have brackets and colons, which are not markup of ours.
    return Console(soft_wrap=not sys.stdout.isatty(), width=width, markup=False, emoji=False)


def stderr_console() -> "Console":
    """Console for progress and notes."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False)


@contextmanager
def waiting(words: str, *, quiet: bool = False) -> Iterator[None]:
    """Say on stderr what is waited for, until it is there.

    Args:
        words: Shown as they are.
        quiet: Show nothing.
    """
    if quiet:
        yield
        return
    from rich.text import Text

    with stderr_console().status(Text(words)):
        yield


def print_json(data: Any) -> None:
    """Print one JSON document on stdout; dataclasses, paths and numpy numbers are understood; never NaN."""
    from climassay.reporting.results import json_text

    # Names of files are bytes: one that is not UTF-8 is written with JSON's own escapes.
    sys.stdout.write(json_text(data).encode("utf-8", "backslashreplace").decode() + "\n")


def emit(
    result: "Result",
    as_json: bool = False,
    files: "Sequence[Path] | Path | None" = None,
    written: "Sequence[Path]" = (),
) -> None:
    """Give out what a job gave back: files first, then one JSON document, or lines and tables with notes on stderr.

    Args:
        result: What the job gave back.
        as_json: Print JSON.
        files: Files to save it in, each as its ending says.
        written: Files that hold parts of it already.

    Raises:
        InputError: A file cannot be written.
    """
    from climassay.reporting import as_rich

    saved = [result.save(file) for file in ([files] if isinstance(files, Path) else files or ())]
    if as_json:
        print_json(result.to_dict())
        return
    console, note = stdout_console(), stderr_console()
    for line in result.lines():
        console.print(line, highlight=False, soft_wrap=True if isinstance(line, str) else None)
    for table in result.terminal_tables(console.width):
        console.print(as_rich(table))
    for sentence in (*result.notes(), *(f"{file} written." for file in (*saved, *written))):
        note.print(sentence, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class WorkspaceOptions:
    """The workspace of a command, and how its result is told."""

    workspace: WorkspaceOption = None
    as_json: JsonOption = False

    def session(self, options: ModelOptions | None = None, **more: Any) -> "AbstractContextManager[Session]":
        """The session of the command, see :func:`opened_session`."""
        return opened_session(self.workspace, options, as_json=self.as_json, **more)

    def emit(
        self, result: "Result", files: "Sequence[Path] | Path | None" = None, written: "Sequence[Path]" = ()
    ) -> None:
        """Give out what the command's job gave back, see :func:`emit`."""
        emit(result, self.as_json, files or getattr(self, "output", None), written)


@dataclass(frozen=True)
class ResultOptions(WorkspaceOptions):
    """The same, and where the result is saved too."""

    output: FilesOption = None


def done(data: Any, *said: str, notes: "Sequence[str]" = (), as_json: bool = False) -> None:
    """Say what a command did: as JSON, or in a sentence on stdout with notes on stderr."""
    from climassay.reporting.results import Shown

    emit(Shown(data, said=said, noted=notes), as_json)


def write_text(path: Path, text: str) -> None:
    """Write a file the user asked for, making its folder; an earlier one stays as it is until the new one is whole.

    Raises:
        InputError: The place cannot be written to.
    """
    from climassay.io import write_file

    # A name that is not UTF-8 may appear in a text; it is written as the bytes that it is.
    write_file(path, text.encode("utf-8", "surrogateescape"))


def add_init(app: typer.Typer, name: str, what: str, module: str, command: str) -> None:
    """Give a group the command ``init``, which writes a configuration with every entry explained.

    Args:
        app: The group.
        name: Name of the file where the user gives none.
        what: What is written, in words.
        module: Where ``COMMENTED``, the text, is, within this package.
        command: What runs the file, between ``climassay`` and its name.
    """

    @app.command(help=f"Write {what} with every entry explained.")
    def init(
        file: Annotated[Path, typer.Argument(help="File to write.")] = Path(name), as_json: JsonOption = False
    ) -> None:
        if file.exists():
            raise InputError(f"{file} is there already: name another file.")
        write_text(file, import_module(f"climassay.{module}").COMMENTED)
        done({"file": file}, f"Wrote {file}; run it with: climassay {command} {file}", as_json=as_json)


def shown_progress(as_json: bool) -> "ShownProgress":
    """How a command tells how far it is: bars on stderr, nothing beside JSON."""
    from climassay.progress import Bars
    from climassay.progress import Progress as Silent

    return Silent() if as_json else Bars(stderr_console())


@contextmanager
def opened_session(
    workspace: Path | None,
    options: ModelOptions | None = None,
    *,
    as_json: bool = False,
    where: "RayOptions | None" = None,
    records_url: str | None = None,
) -> Iterator["Session"]:
    """The session of a command.

    Args:
        workspace: As the user named it.
        options: How models are loaded and asked.
        as_json: Tell no progress.
        where: Workers of a cluster.
        records_url: Database of the records; by default the workspace's.

    Raises:
        InputError: The workspace cannot be made, or the cluster cannot be joined.
    """
    from climassay.session import Session

    progress = shown_progress(as_json)
    with (
        where.opened(quiet=as_json) if where is not None else nullcontext() as pool,
        Session.opened(workspace, options, progress=progress, pool=pool, records_url=records_url) as session,
    ):
        yield session


ModelOption = Annotated[
    str,
    Option(
        "--model", "-m", help="local:smollm2, local:FOLDER_OR_HUB_ID, openai:MODEL (see --base-url) or PROVIDER:MODEL."
    ),
]
ModelsOption = Annotated[
    list[str] | None,
    Option("--model", "-m", help="As for other commands, by default local:smollm2; repeat to compare several."),
]
BaseUrlOption = Annotated[
    TrustedUrl | None,
    Option(
        parser=TrustedUrl,
        metavar="URL",
        help="Address of an OpenAI-compatible server, for openai: models (or $OPENAI_BASE_URL); it gets the API key.",
    ),
]
NoCacheOption = Annotated[bool, Option("--no-cache", help="Ask everything afresh.")]


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
        Option(
            metavar="ADDRESS|local",
            help="Compute in workers of a Ray cluster: HOST:PORT of its head, auto, or local for one on this machine.",
        ),
    ] = None
    ray_workers: Annotated[
        int | None, Option(min=1, help="Processes that hold the model; by default one a GPU, else one a CPU.")
    ] = None
    ray_gpus_per_worker: Annotated[
        float | None, Option(min=0, help="GPUs of each, or a part of one; by default 1 where there are any.")
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
        int | None, Option(min=1, help="Maximum number of tokens in one forward pass: bounds the memory.")
    ] = None

    def session(self, options: ModelOptions | None = None, **more: Any) -> "AbstractContextManager[Session]":
        """The session of the command, with the model's options and its workers."""
        return super().session(options or self, where=self, **more)


@dataclass(frozen=True)
class ModelResultSetup(ModelSetup):
    """The same, and where the result is saved too."""

    output: FilesOption = None


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers between commas.

    Raises:
        InputError: They are not.
    """
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} takes whole numbers between commas, not {text!r}.") from None
    if len(set(found)) < len(found):
        raise InputError(f"{option} names a number twice: {text}.")
    return found


def _layer_sets(given: list[str] | None) -> list[tuple[int, ...]] | None:
    return [numbers(text, "--layer") for text in dict.fromkeys(given)] if given else None


def _layers(given: str | None) -> tuple[int, ...] | None:
    return numbers(given, "--layer") if given else None


MODEL = Argument(metavar="MODEL")
LABELS = Argument(metavar="LABELS")
OUTPUT = Option("--output", "-o", help="File of the trained model, for example model.safetensors.")
STATES_MODEL = Option("--model", "-m", help="Local model whose hidden states are read.")
LAYER_SETS = Option(
    "--layer",
    callback=_layer_sets,
    help="Layer whose hidden states are read (-1: last), several side by side as 16,-1; repeat to have the best "
    "chosen by cross-validation.",
)
LayerOption = Annotated[list[str] | None, LAYER_SETS]
LayersOption = Annotated[
    str | None,
    Option("--layer", callback=_layers, help="Layers whose hidden states are read, side by side as 16,-1."),
]
SEED, HOLD_OUT, FOLDS, LIMIT = Option(min=0), Option(min=0), Option(min=2), Option(min=1)
SeedOption = Annotated[int, Option(min=0, help="Seed of samples, splits, folds and resampling.")]
