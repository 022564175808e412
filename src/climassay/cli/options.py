"""What commands share: options, sessions, JSON, progress bars. Results go to stdout, everything else to stderr.

A command that takes a verb of the API with its parameters as they are is made from the verb's signature and docstring
(:func:`verb_command`): what the user gives is passed on by name, and what comes back is given out. Dataclasses of
options are one argument of a command (:func:`grouped`).
"""

import inspect
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import typer
from typer import Argument, Option
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from climassay.errors import InputError, ModelError, NoAnswerError
from climassay.io import write_file
from climassay.redaction import TrustedUrl
from climassay.reporting.results import RESULT_SUFFIXES, Shown, json_text, unknown_suffix, write_rows
from climassay.session import ModelOptions, Session
from climassay.settings import entries

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from climassay.distributed import WorkerPool
    from climassay.progress import Progress as ShownProgress
    from climassay.reporting.results import Result

T = TypeVar("T")


def with_flags(*kinds: type, defaults: bool = True, only: Collection[str] = ()) -> Callable[[type[T]], type[T]]:
    """Give a dataclass of options, before it is made one, an option for each entry of settings that is a flag.

    A field of such an option is None where the user does not give it.

    Args:
        kinds: Settings (:mod:`climassay.settings`), whose entries with a ``Flag`` are taken.
        defaults: Whether the help tells the entries' defaults.
        only: Names of the entries that are taken; all by default.
    """

    def add(group: type[T]) -> type[T]:
        for entry in (entry for kind in kinds for entry in entries(kind)):
            flag = entry.flag
            if flag is None or (only and entry.name not in only):
                continue
            wanted = entry.kind
            if get_origin(wanted) in (Union, UnionType):
                wanted = next(part for part in get_args(wanted) if part is not type(None))
            elif get_origin(wanted) is tuple:
                wanted = GenericAlias(list, get_args(wanted)[:1])
            words = entry.description
            if defaults and entry.default != "" and type(entry.default) in (str, int, float):
                words += f"  [default: {entry.default}]"
            option = typer.Option(*flag.names, help=words, envvar=flag.envvar)
            option.min = flag.min if entry.low is None else entry.low
            name = flag.field or entry.name
            group.__annotations__[name] = Annotated[wanted | None, option]
            setattr(group, name, None)
        return group

    return add


