"""What an experiment keeps: its cells, and what came of every question in every cell; stored, and read back."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

from climassay.errors import InputError
from climassay.evaluation.tasks import ASKED_AGAIN, Prediction, Reading
from climassay.grounding.text_check import CheckedSentence
from climassay.metrics.factual_accuracy import Judgement
from climassay.metrics.long_answers import Assessment
from climassay.metrics.registry import METRICS
from climassay.questions import KINDS, Kind, Level, Question
from climassay.records import Records, RequestCounts, Run
from climassay.records.queries import RunDetails, run_details

RUN_LENGTH = 8
"""Words in a row that a question and a text share where the text gives it away, as in ``evaluate contamination``."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One model in one setting on one task of one benchmark."""

    benchmark: str
    model: str
    setting: str
    """The setting's label in tables; with the scoring, where that is a part of what is compared."""
    task: Kind
    scoring: str = ""
    """How choices are read, where that is a part of what is compared; settings are compared within one scoring."""


@dataclass(frozen=True, slots=True)
class CellRecord:
    """How a cell was asked."""

    cell: Cell
    model: str
    """The model as the user named it."""
    fingerprint: str
    """Fingerprint of the model with its adapter, where the setting has one."""
    setting: Mapping[str, object]
    """All settings, defaults filled in, for example collections, number of passages, examples, adapter."""
    prompt: str
    prompt_sha256: str
    asked: int
    """Answers asked for, not served from the records."""
    failed: int
    """How many of all answers failed."""
    notes: tuple[str, ...] = ()
    """What a reader must know, for example that contexts were cut to the model's window, or a leakage warning."""
    texts: str = ""
    """What the model was given or trained on beside the questions, for example ``5 examples``; empty for nothing."""
    contaminated: int | None = None
    """Questions that share a run of words with these texts, see :mod:`climassay.evaluation.contamination`; None
    where no text is known."""
    dtype: str = ""
    """Number format that a local model computed in; empty where it is not known."""

    @property
    def overlap(self) -> str:
        """A note on questions that stand in these texts; empty where none does."""
        if not self.contaminated:
            return ""
        sharing = "question shares" if self.contaminated == 1 else "questions share"
        return (
            f"{self.contaminated} {sharing} {RUN_LENGTH} words in a row or more with what the model had: {self.texts}"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question in one cell, answered and scored; accuracy is the mean over the option orders it was asked in.

    A question whose answer failed scores 0 in every metric of its task. A metric that could not be computed for an
    answer (its own model call failed) is missing from :attr:`scores`, and tables count it.
    """

    cell: Cell
    question: str
    level: Level | None
    answer: str
    """The text of the chosen option (mcq), or the text written (freeform, cloze); empty where there is none."""
    scores: Mapping[str, float]
    """By the names of :data:`climassay.metrics.METRICS`."""
    chosen: int | None = None
    """Index of the chosen option (mcq, options in the order of the file); None where the answer named none."""
    probability: float | None = None
    """Probability of the chosen option among the options (mcq with log-probabilities)."""
    reading: Reading | None = None
    """How the choice was read from the model (mcq)."""
    violations: tuple[str, ...] = ()
    """Answer constraints not kept, for example ``more than two sentences``."""
    passages: tuple[str, ...] = ()
    """Ids of the passages the model was given, see :attr:`Experiment.passages`."""
    error: str | None = None
    judgement: Judgement | None = None
    """What the judge says about the answer, with its reason (freeform, where the experiment has a judge)."""
    assessment: Assessment | None = None
    """What the judge says of each criterion and dimension (longform, where the experiment has a judge)."""
    points: tuple[CheckedSentence, ...] = ()
    """What the collections say of each sentence of a long answer and of its references, where they are named."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Which of two answers to a question the judge found better, in one order."""

    first: Cell
    second: Cell
    question: str
    better: Literal["first", "second", "tie"] | None
    """None where the judge failed."""
    reason: str = ""
    error: str | None = None
    judge: str = ""
    """Name of the trained judge; empty for the judge of the plan."""


@dataclass(frozen=True, slots=True)
class ConstantScore:
    """What one and the same answer to every question would get."""

    benchmark: str
    metric: str
    level: str
    answer: str
    """The best constant answer at that level: a letter (mcq) or the most frequent term (cloze)."""
    value: float
    task: Kind = "mcq"


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """Benchmarks of which one mean is taken, as a group of lm-evaluation-harness takes it of its tasks."""

    members: tuple[str, ...]
    """Names of benchmarks; those without the metric are left out."""
    metric: str = ""
    """Name without the filter; empty for every score that all members have."""
    filters: tuple[str, ...] | None = None
    """None for all."""
    by_size: bool = False
    """Whether every question weighs the same; else every benchmark does."""

    def takes(self, score: str) -> bool:
        """Whether a score, named by metric and filter, is one of the group."""
        metric, _, chosen = score.partition(",")
        return metric.removesuffix("↓") == self.metric and (self.filters is None or chosen in self.filters)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A whole matrix: models x settings x tasks x benchmarks."""

    run: str
    name: str
    config: Mapping[str, object]
    """The experiment file as it was understood."""
    cells: tuple[CellRecord, ...]
    """In the order of the file."""
    outcomes: tuple[Outcome, ...]
    questions: Mapping[str, tuple[Question, ...]]
    passages: Mapping[str, str] = field(default_factory=dict)
    """Text of every passage that was given to a model, by id."""
    predictions: Mapping[Cell, tuple[Prediction, ...]] = field(default_factory=dict)
    """Every choice in every option order; runs of earlier versions may lack them."""
    tally: RequestCounts = field(default_factory=RequestCounts, compare=False)
    """What the models that answer were asked for in this run; not kept with it."""
    metric_sources: Mapping[str, str] = field(default_factory=dict)
    """What computed a metric, for example ``bert_score``: the encoder's name; for the notes of tables."""
    preferences: tuple[Preference, ...] = ()
    """Long answers compared side by side, each pair in both orders, where the experiment asks for it."""
    constants: tuple[ConstantScore, ...] = ()
    """Constant answers to benchmarks that another framework scores; those of the others follow from the questions."""
    groups: Mapping[str, tuple[TaskGroup, ...]] = field(default_factory=dict)
    """Benchmarks that are shown together as well, by the name of the whole."""

    def empty_tasks(self) -> list[str]:
        """A sentence for each benchmark that has no question of a task which the file names."""
        plan: Mapping[str, Any] = self.config
        tasks = plan.get("tasks", ())
        if set(tasks) == set(KINDS):  # the file names none
            return []
        asked = {one["name"]: {kept.kind for kept in self.questions[one["name"]]} for one in plan.get("benchmarks", ())}
        missing = {name: [task for task in tasks if task not in kinds] for name, kinds in asked.items()}
        return [f"{name} has no {' and no '.join(ones)} questions." for name, ones in missing.items() if ones]

    def omitted_metrics(self) -> list[str]:
        """Return a sentence on the metrics of freeform answers that need an entailment scorer, if the file names none.

        Empty if there is a scorer, no freeform question, or if the file names its metrics.
        """
        plan: Mapping[str, Any] = self.config
        settings = plan.get("metrics", {"entailment": "unknown"})
        benchmarks = [benchmark["name"] for benchmark in plan.get("benchmarks", ())]
        kinds = {question.kind for name in benchmarks for question in self.questions[name]}
        if settings["entailment"] or settings["names"] or "freeform" not in kinds:
            return []
        needs = ("entailment", "facts") if settings["facts"] else ("entailment",)
        labels = ", ".join(metric.label for metric in METRICS.values() if metric.needs in needs)
        return [f"Left out, because [metrics] names no entailment scorer: {labels}."]


_QUESTION, _PREDICTION, _OUTCOME = TypeAdapter(Question), TypeAdapter(Prediction), TypeAdapter(Outcome)
_GROUP = TypeAdapter(TaskGroup)
_PREFERENCE = TypeAdapter(Preference)
_CONSTANTS = TypeAdapter(tuple[ConstantScore, ...])

COMMANDS = ("evaluate run", "evaluate mcq", "evaluate lm-eval", "evaluate inspect")
"""Commands whose runs keep an experiment."""


def save_experiment(run: Run, experiment: Experiment) -> None:
    """Keep an experiment with its run.

    Args:
        run: The open run.
        experiment: What it came to.
    """
    run.save_results("experiment", [{"name": experiment.name, "config": experiment.config}])
    run.save_results("cells", [asdict(cell) for cell in experiment.cells])
    places = {record.cell: place for place, record in enumerate(experiment.cells)}
    run.save_results(
        "predictions",
        [{**asdict(one), "cell": places[cell]} for cell, ones in experiment.predictions.items() for one in ones],
    )
    run.save_results("outcomes", [{**asdict(one), "cell": places[one.cell]} for one in experiment.outcomes])
    run.save_results(
        "questions",
        [{"benchmark": name, **asdict(one)} for name, questions in experiment.questions.items() for one in questions],
    )
    run.save_results("passages", [{"id": name, "text": text} for name, text in experiment.passages.items()])
    run.save_results("metric_sources", [dict(experiment.metric_sources)])
    run.save_results(
        "preferences",
        [{**asdict(one), "first": places[one.first], "second": places[one.second]} for one in experiment.preferences],
    )
    run.save_results("constants", [asdict(one) for one in experiment.constants])
    run.save_results(
        "groups", [{"name": name, **asdict(one)} for name, ones in experiment.groups.items() for one in ones]
    )


def load_experiment(store: Records, run: str) -> Experiment:
    """The experiment of a run.

    Raises:
        RecordsError: There is no such run.
        InputError: The run is not an experiment, or did not end.
    """
    return experiment_of(run_details(store.database, run))


def experiment_of(details: RunDetails) -> Experiment:
    """The experiment that a run kept.

    Args:
        details: Everything that is known of the run.

    Raises:
        InputError: The run is not an experiment, or did not end.
    """
    run, rows = details.summary.id, details.results
    if details.summary.command not in COMMANDS:
        raise InputError(
            f"The run {run} was made by {details.summary.command!r}, not by climassay evaluate run or mcq."
        )
    if "outcomes" not in rows:
        if "predictions" in rows:
            return _from_predictions(details)
        raise InputError(
            f"The experiment {run} did not end ({details.summary.status}): run it again, and only what is missing is "
            "asked."
        )
    cells = TypeAdapter(tuple[CellRecord, ...]).validate_python(rows["cells"])
    questions: dict[str, list[Question]] = {}
    for row in rows["questions"]:
        questions.setdefault(row["benchmark"], []).append(_QUESTION.validate_python(row))
    predictions: dict[Cell, list[Prediction]] = {}
    for row in rows.get("predictions", ()):
        predictions.setdefault(cells[row["cell"]].cell, []).append(_PREDICTION.validate_python({"order": (), **row}))
    groups: dict[str, list[TaskGroup]] = {}
    for row in rows.get("groups", ()):
        groups.setdefault(row["name"], []).append(_GROUP.validate_python(row))
    [facts] = rows["experiment"]
    return Experiment(
        run=run,
        name=facts["name"],
        config=facts["config"],
        cells=cells,
        outcomes=tuple(_OUTCOME.validate_python({**row, "cell": cells[row["cell"]].cell}) for row in rows["outcomes"]),
        questions={name: tuple(ones) for name, ones in questions.items()},
        passages={row["id"]: row["text"] for row in rows.get("passages", [])},
        metric_sources=rows["metric_sources"][0],
        predictions={cell: tuple(ones) for cell, ones in predictions.items()},
        preferences=tuple(
            _PREFERENCE.validate_python({**row, "first": cells[row["first"]].cell, "second": cells[row["second"]].cell})
            for row in rows.get("preferences", ())
        ),
        constants=_CONSTANTS.validate_python(rows.get("constants", ())),
        groups={name: tuple(ones) for name, ones in groups.items()},
    )


def _from_predictions(details: RunDetails) -> Experiment:
    """An evaluation of multiple choice as versions before kept it: predictions, and perhaps their questions."""
    config, rows = details.config, details.results
    name, model = str(config.get("questions", details.summary.id)), str(config.get("model", "?"))
    predictions: dict[Cell, list[Prediction]] = {}
    for row in rows["predictions"]:
        cell = Cell(name, model, f"{row['setting']}, {row['scoring']}", "mcq", row["scoring"])
        predictions.setdefault(cell, []).append(_PREDICTION.validate_python({"order": (), **row}))
    known = {row["id"]: _QUESTION.validate_python(row) for row in rows.get("questions", ())}
    asked = [
        known.get(key) or Question(key, "mcq", f"Question {key} (its text was not kept)", "", row["level"])
        for key, row in {row["question"]: row for row in rows["predictions"]}.items()
    ]
    prompts = config.get("prompts") or {}
    return Experiment(
        run=details.summary.id,
        name=name,
        config=config,
        cells=tuple(
            CellRecord(
                cell,
                model,
                str(config.get("fingerprint", "")),
                {"name": ones[0].setting},
                ", ".join(prompts),
                ", ".join(prompt["sha256"] for prompt in prompts.values()),
                asked=len(ones),
                failed=sum(one.error is not None for one in ones),
                dtype=str(config.get("dtype", "")),
            )
            for cell, ones in predictions.items()
        ),
        outcomes=tuple(one for cell, ones in predictions.items() for one in choice_outcomes(cell, asked, ones)),
        questions={name: tuple(asked)},
        predictions={cell: tuple(ones) for cell, ones in predictions.items()},
    )


def choice_outcomes(cell: Cell, questions: Sequence[Question], predictions: Sequence[Prediction]) -> list[Outcome]:
    """What came of each question that was answered by choosing: the choice in the file's order, accuracy over all."""
    asked: dict[str, list[Prediction]] = defaultdict(list)
    for one in predictions:
        asked[one.question].append(one)
    results = []
    for question in questions:
        first = asked[question.id][0]
        unparsed = "neither of the two words" if question.type.fixed else "no option letter"
        broken = (unparsed,) if first.chosen is None and first.error is None else ()
        if first.method == ASKED_AGAIN:
            broken = ("asked again for the option",)
        shown = first.chosen is not None and first.chosen < len(question.options)
        results.append(
            Outcome(
                cell=cell,
                question=question.id,
                level=question.level,
                answer=question.options[first.chosen] if shown and first.chosen is not None else first.text,
                scores={"accuracy": sum(one.correct for one in asked[question.id]) / len(asked[question.id])},
                chosen=first.chosen,
                probability=first.probability,
                reading=first.reading,
                violations=broken,
                passages=first.passages,
                error=first.error,
            )
        )
    return results
