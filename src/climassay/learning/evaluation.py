"""Scores of a trained model on held-out items, with intervals and the scores of the constant.

Intervals are percentile bootstraps over groups (claims, passages, report sections), whose items are drawn together; a
share of 0 or 1 in all resamples has Wilson's for as many groups.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.reporting import Axis, LinePlot, Point, Series, Table
from climassay.statistics import (
    Estimate,
    Interval,
    ReliabilityBin,
    expected_calibration_error,
    percentile_interval,
    proportion,
    reliability_curve,
    share_interval,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RESAMPLES = 1000
_FLOOR = 1e-6
"""Minimum probability before taking the logarithm."""


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Scores of one class against all others."""

    label: str
    n: int
    precision: Estimate
    """Share of the answers naming the class that are right; 0 if no answer names it."""
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration of the probabilities of an outcome; lower is better everywhere."""

    n: int
    brier: float
    """Mean squared distance from the outcome, 0 or 1 (Brier 1950, its two-class form divided by two)."""
    brier_constant: float
    """Brier score of always predicting the base rate: what a useful forecast must beat."""
    log_loss: float
    """Mean negative log-likelihood in nats; log 2 = 0.693 for always predicting one half."""
    expected_calibration_error: float
    """Calibration error of the side predicted: confidence max(p, 1 - p) against being right, ten bins."""
    curve: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """Scores of class probabilities on held-out items."""

    classes: tuple[str, ...]
    n: int
    groups: int
    """Number of groups that the intervals resample."""
    failed: int
    """Number of items without an answer: wrong in accuracy, F1 and recall, excluded elsewhere."""
    constant: Estimate
    """Accuracy of always predicting the most frequent class."""
    constant_macro_f1: float
    accuracy: Estimate
    balanced_accuracy: Estimate
    """Mean recall of the classes; 1 over their number for a constant."""
    macro_f1: Estimate
    """Mean F1 of the classes that occur in truth or answers."""
    ordinal_error: Estimate
    """Mean distance of the answer from the truth in classes, for classes in order; 0 is best."""
    log_loss: Estimate
    """Mean negative log-probability of the true class, in nats."""
    brier: Estimate
    """Mean squared distance of the probabilities from the truth, summed over classes and divided by two."""
    auroc: Estimate | None
    """P(an item of the second of two classes gets more than one of the first), ties one half; None of more classes."""
    per_class: tuple[ClassScores, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Counts by true class (rows) and answer (columns)."""
    mix: tuple[float, ...] | None = None
    """Shares of the classes in the scores; None: those of the items."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable values."""
        return asdict(self)

    def tables(self) -> list[Table]:
        """Return the scores beside the constant's, and those of each class."""
        rows = [
            ("accuracy", self.accuracy, self.constant.value),
            ("balanced accuracy", self.balanced_accuracy, 1 / len(self.classes)),
            ("macro-F1", self.macro_f1, self.constant_macro_f1),
            *([] if self.auroc is None else [("AUROC", self.auroc, 0.5)]),
        ]
        failed = f", of which {self.failed} failed and count as wrong" if self.failed else ""
        note = f"{self.n} items in {self.groups} groups{failed}; 95% bootstrap intervals over groups."
        overall = Table.of(
            "Held-out scores",
            ["measure", "value", "95% interval", "constant"],
            [[name, f"{estimate.value:.3f}", _range(estimate), f"{constant:.3f}"] for name, estimate, constant in rows],
            note=note,
        )
        by_class = Table.of(
            "Each class",
            ["class", "n", "precision", "recall", "F1", "95% interval of F1"],
            [
                [
                    scores.label,
                    str(scores.n),
                    *(f"{estimate.value:.3f}" for estimate in (scores.precision, scores.recall, scores.f1)),
                    _range(scores.f1),
                ]
                for scores in self.per_class
            ],
        )  # fmt: skip
        return [overall, by_class]

    @property
    def figures(self) -> dict[str, float]:
        """Scores for the file of a model; intervals end in ``_low`` and ``_high``."""
        estimates = {
            "accuracy": self.accuracy,
            "constant": self.constant,
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            "log_loss": self.log_loss,
            "brier": self.brier,
            **({} if self.auroc is None else {"auroc": self.auroc}),
        }
        values = {
            f"{name}{end}": value
            for name, estimate in estimates.items()
            for end, value in (("", estimate.value), ("_low", estimate.interval.low), ("_high", estimate.interval.high))
        }
        return {**values, "n": float(self.n), "failed": float(self.failed)}


