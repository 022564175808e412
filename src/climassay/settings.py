"""Settings: one description of every entry, from which TOML files are read, commented ones written, and flags made.

A table of settings is a frozen dataclass whose entries are annotated for pydantic::

    rounds: Annotated[int, Field(ge=1, description="Maximum number of rounds of debate."), Flag()] = 3

:func:`filled` reads one from a TOML table, or says in one sentence why an entry does not fit; :func:`commented` writes
one with every entry explained; commands take those with a :class:`Flag` as options.
"""

import json
import textwrap
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from inspect import get_annotations
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import TypedDict

from climassay.errors import InputError
from climassay.io import read_text, reason

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
COLUMN = 40
"""Where the explanations of a commented file begin."""
WIDTH = 120


@dataclass(frozen=True, slots=True)
class Flag:
    """Marks an entry that commands take as an option."""

    names: tuple[str, ...] = ()
    """Names of the option; by default that of the entry."""
    min: float | None = None
    """Least value, where the entry itself has none."""
    field: str = ""
    """What the option is called in the code, where that is not the entry's name."""
    envvar: str | None = None
    """Variable of the environment that says the same."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a table of settings."""

    name: str
    kind: Any
    """Its type, without annotations."""
    default: Any
    """:data:`dataclasses.MISSING` where it must be given."""
    description: str = ""
    example: Any = None
    """A value that a commented file shows where the default says nothing."""
    low: float | None = None
    """Least value that fits."""
    high: float | None = None
    """Largest one."""
    flag: Flag | None = None


def entries(kind: type) -> tuple[Entry, ...]:
    """The entries of a dataclass of settings, in their order; what it inherits stands after its own."""
    hints = get_type_hints(kind, include_extras=True)
    own = get_annotations(kind)
    results = []
    for one in sorted(fields(kind), key=lambda one: one.name not in own):
        parts = get_args(hints[one.name]) if get_origin(hints[one.name]) is Annotated else (hints[one.name],)
        described = next((part for part in parts[1:] if hasattr(part, "description")), None)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        rules = getattr(described, "metadata", ())
        low, high = (next((getattr(one, name) for one in rules if hasattr(one, name)), None) for name in ("ge", "le"))
        examples = getattr(described, "examples", None) or (None,)
        flag = next((part for part in parts[1:] if isinstance(part, Flag)), None)
        words = getattr(described, "description", None) or ""
        results.append(Entry(one.name, parts[0], default, words, examples[0], low, high, flag))
    return tuple(results)


def commented(
    kind: type,
    header: str = "",
    *,
    values: Mapping[str, Any] | None = None,
    leave_out: Collection[str] = (),
    off: bool = False,
) -> str:
    """A table of a TOML file with every entry explained; entries that have no value appear in a comment.

    Args:
        kind: A dataclass of settings.
        header: Its line, for example ``[writer]``; an explanation may follow.
        values: Values of entries, where they are not the defaults.
        leave_out: Entries that are not shown.
        off: Put the whole table into a comment.
    """
    given = values or {}
    lines = [header] if header else []
    for one in entries(kind):
        if one.name in leave_out:
            continue
        value = given.get(one.name, one.default)
        silent = one.name not in given and (value in (None, MISSING) or one.example is not None)
        shown = f"{'# ' if silent and not off else ''}{one.name} = {_toml(one.example if silent else value)}"
        words = textwrap.wrap(one.description.rstrip("."), WIDTH - COLUMN - 2) if one.description else [""]
        lines.append(f"{shown.ljust(COLUMN - 1)} # {words[0]}" if words[0] else shown)
        lines += [f"{'':{COLUMN}}# {rest}" for rest in words[1:]]
    return "".join(f"{'# ' if off else ''}{line}".rstrip() + "\n" for line in lines)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {_toml(part)}' for name, part in value.items())} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def load_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        InputError: The file is missing, unreadable or not TOML.
    """
    try:
        data = tomllib.loads(read_text(path))
        _check_numbers(data)
        return data
    except FileNotFoundError:
        raise InputError(f"There is no file at {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    except RecursionError:
        raise InputError(f"{path} is not valid TOML: it is nested too deeply.") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}.") from None


def filled(kind: type[T], data: object, where: str, part: str, *, shown: Mapping[str, str] | None = None) -> T:
    """A dataclass filled from a table; lists become tuples.

    Args:
        kind: The dataclass; its annotations say what an entry must be.
        data: Entries by the names of its fields.
        where: The file, for messages.
        part: The table, for messages, for example ``[mediator]``.
        shown: What a field is called in the file, where that differs.

    Raises:
        InputError: It is not a table, or an entry does not exist, does not fit or is missing.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{where}: {part.strip('[]')} is a table that begins with {part}.")
    names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    for name in data:
        if name not in names:
            known = ", ".join((shown or {}).get(entry, entry) for entry in names)
            raise InputError(f"{where}: {part} has no entry {name!r}; there are {known}.")
    given = {name: _tuples(value) for name, value in data.items()}
    fault = _first_fault(kind, given)
    if fault is not None:
        raise InputError(f"{where}: {fault.sentence(part, data.get(fault.name))}")
    return kind(**given)


