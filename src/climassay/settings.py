"""Settings: fields described once, from which TOML files are read, commented files written, and options made.

A class of settings is a frozen dataclass whose fields are annotated for pydantic::

    rounds: Annotated[int, Field(ge=1, description="Maximum number of rounds of debate.")] = 3

:func:`parse_table` reads an instance from a TOML table, :func:`commented_table` writes one that explains every field.
Both use the pydantic model of the same fields (:func:`settings_model`).
"""

import json
import textwrap
import tomllib
import warnings
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from inspect import get_annotations
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from climassay.errors import InputError
from climassay.io import read_text, reason

T = TypeVar("T")
COMMENT_COLUMN = 40
"""Column at which the comments of a commented file begin."""
LINE_WIDTH = 120
_BOUNDS = ("ge", "gt", "le", "lt")
_OUT_OF_BOUNDS = ("greater_than_equal", "greater_than", "less_than_equal", "less_than", "finite_number")


@dataclass(frozen=True, slots=True)
class SettingField:
    """One field of a class of settings."""

    name: str
    kind: Any
    """Type without annotations."""
    default: Any
    """Default, or :data:`dataclasses.MISSING` if the field is required."""
    description: str = ""
    example: Any = None
    """Value that a commented file shows if there is no default to show."""
    low: float | None = None
    """Minimum, if the field has one."""
    high: float | None = None
    """Maximum, if the field has one."""


@cache
def settings_model(kind: type) -> type[BaseModel]:
    """Return a strict pydantic model with the fields of a dataclass, its own before those that it inherits."""
    hints = get_type_hints(kind, include_extras=True)
    own = get_annotations(kind)
    definitions: dict[str, Any] = {}
    for field in sorted(fields(kind), key=lambda field: field.name not in own):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        definitions[field.name] = (hints[field.name], ... if default is MISSING else default)
    config = ConfigDict(
        strict=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        validate_by_name=True,
        validate_by_alias=False,
        protected_namespaces=(),
    )
    with warnings.catch_warnings():
        # No method of the model is called by the name of a field.
        warnings.filterwarnings("ignore", message="Field name .* shadows")
        return create_model(kind.__name__, __config__=config, **definitions)


def setting_fields(kind: type) -> list[SettingField]:
    """Return the fields of a class of settings, its own before those that it inherits."""
    results = []
    for name, info in settings_model(kind).model_fields.items():
        default = MISSING if info.is_required() else info.default
        bounds = _bounds(info)
        examples = info.examples or [None]
        description = info.description or ""
        results.append(
            SettingField(name, info.annotation, default, description, examples[0], bounds.get("ge"), bounds.get("le"))
        )
    return results


def commented_table(
    kind: type,
    header: str = "",
    *,
    values: Mapping[str, Any] = {},
    exclude: Collection[str] = (),
    disabled: bool = False,
) -> str:
    """Return a table of a TOML file with a comment for every field; fields without a value are commented out.

    Args:
        kind: Class of settings.
        header: First line of the table, for example ``[writer]``; a comment may follow.
        values: Values that are written instead of the defaults.
        exclude: Fields that are left out.
        disabled: Comment out the whole table.
    """
    lines = [header] if header else []
    for field in setting_fields(kind):
        if field.name in exclude:
            continue
        value = values.get(field.name, field.default)
        has_value = field.name in values or (value not in (None, MISSING) and field.example is None)
        line = f"{field.name} = {_toml(value if has_value else field.example)}"
        if not has_value and not disabled:
            line = f"# {line}"
        comment = textwrap.wrap(field.description.rstrip("."), LINE_WIDTH - COMMENT_COLUMN - 2)
        lines.append(f"{line.ljust(COMMENT_COLUMN - 1)} # {comment[0]}" if comment else line)
        lines += [f"{'':{COMMENT_COLUMN}}# {text}" for text in comment[1:]]
    return "".join(f"{'# ' if disabled else ''}{line}".rstrip() + "\n" for line in lines)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {_toml(item)}' for name, item in value.items())} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def load_toml(path: Path) -> dict[str, Any]:
    """Load the tables of a TOML file.

    Raises:
        InputError: The file is missing, unreadable or not TOML.
    """
    try:
        data = tomllib.loads(read_text(path))
        _check_integers(data)
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


