"""Experiments in the records: kept with their run, read back by its id."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from climassay.errors import InputError
from climassay.evaluation.outcome import Cell, CellRecord, Experiment, Outcome
from climassay.metrics.judged_accuracy import Judgement
from climassay.questions import Question
from climassay.records import Records, Run
from climassay.records.queries import RunDetails, run_details

COMMAND = "evaluate run"


def save_experiment(run: Run, experiment: Experiment) -> None:
    """Keep an experiment with its run.

    Args:
        run: The open run.
        experiment: What it came to.
    """
    run.save_results("experiment", [{"name": experiment.name, "config": experiment.config}])
    run.save_results("cells", [asdict(cell) for cell in experiment.cells])
    run.save_results("outcomes", _numbered(experiment))
    run.save_results(
        "questions",
        [{"benchmark": name, **asdict(one)} for name, questions in experiment.questions.items() for one in questions],
    )
    run.save_results("passages", [{"id": name, "text": text} for name, text in experiment.passages.items()])
    run.save_results("metric_sources", [dict(experiment.metric_sources)])


def _numbered(experiment: Experiment) -> list[dict[str, Any]]:
    """Outcomes with the number of their cell instead of the whole cell."""
    places = {record.cell: place for place, record in enumerate(experiment.cells)}
    return [{**asdict(outcome), "cell": places[outcome.cell]} for outcome in experiment.outcomes]


def load_experiment(store: Records, run: str) -> Experiment:
    """The experiment of a run.

    Raises:
        RecordsError: There is no such run.
        InputError: The run is no experiment, or did not end.
    """
    return experiment_of(run_details(store.database, run))


def experiment_of(details: RunDetails) -> Experiment:
    """The experiment that a run kept.

    Args:
        details: Everything that is known of the run.

    Raises:
        InputError: The run is no experiment, or did not end.
    """
    run = details.summary.id
    if details.summary.command != COMMAND:
        raise InputError(f"The run {run} is one of {details.summary.command!r}, not of climassay evaluate run.")
    if "outcomes" not in details.results:
        raise InputError(
            f"The experiment {run} did not end ({details.summary.status}): run it again, and only what is missing is "
            "asked."
        )
    rows = details.results
    cells = tuple(_cell_record(row) for row in rows["cells"])
    questions: dict[str, list[Question]] = {}
    for row in rows["questions"]:
        questions.setdefault(row["benchmark"], []).append(question_of(row))
    [facts] = rows["experiment"]
    return Experiment(
        run=run,
        name=facts["name"],
        config=facts["config"],
        cells=cells,
        outcomes=tuple(_outcome(row, cells) for row in rows["outcomes"]),
        questions={name: tuple(ones) for name, ones in questions.items()},
        passages={row["id"]: row["text"] for row in rows.get("passages", [])},
        metric_sources=rows["metric_sources"][0],
    )


def _cell_record(row: Mapping[str, Any]) -> CellRecord:
    return CellRecord(**{**row, "cell": Cell(**row["cell"]), "notes": tuple(row["notes"])})


def _outcome(row: Mapping[str, Any], cells: Sequence[CellRecord]) -> Outcome:
    lists = {name: tuple(row[name]) for name in ("violations", "passages")}
    said = row.get("judgement")
    judgement = None if said is None else Judgement(**said)
    return Outcome(**{**row, **lists, "cell": cells[row["cell"]].cell, "judgement": judgement})


def question_of(row: Mapping[str, Any]) -> Question:
    """A question from the row that a run kept of it."""
    values = {name: value for name, value in row.items() if name != "benchmark"}
    return Question(**{**values, "options": tuple(values["options"])})
