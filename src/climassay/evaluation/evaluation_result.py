"""Results of experiments: scores, tables, notes and reports."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from climassay import evaluation
from climassay.reporting.results import AssembledResult, Result
from climassay.reporting.tables import skipped_note

if TYPE_CHECKING:
    from climassay.evaluation import Experiment, ExperimentScores
    from climassay.reporting import Report, Table


@dataclass(frozen=True, slots=True)
class Evaluation(Result):
    """Result of an evaluation: the experiment with its scores, and with paired tests of models and settings."""

    experiment: "Experiment"
    """Experiment with all answers."""
    scores: "ExperimentScores"
    skipped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Reasons for skipped rows of the question files, by benchmark."""

    def tables(self) -> "tuple[Table, ...]":
        """Return all tables of the scores."""
        return tuple(experiment_table.table for experiment_table in evaluation.experiment_tables(self.scores))

    def terminal_tables(self, width: int) -> "list[Table]":
        """Return the tables laid out for a terminal of ``width`` columns."""
        return evaluation.screen_tables(evaluation.experiment_tables(self.scores), width)

    def rows(self) -> list[dict[str, Any]]:
        """Return each score, with its n and interval, as a row."""
        return [
            {
                **asdict(score.cell),
                "metric": score.metric,
                "level": score.level,
                "n": score.estimate.n,
                "value": score.estimate.value,
                "low": score.estimate.interval.low,
                "high": score.estimate.interval.high,
                "unscored": score.unscored,
            }
            for score in self.scores.scores
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores, counts and tests as JSON-serialisable values."""
        skipped = {name: reasons for name, reasons in self.skipped.items() if reasons}
        names = {"run": self.experiment.run, "name": self.experiment.name, "skipped": skipped}
        return {**names, **scores_data(self.scores)}

    def notes(self) -> list[str]:
        """Return notes on skipped rows, omitted metrics, single models and settings, and the number of requests."""
        experiment = self.experiment
        notes = [f"{name}: {reason}" for name, reasons in self.skipped.items() for reason in skipped_note(reasons)]
        notes += [*experiment.empty_tasks(), *experiment.omitted_metrics()]
        models_by_note: dict[tuple[str, str, str], list[str]] = {}  # what holds for several models is said once
        for record in experiment.cells:
            for note in record.notes:
                models_by_note.setdefault((record.cell.setting, record.cell.task, note), []).append(record.cell.model)
        notes += [
            f"{', '.join(models)}, {setting}, {task}: {note}"
            for (setting, task, note), models in models_by_note.items()
        ]
        return [*notes, f"{describe_requests(experiment)} Tables again: climassay evaluate table {experiment.run}"]

    def report(self) -> "Report":
        """Return the report with tables, figures and all answers."""
        return evaluation.experiment_report(self.experiment, scores=self.scores)


def describe_requests(experiment: "Experiment") -> str:
    """Return a sentence on the numbers of requests, stored answers, failures and tokens of an experiment's run."""
    tally, run = experiment.tally, experiment.run
    cost = "" if tally.usage.cost is None else f", ${tally.usage.cost:.4f}"
    return (
        f"Run {run}: {tally.hits:,} answers from the records, {tally.sent:,} asked ({tally.failed:,} failed), "
        f"{tally.usage.tokens}{cost}."
    )


def scores_data(scores: "ExperimentScores") -> dict[str, object]:
    """Return the scores of an experiment as JSON-serialisable values."""
    return {
        "scores": scores.scores,
        "constants": scores.constants,
        "counts": scores.counts,
        "tests": scores.tests,
        "side_by_side": scores.side_by_side,
        "dimensions": scores.dimensions,
        "points": scores.points,
    }


@dataclass(frozen=True, slots=True)
class ScoredChoices(AssembledResult):
    """Result of a multiple-choice evaluation: accuracies, with all predictions."""

    predictions: Sequence[Mapping[str, Any]] = ()
