"""Agreement between annotators, and between rankings: kappa, alpha, rank correlation with intervals."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.statistics.intervals import Interval

Measurement = Literal["nominal", "ordinal", "interval"]
MAX_PERMUTED_ITEMS = 8
"""Maximum number of items for which the p-value of Spearman's rho is computed from all permutations."""


def is_missing(value: Any) -> bool:
    """Return whether a rating is None or NaN, as tables contain for items that an annotator did not rate."""
    try:
        return value is None or bool(value != value)  # only NaN differs from itself
    except (TypeError, ValueError):
        return True  # comparisons with pandas' NA give NA


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    order: Sequence[Hashable] | None = None,
) -> float:
    """Return Cohen's kappa of two annotators: 1 is perfect agreement, 0 chance, and less is worse than chance.

    Items with a missing label (None or NaN) are ignored.

    Args:
        first: Labels of the items by the first annotator.
        second: Labels of the items by the second annotator.
        weights: Weight of a disagreement: None for 1, ``linear`` or ``quadratic`` for the distance in ``order``.
        order: Ordered labels; required with weights.

    Returns:
        Kappa; 1.0 if both annotators use one label for all items.

    Raises:
        InputError: The lengths differ, no item has both labels, ``order`` is missing, or a label is not in it.

    References:
        Cohen, J. (1960), Educ. Psychol. Meas. 20, 37-46; Cohen, J. (1968), Psychol. Bull. 70, 213-220.
    """
    if len(first) != len(second) or not len(first):
        raise InputError(f"Kappa needs two lists of equal length, got {len(first)} and {len(second)}.")
    pairs = [pair for pair in zip(first, second, strict=True) if not any(map(is_missing, pair))]
    if not pairs:
        raise InputError("Kappa needs at least one item that both have labelled.")
    first, second = zip(*pairs, strict=True)
    if weights and order is None:
        raise InputError("Weighted kappa needs the order of the labels.")
    labels = list(order) if order is not None else list(dict.fromkeys([*first, *second]))
    indices = {label: index for index, label in enumerate(labels)}
    unknown_labels = [label for label in [*first, *second] if label not in indices]
    if unknown_labels:
        raise InputError(f"The label {unknown_labels[0]!r} is not in the order given.")
    from sklearn.metrics import cohen_kappa_score

    # With a single label, kappa would be 0 / 0.
    a, b = ([indices[label] for label in annotator_labels] for annotator_labels in (first, second))
    if len({*a, *b}) == 1:
        return 1.0
    return float(cohen_kappa_score(a, b, labels=range(len(labels)), weights=weights))


def fleiss_kappa(counts: ArrayLike) -> float:
    """Return Fleiss' kappa of several annotators.

    Args:
        counts: Number of annotators who gave each label, shape [items, labels]; all rows have the same sum (>= 2).

    Raises:
        InputError: The counts have another shape, or rows have different sums.

    References:
        Fleiss, J. L. (1971), Psychol. Bull. 76, 378-382.
    """
    table = np.asarray(counts, dtype=np.float64)
    if (
        table.ndim != 2
        or table.size == 0
        or not np.isfinite(table).all()
        or (table < 0).any()
        or len(set(table.sum(1))) != 1
        or table[0].sum() < 2
    ):
        raise InputError(
            "Fleiss' kappa needs a table of items by labels with the same number (>= 2) of labels per item."
        )
    n_raters = table[0].sum()
    proportions = table.sum(0) / table.sum()
    observed_agreement = float((((table**2).sum(1) - n_raters) / (n_raters * (n_raters - 1))).mean())
    chance_agreement = float((proportions**2).sum())
    return 1.0 if chance_agreement == 1 else (observed_agreement - chance_agreement) / (1 - chance_agreement)


