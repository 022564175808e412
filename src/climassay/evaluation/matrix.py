"""Running an experiment: every model in every setting on every task of every benchmark, as one resumable run."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from climassay.configuration import located
from climassay.errors import InputError, ModelError
from climassay.evaluation.answer_scores import AnswerScorer
from climassay.evaluation.cell_contamination import shown_text
from climassay.evaluation.examples import TaskPrompts
from climassay.evaluation.experiment_file import BenchmarkSpec, ExperimentPlan, ModelSpec
from climassay.evaluation.experiment_store import save_experiment
from climassay.evaluation.mcq import Prediction, ask_mcq, mcq_prompt
from climassay.evaluation.outcome import Cell, CellRecord, Experiment, Outcome
from climassay.evaluation.settings import Prepared, Setting, SettingSpec, Sources, make_setting
from climassay.evaluation.written import Written, ask_written
from climassay.models.contract import Generator, OptionScorer, number_format
from climassay.primer import PRIMER, named_questions
from climassay.questions import Question, QuestionSet, join_questions
from climassay.records import RecordedModel, Records, Run

if TYPE_CHECKING:
    from collections.abc import Iterator

Ask = Callable[[Generator], Generator]
"""Puts records around a model."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """What a tuned setting adds to a model."""

    folder: Path
    notes: tuple[str, ...] = ()
    """For the cells' notes, for example a leakage warning."""
    learned: Sequence[str] | None = field(default=None, repr=False)
    """The texts it was trained on, where they are known."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where an experiment finds its parts."""

    open_model: Callable[[ModelSpec, Path | None], Generator]
    """Loads a model, with the adapter of that folder."""
    sources: Sources
    """Collections and pools of examples."""
    adapter: Callable[[ModelSpec, SettingSpec], Adapter | None]
    """Finds, or trains, what a setting adds to a model; None for nothing."""
    scorer: Callable[[Ask], AnswerScorer]
    """Makes the scorer of answers in words; models that it asks go through the records."""
    keeps_models: bool = False
    """Whether models stay open after the experiment, because they belong to the caller."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Who is told what is going on."""

    on_cell: Callable[[Cell, str], None] = lambda _cell, _what: None
    """A cell begins to be ``asked`` or ``scored``."""
    on_answer: Callable[[int], None] = lambda _count: None
    """So many more answers came in, stored ones included."""


@dataclass(slots=True)
class _Work:
    """What the parts of a run share."""

    plan: ExperimentPlan
    sets: Mapping[str, QuestionSet]
    bench: Bench
    store: Records
    run: Run
    prompts: TaskPrompts
    use_cache: bool
    progress: Progress
    scorer: AnswerScorer | None = None
    cells: list[CellRecord] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    passages: dict[str, str] = field(default_factory=dict)

    def recorded(self, model: Generator) -> RecordedModel:
        return RecordedModel(model, self.store, self.run, use_cache=self.use_cache)


def read_benchmark(spec: BenchmarkSpec, plan: ExperimentPlan) -> QuestionSet:
    """The questions of a benchmark's files as one set, cut to the plan's limit by a seeded draw for each task.

    Raises:
        InputError: A file cannot be read, or no question is of the plan's tasks.
    """
    sets = [named_questions(file if file == PRIMER else located(plan.folder, file)) for file in spec.files]
    wanted = [replace(one, questions=tuple(q for q in one.questions if q.kind in plan.tasks)) for one in sets]
    joined = join_questions(spec.name, wanted)
    if not joined.questions:
        raise InputError(f"The benchmark {spec.name} has no question of the kinds {', '.join(plan.tasks)}.")
    return limited(joined, plan)


def limited(question_set: QuestionSet, plan: ExperimentPlan) -> QuestionSet:
    """A question set cut to the plan's limit, by a seeded draw for each task; whole where there is no limit."""
    if plan.limit is None:
        return question_set
    kept: set[str] = set()
    for kind in plan.tasks:
        ids = [question.id for question in question_set.of_kind(kind)]
        order = np.random.default_rng(plan.seed).permutation(len(ids))[: plan.limit]
        kept |= {ids[int(place)] for place in order}
    return replace(question_set, questions=tuple(one for one in question_set.questions if one.id in kept))


