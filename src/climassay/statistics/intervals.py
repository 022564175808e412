"""Estimates with intervals, tests of two systems on the same items, and how many items they need."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError

_TOLERANCE = 1e-12
"""Maximum difference of scores that count as equal, since sums of the same numbers in another order differ by less."""


class Interval(NamedTuple):
    """Confidence interval, including its ends."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean or proportion with its sample size and confidence interval."""

    value: float
    """Mean in the unit of the averaged values; a proportion is between 0 and 1."""
    interval: Interval
    n: int
    """Number of independent items; permutations or repeats of an item count once."""
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class ResampledEstimate:
    """Statistic other than a mean, such as a coefficient of agreement, with its bootstrap interval."""

    value: float
    interval: Interval | None
    """Bootstrap interval; None for a single item, since all its resamples are equal."""
    n: int
    """Number of independent items."""
    level: float = 0.95

    @classmethod
    def from_resamples(cls, value: float, interval: Interval, n: int) -> "ResampledEstimate":
        """Build the estimate; the interval is omitted if there is only one item."""
        return cls(value, interval if n > 1 else None, n)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"A confidence level must be between 0 and 1, not {level}.")


def _check_complete(*arrays: NDArray[np.float64]) -> None:
    """Check that no value is NaN: a missing score is neither 0 nor a tie, and would make every p-value 1."""
    n_missing = sum(int(np.isnan(array).sum()) for array in arrays)
    if n_missing:
        raise InputError(f"{n_missing} of the values are missing (NaN): omit these items, or score them.")


def wilson_interval(successes: float, n: int, level: float = 0.95) -> Interval:
    """Return Wilson's score interval for a proportion, without continuity correction.

    Args:
        successes: Number of successes, 0 to n, or sum of n values from 0 to 1. For such a sum, the interval is
            conservative, because binary values have the largest variance.
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
    proportion_value = successes / n
    centre = (proportion_value + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z / (1 + z * z / n) * math.sqrt(proportion_value * (1 - proportion_value) / n + z * z / (4 * n * n))
    # The exact bounds are 0 and 1 at the ends; rounding errors must not change them.
    low = 0.0 if successes == 0 else max(0.0, centre - half_width)
    high = 1.0 if successes == n else min(1.0, centre + half_width)
    return Interval(low, high)


def proportion(successes: float, n: int, level: float = 0.95) -> Estimate:
    """Return a proportion with its Wilson interval; arguments are as in :func:`wilson_interval`."""
    return Estimate(successes / n if n else 0.0, wilson_interval(successes, n, level), n, level)


def percentile_interval(values: Sequence[float] | NDArray[np.float64], level: float = 0.95) -> Interval:
    """Return the central interval that contains a fraction ``level`` of the resampled values, shape [resamples]."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def share_interval(
    bootstrap: Interval, share: float, n: int, level: float = 0.95, *, ends_only: bool = False
) -> Interval:
    """Return the bootstrap interval of a proportion, or Wilson's interval if the bootstrap interval has zero width.

    If all resamples have the same proportion, for example because all verdicts are correct, the proportion is still
    uncertain.

    Args:
        bootstrap: Bootstrap interval of the proportion.
        share: Proportion, from 0 to 1.
        n: Number of resampled units.
        level: Confidence level of Wilson's interval.
        ends_only: Whether to replace the bootstrap interval only if the proportion is 0 or 1. For averages over
            classes, zero width may be correct: the mean recall of a constant answer is exactly 0.5 for two classes.
    """
    if bootstrap.low < bootstrap.high or (ends_only and 0 < share < 1):
        return bootstrap
    return wilson_interval(min(max(share, 0.0), 1.0) * n, n, level)


