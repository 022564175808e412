"""The figures of an experiment: the shapes of the paper's Figures 5 and 6, settings side by side, calibration."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from climassay.evaluation.results import Cell, Experiment, Outcome
from climassay.evaluation.scores import OVERALL, ExperimentScores, Score, outcomes_by_cell
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import KINDS, LEVELS, TYPES, Kind, Question
from climassay.reporting import Axis, Category, Dot, DotPlot, LinePlot, Point, Series, StackedBar, StackedBars, Table
from climassay.statistics import (
    CoveragePoint,
    ReliabilityBin,
    SelectiveCurve,
    expected_calibration_error,
    reliability_curve,
    selective_curve,
)

_LINES = 5
"""As many colours as a figure has."""
_PAPER = 3
"""Types of questions that the paper has."""
_SPREAD = 0.24
"""How far apart the models of one level stand, so that their intervals do not hide each other."""


def level_figures(scores: ExperimentScores, benchmark: str, setting: str | None = None) -> list[LinePlot]:
    """Models by level, one figure a metric (the paper's Figure 5).

    Args:
        scores: Of the experiment.
        benchmark: Whose questions.
        setting: The one shown; by default the first of the experiment.

    Returns:
        Figures of at most five models each; none where questions have no levels.
    """
    ours = [score for score in scores.scores if score.cell.benchmark == benchmark]
    shown = setting or next((score.cell.setting for score in ours), "")
    figures = []
    for metric in METRICS.values():
        chosen = [
            s
            for s in ours
            if s.metric == metric.name and s.cell.setting == shown and s.level in LEVELS and s.cell.task in metric.kinds
        ]
        models = list(dict.fromkeys(score.cell.model for score in chosen))
        levels = [level for level in LEVELS if any(score.level == level for score in chosen)]
        if metric.published and len(levels) > 1:
            figures += [
                _level_plot(metric, shown, levels, models[start : start + _LINES], chosen)
                for start in range(0, len(models), _LINES)
            ]
    return figures


def _level_plot(
    metric: Metric, setting: str, levels: Sequence[str], models: Sequence[str], scores: Sequence[Score]
) -> LinePlot:
    lines = tuple(
        Series(
            model,
            tuple(
                Point(
                    levels.index(score.level) + (_SPREAD * (place / (len(models) - 1) - 0.5) if len(models) > 1 else 0),
                    score.estimate.value,
                    *score.estimate.interval,
                    f"{model}, {score.level}, n = {score.estimate.n}",
                )
                for score in scores
                if score.cell.model == model
            ),
        )
        for place, model in enumerate(models)
    )
    ends = [value for line in lines for point in line.points for value in (point.low, point.high) if value is not None]
    places = tuple(float(place) for place in range(len(levels)))
    return LinePlot(
        f"{metric.label[0].upper()}{metric.label[1:]} by level, setting {setting}",
        lines,
        Axis("level", -0.5, len(levels) - 0.5, places, names=tuple(levels)),
        Axis.over(metric.label, ends, percent=metric.binary),
        note="Bars: 95% interval. Models of one level stand side by side.",
        square=True,
    )


def setting_figures(scores: ExperimentScores, benchmark: str) -> list[DotPlot]:
    """All models and settings with their intervals, one forest plot a published metric, over all levels."""
    constants = {
        (constant.metric, constant.task): constant.value
        for constant in scores.constants
        if constant.benchmark == benchmark and constant.level == OVERALL
    }
    overall = [one for one in scores.scores if one.cell.benchmark == benchmark and one.level == OVERALL]
    figures = []
    for metric in METRICS.values():
        for task in dict.fromkeys(one.cell.task for one in overall if one.metric == metric.name and metric.published):
            constant = constants.get((metric.name, task))
            dots = tuple(_dot(one, constant) for one in overall if one.metric == metric.name and one.cell.task == task)
            note = "Dots: mean over questions. Bars: 95% interval."
            if constant is not None:
                note += " Dashed tick: the best constant answer."
            of_type = "" if task in metric.kinds else f", {TYPES[task].title.lower()}"
            figures.append(DotPlot(f"{metric.label[0].upper()}{metric.label[1:]}{of_type}", dots, metric.label, note))
    return figures


def _dot(score: Score, constant: float | None) -> Dot:
    low, high = score.estimate.interval
    # The axis goes from 0 to 1; phrase similarity can fall below 0, where nothing is drawn.
    value, low, high = (min(1.0, max(0.0, end)) for end in (score.estimate.value, low, high))
    return Dot(f"{score.cell.model}, {score.cell.setting}", score.cell.model, value, low, high, constant)


def source_figure(questions: Sequence[Question], title: str) -> StackedBars | None:
    """Questions over the books they were made from, parted by task (the paper's Figure 6).

    Returns:
        None where no question says where it comes from.
    """
    present = {question.kind for question in questions}
    tasks = tuple(kind for place, kind in enumerate(KINDS) if place < _PAPER or kind in present)
    counts: Counter[tuple[str | None, Kind]] = Counter((question.document, question.kind) for question in questions)
    books = list(dict.fromkeys(question.document for question in questions))
    if books in ([], [None]):
        return None
    named = sorted((book for book in books if book), key=lambda book: -sum(counts[book, task] for task in tasks))
    bars = [StackedBar(book, tuple(counts[book, task] for task in tasks)) for book in named]
    if None in books:
        bars.append(StackedBar("source not named", tuple(counts[None, task] for task in tasks)))
    # The blue half of the scale: the red half means wrong elsewhere.
    places = [1.0 - 0.5 * place / (len(tasks) - 1) for place in range(len(tasks))]
    return StackedBars(
        title,
        tuple(Category(task, place) for task, place in zip(tasks, places, strict=True)),
        tuple(bars),
        note="Each bar is one source; its parts are the shares of the tasks, with the number of questions.",
    )


COVERAGES = (0.25, 0.5, 0.75, 1.0)
_CURVE_POINTS = 25
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class CellCalibration:
    """How the probability of the chosen option goes with being right, in one cell."""

    cell: Cell
    n: int
    """Answers with a probability."""
    without: int
    """Answers without one: failed, unparsed, or of a model without log-probabilities. The curve never covers them."""
    confidence: float
    """Mean probability of the chosen option."""
    accuracy: float
    """Of the same answers."""
    calibration_error: float
    """Expected calibration error over ten bins."""
    curve: SelectiveCurve
    reliability: tuple[ReliabilityBin, ...]

    @property
    def name(self) -> str:
        """The cell in figures."""
        return f"{self.cell.model}, {self.cell.setting}"


def calibrate_experiment(experiment: Experiment) -> tuple[CellCalibration, ...]:
    """Calibration of every multiple-choice cell in which answers have probabilities."""
    found = []
    for cell, outcomes in outcomes_by_cell(experiment).items():
        # The probability is that of the choice in the file's order, and so must be what is right of it.
        first = {one.question: one.correct for one in experiment.predictions.get(cell, ()) if one.permutation == 0}
        right = {one.question: first.get(one.question, bool(one.scores.get("accuracy"))) for one in outcomes}
        found.append(_calibrate(cell, outcomes, right))
    return tuple(one for one in found if one is not None)


def _calibrate(cell: Cell, outcomes: Sequence[Outcome], right: Mapping[str, bool]) -> CellCalibration | None:
    sure = [(one.probability, right[one.question]) for one in outcomes if one.probability is not None]
    if not sure:
        return None
    confidence, correct = [chance for chance, _ in sure], [true for _, true in sure]
    return CellCalibration(
        cell,
        len(sure),
        len(outcomes) - len(sure),
        sum(confidence) / len(sure),
        sum(correct) / len(sure),
        expected_calibration_error(confidence, correct),
        selective_curve(confidence, correct, items=len(outcomes)),
        reliability_curve(confidence, correct),
    )


def calibration_table(found: Sequence[CellCalibration], benchmark: str) -> Table | None:
    """Calibration and abstention of the cells of a benchmark; None where there are none."""
    cells = [one for one in found if one.cell.benchmark == benchmark]
    if not cells:
        return None
    headings = ["model", "setting", "n", "without", "confidence", "accuracy", "ECE", "AURC", "random\nAURC"]
    return Table.of(
        f"Calibration and abstention on multiple choice, {benchmark} (%)",
        [*headings, *(f"surest\n{share:.0%}" for share in COVERAGES)],
        [
            [
                one.cell.model,
                one.cell.setting,
                str(one.n),
                str(one.without),
                *(
                    f"{100 * value:.1f}"
                    for value in (
                        one.confidence,
                        one.accuracy,
                        one.calibration_error,
                        one.curve.aurc,
                        1 - one.curve.unordered,
                    )
                ),
                *(_accuracy_at(one.curve, share) for share in COVERAGES),
            ]
            for one in cells
        ],
        note="confidence: mean probability of the chosen option. ECE: expected calibration error, ten bins. AURC: area "
        "under the risk-coverage curve, lower is better; random AURC: the same if confidence said nothing. surest: "
        "accuracy when only that share of all questions is answered. without: answers that have no probability.",
        left=2,
        grouped=1,
    )


def _accuracy_at(curve: SelectiveCurve, share: float) -> str:
    """Accuracy at the first point that covers at least the share; ``-`` where the curve ends before."""
    reached = (point for point in curve.points if point.coverage >= share - 1e-9)
    point = next(reached, None)
    return "-" if point is None else f"{100 * point.accuracy.value:.1f}"


def calibration_figures(found: Sequence[CellCalibration], benchmark: str) -> list[LinePlot]:
    """Risk-coverage and reliability curves of the cells of a benchmark, at most five lines a figure."""
    cells = [one for one in found if one.cell.benchmark == benchmark]
    figures = []
    for start in range(0, len(cells), _LINES):
        part = cells[start : start + _LINES]
        more = f" ({start + 1} to {start + len(part)})" if len(cells) > _LINES else ""
        figures += [_coverage_plot(part, more), _reliability_plot(part, more)]
    return figures


def _coverage_plot(cells: Sequence[CellCalibration], more: str) -> LinePlot:
    return LinePlot(
        f"Accuracy when only the surest are answered{more}",
        tuple(
            Series(
                one.name,
                tuple(
                    Point(point.coverage, point.accuracy.value, note=f"{point.accuracy.n} answers")
                    for point in _thinned(one.curve)
                ),
            )
            for one in cells
        ),
        Axis("questions answered", 0.0, 1.0, _TICKS, percent=True),
        Axis("accuracy on them", 0.0, 1.0, _TICKS, percent=True),
        note="A line that falls to the right belongs to a model that knows when it is right.",
        square=True,
    )


def _reliability_plot(cells: Sequence[CellCalibration], more: str) -> LinePlot:
    lines = tuple(
        Series(
            one.name,
            tuple(
                Point(b.confidence, b.accuracy.value, *b.accuracy.interval, f"{b.accuracy.n} answers")
                for b in one.reliability
            ),
        )
        for one in cells
    )
    diagonal = Series("as sure as right", (Point(0.0, 0.0), Point(1.0, 1.0)), reference=True)
    return LinePlot(
        f"Reliability{more}",
        (*lines, diagonal),
        Axis("probability of the chosen option", 0.0, 1.0, _TICKS, percent=True),
        Axis("accuracy", 0.0, 1.0, _TICKS, percent=True),
        note="Bars: 95% interval (Wilson). Below the dashed line a model is surer than it is right.",
        square=True,
    )


def _thinned(curve: SelectiveCurve) -> list[CoveragePoint]:
    """Points about evenly apart, first and last included."""
    points = curve.points
    if len(points) <= _CURVE_POINTS:
        return list(points)
    step = (len(points) - 1) / (_CURVE_POINTS - 1)
    return [points[round(number * step)] for number in range(_CURVE_POINTS)]
