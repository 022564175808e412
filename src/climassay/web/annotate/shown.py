"""An item as its page shows it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from climassay.generation import Draft, Reason, SourcePassage, Wording
from climassay.generation.annotation import ANNOTATION_REASONS, Item, Label
from climassay.questions import Level, QuestionType, option_letter
from climassay.reporting.highlighting import Piece, marked
from climassay.web.annotate.changes import Change, changes
from climassay.web.annotate.forms import LabelForm
from climassay.web.annotate.statement_words import StatementPart, statement_parts

LEVELS: dict[Level, str] = {"base": "base level", "reasoning": "needs reasoning", "hypothetical": "hypothetical"}
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+")
_WEB = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShownOption:
    """An option of a multiple-choice question."""

    letter: str
    text: str
    marked: bool
    """Whether it is the one that is said to be right."""


@dataclass(frozen=True, slots=True)
class ShownReason:
    """A reason for rejecting."""

    reason: Reason
    chosen: bool


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage that the question was written from."""

    source: SourcePassage
    title: str
    """*Main passage*, or *Passage 2* and so on."""
    pieces: tuple[Piece, ...]
    """Its text, with the words of the answer marked."""
    url: str | None
    """Of the source, where it is one that a browser may follow."""


@dataclass(frozen=True, slots=True)
class ShownItem:
    """All that the page of an item says about its draft."""

    id: str
    type: QuestionType
    kind_words: str
    level_words: str
    question: str
    answer: str
    options: tuple[ShownOption, ...]
    parts: tuple[StatementPart, ...]
    """Of a cloze statement."""
    suggested: str | None
    """The masker's choice."""
    passages: tuple[ShownPassage, ...]
    reasons: tuple[ShownReason, ...]
    remark: str
    edited: Wording
    """What the fields of an edit begin with."""
    confidence: float | None
    """The validator's P(valid), where it is to be seen."""
    opened: str
    """Which part of the page begins open: ``reject``, ``edit`` or none."""


@dataclass(frozen=True, slots=True)
class ShownLabel:
    """A label with what it is about, in words."""

    label: Label
    kind_words: str
    question: str
    """As the line left it."""
    term: str
    """Of a cloze statement that the label accepts; empty where it says nothing about it."""
    changes: tuple[Change, ...]


def address(dataset: str, *parts: str) -> str:
    """Path of a page below ``/annotate``."""
    return "/".join(["/annotate", *(quote(part, safe="") for part in (dataset, *parts))])


def answer_text(draft: Draft) -> str:
    """What the passages have to say for a draft to be right: the marked option, the answer, or the whole statement."""
    return draft.type.support(draft.content)


def shown_item(item: Item, *, confidence: bool, own: Label | None = None, form: LabelForm | None = None) -> ShownItem:
    """An item for its page.

    Args:
        item: From the store.
        confidence: Whether the validator's confidence is to be seen.
        own: What the reader said about it before; the fields begin with it.
        form: What the reader just sent and what could not be stored; it goes before all else.
    """
    draft = item.draft
    wording = draft.wording
    edited = own.wording if own is not None and own.wording is not None else wording
    chosen = item.preselected if own is None else own.reasons
    term = (form.term if form else "") or edited.answer or item.suggested_term
    if form is not None:
        chosen = tuple(form.reason)
        edited = _typed(form, edited) if form.verdict == "edit" else edited
    cloze = draft.type.gap
    return ShownItem(
        id=draft.id,
        type=draft.type,
        kind_words=draft.type.title,
        level_words=LEVELS[draft.level],
        question=wording.question,
        answer=wording.answer,
        options=tuple(
            ShownOption(option_letter(place), text, place == wording.correct)
            for place, text in enumerate(wording.options)
        ),
        parts=statement_parts(wording.question, term, item.term_candidates) if cloze else (),
        suggested=item.suggested_term if cloze else None,
        passages=_passages(draft.passages, answer_text(draft)),
        reasons=tuple(ShownReason(reason, reason.name in chosen) for reason in ANNOTATION_REASONS),
        remark=form.remark if form else own.remark if own is not None else "",
        edited=edited,
        confidence=item.p_valid if confidence else None,
        opened=_opened(own, form),
    )


def shown_label(label: Label, item: Item) -> ShownLabel:
    """A label beside the item that it is about."""
    draft = item.draft
    after = label.wording
    return ShownLabel(
        label=label,
        kind_words=draft.type.title,
        question=draft.wording.question,
        term=(after or draft.wording).answer if draft.type.gap and label.accepted else "",
        changes=() if after is None else changes(draft.wording, after),
    )


def _opened(own: Label | None, form: LabelForm | None) -> str:
    verdict = form.verdict if form is not None else ""
    if form is None and own is not None:
        verdict = "" if own.accepted else "invalid"
    return {"invalid": "reject", "edit": "edit"}.get(verdict, "")


def _typed(form: LabelForm, before: Wording) -> Wording:
    """The words of an edit as they were typed, whether they can be stored or not."""
    correct = int(form.correct) if form.correct.isdecimal() else before.correct
    return Wording(form.question, form.answer, tuple(form.option), correct)


def _passages(passages: Sequence[SourcePassage], answer: str) -> tuple[ShownPassage, ...]:
    # The C of °C and the like are everywhere.
    words = [word for word in _WORD.findall(answer) if len(word) > 1 or word.isdigit()]
    return tuple(
        ShownPassage(
            source,
            f"Passage {place + 1}" if place else "Main passage",
            marked(source.text, words),
            source.url if source.url and _WEB.match(source.url) else None,
        )
        for place, source in enumerate(passages)
    )
