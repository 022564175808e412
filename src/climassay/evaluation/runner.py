"""Running an experiment: every model in every setting on every task of every benchmark, as one resumable run."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from climassay.errors import InputError, ModelError
from climassay.evaluation.contamination import contamination, question_text
from climassay.evaluation.experiment_file import BenchmarkSpec, ExperimentPlan, MetricSpec, ModelSpec
from climassay.evaluation.long_answers import Comparer, compare_answers, given_passages, point_scores, prefer
from climassay.evaluation.results import (
    COMMANDS,
    RUN_LENGTH,
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
from climassay.evaluation.settings import (
    SETTINGS,
    Prepared,
    Retriever,
    Setting,
    SettingSpec,
    Sources,
    TaskPrompts,
    make_setting,
    open_pool,
)
from climassay.evaluation.tasks import Prediction, ask_mcq, ask_written, orders_of
from climassay.evaluation.tuned import Adapter, find_adapter
from climassay.grounding.text_check import CheckedSentence
from climassay.metrics.factual_accuracy import judged_answers
from climassay.metrics.long_answers import assessed_answers, assessment_scores
from climassay.metrics.registry import METRICS, Answered, LongAnswer, Scorer
from climassay.models.contract import Generator, OptionScorer, number_format
from climassay.models.provider import load_as_set
from climassay.prompts import Prompt, profile_of
from climassay.questions import LONG_ANSWERS, PRIMER, TYPES, Question, QuestionSet, join_questions, read_questions
from climassay.records import RecordedModel, Records, RequestCounts, Run
from climassay.reporting import counted
from climassay.settings import located
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from climassay.grounding import CollectionGroup


Ask = Callable[[Generator], Generator]
"""Puts records around a model."""


CheckAnswer = Callable[[str, Prepared], tuple[CheckedSentence, ...]]
"""Looks up an answer: its text, and the passages that its writer was given."""


class HarnessCell(NamedTuple):
    """A model's answers to one task of another framework in one setting."""

    record: CellRecord
    outcomes: list[Outcome]
    questions: tuple[Question, ...]
    constants: tuple[ConstantScore, ...]
    tally: RequestCounts


class HarnessCells(NamedTuple):
    """A model's answers to all tasks of a plan, and what is pooled over several tasks, by name."""

    cells: list[HarnessCell]
    groups: Mapping[str, tuple[TaskGroup, ...]]


Harness = Callable[[ExperimentPlan, ModelSpec, Ask, "Progress"], HarnessCells]
"""Asks a model the plan's tasks of one other framework."""
HARNESSES = {"lm_eval": "lm-evaluation-harness", "inspect": "Inspect"}
"""Frameworks whose tasks stand in experiments, by the entry of a plan that names the tasks."""


@dataclass(frozen=True, slots=True)
class EvaluationResources:
    """Where an experiment finds its parts."""

    open_model: Callable[[ModelSpec, Path | None], Generator]
    """Loads a model, with the adapter of that folder."""
    sources: Sources
    adapter: Callable[[ModelSpec, SettingSpec], Adapter | None] = lambda _model, _setting: None
    """Finds, or trains, what a setting adds to a model; None for nothing."""
    scorer: Callable[[Ask], Scorer] = lambda _ask: Scorer()
    """Makes the scorer of answers in words; models that it asks go through the records."""
    checker: Callable[[Scorer], CheckAnswer | None] = lambda _scorer: None
    """Makes what looks the sentences and references of long answers up; None where no collection is named."""
    harnesses: "Mapping[str, Harness]" = field(default_factory=dict)
    """What asks the tasks of other frameworks, by :data:`HARNESSES`."""
    trained_judge: Callable[[Path], Comparer] | None = None
    """Opens the file of a judge that compares long answers side by side."""
    kept: Sequence[Generator] = ()
    """Models that stay open after the experiment, because they belong to the caller."""

    @classmethod
    def of_model(cls, model: Generator, sources: Sources) -> "EvaluationResources":
        """Resources of an experiment with one model, which is loaded already and stays open."""
        return cls(lambda _spec, _adapter: model, sources, kept=(model,))


