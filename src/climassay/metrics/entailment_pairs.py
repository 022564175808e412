"""Labelled pairs of a premise and a statement: Climate-FEVER's passages and claims, or a table of pairs."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.given_files import parse_json
from climassay.metrics.entailment import RELATIONS
from climassay.questions.rows import Row, parse_rows, read_bytes

LABELS: Mapping[str, int] = {
    "supports": 0, "entailment": 0, "entails": 0, "confirms": 0, "true": 0,
    "refutes": 1, "contradiction": 1, "contradicts": 1, "false": 1,
    "not_enough_info": 2, "neutral": 2, "leaves open": 2, "unknown": 2,
}  # fmt: skip
"""How files name the relations, in lower case: Climate-FEVER's words, those of inference data, and ours."""
_EVIDENCE = ("evidences", "evidence")


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """What a premise does to a statement, as people judged it."""

    premise: str
    statement: str
    relation: int
    """Place in :data:`~climassay.metrics.entailment.RELATIONS`."""


@dataclass(frozen=True, slots=True)
class PairTable:
    """The pairs of a file."""

    name: str
    sha256: str
    """Of the file's content (unpacked)."""
    pairs: tuple[LabelledPair, ...]
    skipped: int
    """Pairs without a text or a label."""


def read_pairs(file: Path) -> PairTable:
    """Labelled pairs from JSONL, JSON, CSV, TSV or Parquet, gzip included.

    Two forms are understood. Climate-FEVER's: ``claim`` and ``evidences``, a list with ``evidence``, ``article`` and
    ``evidence_label``; the article's title goes before the premise, as its sentences often say "it". Or one pair a row:
    ``premise``, ``statement`` and ``label``. Labels may be any of :data:`LABELS`, in any case.

    Raises:
        InputError: The file cannot be read, has other columns, a label that is none, or not one pair.
    """
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    names = {name for row in rows for name in row}
    if "claim" in names and names & set(_EVIDENCE):
        found = [pair for number, row in enumerate(rows, start=1) for pair in _of_claim(row, f"{file}, row {number}")]
    elif {"premise", "statement", "label"} <= names:
        found = [
            _pair(row.get("premise"), row.get("statement"), row.get("label"), f"{file}, row {number}")
            for number, row in enumerate(rows, start=1)
        ]
    else:
        raise InputError(
            f"{file} has no labelled pairs: give columns premise, statement and label, or claim and evidences as"
            " Climate-FEVER has them."
        )
    pairs = tuple(pair for pair in found if pair is not None)
    if not pairs:
        raise InputError(f"No row of {file} has a premise, a statement and a label.")
    return PairTable(file.name, hashlib.sha256(data).hexdigest(), pairs, len(found) - len(pairs))


def relation_counts(pairs: Sequence[LabelledPair]) -> dict[str, int]:
    """How many pairs have each relation."""
    return {name: sum(pair.relation == place for pair in pairs) for place, name in enumerate(RELATIONS)}


def _of_claim(row: Row, place: str) -> Iterator[LabelledPair | None]:
    listed = next((row[name] for name in _EVIDENCE if row.get(name) is not None), None)
    if isinstance(listed, str):
        try:
            listed = parse_json(listed)
        except ValueError as error:
            raise InputError(f"{place}: the evidence is no list of labelled passages.") from error
    if listed is None:
        return
    if not isinstance(listed, Sequence) or not all(isinstance(one, Mapping) for one in listed):
        raise InputError(f"{place}: the evidence is no list of labelled passages.")
    for one in listed:
        text, title = _text(one.get("evidence")), _text(one.get("article"))
        premise = f"{title}: {text}" if text and title else text
        yield _pair(premise, row.get("claim"), one.get("evidence_label") or one.get("label"), place)


def _pair(premise: Any, statement: Any, label: Any, place: str) -> LabelledPair | None:
    given, said, name = _text(premise), _text(statement), _text(label)
    if not (given and said and name):
        return None
    relation = LABELS.get(name.casefold())
    if relation is None:
        raise InputError(f"{place}: {name!r} is no relation; it is one of {', '.join(LABELS)}.")
    return LabelledPair(given, said, relation)


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float | bool) else ""
