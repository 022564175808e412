"""Runs an experiment: every model in every setting on every task of every benchmark, as one resumable run."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from climassay.errors import InputError, ModelError
from climassay.evaluation.contamination import prompt_contamination
from climassay.evaluation.experiment_file import BenchmarkSpec, ExperimentPlan, ModelSpec
from climassay.evaluation.long_answers import Comparer, compare_answers, judge_pairs, point_scores
from climassay.evaluation.resources import EvaluationResources, ExperimentCallbacks
from climassay.evaluation.results import (
    COMMANDS,
    Cell,
    CellRecord,
    ConstantScore,
    Experiment,
    Outcome,
    Preference,
    TaskGroup,
    choice_outcomes,
    save_experiment,
)
from climassay.evaluation.settings import SETTINGS, PromptContext, Setting, TaskPrompts, make_setting
from climassay.evaluation.tasks import Prediction, Scoring, ask_mcq, ask_written, n_option_orders
from climassay.evaluation.tuned import Adapter
from climassay.metrics.factual_accuracy import judge_with_scorer
from climassay.metrics.long_answers import assess_with_scorer, assessment_scores
from climassay.metrics.registry import AnswerItem, LongAnswer, Scorer
from climassay.models.contract import Generator, OptionScorer, number_format
from climassay.prompts import Prompt
from climassay.questions import LONG_ANSWERS, PRIMER, TYPES, Question, QuestionSet, join_questions, read_questions
from climassay.records import RecordedModel, Records, RequestCounts, Run
from climassay.settings import resolve_file

HARNESSES = {"lm_eval": "lm-evaluation-harness", "inspect": "Inspect"}
"""Names of other frameworks whose tasks an experiment can run, by the field of the plan with these tasks."""


def read_benchmark(spec: BenchmarkSpec, plan: ExperimentPlan) -> QuestionSet:
    """Read the questions of a benchmark's files that belong to the plan's tasks, limited by :func:`limit_questions`.

    Raises:
        InputError: A file cannot be read, or no question belongs to the plan's tasks.
    """
    question_sets = [
        read_questions(file if file in (PRIMER, LONG_ANSWERS) else resolve_file(plan.folder, file))
        for file in spec.files
    ]
    # Before they are joined: ids of other kinds must not change the ids of these.
    joined_set = join_questions(spec.name, [question_set.select(plan.tasks) for question_set in question_sets])
    if not joined_set.questions:
        raise InputError(f"The benchmark {spec.name} has no question of the kinds {', '.join(plan.tasks)}.")
    return limit_questions(joined_set, plan)


def draw_indices(count: int, limit: int | None, seed: int) -> list[int]:
    """Draw ``limit`` of the indices below ``count`` at random, and return them sorted; all if ``limit`` is None."""
    return sorted(np.random.default_rng(seed).permutation(count)[:limit].tolist())


def limit_questions(question_set: QuestionSet, plan: ExperimentPlan) -> QuestionSet:
    """Return the questions of the plan's tasks: all, or at most ``plan.limit`` of each task, drawn at random."""
    question_set = question_set.select(plan.tasks)
    if plan.limit is None:
        return question_set
    selected_ids: set[str] = set()
    for task in plan.tasks:
        ids = [question.id for question in question_set.of_kind(task)]
        selected_ids |= {ids[index] for index in draw_indices(len(ids), plan.limit, plan.seed)}
    return replace(
        question_set, questions=tuple(question for question in question_set.questions if question.id in selected_ids)
    )


def count_answers(plan: ExperimentPlan, sets: Mapping[str, QuestionSet]) -> int:
    """Return the number of answers that an experiment needs, not counting tasks of other frameworks."""
    total = 0
    for question_set in sets.values():
        for task in plan.tasks:
            kind = TYPES[task]
            for model in plan.models:
                scorings: tuple[Scoring, ...] = plan.find_scorings(model) if kind.has_options else ("letter",)
                orders = plan.permutations if kind.has_options else 1
                n_orders_per_question = sum(n_option_orders(kind, scoring, orders) for scoring in scorings)
                total += len(question_set.of_kind(task)) * n_orders_per_question
    return total * len(plan.settings)


@dataclass(slots=True)
class _ExperimentRun:
    """State of a running experiment: its inputs, and the results so far."""

    plan: ExperimentPlan
    sets: Mapping[str, QuestionSet]
    resources: EvaluationResources
    store: Records
    run: Run
    prompts: TaskPrompts
    use_cache: bool
    callbacks: ExperimentCallbacks
    scorer: Scorer | None = None
    cells: list[CellRecord] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    passages: dict[str, str] = field(default_factory=dict)
    predictions: dict[Cell, tuple[Prediction, ...]] = field(default_factory=dict)
    tallies: list[RequestCounts] = field(default_factory=list)
    harness_questions: dict[str, tuple[Question, ...]] = field(default_factory=dict)
    framework_by_benchmark: dict[str, str] = field(default_factory=dict)
    constants: dict[tuple[str, str], ConstantScore] = field(default_factory=dict)
    groups: dict[str, tuple[TaskGroup, ...]] = field(default_factory=dict)

    def record_model(self, model: Generator) -> RecordedModel:
        return RecordedModel(model, self.store, self.run, use_cache=self.use_cache)


