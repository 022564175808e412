"""Estimates with intervals, tests of two systems on the same items, and how many items they need."""

import math
from collections.abc import Callable, Iterator, Sequence
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


@dataclass(frozen=True, slots=True)
class ResampledEstimate:
    """A value that is no mean of right and wrong, for example a coefficient of agreement, with a bootstrap interval."""

    value: float
    interval: Interval | None
    """None for a single item: resampled, it would seem to be known exactly."""
    n: int
    """Independent items behind the value."""
    level: float = 0.95

    @classmethod
    def of(cls, value: float, drawn: Interval, n: int) -> "ResampledEstimate":
        """The value with the interval of its resamples, if there is more than one item."""
        return cls(value, drawn if n > 1 else None, n)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"A confidence level must be between 0 and 1, not {level}.")


def wilson_interval(successes: float, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval for a proportion, without continuity correction.

    Args:
        successes: Number of successes, 0 to n; or the sum of n values from 0 to 1, whose mean no interval of their own
            could hold more safely, for right and wrong vary most.
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


def proportion(successes: float, n: int, level: float = 0.95) -> Estimate:
    """A share with its Wilson interval; see :func:`wilson_interval`."""
    return Estimate(successes / n if n else 0.0, wilson_interval(successes, n, level), n, level)


def percentile_interval(values: Sequence[float] | NDArray[np.float64], level: float = 0.95) -> Interval:
    """What lies between the tails of resampled values, shape [resamples]."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def share_interval(drawn: Interval, share: float, n: int, level: float = 0.95, *, ends_only: bool = False) -> Interval:
    """The bootstrap interval of a share, or Wilson's for ``n`` resampled units where it has no width.

    What no resample changes, for example a share of verdicts that are all right, is not known exactly. Averages over
    classes (``ends_only``) are so only at 0 and 1: a constant answer has the mean recall 0.5 of two classes for sure.
    """
    if drawn.low < drawn.high or (ends_only and 0 < share < 1):
        return drawn
    return wilson_interval(min(max(share, 0.0), 1.0) * n, n, level)


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
    return percentile_interval(values, level)


def mean_estimate(
    values: ArrayLike | Sequence[float], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Mean of one value per item, with a percentile bootstrap interval over items.

    Use it where an item's value is itself an average, for example over permutations of its options: the interval then
    speaks of new items, which repeats of the same items must not narrow.

    Args:
        values: Shape [n], one value per item. Where all are the same, and from 0 to 1, the interval is Wilson's:
            resampled, they would claim to be known exactly.
        level: Confidence level.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.
    """
    array = np.asarray(values, dtype=np.float64)
    if len(array) and np.ptp(array) == 0 and 0 <= array[0] <= 1:
        return proportion(float(array[0]) * len(array), len(array), level)
    interval = bootstrap_interval(array, lambda rows: float(rows.mean()), level=level, resamples=resamples, seed=seed)
    return Estimate(float(array.mean()), interval, len(array), level)


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
    """Mean difference second - first over items, with the p-value and the interval of one sign-flip test."""

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
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, flips: int = 20_000, seed: int = 0
) -> PairedDifference:
    """Mean of second - first over items with its sign-flip test; see :func:`paired_differences`."""
    return paired_differences([(first, second)], level=level, flips=flips, seed=seed)[0]


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A difference between two systems on the same items, tested among others."""

    difference: Estimate
    """Mean of second - first, with the interval of the test."""
    exact: McNemar | None
    """For right or wrong; else the p-value is that of sign flips."""
    p_value: float
    p_holm: float
    """Adjusted over all tests made together (Holm)."""

    @property
    def first_only(self) -> int | None:
        """Items that only the first got right; None for what is not right or wrong."""
        return None if self.exact is None else self.exact.first_only

    @property
    def second_only(self) -> int | None:
        """Items that only the second got right, likewise."""
        return None if self.exact is None else self.exact.second_only


def paired_tests(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]], binary: Sequence[bool], seed: int
) -> list[PairedComparison]:
    """Test several pairs of systems together.

    Args:
        pairs: Scores of two systems, each of shape [n], the same items in the same order.
        binary: For each pair whether its scores are 0 or 1: McNemar's exact test then, else sign flips.
        seed: Seed of the sign flips.

    Raises:
        InputError: A pair is empty or its lists differ in length.
    """
    # Of right and wrong, McNemar's test is the sign-flip test over all flips.
    exact = [mcnemar(*pair) if whole else None for pair, whole in zip(pairs, binary, strict=True)]
    gaps = paired_differences(pairs, exact=[None if test is None else test.p_value for test in exact], seed=seed)
    p_values = [gap.p_value for gap in gaps]
    result = zip(gaps, exact, p_values, holm(p_values), strict=True)
    return [PairedComparison(gap.difference, test, p_value, adjusted) for gap, test, p_value, adjusted in result]


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


_ROWS_AT_ONCE = 2000
"""Resamples or sign flips held in memory at a time."""
_MANY_ITEMS = 10_000
"""Where there are more items, fewer draws are held at a time, and resamples are drawn item by item."""
_FEW_VALUES = 256
"""Where many items have no more different values, it is drawn how many of each value are in a subset."""
_PAIRS_AT_ONCE = 64
"""Pairs whose flips are held in memory at a time, 320 KB each."""


def mean_estimates(
    columns: Sequence[ArrayLike], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> list[Estimate]:
    """Mean of each column with a percentile bootstrap interval over items.

    The same numbers as :func:`mean_estimate` up to the draw of the resamples, which columns of one length share: as
    valid as resampling for each, comparable with each other, and one matrix product instead of hundreds of loops. A
    column whose values are all the same keeps an interval of no width.

    Args:
        columns: Each of shape [n], one value per item; lengths may differ.
        level: Confidence level.
        resamples: Bootstrap samples.
        seed: Seed of the resampling.

    Raises:
        InputError: A column is empty or has another shape.
    """
    arrays = [np.asarray(values, dtype=np.float64) for values in columns]
    wrong = next((array for array in arrays if array.ndim != 1 or array.size == 0), None)
    if wrong is not None:
        raise InputError(f"A mean needs a list of at least one number, got shape {wrong.shape}.")
    results: dict[int, Estimate] = {}
    for places in _by_length(arrays):
        table = np.stack([arrays[place] for place in places], axis=1)
        for place, interval in zip(places, _intervals(table, level, resamples, seed), strict=True):
            results[place] = Estimate(float(arrays[place].mean()), interval, len(arrays[place]), level)
    return [results[place] for place in range(len(arrays))]


def paired_differences(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    exact: Sequence[float | None] = (),
    weights: Sequence[ArrayLike] = (),
    level: float = 0.95,
    flips: int = 20_000,
    seed: int = 0,
) -> list[PairedDifference]:
    """Mean of second - first over items for each pair, with the p-value and the interval of one sign-flip test.

    The interval holds the differences that the test does not reject: 0 lies outside the 95% interval exactly where the
    p-value is below .05. Its ends are quantiles of the means of random subsets of the items, which are the typical
    values of the mean. Where there are too few items for any rejection (at 95%: five), it is the range of the
    differences together with 0.

    Args:
        pairs: Scores of two systems, each of shape [n], the same items in the same order; n may differ between pairs.
        exact: For each pair the p-value over all flips where it is known, else None; empty where none is.
        weights: For each pair how much its items weigh, shape [n], for example the sizes of groups whose means are
            given; empty where all weigh the same.
        level: Confidence level of the intervals.
        flips: Sign flips; the smallest p-value possible is 1 / (flips + 1), and Holm's correction multiplies it by the
            number of tests.
        seed: Seed of the flips.

    Raises:
        InputError: A pair is empty or its lists differ in length.

    References:
        Hartigan, J. A. (1969), Using subsample values as typical values, J. Am. Stat. Assoc. 64, 1303-1317.
    """
    _check_level(level)
    gaps = []
    for first, second in pairs:
        a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if a.shape != b.shape or a.ndim != 1 or a.size == 0:
            raise InputError(f"Paired scores must be two lists of equal length, got {a.shape} and {b.shape}.")
        gaps.append(b - a)
    results: dict[int, PairedDifference] = {}
    for alike in _by_length(gaps):
        for start in range(0, len(alike), _PAIRS_AT_ONCE):
            places = alike[start : start + _PAIRS_AT_ONCE]
            table = np.stack([gaps[place] for place in places], axis=1)
            heavy = np.stack([np.asarray(weights[place], np.float64) for place in places], axis=1) if weights else None
            means = _subset_means(table, flips, seed, heavy)
            values = np.average(table, axis=0, weights=heavy)
            for place, value, typical in zip(places, values.tolist(), means.T, strict=True):
                known = exact[place] if exact else None
                results[place] = _sign_flip_test(gaps[place], value, typical, known, level)
    return [results[place] for place in range(len(gaps))]


def _sign_flip_test(
    gaps: NDArray[np.float64], value: float, typical: NDArray[np.float64], exact: float | None, level: float
) -> PairedDifference:
    """Test and interval of a pair from the means of random subsets and of what these leave, shape [2 * flips]."""
    flips = len(typical) // 2
    slack = 1e-12 * (1 + float(np.abs(gaps).max()))
    # Flipping a subset leaves the sum as extreme exactly where the subset's mean has the other sign, or is 0.
    ahead = typical > slack if value > 0 else typical < -slack
    # The observed signs are one arrangement of those counted, so that the p-value is never 0.
    p_value = exact if exact is not None else min(1.0, (1 + int((~ahead).sum())) / (1 + flips))
    cut = max(0, math.ceil((1 - level) * (1 + flips)) - 2)
    # The mean of no items bounds the difference on neither side.
    low = max(float(np.sort(np.where(np.isnan(typical), -np.inf, typical))[cut]), float(gaps.min()))
    high = min(float(np.sort(np.where(np.isnan(typical), np.inf, typical))[-1 - cut]), float(gaps.max()))
    if p_value >= 1 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    elif not (low > 0 or high < 0):
        # The flips that were drawn are off the exact test by a few.
        low, high = (float(typical[ahead].min()), high) if value > 0 else (low, float(typical[ahead].max()))
    return PairedDifference(Estimate(value, Interval(low, high), len(gaps), level), p_value)


def _by_length(arrays: Sequence[NDArray[np.float64]]) -> Iterator[list[int]]:
    lengths = dict.fromkeys(len(array) for array in arrays)
    for length in lengths:
        yield [place for place, array in enumerate(arrays) if len(array) == length]


def _intervals(table: NDArray[np.float64], level: float, resamples: int, seed: int) -> list[Interval]:
    """Percentile intervals of the means of the columns; shape of ``table``: [items, columns]."""
    _check_level(level)
    size = len(table)
    generator = np.random.default_rng(seed)
    # Means about the column's own mean: a column without any spread keeps an interval of exactly no width.
    middle = table.mean(axis=0)
    means = np.empty((resamples, table.shape[1]))
    step = _rows_at_once(size)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        # How often each item is drawn in each resample, [rows, items].
        if size <= _MANY_ITEMS:
            drawn = generator.multinomial(size, np.full(size, 1 / size), size=rows)
        else:
            # The same distribution at a fifth of the cost; of fewer items the draws stay those of published figures.
            samples = (generator.integers(0, size, size) for _ in range(rows))
            drawn = np.stack([np.bincount(sample, minlength=size) for sample in samples])
        means[start : start + rows] = middle + drawn.astype(np.float64) @ (table - middle) / size
    constant = np.ptp(table, axis=0) == 0
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    low, high = np.where(constant, table[0], low), np.where(constant, table[0], high)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _rows_at_once(size: int) -> int:
    """Resamples or sign flips of so many items that are held in memory at a time."""
    return _ROWS_AT_ONCE if size <= _MANY_ITEMS else max(1, 2_000_000 // size)


def _subset_means(
    table: NDArray[np.float64], flips: int, seed: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Means of random subsets of the rows and of the rows that each leaves out, NaN where these are none.

    Args:
        table: Shape [items, columns].
        flips: Number of random subsets.
        seed: Seed of their draw.
        weights: Shape [items, columns]; None: all alike.

    Returns:
        Shape [2 * flips, columns].
    """
    generator = np.random.default_rng(seed)
    size, columns = table.shape
    sums, numbers = np.empty((flips, columns)), np.empty((flips, columns))
    whole: NDArray[np.float64] | int = size
    if weights is not None:
        table, whole = table * weights, weights.sum(axis=0)
    many = size > _MANY_ITEMS and weights is None
    counts = [np.unique(column, return_counts=True) for column in table.T] if many else []
    few = [place for place, (values, _) in enumerate(counts) if len(values) <= _FEW_VALUES]
    for place in few:
        values, number = counts[place]
        taken = generator.binomial(number, 0.5, size=(flips, len(values)))
        sums[:, place], numbers[:, place] = taken @ values, taken.sum(axis=1)
    others = [place for place in range(columns) if place not in few]
    step = _rows_at_once(size)
    for start in range(0, flips if others else 0, step):
        rows = slice(start, min(start + step, flips))
        flipped = 1.0 - generator.integers(0, 2, size=(rows.stop - start, size), dtype=np.int8)
        sums[rows, others] = flipped @ table[:, others]
        numbers[rows, others] = flipped.sum(axis=1, keepdims=True) if weights is None else flipped @ weights[:, others]
    # Where nothing is left out, rounding must not leave a sum: it would count as evidence for one side.
    rest = np.where(numbers < whole, table.sum(axis=0) - sums, 0.0)
    with np.errstate(invalid="ignore"):
        means = np.stack([sums / numbers, rest / (whole - numbers)])
    return means.reshape(2 * flips, -1)


