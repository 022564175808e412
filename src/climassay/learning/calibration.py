"""From scores to probabilities that mean what they say, and from probabilities to a threshold.

Everything is fitted on scores of items that the scorer was not fitted on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.learning.splits import held_out, splits_of
from climassay.statistics import Estimate, proportion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
CalibrationMethod = Literal["platt", "isotonic"]

ENOUGH_FOR_ISOTONIC = 200
"""Minimum number of labels of the rarer class for isotonic regression, which overfits fewer."""
MIN_KEPT = 20
"""Minimum number of labelled items above a threshold."""
_SCALE_LIMITS = (1e-3, 1e3)


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
    """Probabilities at :attr:`scores`, in ascending order."""

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Return probabilities, in the shape of ``scores``."""
        from scipy.special import expit

        values = np.asarray(scores, dtype=np.float64)
        if self.method == "isotonic":
            return np.interp(values, self.scores, self.probabilities)
        return np.asarray(expit(self.slope * values + self.intercept), dtype=np.float64)


def fit_calibrator(scores: ArrayLike, positive: ArrayLike, method: CalibrationMethod | None = None) -> Calibrator:
    """Fit a calibrator: Platt's logistic if labels are few, isotonic regression if they are many.

    If scores fall with the labels, every item gets the share of positive ones.

    Args:
        scores: Shape [items], log-odds or any score that rises with them.
        positive: Shape [items], 0 or 1.
        method: By default Platt's, and isotonic from :data:`ENOUGH_FOR_ISOTONIC` labels of the rarer class on.

    Raises:
        InputError: Shapes differ or are empty.

    References:
        Platt (1999), with targets moved away from 0 and 1; Zadrozny and Elkan (2002) for isotonic regression.
    """
    values, labels = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=np.int64)
    if values.shape != labels.shape or values.ndim != 1 or not values.size:
        raise InputError(f"Calibration needs one label for each score, got {labels.size} for {values.size}.")
    rarer = int(min(labels.sum(), len(labels) - labels.sum()))
    if (method or ("isotonic" if rarer >= ENOUGH_FOR_ISOTONIC else "platt")) == "isotonic":
        from sklearn.isotonic import IsotonicRegression

        regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(values, labels)
        knots, heights = regression.X_thresholds_.astype(float), regression.y_thresholds_.astype(float)
        return Calibrator("isotonic", scores=tuple(knots.tolist()), probabilities=tuple(heights.tolist()))
    return _platt(values, labels)


def _platt(scores: FloatArray, labels: IntArray) -> Calibrator:
    """Fit slope and intercept by L-BFGS on standardised scores."""
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

    result = minimize(loss, np.array([0.0, base]), jac=True, method="L-BFGS-B", bounds=((0.0, None), (None, None)))
    slope = float(result.x[0]) / spread
    return Calibrator("platt", slope, float(result.x[1]) - slope * middle)


def cross_fitted(scores: ArrayLike, positive: ArrayLike, folds: IntArray) -> FloatArray:
    """Return probabilities of items by calibrators fitted on the other folds; all of shape [items]."""
    values, labels = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=np.int64)
    return held_out(
        splits_of(folds),
        lambda train: fit_calibrator(values[train], labels[train]),
        lambda calibrator, test: calibrator(values[test]),
        len(values),
    )


def fit_scale(log_odds: ArrayLike, outcomes: ArrayLike, *, independent: int) -> float:
    """Return the multiplier of log-odds that minimises log-loss (one-parameter logistic; 1 / temperature).

    Targets are 1/(n+2) and (n+1)/(n+2) instead of 0 and 1, so that pairs without a mistake do not lead to certainty.

    Args:
        log_odds: Shape [pairs], from items the probe was not fitted on.
        outcomes: Shape [pairs], 1 or -1, without ties.
        independent: n, the number of items behind the pairs, which are not independent.

    Returns:
        Between 0.001 and 1000; 1 without pairs.

    References:
        Platt (1999), "Probabilistic outputs for support vector machines", for the targets; Guo et al. (2017), arXiv
        1706.04599, for the temperature.
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    margin = np.asarray(log_odds, dtype=np.float64) * np.asarray(outcomes, dtype=np.float64)
    target = (independent + 1) / (independent + 2)
    if not margin.size or not margin.any():
        return 1.0

    def slope(log_scale: float) -> float:
        return float(np.mean((expit(np.exp(log_scale) * margin) - target) * margin))

    low, high = np.log(_SCALE_LIMITS)
    # The loss is convex, so its slope changes sign at most once.
    if slope(low) >= 0:
        return _SCALE_LIMITS[0]
    if slope(high) <= 0:
        return _SCALE_LIMITS[1]
    return float(np.exp(brentq(slope, low, high, xtol=1e-10)))


def fit_tie_band(log_odds: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the half-width within which calling two items equal gives the best three-way accuracy.

    Held-out log-odds and outcomes (1, 0 for a tie, -1) have the shape [pairs].

    Returns:
        The smallest best band, halfway between two neighbouring absolute log-odds; 0 if no band helps.
    """
    values, truth = np.asarray(log_odds, dtype=np.float64), np.asarray(outcomes, dtype=np.int64)
    if not values.size:
        return 0.0
    size = np.abs(values)
    order = np.argsort(size, kind="stable")
    size, tie = size[order], (truth == 0)[order]
    right = ((np.sign(values) == truth) & (truth != 0))[order]
    # With the k smallest called ties: ties among them, and right signs among the rest.
    hits = np.concatenate([[0], np.cumsum(tie)]) + right.sum() - np.concatenate([[0], np.cumsum(right)])
    border = np.concatenate([[True], np.diff(size) > 0, [True]])
    # A log-odds of exactly 0 is a tie with any band.
    border[0] = size[0] > 0
    best = int(np.flatnonzero(border)[np.argmax(hits[border])])
    if best == 0 or size[best - 1] == 0:
        return 0.0
    if best == len(size):
        return float(size[-1])
    return float((size[best - 1] + size[best]) / 2)


