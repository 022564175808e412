"""Fit linear probes to comparisons of items; penalty, scale and tie band are chosen on held-out items.

Comparisons of one item are not independent. Folds are therefore made of items: a comparison is trained on only if
neither of its items is held out, and tested only if both are. In a split by comparison, (i, j) could be in the training
set and (j, i), or i's other comparisons, in the test set, so that even random labels would seem learnable.

There are far more features (576 or more per layer) than labelled items, so that the fit depends strongly on the L2
penalty. Features are scaled so that the mean squared norm of a pair's row is 1, and C is the prior variance of a pair's
log-odds, whatever the model's width or scale.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.judging.preferences import FloatArray, IntArray
from climassay.judging.probe import Probe, States, check_finite, log_length_differences
from climassay.learning.calibration import fit_scale, fit_tie_band
from climassay.learning.linear import davidson_loss, minimise
from climassay.learning.model_file import Provenance
from climassay.learning.splits import FOLDS, Split, cross_predict, group_folds

Ties = Literal["drop", "keep", "three-way"]

REGULARISATIONS = tuple(float(10.0 ** (step / 2)) for step in range(-4, 8))

_MIN_VARIANCE_FRACTION = 1e-12
"""Minimum variance of a principal direction, as a fraction of the largest variance. A direction with less is dropped,
since it is due to rounding."""
_ROUGH_TOLERANCE = 1e-3
"""A fit in cross-validation stops if the gradient norm, relative to its value at zero weights, is below this.

Further steps would change only the fourth digit of the losses.
"""


class Basis(NamedTuple):
    """Rows of features in an orthonormal basis of their span, ordered by decreasing variance."""

    coordinates: FloatArray
    """Coordinates of the rows in the basis, shape [rows, rank]."""
    curvature: FloatArray
    """Sum of squares of each coordinate over the pairs, shape [rank]. Approximate if rows are items, which suffices for
    a preconditioner."""
    expand: Callable[[FloatArray], FloatArray]
    """Function from weights of the coordinates [rank] to weights of the raw features [features]."""


class RegularisationPath(NamedTuple):
    """Cross-validated losses and accuracies for each value of the regularisation C.

    They are measured on pairs with different labels whose two items were held out, and averaged over both orders.
    """

    values: tuple[float, ...]
    """Values of C."""
    losses: tuple[float, ...]
    """Mean log-loss in nats, before the scale is fitted."""
    accuracies: tuple[float, ...]
    chosen: float
    """Value of C with the lowest loss; the final fit uses it."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Log-odds of training pairs, each predicted by a model that was fitted without the two items of the pair."""

    rows: IntArray
    """Indices into the training pairs, shape [n]."""
    log_odds: FloatArray
    """Log-odds on the probe's scale, shape [n]; averaged over both orders if both are present."""
    outcomes: IntArray
    """Outcomes, shape [n]: 1 if the first item of the pair has more of the quality, 0 for a tie, otherwise -1."""


