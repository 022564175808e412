"""Linear models of comparisons: logistic on differences, with ties as an outcome, penalty and scale chosen held out.

Comparisons of one item are not independent, so that folds are made of items: a comparison is trained on only where
neither of its items is held out, and tested only where both are. A split by comparison would put (i, j) into training
and (j, i), or i's other comparisons, into the test: random labels then look learnable.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.learning.calibration import fit_scale, fit_tie_band
from climassay.learning.linear import Loss, minimise
from climassay.learning.splits import FOLDS, Split, group_folds, held_out

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Ties = Literal["drop", "keep", "three-way"]

REGULARISATIONS = tuple(float(10.0 ** (step / 2)) for step in range(-4, 8))

_SMALLEST = 1e-12
"""Directions with a smaller share of the largest direction's variance are rounding error."""
_ROUGHLY = 1e-3
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
    """What cross-validation saw of each C, on differing pairs whose items were all held out, both orders averaged."""

    values: tuple[float, ...]
    losses: tuple[float, ...]
    """Mean log-loss in nats, before the scale is fitted."""
    accuracies: tuple[float, ...]
    chosen: float


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Log-odds of training pairs by models fitted without their items: honest evidence on the training set."""

    rows: IntArray
    """Shape [n], rows of the pairs given."""
    log_odds: FloatArray
    """Shape [n], scaled as the model's, both orders averaged where both were given."""
    outcomes: IntArray
    """Shape [n], 1, 0 (tie) or -1."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Everything that a fit needs, in reduced coordinates."""

    basis: Basis
    pairs: IntArray
    """Shape [pairs, 2], item indices."""
    outcomes: IntArray
    """Shape [pairs], 1, 0 (tie) or -1."""
    stretch: FloatArray | None = None
    """Shape [pairs], log length ratio to be regressed out."""
    pointwise: bool = False
    """Rows of the basis are items (a pair is the difference of two rows, not centred) and not pairs."""
    ties: Ties = "drop"
    """``keep`` calls a tie "not greater"."""
    balanced: bool = False
    """Give both answers the same total weight."""
    max_iter: int = 1000

    def weights(self, training: NDArray[np.bool_]) -> FloatArray:
        """Weight of each pair's loss, 0 for pairs not trained on; balanced ones that differ weigh 1 on average.

        ``training`` and the weights have the shape [pairs]; all are 0 where one of two answers to be balanced is
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
        """Shape [pairs]: the outcomes to be fitted."""
        return np.where(self.outcomes == 0, -1, self.outcomes) if self.ties == "keep" else self.outcomes


class Solution(NamedTuple):
    """One fit: weights in reduced coordinates, log-odds of all pairs (also those not trained on), and its success."""

    weights: FloatArray
    log_odds: FloatArray
    converged: bool


class FittedPairs(NamedTuple):
    """Weights of raw features, and the settings that cross-validation gave."""

    weights: FloatArray
    scale: float
    tie_band: float
    regularisation: float
    path: RegularisationPath | None
    """None where the items are too few to hold any out."""
    held_out: HeldOut
    converged: bool


def reduce_rows(rows: FloatArray, standardise: bool, pairs: IntArray | None = None) -> Basis:
    """Scale features so that the mean squared norm of a pair's row is 1, and rotate into the span of the rows.

    The rotation is orthonormal, so the L2-penalised solution is the same as in all features.

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
    kept = np.flatnonzero(squares > _SMALLEST * squares[-1])[::-1]
    squares, vectors = squares[kept], vectors[:, kept]
    density = 1.0 if pairs is None else 2 * len(pairs) / len(rows)
    if few_rows:
        singular = np.sqrt(squares)
        return Basis(vectors * singular, squares * density, lambda u: factor * (scaled.T @ (vectors @ (u / singular))))
    return Basis(scaled @ vectors, squares * density, lambda u: factor * (vectors @ u))


