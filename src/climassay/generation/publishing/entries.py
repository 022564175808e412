"""What a dataset is made of: questions with their drafts, their rows in published tables, and the canary."""

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from climassay.errors import InputError
from climassay.generation.draft import Draft, SourcePassage
from climassay.questions import KINDS, TYPES, Kind, Level, Question, QuestionSet, option_letter

_DASHES = "-" * 20
_TEXT = ("id", "kind", "level", "question")
_SOURCE = ("passage", "document", "section", "place", "url", "licence", "model")


@dataclass(frozen=True, slots=True)
class Entry:
    """A question that is published."""

    question: Question
    draft: Draft | None = None
    """What it comes from; None for questions that were not generated here."""

    @property
    def book(self) -> str:
        """Title of the document that it rests on."""
        return self.placement.book

    @property
    def passages(self) -> tuple[SourcePassage, ...]:
        """All that it was written from."""
        return () if self.draft is None else self.draft.passages

    @property
    def placement(self) -> "Placement":
        """What decides its split."""
        if self.draft is not None:
            return placement_of(self.draft)
        one = self.question
        book = one.document or ""
        return Placement(one.kind, one.level, book, book, "", one.context or "", one.question)


@dataclass(frozen=True, slots=True)
class Placement:
    """What decides the split of a question."""

    kind: Kind
    level: Level | None
    book: str
    """Title of the main passage's document; empty where there is none, as all that follows."""
    document_id: str
    passage_id: str
    passage: str
    """Text of the main passage; for questions from elsewhere the whole context."""
    question: str


def placement_of(draft: Draft) -> Placement:
    """The placement of a draft, whatever was decided about it."""
    main = draft.main
    return Placement(
        draft.kind, draft.level, main.document, main.document_id, main.id, main.text, draft.wording.question
    )


def entries_of(source: Sequence[Draft] | QuestionSet, kinds: Sequence[Kind] = KINDS) -> list[Entry]:
    """The questions of these kinds that are published, in the source's order: of drafts those that stand accepted.

    Raises:
        InputError: Two drafts have the same id, one has no passage, or an accepted one makes no question.
    """
    if isinstance(source, QuestionSet):
        return [Entry(question) for question in source.questions if question.kind in kinds]
    seen: set[str] = set()
    for draft in source:  # which may come from anybody's file
        if draft.id in seen:
            raise InputError(f"Two drafts have the id {draft.id}: give every draft its own.")
        seen.add(draft.id)
        if not draft.passages:
            raise InputError(
                f"The draft {draft.id} has no passage: every draft needs the one that it was written from."
            )
        wording = draft.wording
        marked = wording.correct is not None and 0 <= wording.correct < len(wording.options)
        if wording.options and not draft.type.options:
            raise InputError(
                f"The draft {draft.id} asks people for ratings or a rubric: climassay annotate export gives them out."
            )
        if draft.type.options and draft.usable and not marked:
            raise InputError(f"The draft {draft.id} marks none of its {len(wording.options)} options as correct.")
    return [
        Entry(draft.as_question(), draft)
        for draft in source
        if draft.kind in kinds and draft.usable and not _waits(draft)
    ]


def waiting(source: Sequence[Draft] | QuestionSet) -> int:
    """Accepted cloze statements whose term nobody has chosen yet; they cannot be published."""
    return 0 if isinstance(source, QuestionSet) else sum(draft.usable and _waits(draft) for draft in source)


def _waits(draft: Draft) -> bool:
    return draft.type.gap and not draft.wording.answer


def content_sha256(entries: Sequence[Entry]) -> str:
    """SHA-256 over the words of the questions, in any order."""
    parts = sorted(
        json.dumps([one.question.kind, one.question.question, one.question.answer, one.question.options])
        for one in entries
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def normalised(text: str) -> str:
    """Without differences of case and spacing."""
    return " ".join(text.split()).casefold()


def columns(kind: Kind, canary: bool) -> dict[str, str]:
    """Columns of the tables of a kind, each ``string`` or ``strings``; the same in every split, empty ones included."""
    options = {"options": "strings", "correct": "string"} if TYPES[kind].options else {}
    types = dict.fromkeys(_TEXT, "string") | options | dict.fromkeys(("answer", *_SOURCE), "string")
    return types | ({"canary": "string"} if canary else {})


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
    question, draft = entry.question, entry.draft
    answer = question.answer
    row = {"Question": question.question, "Context": question.context or ""}
    if question.kind == "mcq":
        assert question.correct is not None
        lettered = [f"{option_letter(place)}) {text}" for place, text in enumerate(question.options)]
        row["Options"] = f"\n{_DASHES}\n".join(lettered)
        answer = option_letter(question.correct)
        if any(option.strip().casefold() == answer for option in question.options):
            answer = lettered[question.correct]  # the letter alone is also another option's text
    row["Answer"] = answer
    if question.kind != "cloze":
        valid = draft and any(one.step in ("expert", "validate") and one.accepted for one in draft.decisions)
        row |= {"Complexity": (question.level or "").upper(), "Validation": "VALID" if valid else ""}
    return {name: row[name] for name in climaqa_columns(question.kind)}


def as_json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def as_table(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], note: str | None) -> bytes:
    """Rows as a Parquet file with the columns named in ``types``, each ``string`` or ``strings``.

    A ``note`` is kept in the file's metadata, beside the table.
    """
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.string()
    fields = [(name, text if kind == "string" else pyarrow.list_(text)) for name, kind in types.items()]
    schema = pyarrow.schema(fields, metadata={"canary": note} if note else None)
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), sink)
    return bytes(sink.getvalue().to_pybytes())


_NAMESPACE = uuid.UUID("5d0a1f6e-3f0b-5c57-9a43-7f5bb0a2c6d1")
_SENTENCE = "This text belongs to a benchmark and must not be in training data. Canary: climassay-canary-{guid}"
_FOUND = re.compile(r"climassay-canary-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)


def canary_guid(name: str, content: str) -> str:
    """The GUID of a dataset: always the same for the same name and content."""
    return str(uuid.uuid5(_NAMESPACE, f"{name}\n{content}"))


def canary_sentence(guid: str) -> str:
    """The sentence that carries a GUID."""
    return _SENTENCE.format(guid=guid)


def canaries(text: str) -> tuple[str, ...]:
    """GUIDs of all canaries of a text, each once, in the order they appear."""
    return tuple(dict.fromkeys(found.lower() for found in _FOUND.findall(text)))


def contains_canary(text: str) -> bool:
    """Whether a text holds a canary of any dataset that climassay published."""
    return _FOUND.search(text) is not None