def answers_wanted(plan: ExperimentPlan, sets: Mapping[str, QuestionSet]) -> int:
    """Answers that a whole experiment asks for."""
    questions = sum(len(one.of_kind(task)) for one in sets.values() for task in plan.tasks)
    return questions * len(plan.models) * len(plan.settings)


def run_experiment(
    plan: ExperimentPlan,
    sets: Mapping[str, QuestionSet],
    bench: Bench,
    store: Records,
    *,
    prompts: TaskPrompts | None = None,
    use_cache: bool = True,
    progress: Progress | None = None,
) -> Experiment:
    """Ask, score and keep a whole matrix.

    Every answer is stored before it is used: kill the process and call again, and only what is missing is asked. Models
    are loaded one after the other, each once for every adapter.

    Args:
        plan: What to run.
        sets: The questions of each benchmark, by its name; see :func:`read_benchmark`.
        bench: Where models, collections, adapters and metrics come from.
        store: Where answers and results are kept.
        prompts: Templates; the built-in ones by default.
        use_cache: False asks everything afresh.
        progress: Who is told.

    Raises:
        InputError: A setting cannot be prepared.
        ModelError: A model cannot be loaded, or gives no log-probabilities where they are needed.
    """
    templates = prompts or TaskPrompts.load()
    config: dict[str, Any] = {
        "experiment": _as_data(asdict(plan)),
        "questions_sha256": {name: one.sha256 for name, one in sets.items()},
        "prompts": {one.name: one.sha256 for one in (templates.mcq, templates.freeform, templates.cloze)},
        "use_cache": use_cache,
    }
    with store.run(command="evaluate run", config=config, seeds={"plan": plan.seed}) as run:
        work = _Work(plan, sets, bench, store, run, templates, use_cache, progress or Progress())
        # Settings are made before any model is loaded: a collection that is not there is told at once.
        settings = [make_setting(spec, bench.sources) for spec in plan.settings]
        for model in plan.models:
            for adapter, group in _by_adapter(model, settings, bench):
                with _opened(bench, model, adapter) as loaded:
                    for setting in group:
                        _run_setting(work, model, loaded, setting, adapter)
        if work.scorer is not None and work.scorer.judge is not None:
            work.scorer.judge.close()
        experiment = Experiment(
            run=run.id,
            name=plan.name,
            config=config["experiment"],
            cells=tuple(work.cells),
            outcomes=tuple(work.outcomes),
            questions={name: one.questions for name, one in sets.items()},
            passages=work.passages,
            metric_sources={} if work.scorer is None else work.scorer.sources,
        )
        save_experiment(run, experiment)
    return experiment


def _by_adapter(
    model: ModelSpec, settings: Sequence[Setting], bench: Bench
) -> "Iterator[tuple[Adapter | None, list[Setting]]]":
    """Settings that share an adapter come together, those without one first."""
    plain = [setting for setting in settings if not _tuned(setting.spec)]
    if plain:
        yield None, plain
    for setting in settings:
        if _tuned(setting.spec):
            adapter = bench.adapter(model, setting.spec)
            if adapter is None:
                raise InputError(f"The setting {setting.name} needs an adapter or a training to make one.")
            yield adapter, [setting]


def _tuned(spec: SettingSpec) -> bool:
    return bool(spec.adapter) or spec.training is not None or spec.kind in ("fine-tuned", "continued-pretraining")


@contextmanager
def _opened(bench: Bench, model: ModelSpec, adapter: Adapter | None) -> "Iterator[Generator]":
    loaded = bench.open_model(model, None if adapter is None else adapter.folder)
    try:
        yield loaded
    finally:
        if not bench.keeps_models:
            loaded.close()


def _run_setting(work: _Work, model: ModelSpec, loaded: Generator, setting: Setting, adapter: Adapter | None) -> None:
    for benchmark, question_set in work.sets.items():
        for task in work.plan.tasks:
            questions = question_set.of_kind(task)
            if questions:
                cell = Cell(benchmark, model.shown, setting.name, task)
                _run_cell(work, cell, model, loaded, setting, questions, adapter)


