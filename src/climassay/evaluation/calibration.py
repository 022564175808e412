"""Calibration and abstention: how the probability of the chosen option relates to being right."""

from collections.abc import Sequence
from dataclasses import dataclass

from climassay.evaluation.results import Cell, Experiment
from climassay.evaluation.scores import outcomes_by_cell
from climassay.reporting import Axis, LinePlot, Point, Series, Table, percent, thinned
from climassay.statistics import (
    ReliabilityBin,
    SelectiveCurve,
    expected_calibration_error,
    reliability_curve,
    selective_curve,
)

_N_COLOURS = 5
"""Number of colours of a figure, the maximum number of its lines."""
COVERAGES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class CellCalibration:
    """Calibration of one cell: probability of the chosen option against correctness."""

    cell: Cell
    n: int
    """Number of answers with a probability."""
    without: int
    """Number of answers without a probability: failed, unparsed, or without log-probabilities. The curve never covers
    them."""
    confidence: float
    """Mean probability of the chosen option."""
    accuracy: float
    """Accuracy of the answers with a probability."""
    calibration_error: float
    """Expected calibration error over ten bins."""
    curve: SelectiveCurve
    reliability: tuple[ReliabilityBin, ...]

    @property
    def name(self) -> str:
        """Name of the cell in figures."""
        return f"{self.cell.model}, {self.cell.setting}"


def calibrate_experiment(experiment: Experiment) -> tuple[CellCalibration, ...]:
    """Return the calibration of every multiple-choice cell with probabilities."""
    results = []
    for cell, outcomes in outcomes_by_cell(experiment).items():
        # Probability and correctness are those of the choice in the file's option order.
        predictions = experiment.predictions.get(cell, ())
        is_correct = {p.question: p.correct for p in predictions if p.permutation == 0}
        scored = [outcome for outcome in outcomes if outcome.probability is not None]
        if scored:
            confidence = [outcome.probability for outcome in scored if outcome.probability is not None]
            correct = [is_correct.get(o.question, bool(o.scores.get("accuracy"))) for o in scored]
            results.append(
                CellCalibration(
                    cell,
                    len(scored),
                    len(outcomes) - len(scored),
                    sum(confidence) / len(scored),
                    sum(correct) / len(scored),
                    expected_calibration_error(confidence, correct),
                    selective_curve(confidence, correct, n_items=len(outcomes)),
                    reliability_curve(confidence, correct),
                )
            )
    return tuple(results)


def calibration_table(calibrations: Sequence[CellCalibration], benchmark: str) -> Table | None:
    """Return calibration and abstention of the cells of a benchmark; None if there are none."""
    cells = [calibration for calibration in calibrations if calibration.cell.benchmark == benchmark]
    if not cells:
        return None
    headings = ["model", "setting", "n", "without", "confidence", "accuracy", "ECE", "AURC", "random\nAURC"]
    rows = []
    for calibration in cells:
        curve = calibration.curve
        figures = (
            calibration.confidence,
            calibration.accuracy,
            calibration.calibration_error,
            curve.aurc,
            1 - curve.unordered,
        )
        row = [
            calibration.cell.model,
            calibration.cell.setting,
            str(calibration.n),
            str(calibration.without),
            *map(percent, figures),
        ]
        for share in COVERAGES:
            # The curve may end before this coverage.
            point = next((point for point in curve.points if point.coverage >= share - 1e-9), None)
            row.append("-" if point is None else percent(point.accuracy.value))
        rows.append(row)
    return Table.of(
        f"Calibration and abstention on multiple choice, {benchmark} (%)",
        [*headings, *(f"surest\n{share:.0%}" for share in COVERAGES)],
        rows,
        note="confidence: mean probability of the chosen option. ECE: expected calibration error, ten bins. AURC: area "
        "under the risk-coverage curve, lower is better; random AURC: the same if confidence said nothing. surest: "
        "accuracy when only that share of all questions is answered. without: answers that have no probability.",
        left=2,
        grouped=1,
    )


def calibration_figures(calibrations: Sequence[CellCalibration], benchmark: str) -> list[LinePlot]:
    """Return risk-coverage and reliability curves of the cells of a benchmark, at most five lines a figure."""
    cells = [calibration for calibration in calibrations if calibration.cell.benchmark == benchmark]
    figures = []
    for start in range(0, len(cells), _N_COLOURS):
        part = cells[start : start + _N_COLOURS]
        suffix = f" ({start + 1} to {start + len(part)})" if len(cells) > _N_COLOURS else ""
        lines = tuple(
            Series(
                calibration.name,
                tuple(
                    Point(b.confidence, b.accuracy.value, *b.accuracy.interval, f"{b.accuracy.n} answers")
                    for b in calibration.reliability
                ),
            )
            for calibration in part
        )
        diagonal = Series("as sure as right", (Point(0.0, 0.0), Point(1.0, 1.0)), reference=True)
        figures += [
            LinePlot(
                f"Accuracy when only the surest are answered{suffix}",
                tuple(
                    Series(
                        calibration.name,
                        tuple(
                            Point(point.coverage, point.accuracy.value, note=f"{point.accuracy.n} answers")
                            for point in thinned(calibration.curve.points)
                        ),
                    )
                    for calibration in part
                ),
                Axis.shares("questions answered"),
                Axis.shares("accuracy on them"),
                note="A line that falls to the right belongs to a model that knows when it is right.",
                square=True,
            ),
            LinePlot(
                f"Reliability{suffix}",
                (*lines, diagonal),
                Axis.shares("probability of the chosen option"),
                Axis.shares("accuracy"),
                note="Bars: 95% interval (Wilson). Below the dashed line a model is surer than it is right.",
                square=True,
            ),
        ]
    return figures