@dataclass(frozen=True, slots=True)
class Progress:
    """Callbacks that follow the run."""

    on_cell: Callable[[Cell, str], None] = lambda _cell, _what: None
    """A cell begins to be ``asked`` or ``scored``."""
    on_answer: Callable[[int], None] = lambda _count: None
    """So many more answers came in, stored ones included."""
    on_more: Callable[[int], None] = lambda _count: None
    """So many answers are wanted beside those of the benchmarks."""
    on_end: Callable[[str], None] = lambda _words: None
    """All answers are there, and this is done with them now."""


@dataclass(slots=True)
class _Run:
    """What the parts of a run share."""

    plan: ExperimentPlan
    sets: Mapping[str, QuestionSet]
    resources: EvaluationResources
    store: Records
    run: Run
    prompts: TaskPrompts
    use_cache: bool
    progress: Progress
    scorer: Scorer | None = None
    cells: list[CellRecord] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    passages: dict[str, str] = field(default_factory=dict)
    predictions: dict[Cell, tuple[Prediction, ...]] = field(default_factory=dict)
    tallies: list[RequestCounts] = field(default_factory=list)
    harness_questions: dict[str, tuple[Question, ...]] = field(default_factory=dict)
    harness_of: dict[str, str] = field(default_factory=dict)
    """Framework of each of their benchmarks."""
    constants: dict[tuple[str, str], ConstantScore] = field(default_factory=dict)
    groups: dict[str, tuple[TaskGroup, ...]] = field(default_factory=dict)

    def recorded(self, model: Generator) -> RecordedModel:
        return RecordedModel(model, self.store, self.run, use_cache=self.use_cache)


def read_benchmark(spec: BenchmarkSpec, plan: ExperimentPlan) -> QuestionSet:
    """The questions of a benchmark's files as one set, cut to the plan's limit by a seeded draw for each task.

    Raises:
        InputError: A file cannot be read, or no question is of the plan's tasks.
    """
    sets = [
        read_questions(file if file in (PRIMER, LONG_ANSWERS) else located(plan.folder, file)) for file in spec.files
    ]
    wanted = [replace(one, questions=tuple(q for q in one.questions if q.kind in plan.tasks)) for one in sets]
    joined = join_questions(spec.name, wanted)
    if not joined.questions:
        raise InputError(f"The benchmark {spec.name} has no question of the kinds {', '.join(plan.tasks)}.")
    return limited(joined, plan)


def draw_indices(count: int, limit: int | None, seed: int) -> list[int]:
    """Return the indices of a seeded draw of at most ``limit`` of ``count`` things, in their order; all without it."""
    return sorted(np.random.default_rng(seed).permutation(count)[:limit].tolist())


def limited(question_set: QuestionSet, plan: ExperimentPlan) -> QuestionSet:
    """A question set cut to the plan's limit, by a seeded draw for each task; whole where there is no limit."""
    if plan.limit is None:
        return question_set
    kept: set[str] = set()
    for kind in plan.tasks:
        ids = [question.id for question in question_set.of_kind(kind)]
        kept |= {ids[index] for index in draw_indices(len(ids), plan.limit, plan.seed)}
    return replace(question_set, questions=tuple(one for one in question_set.questions if one.id in kept))


def answers_wanted(plan: ExperimentPlan, sets: Mapping[str, QuestionSet]) -> int:
    """Number of answers that a whole experiment asks for."""
    asked = 0
    for question_set in sets.values():
        for task in plan.tasks:
            ways = [way for model in plan.models for way in (plan.ways(model) if TYPES[task].options else ("letter",))]
            orders = sum(orders_of(TYPES[task], way, plan.permutations if TYPES[task].options else 1) for way in ways)
            asked += len(question_set.of_kind(task)) * orders
    return asked * len(plan.settings)