def given(options: object, kind: type) -> dict[str, Any]:
    """What the user says, with options made by :func:`with_flags`, of the entries of a table of settings."""
    named = {one.name: getattr(options, one.flag.field or one.name) for one in entries(kind) if one.flag}
    return {name: value for name, value in named.items() if value is not None}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options.

    Each parameter whose annotation is a dataclass is replaced, for typer, by the dataclass's fields, whose annotations
    are those of typer options; the command gets the filled dataclass. What a dataclass inherits stands after its own.

    Args:
        command: A typer command, before it is registered.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        annotation = hints[parameter.name]
        if not (isinstance(annotation, type) and is_dataclass(annotation)):
            shown.append(parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = annotation
        kinds = get_type_hints(annotation, include_extras=True)
        own = inspect.get_annotations(annotation)
        options = [
            entry
            for entry in fields(annotation)
            if any(isinstance(part, ParameterInfo) for part in getattr(kinds[entry.name], "__metadata__", ()))
        ]
        for entry in sorted(options, key=lambda entry: entry.name not in own):
            default = inspect.Parameter.empty if entry.default is MISSING else entry.default
            shown.append(
                inspect.Parameter(
                    entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[entry.name]
                )
            )

    @wraps(command)
    def run(**given: Any) -> None:
        filled = {
            name: group(**{entry.name: given.pop(entry.name) for entry in fields(group) if entry.name in given})
            for name, group in groups.items()
        }
        command(**given, **filled)

    # typer reads both.
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    del run.__wrapped__
    return run


class CommandGroup(typer.Typer):
    """A group whose commands may take dataclasses of options, see :func:`grouped`."""

    def command(self, *arguments: Any, **named: Any) -> Callable[[Any], Any]:
        """Register a command as typer does."""
        register = super().command(*arguments, **named)
        return lambda command: register(grouped(command))

    def add_verb(self, name: str, function: "Callable[..., Result]", /, **how: Any) -> None:
        """Add a command that :func:`verb_command` makes of a verb, with its further arguments."""
        self.command(name)(verb_command(function, **how))

    def add_init(self, name: str, what: str, module: str, command: str) -> None:
        """Add the command ``init``, which writes a configuration with every entry explained.

        Args:
            name: Name of the file where the user gives none.
            what: What is written, in words.
            module: Where ``COMMENTED``, the text, is, within this package.
            command: What runs the file, between ``climassay`` and its name.
        """

        @self.command(help=f"Write {what} with every entry explained.")
        def init(
            file: Annotated[Path, typer.Argument(help="File to write.")] = Path(name), as_json: JsonOption = False
        ) -> None:
            if file.exists():
                raise InputError(f"{file} is there already: name another file.")
            write_file(file, import_module(f"climassay.{module}").COMMENTED)
            done({"file": file}, f"Wrote {file}; run it with: climassay {command} {file}", as_json=as_json)


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


def print_json(data: Any) -> None:
    """Print one JSON document on stdout; dataclasses, paths and numpy numbers are understood; never NaN."""
    # Names of files are bytes: one that is not UTF-8 is written with JSON's own escapes.
    sys.stdout.write(json_text(data).encode("utf-8", "backslashreplace").decode() + "\n")


def emit(
    result: "Result",
    as_json: bool = False,
    files: "Sequence[Path] | Path | None" = None,
    written: "Sequence[Path]" = (),
    session: Session | None = None,
) -> None:
    """Give out what a job gave back: files first, then one JSON document, or lines and tables with notes on stderr.

    ``files`` are those to save it in, each as its ending says; ``written`` hold parts of it already. With the
    ``session`` that it was made in, model calls that failed there are told in every form.

    Raises:
        InputError: A file cannot be written.
        ClimassayError: The job failed, as the result says, or no model call was answered.
    """
    if session is not None and (records := session.records_of_runs) is not None:
        from climassay.api.records import with_failed_calls

        result = with_failed_calls(result, records)
    saved = [result.save(file) for file in ([files] if isinstance(files, Path) else files or ())]
    if as_json:
        print_json(result.to_dict())
    else:
        console, note = stdout_console(), stderr_console()
        for line in result.lines():
            console.print(line, highlight=False, soft_wrap=True if isinstance(line, str) else None)
        for table in result.terminal_tables(console.width):
            console.print(table)
        for sentence in (*result.notes(), *(f"{file} written." for file in (*saved, *written))):
            note.print(sentence, highlight=False, soft_wrap=True)
    if (failure := result.failure()) is not None:
        raise failure


@dataclass(frozen=True)
class WorkspaceOptions:
    """The workspace of a command, and how its result is told."""

    workspace: WorkspaceOption = None
    as_json: JsonOption = False

    def session(self, options: ModelOptions | None = None, **more: Any) -> "AbstractContextManager[Session]":
        """The session of the command, see :func:`opened_session`."""
        return opened_session(self.workspace, options, as_json=self.as_json, **more)

    def emit(
        self,
        result: "Result",
        files: "Sequence[Path] | Path | None" = None,
        written: "Sequence[Path]" = (),
        session: Session | None = None,
    ) -> None:
        """Give out what the command's job gave back, see :func:`emit`."""
        emit(result, self.as_json, files or getattr(self, "output", None), written, session)


@dataclass(frozen=True)
class ResultOptions(WorkspaceOptions):
    """The same, and where the result is saved too."""

    output: FilesOption = None


def done(data: Any, *said: str, notes: "Sequence[str]" = (), as_json: bool = False) -> None:
    """Say what a command did: as JSON, or in a sentence on stdout with notes on stderr."""
    emit(Shown(data, said=said, noted=notes), as_json)


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
) -> Iterator[Session]:
    """The session of a command; beside JSON no progress is told.

    Raises:
        InputError: The workspace cannot be made, or the cluster cannot be joined.
    """
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
    Option("--model", "-m", help="Model, by default local:smollm2; repeat to compare several."),
]
BaseUrlOption = Annotated[
    TrustedUrl | None,
    Option(
        parser=TrustedUrl,
        metavar="URL",
        help="Address of an OpenAI-compatible server, for openai: models (or $OPENAI_BASE_URL); it gets the API key.",
    ),
]
NoCacheOption = Annotated[bool, Option("--no-cache", help="Ask everything again instead of using stored answers.")]


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
        int | None,
        Option(
            min=1,
            help="Number of processes that hold the model; by default one per GPU, or one per CPU where there is none.",
        ),
    ] = None
    ray_gpus_per_worker: Annotated[
        float | None, Option(min=0, help="GPUs per worker, or a fraction of one; by default 1 where there are any.")
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
            with shown_progress(quiet).waiting(f"Joining Ray ({self.ray}) ..."):
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
        results = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} takes whole numbers separated by commas, not {text!r}.") from None
    if len(set(results)) < len(results):
        raise InputError(f"{option} lists a number twice: {text}.")
    return results


