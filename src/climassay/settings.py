"""Configuration files: from a TOML table to a checked dataclass, or one clear sentence why an entry does not fit."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from climassay.errors import InputError
from climassay.io import read_text, reason

T = TypeVar("T")


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


def filled(
    kind: type[T], data: Mapping[str, Any], where: str, part: str, *, shown: Mapping[str, str] | None = None
) -> T:
    """A dataclass filled from a table; lists become tuples.

    Args:
        kind: The dataclass; its annotations say what an entry must be.
        data: Entries by the names of its fields.
        where: The file, for messages.
        part: The table, for messages, for example ``[mediator]``.
        shown: What a field is called in the file, where that differs.

    Raises:
        InputError: An entry does not exist, does not fit or is missing.
    """
    hints = get_type_hints(kind)
    entries = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    for name, value in data.items():
        if name not in entries:
            known = ", ".join((shown or {}).get(entry, entry) for entry in entries)
            raise InputError(f"{where}: {part} has no entry {name!r}; there are {known}.")
        if not _fits(value, hints[name]):
            raise InputError(f"{where}: {part} has {name} = {value!r}, but it must be {_wanted(hints[name])}.")
    for name, entry in entries.items():
        if name not in data and entry.default is MISSING and entry.default_factory is MISSING:
            raise InputError(f"{where}: {part} needs an entry {name!r}.")
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return kind(**given)


def located(folder: Path, file: str) -> str:
    """A file that a configuration names: beside the configuration where it is there, else as it is written.

    Args:
        folder: Of the configuration.
        file: A file, or what is none at all: the name of something else.
    """
    beside = folder / file
    return str(beside) if not Path(file).is_absolute() and beside.exists() else file


def check_types(made: object) -> None:
    """See that the fields of a dataclass hold what their annotations say; for what was read from JSON.

    Raises:
        TypeError: One does not; the message names it.
    """
    kind: Any = type(made)
    hints = _hints(kind)
    for name, hint in hints.items():
        if not _fits(getattr(made, name), hint):
            raise TypeError(f"{name} is {str(getattr(made, name))[:40]!r}, but it must be {_wanted(hint)}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


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


def _fits(value: object, wanted: Any) -> bool:
    origin = get_origin(wanted)
    if origin is Literal:
        return value in get_args(wanted)
    if origin in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(wanted))
    if origin is tuple:
        kind = get_args(wanted)[0]
        return isinstance(value, (list, tuple)) and all(_fits(item, kind) for item in value)
    if origin is dict:
        return isinstance(value, Mapping)
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, wanted)


def _wanted(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(f'"{option}"' for option in get_args(kind))
    if origin in (Union, UnionType):
        return " or ".join(_wanted(option) for option in get_args(kind) if option is not type(None))
    if origin is tuple:
        return "a list of texts" if get_args(kind)[0] is str else "a list"
    names = {str: "a text in quotes", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, "a table")
