"""How good a trained model is on items it was not trained on: one record, with intervals and the constant's figures.

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
"""Least probability whose logarithm is taken."""


@dataclass(frozen=True, slots=True)
class ClassScores:
    """One class against all others."""

    label: str
    n: int
    precision: Estimate
    """Share of the answers naming the class that are right, 0 where none names it."""
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far the probabilities of an outcome can be trusted; lower is better everywhere."""

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
class Evaluation:
    """Probabilities of classes against the truth, on held-out items."""

    classes: tuple[str, ...]
    n: int
    groups: int
    """What the intervals resample."""
    failed: int
    """Items without an answer: wrong in accuracy, F1 and recall, left out of the rest."""
    constant: Estimate
    """Accuracy of always giving the most frequent class, on the same mix."""
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
    """Shares of the classes on which it was scored; None: as they came."""

    def to_dict(self) -> dict[str, Any]:
        """What JSON can write."""
        return asdict(self)

    def tables(self) -> list[Table]:
        """The figures beside the constant's, and those of each class."""
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
            [[name, f"{one.value:.3f}", _range(one), f"{constant:.3f}"] for name, one, constant in rows],
            note=note,
        )
        each = Table.of(
            "Each class",
            ["class", "n", "precision", "recall", "F1", "95% interval of F1"],
            [
                [one.label, str(one.n), *(f"{part.value:.3f}" for part in (one.precision, one.recall, one.f1)),
                 _range(one.f1)]
                for one in self.per_class
            ],
        )  # fmt: skip
        return [overall, each]

    @property
    def figures(self) -> dict[str, float]:
        """The figures that a model's file keeps, intervals as ``_low`` and ``_high``."""
        named = {
            "accuracy": self.accuracy,
            "constant": self.constant,
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            "log_loss": self.log_loss,
            "brier": self.brier,
            **({} if self.auroc is None else {"auroc": self.auroc}),
        }
        ends = {
            f"{name}{end}": value
            for name, one in named.items()
            for end, value in (("", one.value), ("_low", one.interval.low), ("_high", one.interval.high))
        }
        return {**ends, "n": float(self.n), "failed": float(self.failed)}


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
) -> Evaluation:
    """Score probabilities of held-out items.

    Args:
        truth: Shape [items], places in ``classes``.
        probabilities: Shape [items, classes]; NaN where an item failed.
        classes: Their names; their order counts for the ordinal error only.
        groups: Shape [items], any labels; None: each item by itself.
        answers: Shape [items], places in ``classes``, -1 where an item failed; by default the most probable class.
        mix: Shares of the classes on which to score: an item of class t counts ``mix[t]`` over its number of items.
            None: as they come.
        folds: Shape [items]: who was predicted by the same fit. The AUROC compares items of one fold only, since across
            folds a fit that has seen one negative more gives less to all it predicts. None: one fit for all.
        resamples: Bootstrap samples.
        seed: Seed of the resampling.
        level: Level of the intervals.

    Raises:
        InputError: Shapes that do not fit, no items, or a class of the mix without items.
    """
    labels, given = np.asarray(truth, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    k = len(classes)
    if not labels.size or given.shape != (len(labels), k):
        raise InputError(f"{len(labels)} labels need probabilities of {k} classes each, got shape {given.shape}.")
    known = np.asarray(np.isfinite(given).all(axis=1))
    said = np.where(known, np.where(known[:, None], given, 0.0).argmax(axis=1), -1)
    if answers is not None:
        said = np.asarray(answers, dtype=np.int64)
    units = np.arange(len(labels)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if len(units) != len(labels) or len(said) != len(labels):
        raise InputError("Truth, probabilities, answers and groups belong to the same items.")
    weights = None if mix is None else np.asarray(mix, dtype=np.float64)
    counts = np.bincount(labels, minlength=k)
    if weights is not None and (weights.shape != (k,) or (counts[weights > 0] == 0).any()):
        raise InputError("The mix includes classes without held-out items.")
    sums = _sums_by_group(labels, given, said, known, units.astype(np.int64), k)
    size = len(sums)
    draws = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
    point = _measures(sums.sum(axis=0, keepdims=True), weights)
    drawn = _measures(np.tensordot(draws, sums, axes=1), weights)

    def estimate(name: str, place: int | None = None) -> Estimate:
        value, sampled = (result[name] if place is None else result[name][:, place] for result in (point, drawn))
        sampled, known_value = sampled[np.isfinite(sampled)], float(np.nan_to_num(value[0]))
        # A class without items has no recall: nothing is known of it.
        interval = percentile_interval(sampled, level) if len(sampled) else Interval(0.0, 1.0)
        if name not in ("log_loss", "ordinal_error"):
            # Groups that tell about all classes, or about one.
            held = size if place is None else int(sums[:, place, : k + 1].any(axis=1).sum())
            interval = share_interval(interval, known_value, max(1, held), level, ends_only=True)
        return Estimate(known_value, interval, len(labels), level)

    shares = counts if weights is None else weights
    most = int(np.argmax(shares))
    top = float(shares[most] / shares.sum())
    exact = Estimate(top, Interval(top, top), len(labels))
    auroc = None
    if k == 2 and known.any():
        fold = np.zeros(len(labels), dtype=np.int64) if folds is None else np.asarray(folds, dtype=np.int64)
        auroc = auroc_estimate(
            labels[known], given[known, 1], groups=units[known], folds=fold[known], resamples=resamples, seed=seed
        )
    return Evaluation(
        classes=tuple(classes),
        n=len(labels),
        groups=size,
        failed=int((said < 0).sum()),
        constant=exact if weights is not None else proportion(int(counts[most]), len(labels)),
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
                int(counts[place]),
                estimate("precision", place),
                estimate("recall", place),
                estimate("f1", place),
            )
            for place, label in enumerate(classes)
        ),
        confusion=tuple(tuple(int(count) for count in row[:k]) for row in sums.sum(axis=0)),
        mix=None if mix is None else tuple(mix),
    )


