"""Groups of options that commands share: the workspace, the output, the models and the cluster.

A group is a dataclass; the docstring below a field is the help of its option. :func:`options_for` adds an option for
each setting that a command can override.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter, Token, convert

from climassay.cli.output import check_output_files, emit, print_note, progress_bars
from climassay.errors import InputError, ModelError, NoAnswerError
from climassay.models.options import ModelOptions
from climassay.progress import Progress
from climassay.redaction import TrustedUrl
from climassay.session import Session
from climassay.settings import describe_bounds, field_bounds, setting_fields, summary

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pydantic.fields import FieldInfo

    from climassay.distributed import WorkerPool
    from climassay.reporting.results import Result

T = TypeVar("T")


def bounded(low: float, high: float | None = None, **options: Any) -> Parameter:
    """Return the ``Parameter`` of a numeric option with inclusive bounds. The bounds appear in the help."""
    return _bounded_parameter({"ge": low} if high is None else {"ge": low, "le": high}, **options)


def _bounded_parameter(bounds: Mapping[str, float], **options: Any) -> Parameter:
    # A converter refuses "none"; without one, cyclopts reads it as None, as if the option were not given.
    options.setdefault("converter", convert)

    def validate(_: Any, value: Any) -> None:
        checks = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
        for number in value if isinstance(value, (list, tuple)) else [value]:
            if number is not None and not all(checks[name](number, bound) for name, bound in bounds.items()):
                raise ValueError(f"It {describe_bounds(bounds)}.")

    return Parameter(validator=validate, metavar=_describe_range(bounds), **options)


def _describe_range(bounds: Mapping[str, float]) -> str:
    """Format bounds with pydantic's names (``ge``, ``gt``, ``le``, ``lt``) as a range like ``N>=1`` or ``0<=N<1``."""
    bound_texts = {name: f"{bound:g}" for name, bound in bounds.items()}
    signs = {"ge": "=", "gt": "", "le": "=", "lt": ""}
    low = next(((signs[name], bound_texts[name]) for name in ("ge", "gt") if name in bound_texts), None)
    high = next((f"<{signs[name]}{bound_texts[name]}" for name in ("le", "lt") if name in bound_texts), "")
    if low is None:
        return f"N{high}"
    return f"{low[1]}<{low[0]}N{high}" if high else f"N>{low[0]}{low[1]}"


POSITIVE = bounded(1)
NON_NEGATIVE = bounded(0)


def options_for(
    settings: type, /, *names: str, show_defaults: bool = True, **parameters: Parameter
) -> Callable[[type[T]], type[T]]:
    """Return a decorator that adds an option for each field of a settings class to a group of options.

    It must be applied before ``@dataclass``. The help of the options is made from the descriptions, bounds and defaults
    of the settings. A field of the group is None unless the user gives the option; :func:`given_values` returns the
    values that were given.

    Args:
        settings: Class of settings.
        names: Fields that become options, in addition to those in ``parameters``; all fields if empty.
        show_defaults: Whether the help shows the defaults of the settings.
        **parameters: ``Parameter`` by field, which overrides the option's name or negative form.
    """

    def decorate(group: type[T]) -> type[T]:
        for name, info in setting_fields(settings).items():
            if not names or name in names or name in parameters:
                option = Parameter.combine(_make_option(name, info, show_defaults), parameters.get(name, Parameter()))
                group.__annotations__[name] = Annotated[_option_type(info.annotation) | None, option, settings]
                setattr(group, name, None)
        return group

    return decorate


def _option_type(field_type: Any) -> Any:
    """Return the type of an option for the type of a settings field: None is removed, and tuples become lists."""
    if get_origin(field_type) in (Union, UnionType):
        field_type = next(member for member in get_args(field_type) if member is not type(None))
    return GenericAlias(list, get_args(field_type)[:1]) if get_origin(field_type) is tuple else field_type


def _make_option(name: str, info: "FieldInfo", show_default: bool) -> Parameter:
    """Return the ``Parameter`` of an option for a field of settings."""
    option_type, help_text = _option_type(info.annotation), summary(info)
    if show_default and info.default != "" and type(info.default) in (str, int, float):
        help_text += f" [default: {info.default}]"
    negative = f"--no-{name.replace('_', '-')}" if option_type is bool else ()
    is_list = get_origin(option_type) is list
    converter = None if option_type is bool or is_list else convert
    if bounds := field_bounds(info):
        return _bounded_parameter(bounds, help=help_text, converter=converter)
    return Parameter(help=help_text, negative=negative, converter=converter)