def reweighted(
    probabilities: ArrayLike, shares: ArrayLike, mix: ArrayLike | None = None, *, balance: float = 1.0
) -> FloatArray:
    """Return probabilities for another mix of classes than that of the training data (Bayes' rule).

    ``p * (mix / share) ** balance``, normalised: unchanged at balance 0.

    Args:
        probabilities: Shape [..., classes], calibrated on the training mix.
        shares: Shares of the classes in training, all above 0.
        mix: Shares of the classes in use; need not sum to 1; None: equal ones.
        balance: 0 to 1, strength of the correction.

    Raises:
        InputError: A share is not positive, or none of the mix is.
    """
    training_shares = np.asarray(shares, dtype=np.float64)
    target_shares = np.ones(len(training_shares)) if mix is None else np.asarray(mix, dtype=np.float64)
    if (
        (training_shares <= 0).any()
        or target_shares.shape != training_shares.shape
        or (target_shares < 0).any()
        or not target_shares.any()
    ):
        raise InputError("Class shares must be positive, and those of a mix at least 0.")
    weighted = (
        np.asarray(probabilities, dtype=np.float64) * (target_shares / target_shares.sum() / training_shares) ** balance
    )
    return np.asarray(weighted / np.maximum(weighted.sum(axis=-1, keepdims=True), 1e-300))


@dataclass(frozen=True, slots=True)
class Threshold:
    """Lowest probability of the items to keep, and the expected precision and yield."""

    value: float
    """Minimum probability of an item to keep."""
    wanted: float
    """Requested precision; 0 if none was requested and all items are kept."""
    precision: Estimate
    """Share of positive items among the labelled ones kept, with its Wilson interval. The threshold was chosen on the
    same items, so that new ones do slightly worse: in simulations with 200 labels and a target of 90%, new items had
    89% on average."""
    yield_: Estimate
    """Share of items kept."""


def threshold_for(
    precision: float,
    positive: ArrayLike,
    probabilities: ArrayLike,
    *,
    min_kept: int = MIN_KEPT,
    surely: bool = False,
) -> Threshold:
    """Return the lowest threshold that reaches a precision, which keeps most items.

    Args:
        precision: Target share of positive items among those kept, above 0 to 1.
        positive: Shape [items], 0 or 1.
        probabilities: Shape [items], by a model that was not trained on the item.
        min_kept: Minimum number of labelled items that a threshold keeps.
        surely: Require the lower end of the 95% interval, and not the share, to reach the precision.

    Raises:
        InputError: The precision cannot be reached; the message names the highest one that can.
    """
    labels, values = np.asarray(positive, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    if labels.shape != values.shape or labels.ndim != 1 or not labels.size:
        raise InputError(f"A threshold needs one label for each probability, got {labels.size} for {values.size}.")
    if not 0 < precision <= 1:
        raise InputError(f"The precision is {precision}: give a share above 0 and up to 1, for example 0.95.")
    order = np.argsort(-values, kind="stable")
    hits, sizes = np.cumsum(labels[order]), np.arange(1, len(values) + 1)
    # Equal probabilities are kept or left out together.
    cuts = np.flatnonzero(np.append(np.diff(values[order]) < 0, True) & (sizes >= min_kept))
    if not len(cuts):
        raise InputError(
            f"A threshold is chosen on at least {min_kept} labelled items: there are {len(values)}; label more."
        )
    estimates = [proportion(int(hits[cut]), int(sizes[cut])) for cut in cuts]
    reached = [estimate.interval.low if surely else estimate.value for estimate in estimates]
    sufficient = [cut for cut, value in zip(cuts, reached, strict=True) if value >= precision - 1e-12]
    if not sufficient:
        best = int(cuts[int(np.argmax(reached))])
        phrase = "is sure of at most" if surely else "reaches at most"
        raise InputError(
            f"A precision of {precision:.1%} cannot be reached on these labels: the model {phrase} "
            f"{max(reached):.1%}, by keeping {int(sizes[best])} of {len(values)}; ask for less or label more items."
        )
    cut = int(sufficient[-1])
    n_kept, n_right = int(sizes[cut]), int(hits[cut])
    return Threshold(float(values[order][cut]), precision, proportion(n_right, n_kept), proportion(n_kept, len(values)))


def class_shares(counts: Sequence[int] | IntArray) -> FloatArray:
    """Return shares of classes, shape [classes]; a class without items counts as half an item."""
    positive_counts = np.maximum(np.asarray(counts, dtype=np.float64), 0.5)
    return np.asarray(positive_counts / positive_counts.sum())