def run_experiment(
    plan: ExperimentPlan,
    sets: Mapping[str, QuestionSet],
    resources: EvaluationResources,
    store: Records,
    *,
    prompts: TaskPrompts | None = None,
    use_cache: bool = True,
    progress: Progress | None = None,
    command: str = COMMANDS[0],
) -> Experiment:
    """Ask, score and keep a whole matrix.

    Every answer is stored before it is used: kill the process and call again, and only what is missing is asked. Models
    are loaded one after the other, each once for every adapter.

    Args:
        plan: What to run.
        sets: The questions of each benchmark, by its name; see :func:`read_benchmark`.
        resources: Where models, collections, adapters and metrics come from.
        store: Where answers and results are kept.
        prompts: Templates; the built-in ones by default.
        use_cache: False asks everything afresh.
        progress: Callbacks that follow the run.
        command: By which the run is known.

    Raises:
        InputError: A setting cannot be prepared.
        ModelError: A model cannot be loaded, or gives no log-probabilities where they are needed.
    """
    templates = prompts or TaskPrompts.load()
    config: dict[str, Any] = {
        "experiment": _as_data(asdict(plan)),
        "questions_sha256": {name: one.sha256 for name, one in sets.items()},
        "prompts": {task: templates.of(task).sha256 for task in plan.tasks},
        "use_cache": use_cache,
    }
    with store.run(command=command, config=config, seeds={"plan": plan.seed}) as run:
        work = _Run(plan, sets, resources, store, run, templates, use_cache, progress or Progress())
        # Settings are made before any model is loaded: a missing collection is reported at once.
        settings = [make_setting(spec, resources.sources) for spec in plan.settings]
        if plan.metrics.collections:
            resources.sources.retriever(plan.metrics.collections)
        trained: dict[str, Comparer] = {}
        if plan.metrics.trained_judge:
            if resources.trained_judge is None:
                raise InputError("The plan names a trained judge, which cannot be opened here.")
            file = plan.folder / plan.metrics.trained_judge
            trained[file.stem] = resources.trained_judge(file)
        for model in plan.models:
            for adapter, group in _by_adapter(model, settings if sets else (), resources):
                loaded = resources.open_model(model, None if adapter is None else adapter.folder)
                try:
                    for setting in group:
                        _run_setting(work, model, loaded, setting, adapter)
                finally:
                    if not any(loaded is one for one in resources.kept):
                        loaded.close()
            _run_harnesses(work, model)
        preferences = tuple(_compare(work, trained))
        if work.scorer is not None and work.scorer.judge is not None:
            work.scorer.judge.close()
        experiment = Experiment(
            run=run.id,
            name=plan.name,
            config=config["experiment"],
            cells=tuple(work.cells),
            outcomes=tuple(work.outcomes),
            questions={**{name: one.questions for name, one in sets.items()}, **work.harness_questions},
            passages=work.passages,
            metric_sources={} if work.scorer is None else dict(work.scorer.sources),
            predictions=work.predictions,
            preferences=preferences,
            constants=tuple(work.constants.values()),
            groups=work.groups,
            tally=sum(work.tallies, RequestCounts()),
        )
        work.progress.on_end("Keeping the answers")
        save_experiment(run, experiment)
    return experiment


def _compare(work: _Run, trained: Mapping[str, Comparer]) -> "Iterator[Preference]":
    """Long answers side by side, benchmark by benchmark, by each judge that the plan asks for."""
    judge = None if work.scorer is None else work.scorer.judge
    comparers: dict[str, Comparer] = {}
    if work.plan.metrics.side_by_side and judge is not None:
        comparers[""] = partial(prefer, judge=judge)
    comparers |= trained
    for benchmark, question_set in work.sets.items():
        for task in (task for task in work.plan.tasks if TYPES[task].judged):
            results: dict[Cell, list[Outcome]] = {}
            for outcome in work.outcomes:
                if (outcome.cell.benchmark, outcome.cell.task) == (benchmark, task):
                    results.setdefault(outcome.cell, []).append(outcome)
            for name, compare in comparers.items():
                asked = {one.id: one for one in question_set.questions}
                yield from compare_answers(asked, results, compare, name)


def _run_harnesses(work: _Run, model: ModelSpec) -> None:
    for entry, framework in HARNESSES.items():
        if not getattr(work.plan, entry).tasks:
            continue
        if entry not in work.resources.harnesses:
            raise InputError(f"The plan names tasks of {framework}, which cannot be run here.")
        done = work.resources.harnesses[entry](work.plan, model, work.recorded, work.progress)
        work.groups |= done.groups
        for result in done.cells:
            name = result.record.cell.benchmark
            if name in work.sets or work.harness_of.setdefault(name, framework) != framework:
                raise InputError(f"Both a task of {framework} and another benchmark are called {name!r}.")
            work.cells.append(result.record)
            work.outcomes += result.outcomes
            work.harness_questions[name] = result.questions
            work.constants |= {(one.benchmark, one.metric): one for one in result.constants}
            work.tallies.append(result.tally)