def krippendorff_alpha(
    ratings: Sequence[Sequence[Hashable | None]],
    *,
    measurement: Measurement = "nominal",
    order: Sequence[Hashable] | None = None,
) -> float:
    """Return Krippendorff's alpha of several annotators, some of whose ratings may be missing.

    Args:
        ratings: Shape [annotators, items]; None or NaN for a missing rating.
        measurement: ``nominal``, ``ordinal`` (labels in ``order``) or ``interval`` (numbers).
        order: Ordered labels; required for ``ordinal``.

    Returns:
        Alpha; 1.0 if all values are equal.

    Raises:
        InputError: Rows have different lengths, no item has two ratings, ``order`` is missing, a label is not in
            ``order``, or a rating of an interval measurement is not a finite number.

    References:
        Krippendorff, K. (2011), Computing Krippendorff's alpha-reliability.
    """
    if len({len(row) for row in ratings}) != 1:
        raise InputError("Every annotator's row needs one entry per item.")
    unit_counts = Counter(
        tuple(value for value in unit if not is_missing(value)) for unit in zip(*ratings, strict=True)
    )
    units = {unit: n_items for unit, n_items in unit_counts.items() if len(unit) >= 2}
    if not units:
        raise InputError("Alpha needs at least one item rated by two annotators.")
    if measurement == "ordinal" and order is None:
        raise InputError("Ordinal alpha needs the order of the labels.")
    values = list(order) if order is not None else list(dict.fromkeys(v for unit in units for v in unit))
    indices = {value: index for index, value in enumerate(values)}
    unknown_labels = [value for unit in units for value in unit if value not in indices]
    if unknown_labels:
        raise InputError(f"The label {unknown_labels[0]!r} is not in the order given.")
    coincidence = np.zeros((len(values), len(values)))
    for unit, n_items in units.items():
        counts = Counter(unit)
        for a, m in counts.items():
            for b, n in counts.items():
                coincidence[indices[a], indices[b]] += n_items * m * (n - (a == b)) / (len(unit) - 1)
    totals = coincidence.sum(0)
    distances = _compute_distances(measurement, values, totals)
    expected_disagreement = float((np.outer(totals, totals) * distances).sum() / (totals.sum() - 1))
    return 1.0 if expected_disagreement == 0 else 1.0 - float((coincidence * distances).sum()) / expected_disagreement


def _compute_distances(measurement: Measurement, values: Sequence[Hashable], totals: np.ndarray) -> np.ndarray:
    size = len(values)
    if measurement == "nominal":
        return 1.0 - np.eye(size)
    if measurement == "interval":
        try:
            numbers = np.array([float(value) for value in values])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            numbers = np.array([np.nan])
        if not np.isfinite(numbers).all():
            raise InputError("Interval alpha needs labels that are finite numbers.")
        return np.asarray(np.subtract.outer(numbers, numbers) ** 2)
    # The distance of two values is the number of ratings between them, with the ratings of both values counted half.
    mid_ranks = np.cumsum(totals) - totals / 2
    return np.asarray(np.subtract.outer(mid_ranks, mid_ranks) ** 2)


FloatArray = NDArray[np.float64]
_BATCH_SIZE = 1000
"""Number of items whose comparisons with all items are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Rank correlation with a bootstrap interval from resampled items."""

    value: float
    interval: Interval
    n: int
    p_value: float
    """Two-sided p-value from the asymptotic distribution."""


def spearman_of_resamples(first: FloatArray, second: FloatArray, indices: NDArray[np.int64]) -> FloatArray:
    """Return Spearman's rho of each resample of two lists, shape [n] each; ties get mean ranks.

    ``indices`` has the indices of the items in each resample, shape [resamples, n].

    Returns:
        Correlations, shape [resamples]; NaN for resamples in which a list is constant.
    """
    counts = _count_draws(indices)

    def ranks(values: FloatArray) -> FloatArray:
        """Return the ranks of the items in each resample, shape [resamples, n]; tied items get their mean rank."""
        distinct_values, value_indices = np.unique(values, return_inverse=True)
        order = np.argsort(values)
        value_starts = np.searchsorted(values, distinct_values, sorter=order)
        value_counts = np.add.reduceat(counts[:, order], value_starts, axis=1)
        return np.asarray((value_counts.cumsum(axis=1) - (value_counts - 1) / 2)[:, value_indices])

    # The mean rank of n items is (n + 1) / 2, also with ties.
    a, b = (ranks(values) - (len(first) + 1) / 2 for values in (first, second))
    return _divide_by_norms(*((counts * product).sum(axis=1) for product in (a * b, a * a, b * b)))


