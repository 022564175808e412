"""Tables and figures of a simulation of active learning (the paper's Figure 8, over the number of labels)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.generation.validation.acquisition import Acquisition
from climassay.generation.validation.labels import LabelledDraft, reason_figure
from climassay.generation.validation.simulation import (
    RoundScores,
    SimulationItems,
    SimulationSettings,
    SplitResult,
)
from climassay.reporting import Axis, LinePlot, Point, Prose, Report, Section, Series, Table
from climassay.statistics import Estimate, Interval, mean_estimates, proportion

Measure = Literal["precision", "kept", "precision_at_share", "auroc"]
MEASURES: tuple[Measure, ...] = ("precision", "kept", "precision_at_share", "auroc")
_COMPARED: tuple[Measure, ...] = ("precision", "precision_at_share", "auroc")
_BASE: Acquisition = "random"
_SHOWN = 6
"""Label counts of the table of the screen."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A strategy after some labels: means over splits with bootstrap intervals."""

    labels: int
    precision: Estimate
    kept: Estimate
    precision_at_share: Estimate
    auroc: Estimate


@dataclass(frozen=True, slots=True)
class Curve:
    """One strategy."""

    strategy: Acquisition
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class Gain:
    """What a strategy gains over random choice, averaged over the rounds in which they differ."""

    strategy: Acquisition
    measure: Measure
    over_splits: Estimate
    """Bootstrap over splits: how sure the mean over further splits of these same labels is."""
    over_items: Interval
    """Corrected for overlapping splits: what may be expected with other labels; see :func:`corrected_interval`."""


@dataclass(frozen=True, slots=True)
class SimulationSummary:
    """All of a simulation in numbers."""

    name: str
    items: int
    valid: Estimate
    """Share of valid ones among all items, with its Wilson interval: what 100% precision would have to be seen from."""
    splits: int
    test: float
    """Mean number of test items."""
    train: float
    none: CurvePoint
    zero_shot: CurvePoint | None
    curves: tuple[Curve, ...]
    gains: tuple[Gain, ...]
    """Empty where random choice is not among the strategies."""


def summarise(
    items: SimulationItems, results: Sequence[SplitResult], *, resamples: int = 2000, seed: int = 0
) -> SimulationSummary:
    """Means over splits, and paired differences to random choice.

    Raises:
        InputError: No results.
    """
    if not results:
        raise InputError("There is no split of a simulation to be summarised.")
    zero = [result.zero_shot for result in results if result.zero_shot is not None]
    curves = []
    for place, (strategy, _) in enumerate(results[0].rounds):
        played = [result.rounds[place][1] for result in results]
        # Training sets differ by a few items between splits: the last rounds are those that all splits have.
        length = min(map(len, played))
        points = tuple(_point([one[number] for one in played], resamples, seed) for number in range(length))
        curves.append(Curve(strategy, points))
    return SimulationSummary(
        name=items.name,
        items=len(items.valid),
        valid=proportion(int(items.valid.sum()), len(items.valid)),
        splits=len(results),
        test=float(np.mean([result.test for result in results])),
        train=float(np.mean([result.train for result in results])),
        none=_point([result.none for result in results], resamples, seed),
        zero_shot=_point(zero, resamples, seed) if zero else None,
        curves=tuple(curves),
        gains=tuple(_gains(results, resamples, seed)),
    )


def _point(scores: Sequence[RoundScores], resamples: int, seed: int) -> CurvePoint:
    columns = [[getattr(score, measure) for score in scores] for measure in MEASURES]
    labels = round(float(np.mean([score.labels for score in scores])))
    return CurvePoint(labels, *mean_estimates(columns, resamples=resamples, seed=seed))