def run_experiment(
    plan: ExperimentPlan,
    sets: Mapping[str, QuestionSet],
    resources: EvaluationResources,
    store: Records,
    *,
    prompts: TaskPrompts | None = None,
    use_cache: bool = True,
    callbacks: ExperimentCallbacks | None = None,
    command: str = COMMANDS[0],
) -> Experiment:
    """Run an experiment: ask all questions, score the answers and save the results.

    Every answer is stored before it is used, so that a second call after an interruption requests only the missing
    answers. Models are loaded one after the other, and anew for each adapter.

    Args:
        plan: Experiment to run.
        sets: Questions by benchmark (:func:`read_benchmark`).
        resources: Functions that open models, collections, adapters and metrics.
        store: Records in which answers and results are stored.
        prompts: Prompt templates; the built-in templates by default.
        use_cache: Whether stored answers are reused; otherwise every answer is requested again.
        callbacks: Callbacks that report progress.
        command: Name of the command, for the records.

    Raises:
        InputError: A setting, or the plan's trained judge or other framework, cannot be used.
        ModelError: A model cannot be loaded, or lacks the log-probabilities that its scoring needs.
    """
    templates = prompts or TaskPrompts.load()
    config: dict[str, Any] = {
        "experiment": _as_json_value(asdict(plan)),
        "questions_sha256": {name: question_set.sha256 for name, question_set in sets.items()},
        "prompts": {task: templates.for_task(task).sha256 for task in plan.tasks},
        "use_cache": use_cache,
    }
    # Settings are made before any model is loaded, so that a missing collection is reported at once.
    settings = [make_setting(spec, resources.loaders) for spec in plan.settings]
    with store.run(command=command, config=config, seeds={"plan": plan.seed}) as run:
        experiment_run = _ExperimentRun(
            plan, sets, resources, store, run, templates, use_cache, callbacks or ExperimentCallbacks()
        )
        if plan.metrics.collections:
            resources.loaders.open_retriever(plan.metrics.collections)
        trained_judges: dict[str, Comparer] = {}
        if plan.metrics.trained_judge:
            if resources.load_trained_judge is None:
                raise InputError("The plan names a trained judge, which cannot be opened here.")
            file = plan.folder / plan.metrics.trained_judge
            trained_judges[file.stem] = resources.load_trained_judge(file)
        for model in plan.models:
            for adapter, group in _group_by_adapter(model, settings if sets else (), resources):
                generator = resources.open_model(model, None if adapter is None else adapter.folder)
                try:
                    for setting in group:
                        _run_setting(experiment_run, model, generator, setting, adapter)
                finally:
                    if not any(generator is shared_model for shared_model in resources.shared_models):
                        generator.close()
            _run_harnesses(experiment_run, model)
        preferences = tuple(_compare_long_answers(experiment_run, trained_judges))
        if experiment_run.scorer is not None and experiment_run.scorer.judge is not None:
            experiment_run.scorer.judge.close()
        questions = {name: question_set.questions for name, question_set in sets.items()}
        experiment = Experiment(
            run=run.id,
            name=plan.name,
            config=config["experiment"],
            cells=tuple(experiment_run.cells),
            outcomes=tuple(experiment_run.outcomes),
            questions=questions | experiment_run.harness_questions,
            passages=experiment_run.passages,
            metric_sources={} if experiment_run.scorer is None else dict(experiment_run.scorer.sources),
            predictions=experiment_run.predictions,
            preferences=preferences,
            constants=tuple(experiment_run.constants.values()),
            groups=experiment_run.groups,
            tally=sum(experiment_run.tallies, RequestCounts()),
        )
        experiment_run.callbacks.on_final_step("Saving the answers")
        save_experiment(run, experiment)
    return experiment


def _group_by_adapter(
    model: ModelSpec, settings: Sequence[Setting], resources: EvaluationResources
) -> Iterator[tuple[Adapter | None, list[Setting]]]:
    """Yield (adapter, settings): first all settings without an adapter together, then each other setting alone."""
    settings_without_adapter: list[Setting] = []
    tuned_settings: list[Setting] = []
    for setting in settings:
        spec = setting.spec
        is_tuned = spec.adapter or spec.training is not None or SETTINGS.find(spec.kind).needs_adapter
        (tuned_settings if is_tuned else settings_without_adapter).append(setting)
    if settings_without_adapter:
        yield None, settings_without_adapter
    for setting in tuned_settings:
        adapter = resources.find_adapter(model, setting.spec)
        if adapter is None:
            raise InputError(f"The setting {setting.name} needs an adapter, or a training that makes one.")
        yield adapter, [setting]