def _by_adapter(
    model: ModelSpec, settings: Sequence[Setting], resources: EvaluationResources
) -> "Iterator[tuple[Adapter | None, list[Setting]]]":
    """Settings without an adapter come first, together; then each of the others."""
    plain: list[Setting] = []
    tuned: list[Setting] = []
    for one in settings:
        adapted = one.spec.adapter or one.spec.training is not None or SETTINGS.find(one.spec.kind).tuned
        (tuned if adapted else plain).append(one)
    if plain:
        yield None, plain
    for setting in tuned:
        adapter = resources.adapter(model, setting.spec)
        if adapter is None:
            raise InputError(f"The setting {setting.name} needs an adapter, or a training that makes one.")
        yield adapter, [setting]


def _run_setting(work: _Run, model: ModelSpec, loaded: Generator, setting: Setting, adapter: Adapter | None) -> None:
    for benchmark, question_set in work.sets.items():
        for task in work.plan.tasks:
            questions = question_set.of_kind(task)
            if questions:
                asked = _CellQuestions(model, loaded, setting, questions, adapter, work.passages)
                cell = Cell(benchmark, model.shown, setting.name, task)
                work.progress.on_cell(cell, "asked")
                (_choose if TYPES[task].options else _write)(work, cell, asked)


@dataclass(frozen=True, slots=True)
class _CellQuestions:
    """Questions of one task, to be put to one model in one setting."""

    model: ModelSpec
    loaded: Generator
    setting: Setting
    questions: Sequence[Question]
    adapter: Adapter | None
    passages: dict[str, str]
    """Texts of all passages that were given, by id; filled while the setting prepares questions."""
    given: dict[str, Prepared] = field(default_factory=dict)
    """What each question's prompt got, by the question's id; filled likewise."""

    @property
    def watched(self) -> Setting:
        """The setting, which notes what it gives to each question."""

        def prepare(questions: Sequence[Question], model: Generator) -> list[Prepared]:
            prepared = self.setting.prepare(questions, model)
            for question, one in zip(questions, prepared, strict=True):
                self.given[question.id] = one
                if len(one.passage_ids) == len(one.passages):
                    self.passages.update(zip(one.passage_ids, one.passages, strict=True))
            return prepared

        return replace(self.setting, prepare=prepare)

    def record(self, cell: Cell, prompt: Prompt, outcomes: Sequence[Outcome], tally: RequestCounts) -> CellRecord:
        texts, contaminated = overlap(self.questions, self.given, () if self.adapter is None else self.adapter.learned)
        notes = () if self.adapter is None else self.adapter.notes
        cuts = [one.note for one in self.given.values() if one.note]
        if cuts:
            which = f"{len(cuts)} of {len(self.given)} questions, the first: {cuts[0]}"
            notes = (*notes, f"the document was cut to the window for {which}")
        record = CellRecord(
            cell=cell,
            model=self.model.name,
            fingerprint=self.loaded.fingerprint,
            dtype=number_format(self.loaded),
            setting={name: value for name, value in _as_data(asdict(self.setting.spec)).items() if value is not None},
            prompt=prompt.name,
            prompt_sha256=prompt.sha256,
            asked=tally.asked,
            failed=sum(outcome.error is not None for outcome in outcomes),
            texts=texts,
            contaminated=contaminated,
        )
        return replace(record, notes=(*notes, *filter(None, (record.overlap,))))