def given_values(options: object, settings: type) -> dict[str, Any]:
    """Return the values that the user gave for fields of ``settings``, by field; see :func:`options_for`."""
    hints = get_type_hints(type(options), include_extras=True)
    names = [name for name, hint in hints.items() if settings in getattr(hint, "__metadata__", ())]
    values = {name: getattr(options, name) for name in names}
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if value is not None
    }


WorkspaceOption = Annotated[
    Path | None,
    Parameter(alias="-w", env_var="CLIMASSAY_WORKSPACE", help="Folder of collections and records."),
]
JsonOption = Annotated[bool, Parameter(name="--json", help="Print one JSON document instead of tables.")]
OutputOption = Annotated[
    tuple[Path, ...],
    Parameter(
        name=("--output", "-o"),
        validator=lambda _, files: check_output_files(files or ()),
        help="Save the result too; the suffix decides the format: .csv, .xlsx, .jsonl, .json, .md or .html; repeat.",
    ),
]
ModelOption = Annotated[
    str,
    Parameter(
        alias="-m", help="local:smollm2, local:FOLDER_OR_HUB_ID, openai:MODEL (see --base-url) or PROVIDER:MODEL."
    ),
]
ModelsOption = Annotated[
    list[str] | None,
    Parameter(name=("--model", "-m"), help="Model, by default local:smollm2; repeat to compare several."),
]


def _trusted_url(_: object, tokens: Sequence[Token]) -> TrustedUrl:
    return TrustedUrl(tokens[0].value)


_BASE_URL = Parameter(
    converter=_trusted_url,
    metavar="URL",
    help="URL of an OpenAI-compatible server for openai: models (or $OPENAI_BASE_URL); it receives the API key.",
)


@Parameter(group=Group("Models and servers", sort_key=1))
@dataclass(frozen=True, kw_only=True)
class ModelGroup:
    """Base class of groups of options for models."""

    @property
    def model_options(self) -> ModelOptions:
        """Model options with the values that the user gave."""
        return ModelOptions(**given_values(self, ModelOptions))


@dataclass(frozen=True, kw_only=True)
@options_for(ModelOptions, "prompts")
class PromptOptions(ModelGroup):
    """Option for the prompt templates of a model."""


@dataclass(frozen=True, kw_only=True)
@options_for(ModelOptions, "dtype", "deadline", "timeout", "reasoning_effort", base_url=_BASE_URL)
class AccessOptions(ModelGroup):
    """Options for loading a model or reaching its server."""


@dataclass(frozen=True, kw_only=True)
@options_for(ModelOptions, "device", "adapter")
class CheckOptions(AccessOptions):
    """Options for the model that ``climassay models check`` tests."""


@dataclass(frozen=True, kw_only=True)
@options_for(ModelOptions, "concurrency", "max_output_tokens")
class ReachOptions(AccessOptions):
    """Options for loading a model or reaching its server, and for its answers."""


@dataclass(frozen=True, kw_only=True)
class PromptedOptions(ReachOptions, PromptOptions):
    """Options for loading a model or reaching its server, and for the model's prompt templates."""


@dataclass(frozen=True, kw_only=True)
@options_for(ModelOptions, "price_in", "price_out", no_cache=Parameter(negative=()))
class LoadingOptions(PromptedOptions):
    """All options of a model, including its prices and the cache of its answers."""


@dataclass(frozen=True, kw_only=True)
@options_for(
    ModelOptions,
    *("deadline", "timeout", "max_output_tokens", "reasoning_effort"),
    no_cache=Parameter(negative=()),
)
class RequestOptions(PromptOptions):
    """Options for requests to models that are listed in a file."""


@Parameter(group=Group("Ray cluster", sort_key=2))
@dataclass(frozen=True)
class RayOptions:
    """Options for a Ray cluster in which local models and encoders run."""

    ray: str | None = None
    """Run models in workers of a Ray cluster: HOST:PORT of its head, auto, or local for workers on this machine."""
    ray_workers: Annotated[int | None, POSITIVE] = None
    """Number of processes that hold the model; default: one per GPU, or one per CPU without a GPU."""
    ray_gpus_per_worker: Annotated[float | None, NON_NEGATIVE] = None
    """GPUs per worker, or a fraction of one; by default 1 if the cluster has GPUs."""

    @contextmanager
    def open_workers(self) -> Iterator["WorkerPool | None"]:
        """Join the cluster and yield a pool of its workers; yield None if ``--ray`` was not given.

        Raises:
            InputError: The cluster cannot be joined or is too small, or other options were given without ``--ray``.
            MissingExtraError: Ray is not installed.
        """
        if self.ray is None:
            if self.ray_workers is not None or self.ray_gpus_per_worker is not None:
                raise InputError("--ray-workers and --ray-gpus-per-worker need --ray: name the cluster, or local.")
            yield None
            return
        from climassay.distributed import ClusterOptions, open_pool

        options = ClusterOptions(self.ray, self.ray_workers, self.ray_gpus_per_worker)
        with ExitStack() as stack:
            with progress_bars().status(f"Joining Ray ({self.ray}) ..."):
                pool = stack.enter_context(open_pool(options))
            yield pool


