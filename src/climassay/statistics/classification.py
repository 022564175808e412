"""Constant baselines, calibration and selective prediction."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.statistics.intervals import Estimate, proportion

_ROUNDING = 1e-4
"""Maximum amount by which rounding errors of a sum of single-precision numbers may put a probability above 1."""


class Baseline(NamedTuple):
    """Most frequent label, and the accuracy of always predicting it."""

    label: Hashable
    accuracy: float


def constant_baseline(truth: Sequence[Hashable]) -> Baseline:
    """Return the most frequent label (in a tie, the first) and the accuracy of always predicting it.

    Raises:
        InputError: There are no labels.
    """
    if not truth:
        raise InputError("A constant baseline needs at least one label.")
    label, count = Counter(truth).most_common(1)[0]
    return Baseline(label, count / len(truth))


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 10) -> float:
    """Return the mean difference between confidence and accuracy over equal-width bins, weighted by bin size.

    Args:
        confidence: Confidence of each answer, shape [n], from 0 to 1.
        correct: Correctness of each answer, shape [n]: 1 for correct, 0 for wrong and 0.5 for undecided answers.
        bins: Number of bins.

    Raises:
        InputError: There are no answers, the lengths differ, or a confidence is outside 0..1.

    References:
        Naeini, Cooper and Hauskrecht (2015), AAAI.
    """
    curve = reliability_curve(confidence, correct, bins)
    differences = (abs(point.confidence - point.accuracy.value) * point.accuracy.n for point in curve)
    return sum(differences) / sum(point.accuracy.n for point in curve)


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """Answers whose confidence is at least a threshold."""

    coverage: float
    """Fraction of all items, including unanswered ones, whose answers reach the threshold."""
    n_correct: int
    """Number of correct answers that reach the threshold."""
    n_answers: int
    """Number of answers that reach the threshold."""

    @property
    def accuracy(self) -> Estimate:
        """Accuracy of the answers, with Wilson's interval."""
        return proportion(self.n_correct, self.n_answers)


@dataclass(frozen=True, slots=True)
class SelectiveCurve:
    """Accuracy of the most confident answers as a function of coverage."""

    n_items: int
    """Number of items, including unanswered ones."""
    points: tuple[CoveragePoint, ...]
    """Points by decreasing confidence, one for each distinct confidence."""
    area: float
    """Mean accuracy over all coverages; answers of equal confidence are taken in random order."""
    unordered: float
    """Expected area if all answers are taken in random order; equals their accuracy."""

    @property
    def aurc(self) -> float:
        """Area under the risk-coverage curve, divided by the coverage: 0 is best.

        In random order, the expected area is ``1 - unordered``.
        """
        return 1.0 - self.area


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Answers in one range of confidence."""

    low: float
    high: float
    confidence: float
    """Mean confidence of the answers."""
    accuracy: Estimate
    """Accuracy of the answers, with Wilson's interval."""


def selective_curve(
    confidence: Sequence[Any], correct: Sequence[bool], *, n_items: int | None = None
) -> SelectiveCurve:
    """Return accuracy as a function of coverage, the complement of the risk-coverage curve.

    Args:
        confidence: Confidence of each answer; values of any type that can be sorted, for example tuples.
        correct: Whether each answer is correct.
        n_items: Number of items, including unanswered ones; by default the number of answers.

    Raises:
        InputError: There are no answers, the lengths differ, there are fewer items than answers, or a confidence is
            NaN.

    References:
        El-Yaniv and Wiener (2010), On the Foundations of Noise-free Selective Classification, JMLR 11;
        Geifman, Uziel and El-Yaniv (2019), Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers, for the
        area.
    """
    if len(confidence) != len(correct) or not correct:
        raise InputError("A risk-coverage curve needs as many confidences as outcomes, and at least one.")
    if any(value != value for value in confidence):  # only NaN differs from itself
        raise InputError("A risk-coverage curve cannot order answers whose confidence is NaN.")
    total = len(correct) if n_items is None else n_items
    if total < len(correct):
        raise InputError(f"There are {len(correct)} answers to {total} items.")
    sorted_answers = sorted(zip(confidence, correct, strict=True), key=lambda pair: pair[0], reverse=True)
    groups = [
        [bool(is_correct) for _, is_correct in group] for _, group in groupby(sorted_answers, key=lambda pair: pair[0])
    ]
    points, area, n_answers, n_correct = [], 0.0, 0, 0
    for group in groups:
        group_accuracy = sum(group) / len(group)
        # Expectation over the orders of equally confident answers.
        area += sum((n_correct + group_accuracy * rank) / (n_answers + rank) for rank in range(1, len(group) + 1))
        n_answers += len(group)
        n_correct += sum(group)
        points.append(CoveragePoint(n_answers / total, n_correct, n_answers))
    return SelectiveCurve(total, tuple(points), area / n_answers, n_correct / n_answers)


def reliability_curve(confidence: ArrayLike, correct: ArrayLike, bins: int = 10) -> tuple[ReliabilityBin, ...]:
    """Return accuracy by confidence in equal-width bins.

    Args:
        confidence: Confidence of each answer, shape [n], from 0 to 1.
        correct: Correctness of each answer, shape [n]: 1 for correct, 0 for wrong and 0.5 for undecided answers.
        bins: Number of bins; empty bins are omitted.

    Raises:
        InputError: There are no answers, the lengths differ, or a confidence is outside 0..1.
    """
    confidences, outcomes = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if confidences.shape != outcomes.shape or confidences.ndim != 1 or confidences.size == 0:
        raise InputError("A reliability curve needs as many confidences as outcomes, and at least one.")
    if not ((confidences >= -_ROUNDING) & (confidences <= 1 + _ROUNDING)).all():
        raise InputError("A reliability curve needs confidences between 0 and 1.")
    confidences = confidences.clip(0, 1)
    bin_indices = np.minimum((confidences * bins).astype(int), bins - 1)
    curve = []
    for index in np.unique(bin_indices).tolist():
        is_in_bin = bin_indices == index
        accuracy = proportion(float(outcomes[is_in_bin].sum()), int(is_in_bin.sum()))
        curve.append(ReliabilityBin(index / bins, (index + 1) / bins, float(confidences[is_in_bin].mean()), accuracy))
    return tuple(curve)