def overlap(
    questions: Sequence[Question], prepared: Mapping[str, Prepared], learned: Sequence[str] | None = ()
) -> tuple[str, int | None]:
    """What a model had beside questions, and how many of these share :data:`RUN_LENGTH` words with it.

    A question is compared with its own prompt's examples and passages (``prepared``, by question id), not with those of
    others, and with all texts that the adapter was trained on (``learned``; None where they are not known). In
    retrieval from the books of the questions some overlap is the point; elsewhere it is a leak. The number is None
    where no text is known.

    Example:
        >>> overlap(questions, {}, ["The training's first text.", "Its second."])
        ('2 training texts', 0)
    """
    together: dict[tuple[str, ...], list[Question]] = defaultdict(list)
    for question in questions:
        given = prepared.get(question.id, Prepared())
        together[(*given.passages, *map(question_text, given.examples))].append(question)
    # Examples are the same for all questions, passages for few: each text is read once for all that had it.
    compared = [(ones, texts) for texts, ones in together.items() if texts]
    if learned:
        compared.append(([*questions], (*learned,)))
    reports = [contamination(ones, texts, RUN_LENGTH) for ones, texts in compared]
    had = {
        "example": len({one.id for given in prepared.values() for one in given.examples}),
        "passage": len({text for given in prepared.values() for text in given.passages}),
        "training text": len(learned or ()),
    }
    parts = [counted(number, noun) for noun, number in had.items() if number]
    if learned is None:
        parts.append("training texts that are not known")
    touched = {one.question.id for report in reports for one in report.touched()}
    return ", ".join(parts), len(touched) if reports else None


def _choose(work: _Run, cell: Cell, asked: _CellQuestions) -> None:
    ways = work.plan.ways(asked.model)
    recorded = work.recorded(asked.loaded)
    if any(scoring != "letter" for scoring in ways) and not isinstance(asked.loaded, OptionScorer):
        raise ModelError(
            f"{asked.model.name} gives no log-probabilities: use letter scoring (--scoring letter, or scoring = "
            '"letter" in an experiment file).'
        )
    predictions = [
        replace(one, model=cell.model)
        for one in ask_mcq(
            asked.questions,
            recorded,
            [asked.watched],
            work.prompts,
            scorings=ways,
            orders=work.plan.permutations,
            seed=work.plan.seed,
            on_progress=work.progress.on_answer,
        )
    ]
    left = recorded.tally
    work.tallies.append(left)
    for scoring in ways:
        place = replace(cell, setting=f"{cell.setting}, {scoring}", scoring=scoring) if work.plan.scorings else cell
        work.predictions[place] = tuple(one for one in predictions if one.scoring == scoring)
        outcomes = choice_outcomes(place, asked.questions, work.predictions[place])
        prompt = work.prompts.of(cell.task, by_text=scoring.startswith("text"))
        work.cells.append(asked.record(place, prompt, outcomes, left))
        work.outcomes += outcomes
        left = RequestCounts()  # asked once, counted once


def _write(work: _Run, cell: Cell, asked: _CellQuestions) -> None:
    recorded = work.recorded(asked.loaded)
    written = ask_written(asked.questions, recorded, asked.watched, work.prompts, on_progress=work.progress.on_answer)
    work.tallies.append(recorded.tally)
    work.progress.on_cell(cell, "scored")
    if work.scorer is None:
        work.scorer = work.resources.scorer(work.recorded)
    answers = list(zip(asked.questions, written, strict=True))
    items = [Answered(question.question, question.answer, one.text) for question, one in answers]
    scores = work.scorer.score(cell.task, items)
    answered = [None if one.error is not None else item for item, one in zip(items, written, strict=True)]
    judgements = judged_answers(work.scorer, cell.task, answered)
    assessments = assessed_answers(
        work.scorer,
        cell.task,
        [
            None if one.error is not None else LongAnswer(q.question, one.text, q.rubric, q.audience, q.answer)
            for q, one in answers
        ],
    )
    check = work.resources.checker(work.scorer) if TYPES[cell.task].judged else None
    outcomes = []
    for (question, one), given, judgement, assessed in zip(answers, scores, judgements, assessments, strict=True):
        judged = {} if judgement is None or judgement.score is None else {"judged_accuracy": judgement.score}
        judged |= {} if assessed is None else assessment_scores(assessed, question.rubric)
        points = check(one.text, one.prepared) if check is not None and one.text else ()
        outcomes.append(
            Outcome(
                cell=cell,
                question=question.id,
                level=question.level,
                answer=one.text,
                scores={**given, **judged, **point_scores(points)},
                violations=one.violations,
                passages=one.prepared.passage_ids,
                error=one.error,
                judgement=judgement,
                assessment=assessed,
                points=points,
            )
        )
    work.cells.append(asked.record(cell, work.prompts.of(cell.task), outcomes, recorded.tally))
    work.outcomes += outcomes