MODEL = Argument(metavar="MODEL")
LayerOption = Annotated[
    list[str] | None,
    Option(
        "--layer",
        callback=lambda given: [numbers(text, "--layer") for text in dict.fromkeys(given or ())] or None,
        help="Layer whose hidden states are read (-1: last), several side by side as 16,-1; repeat to have the best "
        "chosen by cross-validation.",
    ),
]
LayersOption = Annotated[
    str | None,
    Option(
        "--layer",
        callback=lambda given: numbers(given, "--layer") if given else None,
        help="Layers whose hidden states are read together, as 16,-1.",
    ),
]
_USUAL = {
    "seed": Option(min=0),
    "folds": Option(min=2),
    "limit": Option(min=1),
    "model": Option("--model", "-m"),
    "output": Option("--output", "-o"),
}
"""Options of verbs' parameters of these names, where a command says nothing else."""
SeedOption = Annotated[int, Option(min=0, help="Seed of samples, splits, folds and resampling.")]


Parse = Callable[..., dict[str, Any]]
"""Makes arguments of a verb, by name, of options that are its own parameters."""
Write = Callable[[Any, Path], None]
"""Writes a part of a result to a file."""


def _run(
    function: "Callable[..., Result]",
    given: dict[str, Any],
    parse: Parse | None,
    writes: Mapping[str, Write],
    hint: str,
) -> None:
    """Call a verb with what the user gave, in a session where it takes one, and give out its result."""
    taken = inspect.signature(function).parameters
    to, reach, more = WorkspaceOptions(as_json=given.pop("as_json", False)), None, {}
    for name, options in list(given.items()):
        if isinstance(options, WorkspaceOptions):
            to = given.pop(name)
        elif isinstance(options, ModelOptions):
            reach = given.pop(name)
        elif isinstance(options, RayOptions):
            more["where"] = given.pop(name)
    if isinstance(to, ModelSetup):
        given |= {name: getattr(to, name) for name in ("model", "token_budget") if name in taken}
    files = None if "files" in taken else given.pop("files", None)
    parts = {name: file for name in writes if (file := given.pop(name)) is not None}
    made = {} if parse is None else parse(**{name: given.pop(name) for name in inspect.signature(parse).parameters})
    known = {
        name: value.made() if hasattr(value, "made") else value for name, value in given.items() if value is not None
    } | made
    with to.session(reach, **more) if "workspace" in taken else nullcontext() as session:
        try:
            result = function(**known) if session is None else function(**known, workspace=session)
        except ModelError as error:
            if session is not None and (records := session.records_of_runs) is not None:
                from climassay.api.records import failed_calls, none_answered

                for sentence in failed_calls(records, besides=str(error)):
                    stderr_console().print(sentence, highlight=False, soft_wrap=True)
                if none_answered(records):
                    raise NoAnswerError(str(error)) from error
            raise
        for name, file in parts.items():
            writes[name](result, file)
        to.emit(result, files, tuple(parts.values()), session)
    if hint and not (files or parts or to.as_json or getattr(to, "output", None)):
        stderr_console().print(hint, highlight=False)


