"""What experts say about drafts: labels, the items of a queue, and how far it has come."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from climassay.errors import InputError
from climassay.generation.draft import EXPERT_REASONS, Decision, Draft, Reason, Wording, gapped
from climassay.questions import option_letter
from climassay.questions.types import Content
from climassay.questions.types.longform import RUBRIC, ratings_agree
from climassay.settings import Flag, check_bounds

ItemState = Literal["open", "settled", "conflict"]
"""``open``: labels are still wanted; ``settled``: there is an outcome; ``conflict``: the labels do not agree."""
Order = Literal["margin", "paper", "random"]
"""Those of :data:`climassay.generation.validation.Acquisition` that need no vectors."""

ANNOTATION_REASONS: tuple[Reason, ...] = (
    *EXPERT_REASONS,
    Reason(
        "context reference", "The question speaks of its passage, a figure or a study that the reader cannot see", "6"
    ),
    Reason("self-inconsistency", "Given the passage, the marked answer does not come out", "7"),
)
"""Why a draft may be rejected: the experts' reasons, and the two that screening sets; ``other`` needs a remark."""


@dataclass(frozen=True, slots=True)
class AnnotationSettings:
    """How a dataset is annotated."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # of what the API is sent

    overlap: Annotated[
        int,
        Field(ge=1, le=20, description="Number of labels each item needs, by different people.", examples=[2]),
        Flag(),
    ] = 1
    hide_confidence: Annotated[
        bool,
        Field(description="Hide the validator's confidence from annotators."),
        Flag(("--hide-confidence/--show-confidence",)),
    ] = True
    lease_seconds: Annotated[
        float,
        Field(ge=1, le=7 * 86400, allow_inf_nan=False, description="Seconds that an item is kept for an annotator."),
    ] = 1800
    retrain_every: Annotated[
        int,
        Field(
            ge=1,
            le=1_000_000,
            description="Number of newly settled items after which retraining the validator is offered.",
        ),
        Flag(),
    ] = 50
    include_rejected: Annotated[
        bool,
        Field(description="Also ask about items that only screening or the validator rejected."),
        Flag(("--include-rejected/--usable-only",)),
    ] = False
    order: Annotated[
        Order,
        Field(description="Order of the queue: margin (the validator's least certain first), paper or random."),
        Flag(),
    ] = "margin"
    """See :func:`climassay.generation.validation.choose_next`."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, description="Seed of the random part of the order."), Flag()] = 0

    def __post_init__(self) -> None:
        check_bounds(self, "The queue")


@dataclass(frozen=True, slots=True)
class Label:
    """One expert's word about one draft; a label is never deleted, only withdrawn."""

    key: str
    """Unique in the dataset; made by who sends the label."""
    dataset: str
    draft: str
    annotator: str
    accepted: bool
    reasons: tuple[str, ...]
    """Names of :data:`ANNOTATION_REASONS`, the main one first; none where accepted."""
    remark: str
    wording: Wording | None
    """The whole wording after an edit, the chosen cloze term included; None where the words stay as they are."""
    seconds: float | None
    """Time spent on the item."""
    made_at: float
    """Seconds since 1970-01-01 UTC."""
    withdrawn_at: float | None
    """When it was undone or replaced; None while it counts."""
    adjudicates: bool
    """Whether it decides a conflict."""


@dataclass(frozen=True, slots=True)
class ImportedLabel:
    """A label that is not stored yet; its fields are those of :class:`Label`."""

    draft: str
    annotator: str
    accepted: bool
    reasons: tuple[str, ...] = ()
    remark: str = ""
    wording: Wording | None = None
    seconds: float | None = None
    made_at: float | None = None
    """Now, where it is not known."""
    withdrawn_at: float | None = None
    adjudicates: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class ImportedSkip:
    """An item that an annotator passed over elsewhere."""

    draft: str
    annotator: str
    made_at: float


