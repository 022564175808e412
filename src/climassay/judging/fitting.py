"""Fits of linear probes to comparisons of items, with penalty, scale and tie band chosen on held-out items.

Comparisons of one item are not independent. Folds are therefore made of items: a comparison is trained on only if
neither of its items is held out, and tested only if both are. A split by comparison would put (i, j) into training and
(j, i), or i's other comparisons, into the test: random labels then look learnable.

Features far outnumber what a few labelled items can tell (576 a layer and more), so everything rests on the L2
penalty: features are scaled so that the mean squared norm of a pair's row is 1, and C is the prior variance of a pair's
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
from climassay.learning.splits import FOLDS, Split, group_folds, held_out

Ties = Literal["drop", "keep", "three-way"]

REGULARISATIONS = tuple(float(10.0 ** (step / 2)) for step in range(-4, 8))

_SMALLEST = 1e-12
"""Directions with a smaller share of the largest direction's variance are rounding error."""
_ROUGH_TOLERANCE = 1e-3
"""Gradient, as a share of that at zero, at which a cross-validation fit stops: losses change in the fourth digit."""


class Basis(NamedTuple):
    """Rows of features in coordinates of an orthonormal basis of their span, principal direction first."""

    coordinates: FloatArray
    """Shape [rows, rank]."""
    curvature: FloatArray
    """Shape [rank]: sum of squares of each coordinate over pairs (approximate for items); for preconditioning only."""
    expand: Callable[[FloatArray], FloatArray]
    """Weights [rank] of coordinates to weights [features] of the raw features."""


class RegularisationPath(NamedTuple):
    """Cross-validated figures of each C, on differing pairs whose items were both held out, both orders averaged."""

    values: tuple[float, ...]
    losses: tuple[float, ...]
    """Mean log-loss in nats, before the scale is fitted."""
    accuracies: tuple[float, ...]
    chosen: float


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Log-odds of training pairs by models that were fitted without their items."""

    rows: IntArray
    """Shape [n], rows of the training pairs."""
    log_odds: FloatArray
    """Shape [n], with the model's scale; both orders are averaged if both are present."""
    outcomes: IntArray
    """Shape [n], 1, 0 (tie) or -1."""


@dataclass(frozen=True, slots=True, eq=False)
class ProbeFit:
    """A probe and the held-out evidence for its settings."""

    probe: Probe
    path: RegularisationPath | None
    """None for the principal component, and if C was fixed and the items are too few to hold any out."""
    held_out: HeldOut
    pairs: IntArray
    """Shape [pairs, 2]: the pairs that the probe was fitted on."""
    n_failed: int = 0
    """Number of pairs left out because the model gave no activations."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Pairs, outcomes and reduced features that a probe is fitted to."""

    basis: Basis
    pairs: IntArray
    """Shape [pairs, 2], item indices."""
    outcomes: IntArray
    """Shape [pairs], 1, 0 (tie) or -1."""
    stretch: FloatArray | None = None
    """Shape [pairs], log length ratios to regress out; None: none."""
    pointwise: bool = False
    """Rows of the basis are items, so that a pair is the difference of two rows; otherwise rows are pairs."""
    ties: Ties = "drop"
    """Treatment of ties; ``keep`` counts a tie as "not greater"."""
    balanced: bool = False
    """Give both answers the same total weight."""
    max_iter: int = 1000

    def weights(self, training: NDArray[np.bool_]) -> FloatArray:
        """Return the weight of the loss of each pair, shape [pairs]; 0 for pairs outside the training mask [pairs].

        Balanced weights of pairs that differ have mean 1. All weights are 0 if one of two answers to balance is
        missing.
        """
        weight, outcomes = training.astype(np.float64), self.answers
        if self.ties == "drop":
            weight[outcomes == 0] = 0.0
        if self.balanced:
            counts = {answer: int(np.count_nonzero(training & (outcomes == answer))) for answer in (1, -1)}
            if not all(counts.values()):
                return np.zeros(len(outcomes))
            for answer, count in counts.items():
                weight[outcomes == answer] *= sum(counts.values()) / (2 * count)
        return weight

    @property
    def answers(self) -> IntArray:
        """Outcomes to fit, shape [pairs]."""
        return np.where(self.outcomes == 0, -1, self.outcomes) if self.ties == "keep" else self.outcomes


