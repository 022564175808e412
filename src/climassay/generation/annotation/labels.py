"""Experts' labels of drafts, the items of a queue, and the rules by which labels decide an item."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from climassay.errors import InputError
from climassay.generation.draft import EXPERT_REASONS, Decision, Draft, Reason, Wording, mask_term
from climassay.questions import option_letter
from climassay.questions.types import Content
from climassay.questions.types.longform import RUBRIC, ratings_agree
from climassay.settings import settings

ItemState = Literal["open", "settled", "conflict"]
"""``open``: more labels are needed; ``settled``: the item has an outcome; ``conflict``: the labels disagree."""
Order = Literal["margin", "paper", "random"]
"""Order of a queue: a strategy of :data:`climassay.generation.validation.Acquisition` that needs no vectors."""

ANNOTATION_REASONS: tuple[Reason, ...] = (
    *EXPERT_REASONS,
    Reason(
        "context reference", "The question speaks of its passage, a figure or a study that the reader cannot see", "6"
    ),
    Reason("self-inconsistency", "Given the passage, the marked answer does not come out", "7"),
    Reason("two right answers", "More than one answer is right", "8"),
)
"""Reasons for rejecting a draft; the reason ``other`` requires a remark."""


@settings(subject="The queue")
class AnnotationSettings:
    """Settings of a dataset's annotation queue."""

    overlap: Annotated[int, Field(ge=1, le=20, examples=[2])] = 1
    """Number of people who must label each item."""
    hide_confidence: bool = True
    """Hide the validator's confidence from annotators."""
    lease_seconds: Annotated[float, Field(ge=1, le=7 * 86400, allow_inf_nan=False)] = 1800
    """Seconds for which an item stays reserved for an annotator."""
    retrain_every: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    """Retraining of the validator is suggested after this number of newly settled items."""
    include_rejected: bool = False
    """Also queue items that only screening or the validator rejected."""
    order: Order = "margin"
    """Order of the queue: margin (the validator's least certain first), paper or random.

    See :func:`climassay.generation.validation.choose_next`.
    """
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Seed of the random part of the order."""
    annotators: tuple[str, ...] = ()
    """Names of the users who annotate the dataset; if empty, everybody who may annotate."""

    def includes(self, annotator: str) -> bool:
        """Return whether the dataset is assigned to an annotator."""
        return not self.annotators or annotator in self.annotators


_STORED_SETTINGS = TypeAdapter(AnnotationSettings)


def parse_stored_settings(values: object) -> AnnotationSettings:
    """Parse settings from the JSON values in the database.

    Raises:
        ValueError: The values were stored by a version with other settings.
    """
    return _STORED_SETTINGS.validate_python(values)


@dataclass(frozen=True, slots=True)
class Label:
    """Expert's judgement of one draft; a stored label is never deleted, only withdrawn."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    draft: str
    """Id of the draft."""
    annotator: str
    accepted: bool
    reasons: tuple[str, ...] = ()
    """Names of :data:`ANNOTATION_REASONS`, the main one first; empty if accepted."""
    remark: str = ""
    wording: Wording | None = None
    """Whole wording after an edit, including the chosen cloze term; None if the draft's wording is unchanged."""
    seconds: float | None = None
    """Time in seconds that the annotator spent on the item; None if unknown."""
    made_at: float = 0.0
    """Time of the label in seconds since 1970-01-01 UTC. If it is 0 (unknown), the store uses the current time."""
    withdrawn_at: float | None = None
    """Time at which the label was undone or replaced, in seconds since 1970-01-01 UTC; None if it is current."""
    adjudicates: bool = False
    """Whether the label decides a conflict."""
    key: str = ""
    """Key chosen by the sender, unique in the dataset. A label that is sent twice has the same key and is stored once.
    """


@dataclass(frozen=True, slots=True)
class Skip:
    """Item that an annotator skipped."""

    draft: str
    annotator: str
    made_at: float


@dataclass(frozen=True, slots=True)
class Comment:
    """Comment on a draft. Comments do not affect the outcome and are never changed."""

    key: str
    """Key that the sender chose, unique in the dataset."""
    draft: str
    author: str
    text: str
    made_at: float
    """Time of the comment in seconds since 1970-01-01 UTC."""
    adjudicates: bool = False
    """Whether an adjudicator wrote the comment about a conflict."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Result of importing labels and comments."""

    stored: int
    """Number of new labels."""
    known: int
    """Number of labels whose keys were already stored."""
    withdrawn: int
    """Number of stored labels that the import withdrew."""
    refused: tuple[str, ...]
    """Reasons why labels or comments could not be stored, one sentence for each."""
    comments: int = 0


