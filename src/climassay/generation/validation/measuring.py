"""How good a validator is on questions it was not trained on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.judging import Calibration, calibration
from climassay.reporting import Axis, LinePlot, Point, Series
from climassay.statistics import Estimate, Interval, proportion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

KEPT_SHARES = (0.5, 0.8)
"""Of which precision is reported, since precision alone can be had by keeping little."""


@dataclass(frozen=True, slots=True)
class KeptShare:
    """Precision when a fixed share of the questions is kept, the likeliest ones."""

    share: float
    precision: Estimate


@dataclass(frozen=True, slots=True)
class ValidatorScores:
    """Probabilities of labelled questions against their labels."""

    n: int
    passages: int
    """Different main passages: what the intervals of the AUROC resample."""
    constant: Estimate
    """Share of valid questions: the precision without a validator, and what a constant answer gives."""
    precision: Estimate | None
    """Of the questions with P(valid) of at least one half; None where there are none."""
    kept: float
    """Their share."""
    at_shares: tuple[KeptShare, ...]
    auroc: float
    """P(a valid question gets more than an invalid one of the same fold), ties one half; 0.5 is chance."""
    auroc_interval: Interval
    """95% bootstrap over passages."""
    calibration: Calibration


def score_validator(
    valid: ArrayLike,
    probabilities: ArrayLike,
    groups: ArrayLike,
    *,
    folds: ArrayLike | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> ValidatorScores:
    """Score probabilities of questions that were not trained on.

    Args:
        valid: Shape [items], 0 or 1; both must occur.
        probabilities: Shape [items].
        groups: Shape [items], the main passage of each.
        folds: Shape [items]: who was predicted by the same fit. Only questions of one fold are compared for the AUROC:
            across folds a fit that has seen one invalid question more gives a lower probability to all it predicts,
            which makes validators without any skill look worse than chance. None: one fit for all.
        resamples: Bootstrap samples.
        seed: Of the resampling.

    Raises:
        InputError: All labels are the same, or shapes differ.
    """
    labels, given = np.asarray(valid, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    group = np.unique(np.asarray(groups), return_inverse=True)[1]
    fold = np.zeros(len(labels), dtype=np.int64) if folds is None else np.asarray(folds, dtype=np.int64)
    if not len(labels) == len(given) == len(group) == len(fold):
        raise InputError("Validators are scored with one probability, one passage and one fold for each label.")
    if not 0 < labels.sum() < len(labels):
        raise InputError("All labelled questions are of one kind, so that nothing can be said about a validator.")
    at_half = given >= 0.5
    return ValidatorScores(
        n=len(labels),
        passages=int(group.max()) + 1,
        constant=proportion(int(labels.sum()), len(labels)),
        precision=proportion(int(labels[at_half].sum()), int(at_half.sum())) if at_half.any() else None,
        kept=float(at_half.mean()),
        at_shares=tuple(precision_at(share, labels, given) for share in KEPT_SHARES),
        auroc=_ratio(_comparisons(labels, given, fold, group).sum(axis=0)),
        auroc_interval=_auroc_interval(labels, given, fold, group, resamples, seed),
        calibration=calibration(given, labels),
    )


def precision_at(share: float, valid: IntArray, probabilities: FloatArray) -> KeptShare:
    """Precision of the likeliest share of the questions, at least one; equal ones in the order given.

    Args:
        share: Of the questions, 0 to 1.
        valid: Shape [questions], 0 or 1.
        probabilities: P(valid), shape [questions].
    """
    kept = max(1, round(share * len(valid)))
    chosen = np.argsort(-probabilities, kind="stable")[:kept]
    return KeptShare(share, proportion(int(valid[chosen].sum()), kept))


def auroc(valid: IntArray, probabilities: FloatArray) -> float:
    """P(a valid item gets more than an invalid one), ties one half; nan where one kind is missing.

    Args:
        valid: Shape [items], 0 or 1.
        probabilities: Scores of any kind, more for valid, shape [items].

    References:
        Mann and Whitney (1947), Ann. Math. Stat. 18, 50-60.
    """
    from scipy.stats import rankdata

    positive = int(valid.sum())
    negative = len(valid) - positive
    if not positive or not negative:
        return float("nan")
    ranks = rankdata(probabilities)
    return float((ranks[valid == 1].sum() - positive * (positive + 1) / 2) / (positive * negative))


def _comparisons(labels: IntArray, given: FloatArray, fold: IntArray, group: IntArray) -> FloatArray:
    """(won, made) comparisons of each valid item with the invalid ones of its fold, summed over its passage.

    Shape [passages, 2].
    """
    found = np.zeros((int(group.max()) + 1, 2))
    for one in np.flatnonzero(labels == 1):
        others = given[(labels == 0) & (fold == fold[one])]
        won = (given[one] > others).sum() + 0.5 * (given[one] == others).sum()
        found[group[one]] += won, len(others)
    return found


def _ratio(sums: FloatArray) -> float:
    return float(sums[0] / sums[1]) if sums[1] else 0.5


def _auroc_interval(
    labels: IntArray, given: FloatArray, fold: IntArray, group: IntArray, resamples: int, seed: int
) -> Interval:
    """Bootstrap over passages: each weighs as often as it is drawn, on both sides of a comparison."""
    good, bad = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    same = fold[good][:, None] == fold[bad][None, :]
    won = same * ((given[good][:, None] > given[bad]) + 0.5 * (given[good][:, None] == given[bad]))
    size = int(group.max()) + 1
    drawn = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
    first, second = drawn[:, group[good]], drawn[:, group[bad]]
    wins, made = ((first @ table * second).sum(axis=1) for table in (won, same.astype(np.float64)))
    values = wins[made > 0] / made[made > 0]
    low, high = np.quantile(values, [0.025, 0.975]) if len(values) else (0.0, 1.0)
    return Interval(float(low), float(high))


def reliability_figure(scores: ValidatorScores, title: str = "Do the probabilities mean what they say?") -> LinePlot:
    """Predicted against observed share of valid questions, with Wilson intervals and the diagonal."""
    points = tuple(
        Point(
            one.confidence,
            one.accuracy.value,
            one.accuracy.interval.low,
            one.accuracy.interval.high,
            f"n = {one.accuracy.n}",
        )
        for one in scores.calibration.curve
    )
    diagonal = Series("as it should be", (Point(0.0, 0.0), Point(1.0, 1.0)), reference=True)
    ticks = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    return LinePlot(
        title,
        (Series("validator", points), diagonal),
        Axis("P(valid)", 0.0, 1.0, ticks, percent=True),
        Axis("share of valid questions", 0.0, 1.0, ticks, percent=True),
        note="Bars: 95% Wilson interval.",
        square=True,
    )
