"""What a constant answer reaches, and whether a system knows when it is right."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.statistics.intervals import Estimate, proportion


class Baseline(NamedTuple):
    """The best a constant answer can do."""

    label: Hashable
    accuracy: float


def constant_baseline(truth: Sequence[Hashable]) -> Baseline:
    """The most frequent label and the accuracy of always answering it (the first seen of equals).

    Raises:
        InputError: No labels.
    """
    if not truth:
        raise InputError("A constant baseline needs at least one label.")
    label, count = Counter(truth).most_common(1)[0]
    return Baseline(label, count / len(truth))


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 10) -> float:
    """Mean gap between confidence and accuracy over equal-width bins, weighted by their size.

    Args:
        confidence: Shape [n], in 0..1.
        correct: Shape [n], 0 or 1; 0.5 where an answer is undecided and right by half.
        bins: Number of bins.

    Raises:
        InputError: As :func:`~climassay.statistics.classification.reliability_curve`.

    References:
        Naeini, Cooper and Hauskrecht (2015), AAAI.
    """
    curve = reliability_curve(confidence, correct, bins)
    gaps = (abs(one.confidence - one.accuracy.value) * one.accuracy.n for one in curve)
    return sum(gaps) / sum(one.accuracy.n for one in curve)


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """Answers at least so sure."""

    coverage: float
    """Share of all items, answered or not."""
    right: int
    """How many of these answers are right."""
    answers: int

    @property
    def accuracy(self) -> Estimate:
        """Share of these answers that is right, with Wilson's interval."""
        return proportion(self.right, self.answers)


@dataclass(frozen=True, slots=True)
class SelectiveCurve:
    """Accuracy of the surest answers against the share of items that they cover."""

    items: int
    """All items, also those without an answer, which nothing covers."""
    points: tuple[CoveragePoint, ...]
    """Surest first; answers that are equally sure make one point."""
    area: float
    """Mean accuracy over the coverages reached, equally sure answers in random order."""
    unordered: float
    """What that area is when the order says nothing: the accuracy of all answers."""

    @property
    def aurc(self) -> float:
        """Area under the risk-coverage curve, per unit of coverage: 0 best, ``1 - unordered`` for a random order."""
        return 1.0 - self.area


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Answers whose confidence lies in one range."""

    low: float
    high: float
    confidence: float
    accuracy: Estimate
    """Share of them that is right, with Wilson's interval."""


def selective_curve(confidence: Sequence[Any], correct: Sequence[bool], *, items: int | None = None) -> SelectiveCurve:
    """The risk-coverage curve of answers.

    Args:
        confidence: One value per answer, higher is surer; anything that can be ordered, for example a tuple.
        correct: Whether each answer is right.
        items: Number of items, where not every one was answered; by default there are as many as answers.

    Raises:
        InputError: No answers, lists of different lengths, or fewer items than answers.

    References:
        El-Yaniv and Wiener (2010), On the Foundations of Noise-free Selective Classification, JMLR 11;
        Geifman, Uziel and El-Yaniv (2019), Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers, for the
        area.
    """
    if len(confidence) != len(correct) or not correct:
        raise InputError("A risk-coverage curve needs as many confidences as outcomes, and at least one.")
    total = len(correct) if items is None else items
    if total < len(correct):
        raise InputError(f"There are {len(correct)} answers to {total} items.")
    ranked = sorted(zip(confidence, correct, strict=True), key=lambda pair: pair[0], reverse=True)
    groups = [[bool(right) for _, right in group] for _, group in groupby(ranked, key=lambda pair: pair[0])]
    points, area, covered, right = [], 0.0, 0, 0
    for group in groups:
        share = sum(group) / len(group)
        # Within a group of equally sure answers, the expectation over its orders.
        area += sum((right + share * place) / (covered + place) for place in range(1, len(group) + 1))
        covered += len(group)
        right += sum(group)
        points.append(CoveragePoint(covered / total, right, covered))
    return SelectiveCurve(total, tuple(points), area / covered, right / covered)


def reliability_curve(confidence: ArrayLike, correct: ArrayLike, bins: int = 10) -> tuple[ReliabilityBin, ...]:
    """Accuracy against confidence over equal-width bins.

    Args:
        confidence: Shape [n], in 0..1.
        correct: Shape [n], 0 or 1; 0.5 where an answer is undecided and right by half.
        bins: Number of bins; empty ones are left out.

    Raises:
        InputError: No answers, lists of different lengths, or a confidence outside of 0..1.
    """
    given, right = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if given.shape != right.shape or given.ndim != 1 or given.size == 0:
        raise InputError("A reliability curve needs as many confidences as outcomes, and at least one.")
    if not ((given >= 0) & (given <= 1)).all():
        raise InputError("A reliability curve needs confidences between 0 and 1.")
    index = np.minimum((given * bins).astype(int), bins - 1)
    return tuple(
        ReliabilityBin(
            low=k / bins,
            high=(k + 1) / bins,
            confidence=float(given[index == k].mean()),
            accuracy=proportion(float(right[index == k].sum()), int((index == k).sum())),
        )
        for k in range(bins)
        if (index == k).any()
    )
