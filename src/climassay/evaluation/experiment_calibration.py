"""Whether models know when they are right: calibration and abstention on multiple-choice questions."""

from collections.abc import Sequence
from dataclasses import dataclass

from climassay.evaluation.experiment_scores import outcomes_by_cell
from climassay.evaluation.outcome import Cell, Experiment, Outcome
from climassay.reporting import Axis, LinePlot, Point, Series, Table
from climassay.statistics import (
    CoveragePoint,
    ReliabilityBin,
    SelectiveCurve,
    expected_calibration_error,
    reliability_curve,
    selective_curve,
)

COVERAGES = (0.25, 0.5, 0.75, 1.0)
_CURVE_POINTS = 25
_LINES = 5
"""As many colours as a figure has."""
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
    found = [
        _calibrate(cell, outcomes) for cell, outcomes in outcomes_by_cell(experiment).items() if cell.task == "mcq"
    ]
    return tuple(one for one in found if one is not None)


def _calibrate(cell: Cell, outcomes: Sequence[Outcome]) -> CellCalibration | None:
    sure = [(one.probability, bool(one.scores.get("accuracy"))) for one in outcomes if one.probability is not None]
    if not sure:
        return None
    confidence, correct = [chance for chance, _ in sure], [right for _, right in sure]
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