@dataclass(frozen=True, slots=True)
class Comment:
    """One contribution to the discussion of a draft; it decides nothing, and is never changed."""

    key: str
    """Unique in the dataset; made by who sends the comment."""
    draft: str
    author: str
    text: str
    made_at: float
    """Seconds since 1970-01-01 UTC."""
    adjudicates: bool = False
    """Whether it was written by an adjudicator at work on a conflict."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of labels from elsewhere."""

    stored: int
    """New ones."""
    known: int
    """There already, by their keys."""
    withdrawn: int
    """There already, and withdrawn elsewhere meanwhile: now here too."""
    refused: tuple[str, ...]
    """One sentence for each that cannot be stored."""
    comments: int = 0
    """New comments."""


@dataclass(frozen=True, slots=True)
class Item:
    """A draft that waits for labels or has some."""

    draft: Draft
    """As the pipeline left it: what is judged, without the outcome of the labels."""
    p_valid: float | None
    """The validator's P(valid); hidden from annotators by default."""
    suggested_term: str | None
    """Cloze: the masker's choice."""
    term_candidates: tuple[str, ...]
    """Cloze: words that can be masked, in the order of the statement."""
    labels: tuple[Label, ...]
    """Current ones of all annotators, oldest first."""
    state: ItemState = "open"
    preselected: tuple[str, ...] = ()
    """Reasons that the automatic checks found, to be preselected."""


ItemFilterState = Literal["", "todo", "done", "skipped", "conflict", "decided"]
"""For one annotator: ``todo`` wants a label of theirs, ``done`` has one, ``skipped`` was passed over by them; for
everybody: ``conflict`` has labels that do not agree, ``decided`` has an outcome. Empty: all."""


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items of a dataset are looked for; what is empty excludes nothing."""

    text: str = ""
    """Part of the question, the answer or an option, in small letters or capitals."""
    kind: str = ""
    state: ItemFilterState = ""


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item in a list."""

    draft: Draft
    state: ItemState
    own: Label | None
    """What the reader said about it and what still counts."""
    skipped: bool
    """Whether the reader passed it over."""
    comments: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a dataset has come, and one annotator in it."""

    items: int
    left_out: int
    """Drafts that nobody is asked about: rejected by the automatic steps, failed, or decided elsewhere."""
    settled: int
    conflicts: int
    labelled_by: Mapping[str, int]
    """Annotator -> items labelled."""
    mine: int
    """Items that the annotator labelled."""
    adjudicated: int
    """Items that the annotator adjudicated."""
    skipped: int
    """Items that the annotator skipped; they do not come again until :meth:`AnnotationStore.unskip`."""
    left_for_me: int
    """Open items that the annotator neither labelled nor skipped."""
    seconds: float
    """Time that the annotator spent on labels, of everybody where nobody is named."""


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """A dataset that can be annotated."""

    dataset: str
    items: int
    open: int
    settled: int
    conflicts: int
    overlap: int


LONGEST_NAME = 120
"""Characters of a key or of an annotator's name."""
LONGEST_TEXT = 10_000
"""Characters of a remark, a question, an answer or an option."""
_NAMES = tuple(reason.name for reason in ANNOTATION_REASONS)


def check_name(text: str, what: str) -> str:
    """A key or a name that databases can hold.

    Raises:
        InputError: It is empty or too long, or holds what cannot be stored.
    """
    from climassay.records.store import storable_text

    if not text.strip() or len(text) > LONGEST_NAME or storable_text(text) != text:
        raise InputError(f"{what} is a text of 1 to {LONGEST_NAME} characters.")
    return text


def check_comment(text: str) -> str:
    """A comment in the form in which it is stored.

    Raises:
        InputError: It is empty or too long.
    """
    words = _text(text, "The comment")
    if not words:
        raise InputError("The comment is empty.")
    return words


