"""Linear models of comparisons: logistic on differences, with ties as an outcome, penalty and scale chosen held out.

Comparisons of one item are not independent, so that folds are made of items: a comparison is trained on only where
neither of its items is held out, and tested only where both are. A split by comparison would put (i, j) into training
and (j, i), or i's other comparisons, into the test: random labels then look learnable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.learning.calibration import fit_scale, fit_tie_band
from climassay.learning.linear import Loss, minimise
from climassay.learning.splits import FOLDS, group_folds

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
    """Log-odds of training pairs by probes fitted without their items: honest evidence on the training set."""

    rows: IntArray
    """Shape [n], rows of the pairs given."""
    log_odds: FloatArray
    """Shape [n], scaled as the probe's, both orders averaged where both were given."""
    outcomes: IntArray
    """Shape [n], 1, 0 (tie) or -1."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Everything a fit needs, in reduced coordinates."""

    basis: Basis
    pairs: IntArray
    """Shape [pairs, 2], item indices."""
    outcomes: IntArray
    """Shape [pairs], 1, 0 (tie) or -1."""
    stretch: FloatArray | None
    """Shape [pairs], log length ratio to be regressed out."""
    pointwise: bool
    """Rows of the basis are items (a pair is the difference of two rows, not centred) and not pairs."""
    ties: Ties
    balanced: bool
    max_iter: int

    @property
    def answers(self) -> IntArray:
        """Shape [pairs]: the outcomes to be fitted; ``keep`` calls a tie "not greater"."""
        return np.where(self.outcomes == 0, -1, self.outcomes) if self.ties == "keep" else self.outcomes


class Solved(NamedTuple):
    """The final weights in reduced coordinates, and the settings cross-validation gave."""

    solution: FloatArray
    scale: float
    tie_band: float
    chosen: float
    path: RegularisationPath | None
    held_out: HeldOut
    converged: bool


class Solution(NamedTuple):
    """One fit: weights in reduced coordinates, log-odds of all pairs (also those not trained on), and its success."""

    weights: FloatArray
    log_odds: FloatArray
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
        raise InputError("All activations are the same, so that nothing can be learned from them.")
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


def _design(problem: Problem, training: NDArray[np.bool_]) -> Any:
    """The linear map from weights [rank] to log-odds [pairs], centred on the pairs trained on, with its adjoint."""
    from scipy.sparse.linalg import LinearOperator

    rows, stretch = problem.basis.coordinates, problem.stretch
    pairs = problem.pairs if problem.pointwise else None

    def gather(values: FloatArray) -> FloatArray:
        """Sum of the pairs' rows, each times its value."""
        of_rows = values if pairs is None else pair_sums(values, pairs, len(rows))
        return np.asarray(of_rows @ rows, dtype=np.float64)

    part = training.astype(np.float64)
    mean = slope = np.zeros(rows.shape[1])
    if not problem.pointwise:
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

    shape = (len(problem.pairs), rows.shape[1])
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

    A pair belongs to a fold only where both its items do; a pair between two folds is neither trained on nor tested
    while one of them is held out.

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


def pair_sums(values: FloatArray, pairs: IntArray, items: int) -> FloatArray:
    """Add each pair's value to its first item and take it from its second; shape [items]."""
    first, second = np.bincount(pairs[:, 0], values, items), np.bincount(pairs[:, 1], values, items)
    return np.asarray(first - second, dtype=np.float64)


def solve(
    problem: Problem, training: NDArray[np.bool_], c: float, start: FloatArray | None = None, tolerance: float = 1e-6
) -> Solution:
    """Fit on the pairs of a mask [pairs], preconditioned by the curvature at zero."""
    design = _design(problem, training)
    outcomes = problem.answers
    weight = pair_weights(outcomes, training, problem.ties, problem.balanced)
    with_ties = problem.ties == "three-way" and bool((weight[outcomes == 0] > 0).any())
    # At zero the second derivative of a logistic loss is 1/4.
    share = weight.sum() / len(weight)
    found = minimise(
        design, davidson_loss(outcomes, weight, with_ties), c, own=(0.0,) * with_ties, start=start,
        curvature=share / 4 * problem.basis.curvature, own_curvature=weight.sum() / 4, tolerance=tolerance,
        max_iterations=problem.max_iter,
    )  # fmt: skip
    return Solution(found.weights, design @ found.weights, found.converged)


def pair_weights(outcomes: IntArray, training: NDArray[np.bool_], ties: Ties, balanced: bool) -> FloatArray:
    """Weight of each pair's loss; 0 for pairs not trained on.

    Balanced: the two answers have equal total weight, and the pairs that differ weigh 1 on average.

    Returns:
        Shape [pairs]; all 0 where one of two answers to be balanced is missing.
    """
    weight = training.astype(np.float64)
    if ties == "drop":
        weight[outcomes == 0] = 0.0
    if balanced:
        counts = {answer: int(np.count_nonzero(training & (outcomes == answer))) for answer in (1, -1)}
        if not all(counts.values()):
            return np.zeros(len(outcomes))
        for answer, count in counts.items():
            weight[outcomes == answer] *= sum(counts.values()) / (2 * count)
    return weight


