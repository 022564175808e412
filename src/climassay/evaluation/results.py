"""Results of an experiment: the outcome of every question for every model and setting, and how they are stored."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

from climassay.errors import InputError
from climassay.evaluation.contamination import MIN_SHARED_WORDS
from climassay.evaluation.tasks import ASKED_AGAIN, Prediction, ReadingMethod
from climassay.grounding.text_check import CheckedSentence
from climassay.metrics.factual_accuracy import AnswerJudgement
from climassay.metrics.long_answers import LongAnswerAssessment
from climassay.metrics.registry import METRICS
from climassay.questions import KINDS, Kind, Level, Question
from climassay.records import Records, RequestCounts, Run
from climassay.records.queries import RunDetails, run_details


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell of an experiment: a combination of model, setting, task and benchmark."""

    benchmark: str
    model: str
    setting: str
    """Label of the setting in tables, including the scoring if the experiment compares scorings."""
    task: Kind
    scoring: str = ""
    """Scoring of multiple-choice answers, if the experiment compares scorings; else empty. Only settings with the same
    scoring are compared."""


@dataclass(frozen=True, slots=True)
class CellRecord:
    """Metadata of one model in one setting on one task: the prompt, the parameters and counts of requests."""

    cell: Cell
    model: str
    """Name of the model as the user wrote it."""
    fingerprint: str
    """Fingerprint of the model, including the setting's adapter if there is one."""
    setting: Mapping[str, object]
    """Parameters of the setting, defaults included: collections, number of passages, examples, adapter and others."""
    prompt: str
    prompt_sha256: str
    n_requested: int
    """Number of answers that were requested from the model, not found in the records."""
    failed: int
    """Number of failed answers, whether requested or found in the records."""
    notes: tuple[str, ...] = ()
    """Warnings for the report, for example that documents were truncated to the model's context window."""
    texts: str = ""
    """Description of the texts in prompts or training data, for example ``5 examples``; empty if there are none."""
    contaminated: int | None = None
    """Number of questions that share at least :data:`MIN_SHARED_WORDS` consecutive words with these texts; None if no
    text is known."""
    dtype: str = ""
    """Number format (dtype) of a local model; empty if unknown."""

    @property
    def overlap(self) -> str:
        """Sentence on the number of contaminated questions; empty if there are none."""
        if not self.contaminated:
            return ""
        subject = "question shares" if self.contaminated == 1 else "questions share"
        return (
            f"{self.contaminated} {subject} {MIN_SHARED_WORDS} or more consecutive words with texts that the model "
            f"had: {self.texts}"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Answer of a model to a question in one setting, with its scores. Accuracy is averaged over the option orders.

    A failed answer scores 0 in every metric of its task. If a metric itself fails for an answer, :attr:`scores` lacks
    that metric, and tables count the answer as unscored.
    """

    cell: Cell
    question: str
    """Id of the question."""
    level: Level | None
    answer: str
    """Text of the chosen option (mcq), or generated text (other kinds); empty if there is none."""
    scores: Mapping[str, float]
    """Scores by name of the metric in :data:`climassay.metrics.METRICS`."""
    chosen: int | None = None
    """Index of the chosen option in the order of the file (mcq); None if the answer names no option."""
    probability: float | None = None
    """Probability of the chosen option relative to all options (mcq); None without log-probabilities."""
    reading: ReadingMethod | None = None
    """Method by which the choice was determined from the model's response (mcq)."""
    violations: tuple[str, ...] = ()
    """Constraints that the answer violates, for example ``more than two sentences``."""
    passages: tuple[str, ...] = ()
    """Ids of the passages in the prompt, whose texts are in :attr:`Experiment.passages`."""
    error: str | None = None
    judgement: AnswerJudgement | None = None
    """Judgement of the experiment's judge on a freeform answer."""
    assessment: LongAnswerAssessment | None = None
    """Assessment of a long answer by the experiment's judge."""
    points: tuple[CheckedSentence, ...] = ()
    """Sentences of a long answer, with the results of checking them and their references against the experiment's
    collections."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Preference of a judge between two answers to a question, shown in one of the two orders."""

    first: Cell
    second: Cell
    question: str
    better: Literal["first", "second", "tie"] | None
    """Preferred answer; None if the judge failed."""
    reason: str = ""
    error: str | None = None
    judge: str = ""
    """Name of the trained judge; empty for the plan's own judge."""


@dataclass(frozen=True, slots=True)
class ConstantScore:
    """Score of the majority-class baseline, which gives the most frequent correct answer to every question."""

    benchmark: str
    metric: str
    level: str
    answer: str
    """Answer of the baseline at the level: a letter (mcq), or the most frequent term (cloze)."""
    value: float
    task: Kind


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """Group of benchmarks whose scores are averaged, as lm-evaluation-harness averages the tasks of a group."""

    members: tuple[str, ...]
    """Names of the benchmarks. Benchmarks without the metric are left out of the mean."""
    metric: str = ""
    """Name of the metric, without a filter. If empty, the group averages every metric for which all its benchmarks have
    scores."""
    filters: tuple[str, ...] | None = None
    """Names of the metric's filters; None for all filters."""
    by_size: bool = False
    """Whether benchmarks are weighted by their numbers of questions instead of equally."""

    def includes(self, score: str) -> bool:
        """Return whether the group averages a score; its name has the form ``metric,filter``."""
        metric, _, filter_name = score.partition(",")
        return metric.removesuffix("↓") == self.metric and (self.filters is None or filter_name in self.filters)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Experiment with its results: every model in every setting on every task of every benchmark."""

    run: str
    """Id of the experiment's run in the records."""
    name: str
    config: Mapping[str, object]
    """Plan of the experiment, as JSON-serialisable values."""
    cells: tuple[CellRecord, ...]
    """Metadata of each model in each setting on each task, in the order of the experiment file."""
    outcomes: tuple[Outcome, ...]
    questions: Mapping[str, tuple[Question, ...]]
    """Questions by benchmark."""
    passages: Mapping[str, str] = field(default_factory=dict)
    """Text of every passage that was in a prompt, by id."""
    predictions: Mapping[Cell, tuple[Prediction, ...]] = field(default_factory=dict)
    """Predictions of multiple-choice answers in every option order, by cell."""
    tally: RequestCounts = field(default_factory=RequestCounts, compare=False)
    """Counts of the requests to the evaluated models in this run; not saved."""
    metric_sources: Mapping[str, str] = field(default_factory=dict)
    """Names of the models that computed the metrics, by metric, for example the encoder of ``bert_score``."""
    preferences: tuple[Preference, ...] = ()
    """Preferences between long answers, with every pair in both orders."""
    constants: tuple[ConstantScore, ...] = ()
    """Majority-class baselines of other frameworks' benchmarks; for question files, they are computed from the
    questions."""
    groups: Mapping[str, tuple[TaskGroup, ...]] = field(default_factory=dict)
    """Groups of benchmarks whose scores are averaged, by name of the group."""

    def empty_tasks(self) -> list[str]:
        """Return a sentence for each benchmark without questions of a task that the experiment file names."""
        plan: Mapping[str, Any] = self.config
        tasks = plan.get("tasks", ())
        if set(tasks) == set(KINDS):  # the file names no tasks
            return []
        sentences = []
        for benchmark in plan.get("benchmarks", ()):
            kinds = {question.kind for question in self.questions[benchmark["name"]]}
            if missing_tasks := [task for task in tasks if task not in kinds]:
                sentences.append(f"{benchmark['name']} has no {' and no '.join(missing_tasks)} questions.")
        return sentences

    def omitted_metrics(self) -> list[str]:
        """Return a sentence on the metrics that were left out because the experiment file names no entailment scorer.

        Return an empty list if none was left out, or if the file names its metrics.
        """
        plan: Mapping[str, Any] = self.config
        settings = plan.get("metrics", {"entailment": "unknown"})
        benchmarks = [benchmark["name"] for benchmark in plan.get("benchmarks", ())]
        kinds = {question.kind for name in benchmarks for question in self.questions[name]}
        if settings["entailment"] or settings["names"]:
            return []
        needs = ("entailment", "facts") if settings["facts"] else ("entailment",)
        labels = ", ".join(
            metric.label for metric in METRICS.values() if metric.needs in needs and any(map(metric.scores, kinds))
        )
        if not labels:
            return []
        return [f"Left out, because [metrics] names no entailment scorer: {labels}."]


COMMANDS = ("evaluate run", "evaluate mcq", "evaluate lm-eval", "evaluate inspect")
"""Commands that record an experiment."""


def save_experiment(run: Run, experiment: Experiment) -> None:
    """Save an experiment to its open run, as one results table per field.

    Tables refer to cells (a model in a setting on a task) by their index in :attr:`Experiment.cells`.
    """
    cell_index = {record.cell: index for index, record in enumerate(experiment.cells)}
    tables: dict[str, list[dict[str, Any]]] = {
        "experiment": [{"name": experiment.name, "config": experiment.config}],
        "cells": [asdict(record) for record in experiment.cells],
        "predictions": [
            {**asdict(prediction), "cell": cell_index[cell]}
            for cell, predictions in experiment.predictions.items()
            for prediction in predictions
        ],
        "outcomes": [{**asdict(outcome), "cell": cell_index[outcome.cell]} for outcome in experiment.outcomes],
        "questions": [
            {"benchmark": name, **asdict(question)}
            for name, questions in experiment.questions.items()
            for question in questions
        ],
        "passages": [{"id": passage_id, "text": text} for passage_id, text in experiment.passages.items()],
        "metric_sources": [dict(experiment.metric_sources)],
        "preferences": [
            {**asdict(preference), "first": cell_index[preference.first], "second": cell_index[preference.second]}
            for preference in experiment.preferences
        ],
        "constants": [asdict(constant) for constant in experiment.constants],
        "groups": [{"name": name, **asdict(group)} for name, groups in experiment.groups.items() for group in groups],
    }
    for name, rows in tables.items():
        run.save_results(name, rows)


def load_experiment(store: Records, run: str) -> Experiment:
    """Load the experiment of a run from the records.

    Raises:
        RecordsError: The run does not exist.
        InputError: The run is not an experiment, or was not completed.
    """
    return experiment_of(run_details(store.database, run))


def experiment_of(details: RunDetails) -> Experiment:
    """Return the experiment that a run's details contain.

    Raises:
        InputError: The run is not an experiment, or was not completed.
    """
    run, tables = details.summary.id, details.results
    if details.summary.command not in COMMANDS:
        raise InputError(
            f"The run {run} was made by {details.summary.command!r}, not by climassay evaluate run or mcq."
        )
    if "outcomes" not in tables:
        raise InputError(
            f"The experiment {run} did not end ({details.summary.status}): run it again; stored answers are reused."
        )
    records = TypeAdapter(tuple[CellRecord, ...]).validate_python(tables["cells"])
    cells = [record.cell for record in records]
    outcomes = [{**row, "cell": cells[row["cell"]]} for row in tables["outcomes"]]
    preferences = [
        {**row, "first": cells[row["first"]], "second": cells[row["second"]]} for row in tables.get("preferences", ())
    ]
    predictions: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for row in tables.get("predictions", ()):
        predictions[cells[row["cell"]]].append(row)
    return Experiment(
        run=run,
        name=tables["experiment"][0]["name"],
        config=tables["experiment"][0]["config"],
        cells=records,
        outcomes=TypeAdapter(tuple[Outcome, ...]).validate_python(outcomes),
        questions=TypeAdapter(dict[str, tuple[Question, ...]]).validate_python(
            _group_rows(tables["questions"], "benchmark")
        ),
        passages={row["id"]: row["text"] for row in tables.get("passages", ())},
        metric_sources=tables["metric_sources"][0],
        predictions=TypeAdapter(dict[Cell, tuple[Prediction, ...]]).validate_python(predictions),
        preferences=TypeAdapter(tuple[Preference, ...]).validate_python(preferences),
        constants=TypeAdapter(tuple[ConstantScore, ...]).validate_python(tables.get("constants", ())),
        groups=TypeAdapter(dict[str, tuple[TaskGroup, ...]]).validate_python(
            _group_rows(tables.get("groups", ()), "name")
        ),
    )


def _group_rows(rows: Sequence[dict[str, Any]], column: str) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


def choice_outcomes(cell: Cell, questions: Sequence[Question], predictions: Sequence[Prediction]) -> list[Outcome]:
    """Return an outcome for each multiple-choice question, from the predictions in all option orders.

    The answer is the choice in the file's option order. Accuracy is the mean over all orders.
    """
    predictions_by_question: dict[str, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        predictions_by_question[prediction.question].append(prediction)
    outcomes = []
    for question in questions:
        question_predictions = predictions_by_question[question.id]
        first_prediction = question_predictions[0]
        violations: tuple[str, ...] = ()
        if first_prediction.method == ASKED_AGAIN:
            violations = ("asked again for the option",)
        elif first_prediction.chosen is None and first_prediction.error is None:
            violations = ("neither of the two words" if question.type.fixed_options else "no option letter",)
        outcomes.append(
            Outcome(
                cell=cell,
                question=question.id,
                level=question.level,
                answer=first_prediction.text
                if first_prediction.chosen is None
                else question.options[first_prediction.chosen],
                scores={
                    "accuracy": sum(prediction.correct for prediction in question_predictions)
                    / len(question_predictions)
                },
                chosen=first_prediction.chosen,
                probability=first_prediction.probability,
                reading=first_prediction.reading,
                violations=violations,
                passages=first_prediction.passages,
                error=first_prediction.error,
            )
        )
    return outcomes
