"""Scores of a trained model on held-out items, with intervals and the scores of a constant baseline.

Intervals are percentile bootstraps over groups (claims, passages, report sections), whose items are drawn together. If
a proportion is 0 or 1 in all resamples, Wilson's interval for as many groups is used.
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
_MIN_PROBABILITY = 1e-6
"""Smallest probability whose logarithm is taken; smaller probabilities are replaced by it."""


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Scores of one class against all others."""

    label: str
    n: int
    precision: Estimate
    """Proportion of correct predictions among the predictions of this class; 0 if the class was never predicted."""
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration of predicted probabilities of a binary outcome; all scores are better if lower."""

    n: int
    brier: float
    """Mean squared difference between probability and outcome, 0 or 1 (half of the two-class score of Brier 1950)."""
    brier_constant: float
    """Brier score of always predicting the base rate, which a useful forecast must beat."""
    log_loss: float
    """Mean negative log-likelihood in nats; always predicting one half gives log 2 = 0.693."""
    expected_calibration_error: float
    """Expected calibration error of the more probable outcome: its probability max(p, 1 - p) against its frequency."""
    curve: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """Scores of predicted class probabilities on held-out items."""

    classes: tuple[str, ...]
    n: int
    groups: int
    """Number of groups that are resampled for the intervals."""
    failed: int
    """Number of items without a prediction; they count as wrong in accuracy, F1 and recall, and not in other scores."""
    constant: Estimate
    """Accuracy of always predicting the most frequent class."""
    constant_macro_f1: float
    accuracy: Estimate
    balanced_accuracy: Estimate
    """Mean recall of the classes; a constant baseline has 1 / number of classes."""
    macro_f1: Estimate
    """Mean F1 of the classes that occur among the true or predicted classes."""
    ordinal_error: Estimate
    """Mean absolute difference between the indices of the predicted and the true class; meaningful only for ordered
    classes."""
    log_loss: Estimate
    """Mean negative log-probability of the true class, in nats."""
    brier: Estimate
    """Mean squared difference between probabilities and truth, summed over classes and divided by two."""
    auroc: Estimate | None
    """Area under the ROC curve for the second of two classes; None if there are more than two."""
    per_class: tuple[ClassScores, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Number of items by true class (rows) and predicted class (columns)."""
    mix: tuple[float, ...] | None = None
    """Class proportions for which the scores are weighted; None for the proportions among the items."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable values."""
        return asdict(self)

    def tables(self) -> list[Table]:
        """Return a table that compares the scores with the constant baseline, and a table of scores by class."""
        rows = [
            ("accuracy", self.accuracy, self.constant.value),
            ("balanced accuracy", self.balanced_accuracy, 1 / len(self.classes)),
            ("macro-F1", self.macro_f1, self.constant_macro_f1),
            *([] if self.auroc is None else [("AUROC", self.auroc, 0.5)]),
        ]
        clause = f", of which {self.failed} failed and count as wrong" if self.failed else ""
        note = f"{self.n} items in {self.groups} groups{clause}; 95% bootstrap intervals over groups."
        score_table = Table.of(
            "Held-out scores",
            ["measure", "value", "95% interval", "constant"],
            [
                [name, f"{estimate.value:.3f}", _format_interval(estimate), f"{constant:.3f}"]
                for name, estimate, constant in rows
            ],
            note=note,
        )
        class_table = Table.of(
            "Each class",
            ["class", "n", "precision", "recall", "F1", "95% interval of F1"],
            [
                [
                    scores.label,
                    str(scores.n),
                    *(f"{estimate.value:.3f}" for estimate in (scores.precision, scores.recall, scores.f1)),
                    _format_interval(scores.f1),
                ]
                for scores in self.per_class
            ],
        )  # fmt: skip
        return [score_table, class_table]

    @property
    def figures(self) -> dict[str, float]:
        """Scores by their names in model files; names of interval bounds end in ``_low`` and ``_high``."""
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
            f"{name}{suffix}": value
            for name, estimate in estimates.items()
            for suffix, value in (
                ("", estimate.value), ("_low", estimate.interval.low), ("_high", estimate.interval.high)
            )
        }  # fmt: skip
        return {**values, "n": float(self.n), "failed": float(self.failed)}


