"""Evaluations of ``climassay evaluate mcq`` in the records: their tables, and the answers as an experiment's."""

from collections.abc import Mapping, Sequence
from typing import Any

from climassay.evaluation.experiment_store import question_of
from climassay.evaluation.outcome import Cell, CellRecord, Experiment, Outcome
from climassay.evaluation.scores import AccuracyRow, McqScores, PairedRow, PositionRow
from climassay.questions import Question
from climassay.records.queries import RunDetails
from climassay.statistics import Estimate, Interval

COMMAND = "evaluate mcq"


def mcq_scores_of(details: RunDetails) -> McqScores:
    """The tables of a finished evaluation, as they were computed then."""
    rows = details.results
    return McqScores(
        tuple(AccuracyRow(**_with_estimates(row, "accuracy")) for row in rows.get("accuracy", ())),
        tuple(PairedRow(**_with_estimates(row, "difference")) for row in rows.get("paired", ())),
        tuple(_position_row(row) for row in rows.get("position", ())),
    )


def mcq_experiment_of(details: RunDetails) -> Experiment:
    """A finished evaluation in the shape of an experiment, so that both can be compared and looked through alike.

    Of several option orders only the file's own is taken. Each setting and scoring is a setting of the experiment.
    Evaluations that were stored without their questions know these by their ids only.
    """
    config, rows = details.config, details.results
    name = str(config.get("questions", details.summary.id))
    predictions = [row for row in rows.get("predictions", ()) if row["permutation"] == 0]
    known = {row["id"]: question_of(row) for row in rows.get("questions", ())}
    asked = [known.get(key) or _unknown(key) for key in dict.fromkeys(row["question"] for row in predictions)]
    texts = {question.id: question.options for question in asked}
    model = str(config.get("model", "?"))
    outcomes = tuple(_outcome(row, name, model, texts[row["question"]]) for row in predictions)
    cells = dict.fromkeys(outcome.cell for outcome in outcomes)
    return Experiment(
        run=details.summary.id,
        name=name,
        config=config,
        cells=tuple(_cell_record(cell, config, outcomes) for cell in cells),
        outcomes=outcomes,
        questions={name: tuple(asked)},
    )


def _with_estimates(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {**row, **{name: _estimate(row[name]) for name in names}}


def _estimate(row: Mapping[str, Any]) -> Estimate:
    return Estimate(row["value"], Interval(*row["interval"]), row["n"], row["level"])


def _position_row(row: Mapping[str, Any]) -> PositionRow:
    averaged = row["averaged"] and _estimate(row["averaged"])
    return PositionRow(**{**row, "picked": tuple(row["picked"]), "right": tuple(row["right"]), "averaged": averaged})


def _unknown(key: str) -> Question:
    return Question(key, "mcq", f"Question {key} (its text was not kept)", "")


def _outcome(row: Mapping[str, Any], name: str, model: str, options: Sequence[str]) -> Outcome:
    chosen = row["chosen"]
    answer = options[chosen] if chosen is not None and chosen < len(options) else row["text"]
    return Outcome(
        Cell(name, model, f"{row['setting']}, {row['scoring']}", "mcq"),
        row["question"],
        row["level"],
        answer,
        {"accuracy": float(row["correct"])},
        chosen=chosen,
        passages=tuple(row["passages"]),
        error=row["error"],
    )


def _cell_record(cell: Cell, config: Mapping[str, Any], outcomes: Sequence[Outcome]) -> CellRecord:
    ours = [outcome for outcome in outcomes if outcome.cell == cell]
    prompts = config.get("prompts") or {}
    return CellRecord(
        cell,
        cell.model,
        str(config.get("fingerprint", "")),
        {"name": cell.setting},
        ", ".join(prompts),
        ", ".join(prompt["sha256"] for prompt in prompts.values()),
        asked=len(ours),
        failed=sum(outcome.error is not None for outcome in ours),
        dtype=str(config.get("dtype", "")),
    )
