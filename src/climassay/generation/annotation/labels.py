"""What experts say about drafts: labels, the items of a queue, and how far a queue has come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from climassay.errors import InputError
from climassay.generation.draft import EXPERT_REASONS, Draft, Reason, Wording

ItemState = Literal["open", "settled", "conflict"]
"""``open``: labels are still wanted; ``settled``: there is an outcome; ``conflict``: the labels do not agree."""
Order = Literal["margin", "paper", "random"]
"""Those of :data:`climassay.generation.validation.Acquisition` that need no vectors."""
ORDERS: tuple[Order, ...] = ("margin", "paper", "random")

ANNOTATION_REASONS: tuple[Reason, ...] = (
    *EXPERT_REASONS,
    Reason(
        "context reference", "The question speaks of its passage, a figure or a study that the reader cannot see", "6"
    ),
    Reason("self-inconsistency", "Given the passage, the marked answer does not come out", "7"),
)
"""Why a draft may be rejected: the experts' reasons, and the two that screening sets."""
OTHER = "other"
"""The reason that needs a remark."""


@dataclass(frozen=True, slots=True)
class AnnotationSettings:
    """How a dataset is annotated."""

    overlap: int = 1
    """Labels that an item needs."""
    hide_confidence: bool = True
    """Whether annotators do not see the validator's confidence."""
    lease_seconds: float = 1800
    """How long an item is kept for who got it."""
    retrain_every: int = 50
    """Newly settled items after which a new training of the validator is offered."""
    include_rejected: bool = False
    """Whether drafts wait too that nothing but screening, self-consistency or the validator rejected."""
    order: Order = "margin"
    """Which items come first; see :func:`climassay.generation.validation.choose_next`."""
    seed: int = 0
    """Of everything in the order that is left to chance."""

    def __post_init__(self) -> None:
        if not 1 <= self.overlap <= 20:
            raise InputError(f"An item can have 1 to 20 labels, not {self.overlap}.")
        if not 1 <= self.lease_seconds <= 7 * 86400:
            raise InputError(f"An item is kept for 1 second to 7 days, not for {self.lease_seconds:g} s.")
        if self.retrain_every < 1:
            raise InputError(f"Training is offered after 1 or more settled items, not {self.retrain_every}.")
        if self.order not in ORDERS:
            raise InputError(f"There is no order {self.order!r} of a queue: there are {', '.join(ORDERS)}.")


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
class Item:
    """A draft that waits for labels or has some."""

    draft: Draft
    """As the line left it: what is judged, without the outcome of the labels."""
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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a dataset has come, and one annotator in it."""

    items: int
    settled: int
    conflicts: int
    labelled_by: Mapping[str, int]
    """Annotator -> items labelled."""
    mine: int
    """Items that the annotator labelled."""
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
