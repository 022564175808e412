"""Settings: classes whose fields are described once, for TOML files, command-line options and documentation.

A class of settings (:func:`settings`) is a pydantic dataclass, whose instances are validated. The docstring below a
field describes it in files, options and documentation. :func:`parse_table` reads an instance from a TOML table,
:func:`commented_table` writes a table that explains every field.
"""

import json
import re
import textwrap
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import field, fields, replace
from functools import wraps
from inspect import get_annotations
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo
from pydantic_core import ArgsKwargs

from climassay.errors import InputError
from climassay.io import describe_error, read_file

T = TypeVar("T")
COMMENT_COLUMN = 40
"""Column at which comments begin in a commented file."""
LINE_WIDTH = 120
_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True, validate_by_name=True)
_BOUNDS = ("ge", "gt", "le", "lt")
_OUT_OF_BOUNDS = ("greater_than_equal", "greater_than", "less_than_equal", "less_than", "finite_number")


class _SettingsError(InputError):
    """Error for a field of settings that is missing or invalid."""

    def __init__(self, subject: str, name: str, value: object, expected: str, bounds: str) -> None:
        self.name, self.value, self.expected, self.bounds = name, value, expected, bounds
        super().__init__(f"{subject}: {self.format_message()}")

    def format_message(self, table: str = "") -> str:
        """Return a sentence on the error, which mentions the table, for example ``[mediator]``."""
        if not self.expected:
            return f"{table} needs an entry {self.name!r}." if table else f"{self.name} is missing."
        if self.bounds:
            prefix = f"{table} " if table.startswith("[") else ""
            connective = "but is" if "cannot" in self.bounds else "not"
            return f"{prefix}{self.name} {self.bounds}, {connective} {self.value!r}."
        prefix = f"{table} has " if table else ""
        return f"{prefix}{self.name} = {self.value!r}, but it must be {self.expected}."


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def settings(kind: type[Any] | None = None, /, *, kw_only: bool = False, subject: str = "The settings") -> Any:
    """Decorate a class as a frozen pydantic dataclass whose instances are validated.

    Args:
        kind: Class to decorate.
        kw_only: Whether all fields are keyword-only.
        subject: Noun phrase with which messages on invalid fields begin.

    Raises:
        InputError: Raised by the constructor of the class for an invalid field, which the message names.
    """

    def decorate(cls: type[T]) -> type[T]:
        dataclass_type: Any = dataclass(config=_CONFIG, frozen=True, kw_only=kw_only)(cls)

        @wraps(dataclass_type.__init__)
        def initialise(self: Any, *arguments: Any, **values: Any) -> None:
            validator = dataclass_type.__pydantic_validator__
            try:
                # Not strict elsewhere: TypeAdapter reads stored settings, in which tuples have become lists.
                validator.validate_python(ArgsKwargs(arguments, values), self_instance=self, strict=True)
            except ValidationError as error:
                raise _make_settings_error(dataclass_type, error, subject) from None

        dataclass_type.__init__ = initialise
        return cast("type[T]", dataclass_type)

    return decorate if kind is None else decorate(kind)


def setting_fields(kind: type) -> dict[str, FieldInfo]:
    """Return the fields of a settings class by name, with the class's own fields before inherited fields."""
    if not hasattr(kind, "__pydantic_fields__"):  # a plain dataclass with annotations of pydantic
        return {
            name: FieldInfo.from_annotation(hint) for name, hint in get_type_hints(kind, include_extras=True).items()
        }
    own_annotations = get_annotations(kind)
    field_infos: dict[str, FieldInfo] = {}
    for name in sorted((entry.name for entry in fields(kind)), key=lambda name: name not in own_annotations):
        # Pydantic has the docstring of an inherited field in the class that defines the field.
        infos = [base_class.__dict__.get("__pydantic_fields__", {}).get(name) for base_class in kind.__mro__]
        infos_found = [info for info in infos if info is not None]
        field_infos[name] = next((info for info in infos_found if info.description), infos_found[0])
    return field_infos


def with_changes(instance: T, **changes: Any) -> T:
    """Return a copy of settings with those changes that are not None."""
    return replace(instance, **{name: value for name, value in changes.items() if value is not None})  # type: ignore[type-var]


def commented_table(
    kind: type,
    header: str = "",
    *,
    values: Mapping[str, Any] = {},
    exclude: Collection[str] = (),
    disabled: bool = False,
) -> str:
    """Return a TOML table in which a comment explains each field; fields without a value are commented out.

    Args:
        kind: Class of settings.
        header: First line of the table, for example ``[writer]``; it may include a comment.
        values: Values by field that are written instead of the defaults.
        exclude: Names of fields that are left out.
        disabled: Whether the whole table is commented out.
    """
    lines = [header] if header else []
    for name, info in setting_fields(kind).items():
        if name in exclude:
            continue
        example = info.examples[0] if info.examples else None
        value = values.get(name, info.get_default(call_default_factory=True, validated_data={}))
        has_value = name in values or (not info.is_required() and value is not None and example is None)
        line = f"{name} = {_format_toml(value if has_value else example)}"
        if not has_value and not disabled:
            line = f"# {line}"
        comment = textwrap.wrap(summary(info).rstrip("."), LINE_WIDTH - COMMENT_COLUMN - 2)
        lines.append(f"{line.ljust(COMMENT_COLUMN - 1)} # {comment[0]}" if comment else line)
        lines += [f"{'':{COMMENT_COLUMN}}# {text}" for text in comment[1:]]
    return "".join(f"{'# ' if disabled else ''}{line}".rstrip() + "\n" for line in lines)


