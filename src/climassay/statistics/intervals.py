"""Estimates with intervals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError


class Interval(NamedTuple):
    """A confidence interval, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or share, never without its n and interval."""

    value: float
    """The mean, in the units of what was averaged (shares: 0 to 1)."""
    interval: Interval
    n: int
    """Independent items behind the value (not permutations or repeats of one item)."""
    level: float = 0.95


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"A confidence level lies between 0 and 1, not at {level}.")


def wilson_interval(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval for a proportion, without continuity correction.

    Args:
        successes: Number of successes, 0 to n.
        n: Number of independent trials, at least 1.
        level: Confidence level.

    Raises:
        InputError: n < 1, or successes outside 0..n.

    References:
        Wilson, E. B. (1927), J. Am. Stat. Assoc. 22, 209-212.
    """
    _check_level(level)
    if n < 1 or not 0 <= successes <= n:
        raise InputError(f"A proportion needs 0 <= successes <= n and n >= 1, got {successes} of {n}.")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At the ends the exact bounds are 0 and 1; rounding must not push them off.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high)


def proportion(successes: int, n: int, level: float = 0.95) -> Estimate:
    """A share with its Wilson interval; see :func:`wilson_interval`."""
    return Estimate(successes / n if n else 0.0, wilson_interval(successes, n, level), n, level)


def bootstrap_interval(
    items: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], float],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval over items.

    Args:
        items: Shape [n] or [n, ...]; rows are the independent units that are resampled.
        statistic: Function of the resampled rows.
        level: Confidence level.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.

    Raises:
        InputError: No items.

    References:
        Efron, B. and Tibshirani, R. (1993), An Introduction to the Bootstrap, chapter 13.
    """
    _check_level(level)
    rows = np.asarray(items, dtype=np.float64)
    if len(rows) == 0:
        raise InputError("An interval needs at least one item.")
    generator = np.random.default_rng(seed)
    values = [statistic(rows[generator.integers(0, len(rows), len(rows))]) for _ in range(resamples)]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def mean_estimate(
    values: ArrayLike | Sequence[float], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Mean of one value an item, with a percentile bootstrap interval over items.

    Use it where an item's value is itself an average, for example over permutations of its options: the interval then
    speaks of new items, which repeats of the same items must not narrow.

    Args:
        values: Shape [n], one value an item.
        level: Confidence level.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.
    """
    array = np.asarray(values, dtype=np.float64)
    interval = bootstrap_interval(array, lambda rows: float(rows.mean()), level=level, resamples=resamples, seed=seed)
    return Estimate(float(array.mean()), interval, len(array), level)