HTML_REPORT = {
    "html": (
        typer.Option(help="Write figures and tables as a self-contained HTML report."),
        lambda result, file: result.save(file),
    )
}
"""An option of commands whose result is saved as a page."""


def rows_written(rows: Callable[[Any], Iterable[Mapping[str, Any]]]) -> Write:
    """Write rows that a result has, as the file's ending says."""

    def write(result: Any, file: Path) -> None:
        write_rows(file, rows(result))

    return write


PREDICTIONS = typer.Option(help="Write every prediction (.jsonl, .csv, .xlsx).")


def verb_command(
    function: "Callable[..., Result]",
    /,
    *,
    reach: type[ModelOptions] | None = None,
    ray: bool = False,
    to: type[WorkspaceOptions] | None = None,
    parse: Parse | None = None,
    writes: Mapping[str, tuple[OptionInfo, Write]] | None = None,
    hint: str = "",
    saved: bool = True,
    **options: Any,
) -> Callable[..., None]:
    """Make a command of a verb: positional parameters are arguments, the others options.

    Help comes from the verb's docstring, types and defaults from its signature. A parameter whose type no option can
    have is left to the verb.

    Args:
        function: The verb.
        reach: Options of the models that the session loads.
        ray: Whether models and encoders can compute in a cluster.
        to: Options of the workspace; by default with files where the verb takes no ``output`` itself.
        parse: Makes several of the verb's arguments, which are None below, of options that are its own parameters.
        writes: By name of a further option, the option and what writes a part of the result to its file.
        hint: How to go on, said where the result was only shown.
        saved: Whether the result of a verb without a workspace can be saved too.
        **options: By name of a parameter: a typer option or argument, whose help is the docstring's where it has none;
            one with a type of its own (``Annotated``), which makes an argument required, and an option where the verb's
            own default is None; a dataclass of options, of
            which the verb gets one, or what its ``made`` gives; or None, which leaves the parameter to the verb.
    """
    words, helps = _documented(function)
    parameters: list[inspect.Parameter] = []

    def add(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> None:
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))

    taken = inspect.signature(function).parameters
    of_setup = ("workspace", "model", "token_budget") if to and issubclass(to, ModelSetup) else ("workspace",)
    # Arguments that are named in another order than the verb's parameters have this order.
    named = [
        name
        for name, option in options.items()
        if any(isinstance(part, ArgumentInfo) for part in (option, *getattr(option, "__metadata__", ())))
    ]
    for one in (taken[name] for name in dict.fromkeys([*named, *taken])):
        wanted = options.get(one.name, ...)
        if wanted is None or one.name in of_setup:
            continue
        if is_dataclass(wanted) and isinstance(wanted, type):
            add(one.name, wanted, wanted())
            continue
        needed = one.default is inspect.Parameter.empty
        if get_origin(wanted) is Annotated:
            kind, wanted = get_args(wanted)[:2]
            always = isinstance(wanted, ArgumentInfo) or one.default is None
            needed |= always and get_origin(kind) not in (Union, UnionType)
        else:
            kind = _option_kind(one.annotation, sys.modules[function.__module__])
            if kind is None:
                continue
        if wanted is ...:
            positional = one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            wanted = _USUAL.get(one.name) or (typer.Argument() if positional else typer.Option())
        wanted = copy(wanted)
        if wanted.help is None:
            wanted.help = helps.get(one.name)
        unnamed = not wanted.param_decls and wanted.default is ...  # typer takes a first name for the default
        if kind is bool and isinstance(wanted, OptionInfo) and unnamed and one.default is False:
            wanted.param_decls = (f"--{one.name.replace('_', '-')}",)
        if needed:
            add(one.name, Annotated[kind, wanted])
        elif get_origin(kind) in (list, Union, UnionType) or not isinstance(one.default, (str, int, float, Path)):
            add(one.name, Annotated[kind | None, wanted], None)
        else:
            add(one.name, Annotated[kind, wanted], one.default)
    if parse is not None:
        hints = get_type_hints(parse, include_extras=True)
        parameters += [
            one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for one in inspect.signature(parse).parameters.values()
        ]
    parts = writes or {}
    for part, (option, _) in parts.items():
        add(part, Annotated[Path | None, option], None)
    if reach is not None:
        add("reach", reach, reach())
    if ray:
        add("where", RayOptions, RayOptions())
    if to is not None or "workspace" in taken:
        to = to or (WorkspaceOptions if "output" in taken else ResultOptions)
        add("to", to, to())
    else:
        if saved and "output" not in taken:
            add("files", FilesOption, None)
        add("as_json", JsonOption, False)

    def run(**given: Any) -> None:
        _run(function, given, parse, {part: write for part, (_, write) in parts.items()}, hint)

    # typer reads all of these.
    run.__name__, run.__doc__ = function.__name__, words
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


