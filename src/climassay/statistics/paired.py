"""Tests of two systems on the same items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.statistics.intervals import Estimate, Interval, bootstrap_interval


@dataclass(frozen=True, slots=True)
class McNemar:
    """Exact McNemar test."""

    first_only: int
    """Items that only the first system got right."""
    second_only: int
    """Items that only the second system got right."""
    n: int
    p_value: float
    """Two-sided; 1 where the systems never disagree."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean difference second - first over items, with interval and sign-flip p-value."""

    difference: Estimate
    p_value: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """Exact two-sided McNemar test of paired right/wrong outcomes.

    Args:
        first: Shape [n], truthy where the first system is right.
        second: Shape [n], the same items in the same order.

    Raises:
        InputError: Different lengths.

    References:
        McNemar, Q. (1947), Psychometrika 12, 153-157; the exact form is a binomial test of the discordant items.
    """
    from scipy.special import bdtr  # scipy.stats takes a second to import.

    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"Paired outcomes must be two lists of equal length, got {a.shape} and {b.shape}.")
    first_only, second_only = int((a & ~b).sum()), int((b & ~a).sum())
    discordant = first_only + second_only
    # A fair coin's tails are alike: the p-value is twice one of them.
    p_value = min(1.0, 2 * float(bdtr(min(first_only, second_only), discordant, 0.5)))
    return McNemar(first_only, second_only, len(a), p_value)


def paired_difference(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> PairedDifference:
    """Mean of second - first over items: bootstrap interval, and a Monte-Carlo sign-flip test.

    Args:
        first: Shape [n], one score an item (for example accuracy averaged over permutations).
        second: Shape [n], the same items in the same order.
        level: Confidence level of the interval.
        resamples: Bootstrap samples and sign flips.
        seed: Seed of both.

    Raises:
        InputError: The shapes differ, or there is nothing.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise InputError(f"Paired scores must be two lists of equal length, got {a.shape} and {b.shape}.")
    gaps = b - a
    interval = (
        bootstrap_interval(gaps, lambda rows: float(rows.mean()), level=level, resamples=resamples, seed=seed)
        if gaps.any()
        else Interval(0.0, 0.0)
    )
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(resamples, len(gaps)))
    extreme = np.abs(signs @ gaps) >= abs(gaps.sum()) - 1e-12
    # The observed arrangement is one of those counted, so the p-value is never 0.
    p_value = (1 + int(extreme.sum())) / (1 + resamples)
    return PairedDifference(Estimate(float(gaps.mean()), interval, len(gaps), level), float(p_value))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment for several tests, in the order given.

    References:
        Holm, S. (1979), Scand. J. Statist. 6, 65-70.
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
