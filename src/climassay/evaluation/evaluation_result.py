"""Results of experiments: scores, tables, notes and reports."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from climassay import evaluation
from climassay.reporting.results import Result, Shown
from climassay.reporting.tables import skipped_note

if TYPE_CHECKING:
    from climassay.evaluation import Experiment, ExperimentScores
    from climassay.reporting import Report, Table


@dataclass(frozen=True, slots=True)
class Evaluation(Result):
    """Scores of an experiment: a row per model and setting, with paired tests of models and settings."""

    experiment: "Experiment"
    """Experiment with every answer to every question."""
    scores: "ExperimentScores"
    skipped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Reasons for skipped rows, by name of the benchmark."""

    def tables(self) -> "tuple[Table, ...]":
        """Return all tables, each score with its n and interval."""
        return tuple(experiment_table.table for experiment_table in evaluation.experiment_tables(self.scores))

    def terminal_tables(self, width: int) -> "list[Table]":
        """Return the tables laid out for a terminal of ``width`` columns."""
        return evaluation.screen_tables(evaluation.experiment_tables(self.scores), width)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per score, with its n and interval."""
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
        left_out = {name: reasons for name, reasons in self.skipped.items() if reasons}
        names = {"run": self.experiment.run, "name": self.experiment.name, "skipped": left_out}
        return {**names, **scores_data(self.scores)}

    def notes(self) -> list[str]:
        """Return notes on skipped rows, omitted metrics, single cells, and the number of requests sent."""
        done = self.experiment
        notes = [f"{name}: {reason}" for name, reasons in self.skipped.items() for reason in skipped_note(reasons)]
        notes += [*done.empty_tasks(), *done.omitted_metrics()]
        models_by_note: dict[tuple[str, str, str], list[str]] = {}  # what holds for several models is said once
        for record in done.cells:
            for note in record.notes:
                models_by_note.setdefault((record.cell.setting, record.cell.task, note), []).append(record.cell.model)
        notes += [
            f"{', '.join(models)}, {setting}, {task}: {note}"
            for (setting, task, note), models in models_by_note.items()
        ]
        return [*notes, f"{_tally_sentence(done)} Tables again: climassay evaluate table {done.run}"]

    def report(self) -> "Report":
        """Return the report with tables, figures and single answers."""
        return evaluation.experiment_report(self.experiment, scores=self.scores)


def _tally_sentence(done: "Experiment") -> str:
    tally = done.tally
    cost = "" if tally.usage.cost is None else f", ${tally.usage.cost:.4f}"
    return (
        f"Run {done.run}: {tally.hits:,} answers from the records, {tally.sent:,} asked ({tally.failed:,} failed), "
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
class ScoredChoices(Shown):
    """Accuracies on multiple-choice questions, with every prediction."""

    predictions: Sequence[Mapping[str, Any]] = ()
