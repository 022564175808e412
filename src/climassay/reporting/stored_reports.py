"""Reports as data for JSON, and back: what a run keeps when its result is a report.

Each block carries the name of its kind; all other records follow their fields. A run that stores one row of
:func:`report_data` in a table ``report`` is shown as that report.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from climassay.errors import InputError
from climassay.reporting.html import Block, Report
from climassay.reporting.tables import Table

_KINDS = {kind.__name__: kind for kind in get_args(Block)}


def report_data(report: Report) -> dict[str, Any]:
    """A report as dictionaries, lists, texts and numbers; :func:`report_from_data` gives the same report back."""
    data: dict[str, Any] = _plain(report)
    return data


def report_from_data(data: Any) -> Report:
    """The report that :func:`report_data` wrote.

    Raises:
        InputError: It is none, or damaged.
    """
    try:
        report: Report = _read(Report, data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"The stored report is damaged ({type(error).__name__}: {error}).") from None
    return report


def _plain(value: Any) -> Any:
    if isinstance(value, Table):
        marks = [[row, column, sorted(found)] for (row, column), found in sorted(value.marks.items())]
        return {**_fields(value), "strong": sorted(value.strong), "marks": marks}
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value


def _fields(record: Any) -> dict[str, Any]:
    named = {"block": type(record).__name__} if type(record).__name__ in _KINDS else {}
    return named | {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def _read(kind: Any, value: Any) -> Any:
    """A value of the kind that a field's annotation names."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _read_choice(inner, value)
    if origin is Literal:
        return _fitting(value, value in inner)
    if origin is tuple:
        wanted = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_read(one, entry) for one, entry in zip(wanted, value, strict=True))
    if is_dataclass(kind) and isinstance(kind, type):
        return _read_record(kind, _fitting(value, isinstance(value, Mapping)))
    if kind is float:
        return _fitting(value, isinstance(value, int | float) and not isinstance(value, bool))
    return _fitting(value, isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))


def _read_choice(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None:
        return _fitting(value, type(None) in kinds)
    if isinstance(value, Mapping) and "block" in value:
        return _read(_KINDS[value["block"]], value)
    [kind] = [one for one in kinds if one is not type(None)]
    return _read(kind, value)


def _read_record(kind: type, value: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    given = {name: entry for name, entry in value.items() if name != "block"}
    if kind is Table:
        marks = {(row, column): frozenset(found) for row, column, found in given.pop("marks", [])}
        strong = frozenset(given.pop("strong", []))
        return Table(**{name: _read(hints[name], entry) for name, entry in given.items()}, strong=strong, marks=marks)
    return kind(**{name: _read(hints[name], entry) for name, entry in given.items()})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fitting(value: Any, fits: bool) -> Any:
    if not fits:
        raise ValueError(f"{str(value)[:40]!r} does not fit")
    return value