@dataclass(frozen=True, slots=True)
class AnnotationItem:
    """Draft in the annotation queue, with its labels."""

    draft: Draft
    """Draft as the pipeline left it, without the outcome of the labels."""
    p_valid: float | None
    """Validator's P(valid); hidden from annotators by default."""
    suggested_term: str | None
    """Term chosen by the masker; for cloze statements only."""
    term_candidates: tuple[str, ...]
    """Words that can be masked, in the order of the statement; for cloze statements only."""
    labels: tuple[Label, ...]
    """Current labels of all annotators, oldest first."""
    state: ItemState = "open"
    preselected: tuple[str, ...] = ()
    """Reasons found by the automatic checks, preselected in the form."""


ItemFilterState = Literal["", "todo", "done", "skipped", "conflict", "decided"]
"""Filter of items by state. Three states depend on the annotator: ``todo`` (the item needs the annotator's label),
``done`` (it has that label) and ``skipped``. The others do not: ``conflict`` (labels disagree) and ``decided`` (there
is an outcome). An empty text selects all items."""


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Filter of a dataset's items; an empty field excludes nothing."""

    text: str = ""
    """Text that must occur in the question, the answer or an option; case is ignored."""
    kind: str = ""
    state: ItemFilterState = ""


@dataclass(frozen=True, slots=True)
class FoundItem:
    """Item in a list, from the perspective of one annotator."""

    draft: Draft
    state: ItemState
    own_label: Label | None
    """Current label by the annotator."""
    skipped: bool
    """Whether the annotator skipped the item."""
    comments: int


@dataclass(frozen=True, slots=True)
class AnnotationProgress:
    """Progress of a dataset, and of one annotator in it."""

    items: int
    left_out: int
    """Number of drafts outside the queue: rejected by the automatic steps, failed, or decided outside this queue."""
    settled: int
    conflicts: int
    labelled_by: Mapping[str, int]
    """Number of items labelled, by annotator."""
    mine: int
    """Number of items that the annotator labelled."""
    adjudicated: int
    """Number of items that the annotator adjudicated."""
    skipped: int
    """Number of items that the annotator skipped; :meth:`AnnotationStore.unskip` puts them back."""
    left_for_me: int
    """Number of open items that the annotator neither labelled nor skipped."""
    seconds: float
    """Time, in seconds, spent on labels by the annotator, or by all annotators if none is named."""


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """Counts of a dataset that can be annotated."""

    dataset: str
    items: int
    open: int
    settled: int
    conflicts: int
    overlap: int


MAX_NAME_LENGTH = 120
"""Maximum length, in characters, of a key or an annotator's name."""
MAX_TEXT_LENGTH = 10_000
"""Maximum number of characters of a remark, a question, an answer or an option."""
_REASON_NAMES = tuple(reason.name for reason in ANNOTATION_REASONS)


def check_name(text: str, subject: str) -> str:
    """Validate a key or a name and return it; ``subject`` is its description in the error message.

    Raises:
        InputError: The text is empty or too long, or has characters that cannot be stored.
    """
    from climassay.records.identity import make_storable_text

    if not text.strip() or len(text) > MAX_NAME_LENGTH or make_storable_text(text) != text:
        raise InputError(f"{subject} is a text of 1 to {MAX_NAME_LENGTH} characters.")
    return text


def check_comment(text: str) -> str:
    """Validate and clean a comment, and return the text to store.

    Raises:
        InputError: The comment is empty or too long.
    """
    comment = _clean_text(text, "The comment")
    if not comment:
        raise InputError("The comment is empty.")
    return comment


def check_label(draft: Draft, label: Label) -> Label:
    """Validate a label of a draft, and return it in the form in which it is stored.

    Duplicate reasons are removed, and texts are cleaned. An invalid time, and a wording equal to the draft's, become
    None.

    Raises:
        InputError: The label does not fit the draft; the message says what to change.
    """
    reasons, seconds = tuple(dict.fromkeys(label.reasons)), label.seconds
    remark = _clean_text(label.remark, "The remark")
    seconds = None if seconds is None or not math.isfinite(seconds) or seconds < 0 else float(seconds)
    if label.accepted:
        if reasons:
            raise InputError("An accepted question cannot have reasons for rejection: leave them out, or reject it.")
        return replace(label, reasons=(), remark=remark, wording=_validate_edit(draft, label.wording), seconds=seconds)
    if unknown_reasons := [reason for reason in reasons if reason not in _REASON_NAMES]:
        raise InputError(f"There is no reason {unknown_reasons[0]!r}: there are {', '.join(_REASON_NAMES)}.")
    if not reasons:
        raise InputError(f"Say why the question is rejected; there are {', '.join(_REASON_NAMES)}.")
    if "other" in reasons and not remark:
        raise InputError("The reason other needs a remark: say in words what is wrong.")
    if label.wording is not None and _validate_edit(draft, label.wording) is not None:
        raise InputError("Only accepted questions can be edited: accept it with the edit, or reject it as it is.")
    return replace(label, reasons=reasons, remark=remark, wording=None, seconds=seconds)