def auroc(scores: ArrayLike, positive: ArrayLike) -> float:
    """P(a positive item gets more than a negative one), ties one half; 0.5 where one kind is missing.

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
    """AUROC with its bootstrap interval over groups, each weighing as often as it is drawn.

    All arrays have the shape [items]. Without ``groups`` each item is a group of its own; with ``folds``, only items of
    the same fold are compared.
    """
    labels, given = np.asarray(positive, dtype=np.int64), np.asarray(scores, dtype=np.float64)
    units = np.arange(len(labels)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    fold = np.zeros(len(labels), dtype=np.int64) if folds is None else np.asarray(folds)
    size = int(units.max()) + 1
    draws = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
    weights = np.concatenate([np.ones((1, size)), draws])[:, units]
    won, made = np.zeros(len(weights)), np.zeros(len(weights))
    for one in np.unique(fold):
        inside = np.flatnonzero(fold == one)
        order = inside[np.argsort(given[inside], kind="stable")]
        ahead, behind = weights[:, order] * labels[order], weights[:, order] * (1 - labels[order])
        # Equal scores share a place: a positive item beats the negative ones below, and half of those beside it.
        starts = np.flatnonzero(np.diff(given[order], prepend=np.nan) != 0)
        level_positive = np.add.reduceat(ahead, starts, axis=1)
        level_negative = np.add.reduceat(behind, starts, axis=1)
        below = np.cumsum(level_negative, axis=1) - level_negative
        won += (level_positive * (below + level_negative / 2)).sum(axis=1)
        made += ahead.sum(axis=1) * behind.sum(axis=1)
    values = np.divide(won, made, out=np.full(len(won), np.nan), where=made > 0)
    sampled = values[1:][np.isfinite(values[1:])]
    value = float(np.nan_to_num(values[0], nan=0.5))
    drawn = percentile_interval(sampled) if len(sampled) else Interval(0.0, 1.0)
    return Estimate(value, share_interval(drawn, value, size, ends_only=True), len(labels))


def log_loss(probabilities: FloatArray, truth: IntArray) -> float:
    """Mean negative log-probability of the true class, in nats.

    ``probabilities`` has the shape [items, classes]; ``truth``, of shape [items], holds the true classes' columns.
    """
    return float(-np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-12)).mean())


def brier_score(probabilities: ArrayLike, outcomes: ArrayLike) -> float:
    """Mean squared distance of probabilities from outcomes 0 or 1, both of shape [items] (Brier 1950, halved).

    Raises:
        InputError: Shapes differ or are empty, or a value lies outside its range.
    """
    given, came = _checked(probabilities, outcomes)
    return float(np.mean((given - came) ** 2))


def calibration(probabilities: ArrayLike, outcomes: ArrayLike, bins: int = 10) -> Calibration:
    """How well probabilities in 0..1 match outcomes 0 or 1; see :class:`Calibration`.

    Both have the shape [items]; the curve is drawn over ``bins`` of equal width. The calibration error is that of the
    predicted side, so that swapping the two items of every pair changes nothing.

    Raises:
        InputError: As :func:`brier_score`.
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