def _gains(results: Sequence[SplitResult], resamples: int, seed: int) -> list[Gain]:
    names = [strategy for strategy, _ in results[0].rounds]
    if _BASE not in names:
        return []
    found = []
    ratio = float(np.mean([result.test / result.train for result in results]))
    for place, strategy in enumerate(names):
        if strategy == _BASE:
            continue
        for measure in _COMPARED:
            gaps = [_mean_gap(result, place, names.index(_BASE), measure) for result in results]
            (estimate,) = mean_estimates([gaps], resamples=resamples, seed=seed)
            found.append(Gain(strategy, measure, estimate, corrected_interval(gaps, ratio)))
    return found


def _mean_gap(result: SplitResult, ours: int, theirs: int, measure: Measure) -> float:
    """Mean difference over the rounds between the common start and the end, where everything is labelled."""
    pairs = list(zip(result.rounds[ours][1], result.rounds[theirs][1], strict=True))
    open_ = [pair for pair in pairs[1:] if pair[0].labels < result.train] or pairs
    return float(np.mean([getattr(a, measure) - getattr(b, measure) for a, b in open_]))


def corrected_interval(values: ArrayLike, test_to_train: float, level: float = 0.95) -> Interval:
    """Interval of a mean over random train-test splits of the same items, which overlap.

    Splits of the same items are not independent: the plain interval shrinks to nothing with their number although no
    item is added. Here the variance of the mean is ``(1/k + n_test/n_train) s^2``.

    Args:
        values: Shape [splits].
        test_to_train: Test items over training items.
        level: Of confidence.

    References:
        Nadeau and Bengio (2003), Inference for the Generalization Error, Machine Learning 52, 239-281, section 3.
    """
    from scipy.stats import t

    given = np.asarray(values, dtype=np.float64)
    middle = float(given.mean())
    if len(given) < 2:
        return Interval(-np.inf, np.inf)
    spread = float(given.var(ddof=1) * (1 / len(given) + test_to_train)) ** 0.5
    half = float(t.ppf((1 + level) / 2, len(given) - 1)) * spread
    return Interval(middle - half, middle + half)


def simulation_tables(summary: SimulationSummary, settings: SimulationSettings) -> list[Table]:
    """The curve in some places, and the gains over random choice."""
    share = f"{settings.kept_share:.0%}"
    rows = [_row("no validation", "", summary.none)]
    if summary.zero_shot is not None:
        rows.append(_row("zero-shot", "", summary.zero_shot))
    for curve in summary.curves:
        places = sorted({round(at) for at in np.linspace(0, len(curve.points) - 1, _SHOWN)})
        rows += [_row(curve.strategy, str(curve.points[at].labels), curve.points[at]) for at in places]
    columns = ("labels chosen by", "labels", "precision at 1/2", "kept", f"precision, {share} kept", "AUROC")
    note = (
        f"Means over {summary.splits} splits with about {summary.test:.0f} test and {summary.train:.0f} training "
        "items; in brackets 95% bootstrap intervals over splits, which speak of further splits of the same "
        f"{summary.items} items and not of other items."
    )
    tables = [Table.of("Precision over the number of labels", columns, rows, note=note)]
    if summary.gains:
        words = {"precision": "precision at 1/2", "precision_at_share": f"precision, {share} kept", "auroc": "AUROC"}
        gained = [
            (
                gain.strategy,
                words[gain.measure],
                f"{gain.over_splits.value:+.4f}",
                f"{gain.over_splits.interval.low:+.4f} to {gain.over_splits.interval.high:+.4f}",
                f"{gain.over_items.low:+.3f} to {gain.over_items.high:+.3f}",
            )
            for gain in summary.gains
        ]
        headings = ("strategy", "measure", "gain", "over splits of these items", "over other items")
        note = (
            "Paired by split, mean over all rounds between the common start and the end. The last column corrects for "
            "splits that share their items (Nadeau and Bengio 2003): a strategy is better only where it leaves out 0."
        )
        tables.append(Table.of("Gain over random choice", headings, gained, note=note, left=2))
    return tables


