"""Commands made from functions of :mod:`climassay.api`.

:func:`api_command` turns a function into a command with the same parameters. Help comes from the function's docstring,
types and defaults from its signature. A group of options (:mod:`climassay.cli.options`) replaces its ``workspace``.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from cyclopts import App, Parameter

from climassay.cli.options import (
    NON_NEGATIVE,
    POSITIVE,
    JsonOption,
    ModelGroup,
    ModelSetup,
    OutputOption,
    RayOptions,
    ResultOptions,
    WorkspaceOptions,
    bounded,
)
from climassay.cli.output import emit, print_note, report_done
from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting.results import write_rows

if TYPE_CHECKING:
    from climassay.reporting.results import Result

ResultWriter = Callable[[Any, Path], None]
"""Function that writes part of a result to a file; takes the result and the path."""

_DEFAULT_OPTIONS = {
    "seed": NON_NEGATIVE,
    "folds": bounded(2),
    "limit": POSITIVE,
    "model": Parameter(alias="-m"),
    "output": Parameter(alias="-o"),
}
"""Default options by the name of an API parameter, for commands that define none for this parameter."""
_SPHINX_ROLE = re.compile(r":\w+:`[~.]?(?:[\w.]+\.)?(\w+)`")


def add_command(app: App, name: str, function: "Callable[..., Result]", /, **options: Any) -> None:
    """Add a command that calls a function of the API; ``options`` are passed to :func:`api_command`."""
    app.command(api_command(function, **options), name=name)


def add_init(app: App, default_file: str, content: str, module: str, command: str) -> None:
    """Add the command ``init``, which writes a configuration file with comments on every entry.

    Args:
        app: Group of commands to which ``init`` is added.
        default_file: Default name of the file.
        content: Noun phrase for the configuration, used in the help.
        module: Module below ``climassay`` whose constant ``COMMENTED`` is the text of the file.
        command: Command with which the user runs the file, without ``climassay`` and the file's name.
    """

    @app.command(help=f"Write {content} with every entry explained.")
    def init(
        file: Annotated[Path, Parameter(help="File to write.")] = Path(default_file), /, *, as_json: JsonOption = False
    ) -> None:
        if file.exists():
            raise InputError(f"{file} exists already: name another file.")
        write_file(file, import_module(f"climassay.{module}").COMMENTED)
        report_done({"file": file}, f"Wrote {file}; run it with: climassay {command} {file}", as_json=as_json)


def write_html(result: "Result", file: Path) -> None:
    """Write a result as an HTML report."""
    result.save(file)


HTML_REPORT_OPTION = {
    "html": (Parameter(help="Write figures and tables as a self-contained HTML report."), write_html),
}
"""Value of ``writes`` in :func:`api_command` for an option ``--html`` that saves the result as an HTML report."""


def make_rows_writer(rows: Callable[[Any], Iterable[Mapping[str, Any]]]) -> ResultWriter:
    """Return a function that writes the ``rows`` of a result to a file. The file's suffix decides the format."""

    def write(result: Any, file: Path) -> None:
        write_rows(file, rows(result))

    return write


PREDICTIONS_OPTION = Parameter(help="Write every prediction (.jsonl, .csv, .xlsx).")


def api_command(
    function: "Callable[..., Result]",
    /,
    *,
    model_options: type[ModelGroup] | None = None,
    ray: bool = False,
    common_options: type[WorkspaceOptions] | None = None,
    writes: Mapping[str, tuple[Parameter, ResultWriter]] | None = None,
    hint: str = "",
    can_save: bool = True,
    **parameters: Any,
) -> Callable[..., None]:
    """Return a command that calls a function of the API and prints its result.

    Positional parameters of the function become arguments of the command, keyword-only parameters become options. A
    parameter whose type cannot be expressed on a command line is left out and keeps its default.

    Args:
        function: Function of the API.
        model_options: Group of options for the models that the session loads.
        ray: Whether to add the options of a Ray cluster.
        common_options: Group of options for the workspace and the output. By default, :class:`ResultOptions`, or
            :class:`WorkspaceOptions` if the function has a parameter ``output``.
        writes: Further options by name, each with a function that writes part of the result to the option's file.
        hint: Sentence that is printed on stderr if the result was neither saved nor printed as JSON.
        can_save: Whether to add ``--output`` if the function has no workspace.
        **parameters: Options by the name of a function parameter, each of one of these kinds:

            - a ``Parameter``, which overrides the option's name, help or validation;
            - ``Annotated[type, Parameter]``, which also overrides the type. A positional parameter or one whose default
              is None then becomes required, unless the type includes None;
            - a dataclass of options; the function receives an instance, or the value of its method ``build``, which is
              a dictionary of arguments if the parameter is ``**NAME``;
            - None, which leaves the parameter out.

            If all arguments of the command are listed, they appear in this order.
    """
    function_parameters = inspect.signature(function).parameters
    if "workspace" in function_parameters and common_options is None:
        common_options = WorkspaceOptions if "output" in function_parameters else ResultOptions
    session_parameters = {"workspace"} | (
        {"model", "token_budget"} if common_options and issubclass(common_options, ModelSetup) else set()
    )
    positional_parameters: list[inspect.Parameter] = []
    keyword_parameters: list[inspect.Parameter] = []
    for parameter in function_parameters.values():
        option = parameters.get(parameter.name, _DEFAULT_OPTIONS.get(parameter.name))
        is_hidden = parameter.name in session_parameters or (parameter.name in parameters and option is None)
        command_parameter = None if is_hidden else _convert_parameter(parameter, option, function.__module__)
        if command_parameter is not None:
            (
                keyword_parameters
                if command_parameter.kind is inspect.Parameter.KEYWORD_ONLY
                else positional_parameters
            ).append(command_parameter)
    if {parameter.name for parameter in positional_parameters} <= set(
        parameters
    ):  # all are listed, in the order of the command
        positional_parameters.sort(key=lambda parameter: list(parameters).index(parameter.name))
    for name, (option, _) in (writes or {}).items():
        keyword_parameters.append(_keyword_parameter(name, Annotated[Path | None, option], None))
    for name, group in (
        ("model_options", model_options),
        ("ray", RayOptions if ray else None),
        ("common_options", common_options),
    ):
        if group is not None:
            keyword_parameters.append(_option_group(name, group))
    if common_options is None:
        keyword_parameters += (
            [_keyword_parameter("output", OutputOption, ())] if can_save and "output" not in function_parameters else []
        )
        keyword_parameters.append(_keyword_parameter("as_json", JsonOption, False))
    signature = inspect.Signature([*positional_parameters, *keyword_parameters])

    def run(*arguments: Any, **options: Any) -> None:
        values = signature.bind(*arguments, **options).arguments
        _call_and_emit(function, values, {name: write for name, (_, write) in (writes or {}).items()}, hint)

    # cyclopts takes the command's name, help and parameters from these attributes.
    run.__name__ = function.__name__
    run.__doc__ = _SPHINX_ROLE.sub(r"\1", inspect.getdoc(function) or "").replace("``", "")
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
    return run