_PARAMETER = re.compile(r"    \*{0,2}(\w+): (.*)")
_AS_IN = re.compile(r"As in (\w+)\.")
_ROLE = re.compile(r":\w+:`[~.]?(?:[\w.]+\.)?(\w+)`")


@cache
def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of a function, and of each of its parameters; marks of Sphinx are taken out.

    Where it says of one "As in f.", that is what the docstring of the function f in the same module says of it.
    """
    text = _ROLE.sub(r"\1", inspect.getdoc(function) or "").replace("``", "")
    words, _, sections = text.partition("\n\nArgs:\n")
    helps: dict[str, str] = {}
    name = ""
    for line in sections.split("\n\n")[0].splitlines():
        if match := _PARAMETER.fullmatch(line):
            name, helps[name] = match[1], match[2]
        elif name:
            helps[name] += f" {line.strip()}"
    for name, said in helps.items():
        if match := _AS_IN.fullmatch(said):
            helps[name] = _documented(vars(sys.modules[function.__module__])[match[1]])[1][name]
    return re.split(r"\n\n(?:Returns|Raises|Example):", words)[0], helps


def _option_kind(annotation: Any, module: Any) -> Any:
    """The type that an option of a parameter has; None where it can have none."""
    if isinstance(annotation, str):
        if "." in annotation:  # a type of a room, which would be imported for it
            return None

        def annotated() -> None: ...

        annotated.__annotations__ = {"option": annotation}
        try:
            annotation = get_type_hints(annotated, vars(module))["option"]
        except NameError:  # imported for type checkers only
            return None
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        kinds = [_option_kind(part, module) for part in get_args(annotation)]
        plain = [kind for kind in kinds if kind is not None]
        if plain and all(get_origin(kind) is Literal for kind in plain):
            return Literal[tuple(word for kind in plain for word in get_args(kind))]
        return next((kind for kind in plain if get_origin(kind) is list), plain[0] if plain else None)
    if origin is Literal or annotation in (str, int, float, bool, Path):
        return annotation
    if origin in (list, tuple, Sequence, Iterable):
        inner = _option_kind(get_args(annotation)[0], module)
        # typer takes no lists of literals; the verb says what is wrong.
        return None if inner is None else GenericAlias(list, (str if get_origin(inner) is Literal else inner,))
    return None
