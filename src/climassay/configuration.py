"""Configuration files: from a TOML table to a checked dataclass, or one clear sentence why an entry does not fit."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from climassay.errors import InputError

T = TypeVar("T")


def load_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        InputError: The file is missing, unreadable or not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no file at {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    except tomllib.TOMLDecodeError as error:
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


def is_tables(value: object) -> bool:
    """Whether an entry is a list of tables, as ``[[name]]`` gives."""
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)


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