def _keyword_parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option_group(name: str, group: Any) -> inspect.Parameter:
    has_required = any(
        parameter.default is inspect.Parameter.empty for parameter in inspect.signature(group).parameters.values()
    )
    default = inspect.Parameter.empty if has_required else group()
    return _keyword_parameter(name, Annotated[group, Parameter(name="*")], default)


def _convert_parameter(parameter: inspect.Parameter, option: Any, module: str) -> inspect.Parameter | None:
    """Convert a parameter of an API function to a command parameter; None if a command line cannot express its type."""
    if isinstance(option, type) and is_dataclass(option):
        return _option_group(parameter.name, option)
    is_required = parameter.default is inspect.Parameter.empty
    option_type: Any
    if get_origin(option) is Annotated:
        option_type, option = get_args(option)[:2]
        has_value = parameter.default is not None and not _is_positional(parameter, option)
        is_required |= not has_value and type(None) not in get_args(option_type)
    else:
        option_type = _option_type(parameter.annotation, sys.modules[module])
        if option_type is None:
            return None
    is_list = any(get_origin(member) is list for member in (option_type, *get_args(option_type)))
    has_plain_default = isinstance(parameter.default, (str, int, float, Path)) and not is_list
    default = parameter.default if has_plain_default else None
    if not is_required and not has_plain_default:
        option_type |= None
    if option_type is bool and default is True and option is None:
        option = Parameter(negative=f"--no-{parameter.name.replace('_', '-')}")
    is_positional = _is_positional(parameter, option)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.POSITIONAL_ONLY if is_positional else inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else default,
        annotation=option_type if option is None else Annotated[option_type, option],
    )


def _is_positional(parameter: inspect.Parameter, option: Parameter | None) -> bool:
    names = () if option is None else (*(option.name or ()), *(option.alias or ()))
    is_option = any(name.startswith("-") for name in names)
    return parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and not is_option


def _option_type(annotation: Any, module: Any) -> Any:
    """Return the type of an option for an annotated type, or None if a command line cannot express its values."""
    if isinstance(annotation, str):
        if "." in annotation:  # a class of another package, which would have to be imported
            return None

        def carrier() -> None: ...

        carrier.__annotations__ = {"option": annotation}
        try:
            annotation = get_type_hints(carrier, vars(module))["option"]
        except NameError:  # imported for type checkers only
            return None
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        members = [_option_type(member, module) for member in get_args(annotation)]
        types = [member for member in members if member is not None]
        if types and all(get_origin(member) is Literal for member in types):
            return Literal[tuple(word for member in types for word in get_args(member))]
        return next((member for member in types if get_origin(member) is list), types[0] if types else None)
    if origin is Literal or annotation in (str, int, float, bool, Path):
        return annotation
    if origin in (list, tuple, Sequence, Iterable):
        item_type = _option_type(get_args(annotation)[0], module)
        return None if item_type is None else GenericAlias(list, (item_type,))
    return None


def _call_and_emit(
    function: "Callable[..., Result]", values: dict[str, Any], writes: Mapping[str, ResultWriter], hint: str
) -> None:
    """Call a function with the values of a command line, in a session if it has a workspace, and emit its result."""
    parameters = inspect.signature(function).parameters
    common_options: WorkspaceOptions = values.pop("common_options", None) or WorkspaceOptions(
        as_json=values.pop("as_json", False)
    )
    model_options, ray = values.pop("model_options", None), values.pop("ray", None)
    if isinstance(common_options, ModelSetup):
        values |= {name: getattr(common_options, name) for name in ("model", "token_budget") if name in parameters}
    files = common_options.files or (() if "output" in parameters or "output" in writes else values.pop("output", ()))
    part_files = {name: file for name in writes if (file := values.pop(name, None)) is not None}
    arguments = {
        name: value.build() if hasattr(value, "build") else value for name, value in values.items() if value is not None
    }
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments |= arguments.pop(name, {})
    with common_options.open_session(model_options, ray=ray) if "workspace" in parameters else nullcontext() as session:
        result = function(**arguments) if session is None else function(**arguments, workspace=session)
        for name, file in part_files.items():
            writes[name](result, file)
        emit(result, common_options.as_json, files, written_files=tuple(part_files.values()), session=session)
    if hint and not (files or part_files or common_options.as_json):
        print_note(hint)
