"""Entries of a published dataset, their rows in tables, and the canary."""

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from climassay.errors import InputError
from climassay.generation.draft import Draft, SourcePassage
from climassay.generation.publishing.splits import Placement
from climassay.questions import KINDS, TYPES, Kind, Question, QuestionSet, option_letter
from climassay.questions.types import LETTERS

_OPTION_SEPARATOR = "-" * 20
_QUESTION_COLUMNS = ("id", "kind", "level", "question")
_SOURCE_COLUMNS = ("passage", "document", "section", "citation", "url", "licence", "model")


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """Question to publish, with its draft if it has one."""

    question: Question
    draft: Draft | None = None
    """Draft from which the question comes; None for a question from elsewhere."""

    @property
    def book(self) -> str:
        """Title of the source document."""
        return self.placement.book

    @property
    def passages(self) -> tuple[SourcePassage, ...]:
        """Source passages; empty if they are unknown."""
        return () if self.draft is None else self.draft.passages

    @property
    def placement(self) -> "Placement":
        """Properties that determine the split of the question."""
        if self.draft is not None:
            return draft_placement(self.draft)
        question = self.question
        book = question.document or ""
        return Placement(question.kind, question.level, book, book, "", question.context or "", question.question)


def draft_placement(draft: Draft) -> Placement:
    """Return the properties of a draft that determine the split of its question."""
    main = draft.main
    return Placement(
        draft.kind, draft.level, main.document, main.document_id, main.id, main.text, draft.wording.question
    )


def collect_entries(source: Sequence[Draft] | QuestionSet, kinds: Sequence[Kind] = KINDS) -> list[DatasetEntry]:
    """Return an entry for each question or accepted draft of the given kinds, in the order of the source.

    Raises:
        InputError: Two drafts have the same id, a draft has no passage, or an accepted draft is incomplete.
    """
    if isinstance(source, QuestionSet):
        return [DatasetEntry(question) for question in source.questions if question.kind in kinds]
    ids: set[str] = set()
    for draft in source:
        if draft.id in ids:
            raise InputError(f"Two drafts have the id {draft.id}: give every draft its own.")
        ids.add(draft.id)
        if not draft.passages:
            raise InputError(
                f"The draft {draft.id} has no passage: every draft needs the one that it was written from."
            )
        wording = draft.wording
        is_marked = wording.correct is not None and 0 <= wording.correct < len(wording.options)
        if wording.options and not draft.type.has_options:
            raise InputError(
                f"The draft {draft.id} is there to be rated, or to get a rubric: export it with climassay "
                "annotate export."
            )
        if draft.type.has_options and draft.usable and not is_marked:
            raise InputError(f"The draft {draft.id} marks none of its {len(wording.options)} options as correct.")
    return [
        DatasetEntry(draft.as_question(), draft)
        for draft in source
        if draft.kind in kinds and draft.usable and not _lacks_term(draft)
    ]


def count_without_term(source: Sequence[Draft] | QuestionSet) -> int:
    """Return the number of accepted cloze statements that cannot be published because they have no term."""
    return 0 if isinstance(source, QuestionSet) else sum(draft.usable and _lacks_term(draft) for draft in source)


def _lacks_term(draft: Draft) -> bool:
    return draft.type.has_gap and not draft.wording.answer


