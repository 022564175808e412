"""Fitting the head of a validator: a penalised logistic regression, chosen, measured and calibrated across passages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.generation.validation.calibrator import Calibrator, check_labels, fit_calibrator, stratified_folds

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

REGULARISATIONS = (0.01, 0.1, 1.0, 10.0)
"""C that are tried. A row has a mean squared norm of 1, so C is the prior variance of an item's log-odds."""
_MAX_ITERATIONS = 300


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Brings each feature to mean 0, and each block to a mean squared norm of one over the number of blocks."""

    mean: FloatArray
    """Shape [features]."""
    factor: FloatArray
    """Shape [features]; 0 for a feature that never varies."""

    @classmethod
    def of(cls, blocks: Sequence[FloatArray]) -> "Scaling":
        """From blocks of shape [items, features] each, put side by side."""
        factors = []
        for block in blocks:
            spread = block.std(axis=0)
            # Rounding gives a constant feature a spread of about 1e-17, which must not be blown up.
            varied = spread > 1e-9 * np.maximum(1.0, np.abs(block).max(axis=0, initial=0.0))
            share = max(1, int(varied.sum())) * len(blocks)
            factors.append(np.where(varied, 1 / (np.where(varied, spread, 1.0) * np.sqrt(share)), 0.0))
        return cls(np.concatenate([block.mean(axis=0) for block in blocks]), np.concatenate(factors))

    def apply(self, features: FloatArray) -> FloatArray:
        """Scaled rows, shape as given."""
        return (features - self.mean) * self.factor


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """``features @ weights + bias`` are log-odds of being valid."""

    weights: FloatArray
    """Shape [features]."""
    bias: float

    def scores(self, features: FloatArray) -> FloatArray:
        """Log-odds, shape [items]."""
        return np.asarray(features @ self.weights + self.bias, dtype=np.float64)


def fit_logistic(rows: FloatArray, valid: IntArray, regularisation: float) -> Linear:
    """L2-penalised logistic regression, the intercept free; of one kind only, a constant.

    Args:
        rows: Scaled features, shape [items, features].
        valid: Shape [items], 0 or 1.
        regularisation: C; see :data:`REGULARISATIONS`.
    """
    from sklearn.linear_model import LogisticRegression

    positive = int(valid.sum())
    if positive in (0, len(valid)):
        odds = (positive + 1) / (len(valid) - positive + 1)
        return Linear(np.zeros(rows.shape[1]), float(np.log(odds)))
    fitted = LogisticRegression(C=regularisation, max_iter=_MAX_ITERATIONS).fit(rows, valid)
    return Linear(fitted.coef_[0].astype(np.float64), float(fitted.intercept_[0]))


def fit_blocks(blocks: Sequence[FloatArray], valid: IntArray, regularisations: Sequence[float]) -> list[Linear]:
    """One regression for each C on blocks of raw features: scaling is folded into their weights.

    Args:
        blocks: Raw features, each of shape [items, features of the block].
        valid: Shape [items], 0 or 1.
        regularisations: Values of C.
    """
    scaling = Scaling.of(blocks)
    turned, axes = in_span(scaling.apply(np.concatenate(blocks, axis=1)))
    found = []
    for regularisation in regularisations:
        fitted = fit_logistic(turned, valid, regularisation)
        weights = (axes @ fitted.weights) * scaling.factor
        found.append(Linear(weights, fitted.bias - float(scaling.mean @ weights)))
    return found


def in_span(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows in an orthonormal basis of their span, [items, rank], and the basis, [features, rank].

    Penalised solutions lie in the span, so fitting there is exact, and features far outnumber items.
    """
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    kept = sizes > 1e-10 * max(1e-300, float(sizes.max(initial=0.0)))
    return left[:, kept] * sizes[kept], right[kept].T


@dataclass(frozen=True, slots=True)
class RegularisationChoice:
    """One C, and its log-loss on held-out items in nats."""

    regularisation: float
    log_loss: float


@dataclass(frozen=True, slots=True, eq=False)
class FittedHead:
    """A calibrated regression and the evidence behind it."""

    linear: Linear
    calibrator: Calibrator
    choices: tuple[RegularisationChoice, ...]
    """All C tried, best first."""


def fit_head(
    blocks: Sequence[FloatArray],
    valid: IntArray,
    groups: IntArray,
    *,
    regularisations: Sequence[float] = REGULARISATIONS,
    folds: int = 5,
    seed: int = 0,
) -> FittedHead:
    """Choose C by log-loss on held-out passages, fit the calibrator on held-out scores, and fit on all items.

    Args:
        blocks: Features, [items, features] each.
        valid: Shape [items], 0 or 1.
        groups: Shape [items]: what is never split between folds.
        regularisations: C to try.
        folds: Of the cross-validation.
        seed: Of the folds.

    Raises:
        InputError: Too few labels of a kind, or fewer than two groups.
    """
    check_labels(valid)
    split = stratified_folds(valid, groups, folds, seed=seed)
    held_out = _held_out_scores(blocks, valid, split, regularisations)
    choices = sorted(
        (RegularisationChoice(C, _log_loss(scores, valid)) for C, scores in held_out.items()),
        key=lambda choice: choice.log_loss,
    )
    best = choices[0].regularisation
    (linear,) = fit_blocks(blocks, valid, [best])
    return FittedHead(linear, fit_calibrator(held_out[best], valid), tuple(choices))


def cross_validated(
    blocks: Sequence[FloatArray],
    valid: IntArray,
    groups: IntArray,
    *,
    regularisations: Sequence[float] = REGULARISATIONS,
    folds: int = 5,
    seed: int = 0,
    on_fold: Callable[[int], None] | None = None,
) -> tuple[FloatArray, IntArray]:
    """P(valid) of each item by the whole of :func:`fit_head` on the other folds, its choices included.

    Args:
        blocks: Features, [items, features] each.
        valid: Shape [items], 0 or 1.
        groups: Shape [items].
        regularisations: C to try.
        folds: Outer folds, and inner ones of each.
        seed: Of the folds.
        on_fold: Called with 1 after each fold.

    Returns:
        Probabilities and folds, both of shape [items].
    """
    check_labels(valid)
    split = stratified_folds(valid, groups, folds, seed=seed)
    found = np.zeros(len(valid))
    for fold in np.unique(split):
        inside = split == fold
        fitted = fit_head(
            [block[~inside] for block in blocks],
            valid[~inside],
            groups[~inside],
            regularisations=regularisations,
            folds=folds,
            seed=seed + 1,
        )
        features = np.concatenate([block[inside] for block in blocks], axis=1)
        found[inside] = fitted.calibrator(fitted.linear.scores(features))
        if on_fold is not None:
            on_fold(1)
    return found, split


def _held_out_scores(
    blocks: Sequence[FloatArray], valid: IntArray, folds: IntArray, regularisations: Sequence[float]
) -> dict[float, FloatArray]:
    """Log-odds of each item by regressions fitted on the other folds, for each C."""
    found = {C: np.zeros(len(valid)) for C in regularisations}
    features = np.concatenate(blocks, axis=1)
    for fold in np.unique(folds):
        inside = folds == fold
        fitted = fit_blocks([block[~inside] for block in blocks], valid[~inside], regularisations)
        for scores, linear in zip(found.values(), fitted, strict=True):
            scores[inside] = linear.scores(features[inside])
    return found


def _log_loss(scores: FloatArray, valid: IntArray) -> float:
    return float(np.mean(np.logaddexp(0, np.where(valid == 1, -scores, scores))))
