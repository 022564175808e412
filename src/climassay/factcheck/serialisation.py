"""Transcripts as data for JSON, and back.

The data follow the records of ``transcript.py`` field by field, in their order. Some values that follow from others
are written beside them for whoever reads the file without climassay (``citation``, ``probability``, a claim's ``id``);
reading ignores them. A field that a record has a default for may be missing, so that files written before it existed
stay readable; their words for levels of evidence are read as the IPCC's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from climassay.errors import InputError
from climassay.factcheck.transcript import Claim, Levels, PassageCitation, Transcript, cited_numbers

R = TypeVar("R")
FORMAT = 1
"""Number of the layout; it grows when files of an older climassay can no longer be read as they are."""

_EARLIER_EVIDENCE = {"low": "limited", "high": "robust"}
"""Words of earlier files for levels of evidence, and the IPCC's words that stand for them now."""
_DERIVED: Mapping[type, tuple[str, ...]] = {PassageCitation: ("citation",), Claim: ("id",)}


def as_data(transcript: Transcript) -> dict[str, Any]:
    """A transcript as dictionaries, lists, texts and numbers.

    Returns:
        What ``json.dumps`` takes; :func:`from_data` gives the same transcript back. The first key, ``format``, is
        :data:`FORMAT`.
    """
    return {"format": FORMAT, **as_plain(transcript)}


def from_data(data: Any) -> Transcript:
    """The transcript that :func:`as_data` wrote.

    Args:
        data: What ``json.loads`` gives for a stored transcript.

    Raises:
        InputError: It is damaged: something is missing, of another kind, unknown, or names a passage that is not there.
            The message says where.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"A stored fact-check must be a table of names and values, not {_kind_of(data)}.")
    written = data.get("format")
    if written != FORMAT:
        raise InputError(
            f"The stored fact-check has the format {written!r}, and this climassay reads format {FORMAT}: check the "
            "claim again."
        )
    transcript: Transcript = _read(Transcript, {key: data[key] for key in data if key != "format"}, "")
    _check_numbers(transcript)
    return transcript


def as_record(kind: type[R], data: Any) -> R:
    """A record of ``transcript.py`` that :func:`as_plain` wrote, for example one opinion.

    Raises:
        InputError: It is damaged; the message says where.
    """
    record: R = _read(kind, data, "")
    return record


def as_plain(value: Any) -> Any:
    """A record, and what it holds, as dictionaries, lists, texts and numbers.

    Raises:
        TypeError: It holds something else.
    """
    if is_dataclass(value) and not isinstance(value, type):
        written = {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
        derived = {name: getattr(value, name) for name in _DERIVED.get(type(value), ())}
        return written | derived
    if isinstance(value, (tuple, list)):
        return [as_plain(entry) for entry in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"What is written holds records, tuples, texts and numbers, not {type(value).__name__}.")


def _read(kind: Any, value: Any, where: str) -> Any:
    """A value of the kind that a record's annotation names."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        options = [option for option in get_args(kind) if option is not type(None)]
        if value is None and len(options) < len(get_args(kind)):
            return None
        # Only choices of words are joined: a reason to close or to open.
        return _read_word(options, value, where) if len(options) > 1 else _read(options[0], value, where)
    if origin is Literal:
        return _read_word([kind], value, where)
    if origin is tuple:
        return _read_tuple(get_args(kind), value, where)
    if is_dataclass(kind):
        return _read_record(kind, value, where)
    return _read_plain(kind, value, where)


def _read_word(choices: Sequence[Any], value: Any, where: str) -> str:
    words = [word for choice in choices for word in get_args(choice)]
    if not isinstance(value, str) or value not in words:
        raise InputError(f"{_at(where)} is {value!r}, but can be {', '.join(words)}.")
    return value


def _read_tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    """A list whose entries are all of one kind, or as many as there are kinds."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(f"{_at(where)} must be a list, not {_kind_of(value)}.")
    wanted = kinds[:1] * len(value) if kinds[-1] is Ellipsis else kinds
    if len(wanted) != len(value):
        raise InputError(f"{_at(where)} must have {len(wanted)} entries, not {len(value)}.")
    return tuple(
        _read(kind, entry, f"{where}[{number}]") for number, (kind, entry) in enumerate(zip(wanted, value, strict=True))
    )


def _read_record(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise InputError(f"{_at(where)} must be a table of names and values, not {_kind_of(value)}.")
    known, hints = _fields(kind), _hints(kind)
    if kind is Levels and value.get("evidence") in tuple(_EARLIER_EVIDENCE):
        value = {**value, "evidence": _EARLIER_EVIDENCE[value["evidence"]]}
    for name in value:
        if name not in known and name not in _DERIVED.get(kind, ()):
            raise InputError(f"{_at(where)} has an entry {name!r} that a fact-check does not know.")
    for name, field in known.items():
        if name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{_at(where)} has no entry {name!r}.")
    inner = f"{where}." if where else ""
    return kind(**{name: _read(hints[name], value[name], inner + name) for name in known if name in value})


@cache
def _fields(kind: Any) -> Mapping[str, Field[Any]]:
    return {field.name: field for field in fields(kind)}


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _read_plain(kind: Any, value: Any, where: str) -> Any:
    """A text, a truth value, a whole number or a number; 1 may stand for 1.0, but true is no number."""
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not fits or (isinstance(value, bool) and kind is not bool):
        names = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}
        raise InputError(f"{_at(where)} must be {names[kind]}, not {_kind_of(value)}.")
    if kind is not float:
        return value
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{_at(where)} must be a finite number.")
    return number


def _at(where: str) -> str:
    return f"The stored fact-check's {where}" if where else "The stored fact-check"


def _kind_of(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    return "nothing" if value is None else repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."


def _check_numbers(transcript: Transcript) -> None:
    """Every number must name a passage of the debate, and every subclaim must lie within the claim."""
    numbers = [source.number for source in transcript.sources]
    if numbers != list(range(1, len(numbers) + 1)):
        raise InputError("The stored fact-check's sources must be numbered from 1, in order.")
    known = set(numbers)
    for where, named in _named_passages(transcript):
        strange = sorted(set(named) - known)
        if strange:
            raise InputError(f"The stored fact-check's {where} names passage {strange[0]}, which it does not have.")
    for subclaim in transcript.subclaims:
        if not 0 <= subclaim.start <= subclaim.end <= len(transcript.claim.text):
            raise InputError(f"The stored fact-check's subclaim {subclaim.number} does not lie within the claim.")


def _named_passages(transcript: Transcript) -> list[tuple[str, list[int]]]:
    verdict = transcript.verdict
    found = [("verdict", list(cited_numbers(verdict.explanation, verdict.quotations)))]
    for held in transcript.rounds:
        for opinion in (*held.opinions, *held.parts):
            cited = [*cited_numbers(opinion.explanation, opinion.quotations), *opinion.retrieved]
            found.append((f"opinion of {opinion.advocate} in round {held.number}", cited))
        for asked in held.follow_ups:
            cited = [*cited_numbers(asked.reply), *asked.retrieved]
            found.append((f"question to {asked.to} in round {held.number}", cited))
    return found
