"""From the score of a validator to P(valid): Platt's logistic where labels are few, isotonic where they are many."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
CalibrationMethod = Literal["platt", "isotonic"]

ENOUGH_FOR_ISOTONIC = 200
"""Labels of the rarer kind from which on isotonic regression is taken: with fewer it follows single items."""


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A rising function from scores, in log-odds, to probabilities."""

    method: CalibrationMethod
    slope: float = 1.0
    """Platt: ``p = 1 / (1 + exp(-(slope * score + intercept)))``; never below 0."""
    intercept: float = 0.0
    scores: tuple[float, ...] = ()
    """Isotonic: ascending scores, between which probabilities are interpolated; constant beyond the ends."""
    probabilities: tuple[float, ...] = ()
    """At these scores, never falling."""

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """P(valid), of the shape of ``scores``."""
        from scipy.special import expit

        given = np.asarray(scores, dtype=np.float64)
        if self.method == "isotonic":
            return np.interp(given, self.scores, self.probabilities)
        return np.asarray(expit(self.slope * given + self.intercept), dtype=np.float64)


def fit_calibrator(scores: ArrayLike, valid: ArrayLike, method: CalibrationMethod | None = None) -> Calibrator:
    """Fit a calibrator on scores of items that the scorer was not fitted on.

    Scores that run against the labels say nothing to be trusted: then every item gets the share of valid ones.

    Args:
        scores: Shape [items], log-odds or any score that rises with them.
        valid: Shape [items], 0 or 1.
        method: By default Platt's, and isotonic from :data:`ENOUGH_FOR_ISOTONIC` labels of the rarer kind on.

    Raises:
        InputError: No items, or not as many labels as scores.

    References:
        Platt (1999), "Probabilistic outputs for support vector machines" (targets drawn in from 0 and 1); Zadrozny and
        Elkan (2002), KDD (isotonic); Niculescu-Mizil and Caruana (2005), ICML (which needs how many labels).
    """
    given, labels = np.asarray(scores, dtype=np.float64), np.asarray(valid, dtype=np.int64)
    if given.shape != labels.shape or given.ndim != 1 or not given.size:
        raise InputError(f"Calibration needs one label for each score, got {labels.size} for {given.size}.")
    rarer = int(min(labels.sum(), len(labels) - labels.sum()))
    if (method or ("isotonic" if rarer >= ENOUGH_FOR_ISOTONIC else "platt")) == "isotonic":
        return _isotonic(given, labels)
    return _platt(given, labels)


def _isotonic(scores: FloatArray, labels: IntArray) -> Calibrator:
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, labels)
    return Calibrator(
        "isotonic",
        scores=tuple(fitted.X_thresholds_.astype(float).tolist()),
        probabilities=tuple(fitted.y_thresholds_.astype(float).tolist()),
    )


def _platt(scores: FloatArray, labels: IntArray) -> Calibrator:
    """Newton's method on the two parameters; scores are brought to unit spread first."""
    from scipy.optimize import minimize

    positive = int(labels.sum())
    high, low = (positive + 1) / (positive + 2), 1 / (len(labels) - positive + 2)
    targets = np.where(labels == 1, high, low)
    base = float(np.log(targets.mean() / (1 - targets.mean())))
    middle, spread = float(scores.mean()), float(scores.std())
    if spread < 1e-12:
        return Calibrator("platt", 0.0, base)
    scaled = (scores - middle) / spread

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        logits = parameters[0] * scaled + parameters[1]
        gaps = 1 / (1 + np.exp(-logits)) - targets
        return float(np.mean(np.logaddexp(0, logits) - targets * logits)), np.array(
            [np.mean(gaps * scaled), np.mean(gaps)]
        )

    found = minimize(loss, np.array([0.0, base]), jac=True, method="L-BFGS-B", bounds=((0.0, None), (None, None)))
    slope = float(found.x[0]) / spread
    return Calibrator("platt", slope, float(found.x[1]) - slope * middle)


def cross_fitted(
    scores: ArrayLike,
    valid: ArrayLike,
    folds: IntArray,
    fit: Callable[[FloatArray, IntArray], Calibrator] = fit_calibrator,
) -> FloatArray:
    """Probabilities of items by calibrators fitted on the other folds.

    Args:
        scores: Shape [items].
        valid: Shape [items], 0 or 1.
        folds: Shape [items]; at least two different ones.
        fit: Fits a calibrator.
    """
    given, labels = np.asarray(scores, dtype=np.float64), np.asarray(valid, dtype=np.int64)
    found = np.zeros(len(given))
    for fold in np.unique(folds):
        inside = folds == fold
        found[inside] = fit(given[~inside], labels[~inside])(given[inside])
    return found


def stratified_folds(valid: ArrayLike, groups: ArrayLike, folds: int, *, seed: int = 0) -> IntArray:
    """Deal whole groups into folds of similar size that have about the same share of valid items.

    Groups with the most invalid items go first, each to the fold that has fewest invalid ones so far.

    Args:
        valid: Shape [items], 0 or 1.
        groups: Shape [items], any labels.
        folds: Wanted number; fewer where there are fewer groups.
        seed: Decides the order of like groups.

    Raises:
        InputError: Fewer than two folds or groups.
    """
    labels = np.asarray(valid, dtype=np.int64)
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    count = min(folds, len(names))
    if count < 2:
        raise InputError(
            f"A validator is measured on passages it was not trained on: {len(names)} passages and {folds} folds are "
            "too few, give at least two of each."
        )
    sizes = np.bincount(group)
    invalid = np.bincount(group, weights=1 - labels)
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.lexsort((-sizes[order], -invalid[order]))]
    of_group, loads = np.zeros(len(names), dtype=np.int64), np.zeros((count, 2))
    for one in order:
        fold = min(range(count), key=lambda f: (loads[f, 0] if invalid[one] else 0, loads[f, 1], f))
        of_group[one] = fold
        loads[fold] += invalid[one], sizes[one]
    return of_group[group]


def check_labels(valid: Sequence[int] | IntArray) -> None:
    """Refuse labels, shape [items] of 0 or 1, from which nothing can be learned.

    Raises:
        InputError: Fewer than two of either kind.
    """
    labels = np.asarray(valid)
    positive = int(labels.sum())
    if positive < 2 or len(labels) - positive < 2:
        raise InputError(
            f"Of {len(labels)} labelled questions {len(labels) - positive} are invalid: a validator needs at least two "
            "valid and two invalid ones."
        )