def reduce_rows(rows: FloatArray, standardise: bool, pairs: IntArray | None = None) -> Basis:
    """Scale features so that the mean squared norm of a pair's row is 1, and rotate the rows into their span.

    The rotation is orthonormal, so that the L2-penalised solution is the same as in all features.

    Args:
        rows: Shape [rows, features], centred.
        standardise: Divide each feature by its standard deviation first; constant features get no weight.
        pairs: Shape [pairs, 2]: pairs are differences of rows; None: the rows are the pairs.

    Raises:
        InputError: All rows are the same.
    """
    factor = np.ones(rows.shape[1])
    if standardise:
        deviation = rows.std(axis=0)
        alive = deviation > 1e-9 * deviation.max(initial=0.0)
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=alive)
    scaled = rows * factor
    of_pairs = scaled if pairs is None else scaled[pairs[:, 0]] - scaled[pairs[:, 1]]
    size = float(np.sqrt(np.einsum("ij,ij->", of_pairs, of_pairs) / max(1, len(of_pairs))))
    if not size > 0:
        raise InputError("All activations are the same, so nothing can be learned from them.")
    factor /= size
    scaled /= size
    few_rows = len(rows) < rows.shape[1]
    squares, vectors = np.linalg.eigh(scaled @ scaled.T if few_rows else scaled.T @ scaled)
    components = np.flatnonzero(squares > _SMALLEST * squares[-1])[::-1]
    squares, vectors = squares[components], vectors[:, components]
    density = 1.0 if pairs is None else 2 * len(pairs) / len(rows)
    if few_rows:
        singular = np.sqrt(squares)
        return Basis(vectors * singular, squares * density, lambda u: factor * (scaled.T @ (vectors @ (u / singular))))
    return Basis(scaled @ vectors, squares * density, lambda u: factor * (vectors @ u))


def _design(comparisons: Comparisons, training: NDArray[np.bool_]) -> Any:
    """Return the linear map from weights [rank] to log-odds [pairs], centred on the training pairs."""
    from scipy.sparse.linalg import LinearOperator

    rows, stretch = comparisons.basis.coordinates, comparisons.stretch
    pairs = comparisons.pairs if comparisons.pointwise else None

    def gather(values: FloatArray) -> FloatArray:
        """Return the sum of the rows of all pairs, weighted by the values."""
        of_rows = values if pairs is None else pair_sums(values, pairs, len(rows))
        return np.asarray(of_rows @ rows, dtype=np.float64)

    part = training.astype(np.float64)
    mean = slope = np.zeros(rows.shape[1])
    if not comparisons.pointwise:
        mean = gather(part) / part.sum()
    if stretch is not None and float(part @ stretch**2) > 0:
        weighted = part * stretch
        slope = (gather(weighted) - weighted.sum() * mean) / float(part @ stretch**2)

    def forward(weights: FloatArray) -> FloatArray:
        out = rows @ weights
        if pairs is not None:
            out = out[pairs[:, 0]] - out[pairs[:, 1]]
        out = out - float(mean @ weights)
        return np.asarray(out if stretch is None else out - stretch * float(slope @ weights), dtype=np.float64)

    def adjoint(values: FloatArray) -> FloatArray:
        out = gather(values) - float(values.sum()) * mean
        return np.asarray(out if stretch is None else out - float(values @ stretch) * slope, dtype=np.float64)

    shape = (len(comparisons.pairs), rows.shape[1])
    return LinearOperator(shape, matvec=forward, rmatvec=adjoint, dtype=np.float64)