def parse_table(
    kind: type[T], data: object, source: str, header: str, *, file_names: Mapping[str, str] | None = None
) -> T:
    """Parse a table into an instance of a class of settings; lists become tuples.

    Args:
        kind: Class of settings.
        data: Values by field name.
        source: File, for messages.
        header: Table, for messages, for example ``[mediator]``.
        file_names: Names of fields in the file, if they differ.

    Raises:
        InputError: ``data`` is not a table, or an entry is unknown, missing, or does not fit its field.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: {header.strip('[]')} is a table that begins with {header}.")
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in data:
        if name not in names:
            valid_names = ", ".join((file_names or {}).get(valid_name, valid_name) for valid_name in names)
            raise InputError(f"{source}: {header} has no entry {name!r}; there are {valid_names}.")
    values = {name: _as_tuples(value) for name, value in data.items()}
    if (fault := _first_fault(kind, values)) is not None:
        raise InputError(f"{source}: {fault.sentence(header, data.get(fault.name))}")
    return kind(**values)


def validate_settings(settings: object, source: str = "The settings", header: str = "the table") -> None:
    """Validate an instance of a class of settings that was created in Python.

    Args:
        settings: The instance.
        source: Subject of the message.
        header: Table, for messages.

    Raises:
        InputError: A field does not fit; the sentence names it.
    """
    values = {field.name: _as_tuples(getattr(settings, field.name)) for field in fields(settings)}  # type: ignore[arg-type]
    if (fault := _first_fault(type(settings), values)) is not None:
        raise InputError(f"{source}: {fault.sentence(header, values[fault.name])}")


@dataclass(frozen=True, slots=True)
class _Fault:
    """Field that is missing or does not fit."""

    name: str
    expected: str = ""
    """Description of the values that fit; empty if the field is missing."""
    bounds: str = ""
    """Description of the bounds, if only they are violated."""

    def sentence(self, header: str, value: object) -> str:
        """Return a sentence about the fault in a table."""
        if not self.expected:
            return f"{header} needs an entry {self.name!r}."
        if self.bounds:
            table = f"{header} " if header.startswith("[") else ""
            return f"{table}{self.name} {self.bounds}, {'but is' if 'cannot' in self.bounds else 'not'} {value!r}."
        return f"{header} has {self.name} = {value!r}, but it must be {self.expected}."


def _first_fault(kind: type, values: Mapping[str, Any]) -> _Fault | None:
    model = settings_model(kind)
    try:
        model.model_validate(dict(values))
    except ValidationError as validation_error:
        for error in validation_error.errors(include_url=False, include_context=False):
            name = str(error["loc"][0])
            if error["type"] == "missing":
                return _Fault(name)
            if error["type"] != "string_unicode":  # the name of a file need not be UTF-8
                info = model.model_fields[name]
                bounds = _describe_bounds(_bounds(info)) if error["type"] in _OUT_OF_BOUNDS else ""
                return _Fault(name, _describe_type(info.annotation), bounds)
    return None


def _as_tuples(value: Any) -> Any:
    """Convert lists and nested lists to tuples, and leave other values as they are."""
    return tuple(map(_as_tuples, value)) if isinstance(value, (list, tuple)) else value


def resolve_file(folder: Path, name: str) -> str:
    """Return the path of a file beside a configuration if it exists there, else the name unchanged.

    Args:
        folder: Folder of the configuration.
        name: Path of a file, or a name that is not a file's, for example of a bundled data set.
    """
    path = folder / name
    return str(path) if not Path(name).is_absolute() and path.exists() else name


def is_table_list(value: object) -> bool:
    """Return whether an entry is a list of tables, as ``[[name]]`` gives."""
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _check_integers(value: object) -> None:
    """Raise ValueError for an integer beyond 64 bits, which TOML does not have and numpy cannot hold."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a whole number in it is larger than 64 bits")
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in items:
        _check_integers(item)


def _bounds(info: FieldInfo) -> dict[str, Any]:
    """Return the bounds of a field by their pydantic names: ge, gt, le, lt."""
    return {name: getattr(rule, name) for rule in info.metadata for name in _BOUNDS if hasattr(rule, name)}


def _describe_bounds(bounds: Mapping[str, Any]) -> str:
    if bounds.keys() == {"ge", "le"}:
        return f"must be between {bounds['ge']:g} and {bounds['le']:g}"
    if bounds == {"ge": 0}:
        return "cannot be negative"
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = " and ".join(f"{words[name]} {value:g}" for name, value in bounds.items())
    return f"must be {limits or 'a finite number'}"


def _describe_type(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Annotated:
        return _describe_type(get_args(kind)[0])
    if origin is Literal:
        return "one of " + ", ".join(f'"{option}"' for option in get_args(kind))
    if origin in (Union, UnionType):
        return " or ".join(_describe_type(option) for option in get_args(kind) if option is not type(None))
    if origin is tuple:
        item = get_args(kind)[0]
        if get_origin(item) is Literal:
            return f"a list of {_describe_type(item)}"
        return "a list of texts" if item is str else "a list"
    names = {str: "a text in quotes", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, "a table")