@dataclass(frozen=True, slots=True)
class _QuestionBatch:
    """Questions of one task that one model answers in one setting."""

    model: ModelSpec
    generator: Generator
    setting: Setting
    questions: Sequence[Question]
    adapter: Adapter | None
    passages: dict[str, str]
    """Texts of all passages in prompts, by id; filled when prompts are prepared."""
    contexts: dict[str, PromptContext] = field(default_factory=dict)
    """Passages and examples by question id; filled when prompts are prepared."""

    @property
    def recording_setting(self) -> Setting:
        """Setting that also stores the passages and examples of each question in this batch."""

        def prepare(questions: Sequence[Question], model: Generator) -> list[PromptContext]:
            contexts = self.setting.prepare(questions, model)
            for question, context in zip(questions, contexts, strict=True):
                self.contexts[question.id] = context
                if len(context.passage_ids) == len(context.passages):
                    self.passages.update(zip(context.passage_ids, context.passages, strict=True))
            return contexts

        return replace(self.setting, prepare=prepare)

    def record(self, cell: Cell, prompt: Prompt, outcomes: Sequence[Outcome], tally: RequestCounts) -> CellRecord:
        training_texts = () if self.adapter is None else self.adapter.training_texts
        texts, n_contaminated = prompt_contamination(self.questions, self.contexts, training_texts)
        notes = () if self.adapter is None else self.adapter.notes
        truncations = [context.note for context in self.contexts.values() if context.note]
        if truncations:
            count = f"{len(truncations)} of {len(self.contexts)} questions, the first: {truncations[0]}"
            notes = (*notes, f"the document was truncated to the window for {count}")
        setting = _as_json_value(asdict(self.setting.spec))
        record = CellRecord(
            cell=cell,
            model=self.model.name,
            fingerprint=self.generator.fingerprint,
            dtype=number_format(self.generator),
            setting={name: value for name, value in setting.items() if value is not None},
            prompt=prompt.name,
            prompt_sha256=prompt.sha256,
            n_requested=tally.sent,
            failed=sum(outcome.error is not None for outcome in outcomes),
            texts=texts,
            contaminated=n_contaminated,
        )
        return replace(record, notes=(*notes, *filter(None, (record.overlap,))))


def _run_setting(
    experiment_run: _ExperimentRun, model: ModelSpec, generator: Generator, setting: Setting, adapter: Adapter | None
) -> None:
    for benchmark, question_set in experiment_run.sets.items():
        for task in experiment_run.plan.tasks:
            questions = question_set.of_kind(task)
            if questions:
                batch = _QuestionBatch(model, generator, setting, questions, adapter, experiment_run.passages)
                cell = Cell(benchmark, model.display_name, setting.name, task)
                experiment_run.callbacks.on_cell(cell, "asked")
                (_run_choices if TYPES[task].has_options else _run_written_answers)(experiment_run, cell, batch)


def _run_choices(experiment_run: _ExperimentRun, cell: Cell, batch: _QuestionBatch) -> None:
    scorings = experiment_run.plan.find_scorings(batch.model)
    model = experiment_run.record_model(batch.generator)
    if any(scoring != "letter" for scoring in scorings) and not isinstance(batch.generator, OptionScorer):
        raise ModelError(
            f"{batch.model.name} gives no log-probabilities: use letter scoring (--scoring letter, or scoring = "
            '"letter" in an experiment file).'
        )
    predictions = ask_mcq(
        batch.questions,
        model,
        [batch.recording_setting],
        experiment_run.prompts,
        scorings=scorings,
        orders=experiment_run.plan.permutations,
        seed=experiment_run.plan.seed,
        on_progress=experiment_run.callbacks.on_answer,
    )
    tally = model.tally
    experiment_run.tallies.append(tally)
    for scoring in scorings:
        scored_cell = cell
        if experiment_run.plan.scorings:
            scored_cell = replace(cell, setting=f"{cell.setting}, {scoring}", scoring=scoring)
        experiment_run.predictions[scored_cell] = tuple(
            replace(prediction, model=cell.model) for prediction in predictions if prediction.scoring == scoring
        )
        outcomes = choice_outcomes(scored_cell, batch.questions, experiment_run.predictions[scored_cell])
        prompt = experiment_run.prompts.for_task(cell.task, by_text=scoring.startswith("text"))
        experiment_run.cells.append(batch.record(scored_cell, prompt, outcomes, tally))
        experiment_run.outcomes += outcomes
        tally = RequestCounts()  # the first cell counts the requests of all scorings