def _row(name: str, labels: str, point: CurvePoint) -> tuple[str, ...]:
    def share(estimate: Estimate) -> str:
        return f"{estimate.value:.1%} ({estimate.interval.low:.1%} to {estimate.interval.high:.1%})"

    area = f"{point.auroc.value:.3f} ({point.auroc.interval.low:.3f} to {point.auroc.interval.high:.3f})"
    return (name, labels, share(point.precision), f"{point.kept.value:.0%}", share(point.precision_at_share), area)


def simulation_figures(summary: SimulationSummary, settings: SimulationSettings) -> list[LinePlot]:
    """Curves of the strategies with the lines of no validation and of zero-shot, one figure a measure."""
    share = f"{settings.kept_share:.0%}"
    return [
        _figure(summary, "precision", "Precision of what the validator keeps", True),
        _figure(summary, "precision_at_share", f"Precision when the likeliest {share} are kept", True),
        _figure(summary, "auroc", "Telling valid from invalid (AUROC)", False),
    ]


def _figure(summary: SimulationSummary, measure: Measure, title: str, percent: bool) -> LinePlot:
    counts = [point.labels for curve in summary.curves for point in curve.points]
    first, last = float(min(counts)), float(max(counts))
    lines = []
    for curve in summary.curves:
        points = []
        for point in curve.points:
            estimate: Estimate = getattr(point, measure)
            points.append(Point(point.labels, estimate.value, *estimate.interval, f"{curve.strategy}, {point.labels}"))
        lines.append(Series(curve.strategy, tuple(points)))
    flat = [("no validation" if measure != "auroc" else "chance", getattr(summary.none, measure).value)]
    if summary.zero_shot is not None:
        flat.append(("zero-shot", getattr(summary.zero_shot, measure).value))
    lines += [Series(name, (Point(first, level), Point(last, level)), reference=True) for name, level in flat]
    ends = [value for line in lines for p in line.points for value in (p.low, p.high, p.y) if value is not None]
    return LinePlot(
        title,
        tuple(lines),
        Axis.over("labels", (first, last)),
        Axis.over("precision" if percent else "AUROC", ends, percent=percent),
        note=f"Means over {summary.splits} splits of the same {summary.items} items. Bars: 95% bootstrap over splits; "
        "other items would move all curves together by far more.",
    )


def simulation_report(
    summary: SimulationSummary, settings: SimulationSettings, labelled: Sequence[LabelledDraft]
) -> Report:
    """A self-contained report."""
    low, high = summary.valid.interval
    words = (
        f"{summary.items} labelled questions of {summary.name}, {summary.valid.value:.1%} of them valid (95% interval "
        f"of this share: {low:.1%} to {high:.1%}). A validator is trained on labels that each strategy chooses, and "
        "its precision is measured on passages that it has not seen."
    )
    sections = [
        Section("Precision over labels", tuple(simulation_figures(summary, settings))),
        Section("Numbers", tuple(simulation_tables(summary, settings))),
    ]
    reasons = reason_figure([(summary.name, labelled)])
    if reasons is not None:
        sections.append(Section("Why questions were rejected", (reasons,)))
    sections.append(Section("What this can show", (Prose(_caution(summary)),)))
    return Report("Which questions to have labelled", words, tuple(sections))


def _caution(summary: SimulationSummary) -> str:
    separated = [
        f"{gain.strategy} in {gain.measure}"
        for gain in summary.gains
        if gain.over_items.low > 0 or gain.over_items.high < 0
    ]
    if not summary.gains:
        return "Random choice was not simulated, so that no strategy can be compared with it."
    if separated:
        return (
            f"Apart from random choice by more than other items would explain: {', '.join(separated)}. Of several "
            "comparisons one in twenty comes out so by chance."
        )
    return (
        f"No strategy is apart from random choice by more than other items would explain: {summary.items} labels "
        "cannot separate them."
    )