def comparison_table(
    evaluations: Sequence[tuple[str, HeldOutScores]], title: str = "Tried, on held-out items"
) -> Table:
    """Return a table with an evaluation per row; the row with the lowest log loss is emphasised."""
    best_index = min(range(len(evaluations)), key=lambda index: evaluations[index][1].log_loss.value)
    scores = evaluations[0][1]
    rows = [
        [
            name,
            *(
                f"{estimate.value:.3f} [{estimate.interval.low:.3f}, {estimate.interval.high:.3f}]"
                for estimate in (evaluation.accuracy, evaluation.macro_f1)
            ),
            f"{evaluation.balanced_accuracy.value:.3f}",
            f"{evaluation.log_loss.value:.3f}",
        ]
        for name, evaluation in evaluations
    ]
    note = (
        f"{scores.n} items in {scores.groups} groups; 95% bootstrap intervals over groups. The most frequent class "
        f"alone: {scores.constant.value:.3f} right."
    )
    return Table.of(
        title, ["model", "accuracy", "macro-F1", "balanced", "log loss"], rows, note=note, strong=[best_index]
    )


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
    """Score predicted class probabilities of held-out items.

    Args:
        truth: Index in ``classes`` of the true class of each item, shape [items].
        probabilities: Probabilities of the classes, shape [items, classes]; NaN for failed items.
        classes: Names of the classes; their order matters only for the ordinal error.
        groups: Group of each item, shape [items], for the bootstrap; by default each item is a group.
        answers: Index of the predicted class of each item, shape [items]; -1 for failed items. By default the most
            probable class.
        mix: Class proportions to assume: an item of class t gets the weight ``mix[t]`` divided by the number of items
            of class t. None gives every item the same weight.
        folds: Fold of each item, shape [items]. The AUROC then compares only items of the same fold, because different
            fits are not comparable: a fit on one more negative item predicts lower probabilities. None for a single
            fit.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.
        level: Confidence level of the intervals.

    Raises:
        InputError: Shapes differ, there are no items, or a class in ``mix`` has no item.
    """
    labels, values = np.asarray(truth, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    n_classes = len(classes)
    if not labels.size or values.shape != (len(labels), n_classes):
        raise InputError(
            f"{len(labels)} labels need probabilities of {n_classes} classes each, got shape {values.shape}."
        )
    has_probabilities = np.asarray(np.isfinite(values).all(axis=1))
    predictions = np.where(has_probabilities, np.where(has_probabilities[:, None], values, 0.0).argmax(axis=1), -1)
    if answers is not None:
        predictions = np.asarray(answers, dtype=np.int64)
    group_indices = np.arange(len(labels)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if len(group_indices) != len(labels) or len(predictions) != len(labels):
        raise InputError("Truth, probabilities, answers and groups belong to the same items.")
    weights = None if mix is None else np.asarray(mix, dtype=np.float64)
    counts = np.bincount(labels, minlength=n_classes)
    if weights is not None and (weights.shape != (n_classes,) or (counts[weights > 0] == 0).any()):
        raise InputError("The mix includes classes without held-out items.")
    sums = _sum_by_group(labels, values, predictions, has_probabilities, group_indices.astype(np.int64), n_classes)
    n_groups = len(sums)
    draws = _draw_groups(n_groups, resamples, seed)
    measures = _compute_measures(sums.sum(axis=0, keepdims=True), weights)
    resampled_measures = _compute_measures(np.tensordot(draws, sums, axes=1), weights)

    def estimate(name: str, class_index: int | None = None) -> Estimate:
        values, samples = (
            result[name] if class_index is None else result[name][:, class_index]
            for result in (measures, resampled_measures)
        )
        samples, value = samples[np.isfinite(samples)], float(np.nan_to_num(values[0]))
        # A class without items has no recall: nothing is known of it.
        interval = percentile_interval(samples, level) if len(samples) else Interval(0.0, 1.0)
        if name not in ("log_loss", "ordinal_error"):
            # Groups with items of any class, or of one class.
            has_class = None if class_index is None else sums[:, class_index, : n_classes + 1].any(axis=1)
            n_informative = n_groups if has_class is None else int(has_class.sum())
            interval = share_interval(interval, value, max(1, n_informative), level, ends_only=True)
        return Estimate(value, interval, len(labels), level)

    class_weights = counts if weights is None else weights
    top_class = int(np.argmax(class_weights))
    top_share = float(class_weights[top_class] / class_weights.sum())
    exact_constant = Estimate(top_share, Interval(top_share, top_share), len(labels))
    auroc = None
    if n_classes == 2 and has_probabilities.any():
        item_folds = np.zeros(len(labels), dtype=np.int64) if folds is None else np.asarray(folds, dtype=np.int64)
        auroc = auroc_estimate(
            labels[has_probabilities],
            values[has_probabilities, 1],
            groups=group_indices[has_probabilities],
            folds=item_folds[has_probabilities],
            resamples=resamples,
            seed=seed,
        )
    return HeldOutScores(
        classes=tuple(classes),
        n=len(labels),
        groups=n_groups,
        failed=int((predictions < 0).sum()),
        constant=exact_constant if weights is not None else proportion(int(counts[top_class]), len(labels)),
        constant_macro_f1=2 * top_share / (1 + top_share) / int((class_weights > 0).sum()),
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
        confusion=tuple(tuple(int(count) for count in row[:n_classes]) for row in sums.sum(axis=0)),
        mix=None if mix is None else tuple(mix),
    )


def auroc(scores: ArrayLike, positive: ArrayLike) -> float:
    """Return the area under the ROC curve; 0.5 if all items are of one class.

    It is the probability that a positive item has a higher score than a negative one, with ties counting one half (Mann
    and Whitney 1947). ``scores`` and ``positive`` (labels 0 or 1) have the shape [items].
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
    """Return the area under the ROC curve with a bootstrap interval over groups.

    Args:
        positive: Labels 0 or 1, shape [items].
        scores: Scores, shape [items].
        groups: Group of each item, shape [items]; by default each item is a group.
        folds: Fold of each item, shape [items]; only items of the same fold are compared. None: one fold.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.
    """
    labels, values = np.asarray(positive, dtype=np.int64), np.asarray(scores, dtype=np.float64)
    group_indices = np.arange(len(labels)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    item_folds = np.zeros(len(labels), dtype=np.int64) if folds is None else np.asarray(folds)
    n_groups = int(group_indices.max()) + 1
    # The first row of the weights is the original sample.
    weights = np.concatenate([np.ones((1, n_groups)), _draw_groups(n_groups, resamples, seed)])[:, group_indices]
    n_won, n_pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for fold in np.unique(item_folds):
        indices = np.flatnonzero(item_folds == fold)
        order = indices[np.argsort(values[indices], kind="stable")]
        positives, negatives = weights[:, order] * labels[order], weights[:, order] * (1 - labels[order])
        # A positive item beats all negative items with lower scores, and half of those with the same score.
        starts = np.flatnonzero(np.diff(values[order], prepend=np.nan) != 0)
        positives_by_score = np.add.reduceat(positives, starts, axis=1)
        negatives_by_score = np.add.reduceat(negatives, starts, axis=1)
        n_lower = np.cumsum(negatives_by_score, axis=1) - negatives_by_score
        n_won += (positives_by_score * (n_lower + negatives_by_score / 2)).sum(axis=1)
        n_pairs += positives.sum(axis=1) * negatives.sum(axis=1)
    areas = np.divide(n_won, n_pairs, out=np.full(len(n_won), np.nan), where=n_pairs > 0)
    samples = areas[1:][np.isfinite(areas[1:])]
    area = float(np.nan_to_num(areas[0], nan=0.5))
    interval = percentile_interval(samples) if len(samples) else Interval(0.0, 1.0)
    return Estimate(area, share_interval(interval, area, n_groups, ends_only=True), len(labels))


def _draw_groups(n_groups: int, resamples: int, seed: int) -> FloatArray:
    """Return how often each bootstrap sample draws each group, shape [resamples, groups]."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=resamples).astype(np.float64)


def log_loss(probabilities: FloatArray, truth: IntArray) -> float:
    """Return the mean negative log-probability of the true class, in nats.

    ``probabilities`` has the shape [items, classes], ``truth`` the shape [items] with class indices.
    """
    return float(-np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-12)).mean())