@dataclass(frozen=True, slots=True, eq=False)
class ProbeFit:
    """Fitted probe, and its predictions on held-out pairs."""

    probe: Probe
    path: RegularisationPath | None
    """Losses by C; None for the principal component, and if C was fixed and there are too few items to hold any out."""
    held_out: HeldOut
    pairs: IntArray
    """Pairs that the probe was fitted on, shape [pairs, 2]."""
    n_failed: int = 0
    """Number of pairs omitted because the model returned no activations."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingPairs:
    """Training data of a probe: pairs, their outcomes and further settings of the fit."""

    basis: Basis
    pairs: IntArray
    """Item indices, shape [pairs, 2]."""
    outcomes: IntArray
    """Outcomes, shape [pairs]: 1 if the first item has more of the quality, 0 for a tie, otherwise -1."""
    length_ratios: FloatArray | None = None
    """Logarithms of length ratios to be regressed out, shape [pairs]; None if length is not regressed out."""
    pointwise: bool = False
    """Whether each row of the basis is an item, and a pair is the difference of two rows. If False, each row is a pair.
    """
    ties: Ties = "drop"
    """Treatment of ties, as in :func:`fit_contrast`; ``keep`` counts a tie as "not greater"."""
    balanced: bool = False
    """Whether both answers get the same total weight in the loss."""
    max_iter: int = 1000
    """Maximum number of iterations of a fit."""

    def weights(self, training: NDArray[np.bool_]) -> FloatArray:
        """Return the weight of each pair in the loss, shape [pairs]; 0 for pairs outside the training mask [pairs].

        Balanced weights of pairs with different labels have mean 1. If weights are balanced and one of the two answers
        does not occur, all weights are 0.
        """
        pair_weights, outcomes = training.astype(np.float64), self.answers
        if self.ties == "drop":
            pair_weights[outcomes == 0] = 0.0
        if self.balanced:
            counts = {answer: int(np.count_nonzero(training & (outcomes == answer))) for answer in (1, -1)}
            if not all(counts.values()):
                return np.zeros(len(outcomes))
            for answer, count in counts.items():
                pair_weights[outcomes == answer] *= sum(counts.values()) / (2 * count)
        return pair_weights

    @property
    def answers(self) -> IntArray:
        """Outcomes to fit, shape [pairs]."""
        return np.where(self.outcomes == 0, -1, self.outcomes) if self.ties == "keep" else self.outcomes


def reduce_rows(rows: FloatArray, standardise: bool, pairs: IntArray | None = None) -> Basis:
    """Express rows of features in a basis of their span, scaled so that the mean squared norm over the pairs is 1.

    The rotation is orthonormal, so that the L2-penalised solution is the same as with the original features.

    Args:
        rows: Shape [rows, features], centred.
        standardise: Whether to divide each feature by its standard deviation first; constant features get no weight.
        pairs: Indices of rows, shape [pairs, 2], if a pair is the difference of two rows; None if each row is a pair.

    Raises:
        InputError: All pairs have zero difference, for example because all rows are the same.
    """
    factor = np.ones(rows.shape[1])
    if standardise:
        deviation = rows.std(axis=0)
        has_variance = deviation > 1e-9 * deviation.max(initial=0.0)
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=has_variance)
    scaled_rows = rows * factor
    pair_rows = scaled_rows if pairs is None else scaled_rows[pairs[:, 0]] - scaled_rows[pairs[:, 1]]
    pair_norm = float(np.sqrt(np.einsum("ij,ij->", pair_rows, pair_rows) / max(1, len(pair_rows))))
    if not pair_norm > 0:
        raise InputError("All activations are the same, so nothing can be learned from them.")
    factor /= pair_norm
    scaled_rows /= pair_norm
    has_few_rows = len(rows) < rows.shape[1]
    squares, vectors = np.linalg.eigh(scaled_rows @ scaled_rows.T if has_few_rows else scaled_rows.T @ scaled_rows)
    components = np.flatnonzero(squares > _MIN_VARIANCE_FRACTION * squares[-1])[::-1]
    squares, vectors = squares[components], vectors[:, components]
    density = 1.0 if pairs is None else 2 * len(pairs) / len(rows)
    if has_few_rows:
        singular_values = np.sqrt(squares)
        return Basis(
            vectors * singular_values,
            squares * density,
            lambda u: factor * (scaled_rows.T @ (vectors @ (u / singular_values))),
        )
    return Basis(scaled_rows @ vectors, squares * density, lambda u: factor * (vectors @ u))


def _make_design_operator(comparisons: TrainingPairs, is_training: NDArray[np.bool_]) -> Any:
    """Return the linear operator that maps weights [rank] to log-odds [pairs], centred on the training pairs."""
    from scipy.sparse.linalg import LinearOperator

    rows, length_ratios = comparisons.basis.coordinates, comparisons.length_ratios
    pairs = comparisons.pairs if comparisons.pointwise else None

    def gather(values: FloatArray) -> FloatArray:
        """Return the sum of the pairs' rows, weighted by ``values`` [pairs]; shape [rank]."""
        row_weights = values if pairs is None else pair_sums(values, pairs, len(rows))
        return np.asarray(row_weights @ rows, dtype=np.float64)

    training_weights = is_training.astype(np.float64)
    mean = slope = np.zeros(rows.shape[1])
    if not comparisons.pointwise:
        mean = gather(training_weights) / training_weights.sum()
    if length_ratios is not None and float(training_weights @ length_ratios**2) > 0:
        weighted_ratios = training_weights * length_ratios
        slope = (gather(weighted_ratios) - weighted_ratios.sum() * mean) / float(training_weights @ length_ratios**2)

    def forward(weights: FloatArray) -> FloatArray:
        result = rows @ weights
        if pairs is not None:
            result = result[pairs[:, 0]] - result[pairs[:, 1]]
        result = result - float(mean @ weights)
        return np.asarray(
            result if length_ratios is None else result - length_ratios * float(slope @ weights), dtype=np.float64
        )

    def adjoint(values: FloatArray) -> FloatArray:
        result = gather(values) - float(values.sum()) * mean
        return np.asarray(
            result if length_ratios is None else result - float(values @ length_ratios) * slope, dtype=np.float64
        )

    shape = (len(comparisons.pairs), rows.shape[1])
    return LinearOperator(shape, matvec=forward, rmatvec=adjoint, dtype=np.float64)


