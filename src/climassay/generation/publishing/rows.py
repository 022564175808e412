"""Rows of published tables: in climassay's columns, and in those of the published ClimaQA dataset."""

from collections.abc import Mapping, Sequence
from typing import Any

from climassay.generation.publishing.entries import Entry
from climassay.questions import TYPES, Kind, Question, option_letter

_DASHES = "-" * 20
_TEXT = ("id", "kind", "level", "question")
_SOURCE = ("passage", "document", "section", "place", "url", "licence", "model")


def columns(kind: Kind, canary: bool) -> dict[str, Any]:
    """Columns of the Parquet tables of a kind and their Arrow types; the same in every split, empty ones included."""
    import pyarrow

    text = pyarrow.string()
    types: dict[str, Any] = dict.fromkeys(_TEXT, text)
    if TYPES[kind].options:
        types |= {"options": pyarrow.list_(text), "correct": text}
    types |= dict.fromkeys(("answer", *_SOURCE), text)
    return types | ({"canary": text} if canary else {})


def question_row(entry: Entry, canary: str | None) -> dict[str, Any]:
    """A question in climassay's format, with where it comes from; ``correct`` is the letter of the correct option."""
    question = entry.question
    row: dict[str, Any] = {name: getattr(question, name) for name in _TEXT}
    if question.type.options:
        assert question.correct is not None
        row |= {"options": list(question.options), "correct": option_letter(question.correct)}
    row |= {"answer": question.answer, "passage": question.context, "document": question.document}
    row |= {"section": question.section} | dict.fromkeys(("place", "url", "licence", "model"))
    if entry.draft is not None:
        main = entry.draft.main
        row |= {"place": main.place, "url": main.url, "licence": main.licence, "model": entry.draft.origin.model}
    return row | ({"canary": canary} if canary else {})


def climaqa_columns(kind: Kind) -> tuple[str, ...]:
    """Columns of ClimaQA's table of a kind, in their order."""
    options = ("Options",) if kind == "mcq" else ()
    labels = () if kind == "cloze" else ("Complexity", "Validation")
    return ("Question", *options, "Answer", "Context", *labels)


def climaqa_row(entry: Entry) -> dict[str, str]:
    """A question in ClimaQA's columns: options as ``a) ...`` joined by a line of 20 dashes.

    ``Validation`` is ``VALID`` where an expert or the validator accepted the question, else empty.
    """
    question = entry.question
    answer = question.answer
    row = {"Question": question.question, "Context": question.context or ""}
    if question.kind == "mcq":
        lettered = [f"{option_letter(place)}) {text}" for place, text in enumerate(question.options)]
        row["Options"] = f"\n{_DASHES}\n".join(lettered)
        answer = _letter(question, lettered)
    row["Answer"] = answer
    if question.kind != "cloze":
        row |= {"Complexity": (question.level or "").upper(), "Validation": "VALID" if _validated(entry) else ""}
    return {name: row[name] for name in climaqa_columns(question.kind)}


def _letter(question: Question, lettered: list[str]) -> str:
    """The letter of the correct option; the option with its letter where the letter alone is also another's text."""
    assert question.correct is not None
    letter = option_letter(question.correct)
    doubtful = any(option.strip().casefold() == letter for option in question.options)
    return lettered[question.correct] if doubtful else letter


def _validated(entry: Entry) -> bool:
    decisions: Any = () if entry.draft is None else entry.draft.decisions
    return any(one.step in ("expert", "validate") and one.accepted for one in decisions)


def as_table(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any], note: str | None) -> bytes:
    """Rows as a Parquet file.

    Args:
        rows: With the columns named in ``types``.
        types: Arrow types of the columns.
        note: Kept in the file's metadata, beside the table.
    """
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(list(types.items()), metadata={"canary": note} if note else None)
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), sink)
    return bytes(sink.getvalue().to_pybytes())