def _run_cell(
    work: _Work,
    cell: Cell,
    model: ModelSpec,
    loaded: Generator,
    setting: Setting,
    questions: Sequence[Question],
    adapter: Adapter | None,
) -> None:
    recorded = work.recorded(loaded)
    work.progress.on_cell(cell, "asked")
    given: dict[str, Prepared] = {}
    watched = _watched(setting, work.passages, given)
    if cell.task == "mcq":
        outcomes, cuts = _ask_choices(work, cell, model, recorded, watched, questions)
        prompt = mcq_prompt(work.prompts, model.scoring or work.plan.scoring)
    else:
        written = ask_written(questions, recorded, watched, work.prompts, on_progress=work.progress.on_answer)
        work.progress.on_cell(cell, "scored")
        outcomes = _score_written(work, cell, questions, written)
        cuts = [one.prepared.note for one in written]
        prompt = work.prompts.of(cell.task)
    shown = shown_text(questions, given, () if adapter is None else adapter.learned)
    notes = () if adapter is None else adapter.notes
    work.cells.append(
        CellRecord(
            cell=cell,
            model=model.name,
            fingerprint=loaded.fingerprint,
            dtype=number_format(loaded),
            setting={name: value for name, value in _as_data(asdict(setting.spec)).items() if value is not None},
            prompt=prompt.name,
            prompt_sha256=prompt.sha256,
            asked=recorded.tally.asked,
            failed=sum(outcome.error is not None for outcome in outcomes),
            notes=tuple(filter(None, (*notes, *_cut_notes(cuts), shown.note))),
            texts=shown.texts,
            contaminated=shown.touched,
        )
    )
    work.outcomes += outcomes


def _watched(setting: Setting, passages: dict[str, str], given: dict[str, Prepared]) -> Setting:
    """The same setting; the texts of passages, and what each question gets, are kept."""

    def prepare(questions: Sequence[Question], model: Generator) -> list[Prepared]:
        prepared = setting.prepare(questions, model)
        for question, one in zip(questions, prepared, strict=True):
            given[question.id] = one
            if len(one.passage_ids) == len(one.passages):
                passages.update(zip(one.passage_ids, one.passages, strict=True))
        return prepared

    return replace(setting, prepare=prepare)


def _ask_choices(
    work: _Work,
    cell: Cell,
    model: ModelSpec,
    recorded: RecordedModel,
    setting: Setting,
    questions: Sequence[Question],
) -> tuple[list[Outcome], list[str]]:
    scoring = model.scoring or work.plan.scoring
    if scoring != "letter" and not isinstance(recorded.wrapped, OptionScorer):
        raise ModelError(f'{model.name} gives no log-probabilities: set scoring = "letter" for it.')
    predictions = ask_mcq(
        questions, recorded, [setting], work.prompts, scorings=[scoring], on_progress=work.progress.on_answer
    )
    outcomes = [
        _chosen(cell, question, prediction) for question, prediction in zip(questions, predictions, strict=True)
    ]
    return outcomes, [prediction.note for prediction in predictions]


def _chosen(cell: Cell, question: Question, prediction: Prediction) -> Outcome:
    unparsed = prediction.chosen is None and prediction.error is None
    return Outcome(
        cell=cell,
        question=question.id,
        level=question.level,
        answer=prediction.text if prediction.chosen is None else question.options[prediction.chosen],
        scores={"accuracy": float(prediction.correct)},
        chosen=prediction.chosen,
        probability=prediction.probability,
        violations=("no option letter",) if unparsed else (),
        passages=prediction.passages,
        error=prediction.error,
    )


def _score_written(work: _Work, cell: Cell, questions: Sequence[Question], written: Sequence[Written]) -> list[Outcome]:
    if work.scorer is None:
        work.scorer = work.bench.scorer(work.recorded)
    scores = work.scorer.score(cell.task, questions, written)
    judgements = work.scorer.judgements(cell.task, questions, written)
    return [
        Outcome(
            cell=cell,
            question=question.id,
            level=question.level,
            answer=one.text,
            scores=given if said is None or said.score is None else {**given, "judged_accuracy": said.score},
            violations=one.violations,
            passages=one.prepared.passage_ids,
            error=one.error,
            judgement=said,
        )
        for question, one, given, said in zip(questions, written, scores, judgements, strict=True)
    ]


def _cut_notes(cuts: Sequence[str]) -> tuple[str, ...]:
    cut = [sentence for sentence in cuts if sentence]
    if not cut:
        return ()
    return (f"the document was cut to the window for {len(cut)} of {len(cuts)} questions, the first: {cut[0]}",)


def _as_data(value: Any) -> Any:
    """As it will be when it is read back from the records."""
    return json.loads(json.dumps(value, default=lambda other: other.name))
