"""Rank correlation with intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.statistics.intervals import Interval

FloatArray = NDArray[np.float64]
_ITEMS_AT_ONCE = 1000
"""Items whose comparisons with all others are held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rank correlation with a bootstrap interval over items."""

    value: float
    interval: Interval
    n: int
    p_value: float
    """Two-sided, from the asymptotic distribution."""


def spearman_of_resamples(first: FloatArray, second: FloatArray, chosen: NDArray[np.int64]) -> FloatArray:
    """Spearman's rho of each resample of two lists, all at once; ties get mean ranks.

    Args:
        first: Shape [n].
        second: Shape [n].
        chosen: Places of the items of each resample, shape [resamples, n].

    Returns:
        Shape [resamples]; NaN where one of the lists is constant in a resample.
    """
    counts = _counts(chosen)
    # The ranks of n items have the mean (n + 1) / 2, with ties and without.
    a, b = (_ranks(values, counts) - (len(first) + 1) / 2 for values in (first, second))
    return _ratio(*((counts * product).sum(axis=1) for product in (a * b, a * a, b * b)))


def kendall_of_resamples(first: FloatArray, second: FloatArray, chosen: NDArray[np.int64]) -> FloatArray:
    """Kendall's tau-b of each resample of two lists, all at once; arguments as in :func:`spearman_of_resamples`."""
    counts = _counts(chosen)
    ranks = [np.unique(values, return_inverse=True)[1] for values in (first, second)]
    sums = np.zeros((3, len(chosen)))
    # A pair of items counts as often as the product of their counts says, so that pairs are compared only once.
    for start in range(0, len(first), _ITEMS_AT_ONCE):
        here = slice(start, start + _ITEMS_AT_ONCE)
        a, b = (np.sign(places[:, None] - places[here]) for places in ranks)
        sums += [((counts @ signs) * counts[:, here]).sum(axis=1) for signs in (a * b, a * a, b * b)]
    return _ratio(*(sums / 2))


def _counts(chosen: NDArray[np.int64]) -> FloatArray:
    """How often each item appears in each resample, [resamples, n]."""
    return np.array([np.bincount(row, minlength=chosen.shape[1]) for row in chosen], dtype=np.float64)


def _ranks(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Mean ranks of the items within each resample, [resamples, n]."""
    different, places = np.unique(values, return_inverse=True)
    order = np.argsort(values)
    there = np.add.reduceat(counts[:, order], np.searchsorted(values, different, sorter=order), axis=1)
    ranks: FloatArray = (there.cumsum(axis=1) - (there - 1) / 2)[:, places]
    return ranks


def _ratio(together: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return together / np.sqrt(first) / np.sqrt(second)


def _correlate(
    first: ArrayLike,
    second: ArrayLike,
    measure: Callable[[FloatArray, FloatArray], Any],
    resampled: Callable[[FloatArray, FloatArray, NDArray[np.int64]], FloatArray],
    level: float,
    resamples: int,
    seed: int,
) -> Correlation:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size < 3:
        raise InputError(f"A rank correlation needs two lists of at least 3 numbers each, got {a.shape} and {b.shape}.")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        raise InputError("A rank correlation is undefined where one list is constant.")
    found = measure(a, b)
    chosen = np.random.default_rng(seed).integers(0, len(a), (resamples, len(a)))
    # A resample that happens to be constant has no rank correlation and says nothing.
    low, high = np.nanquantile(resampled(a, b, chosen), [(1 - level) / 2, (1 + level) / 2])
    return Correlation(float(found.statistic), Interval(float(low), float(high)), len(a), float(found.pvalue))


def spearman(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Correlation:
    """Spearman's rho (ties get mean ranks).

    Args:
        first: Shape [n], n >= 3, not constant.
        second: Shape [n].
        level: Confidence level.
        resamples: Bootstrap samples over items.
        seed: Seed of the resampling.
    """
    from scipy.stats import spearmanr

    return _correlate(first, second, spearmanr, spearman_of_resamples, level, resamples, seed)


def kendall(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Correlation:
    """Kendall's tau-b; arguments as in :func:`spearman`."""
    from scipy.stats import kendalltau

    return _correlate(first, second, kendalltau, kendall_of_resamples, level, resamples, seed)