def _run_written_answers(experiment_run: _ExperimentRun, cell: Cell, batch: _QuestionBatch) -> None:
    model = experiment_run.record_model(batch.generator)
    answers = ask_written(
        batch.questions,
        model,
        batch.recording_setting,
        experiment_run.prompts,
        on_progress=experiment_run.callbacks.on_answer,
    )
    experiment_run.tallies.append(model.tally)
    experiment_run.callbacks.on_cell(cell, "scored")
    if experiment_run.scorer is None:
        experiment_run.scorer = experiment_run.resources.open_scorer(experiment_run.record_model)
    pairs = list(zip(batch.questions, answers, strict=True))
    items = [AnswerItem(question.question, question.answer, answer.text) for question, answer in pairs]
    scores_by_answer = experiment_run.scorer.score(cell.task, items)
    judgements = judge_with_scorer(
        experiment_run.scorer,
        cell.task,
        [item if answer.error is None else None for item, answer in zip(items, answers, strict=True)],
    )
    assessments = assess_with_scorer(
        experiment_run.scorer,
        cell.task,
        [
            None
            if answer.error is not None
            else LongAnswer(
                question.question, answer.text, question.rubric, question.audience, reference=question.answer
            )
            for question, answer in pairs
        ],
    )
    check = experiment_run.resources.open_checker(experiment_run.scorer) if TYPES[cell.task].is_judged else None
    outcomes = []
    for (question, answer), scores, judgement, assessment in zip(
        pairs, scores_by_answer, judgements, assessments, strict=True
    ):
        judge_scores = {} if judgement is None or judgement.score is None else {"judged_accuracy": judgement.score}
        judge_scores |= {} if assessment is None else assessment_scores(assessment, question.rubric)
        checked_sentences = check(answer.text, answer.context) if check is not None and answer.text else ()
        outcomes.append(
            Outcome(
                cell=cell,
                question=question.id,
                level=question.level,
                answer=answer.text,
                scores={**scores, **judge_scores, **point_scores(checked_sentences)},
                violations=answer.violations,
                passages=answer.context.passage_ids,
                error=answer.error,
                judgement=judgement,
                assessment=assessment,
                points=checked_sentences,
            )
        )
    experiment_run.cells.append(batch.record(cell, experiment_run.prompts.for_task(cell.task), outcomes, model.tally))
    experiment_run.outcomes += outcomes


def _run_harnesses(experiment_run: _ExperimentRun, model: ModelSpec) -> None:
    for plan_field, framework in HARNESSES.items():
        if not getattr(experiment_run.plan, plan_field).tasks:
            continue
        if plan_field not in experiment_run.resources.harnesses:
            raise InputError(f"The plan names tasks of {framework}, which cannot be run here.")
        result = experiment_run.resources.harnesses[plan_field](
            experiment_run.plan, model, experiment_run.record_model, experiment_run.callbacks
        )
        experiment_run.groups |= result.groups
        for cell in result.cells:
            name = cell.record.cell.benchmark
            if (
                name in experiment_run.sets
                or experiment_run.framework_by_benchmark.setdefault(name, framework) != framework
            ):
                raise InputError(f"Both a task of {framework} and another benchmark are called {name!r}.")
            experiment_run.cells.append(cell.record)
            experiment_run.outcomes += cell.outcomes
            experiment_run.harness_questions[name] = cell.questions
            experiment_run.constants |= {(constant.benchmark, constant.metric): constant for constant in cell.constants}
            experiment_run.tallies.append(cell.tally)


def _compare_long_answers(
    experiment_run: _ExperimentRun, trained_judges: Mapping[str, Comparer]
) -> Iterator[Preference]:
    """Yield the preferences of each judge of the plan between long answers, benchmark by benchmark."""
    judge = None if experiment_run.scorer is None else experiment_run.scorer.judge
    comparers: dict[str, Comparer] = {}
    if experiment_run.plan.metrics.side_by_side and judge is not None:
        comparers[""] = partial(judge_pairs, judge=judge)
    comparers |= trained_judges
    for benchmark, question_set in experiment_run.sets.items():
        questions = {question.id: question for question in question_set.questions}
        for task in (task for task in experiment_run.plan.tasks if TYPES[task].is_judged):
            outcomes: dict[Cell, list[Outcome]] = {}
            for outcome in experiment_run.outcomes:
                if (outcome.cell.benchmark, outcome.cell.task) == (benchmark, task):
                    outcomes.setdefault(outcome.cell, []).append(outcome)
            for name, compare in comparers.items():
                yield from compare_answers(questions, outcomes, compare, name)


def _as_json_value(value: Any) -> Any:
    """Convert a value to the JSON value that the records would load after saving it."""
    return json.loads(json.dumps(value, default=lambda enum: enum.name))