def bootstrap_interval(
    items: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], float],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the percentile bootstrap interval of a statistic of items.

    Args:
        items: Shape [n] or [n, ...]; the rows are resampled as independent units.
        statistic: Function of the resampled rows.
        level: Confidence level.
        resamples: Number of bootstrap samples.
        seed: Random seed of the bootstrap.

    Raises:
        InputError: There are no items, or one is NaN.

    References:
        Efron, B. and Tibshirani, R. (1993), An Introduction to the Bootstrap, chapter 13.
    """
    _check_level(level)
    rows = np.asarray(items, dtype=np.float64)
    if len(rows) == 0:
        raise InputError("An interval needs at least one item.")
    _check_complete(rows)
    generator = np.random.default_rng(seed)
    values = [statistic(rows[generator.integers(0, len(rows), len(rows))]) for _ in range(resamples)]
    return percentile_interval(values, level)


def mean_estimate(
    values: ArrayLike | Sequence[float], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Return the mean of one value per item with a percentile bootstrap interval over items.

    An item's value may itself be an average, for example over permutations of its options. The interval covers the
    sampling of items, and does not become narrower with repetitions of an item.

    Args:
        values: Shape [n], one value per item. If all values are equal and from 0 to 1, the interval is Wilson's, since
            all resamples would be equal.
        level: Confidence level.
        resamples: Number of bootstrap samples.
        seed: Random seed of the bootstrap.
    """
    array = np.asarray(values, dtype=np.float64)
    if len(array) and np.ptp(array) <= _TOLERANCE and -_TOLERANCE <= array[0] <= 1 + _TOLERANCE:
        return proportion(float(array[0].clip(0, 1)) * len(array), len(array), level)
    interval = bootstrap_interval(array, lambda rows: float(rows.mean()), level=level, resamples=resamples, seed=seed)
    return Estimate(float(array.mean()), interval, len(array), level)


@dataclass(frozen=True, slots=True)
class McNemar:
    """Result of an exact McNemar test."""

    first_only: int
    """Number of items that only the first system answered correctly."""
    second_only: int
    """Number of items that only the second system answered correctly."""
    n: int
    p_value: float
    """Two-sided p-value; 1 if the systems never disagree."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean difference over items, second minus first, with p-value and interval of the sign-flip test."""

    difference: Estimate
    p_value: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """Run an exact two-sided McNemar test of paired binary outcomes.

    Args:
        first: Shape [n], truthy for items that the first system answered correctly.
        second: Shape [n], the same items in the same order for the second system.

    Raises:
        InputError: The lengths differ, or an outcome is NaN.

    References:
        McNemar, Q. (1947), Psychometrika 12, 153-157; the exact form is a binomial test of the discordant items.
    """
    from scipy.special import bdtr  # scipy.stats takes a second to import.

    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"Paired outcomes must be two lists of equal length, got {a.shape} and {b.shape}.")
    _check_complete(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))
    n_first_only, n_second_only = int((a & ~b).sum()), int((b & ~a).sum())
    n_discordant = n_first_only + n_second_only
    # The binomial distribution is symmetric: the p-value is twice one tail.
    p_value = min(1.0, 2 * float(bdtr(min(n_first_only, n_second_only), n_discordant, 0.5)))
    return McNemar(n_first_only, n_second_only, len(a), p_value)


