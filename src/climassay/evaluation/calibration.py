"""Calibration and abstention: how the probability of the chosen option relates to being right."""

from collections.abc import Sequence
from dataclasses import dataclass

from climassay.evaluation.results import Cell, Experiment
from climassay.evaluation.scores import outcomes_by_cell
from climassay.reporting import Axis, LinePlot, Point, Series, Table, percent, thin_points
from climassay.statistics import (
    ReliabilityBin,
    SelectiveCurve,
    expected_calibration_error,
    reliability_curve,
    selective_curve,
)

_N_COLOURS = 5
"""Number of distinguishable colours, and thus the maximum number of lines in a figure."""
COVERAGES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class CellCalibration:
    """Calibration of one model in one setting on one benchmark.

    It describes how well the probability of the chosen option predicts whether the option is correct.
    """

    cell: Cell
    n: int
    """Number of answers with a probability."""
    n_without_probability: int
    """Number of answers without a probability, which are excluded: they failed, could not be parsed, or have no
    log-probabilities."""
    confidence: float
    """Mean probability of the chosen option."""
    accuracy: float
    """Accuracy of the answers with a probability."""
    calibration_error: float
    """Expected calibration error with ten bins."""
    curve: SelectiveCurve
    reliability: tuple[ReliabilityBin, ...]

    @property
    def name(self) -> str:
        """Name of the model and setting in figures."""
        return f"{self.cell.model}, {self.cell.setting}"


def calibrate_experiment(experiment: Experiment) -> tuple[CellCalibration, ...]:
    """Return a calibration for each model and setting whose multiple-choice answers have probabilities."""
    results = []
    for cell, outcomes in outcomes_by_cell(experiment).items():
        # Probability and correctness are those of the choice in the file's option order.
        predictions = experiment.predictions.get(cell, ())
        is_correct = {
            prediction.question: prediction.correct for prediction in predictions if prediction.permutation == 0
        }
        outcomes_with_probability = [outcome for outcome in outcomes if outcome.probability is not None]
        if outcomes_with_probability:
            confidence = [
                outcome.probability for outcome in outcomes_with_probability if outcome.probability is not None
            ]
            correctness = [
                is_correct.get(outcome.question, bool(outcome.scores.get("accuracy")))
                for outcome in outcomes_with_probability
            ]
            results.append(
                CellCalibration(
                    cell,
                    len(outcomes_with_probability),
                    len(outcomes) - len(outcomes_with_probability),
                    sum(confidence) / len(outcomes_with_probability),
                    sum(correctness) / len(outcomes_with_probability),
                    expected_calibration_error(confidence, correctness),
                    selective_curve(confidence, correctness, n_items=len(outcomes)),
                    reliability_curve(confidence, correctness),
                )
            )
    return tuple(results)


def calibration_table(calibrations: Sequence[CellCalibration], benchmark: str) -> Table | None:
    """Return a table of the calibrations and selective accuracies on a benchmark; None if there are no calibrations."""
    cells = [calibration for calibration in calibrations if calibration.cell.benchmark == benchmark]
    if not cells:
        return None
    headings = ["model", "setting", "n", "without", "confidence", "accuracy", "ECE", "AURC", "random\nAURC"]
    rows = []
    for calibration in cells:
        curve = calibration.curve
        values = (
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
            str(calibration.n_without_probability),
            *map(percent, values),
        ]
        for coverage in COVERAGES:
            # The curve may end before this coverage.
            point = next((point for point in curve.points if point.coverage >= coverage - 1e-9), None)
            row.append("-" if point is None else percent(point.accuracy.value))
        rows.append(row)
    return Table.of(
        f"Calibration and abstention on multiple choice, {benchmark} (%)",
        [*headings, *(f"surest\n{coverage:.0%}" for coverage in COVERAGES)],
        rows,
        note="confidence: mean probability of the chosen option. ECE: expected calibration error, ten bins. AURC: area "
        "under the risk-coverage curve, lower is better; random AURC: the same if confidence said nothing. surest: "
        "accuracy when only that share of all questions is answered. without: answers that have no probability.",
        left_columns=2,
        grouped=1,
    )


def calibration_figures(calibrations: Sequence[CellCalibration], benchmark: str) -> list[LinePlot]:
    """Return figures of a benchmark's risk-coverage and reliability curves, with at most five curves in each."""
    cells = [calibration for calibration in calibrations if calibration.cell.benchmark == benchmark]
    figures = []
    for start in range(0, len(cells), _N_COLOURS):
        group = cells[start : start + _N_COLOURS]
        suffix = f" ({start + 1} to {start + len(group)})" if len(cells) > _N_COLOURS else ""
        lines = tuple(
            Series(
                calibration.name,
                tuple(
                    Point(bin_.confidence, bin_.accuracy.value, *bin_.accuracy.interval, f"{bin_.accuracy.n} answers")
                    for bin_ in calibration.reliability
                ),
            )
            for calibration in group
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
                            for point in thin_points(calibration.curve.points)
                        ),
                    )
                    for calibration in group
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
