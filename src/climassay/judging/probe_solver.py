"""The numerical core of probe fitting: reduction to the span of the data, logistic loss, cross-validated penalty."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.judging.calibration import fit_scale, fit_tie_band
from climassay.judging.probe import FloatArray, IntArray, both_orders

Ties = Literal["drop", "keep", "three-way"]

REGULARISATIONS = tuple(float(10.0 ** (step / 2)) for step in range(-4, 8))
"""Values of C tried by cross-validation."""

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


class _Design:
    """The linear map from weights [rank] to log-odds [pairs] and its adjoint, centred on the pairs trained on."""

    def __init__(self, problem: Problem, training: NDArray[np.bool_]) -> None:
        self._rows = problem.basis.coordinates
        self._pairs = problem.pairs if problem.pointwise else None
        self._stretch = problem.stretch
        part = training.astype(np.float64)
        none = np.zeros(self._rows.shape[1])
        self._mean = none if problem.pointwise else self._gather(part) / part.sum()
        self._slope = none
        if self._stretch is not None:
            total = float(part @ self._stretch**2)
            stretch = part * self._stretch
            if total > 0:
                self._slope = (self._gather(stretch) - stretch.sum() * self._mean) / total

    def _gather(self, values: FloatArray) -> FloatArray:
        """Sum of the pairs' rows, each times its value."""
        if self._pairs is not None:
            values = pair_sums(values, self._pairs, len(self._rows))
        return np.asarray(values @ self._rows, dtype=np.float64)

    def forward(self, weights: FloatArray) -> FloatArray:
        out = self._rows @ weights
        if self._pairs is not None:
            out = out[self._pairs[:, 0]] - out[self._pairs[:, 1]]
        out = out - float(self._mean @ weights)
        if self._stretch is not None:
            out = out - self._stretch * float(self._slope @ weights)
        return np.asarray(out, dtype=np.float64)

    def adjoint(self, values: FloatArray) -> FloatArray:
        out = self._gather(values) - float(values.sum()) * self._mean
        if self._stretch is not None:
            out = out - float(values @ self._stretch) * self._slope
        return np.asarray(out, dtype=np.float64)


def pair_sums(values: FloatArray, pairs: IntArray, items: int) -> FloatArray:
    """Add each pair's value to its first item and take it from its second; shape [items]."""
    first, second = np.bincount(pairs[:, 0], values, items), np.bincount(pairs[:, 1], values, items)
    return np.asarray(first - second, dtype=np.float64)


def solve(
    problem: Problem, training: NDArray[np.bool_], c: float, start: FloatArray | None = None, tolerance: float = 1e-6
) -> Solution:
    """Fit on the pairs of a mask [pairs] by L-BFGS, preconditioned by the curvature at zero.

    The loss of a pair is that of Davidson's model, log(exp(eta/2) + exp(-eta/2) + exp(delta)) minus the exponent of
    what happened; without ties as an outcome delta is minus infinity, and it is the logistic loss.
    """
    from scipy.optimize import minimize

    design = _Design(problem, training)
    outcomes = problem.answers
    weight = pair_weights(outcomes, training, problem.ties, problem.balanced)
    with_ties = problem.ties == "three-way" and bool((weight[outcomes == 0] > 0).any())
    share = weight.sum() / len(weight)
    # At zero the second derivative of a logistic loss is 1/4.
    step = 1 / np.sqrt(1 + c / 4 * share * problem.basis.curvature)
    tie_step = 1 / np.sqrt(1 + c / 4 * weight.sum())
    tied = (outcomes == 0).astype(np.float64)

    def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
        weights = scaled[:-1] * step
        eta = design.forward(weights)
        half = np.abs(eta) / 2
        top = half + np.log1p(np.exp(-2 * half))
        delta = scaled[-1] * tie_step if with_ties else -np.inf
        total = np.logaddexp(top, delta)
        loss = total - outcomes * eta / 2 - (tied * delta if with_ties else 0.0)
        slope_eta = (np.exp(eta / 2 - total) - np.exp(-eta / 2 - total) - outcomes) / 2
        slope_tie = float(weight @ (np.exp(delta - total) - tied)) if with_ties else 0.0
        value = weights @ weights / 2 + c * float(weight @ loss)
        slope = (weights + c * design.adjoint(weight * slope_eta)) * step
        return float(value), np.append(slope, c * slope_tie * tie_step)

    begin = np.zeros(len(step) + 1)
    at_zero = float(np.abs(objective(begin)[1]).max())
    if start is not None:
        begin[:-1] = start / step
    options = {"maxiter": problem.max_iter, "maxfun": 4 * problem.max_iter, "maxcor": 20, "gtol": tolerance * at_zero}
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options={**options, "ftol": 1e-7 * tolerance})
    weights = found.x[:-1] * step
    # A line search that gives up where rounding hides any further descent has converged.
    done = bool(found.success) or float(np.abs(found.jac).max()) <= 1e-4 * at_zero
    return Solution(weights, design.forward(weights), done)


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


def average_orders(log_odds: FloatArray, pairs: IntArray) -> FloatArray:
    """Average each pair with its mirror where it is among the pairs; others stay as they are. Shape [pairs]."""
    mirror = mirror_rows(pairs)
    return np.where(mirror >= 0, both_orders(log_odds, log_odds[mirror]), log_odds)


def choose_and_solve(problem: Problem, folds: IntArray, regularisation: float | None) -> Solved:
    """Choose C on held-out items, fit scale and tie band there, then fit the weights on all pairs.

    Args:
        problem: The pairs.
        folds: Shape [items], the fold of each item; see :func:`climassay.judging.probe_fitting.item_folds`.
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