def brier_score(probabilities: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the mean squared difference between probabilities and outcomes (half of the score of Brier 1950).

    The outcomes are 0 or 1; both arguments have the shape [items].

    Raises:
        InputError: Shapes differ, there are no items, or a value is out of range.
    """
    values, truth = _check_outcomes(probabilities, outcomes)
    return float(np.mean((values - truth) ** 2))


def calibration(probabilities: ArrayLike, outcomes: ArrayLike, bins: int = 10) -> Calibration:
    """Measure the calibration of predicted probabilities.

    Args:
        probabilities: Probabilities of outcome 1, shape [items].
        outcomes: Outcomes 0 or 1, shape [items].
        bins: Number of bins, of equal width, of the calibration error and the reliability curve.

    Raises:
        InputError: Shapes differ, there are no items, or a value is out of range.
    """
    values, truth = _check_outcomes(probabilities, outcomes)
    clipped_values = np.clip(values, 1e-12, 1 - 1e-12)
    is_correct = np.where(values > 0.5, truth, np.where(values < 0.5, 1 - truth, 0.5))
    return Calibration(
        n=values.size,
        brier=brier_score(values, truth),
        brier_constant=brier_score(np.full(values.size, truth.mean()), truth),
        log_loss=float(-np.mean(truth * np.log(clipped_values) + (1 - truth) * np.log1p(-clipped_values))),
        expected_calibration_error=expected_calibration_error(np.maximum(values, 1 - values), is_correct, bins),
        curve=reliability_curve(values, truth, bins),
    )


def reliability_plot(title: str, curves: Sequence[tuple[str, Calibration]]) -> LinePlot:
    """Return a plot of observed frequencies against predicted probabilities, with one curve for each name.

    The diagonal shows perfect calibration. Intervals are shown only for a single curve.
    """
    axis_x, axis_y = (
        Axis(label, 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), percent=True)
        for label in ("predicted probability", "observed frequency")
    )
    series = []
    for name, summary in curves:
        points = []
        for reliability_bin in summary.curve:
            frequency = reliability_bin.accuracy
            # Intervals of several curves would hide each other.
            interval = frequency.interval if len(curves) == 1 else None
            low, high = (interval.low, interval.high) if interval else (None, None)
            points.append(Point(reliability_bin.confidence, frequency.value, low, high, f"{frequency.n} predictions"))
        series.append(Series(name, tuple(points)))
    briers = "; ".join(
        f"{name}: Brier score {summary.brier:.3f} (constant {summary.brier_constant:.3f}), calibration error "
        f"{summary.expected_calibration_error:.3f}"
        for name, summary in curves
    )
    diagonal = Series("perfectly calibrated", (Point(0, 0), Point(1, 1)), reference=True)
    return LinePlot(title, (*series, diagonal), axis_x, axis_y, note=f"{briers}.", square=True)


def _check_outcomes(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
    values, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    if values.shape != truth.shape or values.ndim != 1 or not values.size:
        raise InputError("Calibration needs as many probabilities as outcomes, in one row, and at least one.")
    if not ((values >= 0) & (values <= 1)).all() or not np.isin(truth, (0, 1)).all():
        raise InputError("Calibration needs probabilities from 0 to 1 and outcomes that are 0 or 1.")
    return values, truth


def _sum_by_group(
    labels: IntArray,
    probabilities: FloatArray,
    predictions: IntArray,
    has_probabilities: NDArray[np.bool_],
    group_indices: IntArray,
    n_classes: int,
) -> FloatArray:
    """Return the sums per group from which all measures are computed, shape [groups, classes, classes + 4].

    The second axis is the true class. The last axis has the number of items by predicted class and the number of failed
    items. Then come three values over the items with probabilities: the sum of log losses, the sum of squared
    differences, and the number of items.
    """
    sums = np.zeros((int(group_indices.max()) + 1, n_classes, n_classes + 4))
    np.add.at(sums, (group_indices, labels, np.where(predictions < 0, n_classes, predictions)), 1.0)
    scored_indices = np.flatnonzero(has_probabilities)
    true_class_probabilities = probabilities[scored_indices, labels[scored_indices]]
    log_losses = -np.log(np.maximum(true_class_probabilities, _MIN_PROBABILITY))
    squared_differences = ((probabilities[scored_indices] - np.eye(n_classes)[labels[scored_indices]]) ** 2).sum(
        axis=1
    ) / 2
    for column, values in enumerate(
        (log_losses, squared_differences, np.ones(len(scored_indices))), start=n_classes + 1
    ):
        np.add.at(sums[:, :, column], (group_indices[scored_indices], labels[scored_indices]), values)
    return sums


def _compute_measures(sums: FloatArray, mix: FloatArray | None) -> dict[str, FloatArray]:
    """Return the measures of bootstrap samples by name, each of shape [samples] or [samples, classes].

    ``sums`` are the sums of :func:`_sum_by_group` over the groups of each sample, shape [samples, classes, classes +
    4]; ``mix`` has the shape [classes], and None assumes the class proportions of the items.
    """
    n_classes = sums.shape[1]
    counts, losses = sums[:, :, : n_classes + 1], sums[:, :, n_classes + 1 :]
    class_sizes = counts.sum(axis=2)
    weights = np.ones_like(class_sizes)
    if mix is not None:
        weights = np.divide(mix, class_sizes, out=np.zeros_like(class_sizes), where=class_sizes > 0)
    weighted_counts = counts * weights[:, :, None]
    confusion = weighted_counts[:, :, :n_classes]
    n_correct = np.einsum("rii->ri", confusion)
    n_true, n_predicted = weighted_counts.sum(axis=2), confusion.sum(axis=1)
    n_scored = (losses[:, :, 2] * weights).sum(axis=1)

    def divide(values: FloatArray, total: FloatArray, default: float = np.nan) -> FloatArray:
        return np.divide(values, total, out=np.full_like(values, default), where=total > 0)

    recall, f1 = divide(n_correct, n_true), divide(2 * n_correct, n_true + n_predicted)
    distance = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes)[None, :])
    return {
        "accuracy": divide(n_correct.sum(axis=1), weighted_counts.sum(axis=(1, 2))),
        "balanced_accuracy": _mean_over_classes(recall),
        "macro_f1": _mean_over_classes(f1),
        "ordinal_error": divide((confusion * distance).sum(axis=(1, 2)), confusion.sum(axis=(1, 2))),
        "log_loss": divide((losses[:, :, 0] * weights).sum(axis=1), n_scored),
        "brier": divide((losses[:, :, 1] * weights).sum(axis=1), n_scored),
        "precision": divide(n_correct, n_predicted, 0.0),
        "recall": recall,
        "f1": f1,
    }


def _mean_over_classes(values: FloatArray) -> FloatArray:
    """Return the mean of finite values over classes; values have the shape [samples, classes]."""
    is_finite = np.isfinite(values)
    return np.asarray(np.where(is_finite, values, 0.0).sum(axis=1) / np.maximum(is_finite.sum(axis=1), 1))


def _format_interval(estimate: Estimate) -> str:
    return f"{estimate.interval.low:.3f} to {estimate.interval.high:.3f}"