def kendall_of_resamples(first: FloatArray, second: FloatArray, indices: NDArray[np.int64]) -> FloatArray:
    """Return Kendall's tau-b of each resample of two lists; arguments are as in :func:`spearman_of_resamples`."""
    counts = _count_draws(indices)
    ranks = [np.unique(values, return_inverse=True)[1] for values in (first, second)]
    sums = np.zeros((3, len(indices)))
    # Each pair of items is compared once and weighted by the product of the items' counts.
    for start in range(0, len(first), _BATCH_SIZE):
        batch = slice(start, start + _BATCH_SIZE)
        a, b = (np.sign(list_ranks[:, None] - list_ranks[batch]) for list_ranks in ranks)
        sums += [((counts @ signs) * counts[:, batch]).sum(axis=1) for signs in (a * b, a * a, b * b)]
    return _divide_by_norms(*(sums / 2))


def _count_draws(indices: NDArray[np.int64]) -> FloatArray:
    return np.array([np.bincount(row, minlength=indices.shape[1]) for row in indices], dtype=np.float64)


def _divide_by_norms(product: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return product / np.sqrt(first) / np.sqrt(second)


def _correlate(
    first: ArrayLike,
    second: ArrayLike,
    correlation: Callable[[FloatArray, FloatArray], tuple[float, float]],
    correlation_of_resamples: Callable[[FloatArray, FloatArray, NDArray[np.int64]], FloatArray],
    level: float,
    resamples: int,
    seed: int,
) -> Correlation:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size < 3:
        raise InputError(f"A rank correlation needs two lists of at least 3 numbers each, got {a.shape} and {b.shape}.")
    is_complete = ~(np.isnan(a) | np.isnan(b))
    a, b = a[is_complete], b[is_complete]
    if a.size < 3:
        raise InputError(f"A rank correlation needs at least 3 items with both numbers, got {a.size}.")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        raise InputError("A rank correlation is undefined if a list is constant.")
    statistic, p_value = correlation(a, b)
    indices = np.random.default_rng(seed).integers(0, len(a), (resamples, len(a)))
    # Resamples with a constant list have no rank correlation and are ignored.
    correlations = correlation_of_resamples(a, b, indices).clip(-1, 1)  # rounding errors may exceed 1
    low, high = np.nanquantile(correlations, [(1 - level) / 2, (1 + level) / 2])
    return Correlation(float(statistic), Interval(float(low), float(high)), len(a), float(p_value))


def spearman(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Correlation:
    """Return Spearman's rho, with mean ranks for ties; items with NaN in either list are ignored.

    For up to :data:`MAX_PERMUTED_ITEMS` items, the p-value is that of all permutations, because the approximation by
    Student's t gives 0 for three items in the same order.

    Args:
        first: First list, shape [n], n >= 3, not constant.
        second: Second list, shape [n], not constant.
        level: Confidence level.
        resamples: Number of bootstrap samples over items.
        seed: Random seed of the bootstrap.
    """
    from scipy.stats import rankdata, spearmanr

    def correlate(a: FloatArray, b: FloatArray) -> tuple[float, float]:
        statistic, p_value = spearmanr(a, b)
        if len(a) <= MAX_PERMUTED_ITEMS:
            ranks = rankdata(b) - (len(b) + 1) / 2
            products = np.array(list(permutations(ranks))) @ rankdata(a)
            p_value = np.mean(np.abs(products) >= abs(ranks @ rankdata(a)) - 1e-9)
        return float(statistic), float(p_value)

    return _correlate(first, second, correlate, spearman_of_resamples, level, resamples, seed)


def kendall(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Correlation:
    """Return Kendall's tau-b; arguments are as in :func:`spearman`."""
    from scipy.stats import kendalltau

    return _correlate(first, second, kendalltau, kendall_of_resamples, level, resamples, seed)