@dataclass(frozen=True)
class WorkspaceOptions:
    """Options for the workspace of a command, and the format of its result."""

    workspace: WorkspaceOption = None
    as_json: JsonOption = False

    @property
    def files(self) -> tuple[Path, ...]:
        """Files in which the result is saved."""
        return ()

    @property
    def records_url(self) -> str | None:
        """URL of the records database; None for the workspace's own."""
        return None

    def open_session(
        self, options: ModelGroup | None = None, *, ray: RayOptions | None = None
    ) -> "AbstractContextManager[Session]":
        """Return a context manager that opens the command's session; see :func:`open_session`."""
        return open_session(self.workspace, options, ray=ray, records_url=self.records_url)

    def print_result(
        self, result: "Result", session: Session | None = None, *, written_files: Sequence[Path] = ()
    ) -> None:
        """Save and print the result of the command; see :func:`climassay.cli.output.emit`."""
        emit(result, self.as_json, self.files, written_files=written_files, session=session)


@dataclass(frozen=True)
class ResultOptions(WorkspaceOptions):
    """Options for the workspace of a command, the format of its result, and files to save it in."""

    output: OutputOption = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Files in which the result is saved."""
        return self.output


@contextmanager
def open_session(
    workspace: Path | None,
    options: ModelGroup | None = None,
    *,
    ray: RayOptions | None = None,
    records_url: str | None = None,
    is_silent: bool = False,
) -> Iterator[Session]:
    """Open the session of a command.

    If the command raises ModelError, the session's failed model calls are summarised on stderr.

    Args:
        workspace: Folder of the workspace; the default one if None.
        options: Options for models; defaults if None.
        ray: Options for a Ray cluster; None to run models in this process.
        records_url: URL of a records database; the workspace's own if None.
        is_silent: Whether no progress is shown on stderr.

    Raises:
        InputError: The workspace cannot be created, or the cluster cannot be joined.
        NoAnswerError: The command raised ModelError, and no model call of the session was answered.
    """
    with (
        ray.open_workers() if ray is not None else nullcontext() as pool,
        Session.opened(
            workspace,
            options.model_options if options is not None else None,
            progress=Progress() if is_silent else progress_bars(),
            pool=pool,
            records_url=records_url,
        ) as session,
    ):
        try:
            yield session
        except ModelError as error:
            if (records := session.records_of_runs) is not None:
                from climassay.api.records import failed_calls, none_answered

                for sentence in failed_calls(records, besides=str(error)):
                    print_note(sentence)
                if none_answered(records):
                    raise NoAnswerError(str(error)) from error
            raise


@dataclass(frozen=True, kw_only=True)
class ModelSetup(LoadingOptions, RayOptions, WorkspaceOptions):
    """Options for a model and for the workspace that stores its answers."""

    model: ModelOption = "local:smollm2"
    token_budget: Annotated[int | None, POSITIVE] = None
    """Maximum number of tokens in one forward pass, which limits memory use."""

    def open_session(
        self, options: ModelGroup | None = None, *, ray: RayOptions | None = None
    ) -> "AbstractContextManager[Session]":
        """Return a context manager that opens the command's session with the options for the model and Ray."""
        return super().open_session(options or self, ray=ray or self)


@dataclass(frozen=True, kw_only=True)
class ModelResultSetup(ModelSetup, ResultOptions):
    """Options for a model, for the workspace that stores its answers, and for files to save the result in."""


def parse_numbers(text: str, option_name: str) -> tuple[int, ...]:
    """Parse distinct whole numbers separated by commas.

    Raises:
        InputError: A part is not a whole number, or a number is repeated.
    """
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option_name} takes whole numbers separated by commas, not {text!r}.") from None
    if len(set(numbers)) < len(numbers):
        raise InputError(f"{option_name} lists a number twice: {text}.")
    return numbers


def _parse_layers(_: object, tokens: Sequence[Token]) -> tuple[int, ...]:
    return parse_numbers(tokens[0].value, "--layer")


LayersOption = Annotated[
    tuple[int, ...],
    Parameter(
        name="--layer",
        converter=_parse_layers,
        n_tokens=1,
        allow_leading_hyphen=True,
        help="Layers whose hidden states are read together, as 16,-1.",
    ),
]