def _as_data(value: Any) -> Any:
    """The value as it will be when it is read back from the records."""
    return json.loads(json.dumps(value, default=lambda other: other.name))


OnTraining = Callable[[str, int, int, float], None]
LoadModel = Callable[..., Generator]
"""Like :func:`climassay.models.load_model`."""


def open_resources(
    plan: ExperimentPlan,
    workspace: Workspace,
    *,
    prompts: TaskPrompts | None = None,
    deadline: float | None = None,
    on_training: OnTraining | None = None,
    load: LoadModel | None = None,
) -> EvaluationResources:
    """Everything that a plan names, opened when it is first needed.

    Args:
        plan: What is to be run.
        workspace: Where collections and adapters are.
        prompts: In which questions are asked and learned; the built-in ones by default.
        deadline: Seconds after which a request to a server has failed, retries included.
        on_training: Called with (adapter, steps taken, steps in all, validation loss) while an adapter is trained.
        load: Loads the models that are asked; :func:`climassay.models.load_model` by default.
    """
    sources = open_sources(workspace, plan.folder)

    def open_model(spec: ModelSpec, adapter: Path | None) -> Generator:
        own = None if adapter is None else str(adapter)
        return load_as_set(spec.name, spec, workspace.root, deadline=deadline, load=load, adapter=own)

    def adapter(model: ModelSpec, setting: SettingSpec) -> Adapter | None:
        return find_adapter(model, setting, plan, workspace, prompts=prompts, on_progress=on_training)

    def scorer(ask: Ask) -> Scorer:
        spec = plan.metrics.judge
        judge = None if spec is None else ask(open_model(spec, None))
        return make_scorer(plan.metrics, ask, judge, workspace=workspace)

    def checker(scoring: Scorer) -> CheckAnswer | None:
        if not plan.metrics.collections:
            return None
        from climassay.grounding.text_check import SupportJudge, check_sentences

        group = cast("CollectionGroup", sources.retriever(plan.metrics.collections))
        strong = scoring.judge is not None and not profile_of(scoring.judge).scored
        judge = SupportJudge(scoring.judge) if strong and scoring.judge is not None else None

        def check(text: str, given: Prepared) -> tuple[CheckedSentence, ...]:
            passages = given_passages(given.passage_ids, given.passages)
            return check_sentences(text, group, passages=passages, judge=judge)

        return check

    return EvaluationResources(open_model, sources, adapter, scorer, checker)


def open_sources(workspace: Workspace, folder: Path = Path()) -> Sources:
    """Collections of a workspace and example pools of a folder, each opened once, when it is first needed."""

    @cache
    def retriever(names: tuple[str, ...]) -> Retriever:
        from climassay.grounding import open_collections

        return open_collections(workspace, names)

    return Sources(retriever, lambda name: open_pool(located(folder, name)))


def make_scorer(spec: MetricSpec, ask: Ask, judge: Generator | None = None, *, workspace: Workspace) -> Scorer:
    """The scorer that a plan's metrics describe.

    ``ask`` puts records around a model that tells entailment; ``judge`` is the loaded judge, behind records already.

    Raises:
        InputError: The model that tells entailment gives no probabilities of answers.
    """
    from climassay.metrics import sentence_encoder
    from climassay.metrics.entailment import load_entailment, model_name
    from climassay.metrics.facts import FactMetric
    from climassay.models import load_model

    encoder = sentence_encoder(spec.encoder)
    entailment = None
    is_needed = not spec.names or any(METRICS.find(name).needs in ("entailment", "facts") for name in spec.names)
    if spec.entailment and is_needed:
        named = model_name(spec.entailment)
        model = None
        if named is not None:
            loaded = load_model(named, folder=workspace.root)
            if not isinstance(loaded, OptionScorer):
                raise InputError(f"{named} gives no probabilities of answers: use another model as the judge.")
            model = cast(OptionScorer, ask(loaded))
        entailment = load_entailment(spec.entailment, model=model)
    return Scorer(
        encoder=encoder,
        bert_model=spec.bert_model or spec.encoder,
        entailment=entailment,
        facts=FactMetric(entailment, encoder) if spec.facts and entailment is not None else None,
        window=spec.window,
        temperature=spec.temperature,
        judge=judge,
        names=spec.names,
    )