def check_bounds(made: object, where: str = "The settings", part: str = "the table") -> None:
    """See that the entries of a table of settings fit; for what was not read from a file.

    Args:
        made: A dataclass of settings.
        where: As for :func:`filled`.
        part: As for :func:`filled`.

    Raises:
        InputError: One does not; the sentence names it.
    """
    values = {entry.name: _tuples(getattr(made, entry.name)) for entry in fields(made)}  # type: ignore[arg-type]
    fault = _first_fault(type(made), values)
    if fault is not None:
        raise InputError(f"{where}: {fault.sentence(part, values[fault.name])}")


def check_types(made: object) -> None:
    """See that the fields of a dataclass hold what their annotations say; for what was read from JSON.

    Raises:
        TypeError: One does not; the message names it.
    """
    kind: Any = type(made)
    values = {entry.name: _tuples(getattr(made, entry.name)) for entry in fields(kind)}
    fault = _first_fault(kind, values)
    if fault is not None:
        raise TypeError(f"{fault.name} is {str(getattr(made, fault.name))[:40]!r}, but it must be {fault.wanted}")


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong with an entry."""

    name: str
    wanted: str = ""
    """What fits; empty where the entry is missing."""
    bounds: str = ""
    """What its value must be, where it is of the right type."""

    def sentence(self, part: str, value: object) -> str:
        if not self.wanted:
            return f"{part} needs an entry {self.name!r}."
        if self.bounds:
            table = f"{part} " if part.startswith("[") else ""
            return f"{table}{self.name} {self.bounds}, {'but is' if 'cannot' in self.bounds else 'not'} {value!r}."
        return f"{part} has {self.name} = {value!r}, but it must be {self.wanted}."


def _first_fault(kind: Any, values: Mapping[str, Any]) -> _Fault | None:
    from pydantic import ValidationError

    try:
        _validator(kind).validate_python(dict(values))
    except ValidationError as found:
        hints = get_type_hints(kind, include_extras=True)
        for error in found.errors(include_url=False, include_context=False):
            name = str(error["loc"][0])
            if error["type"] == "missing":
                return _Fault(name)
            if error["type"] != "string_unicode":  # a file's name need not be UTF-8
                bounds = _bounds(hints[name]) if error["type"] in _OUT_OF_BOUNDS else ""
                return _Fault(name, _wanted(hints[name]), bounds)
    return None


_OUT_OF_BOUNDS = ("greater_than_equal", "greater_than", "less_than_equal", "less_than", "finite_number")


@cache
def _validator(kind: Any) -> "TypeAdapter[Any]":
    """Checks the entries of a dataclass one by one, before one is made."""
    from pydantic import ConfigDict, TypeAdapter

    needed = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
    hints = get_type_hints(kind, include_extras=True)
    table: Any = TypedDict(  # type: ignore[misc]
        kind.__name__,
        {name: hints[name] if name in needed else NotRequired[hints[name]] for name in (f.name for f in fields(kind))},
    )
    config = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)
    table.__pydantic_config__ = config  # type: ignore[attr-defined]
    return TypeAdapter(table)


def _tuples(value: Any) -> Any:
    """Lists of TOML and JSON as tuples, also within each other; tables stay as they are."""
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def located(folder: Path, file: str) -> str:
    """A file that a configuration names: beside the configuration where it is there, else as it is written.

    Args:
        folder: Of the configuration.
        file: A file, or what is none at all: the name of something else.
    """
    beside = folder / file
    return str(beside) if not Path(file).is_absolute() and beside.exists() else file


def is_tables(value: object) -> bool:
    """Whether an entry is a list of tables, as ``[[name]]`` gives."""
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)


def _check_numbers(value: object) -> None:
    """TOML has whole numbers of 64 bits; larger ones cannot be computed with, nor even printed."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a whole number in it is larger than 64 bits")
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for part in parts:
        _check_numbers(part)


def _bounds(kind: Any) -> str:
    """What a number must be, for example ``must be at least 1``."""
    results: dict[str, Any] = {}
    for part in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
        for rule in getattr(part, "metadata", ()):
            results |= {name: getattr(rule, name) for name in ("ge", "gt", "le", "lt") if hasattr(rule, name)}
    if results.keys() == {"ge", "le"}:
        return f"must be between {results['ge']:g} and {results['le']:g}"
    if results == {"ge": 0}:
        return "cannot be negative"
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return "must be " + (
        " and ".join(f"{words[name]} {value:g}" for name, value in results.items()) or "a finite number"
    )


def _wanted(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Annotated:
        return _wanted(get_args(kind)[0])
    if origin is Literal:
        return "one of " + ", ".join(f'"{option}"' for option in get_args(kind))
    if origin in (Union, UnionType):
        return " or ".join(_wanted(option) for option in get_args(kind) if option is not type(None))
    if origin is tuple:
        part = get_args(kind)[0]
        return (
            "a list of texts"
            if part is str
            else f"a list of {_wanted(part)}"
            if get_origin(part) is Literal
            else "a list"
        )
    names = {str: "a text in quotes", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, "a table")