def content_sha256(entries: Sequence[DatasetEntry]) -> str:
    """Return the SHA-256 of the texts of the questions, independent of their order."""
    questions = (entry.question for entry in entries)
    parts = sorted(
        json.dumps([question.kind, question.question, question.answer, question.options]) for question in questions
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def column_types(kind: Kind, has_canary: bool) -> dict[str, str]:
    """Return the type (``string`` or ``strings``) of each column in the tables of a kind."""
    options = {"options": "strings", "correct": "string"} if TYPES[kind].has_options else {}
    types = dict.fromkeys(_QUESTION_COLUMNS, "string") | options | dict.fromkeys(("answer", *_SOURCE_COLUMNS), "string")
    return types | ({"canary": "string"} if has_canary else {})


def question_row(entry: DatasetEntry, canary: str | None) -> dict[str, Any]:
    """Return a table row with a question and its source; ``correct`` is the letter of the correct option."""
    question = entry.question
    row: dict[str, Any] = {name: getattr(question, name) for name in _QUESTION_COLUMNS}
    if question.type.has_options:
        assert question.correct is not None
        row |= {"options": list(question.options), "correct": option_letter(question.correct)}
    row |= {"answer": question.answer, "passage": question.context, "document": question.document}
    row |= {"section": question.section} | dict.fromkeys(("citation", "url", "licence", "model"))
    if entry.draft is not None:
        main = entry.draft.main
        row |= {"citation": main.citation, "url": main.url, "licence": main.licence, "model": entry.draft.origin.model}
    return row | ({"canary": canary} if canary else {})


def climaqa_columns(kind: Kind) -> tuple[str, ...]:
    """Return the names of the columns of ClimaQA's table for a kind, in order."""
    options = ("Options",) if TYPES[kind].has_options else ()
    labels = ("Complexity", "Validation") if TYPES[kind].has_levels else ()
    return ("Question", *options, "Answer", "Context", *labels)


def climaqa_row(entry: DatasetEntry) -> dict[str, str]:
    """Return a table row with a question in ClimaQA's columns.

    Options are written as ``a) ...`` and separated by lines of 20 dashes. ``Validation`` is ``VALID`` if an expert or
    the validator accepted the question, else empty.
    """
    question, draft = entry.question, entry.draft
    answer = question.answer
    row = {"Question": question.question, "Context": question.context or ""}
    if question.type.has_options:
        assert question.correct is not None
        lettered_options = [f"{option_letter(index)}) {text}" for index, text in enumerate(question.options)]
        row["Options"] = f"\n{_OPTION_SEPARATOR}\n".join(lettered_options)
        answer = option_letter(question.correct)
        if any(option.strip().casefold() in LETTERS for option in question.options):
            answer = lettered_options[question.correct]  # a letter alone could also be an option's text
    row["Answer"] = answer
    if question.type.has_levels:
        decisions = () if draft is None else draft.decisions
        is_valid = any(decision.step in ("expert", "validate") and decision.accepted for decision in decisions)
        row |= {"Complexity": (question.level or "").upper(), "Validation": "VALID" if is_valid else ""}
    return {name: row[name] for name in climaqa_columns(question.kind)}


def to_json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Serialise rows to JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def to_parquet(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], canary: str | None) -> bytes:
    """Serialise rows to a Parquet file and return its bytes; ``canary`` is a sentence for the file's metadata.

    ``types`` has the type of each column, ``string`` or ``strings``.
    """
    import pyarrow
    import pyarrow.parquet

    string_type = pyarrow.string()
    fields = [
        (name, string_type if column_type == "string" else pyarrow.list_(string_type))
        for name, column_type in types.items()
    ]
    schema = pyarrow.schema(fields, metadata={"canary": canary} if canary else None)
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), sink)
    return bytes(sink.getvalue().to_pybytes())


_NAMESPACE = uuid.UUID("5d0a1f6e-3f0b-5c57-9a43-7f5bb0a2c6d1")
_SENTENCE = "This text belongs to a benchmark and must not be in training data. Canary: climassay-canary-{guid}"
_CANARY = re.compile(r"climassay-canary-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)


def canary_guid(name: str, content: str) -> str:
    """Return a GUID for the canary of a dataset; it depends only on the dataset's name and content."""
    return str(uuid.uuid5(_NAMESPACE, f"{name}\n{content}"))


def canary_sentence(guid: str) -> str:
    """Return the sentence that contains a canary's GUID."""
    return _SENTENCE.format(guid=guid)


def find_canaries(text: str) -> tuple[str, ...]:
    """Return the distinct GUIDs of all canaries in a text, in the order of their first occurrence."""
    return tuple(dict.fromkeys(guid.lower() for guid in _CANARY.findall(text)))


def contains_canary(text: str) -> bool:
    """Return whether a text contains the canary of any dataset that climassay published."""
    return _CANARY.search(text) is not None