def paired_difference(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, flips: int = 20_000, seed: int = 0
) -> PairedDifference:
    """Return the mean of second minus first over items, with its sign-flip test; see :func:`paired_differences`."""
    return paired_differences([(first, second)], level=level, flips=flips, seed=seed)[0]


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Difference between two systems on the same items, with a p-value adjusted for several tests."""

    difference: Estimate
    """Mean of second minus first, with the interval of the sign-flip test."""
    exact: McNemar | None
    """McNemar test of binary scores; None if the p-value comes from sign flips."""
    p_value: float
    p_holm: float
    """p-value adjusted for all tests (Holm)."""

    @property
    def first_only(self) -> int | None:
        """Number of items that only the first system answered correctly; None if scores are not binary."""
        return None if self.exact is None else self.exact.first_only

    @property
    def second_only(self) -> int | None:
        """Number of items that only the second system answered correctly; None if scores are not binary."""
        return None if self.exact is None else self.exact.second_only


def paired_tests(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]], binary: Sequence[bool], seed: int
) -> list[PairedComparison]:
    """Test several pairs of systems and adjust the p-values by Holm's method.

    Args:
        pairs: Scores of two systems, each of shape [n], the same items in the same order.
        binary: Whether the scores of each pair are 0 or 1. If they are, McNemar's exact test is used, otherwise sign
            flips.
        seed: Seed of the sign flips.

    Raises:
        InputError: A pair is empty or its lists differ in length.
    """
    # For binary scores, McNemar's test is the sign-flip test over all flips.
    tests = [mcnemar(*pair) if is_binary else None for pair, is_binary in zip(pairs, binary, strict=True)]
    exact = [None if test is None else test.p_value for test in tests]
    differences = paired_differences(pairs, exact=exact, seed=seed)
    p_values = [difference.p_value for difference in differences]
    rows = zip(differences, tests, p_values, holm(p_values), strict=True)
    return [
        PairedComparison(paired_result.difference, test, p_value, p_holm)
        for paired_result, test, p_value, p_holm in rows
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's step-down method, in the order of the arguments.

    References:
        Holm, S. (1979), Scand. J. Statist. 6, 65-70.
    """
    adjusted_p_values = [0.0] * len(p_values)
    max_p_value = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        max_p_value = max(max_p_value, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted_p_values[index] = max_p_value
    return adjusted_p_values


_MAX_BATCH_DRAWS = 2000
"""Maximum number of resamples or sign flips in memory at the same time."""
_LARGE_N = 10_000
"""Maximum size of a small sample; for larger samples, batches are smaller, and each item is drawn separately."""
_MAX_DISTINCT_VALUES = 256
"""If there are at most this many distinct values, subsets of many items are drawn as counts per value."""
_MAX_BATCH_PAIRS = 64
"""Maximum number of pairs whose sign flips are in memory at the same time; a pair takes 320 KB."""


def mean_estimates(
    columns: Sequence[ArrayLike], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> list[Estimate]:
    """Return the mean of each column with a percentile bootstrap interval over items.

    Unlike repeated calls of :func:`mean_estimate`, columns of one length share their resamples, so that they are
    comparable and one matrix product suffices. The interval of a constant column has zero width.

    Args:
        columns: Each of shape [n], one value per item; lengths may differ.
        level: Confidence level.
        resamples: Number of bootstrap samples.
        seed: Random seed of the bootstrap.

    Raises:
        InputError: A column is empty, has another shape, or contains NaN.
    """
    arrays = [np.asarray(values, dtype=np.float64) for values in columns]
    invalid = next((array for array in arrays if array.ndim != 1 or array.size == 0), None)
    if invalid is not None:
        raise InputError(f"A mean needs a list of at least one number, got shape {invalid.shape}.")
    _check_complete(*arrays)
    estimates: dict[int, Estimate] = {}
    for indices in _indices_by_length(arrays):
        table = np.stack([arrays[index] for index in indices], axis=1)
        for index, interval in zip(indices, _column_intervals(table, level, resamples, seed), strict=True):
            estimates[index] = Estimate(float(arrays[index].mean()), interval, len(arrays[index]), level)
    return [estimates[index] for index in range(len(arrays))]


def paired_differences(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    exact: Sequence[float | None] = (),
    weights: Sequence[ArrayLike] = (),
    level: float = 0.95,
    flips: int = 20_000,
    seed: int = 0,
) -> list[PairedDifference]:
    """Return the mean of second minus first for each pair, with p-value and interval of a sign-flip test.

    The interval contains the differences that the test does not reject: 0 is outside the 95% interval if and only if
    the p-value is below .05. Its ends are quantiles of the means of random subsets of the items (Hartigan's "typical
    values"). If there are too few items for any rejection (at 95%: five), the interval is the range of the differences
    extended to 0.

    Args:
        pairs: Scores of two systems, each of shape [n], the same items in the same order; n may differ between pairs.
        exact: For each pair, the p-value over all possible flips, or None to estimate it; empty to estimate all.
        weights: Weights of the items of each pair, shape [n], for example the sizes of groups whose means are the
            scores; empty for equal weights.
        level: Confidence level of the intervals.
        flips: Number of sign flips; the smallest possible p-value is 1 / (flips + 1), and Holm's correction multiplies
            p-values by the number of tests.
        seed: Seed of the flips.

    Raises:
        InputError: A pair is empty, its lists differ in length, or a score is NaN.

    References:
        Hartigan, J. A. (1969), Using subsample values as typical values, J. Am. Stat. Assoc. 64, 1303-1317.
    """
    _check_level(level)
    differences = []
    for first, second in pairs:
        a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if a.shape != b.shape or a.ndim != 1 or a.size == 0:
            raise InputError(f"Paired scores must be two lists of equal length, got {a.shape} and {b.shape}.")
        _check_complete(a, b)
        differences.append(b - a)
    results: dict[int, PairedDifference] = {}
    for same_length in _indices_by_length(differences):
        for start in range(0, len(same_length), _MAX_BATCH_PAIRS):
            indices = same_length[start : start + _MAX_BATCH_PAIRS]
            table = np.stack([differences[index] for index in indices], axis=1)
            table_weights = (
                np.stack([np.asarray(weights[index], np.float64) for index in indices], axis=1) if weights else None
            )
            means = _subset_means(table, flips, seed, table_weights)
            values = np.average(table, axis=0, weights=table_weights)
            for index, value, subset_means in zip(indices, values.tolist(), means.T, strict=True):
                p_value = exact[index] if exact else None
                results[index] = _sign_flip_test(differences[index], value, subset_means, p_value, level)
    return [results[index] for index in range(len(differences))]


def _sign_flip_test(
    differences: NDArray[np.float64],
    mean: float,
    subset_means: NDArray[np.float64],
    exact: float | None,
    level: float,
) -> PairedDifference:
    """Return the sign-flip test and its interval for the items' differences, shape [n], of one pair of systems.

    ``subset_means`` are the means of random subsets and of their complements, shape [2 * flips], NaN for empty subsets.
    ``exact`` is the p-value over all possible flips, or None if it is unknown.
    """
    flips = len(subset_means) // 2
    tolerance = 1e-12 * (1 + float(np.abs(differences).max()))
    # Flipping a subset leaves the sum as extreme exactly if the subset's mean has the opposite sign or is 0.
    has_same_sign = subset_means > tolerance if mean > 0 else subset_means < -tolerance
    # The observed signs count as one of the flips, so that the p-value is never 0.
    p_value = exact if exact is not None else min(1.0, (1 + int((~has_same_sign).sum())) / (1 + flips))
    rank = max(0, math.ceil((1 - level) * (1 + flips)) - 2)
    # The mean of an empty subset does not bound the difference.
    low = max(float(np.sort(np.where(np.isnan(subset_means), -np.inf, subset_means))[rank]), float(differences.min()))
    high = min(
        float(np.sort(np.where(np.isnan(subset_means), np.inf, subset_means))[-1 - rank]), float(differences.max())
    )
    if p_value >= 1 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    elif not (low > 0 or high < 0):
        # The random flips differ slightly from the exact test.
        same_sign_means = subset_means[has_same_sign]
        low, high = (float(same_sign_means.min()), high) if mean > 0 else (low, float(same_sign_means.max()))
    return PairedDifference(Estimate(mean, Interval(low, high), len(differences), level), p_value)


def _indices_by_length(arrays: Sequence[NDArray[np.float64]]) -> Iterator[list[int]]:
    lengths = dict.fromkeys(len(array) for array in arrays)
    for length in lengths:
        yield [index for index, array in enumerate(arrays) if len(array) == length]


def _column_intervals(table: NDArray[np.float64], level: float, resamples: int, seed: int) -> list[Interval]:
    """Return percentile bootstrap intervals of the column means of a table [items, columns]."""
    _check_level(level)
    size = len(table)
    generator = np.random.default_rng(seed)
    # Centring makes the interval of a constant column exactly zero wide.
    column_means = table.mean(axis=0)
    means = np.empty((resamples, table.shape[1]))
    step = _batch_size(size)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        # Number of draws of each item in each resample, shape [rows, items].
        if size <= _LARGE_N:
            counts = generator.multinomial(size, np.full(size, 1 / size), size=rows)
        else:
            # The same distribution at a fifth of the cost; smaller sets keep the draws behind published figures.
            samples = (generator.integers(0, size, size) for _ in range(rows))
            counts = np.stack([np.bincount(sample, minlength=size) for sample in samples])
        means[start : start + rows] = column_means + counts.astype(np.float64) @ (table - column_means) / size
    is_constant = np.ptp(table, axis=0) == 0
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    low, high = np.where(is_constant, table[0], low), np.where(is_constant, table[0], high)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _batch_size(size: int) -> int:
    return _MAX_BATCH_DRAWS if size <= _LARGE_N else max(1, 2_000_000 // size)


def _subset_means(
    table: NDArray[np.float64], flips: int, seed: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the means of random subsets of rows and of their complements, shape [2 * flips, columns]; NaN if empty.

    ``table`` and ``weights`` have the shape [items, columns]; None gives all rows equal weights.
    """
    generator = np.random.default_rng(seed)
    size, columns = table.shape
    sums, subset_weights = np.empty((flips, columns)), np.empty((flips, columns))
    total_weight: NDArray[np.float64] | int = size
    if weights is not None:
        table, total_weight = table * weights, weights.sum(axis=0)
    is_large = size > _LARGE_N and weights is None
    distinct_values = [np.unique(column, return_counts=True) for column in table.T] if is_large else []
    columns_with_counts = [
        index for index, (values, _) in enumerate(distinct_values) if len(values) <= _MAX_DISTINCT_VALUES
    ]
    for index in columns_with_counts:
        values, n_items = distinct_values[index]
        counts = generator.binomial(n_items, 0.5, size=(flips, len(values)))
        sums[:, index], subset_weights[:, index] = counts @ values, counts.sum(axis=1)
    columns_without_counts = [index for index in range(columns) if index not in columns_with_counts]
    step = _batch_size(size)
    for start in range(0, flips if columns_without_counts else 0, step):
        rows = slice(start, min(start + step, flips))
        is_member = 1.0 - generator.integers(0, 2, size=(rows.stop - start, size), dtype=np.int8)
        sums[rows, columns_without_counts] = is_member @ table[:, columns_without_counts]
        subset_weights[rows, columns_without_counts] = (
            is_member.sum(axis=1, keepdims=True) if weights is None else is_member @ weights[:, columns_without_counts]
        )
    # The sum of an empty complement is exactly 0: a rounding error would count as evidence.
    complement_sums = np.where(subset_weights < total_weight, table.sum(axis=0) - sums, 0.0)
    with np.errstate(invalid="ignore"):
        means = np.stack([sums / subset_weights, complement_sums / (total_weight - subset_weights)])
    return means.reshape(2 * flips, -1)


def accuracy_sample_size(accuracy: float, half_width: float, level: float = 0.95) -> int:
    """Return the number of questions for which an accuracy's interval has a given half-width (normal approximation).

    Example: 246 questions with an accuracy near 80% give about five percentage points on each side:
    ``accuracy_sample_size(0.8, 0.05) == 246``.

    Args:
        accuracy: Expected accuracy, above 0 and below 1.
        half_width: Half the width of the interval, above 0.
        level: Confidence level of the interval.

    Raises:
        InputError: The accuracy or the half-width is outside its range.
    """
    from scipy.stats import norm

    if not 0 < accuracy < 1 or half_width <= 0:
        raise InputError("Sample size needs an accuracy between 0 and 1 and a positive half-width.")
    z = float(norm.ppf((1 + level) / 2))
    return math.ceil(z * z * accuracy * (1 - accuracy) / half_width**2)


def mcnemar_power(gain: float, loss: float, n: int, alpha: float = 0.05) -> float:
    """Return the power of the exact two-sided McNemar test.

    Args:
        gain: Probability that only the second system answers an item correctly.
        loss: Probability that only the first system answers an item correctly.
        n: Number of items.
        alpha: Significance level.

    Returns:
        Probability that p <= alpha.

    Raises:
        InputError: A probability is negative, both sum to more than 1, or n is 0.
    """
    from scipy.stats import binom

    if gain < 0 or loss < 0 or gain + loss > 1 or n < 1:
        raise InputError("Power needs probabilities of gain and loss that sum to at most 1, and n >= 1.")
    p_discordant = gain + loss
    if p_discordant == 0:
        return 0.0
    n_discordant = np.arange(1, n + 1)
    weight = binom.pmf(n_discordant, n, p_discordant)
    n_discordant, weight = n_discordant[weight >= 1e-12], weight[weight >= 1e-12]
    # The lower rejection region ends at the largest k with P(X <= k) <= alpha / 2 for X ~ Binomial(n, 0.5).
    k = binom.ppf(alpha / 2, n_discordant, 0.5)
    k -= binom.cdf(k, n_discordant, 0.5) > alpha / 2
    gain_fraction = gain / p_discordant
    p_rejection = binom.cdf(k, n_discordant, gain_fraction) + binom.sf(
        n_discordant - k - 1, n_discordant, gain_fraction
    )
    return float(weight @ np.where(k >= 0, p_rejection, 0.0))