def evaluate(
    truth: ArrayLike,
    probabilities: ArrayLike,
    classes: Sequence[str],
    *,
    groups: ArrayLike | None = None,
    answers: ArrayLike | None = None,
    mix: Sequence[float] | None = None,
    folds: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> HeldOutScores:
    """Score probabilities of held-out items.

    Args:
        truth: Class of each item as an index of ``classes``, shape [items].
        probabilities: Probabilities of the classes, shape [items, classes]; NaN for failed items.
        classes: Names of the classes; only the ordinal error depends on their order.
        groups: Group of each item, shape [items], for the bootstrap; by default each item is a group.
        answers: Chosen class of each item as an index, shape [items], -1 for failed items; by default the most
            probable class.
        mix: Shares of the classes to assume: an item of class t has the weight ``mix[t]`` divided by the number of
            items of t. None gives every item the same weight.
        folds: Fold of each item, shape [items]. The AUROC compares only items of one fold, because probabilities of
            different fits are not comparable: a fit on one negative more predicts lower ones. None for a single fit.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.
        level: Level of the intervals.

    Raises:
        InputError: Shapes differ, there are no items, or a class of the mix has none.
    """
    labels, values = np.asarray(truth, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    k = len(classes)
    if not labels.size or values.shape != (len(labels), k):
        raise InputError(f"{len(labels)} labels need probabilities of {k} classes each, got shape {values.shape}.")
    is_answered = np.asarray(np.isfinite(values).all(axis=1))
    predictions = np.where(is_answered, np.where(is_answered[:, None], values, 0.0).argmax(axis=1), -1)
    if answers is not None:
        predictions = np.asarray(answers, dtype=np.int64)
    units = np.arange(len(labels)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if len(units) != len(labels) or len(predictions) != len(labels):
        raise InputError("Truth, probabilities, answers and groups belong to the same items.")
    weights = None if mix is None else np.asarray(mix, dtype=np.float64)
    counts = np.bincount(labels, minlength=k)
    if weights is not None and (weights.shape != (k,) or (counts[weights > 0] == 0).any()):
        raise InputError("The mix includes classes without held-out items.")
    sums = _sums_by_group(labels, values, predictions, is_answered, units.astype(np.int64), k)
    size = len(sums)
    draws = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
    point = _measures(sums.sum(axis=0, keepdims=True), weights)
    resampled = _measures(np.tensordot(draws, sums, axes=1), weights)

    def estimate(name: str, class_index: int | None = None) -> Estimate:
        value, sampled = (
            result[name] if class_index is None else result[name][:, class_index] for result in (point, resampled)
        )
        sampled, known_value = sampled[np.isfinite(sampled)], float(np.nan_to_num(value[0]))
        # A class without items has no recall: nothing is known of it.
        interval = percentile_interval(sampled, level) if len(sampled) else Interval(0.0, 1.0)
        if name not in ("log_loss", "ordinal_error"):
            # Groups that tell about all classes, or about one.
            n_groups = size if class_index is None else int(sums[:, class_index, : k + 1].any(axis=1).sum())
            interval = share_interval(interval, known_value, max(1, n_groups), level, ends_only=True)
        return Estimate(known_value, interval, len(labels), level)

    shares = counts if weights is None else weights
    top_class = int(np.argmax(shares))
    top = float(shares[top_class] / shares.sum())
    exact = Estimate(top, Interval(top, top), len(labels))
    auroc = None
    if k == 2 and is_answered.any():
        fold = np.zeros(len(labels), dtype=np.int64) if folds is None else np.asarray(folds, dtype=np.int64)
        auroc = auroc_estimate(
            labels[is_answered],
            values[is_answered, 1],
            groups=units[is_answered],
            folds=fold[is_answered],
            resamples=resamples,
            seed=seed,
        )
    return HeldOutScores(
        classes=tuple(classes),
        n=len(labels),
        groups=size,
        failed=int((predictions < 0).sum()),
        constant=exact if weights is not None else proportion(int(counts[top_class]), len(labels)),
        constant_macro_f1=2 * top / (1 + top) / int((shares > 0).sum()),
        accuracy=estimate("accuracy"),
        balanced_accuracy=estimate("balanced_accuracy"),
        macro_f1=estimate("macro_f1"),
        ordinal_error=estimate("ordinal_error"),
        log_loss=estimate("log_loss"),
        brier=estimate("brier"),
        auroc=auroc,
        per_class=tuple(
            ClassScores(
                label,
                int(counts[class_index]),
                estimate("precision", class_index),
                estimate("recall", class_index),
                estimate("f1", class_index),
            )
            for class_index, label in enumerate(classes)
        ),
        confusion=tuple(tuple(int(count) for count in row[:k]) for row in sums.sum(axis=0)),
        mix=None if mix is None else tuple(mix),
    )


def auroc(scores: ArrayLike, positive: ArrayLike) -> float:
    """Return P(a positive item has a higher score than a negative one), ties one half; 0.5 if a class is missing.

    Both have the shape [items]; ``positive`` is 0 or 1 (Mann and Whitney 1947).
    """
    from sklearn.metrics import roc_auc_score

    labels = np.asarray(positive, dtype=np.int64)
    return float(roc_auc_score(labels, np.asarray(scores))) if 0 < labels.sum() < len(labels) else 0.5


def auroc_estimate(
    positive: ArrayLike,
    scores: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Return the AUROC with its bootstrap interval over groups.

    All arrays have the shape [items]. Without ``groups`` each item is a group of its own; with ``folds``, only items of
    the same fold are compared.
    """
    labels, score_array = np.asarray(positive, dtype=np.int64), np.asarray(scores, dtype=np.float64)
    units = np.arange(len(labels)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    fold = np.zeros(len(labels), dtype=np.int64) if folds is None else np.asarray(folds)
    size = int(units.max()) + 1
    draws = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
    weights = np.concatenate([np.ones((1, size)), draws])[:, units]
    n_won, n_pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for fold_id in np.unique(fold):
        inside = np.flatnonzero(fold == fold_id)
        order = inside[np.argsort(score_array[inside], kind="stable")]
        positives, negatives = weights[:, order] * labels[order], weights[:, order] * (1 - labels[order])
        # Equal scores share a place: a positive item beats the negative ones below, and half of those beside it.
        starts = np.flatnonzero(np.diff(score_array[order], prepend=np.nan) != 0)
        level_positive = np.add.reduceat(positives, starts, axis=1)
        level_negative = np.add.reduceat(negatives, starts, axis=1)
        below = np.cumsum(level_negative, axis=1) - level_negative
        n_won += (level_positive * (below + level_negative / 2)).sum(axis=1)
        n_pairs += positives.sum(axis=1) * negatives.sum(axis=1)
    values = np.divide(n_won, n_pairs, out=np.full(len(n_won), np.nan), where=n_pairs > 0)
    sampled = values[1:][np.isfinite(values[1:])]
    value = float(np.nan_to_num(values[0], nan=0.5))
    interval = percentile_interval(sampled) if len(sampled) else Interval(0.0, 1.0)
    return Estimate(value, share_interval(interval, value, size, ends_only=True), len(labels))


def log_loss(probabilities: FloatArray, truth: IntArray) -> float:
    """Return the mean negative log-probability of the true class, in nats.

    ``probabilities`` has the shape [items, classes]; ``truth``, of shape [items], holds the columns of the true
    classes.
    """
    return float(-np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-12)).mean())


def brier_score(probabilities: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the mean squared distance of probabilities from outcomes 0 or 1 (Brier 1950, halved).

    Both have the shape [items].

    Raises:
        InputError: Shapes differ or are empty, or a value lies outside its range.
    """
    values, actual = _checked(probabilities, outcomes)
    return float(np.mean((values - actual) ** 2))


def calibration(probabilities: ArrayLike, outcomes: ArrayLike, bins: int = 10) -> Calibration:
    """Compare probabilities with outcomes 0 or 1, both of shape [items].

    The calibration error is that of the predicted side, so that swapping the two items of every pair changes nothing.
    The curve has ``bins`` of equal width.

    Raises:
        InputError: As :func:`brier_score`.
    """
    values, actual = _checked(probabilities, outcomes)
    clipped = np.clip(values, 1e-12, 1 - 1e-12)
    right = np.where(values > 0.5, actual, np.where(values < 0.5, 1 - actual, 0.5))
    return Calibration(
        n=values.size,
        brier=brier_score(values, actual),
        brier_constant=brier_score(np.full(values.size, actual.mean()), actual),
        log_loss=float(-np.mean(actual * np.log(clipped) + (1 - actual) * np.log1p(-clipped))),
        expected_calibration_error=expected_calibration_error(np.maximum(values, 1 - values), right, bins),
        curve=reliability_curve(values, actual, bins),
    )


def reliability_plot(title: str, curves: Sequence[tuple[str, Calibration]]) -> LinePlot:
    """Return a plot of observed against predicted shares by name, with intervals and the diagonal."""
    axis_x, axis_y = (
        Axis(label, 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), percent=True)
        for label in ("predicted probability", "observed share")
    )
    series = []
    for name, summary in curves:
        points = []
        for reliability_bin in summary.curve:
            # Intervals of several curves would hide each other.
            ends, share = (
                reliability_bin.accuracy.interval if len(curves) == 1 else None,
                reliability_bin.accuracy.value,
            )
            low, high = (ends.low if ends else None), (ends.high if ends else None)
            points.append(
                Point(reliability_bin.confidence, share, low, high, f"{reliability_bin.accuracy.n} predictions")
            )
        series.append(Series(name, tuple(points)))
    briers = "; ".join(
        f"{name}: Brier score {summary.brier:.3f} (constant {summary.brier_constant:.3f}), calibration error "
        f"{summary.expected_calibration_error:.3f}"
        for name, summary in curves
    )
    diagonal = Series("perfectly calibrated", (Point(0, 0), Point(1, 1)), reference=True)
    return LinePlot(title, (*series, diagonal), axis_x, axis_y, note=f"{briers}.", square=True)


def _checked(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
    values, actual = np.asarray(probabilities, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    if values.shape != actual.shape or values.ndim != 1 or not values.size:
        raise InputError("Calibration needs as many probabilities as outcomes, in one row, and at least one.")
    if not ((values >= 0) & (values <= 1)).all() or not np.isin(actual, (0, 1)).all():
        raise InputError("Calibration needs probabilities from 0 to 1 and outcomes that are 0 or 1.")
    return values, actual


def _sums_by_group(
    labels: IntArray,
    probabilities: FloatArray,
    predictions: IntArray,
    is_answered: NDArray[np.bool_],
    units: IntArray,
    k: int,
) -> FloatArray:
    """Return the additive parts of all measures by group, shape [groups, k, k + 4].

    Counts by truth and answer (failures in a column of their own), then by truth the log losses, squared distances and
    numbers of the items that have probabilities.
    """
    sums = np.zeros((int(units.max()) + 1, k, k + 4))
    np.add.at(sums, (units, labels, np.where(predictions < 0, k, predictions)), 1.0)
    rows = np.flatnonzero(is_answered)
    true_values = probabilities[rows, labels[rows]]
    distance = ((probabilities[rows] - np.eye(k)[labels[rows]]) ** 2).sum(axis=1) / 2
    for column, values in enumerate(
        (-np.log(np.maximum(true_values, _FLOOR)), distance, np.ones(len(rows))), start=k + 1
    ):
        np.add.at(sums[:, :, column], (units[rows], labels[rows]), values)
    return sums


def _measures(sums: FloatArray, mix: FloatArray | None) -> dict[str, FloatArray]:
    """Return the measures of each sample of sums, shape [samples] or [samples, classes]."""
    k = sums.shape[1]
    table, losses = sums[:, :, : k + 1], sums[:, :, k + 1 :]
    counts = table.sum(axis=2)
    weights = (
        np.ones_like(counts) if mix is None else np.divide(mix, counts, out=np.zeros_like(counts), where=counts > 0)
    )
    weighted = table * weights[:, :, None]
    right = np.einsum("rii->ri", weighted[:, :, :k])
    true, answered = weighted.sum(axis=2), weighted[:, :, :k].sum(axis=1)
    scored = (losses[:, :, 2] * weights).sum(axis=1)

    def share(values: FloatArray, total: FloatArray, otherwise: float = np.nan) -> FloatArray:
        return np.divide(values, total, out=np.full_like(values, otherwise), where=total > 0)

    recall, f1 = share(right, true), share(2 * right, true + answered)
    distance = np.abs(np.arange(k)[:, None] - np.arange(k)[None, :])
    return {
        "accuracy": share(right.sum(axis=1), weighted.sum(axis=(1, 2))),
        "balanced_accuracy": _mean_of_known(recall),
        "macro_f1": _mean_of_known(f1),
        "ordinal_error": share((weighted[:, :, :k] * distance).sum(axis=(1, 2)), weighted[:, :, :k].sum(axis=(1, 2))),
        "log_loss": share((losses[:, :, 0] * weights).sum(axis=1), scored),
        "brier": share((losses[:, :, 1] * weights).sum(axis=1), scored),
        "precision": share(right, answered, 0.0),
        "recall": recall,
        "f1": f1,
    }


def _mean_of_known(values: FloatArray) -> FloatArray:
    is_finite = np.isfinite(values)
    return np.asarray(np.where(is_finite, values, 0.0).sum(axis=1) / np.maximum(is_finite.sum(axis=1), 1))


def _range(estimate: Estimate) -> str:
    return f"{estimate.interval.low:.3f} to {estimate.interval.high:.3f}"
