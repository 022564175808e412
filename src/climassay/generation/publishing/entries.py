"""What a dataset is made of: questions, each with the draft that it comes from where there is one."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from climassay.errors import InputError
from climassay.generation.draft import Draft, SourcePassage
from climassay.questions import KINDS, Kind, Level, Question, QuestionSet

_SPACE = re.compile(r"\s+")


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
    _check(source)
    return [
        Entry(draft.as_question(), draft)
        for draft in source
        if draft.kind in kinds and draft.usable and not _waits(draft)
    ]


def _check(drafts: Sequence[Draft]) -> None:
    """See that drafts, which may come from anybody's file, are what a dataset needs."""
    seen: set[str] = set()
    for draft in drafts:
        if draft.id in seen:
            raise InputError(f"Two drafts have the id {draft.id}: give every draft its own.")
        seen.add(draft.id)
        if not draft.passages:
            raise InputError(
                f"The draft {draft.id} has no passage: every draft needs the one that it was written from."
            )
        wording = draft.wording
        marked = wording.correct is not None and 0 <= wording.correct < len(wording.options)
        if draft.type.options and draft.usable and not marked:
            raise InputError(f"The draft {draft.id} marks none of its {len(wording.options)} options as correct.")


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
    return _SPACE.sub(" ", text).strip().casefold()