def _format_toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {_format_toml(item)}' for name, item in value.items())} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


_MAX_BYTES = 4 * 2**20
"""Maximum size of a settings file in bytes."""
_MAX_KEY_PARTS = 16
"""Maximum number of parts of a dotted key such as ``a.b.c``; memory grows with the square of their number."""
_MAX_KEYS = 20_000
_STRING_OR_COMMENT = re.compile(
    r""""{3}(?:\\.|[^\\])*?(?:"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?|#[^\n]*""", re.DOTALL
)
"""Pattern of strings and comments.

An unclosed string extends to the end of its line, or of the text if it is a multi-line string. The search therefore
takes linear time.
"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}")


def _check_size(text: str) -> None:
    """Raise ValueError if parsing a TOML text could need much more memory than its length suggests."""
    text_without_strings = _STRING_OR_COMMENT.sub("_", text)
    if _LONG_KEY.search(text_without_strings):
        raise ValueError(f"a key has more than {_MAX_KEY_PARTS} parts")
    if text_without_strings.count("=") > _MAX_KEYS:
        raise ValueError(f"it has more than {_MAX_KEYS:,} keys")


def load_toml(path: Path) -> dict[str, Any]:
    """Load a TOML file.

    Raises:
        InputError: The file is missing, unreadable, too large or not TOML.
    """
    try:
        text = read_file(path, _MAX_BYTES).decode().replace("\r\n", "\n").replace("\r", "\n")
        _check_size(text)
        data = tomllib.loads(text)
        _check_integers(data)
        return data
    except FileNotFoundError:
        raise InputError(f"There is no file at {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {describe_error(error)}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    except RecursionError:
        raise InputError(f"{path} is not valid TOML: it is nested too deeply.") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}.") from None


def parse_table(
    kind: type[T], data: object, source: str, header: str, *, file_names: Mapping[str, str] | None = None
) -> T:
    """Parse a TOML table into an instance of a class of settings; lists become tuples.

    Args:
        kind: Class of settings.
        data: Values by name of the field.
        source: Name of the file, for error messages.
        header: Header of the table, for error messages, for example ``[mediator]``.
        file_names: Names of the fields in the file, for those fields whose name differs.

    Raises:
        InputError: ``data`` is not a table, or an entry is unknown, missing or invalid.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: {header.strip('[]')} is a table that begins with {header}.")
    names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    for name in data:
        if name not in names:
            valid_names = ", ".join((file_names or {}).get(valid_name, valid_name) for valid_name in names)
            raise InputError(f"{source}: {header} has no entry {name!r}; there are {valid_names}.")
    try:
        return kind(**{name: _convert_to_tuples(value) for name, value in data.items()})
    except _SettingsError as error:
        error.value = data.get(error.name)
        raise InputError(f"{source}: {error.format_message(header)}") from None


def _make_settings_error(kind: type, error: ValidationError, subject: str) -> InputError:
    """Return the error for the first missing or invalid field of a class of settings."""
    infos = setting_fields(kind)
    for fault in error.errors(include_url=False, include_context=False):
        name = str(fault["loc"][0])
        if fault["type"] == "missing":
            return _SettingsError(subject, name, None, "", "")
        if name not in infos:
            return InputError(f"{subject}: there is no setting {name!r}; there are {', '.join(infos)}.")
        bounds = describe_bounds(field_bounds(infos[name])) if fault["type"] in _OUT_OF_BOUNDS else ""
        expected_value = _describe_type(infos[name].annotation)
        if fault["type"].startswith("string_") and fault["type"] != "string_type":
            expected_value = (
                fault["msg"]
                .replace("String should match pattern", "a text of the form")
                .replace("String should have at most", "a text of at most")
            )
        return _SettingsError(subject, name, fault["input"], expected_value, bounds)
    return InputError(f"{subject} cannot be used.")


def _convert_to_tuples(value: Any) -> Any:
    """Convert a list, and lists nested in it, to tuples; return other values unchanged."""
    return tuple(map(_convert_to_tuples, value)) if isinstance(value, (list, tuple)) else value


def resolve_file(folder: Path, name: str) -> str:
    """Return the path of a file in the folder of a configuration if it exists, else the name unchanged.

    Args:
        folder: Folder of the configuration file.
        name: Path of a file, or another name, for example of a bundled dataset.
    """
    path = folder / name
    return str(path) if not Path(name).is_absolute() and path.exists() else name


def is_table_list(value: object) -> bool:
    """Return whether a parsed TOML value is a list of tables, as ``[[name]]`` defines it."""
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _check_integers(value: object) -> None:
    """Raise ValueError if a value contains an integer beyond 64 bits, which TOML and numpy do not support."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a whole number in it is larger than 64 bits")
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in items:
        _check_integers(item)


def summary(info: FieldInfo) -> str:
    """Return the first paragraph of a field's description on a single line."""
    return " ".join((info.description or "").partition("\n\n")[0].split())


def field_bounds(info: FieldInfo) -> dict[str, Any]:
    """Return the bounds of a field by their names in pydantic: ge, gt, le, lt."""
    return {name: getattr(rule, name) for rule in info.metadata for name in _BOUNDS if hasattr(rule, name)}


def describe_bounds(bounds: Mapping[str, Any]) -> str:
    """Describe the bounds of a number as a phrase, for example ``must be at least 1``."""
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