def mirror_rows(pairs: IntArray) -> IntArray:
    """The row of each pair's mirror (j, i), or -1 where it is not among the pairs; shape [pairs]."""
    count = int(pairs.max(initial=0)) + 1
    forward, back = pairs[:, 0] * count + pairs[:, 1], pairs[:, 1] * count + pairs[:, 0]
    order = np.argsort(forward, kind="stable")
    at = np.minimum(np.searchsorted(forward[order], back), max(0, len(order) - 1))
    return np.where(forward[order[at]] == back, order[at], -1).astype(np.int64)


def both_orders(forward: ArrayLike, mirrored: ArrayLike) -> FloatArray:
    """Average the log-odds of (i, j) and of its mirror (j, i): the result changes sign when the two are swapped.

    Args:
        forward: Shape [pairs], log-odds of (i, j).
        mirrored: Shape [pairs], log-odds of (j, i), in the same order.

    Returns:
        Shape [pairs].

    Raises:
        InputError: The shapes differ.
    """
    ahead, back = np.asarray(forward, dtype=np.float64), np.asarray(mirrored, dtype=np.float64)
    if ahead.shape != back.shape:
        raise InputError(f"{ahead.size} pairs cannot be averaged with {back.size} mirrored pairs.")
    return (ahead - back) / 2


def average_orders(log_odds: FloatArray, pairs: IntArray) -> FloatArray:
    """Average each pair with its mirror where it is among the pairs; others stay as they are. Shape [pairs]."""
    mirror = mirror_rows(pairs)
    return np.where(mirror >= 0, both_orders(log_odds, log_odds[mirror]), log_odds)


def choose_and_solve(problem: Problem, folds: IntArray, regularisation: float | None) -> Solved:
    """Choose C on held-out items, fit scale and tie band there, then fit the weights on all pairs.

    Args:
        problem: The pairs.
        folds: Shape [items], the fold of each item; see :func:`item_folds`.
        regularisation: C, or None to choose it.
    """
    values = REGULARISATIONS if regularisation is None else (regularisation,)
    if not all(c > 0 and np.isfinite(c) for c in values):
        raise InputError(f"The regularisation C must be a positive number, not {regularisation}.")
    everything = np.ones(len(problem.pairs), dtype=bool)
    if not pair_weights(problem.answers, everything, problem.ties, problem.balanced).any():
        raise InputError("Every training pair has the same answer; add the mirror (j, i) of each pair.")
    path, best, held, folds_converged = _cross_validate(problem, folds, values)
    if path is None and regularisation is None:
        raise InputError(
            "Too few labelled items to choose the regularisation by cross-validation: label more items, or give it."
        )
    chosen = path.chosen if path is not None else values[0]
    final = solve(problem, everything, chosen)
    outcomes = problem.outcomes[held]
    differ = outcomes != 0
    items = len(np.unique(problem.pairs[held[differ]]))
    scale = fit_scale(best[differ], outcomes[differ], independent=items)
    evidence = HeldOut(held, scale * best, outcomes)
    band = fit_tie_band(evidence.log_odds, outcomes)
    return Solved(final.weights, scale, band, chosen, path, evidence, final.converged and folds_converged)


def _cross_validate(
    problem: Problem, folds: IntArray, values: Sequence[float]
) -> tuple[RegularisationPath | None, FloatArray, IntArray, bool]:
    """The path, and the held-out log-odds at the chosen C with the rows they belong to."""
    sides = folds[problem.pairs]
    seen: list[IntArray] = []
    odds: list[list[FloatArray]] = [[] for _ in values]
    converged = True
    for fold in range(int(folds.max(initial=-1)) + 1):
        inside = (sides == fold).all(axis=1)
        training = (sides != fold).all(axis=1)
        if not inside.any() or not pair_weights(problem.answers, training, problem.ties, problem.balanced).any():
            continue
        start = None
        for position, c in enumerate(values):
            solution = solve(problem, training, c, start, _ROUGHLY)
            start, converged = solution.weights, converged and solution.converged
            odds[position].append(average_orders(solution.log_odds, problem.pairs)[inside])
        seen.append(np.flatnonzero(inside))
    held = np.concatenate(seen) if seen else np.zeros(0, dtype=np.int64)
    outcomes = problem.outcomes[held]
    differ = outcomes != 0
    if not differ.any():
        return None, np.zeros(0), np.zeros(0, dtype=np.int64), converged
    stacked = [np.concatenate(parts) for parts in odds]
    margins = [(part * outcomes)[differ] for part in stacked]
    losses = tuple(float(np.logaddexp(0, -margin).mean()) for margin in margins)
    right = tuple(float((margin > 0).mean()) for margin in margins)
    best = int(np.argmin(losses))
    return RegularisationPath(tuple(values), losses, right, values[best]), stacked[best], held, converged
