"""Do probabilities mean what they say: Brier score, log-loss, reliability curve, and the fits that make them so."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.statistics import Interval, expected_calibration_error, wilson_interval

FloatArray = NDArray[np.float64]

_SCALE_LIMITS = (1e-3, 1e3)


class ReliabilityBin(NamedTuple):
    """Predictions of similar probability, and how often they came true."""

    n: int
    predicted: float
    """Mean predicted probability."""
    observed: float
    """Share that came true."""
    interval: Interval
    """Wilson 95% interval of the observed share, as if the n predictions were independent."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far predicted probabilities can be trusted; lower is better everywhere."""

    n: int
    brier: float
    brier_constant: float
    """Brier score of always predicting the base rate: what a useful forecast must beat."""
    log_loss: float
    """Mean negative log-likelihood in nats; log 2 = 0.693 for always predicting one half."""
    expected_calibration_error: float
    curve: tuple[ReliabilityBin, ...]


def brier_score(probabilities: ArrayLike, outcomes: ArrayLike) -> float:
    """Mean squared distance of probabilities from outcomes.

    Args:
        probabilities: Shape [n], 0 to 1.
        outcomes: Shape [n], 0 or 1.

    Raises:
        InputError: Shapes differ or are empty, or a value lies outside its range.

    References:
        Brier (1950), Monthly Weather Review 78, 1-3 (its two-class form divided by two).
    """
    given, came = _checked(probabilities, outcomes)
    return float(np.mean((given - came) ** 2))


def reliability_curve(
    probabilities: ArrayLike, outcomes: ArrayLike, bins: int = 10, *, equal_mass: bool = False
) -> tuple[ReliabilityBin, ...]:
    """Mean prediction against observed share, bin by bin in ascending order; empty bins are left out.

    Args:
        probabilities: Shape [n], 0 to 1.
        outcomes: Shape [n], 0 or 1.
        bins: Number of bins.
        equal_mass: Bins of equal count instead of equal width; equal probabilities may then fall into two bins.

    Raises:
        InputError: Shapes differ or are empty, a value lies outside its range, or there are no bins.
    """
    given, came = _checked(probabilities, outcomes)
    if bins < 1:
        raise InputError(f"A reliability curve needs at least one bin, not {bins}.")
    if equal_mass:
        members = np.array_split(np.argsort(given, kind="stable"), bins)
    else:
        index = np.minimum((given * bins).astype(int), bins - 1)
        members = [np.flatnonzero(index == k) for k in range(bins)]
    return tuple(
        ReliabilityBin(
            len(rows),
            float(given[rows].mean()),
            float(came[rows].mean()),
            wilson_interval(int(came[rows].sum()), len(rows)),
        )
        for rows in members
        if len(rows)
    )


def calibration(probabilities: ArrayLike, outcomes: ArrayLike, bins: int = 10) -> Calibration:
    """Summarise how well probabilities in 0..1 match outcomes 0 or 1; see :class:`Calibration`.

    The calibration error is that of the predicted side: confidence max(p, 1-p) against being right, so that swapping
    the two items of every pair changes nothing.
    """
    given, came = _checked(probabilities, outcomes)
    clipped = np.clip(given, 1e-12, 1 - 1e-12)
    right = np.where(given > 0.5, came, np.where(given < 0.5, 1 - came, 0.5))
    return Calibration(
        n=given.size,
        brier=brier_score(given, came),
        brier_constant=brier_score(np.full(given.size, came.mean()), came),
        log_loss=float(-np.mean(came * np.log(clipped) + (1 - came) * np.log1p(-clipped))),
        expected_calibration_error=expected_calibration_error(np.maximum(given, 1 - given), right, bins),
        curve=reliability_curve(given, came, bins),
    )


def fit_scale(log_odds: ArrayLike, outcomes: ArrayLike, *, independent: int) -> float:
    """The multiplier of log-odds that minimises log-loss (one-parameter logistic; 1 / temperature).

    Targets are drawn in from 0 and 1 to 1/(n+2) and (n+1)/(n+2), so that pairs without a single mistake do not ask for
    certainty.

    Args:
        log_odds: Shape [pairs], from items the probe was not fitted on.
        outcomes: Shape [pairs], 1 or -1; ties left out.
        independent: n: the items behind the pairs (the pairs themselves are not independent).

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
    """The half-width within which calling two items equal gives the best three-way accuracy.

    Args:
        log_odds: Shape [pairs], from items the probe was not fitted on.
        outcomes: Shape [pairs], 1, 0 (tie) or -1.

    Returns:
        The smallest best band, halfway between two neighbouring absolute log-odds; 0 where no band helps (no ties).
    """
    given, truth = np.asarray(log_odds, dtype=np.float64), np.asarray(outcomes, dtype=np.int64)
    if not given.size:
        return 0.0
    size = np.abs(given)
    order = np.argsort(size, kind="stable")
    size, tie = size[order], (truth == 0)[order]
    right = ((np.sign(given) == truth) & (truth != 0))[order]
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


def _checked(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
    given, came = np.asarray(probabilities, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    if given.shape != came.shape or given.ndim != 1 or not given.size:
        raise InputError("Calibration needs as many probabilities as outcomes, in one row, and at least one.")
    if not ((given >= 0) & (given <= 1)).all() or not np.isin(came, (0, 1)).all():
        raise InputError("Calibration needs probabilities from 0 to 1 and outcomes that are 0 or 1.")
    return given, came
