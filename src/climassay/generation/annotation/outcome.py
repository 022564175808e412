"""What becomes of a draft by the labels that it has: a pure function, so that it can always be computed again."""

from collections.abc import Sequence
from dataclasses import dataclass

from climassay.generation.annotation.labels import ItemState, Label
from climassay.generation.draft import Decision, Wording


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of an item, and where it is settled what the experts decided."""

    state: ItemState
    decision: Decision | None = None
    wording: Wording | None = None
    """The words from now on; None where they stay as they are."""
    made_at: float = 0.0
    """Of the last label that it rests on."""


def outcome_of(labels: Sequence[Label], overlap: int, base: Wording) -> Outcome:
    """The outcome of an item.

    The latest adjudication decides. Without one the item is open until ``overlap`` annotators have labelled it; then
    all labels must say the same: rejected, for whatever reasons, or accepted with the same words.

    Args:
        labels: Current ones, oldest first; one an annotator, and one more where they adjudicate.
        overlap: Labels that an item needs.
        base: The words that were judged.
    """
    adjudications = [label for label in labels if label.adjudicates]
    if adjudications:
        return _settled(adjudications[-1:], base)
    if len(labels) < overlap:
        return Outcome("open")
    said = {(label.accepted, label.wording if label.accepted else None) for label in labels}
    return _settled(labels, base) if len(said) == 1 else Outcome("conflict")


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
