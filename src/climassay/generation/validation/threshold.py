"""From which P(valid) on a question is kept, so that of those kept a wanted share is valid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.statistics import Estimate, proportion

LEAST_KEPT = 20
"""Labelled questions above a threshold that are needed to say anything about it."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold and what may be expected of it."""

    value: float
    """Questions with P(valid) of at least this are kept."""
    wanted: float
    """The precision that was asked for; 0 where none was and everything is kept."""
    precision: Estimate
    """Share of valid questions among the labelled ones kept, with its Wilson interval. The threshold was chosen on the
    same questions, so new ones may do a little worse."""
    yield_: Estimate
    """Share of the questions that are kept."""


def threshold_for(
    precision: float,
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    least_kept: int = LEAST_KEPT,
    surely: bool = False,
) -> Threshold:
    """The lowest threshold that reaches a precision: of all that do, the one that keeps most.

    Args:
        precision: Wanted share of valid ones among those kept, above 0 to 1.
        labels: Shape [items], 0 or 1.
        probabilities: Shape [items], P(valid) by a validator that was not trained on the item.
        least_kept: Thresholds that keep fewer labelled items are not looked at.
        surely: Let the low end of the 95% interval reach the precision, not just the share itself.

    Raises:
        InputError: The precision cannot be reached; the sentence says what can.
    """
    valid, given = np.asarray(labels, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    if valid.shape != given.shape or valid.ndim != 1 or not valid.size:
        raise InputError(f"A threshold needs one label for each probability, got {valid.size} for {given.size}.")
    if not 0 < precision <= 1:
        raise InputError(f"The precision is {precision}: give a share above 0 and up to 1, for example 0.95.")
    order = np.argsort(-given, kind="stable")
    hits, sizes = np.cumsum(valid[order]), np.arange(1, len(given) + 1)
    # Equal probabilities are kept or left out together.
    ends = np.append(np.diff(given[order]) < 0, True) & (sizes >= least_kept)
    places = np.flatnonzero(ends)
    if not len(places):
        raise InputError(
            f"A threshold is chosen on at least {least_kept} labelled questions: there are {len(given)}; label more."
        )
    reached = [_merit(int(hits[at]), int(sizes[at]), surely) for at in places]
    good = [at for at, value in zip(places, reached, strict=True) if value >= precision - 1e-12]
    if not good:
        best = int(places[int(np.argmax(reached))])
        words = "is sure of at most" if surely else "reaches at most"
        raise InputError(
            f"A precision of {precision:.1%} cannot be reached on these labels: the validator {words} "
            f"{max(reached):.1%}, by keeping {int(sizes[best])} of {len(given)}; ask for less or label more questions."
        )
    at = int(good[-1])
    kept, right = int(sizes[at]), int(hits[at])
    return Threshold(float(given[order][at]), precision, proportion(right, kept), proportion(kept, len(given)))


def _merit(hits: int, kept: int, surely: bool) -> float:
    estimate = proportion(hits, kept)
    return estimate.interval.low if surely else estimate.value