def item_folds(pairs: IntArray, groups: ArrayLike, *, seed: int = 0) -> IntArray:
    """Assign items to folds: whole groups, or single items if all form one group.

    Args:
        pairs: Shape [pairs, 2], item indices.
        groups: Shape [items], any labels.
        seed: Seed of the assignment.

    Returns:
        Shape [items]: one of five folds, fewer if there are not enough groups or not two items per fold; -1 for items
        in no pair. All zero or -1 if the items are too few for two folds.
    """
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    present = np.unique(pairs)
    units = group if len(np.unique(group[present])) > 1 else np.arange(len(group))
    members = len(np.unique(units[present]))
    count = min(FOLDS, members if units is group else members // 2)
    assigned = np.full(len(group), -1, dtype=np.int64)
    assigned[present] = group_folds(units[present], count, seed=seed) if count > 1 else 0
    return assigned


def pair_splits(pairs: IntArray, folds: IntArray) -> Iterator[Split]:
    """Yield for each fold the rows of pairs to train on and to test.

    A pair is trained on if neither of its items is held out, and tested if both are. Pairs have the shape [pairs, 2],
    folds of items the shape [items].
    """
    sides = folds[pairs]
    for fold in range(int(folds.max(initial=-1)) + 1):
        split = Split(np.flatnonzero((sides != fold).all(axis=1)), np.flatnonzero((sides == fold).all(axis=1)))
        if len(split.test):
            yield split


def pair_sums(values: FloatArray, pairs: IntArray, items: int) -> FloatArray:
    """Add the value of each pair to its first item and subtract it from its second; shape [items]."""
    first, second = np.bincount(pairs[:, 0], values, items), np.bincount(pairs[:, 1], values, items)
    return np.asarray(first - second, dtype=np.float64)


def solve(
    comparisons: Comparisons,
    training: NDArray[np.bool_],
    c: float,
    start: FloatArray | None = None,
    tolerance: float = 1e-6,
) -> tuple[FloatArray, FloatArray, bool]:
    """Fit on the pairs of a mask, preconditioned by the curvature at zero.

    Args:
        comparisons: All pairs.
        training: Shape [pairs]: the pairs to fit on.
        c: Regularisation.
        start: Initial weights, shape [rank]; 0 by default.
        tolerance: Gradient at which to stop, as a share of the gradient at zero.

    Returns:
        Weights of the reduced coordinates, shape [rank]; log-odds of all pairs, shape [pairs]; whether the fit
        converged.
    """
    design, outcomes, weight = _design(comparisons, training), comparisons.answers, comparisons.weights(training)
    with_ties = comparisons.ties == "three-way" and bool((weight[outcomes == 0] > 0).any())
    # At zero the second derivative of a logistic loss is 1/4.
    share = weight.sum() / len(weight)
    weights, _, converged = minimise(
        design, davidson_loss(outcomes, weight, with_ties), c, parameters=(0.0,) * with_ties, start=start,
        curvature=share / 4 * comparisons.basis.curvature, parameter_curvature=weight.sum() / 4, tolerance=tolerance,
        max_iterations=comparisons.max_iter,
    )  # fmt: skip
    return weights, design @ weights, converged


def mirror_rows(pairs: IntArray) -> IntArray:
    """Return the row of the mirror (j, i) of each pair, or -1 if the mirror is not among the pairs; shape [pairs]."""
    count = int(pairs.max(initial=0)) + 1
    forward, back = pairs[:, 0] * count + pairs[:, 1], pairs[:, 1] * count + pairs[:, 0]
    order = np.argsort(forward, kind="stable")
    at = np.minimum(np.searchsorted(forward[order], back), max(0, len(order) - 1))
    return np.where(forward[order[at]] == back, order[at], -1).astype(np.int64)


def average_orders(log_odds: FloatArray, pairs: IntArray) -> FloatArray:
    """Return the mean of the log-odds of (i, j) and the negated log-odds of (j, i), shape [pairs].

    The log-odds of a pair whose mirror is not among the pairs is returned unchanged.
    """
    mirror = mirror_rows(pairs)
    return np.where(mirror >= 0, (log_odds - log_odds[mirror]) / 2, log_odds)


def _fit(
    method: str,
    comparisons: Comparisons,
    mean: FloatArray,
    slope: FloatArray | None,
    groups: ArrayLike,
    regularisation: float | None,
    seed: int,
) -> ProbeFit:
    """Choose C on held-out items, fit scale and tie band on the held-out pairs, then fit the weights on all pairs.

    Raises:
        InputError: C is not positive, only one answer occurs, or the items are too few to choose C.
    """
    pairs = comparisons.pairs
    candidates = REGULARISATIONS if regularisation is None else (regularisation,)
    if not all(c > 0 and np.isfinite(c) for c in candidates):
        raise InputError(f"The regularisation C must be a positive number, not {regularisation}.")
    all_pairs = np.ones(len(pairs), dtype=bool)
    if not comparisons.weights(all_pairs).any():
        raise InputError("Every training pair has the same answer; add the mirror (j, i) of each pair.")
    fits_converged = []

    def mask(rows: IntArray) -> NDArray[np.bool_]:
        return np.isin(np.arange(len(pairs)), rows)

    def fit_path(rows: IntArray) -> FloatArray:
        """Return the log-odds of all pairs at each C, shape [pairs, C]; each fit starts from the previous weights."""
        columns, start = [], None
        for c in candidates:
            start, log_odds, converged = solve(comparisons, mask(rows), c, start, _ROUGH_TOLERANCE)
            fits_converged.append(converged)
            columns.append(average_orders(log_odds, pairs))
        return np.stack(columns, axis=1)

    folds = item_folds(pairs, groups, seed=seed)
    splits = (split for split in pair_splits(pairs, folds) if comparisons.weights(mask(split.train)).any())
    log_odds = held_out(splits, fit_path, lambda path, rows: path[rows], len(pairs)).reshape(len(pairs), -1)
    rows = np.flatnonzero(np.isfinite(log_odds[:, 0]))
    outcomes = comparisons.outcomes[rows]
    differ = outcomes != 0
    if not differ.any():
        rows, outcomes, differ = rows[:0], outcomes[:0], differ[:0]
        if regularisation is None:
            raise InputError(
                "Too few labelled items to choose the regularisation by cross-validation: label more items, or give it."
            )
    path, best = None, 0
    if len(rows):
        margins = (log_odds[rows] * outcomes[:, None])[differ]
        losses, accuracies = np.logaddexp(0, -margins).mean(axis=0), (margins > 0).mean(axis=0)
        best = int(np.argmin(losses))
        path = RegularisationPath(
            tuple(candidates), tuple(losses.tolist()), tuple(accuracies.tolist()), candidates[best]
        )
    weights, _, converged = solve(comparisons, all_pairs, candidates[best])
    converged = converged and all(fits_converged)
    if not converged:
        message = f"The probe's fit did not converge in {comparisons.max_iter} iterations; allow more, or a smaller C."
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    n_independent = len(np.unique(pairs[rows[differ]]))
    scale = fit_scale(log_odds[rows, best][differ], outcomes[differ], independent=n_independent)
    evidence = HeldOut(rows, scale * log_odds[rows, best], outcomes)
    n_used = int(np.count_nonzero(comparisons.outcomes)) if comparisons.ties == "drop" else len(pairs)
    settings = {"method": method, "pairs": n_used, "ties": comparisons.ties, "converged": converged}
    provenance = Provenance(items=len(np.unique(pairs)), regularisation=candidates[best], seed=seed, settings=settings)
    probe = Probe(
        kind="point" if comparisons.pointwise else "pair",
        weights=comparisons.basis.expand(weights),
        mean=mean,
        scale=scale,
        tie_band=fit_tie_band(evidence.log_odds, outcomes),
        provenance=provenance,
        length_slope=slope,
    )
    return ProbeFit(probe, path, evidence, pairs)


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
        states: Differences of the ordered pairs, shape [pairs, features], best with the mirror of every pair among
            them.
        pairs: Shape [pairs, 2], item indices (i, j).
        labels: Shape [items], finite for items in pairs; higher has more of the quality.
        groups: Shape [items], labels of articles or topics that are never split between training and test.
        regularisation: C; None chooses it from 0.01 to 3162 in half decades by cross-validated log-loss.
        ties: ``drop`` leaves out pairs of equal labels, ``keep`` counts them as "not greater" in both orders (as in the
            thesis), ``three-way`` makes them a third outcome, see :func:`~climassay.learning.linear.davidson_loss`.
        balanced: Give both answers the same total weight.
        standardise: Scale each feature to unit variance over the pairs, otherwise all by one factor. It matters for
            several layers: the larger activations of one would drown those of another.
        lengths: Shape [items], text lengths: regress each feature's difference on the log length ratio over the
            training pairs (least squares through the origin) and fit the residuals. None: no.
        seed: Seed of the folds.
        max_iter: Maximum number of iterations of each fit; reaching it warns and is recorded as ``converged``.

    Returns:
        The probe, calibrated: ``scale`` and ``tie_band`` are fitted on held-out log-odds, or 1 and 0 if the items are
            too few to hold any out. Both orders are averaged for this if both are present.

    Raises:
        InputError: Shapes or labels that do not fit, only one answer, or too few items to choose C.

    References:
        Maiya (2024), section 3; Davidson (1970), J. Am. Stat. Assoc. 65, 317-328; Platt (1999) for the scale.
    """
    outcomes = _outcomes(pairs, labels, groups)
    rows, mean = _centred(states, pairs)
    stretch, slope = _length_slope(rows, lengths, pairs)
    basis = reduce_rows(rows, standardise)
    comparisons = Comparisons(basis, pairs, outcomes, stretch, ties=ties, balanced=balanced, max_iter=max_iter)
    return _fit("supervised", comparisons, mean, slope, groups, regularisation, seed)


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
    """Fit a Bradley-Terry probe on one activation per item: logistic on the difference of two items' states.

    Every pair has the same weight, so that a group counts by its number of pairs. Arguments and errors as in
    :func:`fit_contrast`, except that ``states`` has the shape [items, features], ``pairs`` are unordered pairs within
    groups, shape [pairs, 2], whose ties decide the tie band only, ``labels`` are NaN for items in no pair, and the
    slope of ``lengths`` is fitted on differences within pairs.
    """
    values = np.asarray(labels, dtype=np.float64)
    outcomes = _outcomes(pairs, values, groups)
    if states.ndim != 2 or len(states) != len(values):
        raise InputError(f"{len(values)} labelled items need as many rows of states, got shape {states.shape}.")
    present = np.unique(pairs)
    check_finite(states[present])
    mean = states[present].mean(axis=0, dtype=np.float64)
    # Items in no pair (no label, or held out for a test) stay at the mean and have no say in the scaling.
    rows = np.zeros(states.shape)
    rows[present] = states[present] - mean
    stretch, slope = _length_slope(rows, lengths, pairs, pointwise=True)
    comparisons = Comparisons(reduce_rows(rows, standardise, pairs), pairs, outcomes, stretch, True, max_iter=max_iter)
    return _fit("pointwise", comparisons, mean, slope, groups, regularisation, seed)


def fit_principal(
    states: States,
    pairs: IntArray,
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
) -> ProbeFit:
    """Take the first principal component of the centred differences; labels decide only its sign, scale and tie band.

    For a pair whose mirror is present, half the difference of the two rows is used. What both orders share, such as the
    effect of the item that comes first, would otherwise often be the largest component.

    Arguments and errors as in :func:`fit_contrast`. ``held_out`` is empty, because the component saw every pair.

    References:
        Burns et al. (2023), arXiv 2212.03827 (CRC); Maiya (2024), section 3.
    """
    outcomes = _outcomes(pairs, labels, groups)
    rows, mean = _centred(states, pairs)
    mirror = mirror_rows(pairs)
    rows = np.where((mirror >= 0)[:, None], (rows - rows[mirror]) / 2, rows)
    stretch, slope = _length_slope(rows, lengths, pairs)
    if stretch is not None and slope is not None:
        rows -= stretch[:, None] * slope
    basis = reduce_rows(rows, standardise)
    projected = basis.coordinates[:, 0]
    sign = 1.0 if float(projected @ outcomes) >= 0 else -1.0
    differ, items = outcomes != 0, len(np.unique(pairs))
    scale = fit_scale(sign * projected[differ], outcomes[differ], independent=items)
    weights = sign * basis.expand(np.eye(1, basis.coordinates.shape[1])[0])
    settings = {"method": "principal", "pairs": len(pairs), "ties": "drop", "converged": True}
    source = Provenance(items=items, settings=settings)
    band = fit_tie_band(sign * scale * projected, outcomes)
    none = np.zeros(0, dtype=np.int64)
    probe = Probe("pair", weights, mean, scale, band, source, slope)
    return ProbeFit(probe, None, HeldOut(none, np.zeros(0), none), pairs)


def _outcomes(pairs: IntArray, labels: ArrayLike, groups: ArrayLike) -> IntArray:
    """Return 1, 0 or -1 for each pair, after checking the shapes of pairs, labels and groups."""
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


def _centred(states: States, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the differences of pairs minus their mean over the pairs, shape [pairs, features], and the mean."""
    if states.ndim != 2 or len(states) != len(pairs):
        raise InputError(f"{len(pairs)} pairs need as many rows of activations, got shape {states.shape}.")
    check_finite(states)
    rows = states.astype(np.float64)
    mean = rows.mean(axis=0)
    return rows - mean, mean


def _length_slope(
    rows: FloatArray, lengths: ArrayLike | None, pairs: IntArray, *, pointwise: bool = False
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return log length ratios of pairs, and the least-squares slope of each feature's difference on them."""
    if lengths is None:
        return None, None
    stretch = log_length_differences(lengths, pairs)
    total = float(stretch @ stretch)
    values = pair_sums(stretch, pairs, len(rows)) if pointwise else stretch
    return stretch, np.asarray(values @ rows / total if total > 0 else np.zeros(rows.shape[1]), dtype=np.float64)