def _validate_edit(draft: Draft, wording: Wording | None) -> Wording | None:
    """Return an edited wording in the form in which it is stored, or None if it equals the draft's wording.

    Raises:
        InputError: The wording is not a complete question.
    """
    original_wording = _clean_wording(draft.wording)
    edit = original_wording if wording is None else _clean_wording(wording)
    if draft.type.has_options:
        # The answer follows from the marked option, so differences in it are no edit.
        original_wording, edit = replace(original_wording, answer=""), replace(edit, answer="")
    is_long_answer = is_rating(original_wording) or is_rubric(original_wording)
    if is_long_answer:
        # Experts cannot change what is rated, and an empty rating or rubric is no label.
        edit = replace(edit, question=original_wording.question, options=original_wording.options, correct=None)
    if edit == original_wording and not draft.type.has_gap and not (is_long_answer and not edit.answer):
        return None
    valid_edit = Wording(*draft.type.validate_edit(Content(edit.question, edit.answer, edit.options, edit.correct)))
    if draft.type.has_gap:
        mask_term(valid_edit.question, valid_edit.answer)
    return None if original_wording in (edit, valid_edit) else valid_edit


def _clean_wording(wording: Wording) -> Wording:
    return replace(
        wording,
        question=_clean_text(wording.question, "The question"),
        answer=_clean_text(wording.answer, "The rubric" if is_rubric(wording) else "The answer"),
        options=tuple(_clean_text(option, "An option") for option in wording.options),
    )


def _clean_text(text: str, subject: str) -> str:
    from climassay.records.identity import make_storable_text

    text = make_storable_text(text).replace("\r\n", "\n").strip()  # browsers send \r\n
    if len(text) > MAX_TEXT_LENGTH:
        raise InputError(f"{subject} has {len(text)} characters, more than the limit of {MAX_TEXT_LENGTH}.")
    return text


EDIT_FIELDS = ("edited_question", "edited_answer", "edited_options", "edited_correct")
"""Names of the fields of an edited question in exported tables and annotation tools. The answer of a cloze statement is
its masked term. A multiple-choice question has options and the letter of the correct option instead of an answer."""


def label_fields(draft: Draft, label: Label) -> dict[str, list[str]]:
    """Return a label's remark and :data:`EDIT_FIELDS` by name, each a list of texts; empty fields are omitted."""
    fields, wording = {"remark": [label.remark]}, label.wording
    if wording is not None:
        fields["edited_question"] = [wording.question]
        if draft.type.has_options:
            letter = "" if wording.correct is None else option_letter(wording.correct)
            fields |= {"edited_options": list(wording.options), "edited_correct": [letter]}
        else:
            fields["edited_answer"] = [wording.answer]
    return {name: texts for name, texts in fields.items() if any(texts)}


def parse_verdict(word: object) -> bool:
    """Return True for valid, true, 1, yes or accepted, False for their opposites; case is ignored.

    Raises:
        InputError: The word is none of these.
    """
    text = str(word).strip().casefold()
    is_accepted = text in ("valid", "true", "1", "yes", "accepted")
    if not is_accepted and text not in ("invalid", "false", "0", "no", "rejected"):
        raise InputError(f"{word!r} is neither valid nor invalid")
    return is_accepted


