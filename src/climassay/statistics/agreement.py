"""Agreement between annotators, and between rankings: kappa, alpha, rank correlation with intervals."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.statistics.intervals import Interval

Measurement = Literal["nominal", "ordinal", "interval"]


def is_missing(value: Any) -> bool:
    """Return whether a rating is None or NaN, as tables have it if somebody did not rate an item."""
    try:
        return value is None or bool(value != value)  # only NaN differs from itself
    except (TypeError, ValueError):
        return True  # pandas' NA compares to NA


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    order: Sequence[Hashable] | None = None,
) -> float:
    """Cohen's kappa of two annotators: 1 perfect, 0 chance, below 0 worse than chance.

    Items that one of the two has not labelled (None or NaN) are left out.

    Args:
        first: One label an item.
        second: Labels of the same items by the other annotator.
        weights: None counts every disagreement alike; ``linear`` or ``quadratic`` by distance in ``order``.
        order: The ordered labels; needed with weights.

    Returns:
        Kappa; 1.0 where both annotators use one and the same label throughout (agreement is full).

    Raises:
        InputError: The lists are of different lengths or share no labelled item, weights come without an order, or a
            label is not in it.

    References:
        Cohen, J. (1960), Educ. Psychol. Meas. 20, 37-46; Cohen, J. (1968), Psychol. Bull. 70, 213-220.
    """
    if len(first) != len(second) or not len(first):
        raise InputError(f"Kappa needs two lists of equal length, got {len(first)} and {len(second)}.")
    both = [pair for pair in zip(first, second, strict=True) if not any(map(is_missing, pair))]
    if not both:
        raise InputError("Kappa needs at least one item that both have labelled.")
    first, second = zip(*both, strict=True)
    if weights and order is None:
        raise InputError("Weighted kappa needs the order of the labels.")
    labels = list(order) if order is not None else list(dict.fromkeys([*first, *second]))
    place = {label: index for index, label in enumerate(labels)}
    unknown = [label for label in [*first, *second] if label not in place]
    if unknown:
        raise InputError(f"The label {unknown[0]!r} is not in the order given.")
    from sklearn.metrics import cohen_kappa_score

    # Where both use one label throughout, chance is perfect too, and kappa 0 / 0.
    a, b = ([place[label] for label in one] for one in (first, second))
    if len({*a, *b}) == 1:
        return 1.0
    return float(cohen_kappa_score(a, b, labels=range(len(labels)), weights=weights))


def fleiss_kappa(counts: ArrayLike) -> float:
    """Fleiss' kappa of many annotators.

    Args:
        counts: Shape [items, labels]: how many annotators gave the label; every row sums to the same number (>= 2).

    Raises:
        InputError: The counts are no such table.

    References:
        Fleiss, J. L. (1971), Psychol. Bull. 76, 378-382.
    """
    table = np.asarray(counts, dtype=np.float64)
    if (
        table.ndim != 2
        or table.size == 0
        or not np.isfinite(table).all()
        or len(set(table.sum(1))) != 1
        or table[0].sum() < 2
    ):
        raise InputError(
            "Fleiss' kappa needs a table of items by labels with the same number (>= 2) of labels per item."
        )
    raters = table[0].sum()
    share = table.sum(0) / table.sum()
    observed = float((((table**2).sum(1) - raters) / (raters * (raters - 1))).mean())
    chance = float((share**2).sum())
    return 1.0 if chance == 1 else (observed - chance) / (1 - chance)


def krippendorff_alpha(
    ratings: Sequence[Sequence[Hashable | None]],
    *,
    measurement: Measurement = "nominal",
    order: Sequence[Hashable] | None = None,
) -> float:
    """Krippendorff's alpha; annotators may miss items.

    Args:
        ratings: One row per annotator, one column per item, None or NaN if not rated.
        measurement: ``nominal``, ``ordinal`` (labels in ``order``) or ``interval`` (numbers).
        order: The ordered labels; needed for ordinal.

    Returns:
        Alpha; 1.0 where all values are equal.

    Raises:
        InputError: Rows of different lengths, no item with two ratings, an ordinal measurement without its order, a
            label that is not in the order, or an interval measurement of what is not a number.

    References:
        Krippendorff, K. (2011), Computing Krippendorff's alpha-reliability.
    """
    if len({len(row) for row in ratings}) != 1:
        raise InputError("Every annotator's row needs one entry per item.")
    alike = Counter(tuple(value for value in unit if not is_missing(value)) for unit in zip(*ratings, strict=True))
    units = {unit: times for unit, times in alike.items() if len(unit) >= 2}
    if not units:
        raise InputError("Alpha needs at least one item rated by two annotators.")
    if measurement == "ordinal" and order is None:
        raise InputError("Ordinal alpha needs the order of the labels.")
    values = list(order) if order is not None else list(dict.fromkeys(v for unit in units for v in unit))
    place = {value: index for index, value in enumerate(values)}
    unknown = [value for unit in units for value in unit if value not in place]
    if unknown:
        raise InputError(f"The label {unknown[0]!r} is not in the order given.")
    coincidence = np.zeros((len(values), len(values)))
    for unit, times in units.items():
        counts = Counter(unit)
        for a, m in counts.items():
            for b, n in counts.items():
                coincidence[place[a], place[b]] += times * m * (n - (a == b)) / (len(unit) - 1)
    totals = coincidence.sum(0)
    cost = _alpha_distance(measurement, values, totals)
    expected = float((np.outer(totals, totals) * cost).sum() / (totals.sum() - 1))
    return 1.0 if expected == 0 else 1.0 - float((coincidence * cost).sum()) / expected


def _alpha_distance(measurement: Measurement, values: Sequence[Hashable], totals: np.ndarray) -> np.ndarray:
    """Squared distances between values, shape [values, values]."""
    size = len(values)
    if measurement == "nominal":
        return 1.0 - np.eye(size)
    if measurement == "interval":
        try:
            numbers = np.array([float(value) for value in values])  # type: ignore[arg-type]  # found out by trying
        except (TypeError, ValueError):
            raise InputError("Interval alpha needs labels that are numbers.") from None
        return np.asarray(np.subtract.outer(numbers, numbers) ** 2)
    # All values from one to the other, the ends counted half: the way from the middle of one to that of the other.
    middles = np.cumsum(totals) - totals / 2
    return np.asarray(np.subtract.outer(middles, middles) ** 2)


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

    def ranks(values: FloatArray) -> FloatArray:
        """Mean ranks of the items within each resample, [resamples, n]."""
        different, places = np.unique(values, return_inverse=True)
        order = np.argsort(values)
        there = np.add.reduceat(counts[:, order], np.searchsorted(values, different, sorter=order), axis=1)
        return np.asarray((there.cumsum(axis=1) - (there - 1) / 2)[:, places])

    # The ranks of n items have the mean (n + 1) / 2, with ties and without.
    a, b = (ranks(values) - (len(first) + 1) / 2 for values in (first, second))
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
    rated = ~(np.isnan(a) | np.isnan(b))
    a, b = a[rated], b[rated]
    if a.size < 3:
        raise InputError(f"A rank correlation needs at least 3 items with both numbers, got {a.size}.")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        raise InputError("A rank correlation is undefined where one list is constant.")
    result = measure(a, b)
    chosen = np.random.default_rng(seed).integers(0, len(a), (resamples, len(a)))
    # A resample that happens to be constant has no rank correlation and says nothing.
    low, high = np.nanquantile(resampled(a, b, chosen), [(1 - level) / 2, (1 + level) / 2])
    return Correlation(float(result.statistic), Interval(float(low), float(high)), len(a), float(result.pvalue))


def spearman(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Correlation:
    """Spearman's rho (ties get mean ranks); items with NaN in one of the lists are left out, and not counted.

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