def check_label(draft: Draft, label: ImportedLabel) -> ImportedLabel:
    """A label in the form in which it is stored.

    Raises:
        InputError: This cannot be said about the draft; the sentence tells what to change.
    """
    chosen, spent = tuple(dict.fromkeys(label.reasons)), label.seconds
    words, wording = _text(label.remark, "The remark"), label.wording
    spent = None if spent is None or not math.isfinite(spent) or spent < 0 else float(spent)
    if label.accepted:
        if chosen:
            raise InputError("An accepted question cannot have reasons for rejection: leave them out, or reject it.")
        return replace(label, reasons=(), remark=words, wording=_changed(draft, wording), seconds=spent)
    if unknown := [reason for reason in chosen if reason not in _NAMES]:
        raise InputError(f"There is no reason {unknown[0]!r}: there are {', '.join(_NAMES)}.")
    if not chosen:
        raise InputError(f"Say why the question is rejected; there are {', '.join(_NAMES)}.")
    if "other" in chosen and not words:
        raise InputError("The reason other needs a remark: say in words what is wrong.")
    if wording is not None and _changed(draft, wording) is not None:
        raise InputError("Only accepted questions can be edited: accept it with the edit, or reject it as it is.")
    return replace(label, reasons=chosen, remark=words, wording=None, seconds=spent)


def _changed(draft: Draft, wording: Wording | None) -> Wording | None:
    """The wording if it is another than the draft's, and makes a question."""
    before = _cleaned(draft.wording)
    after = before if wording is None else _cleaned(wording)
    if draft.type.options:
        # The answer follows from the option that is marked; nobody has to write it again.
        before, after = replace(before, answer=""), replace(after, answer="")
    asked = is_rating(before) or is_rubric(before)
    if asked:
        # What is asked for is not an expert's choice, and nothing said of it is no label.
        after = replace(after, question=before.question, options=before.options, correct=None)
    if after == before and not draft.type.gap and not (asked and not after.answer):
        return None
    checked = Wording(*draft.type.edited(Content(after.question, after.answer, after.options, after.correct)))
    if draft.type.gap:
        gapped(checked.question, checked.answer)
    return None if before in (after, checked) else checked


def _cleaned(wording: Wording) -> Wording:
    return replace(
        wording,
        question=_text(wording.question, "The question"),
        answer=_text(wording.answer, "The rubric" if is_rubric(wording) else "The answer"),
        options=tuple(_text(option, "An option") for option in wording.options),
    )


def _text(text: str, what: str) -> str:
    # Browsers send line ends of their own.
    from climassay.records.store import storable_text

    cleaned = storable_text(text).replace("\r\n", "\n").strip()
    if len(cleaned) > LONGEST_TEXT:
        raise InputError(f"{what} has {len(cleaned)} characters, more than the limit of {LONGEST_TEXT}.")
    return cleaned


EDITS = ("edited_question", "edited_answer", "edited_options", "edited_correct")
"""Names that tables and other tools have for the parts of an edit. The answer of a cloze statement is the term that is
masked; multiple choice has none, its options and the letter of the correct one say it."""


def label_parts(draft: Draft, label: Label) -> dict[str, list[str]]:
    """The remark of a label and its :data:`EDITS`, each a list of texts; what says nothing is left out."""
    parts, wording = {"remark": [label.remark]}, label.wording
    if wording is not None:
        parts["edited_question"] = [wording.question]
        if draft.type.options:
            letter = "" if wording.correct is None else option_letter(wording.correct)
            parts |= {"edited_options": list(wording.options), "edited_correct": [letter]}
        else:
            parts["edited_answer"] = [wording.answer]
    return {name: texts for name, texts in parts.items() if any(texts)}


def accepted_from(word: object) -> bool:
    """Whether a word says valid.

    Raises:
        InputError: It says neither valid nor invalid.
    """
    text = str(word).strip().casefold()
    accepted = text in ("valid", "true", "1", "yes", "accepted")
    if not accepted and text not in ("invalid", "false", "0", "no", "rejected"):
        raise InputError(f"{word!r} is neither valid nor invalid")
    return accepted


