"""Commands that are verbs of the API: what the user gives is passed on by name, and what comes back is given out.

A command that takes a verb's parameters as they are is made from the verb's signature and docstring.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import is_dataclass
from pathlib import Path
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from climassay.cli.options import FilesOption, JsonOption, ModelSetup, RayOptions, ResultOptions, WorkspaceOptions
from climassay.session import ModelOptions

if TYPE_CHECKING:
    from climassay.reporting.results import Result

Parse = Callable[..., Mapping[str, Any]]
"""Makes arguments of a verb, by name, of options that are its own parameters."""
Write = Callable[[Any, Path], None]
"""Writes a part of a result to a file."""
After = Callable[[Any, WorkspaceOptions], None]
"""What is done when a result was given out: say how to go on, or raise what makes the command fail."""


def _run(
    function: "Callable[..., Result]",
    given: dict[str, Any],
    parse: Parse | None,
    writes: Mapping[str, Write],
    after: After,
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
    if parse is not None:
        given |= parse(**{name: given.pop(name) for name in inspect.signature(parse).parameters})
    known = {
        name: value.made() if hasattr(value, "made") else value for name, value in given.items() if value is not None
    }
    if "workspace" in taken:
        with to.session(reach, **more) as session:
            result = function(**known, workspace=session)
    else:
        result = function(**known)
    for name, file in parts.items():
        writes[name](result, file)
    to.emit(result, files, written=tuple(parts.values()))
    after(result, to)


def write_page(result: "Result", file: Path) -> None:
    """Save a result as its file's ending says."""
    result.save(file)


def _write_predictions(result: Any, file: Path) -> None:
    from climassay.reporting.results import write_rows

    found = getattr(result, "predictions", None)
    write_rows(file, result.to_dict()["predictions"] if found is None else found)


PREDICTIONS = {"predictions": (typer.Option(help="Write every prediction (.jsonl, .csv, .xlsx)."), _write_predictions)}
"""An option of commands whose result has rows of predictions."""


def add_verb(app: typer.Typer, name: str, function: "Callable[..., Result]", /, **how: Any) -> None:
    """Give a group a command made by :func:`verb_command`.

    Args:
        app: The group.
        name: Name of the command.
        function: The verb.
        **how: Further arguments of :func:`verb_command`.
    """
    app.command(name)(verb_command(function, **how))


def verb_command(
    function: "Callable[..., Result]",
    /,
    *,
    reach: type[ModelOptions] | None = None,
    ray: bool = False,
    to: type[WorkspaceOptions] | None = None,
    parse: Parse | None = None,
    writes: Mapping[str, tuple[OptionInfo, Write]] | None = None,
    after: After = lambda _result, _to: None,
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
        after: What is done at the end.
        **options: By name of a parameter: a typer option or argument, whose help is the docstring's where it has none;
            one with a type of its own (``Annotated``), which makes an argument required; a dataclass of options, of
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
    named = [name for name, option in options.items() if _is_argument(option)]
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
            needed |= isinstance(wanted, ArgumentInfo) and get_origin(kind) not in (Union, UnionType)
        else:
            kind = _option_kind(one.annotation, sys.modules[function.__module__])
            if kind is None:
                continue
        if wanted is ...:
            positional = one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            wanted = typer.Argument() if positional else typer.Option()
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
        if "output" not in taken:
            add("files", FilesOption, None)
        add("as_json", JsonOption, False)

    def run(**given: Any) -> None:
        _run(function, given, parse, {part: write for part, (_, write) in parts.items()}, after)

    # typer reads all of these.
    run.__name__, run.__doc__ = function.__name__, words
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _is_argument(option: Any) -> bool:
    return any(isinstance(part, ArgumentInfo) for part in (option, *getattr(option, "__metadata__", ())))


_PARAMETER = re.compile(r"    \*{0,2}(\w+): (.*)")
_ROLE = re.compile(r":\w+:`[~.]?(?:[\w.]+\.)?(\w+)`")


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of a function, and of each of its parameters; marks of Sphinx are taken out."""
    text = _ROLE.sub(r"\1", inspect.getdoc(function) or "").replace("``", "")
    words, _, sections = text.partition("\n\nArgs:\n")
    helps: dict[str, str] = {}
    name = ""
    for line in sections.split("\n\n")[0].splitlines():
        if found := _PARAMETER.fullmatch(line):
            name, helps[name] = found[1], found[2]
        elif name:
            helps[name] += f" {line.strip()}"
    return re.split(r"\n\n(?:Returns|Raises|Example):", words)[0], helps


def _option_kind(annotation: Any, module: Any) -> Any:
    """The type that an option of a parameter has; None where it can have none."""
    if isinstance(annotation, str):

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
