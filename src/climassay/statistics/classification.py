"""Scores of predicted labels, with the baseline that a constant answer reaches."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.statistics.intervals import Estimate, proportion


class Baseline(NamedTuple):
    """The best a constant answer can do."""

    label: Hashable
    accuracy: float


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """Accuracy with interval, macro-F1, balanced accuracy and the constant baseline."""

    accuracy: Estimate
    macro_f1: float
    """Unweighted mean of F1 over the labels that occur in truth or prediction."""
    balanced_accuracy: float
    """Mean recall over the labels that occur in the truth."""
    baseline: Baseline
    missing: int
    """Predictions that are None (failures, refusals, nothing parsed); they count as wrong."""


def constant_baseline(truth: Sequence[Hashable]) -> Baseline:
    """The most frequent label and the accuracy of always answering it (the first seen of equals).

    Raises:
        InputError: No labels.
    """
    if not truth:
        raise InputError("A constant baseline needs at least one label.")
    label, count = Counter(truth).most_common(1)[0]
    return Baseline(label, count / len(truth))


def classification_scores(truth: Sequence[Hashable], predicted: Sequence[Hashable | None]) -> ClassificationScores:
    """Score predicted labels against true ones; a prediction of None is wrong, never dropped.

    Raises:
        InputError: The sequences differ in length or are empty.
    """
    if len(truth) != len(predicted):
        raise InputError(f"{len(truth)} true labels cannot be compared with {len(predicted)} predictions.")
    pairs = list(zip(truth, predicted, strict=True))
    baseline = constant_baseline(truth)
    hits = Counter(wanted for wanted, got in pairs if wanted == got)
    wanted_counts = Counter(truth)
    got_counts = Counter(got for got in predicted if got is not None)
    labels = list(dict.fromkeys([*wanted_counts, *got_counts]))
    f1 = [2 * hits[label] / (wanted_counts[label] + got_counts[label]) for label in labels]
    recall = [hits[label] / count for label, count in wanted_counts.items()]
    return ClassificationScores(
        accuracy=proportion(sum(hits.values()), len(pairs)),
        macro_f1=float(np.mean(f1)),
        balanced_accuracy=float(np.mean(recall)),
        baseline=baseline,
        missing=sum(got is None for got in predicted),
    )


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 10) -> float:
    """Mean gap between confidence and accuracy over equal-width bins, weighted by their size.

    Args:
        confidence: Shape [n], in 0..1.
        correct: Shape [n], 0 or 1.
        bins: Number of bins.

    Raises:
        InputError: The shapes differ, or there is nothing.

    References:
        Naeini, Cooper and Hauskrecht (2015), AAAI.
    """
    given, right = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if given.shape != right.shape or given.size == 0:
        raise InputError("Calibration needs as many confidences as outcomes, and at least one.")
    index = np.minimum((given * bins).astype(int), bins - 1)
    gaps = [
        abs(given[index == k].mean() - right[index == k].mean()) * (index == k).mean()
        for k in range(bins)
        if (index == k).any()
    ]
    return float(sum(gaps))