def label_from_parts(
    drafts: Mapping[str, Draft],
    name: object,
    verdict: object,
    reasons: Iterable[str],
    parts: Mapping[str, Sequence[str]],
    annotator: str = "",
) -> ImportedLabel:
    """The label that another tool or a table has, without a key; an accepted question needs no reasons.

    Args:
        drafts: By id.
        name: Id of the draft.
        verdict: See :func:`accepted_from`.
        reasons: Why it is rejected.
        parts: As :func:`label_parts` gives them.
        annotator: Who says it.

    Raises:
        InputError: There is no draft of this name, the verdict is none, or the letter of the correct option names none.
    """
    draft = drafts.get(str(name))
    if draft is None:
        raise InputError(f"the dataset has no item {name!r} to annotate")
    said = {part: texts[0] for part, texts in parts.items() if texts}
    if not accepted_from(verdict):
        return ImportedLabel(draft.id, annotator, False, tuple(reasons), said.get("remark", ""))
    wording = None
    if any(said.get(part) for part in EDITS):
        before = draft.wording
        wording = replace(before, question=said.get("edited_question") or before.question)
        if draft.type.options:
            options, correct = tuple(parts.get("edited_options", ())) or before.options, before.correct
            if letter := said.get("edited_correct", "").strip().lower():
                letters = [option_letter(place) for place in range(len(options))]
                if letter not in letters:
                    raise InputError(f"There is no option {letter!r}: there are {', '.join(letters)}.")
                correct = letters.index(letter)
            answer = options[correct] if correct is not None and correct < len(options) else before.answer
            wording = replace(wording, options=options, correct=correct, answer=answer)
        else:
            wording = replace(wording, answer=said.get("edited_answer") or before.answer)
    return ImportedLabel(draft.id, annotator, True, (), said.get("remark", ""), wording)


def content_key(source: str, label: ImportedLabel, *more: object) -> str:
    """A key for a label that came without one: the same content gives the same key.

    Args:
        source: Name of the tool.
        label: With any key.
        more: What else tells it from others, such as the tool's own id and time of change.
    """
    from climassay.records.store import canonical_json

    content = {**asdict(label), "key": "", "more": [str(one) for one in more]}
    return f"{source}:{hashlib.sha256(canonical_json(content).encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of an item, and where it is settled what the experts decided."""

    state: ItemState
    decision: Decision | None = None
    wording: Wording | None = None
    """The words from now on; None where they stay as they are."""
    made_at: float = 0.0
    """When the last label that it rests on was made."""


def outcome_of(labels: Sequence[Label], overlap: int, base: Wording) -> Outcome:
    """The outcome of an item.

    The latest adjudication decides. Without one the item is open until ``overlap`` annotators have labelled it; then
    all labels must say the same: rejected, for whatever reasons, or accepted with the same words. Ratings may be a step
    apart (:func:`~climassay.questions.types.longform.ratings_agree`).
    """
    adjudications = [label for label in labels if label.adjudicates]
    if adjudications:
        return _settled(adjudications[-1:], base)
    if len(labels) < overlap:
        return Outcome("open")
    said = {(label.accepted, label.wording if label.accepted else None) for label in labels}
    rated = [label.wording.answer for label in labels if label.accepted and label.wording and is_rating(base)]
    agree = len(said) == 1 or (len(rated) == len(labels) and ratings_agree(rated, base.options))
    return _settled(labels, base) if agree else Outcome("conflict")


def is_rating(base: Wording) -> bool:
    """Whether a draft is a long answer to be rated: its options are what is rated, and none of them is right."""
    return bool(base.options) and base.correct is None and not is_rubric(base)


def is_rubric(base: Wording) -> bool:
    """Whether a draft is a long question whose rubric is to be written; its answer is a rubric to begin with."""
    return base.options == (RUBRIC,)


def _settled(labels: Sequence[Label], base: Wording) -> Outcome:
    first = labels[0]
    by = ", ".join(dict.fromkeys(label.annotator for label in labels))
    reasons = tuple(dict.fromkeys(reason for label in labels for reason in label.reasons))
    remarks = [f"{label.annotator}: {label.remark}" for label in labels if label.remark]
    detail = "; ".join([", ".join(reasons), *remarks] if reasons else remarks)
    decision = Decision(
        "expert",
        by,
        first.accepted,
        reason=reasons[0] if reasons else "",
        detail=detail,
        replaced=None if first.wording is None else base,
    )
    return Outcome("settled", decision, first.wording, max(label.made_at for label in labels))