def reliability_plot(title: str, curves: Sequence[tuple[str, Calibration]]) -> LinePlot:
    """Observed against predicted shares by name, intervals where there is one, and the diagonal of honest ones."""
    axis_x, axis_y = (
        Axis(label, 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), percent=True)
        for label in ("predicted probability", "observed share")
    )
    series = []
    for name, known in curves:
        points = []
        for one in known.curve:
            # Intervals of several curves would hide each other.
            ends, share = one.accuracy.interval if len(curves) == 1 else None, one.accuracy.value
            low, high = (ends.low if ends else None), (ends.high if ends else None)
            points.append(Point(one.confidence, share, low, high, f"{one.accuracy.n} predictions"))
        series.append(Series(name, tuple(points)))
    briers = "; ".join(
        f"{name}: Brier score {known.brier:.3f} (constant {known.brier_constant:.3f}), calibration error "
        f"{known.expected_calibration_error:.3f}"
        for name, known in curves
    )
    diagonal = Series("perfectly calibrated", (Point(0, 0), Point(1, 1)), reference=True)
    return LinePlot(title, (*series, diagonal), axis_x, axis_y, note=f"{briers}.", square=True)


def _checked(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
    given, came = np.asarray(probabilities, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    if given.shape != came.shape or given.ndim != 1 or not given.size:
        raise InputError("Calibration needs as many probabilities as outcomes, in one row, and at least one.")
    if not ((given >= 0) & (given <= 1)).all() or not np.isin(came, (0, 1)).all():
        raise InputError("Calibration needs probabilities from 0 to 1 and outcomes that are 0 or 1.")
    return given, came


def _sums_by_group(
    labels: IntArray, given: FloatArray, said: IntArray, known: NDArray[np.bool_], units: IntArray, k: int
) -> FloatArray:
    """Additive parts of all measures by group, shape [groups, k, k + 4].

    Counts by truth and answer (failures in a column of their own), then by truth the log losses, squared distances and
    numbers of the items that have probabilities.
    """
    sums = np.zeros((int(units.max()) + 1, k, k + 4))
    np.add.at(sums, (units, labels, np.where(said < 0, k, said)), 1.0)
    rows = np.flatnonzero(known)
    own = given[rows, labels[rows]]
    distance = ((given[rows] - np.eye(k)[labels[rows]]) ** 2).sum(axis=1) / 2
    for column, values in enumerate((-np.log(np.maximum(own, _FLOOR)), distance, np.ones(len(rows))), start=k + 1):
        np.add.at(sums[:, :, column], (units[rows], labels[rows]), values)
    return sums


def _measures(sums: FloatArray, mix: FloatArray | None) -> dict[str, FloatArray]:
    """Measures of each sample of sums, shape [samples] or [samples, classes]."""
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
    known = np.isfinite(values)
    return np.asarray(np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def _range(one: Estimate) -> str:
    return f"{one.interval.low:.3f} to {one.interval.high:.3f}"