def item_folds(pairs: IntArray, groups: ArrayLike, *, seed: int = 0) -> IntArray:
    """Assign items to folds: whole groups, or single items if all form one group.

    Args:
        pairs: Shape [pairs, 2], item indices.
        groups: Shape [items], any labels.
        seed: Seed of the assignment.

    Returns:
        Fold of each item, shape [items], or -1 for items in no pair. There are five folds, or fewer if groups or items
        (two per fold) are too few. With too few items for two folds, all are in fold 0.
    """
    _, group_indices = np.unique(np.asarray(groups), return_inverse=True)
    item_indices = np.unique(pairs)
    units = group_indices if len(np.unique(group_indices[item_indices])) > 1 else np.arange(len(group_indices))
    n_units = len(np.unique(units[item_indices]))
    n_folds = min(FOLDS, n_units if units is group_indices else n_units // 2)
    fold_of_item = np.full(len(group_indices), -1, dtype=np.int64)
    fold_of_item[item_indices] = group_folds(units[item_indices], n_folds, seed=seed) if n_folds > 1 else 0
    return fold_of_item


def pair_splits(pairs: IntArray, folds: IntArray) -> Iterator[Split]:
    """Yield, for each fold, the indices of the pairs to train on and to test on.

    A pair is used for training if neither of its items is in the fold, and for testing if both are. ``pairs`` has the
    shape [pairs, 2], ``folds`` the shape [items].
    """
    pair_folds = folds[pairs]
    for fold in range(int(folds.max(initial=-1)) + 1):
        split = Split(
            np.flatnonzero((pair_folds != fold).all(axis=1)), np.flatnonzero((pair_folds == fold).all(axis=1))
        )
        if len(split.test):
            yield split


def pair_sums(values: FloatArray, pairs: IntArray, items: int) -> FloatArray:
    """Add each pair's value to its first item and subtract it from its second; return the sums, shape [items]."""
    first, second = np.bincount(pairs[:, 0], values, items), np.bincount(pairs[:, 1], values, items)
    return np.asarray(first - second, dtype=np.float64)


def solve(
    comparisons: TrainingPairs,
    training: NDArray[np.bool_],
    c: float,
    start: FloatArray | None = None,
    tolerance: float = 1e-6,
) -> tuple[FloatArray, FloatArray, bool]:
    """Minimise the penalised loss on masked pairs, preconditioned by the curvature at zero weights.

    Args:
        comparisons: All pairs.
        training: Mask of the pairs to fit on, shape [pairs].
        c: Regularisation C, the inverse penalty.
        start: Initial weights, shape [rank]; 0 by default.
        tolerance: Gradient norm at which to stop, relative to the norm at zero weights.

    Returns:
        Weights of the reduced coordinates, shape [rank]; log-odds of all pairs, shape [pairs]; whether the fit
        converged.
    """
    design, outcomes, pair_weights = (
        _make_design_operator(comparisons, training),
        comparisons.answers,
        comparisons.weights(training),
    )
    has_ties = comparisons.ties == "three-way" and bool((pair_weights[outcomes == 0] > 0).any())
    # At zero the second derivative of a logistic loss is 1/4.
    mean_weight = pair_weights.sum() / len(pair_weights)
    weights, _, has_converged = minimise(
        design, davidson_loss(outcomes, pair_weights, has_ties), c, parameters=(0.0,) * has_ties, start=start,
        curvature=mean_weight / 4 * comparisons.basis.curvature, parameter_curvature=pair_weights.sum() / 4,
        tolerance=tolerance, max_iterations=comparisons.max_iter,
    )  # fmt: skip
    return weights, design @ weights, has_converged


def mirror_rows(pairs: IntArray) -> IntArray:
    """Return, for each pair (i, j), the index of the pair (j, i), or -1 if there is none; shape [pairs]."""
    n_items = int(pairs.max(initial=0)) + 1
    keys, mirror_keys = pairs[:, 0] * n_items + pairs[:, 1], pairs[:, 1] * n_items + pairs[:, 0]
    order = np.argsort(keys, kind="stable")
    key_positions = np.minimum(np.searchsorted(keys[order], mirror_keys), max(0, len(order) - 1))
    return np.where(keys[order[key_positions]] == mirror_keys, order[key_positions], -1).astype(np.int64)


def average_orders(log_odds: FloatArray, pairs: IntArray) -> FloatArray:
    """Return the log-odds of each pair (i, j), averaged with the negated log-odds of (j, i), shape [pairs].

    If (j, i) is not among the pairs, the log-odds of (i, j) are returned unchanged.
    """
    mirror = mirror_rows(pairs)
    return np.where(mirror >= 0, (log_odds - log_odds[mirror]) / 2, log_odds)


def _fit_probe(
    method: str,
    comparisons: TrainingPairs,
    mean: FloatArray,
    slope: FloatArray | None,
    groups: ArrayLike,
    regularisation: float | None,
    seed: int,
) -> ProbeFit:
    """Choose C by cross-validation, fit the weights on all pairs, and fit scale and tie band on the held-out log-odds.

    Raises:
        InputError: C is not positive, only one answer occurs, or there are too few items to choose C.
    """
    pairs = comparisons.pairs
    candidates = REGULARISATIONS if regularisation is None else (regularisation,)
    if not all(c > 0 and np.isfinite(c) for c in candidates):
        raise InputError(f"The regularisation C must be a positive number, not {regularisation}.")
    all_pairs = np.ones(len(pairs), dtype=bool)
    if not comparisons.weights(all_pairs).any():
        raise InputError("Every training pair has the same answer; add the mirror (j, i) of each pair.")
    convergence = []

    def mask(rows: IntArray) -> NDArray[np.bool_]:
        return np.isin(np.arange(len(pairs)), rows)

    def fit_path(rows: IntArray) -> FloatArray:
        """Return the log-odds of all pairs for each C, [pairs, n_C]; each fit starts from the previous weights."""
        columns, start = [], None
        for c in candidates:
            start, log_odds, has_converged = solve(comparisons, mask(rows), c, start, _ROUGH_TOLERANCE)
            convergence.append(has_converged)
            columns.append(average_orders(log_odds, pairs))
        return np.stack(columns, axis=1)

    folds = item_folds(pairs, groups, seed=seed)
    splits = (split for split in pair_splits(pairs, folds) if comparisons.weights(mask(split.train)).any())
    log_odds = cross_predict(splits, fit_path, lambda path, rows: path[rows], len(pairs)).reshape(len(pairs), -1)
    rows = np.flatnonzero(np.isfinite(log_odds[:, 0]))
    outcomes = comparisons.outcomes[rows]
    is_differing = outcomes != 0
    if not is_differing.any():
        rows, outcomes, is_differing = rows[:0], outcomes[:0], is_differing[:0]
        if regularisation is None:
            raise InputError(
                "Too few labelled items to choose the regularisation by cross-validation: label more items, or give it."
            )
    path, best_index = None, 0
    if len(rows):
        margins = (log_odds[rows] * outcomes[:, None])[is_differing]
        losses, accuracies = np.logaddexp(0, -margins).mean(axis=0), (margins > 0).mean(axis=0)
        best_index = int(np.argmin(losses))
        path = RegularisationPath(
            tuple(candidates), tuple(losses.tolist()), tuple(accuracies.tolist()), candidates[best_index]
        )
    weights, _, has_converged = solve(comparisons, all_pairs, candidates[best_index])
    has_converged = has_converged and all(convergence)
    if not has_converged:
        message = f"The probe's fit did not converge in {comparisons.max_iter} iterations; allow more, or a smaller C."
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    n_independent = len(np.unique(pairs[rows[is_differing]]))
    scale = fit_scale(log_odds[rows, best_index][is_differing], outcomes[is_differing], independent=n_independent)
    held_out = HeldOut(rows, scale * log_odds[rows, best_index], outcomes)
    n_used = int(np.count_nonzero(comparisons.outcomes)) if comparisons.ties == "drop" else len(pairs)
    settings = {"method": method, "pairs": n_used, "ties": comparisons.ties, "converged": has_converged}
    provenance = Provenance(
        items=len(np.unique(pairs)), regularisation=candidates[best_index], seed=seed, settings=settings
    )
    probe = Probe(
        kind="point" if comparisons.pointwise else "pair",
        weights=comparisons.basis.expand(weights),
        mean=mean,
        scale=scale,
        tie_band=fit_tie_band(held_out.log_odds, outcomes),
        provenance=provenance,
        length_slope=slope,
    )
    return ProbeFit(probe, path, held_out, pairs)


def fit_contrast(
    states: States,
    pairs: IntArray,
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    regularisation: float | None = None,
    ties: Ties = "drop",
    balanced: bool = True,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
    seed: int = 0,
    max_iter: int = 1000,
) -> ProbeFit:
    """Fit a supervised contrast probe: centred, logistic, without intercept.

    Minimises ``|w|^2 / 2 + C * sum(weight * loss)``.

    Args:
        states: Differences of the ordered pairs, shape [pairs, features], which should include both orders of each
            pair.
        pairs: Shape [pairs, 2], item indices (i, j).
        labels: Ratings, shape [items], finite for items in pairs; a higher rating means more of the quality.
        groups: Names of articles or topics, shape [items]. No group is divided between training and test.
        regularisation: C; None chooses it by cross-validated log-loss from 0.01 to 3162, in steps of a factor of
            sqrt(10).
        ties: ``drop`` omits pairs of equal labels, ``keep`` counts them as "not greater" in both orders (as in the
            thesis), ``three-way`` makes them a third outcome, see :func:`~climassay.learning.linear.davidson_loss`.
        balanced: Whether the outcomes "greater" and "not greater" get the same total weight.
        standardise: Whether each feature is scaled to unit variance over the pairs; otherwise one factor scales all
            features. With several layers, the layer with the larger activations would otherwise dominate.
        lengths: Text lengths, shape [items], to be regressed out: each feature's difference is regressed on the log
            length ratio over the training pairs (least squares through the origin), and the residuals are fitted. None
            keeps the features as they are.
        seed: Seed of the folds.
        max_iter: Maximum number of iterations of each fit; if one reaches it, a warning is issued and ``converged`` is
            recorded as False.

    Returns:
        The calibrated probe and its held-out predictions. ``scale`` and ``tie_band`` are fitted on held-out log-odds,
        averaged over both orders if both are present. If there are too few items to hold any out, ``scale`` is 1 and
        ``tie_band`` is 0.

    Raises:
        InputError: Shapes or labels do not match, all pairs have the same outcome, or there are too few items to
            choose C.

    References:
        Maiya (2024), section 3; Davidson (1970), J. Am. Stat. Assoc. 65, 317-328; Platt (1999) for the scale.
    """
    outcomes = _validate_outcomes(pairs, labels, groups)
    rows, mean = _centre(states, pairs)
    length_ratios, slope = _fit_length_slope(rows, lengths, pairs)
    basis = reduce_rows(rows, standardise)
    comparisons = TrainingPairs(basis, pairs, outcomes, length_ratios, ties=ties, balanced=balanced, max_iter=max_iter)
    return _fit_probe("supervised", comparisons, mean, slope, groups, regularisation, seed)


def fit_pointwise(
    states: States,
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    pairs: IntArray,
    regularisation: float | None = None,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
    seed: int = 0,
    max_iter: int = 1000,
) -> ProbeFit:
    """Fit a Bradley-Terry probe: logistic regression on the difference of two items' activations.

    Every pair has the same weight, so that groups with more pairs have more influence. Arguments and errors are as in
    :func:`fit_contrast`, with these differences:

    - ``states`` has the shape [items, features].
    - ``pairs`` are unordered pairs within groups, shape [pairs, 2]; ties affect only the tie band.
    - ``labels`` are NaN for items in no pair.
    - The slope of ``lengths`` is fitted on differences within pairs.
    """
    values = np.asarray(labels, dtype=np.float64)
    outcomes = _validate_outcomes(pairs, values, groups)
    if states.ndim != 2 or len(states) != len(values):
        raise InputError(f"{len(values)} labelled items need as many rows of states, got shape {states.shape}.")
    item_indices = np.unique(pairs)
    check_finite(states[item_indices])
    mean = states[item_indices].mean(axis=0, dtype=np.float64)
    # Items in no pair (without a label, or held out for a test) stay at the mean and do not affect the scaling.
    rows = np.zeros(states.shape)
    rows[item_indices] = states[item_indices] - mean
    length_ratios, slope = _fit_length_slope(rows, lengths, pairs, pointwise=True)
    comparisons = TrainingPairs(
        reduce_rows(rows, standardise, pairs), pairs, outcomes, length_ratios, True, max_iter=max_iter
    )
    return _fit_probe("pointwise", comparisons, mean, slope, groups, regularisation, seed)


def fit_principal(
    states: States,
    pairs: IntArray,
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
) -> ProbeFit:
    """Fit a probe along the first principal component of the centred differences.

    Labels decide only the sign, the scale and the tie band. If both orders of a pair are present, half the difference
    of their rows is used. This removes effects common to both orders, such as the advantage of the first item, which
    would often be the largest component.

    Arguments and errors are as in :func:`fit_contrast`. ``held_out`` is empty, because the component is computed from
    every pair.

    References:
        Burns et al. (2023), arXiv 2212.03827 (CRC); Maiya (2024), section 3.
    """
    outcomes = _validate_outcomes(pairs, labels, groups)
    rows, mean = _centre(states, pairs)
    mirror_indices = mirror_rows(pairs)
    rows = np.where((mirror_indices >= 0)[:, None], (rows - rows[mirror_indices]) / 2, rows)
    length_ratios, slope = _fit_length_slope(rows, lengths, pairs)
    if length_ratios is not None and slope is not None:
        rows -= length_ratios[:, None] * slope
    basis = reduce_rows(rows, standardise)
    projections = basis.coordinates[:, 0]
    sign = 1.0 if float(projections @ outcomes) >= 0 else -1.0
    is_differing, items = outcomes != 0, len(np.unique(pairs))
    scale = fit_scale(sign * projections[is_differing], outcomes[is_differing], independent=items)
    weights = sign * basis.expand(np.eye(1, basis.coordinates.shape[1])[0])
    settings = {"method": "principal", "pairs": len(pairs), "ties": "drop", "converged": True}
    provenance = Provenance(items=items, settings=settings)
    band = fit_tie_band(sign * scale * projections, outcomes)
    no_rows = np.zeros(0, dtype=np.int64)
    probe = Probe("pair", weights, mean, scale, band, provenance, slope)
    return ProbeFit(probe, None, HeldOut(no_rows, np.zeros(0), no_rows), pairs)


def _validate_outcomes(pairs: IntArray, labels: ArrayLike, groups: ArrayLike) -> IntArray:
    """Return the outcome of each pair, 1, 0 (tie) or -1, shape [pairs], after validating the arguments."""
    values = np.asarray(labels, dtype=np.float64)
    if values.ndim != 1 or np.asarray(groups).shape != values.shape:
        raise InputError(f"{values.size} labels need as many groups, got {np.asarray(groups).size}.")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise InputError(f"Pairs must have shape [pairs, 2] with at least one pair, got {pairs.shape}.")
    if pairs.min() < 0 or pairs.max() >= len(values):
        raise InputError(f"A pair names item {pairs.max() if pairs.min() >= 0 else pairs.min()} of {len(values)}.")
    if not np.isfinite(values[pairs]).all():
        raise InputError("Some items in training pairs have no label; leave those pairs out.")
    result = np.sign(values[pairs[:, 0]] - values[pairs[:, 1]]).astype(np.int64)
    if not result.any():
        raise InputError("All training pairs are ties, so no probe can be fitted; label items that differ.")
    return result


def _centre(states: States, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Subtract the mean over the pairs; return the centred states [pairs, features] and the mean [features]."""
    if states.ndim != 2 or len(states) != len(pairs):
        raise InputError(f"{len(pairs)} pairs need as many rows of activations, got shape {states.shape}.")
    check_finite(states)
    rows = states.astype(np.float64)
    mean = rows.mean(axis=0)
    return rows - mean, mean


def _fit_length_slope(
    rows: FloatArray, lengths: ArrayLike | None, pairs: IntArray, *, pointwise: bool = False
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return log length ratios [pairs] and each feature's regression slope on them [features]; None without lengths."""
    if lengths is None:
        return None, None
    length_ratios = log_length_differences(lengths, pairs)
    sum_of_squares = float(length_ratios @ length_ratios)
    values = pair_sums(length_ratios, pairs, len(rows)) if pointwise else length_ratios
    return length_ratios, np.asarray(
        values @ rows / sum_of_squares if sum_of_squares > 0 else np.zeros(rows.shape[1]), dtype=np.float64
    )
