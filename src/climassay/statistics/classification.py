"""The baseline that a constant answer reaches, and how far confidences are from what they promise."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError


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