def label_from_fields(
    drafts: Mapping[str, Draft],
    draft_id: object,
    verdict: object,
    reasons: Iterable[str],
    fields: Mapping[str, Sequence[str]],
    annotator: str = "",
) -> Label:
    """Create a label without a key from fields of a table or another tool; an accepting label gets no reasons.

    Args:
        drafts: Drafts of the dataset by id.
        draft_id: Id of the labelled draft.
        verdict: Word that :func:`parse_verdict` accepts.
        reasons: Reasons for the rejection.
        fields: Texts by field name, as :func:`label_fields` returns them.
        annotator: Name of the annotator.

    Raises:
        InputError: The draft does not exist, the verdict is unknown, or the letter of the correct option names no
            option.
    """
    draft = drafts.get(str(draft_id))
    if draft is None:
        raise InputError(f"the dataset has no item {draft_id!r} to annotate")
    texts = {name: values[0] for name, values in fields.items() if values}
    remark = texts.get("remark", "")
    if not parse_verdict(verdict):
        return Label(draft.id, annotator, False, tuple(reasons), remark)
    wording = None
    if any(texts.get(name) for name in EDIT_FIELDS):
        original_wording = draft.wording
        wording = replace(original_wording, question=texts.get("edited_question") or original_wording.question)
        if draft.type.has_options:
            options, correct = (
                tuple(fields.get("edited_options", ())) or original_wording.options,
                original_wording.correct,
            )
            if letter := texts.get("edited_correct", "").strip().lower():
                letters = [option_letter(index) for index in range(len(options))]
                if letter not in letters:
                    raise InputError(f"There is no option {letter!r}: there are {', '.join(letters)}.")
                correct = letters.index(letter)
            answer = options[correct] if correct is not None and correct < len(options) else original_wording.answer
            wording = replace(wording, options=options, correct=correct, answer=answer)
        else:
            wording = replace(wording, answer=texts.get("edited_answer") or original_wording.answer)
    return Label(draft.id, annotator, True, (), remark, wording)


def content_key(source: str, label: Label, *extra: object) -> str:
    """Return a key for a label that has none: equal content gives equal keys.

    Args:
        source: Name of the tool, the key's prefix.
        label: Label whose own key is ignored.
        extra: Further values that distinguish the label, such as the tool's own id.
    """
    from climassay.records.identity import canonical_json

    content = {**asdict(label), "key": "", "extra": [str(value) for value in extra]}
    return f"{source}:{hashlib.sha256(canonical_json(content).encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """State of an item, and the experts' decision if it is settled."""

    state: ItemState
    decision: Decision | None = None
    wording: Wording | None = None
    """Experts' wording; None if they did not change the wording."""
    made_at: float = 0.0
    """Time of the latest label that decides the outcome, in seconds since 1970-01-01 UTC."""


def decide_outcome(labels: Sequence[Label], overlap: int, base: Wording) -> ItemOutcome:
    """Return an item's state and the experts' decision from its current labels, given oldest first.

    The latest adjudication decides. Without one, the item is open until ``overlap`` annotators have labelled it. Then
    all labels must agree: either all reject the draft, for any reasons, or all accept it with the same wording. Ratings
    may differ by one point (:func:`~climassay.questions.types.longform.ratings_agree`). ``base`` is the draft's wording
    before any label.
    """
    adjudications = [label for label in labels if label.adjudicates]
    if adjudications:
        return _outcome_of_agreeing_labels(adjudications[-1:], base)
    if len(labels) < overlap:
        return ItemOutcome("open")
    verdicts = {(label.accepted, label.wording if label.accepted else None) for label in labels}
    ratings = [label.wording.answer for label in labels if label.accepted and label.wording and is_rating(base)]
    labels_agree = len(verdicts) == 1 or (len(ratings) == len(labels) and ratings_agree(ratings, base.options))
    return _outcome_of_agreeing_labels(labels, base) if labels_agree else ItemOutcome("conflict")


def is_rating(base: Wording) -> bool:
    """Return whether a wording belongs to a long answer to rate.

    The options are the rated dimensions and criteria, and none of them is marked as correct.
    """
    return bool(base.options) and base.correct is None and not is_rubric(base)


def is_rubric(base: Wording) -> bool:
    """Return whether a wording belongs to a long question without a final rubric; its answer is the initial rubric."""
    return base.options == (RUBRIC,)


def _outcome_of_agreeing_labels(labels: Sequence[Label], draft_wording: Wording) -> ItemOutcome:
    first_label = labels[0]
    annotators = ", ".join(dict.fromkeys(label.annotator for label in labels))
    reasons = tuple(dict.fromkeys(reason for label in labels for reason in label.reasons))
    remarks = [f"{label.annotator}: {label.remark}" for label in labels if label.remark]
    detail = "; ".join([", ".join(reasons), *remarks] if reasons else remarks)
    decision = Decision(
        "expert",
        annotators,
        first_label.accepted,
        reason=reasons[0] if reasons else "",
        detail=detail,
        replaced=None if first_label.wording is None else draft_wording,
    )
    return ItemOutcome("settled", decision, first_label.wording, max(label.made_at for label in labels))
