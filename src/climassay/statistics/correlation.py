"""Rank correlation with intervals."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.statistics.intervals import Interval


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rank correlation with a bootstrap interval over items."""

    value: float
    interval: Interval
    n: int
    p_value: float
    """Two-sided, from the asymptotic distribution."""


def _correlate(
    first: ArrayLike,
    second: ArrayLike,
    measure: Callable[[NDArray[np.float64], NDArray[np.float64]], tuple[float, float]],
    level: float,
    resamples: int,
    seed: int,
) -> Correlation:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size < 3:
        raise InputError(f"A rank correlation needs two lists of at least 3 numbers each, got {a.shape} and {b.shape}.")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        raise InputError("A rank correlation is undefined where one list is constant.")
    value, p_value = measure(a, b)
    generator = np.random.default_rng(seed)
    samples = []
    for _ in range(resamples):
        chosen = generator.integers(0, len(a), len(a))
        # A resample that happens to be constant has no rank correlation and says nothing.
        if np.ptp(a[chosen]) > 0 and np.ptp(b[chosen]) > 0:
            samples.append(measure(a[chosen], b[chosen])[0])
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return Correlation(value, Interval(float(low), float(high)), len(a), p_value)


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

    def measure(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
        result = spearmanr(a, b)
        return float(result.statistic), float(result.pvalue)

    return _correlate(first, second, measure, level, resamples, seed)


def kendall(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Correlation:
    """Kendall's tau-b; arguments as in :func:`spearman`."""
    from scipy.stats import kendalltau

    def measure(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
        result = kendalltau(a, b)
        return float(result.statistic), float(result.pvalue)

    return _correlate(first, second, measure, level, resamples, seed)