def _design(given: Comparisons, training: NDArray[np.bool_]) -> Any:
    """The linear map from weights [rank] to log-odds [pairs], centred on the pairs trained on, with its adjoint."""
    from scipy.sparse.linalg import LinearOperator

    rows, stretch = given.basis.coordinates, given.stretch
    pairs = given.pairs if given.pointwise else None

    def gather(values: FloatArray) -> FloatArray:
        """Sum of the pairs' rows, each times its value."""
        of_rows = values if pairs is None else pair_sums(values, pairs, len(rows))
        return np.asarray(of_rows @ rows, dtype=np.float64)

    part = training.astype(np.float64)
    mean = slope = np.zeros(rows.shape[1])
    if not given.pointwise:
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

    shape = (len(given.pairs), rows.shape[1])
    return LinearOperator(shape, matvec=forward, rmatvec=adjoint, dtype=np.float64)


def davidson_loss(outcomes: IntArray, weight: FloatArray, with_ties: bool) -> Loss:
    """Negative log-likelihood of comparisons (Davidson 1970); without ties as an outcome, the logistic loss.

    The loss of a pair is ``log(exp(eta/2) + exp(-eta/2) + exp(delta))`` minus the exponent of what happened, where
    delta, the loss's own parameter, is minus infinity without ties. It is convex, and unlike an ordered logit's its
    ``eta`` is exactly the log-odds that i is greater given that the two differ.

    Args:
        outcomes: Shape [pairs], 1, 0 (tie) or -1.
        weight: Shape [pairs].
        with_ties: Whether ties are an outcome.
    """
    tied = (outcomes == 0).astype(np.float64)

    def loss(eta: FloatArray, own: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        half = np.abs(eta) / 2
        delta = own[0] if with_ties else -np.inf
        total = np.logaddexp(half + np.log1p(np.exp(-2 * half)), delta)
        value = weight @ (total - outcomes * eta / 2 - (tied * delta if with_ties else 0.0))
        slope = (np.exp(eta / 2 - total) - np.exp(-eta / 2 - total) - outcomes) / 2
        by_own = np.array([weight @ (np.exp(delta - total) - tied)]) if with_ties else np.zeros(0)
        return float(value), weight * slope, by_own

    return loss


def item_folds(pairs: IntArray, groups: ArrayLike, *, seed: int = 0) -> IntArray:
    """Assign items to folds: whole groups where there are several, single items where there is one.

    Args:
        pairs: Shape [pairs, 2], item indices.
        groups: Shape [items], any labels.
        seed: Decides the assignment.

    Returns:
        Shape [items]: one of five folds, or of fewer where there are not enough groups, or not two items per fold; -1
        for items in no pair. All zero or -1 where the items are too few for two folds.
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
    """Rows of pairs [pairs, 2] trained on and tested, by folds of items [items]: no item, or both, are held out."""
    sides = folds[pairs]
    for fold in range(int(folds.max(initial=-1)) + 1):
        split = Split(np.flatnonzero((sides != fold).all(axis=1)), np.flatnonzero((sides == fold).all(axis=1)))
        if len(split.test):
            yield split


def pair_sums(values: FloatArray, pairs: IntArray, items: int) -> FloatArray:
    """Add each pair's value to its first item and take it from its second; shape [items]."""
    first, second = np.bincount(pairs[:, 0], values, items), np.bincount(pairs[:, 1], values, items)
    return np.asarray(first - second, dtype=np.float64)


def solve(
    given: Comparisons, training: NDArray[np.bool_], c: float, start: FloatArray | None = None, tolerance: float = 1e-6
) -> Solution:
    """Fit on the pairs of a mask [pairs], preconditioned by the curvature at zero."""
    design, outcomes, weight = _design(given, training), given.answers, given.weights(training)
    with_ties = given.ties == "three-way" and bool((weight[outcomes == 0] > 0).any())
    # At zero the second derivative of a logistic loss is 1/4.
    share = weight.sum() / len(weight)
    result = minimise(
        design, davidson_loss(outcomes, weight, with_ties), c, own=(0.0,) * with_ties, start=start,
        curvature=share / 4 * given.basis.curvature, own_curvature=weight.sum() / 4, tolerance=tolerance,
        max_iterations=given.max_iter,
    )  # fmt: skip
    return Solution(result.weights, design @ result.weights, result.converged)


def mirror_rows(pairs: IntArray) -> IntArray:
    """The row of each pair's mirror (j, i), or -1 where it is not among the pairs; shape [pairs]."""
    count = int(pairs.max(initial=0)) + 1
    forward, back = pairs[:, 0] * count + pairs[:, 1], pairs[:, 1] * count + pairs[:, 0]
    order = np.argsort(forward, kind="stable")
    at = np.minimum(np.searchsorted(forward[order], back), max(0, len(order) - 1))
    return np.where(forward[order[at]] == back, order[at], -1).astype(np.int64)


def average_orders(log_odds: FloatArray, pairs: IntArray) -> FloatArray:
    """Average the log-odds of (i, j) with those of its mirror (j, i), so that swapping the two changes the sign.

    Pairs whose mirror is not among them stay as they are. Shape [pairs].
    """
    mirror = mirror_rows(pairs)
    return np.where(mirror >= 0, (log_odds - log_odds[mirror]) / 2, log_odds)


def fit_pairs(given: Comparisons, folds: IntArray, regularisation: float | None = None) -> FittedPairs:
    """Choose C on held-out items, fit scale and tie band there, then fit the weights on all pairs.

    Args:
        given: The comparisons.
        folds: Shape [items], the fold of each item; see :func:`item_folds`.
        regularisation: C; None chooses one of :data:`REGULARISATIONS` by log-loss.

    Raises:
        InputError: C is not positive, there is one answer only, or too few items to choose C.
    """
    values = REGULARISATIONS if regularisation is None else (regularisation,)
    if not all(c > 0 and np.isfinite(c) for c in values):
        raise InputError(f"The regularisation C must be a positive number, not {regularisation}.")
    everything = np.ones(len(given.pairs), dtype=bool)
    if not given.weights(everything).any():
        raise InputError("Every training pair has the same answer; add the mirror (j, i) of each pair.")
    converged = []

    def mask(rows: IntArray) -> NDArray[np.bool_]:
        return np.isin(np.arange(len(given.pairs)), rows)

    def fit(training: IntArray) -> FloatArray:
        """Log-odds of all pairs at each C, shape [pairs, C]; each fit starts from the one before."""
        odds, start = [], None
        for c in values:
            found = solve(given, mask(training), c, start, _ROUGHLY)
            start = found.weights
            converged.append(found.converged)
            odds.append(average_orders(found.log_odds, given.pairs))
        return np.stack(odds, axis=1)

    splits = (one for one in pair_splits(given.pairs, folds) if given.weights(mask(one.train)).any())
    odds = held_out(splits, fit, lambda found, test: found[test], len(given.pairs)).reshape(len(given.pairs), -1)
    held = np.flatnonzero(np.isfinite(odds[:, 0]))
    outcomes = given.outcomes[held]
    differ = outcomes != 0
    if not differ.any():
        held, outcomes, differ = held[:0], outcomes[:0], differ[:0]
        if regularisation is None:
            raise InputError(
                "Too few labelled items to choose the regularisation by cross-validation: label more items, or give it."
            )
    path, best = None, 0
    if len(held):
        margins = (odds[held] * outcomes[:, None])[differ]
        losses, right = np.logaddexp(0, -margins).mean(axis=0), (margins > 0).mean(axis=0)
        best = int(np.argmin(losses))
        path = RegularisationPath(tuple(values), tuple(losses.tolist()), tuple(right.tolist()), values[best])
    final = solve(given, everything, values[best])
    chosen = odds[held, best]
    items = len(np.unique(given.pairs[held[differ]]))
    scale = fit_scale(chosen[differ], outcomes[differ], independent=items)
    evidence = HeldOut(held, scale * chosen, outcomes)
    band = fit_tie_band(evidence.log_odds, outcomes)
    weights = given.basis.expand(final.weights)
    return FittedPairs(weights, scale, band, values[best], path, evidence, final.converged and all(converged))
