"""Means and paired differences of many systems on the same items, from shared resamples.

One table of an experiment has hundreds of means and tests. Resampling once for all of them is as valid as resampling
for each, makes their intervals comparable, and turns hours into seconds: the resamples are one matrix, and all
statistics one product. It also affords as many sign flips as a correction for many tests needs.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.statistics.intervals import Estimate, Interval
from climassay.statistics.paired import PairedDifference

_ROWS_AT_ONCE = 2000
"""Sign flips held in memory at a time."""


def mean_estimates(
    columns: Sequence[ArrayLike], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> list[Estimate]:
    """Mean of each column with a percentile bootstrap interval over items.

    The same numbers as :func:`~climassay.statistics.intervals.mean_estimate` up to the draw of the resamples, which
    columns of one length share.

    Args:
        columns: Each of shape [n], one value an item; lengths may differ.
        level: Confidence level.
        resamples: Bootstrap samples.
        seed: Seed of the resampling.

    Raises:
        InputError: A column is empty or has another shape.
    """
    arrays = [_column(values) for values in columns]
    found: dict[int, Estimate] = {}
    for places in _by_length(arrays):
        table = np.stack([arrays[place] for place in places], axis=1)
        for place, interval in zip(places, _intervals(table, level, resamples, seed), strict=True):
            found[place] = Estimate(float(arrays[place].mean()), interval, len(arrays[place]), level)
    return [found[place] for place in range(len(arrays))]


def paired_differences(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    flips: int = 20_000,
    seed: int = 0,
) -> list[PairedDifference]:
    """Mean of second - first over items for each pair: bootstrap interval, and a Monte-Carlo sign-flip test.

    Args:
        pairs: Scores of two systems, each of shape [n], the same items in the same order; n may differ between pairs.
        level: Confidence level of the intervals.
        resamples: Bootstrap samples.
        flips: Sign flips; the smallest p-value possible is 1 / (flips + 1), and Holm's correction multiplies it by the
            number of tests.
        seed: Seed of both.

    Raises:
        InputError: A pair is empty or its lists differ in length.
    """
    gaps = []
    for first, second in pairs:
        a, b = _column(first), _column(second)
        if a.shape != b.shape:
            raise InputError(f"Paired scores must be two lists of equal length, got {a.shape} and {b.shape}.")
        gaps.append(b - a)
    found: dict[int, PairedDifference] = {}
    for places in _by_length(gaps):
        table = np.stack([gaps[place] for place in places], axis=1)
        intervals = _intervals(table, level, resamples, seed)
        p_values = _sign_flip_p_values(table, flips, seed)
        for place, interval, p_value in zip(places, intervals, p_values, strict=True):
            estimate = Estimate(float(gaps[place].mean()), interval, len(gaps[place]), level)
            found[place] = PairedDifference(estimate, float(p_value))
    return [found[place] for place in range(len(gaps))]


def _column(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"A mean needs a list of at least one number, got the shape {array.shape}.")
    return array


def _by_length(arrays: Sequence[NDArray[np.float64]]) -> Iterator[list[int]]:
    lengths = dict.fromkeys(len(array) for array in arrays)
    for length in lengths:
        yield [place for place, array in enumerate(arrays) if len(array) == length]


def _intervals(table: NDArray[np.float64], level: float, resamples: int, seed: int) -> list[Interval]:
    """Percentile intervals of the means of the columns; shape of ``table``: [items, columns]."""
    if not 0 < level < 1:
        raise InputError(f"A confidence level lies between 0 and 1, not at {level}.")
    size = len(table)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
    # Means about the column's own mean: a column without any spread keeps an interval of exactly no width.
    middle = table.mean(axis=0)
    means = middle + drawn @ (table - middle) / size
    constant = np.ptp(table, axis=0) == 0
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    low, high = np.where(constant, table[0], low), np.where(constant, table[0], high)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _sign_flip_p_values(table: NDArray[np.float64], flips: int, seed: int) -> NDArray[np.float64]:
    """Two-sided p-values of the columns' sums; the observed signs are one of those counted, so that none is 0."""
    observed = np.abs(table.sum(axis=0)) - 1e-12
    generator = np.random.default_rng(seed)
    extreme = np.ones(table.shape[1])
    for start in range(0, flips, _ROWS_AT_ONCE):
        rows = min(_ROWS_AT_ONCE, flips - start)
        signs = generator.integers(0, 2, size=(rows, len(table)), dtype=np.int8) * 2.0 - 1.0
        extreme += (np.abs(signs @ table) >= observed).sum(axis=0)
    return extreme / (1 + flips)