def accuracy_sample_size(accuracy: float, half_width: float, level: float = 0.95) -> int:
    """Questions needed for an interval of plus or minus ``half_width`` around an accuracy (normal approximation).

    Example: 245 questions near 80% give about five points each side: ``accuracy_sample_size(0.8, 0.05) == 246``.

    Args:
        accuracy: Expected, above 0 and below 1.
        half_width: In the same unit, above 0.
        level: Confidence level of the interval.

    Raises:
        InputError: The accuracy or the half-width lies outside its range.
    """
    from scipy.stats import norm

    if not 0 < accuracy < 1 or half_width <= 0:
        raise InputError("Sample size needs an accuracy between 0 and 1 and a positive half-width.")
    z = float(norm.ppf((1 + level) / 2))
    return math.ceil(z * z * accuracy * (1 - accuracy) / half_width**2)


def mcnemar_power(gain: float, loss: float, n: int, alpha: float = 0.05) -> float:
    """Power of the exact two-sided McNemar test.

    Args:
        gain: Probability that only the second system is right on an item.
        loss: Probability that only the first system is right.
        n: Number of items.
        alpha: Significance level.

    Returns:
        Probability that p <= alpha.

    Raises:
        InputError: Probabilities that are none or sum to more than 1, or no items.
    """
    from scipy.stats import binom

    if gain < 0 or loss < 0 or gain + loss > 1 or n < 1:
        raise InputError("Power needs probabilities of gain and loss that sum to at most 1, and n >= 1.")
    discordance = gain + loss
    if discordance == 0:
        return 0.0
    discordant = np.arange(1, n + 1)
    weight = binom.pmf(discordant, n, discordance)
    discordant, weight = discordant[weight >= 1e-12], weight[weight >= 1e-12]
    # The largest count k with P(X <= k) <= alpha / 2 under a fair coin bounds the lower rejection region.
    k = binom.ppf(alpha / 2, discordant, 0.5)
    k -= binom.cdf(k, discordant, 0.5) > alpha / 2
    share = gain / discordance
    rejected = binom.cdf(k, discordant, share) + binom.sf(discordant - k - 1, discordant, share)
    return float(weight @ np.where(k >= 0, rejected, 0.0))


def mcnemar_sample_size(gain: float, loss: float, power: float = 0.8, alpha: float = 0.05, limit: int = 100_000) -> int:
    """Number of items at which :func:`mcnemar_power` reaches ``power``, found by doubling and bisection.

    The power of an exact test falls a little at some numbers while it rises on the whole, so that a slightly smaller
    number may reach it, too.

    Raises:
        InputError: gain equals loss, or more than ``limit`` items would be needed.
    """
    if gain == loss:
        raise InputError("Systems that gain and lose equally often cannot be distinguished by any number of items.")
    low, high = 0, 8
    while mcnemar_power(gain, loss, high, alpha) < power:
        low, high = high, 2 * high
        if high > limit:
            raise InputError(f"More than {limit} items would be needed.")
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if mcnemar_power(gain, loss, middle, alpha) >= power else (middle, high)
    return high
