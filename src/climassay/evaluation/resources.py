"""Resources of an experiment: models, collections, adapters and metrics, opened when first used."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from climassay.evaluation.experiment_file import ExperimentPlan, MetricSpec, ModelSpec
from climassay.evaluation.long_answers import Comparer, numbered_passages
from climassay.evaluation.results import Cell, CellRecord, ConstantScore, Outcome, TaskGroup
from climassay.evaluation.settings import PromptContext, Retriever, SettingSpec, SourceLoaders, TaskPrompts, open_pool
from climassay.evaluation.tuned import Adapter, find_adapter
from climassay.grounding.text_check import CheckedSentence
from climassay.metrics.registry import METRICS, Scorer
from climassay.models.contract import Generator
from climassay.models.provider import load_model
from climassay.questions import Question
from climassay.records import RequestCounts
from climassay.settings import resolve_file
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.grounding import CollectionGroup

RecordModel = Callable[[Generator], Generator]
"""Function that wraps a model, so that answers are stored in the records and reused."""
CheckAnswer = Callable[[str, PromptContext], tuple[CheckedSentence, ...]]
"""Function that checks an answer against collections, given its text and the passages of its prompt."""
OnTraining = Callable[[str, int, int, float], None]
"""Callback that receives the adapter's name, the step, the total number of steps and the validation loss."""
LoadModel = Callable[..., Generator]
"""Function that loads a model, with the arguments of :func:`climassay.models.load_model`."""


@dataclass(frozen=True, slots=True)
class ExperimentCallbacks:
    """Callbacks that report the progress of an experiment."""

    on_cell: Callable[[Cell, str], None] = lambda _cell, _stage: None
    """Callback that receives a cell (a model in a setting on a task) and the stage that begins: ``asked`` or
    ``scored``."""
    on_answer: Callable[[int], None] = lambda _count: None
    """Function called with the number of new answers, including answers found in the records."""
    on_answers_added: Callable[[int], None] = lambda _count: None
    """Function called with a number of answers to expect in addition to the answers to benchmark questions."""
    on_final_step: Callable[[str], None] = lambda _step: None
    """Function called with the name of each step that follows the last answer, when the step starts."""


class HarnessCell(NamedTuple):
    """Results of a model on one task of another framework in one setting."""

    record: CellRecord
    outcomes: list[Outcome]
    questions: tuple[Question, ...]
    constants: tuple[ConstantScore, ...]
    tally: RequestCounts


class HarnessCells(NamedTuple):
    """Results of a model on all tasks of another framework, with the groups of tasks by name."""

    cells: list[HarnessCell]
    groups: Mapping[str, tuple[TaskGroup, ...]]


Harness = Callable[[ExperimentPlan, ModelSpec, RecordModel, ExperimentCallbacks], HarnessCells]
"""Function that runs a plan's tasks of another framework with one model."""


@dataclass(frozen=True, slots=True)
class EvaluationResources:
    """Resources of an experiment, as functions that open its models, adapters, metrics and checkers."""

    open_model: Callable[[ModelSpec, Path | None], Generator]
    """Function that loads a model, with the adapter in the given folder unless the folder is None."""
    loaders: SourceLoaders
    find_adapter: Callable[[ModelSpec, SettingSpec], Adapter | None] = lambda _model, _setting: None
    """Function that finds or trains a model's adapter for a setting. It returns None if the setting has no adapter."""
    open_scorer: Callable[[RecordModel], Scorer] = lambda _record_model: Scorer()
    """Function that returns the scorer of generated answers; its argument wraps each model that the scorer uses."""
    open_checker: Callable[[Scorer], CheckAnswer | None] = lambda _scorer: None
    """Function that returns the function that checks long answers, or None if the plan names no collection."""
    harnesses: Mapping[str, Harness] = field(default_factory=dict)
    """Functions that run other frameworks' tasks, by key of :data:`climassay.evaluation.runner.HARNESSES`."""
    load_trained_judge: Callable[[Path], Comparer] | None = None
    """Function that loads a trained judge from a file and returns its function for comparing long answers; None if no
    judge can be loaded."""
    shared_models: Sequence[Generator] = ()
    """Models that belong to the caller and stay open after the experiment."""


def open_resources(
    plan: ExperimentPlan,
    workspace: Workspace,
    *,
    prompts: TaskPrompts | None = None,
    deadline: float | None = None,
    on_training: OnTraining | None = None,
    load: LoadModel = load_model,
) -> EvaluationResources:
    """Return the resources of a plan, each of which is opened when first used.

    Args:
        plan: Experiment to run.
        workspace: Workspace with the collections and adapters.
        prompts: Prompt templates of questions and training examples; the built-in templates by default.
        deadline: Timeout of a request to a server in seconds, retries included.
        on_training: Callback that reports the progress of training adapters.
        load: Function that loads the models.
    """
    loaders = make_source_loaders(workspace, plan.folder)

    def open_model(spec: ModelSpec, adapter: Path | None) -> Generator:
        options = spec.options(deadline=deadline, adapter=None if adapter is None else str(adapter))
        return load(spec.name, options, folder=workspace.root)

    def find_model_adapter(model: ModelSpec, setting: SettingSpec) -> Adapter | None:
        return find_adapter(model, setting, plan, workspace, prompts=prompts, on_progress=on_training)

    def open_scorer(record_model: RecordModel) -> Scorer:
        spec = plan.metrics.judge
        judge = None if spec is None else record_model(open_model(spec, None))
        return make_scorer(plan.metrics, record_model, judge, workspace=workspace)

    def open_checker(scorer: Scorer) -> CheckAnswer | None:
        if not plan.metrics.collections:
            return None
        from climassay.grounding.support_judge import SupportJudge
        from climassay.grounding.text_check import check_sentences

        collections = cast("CollectionGroup", loaders.open_retriever(plan.metrics.collections))
        judge = None if scorer.judge is None else SupportJudge(scorer.judge)

        def check(text: str, context: PromptContext) -> tuple[CheckedSentence, ...]:
            passages = numbered_passages(context.passage_ids, context.passages)
            return check_sentences(text, collections, passages=passages, judge=judge)

        return check

    return EvaluationResources(open_model, loaders, find_model_adapter, open_scorer, open_checker)


def make_source_loaders(workspace: Workspace, folder: Path = Path()) -> SourceLoaders:
    """Return functions that open a workspace's collections, once each, and pools of examples in a folder."""

    @cache
    def open_retriever(names: tuple[str, ...]) -> Retriever:
        from climassay.grounding import open_collections

        return open_collections(workspace, names)

    return SourceLoaders(open_retriever, lambda name: open_pool(resolve_file(folder, name)))


def make_scorer(
    spec: MetricSpec, record_model: RecordModel, judge: Generator | None = None, *, workspace: Workspace
) -> Scorer:
    """Return the scorer that computes a plan's metrics.

    Args:
        spec: Metrics of the plan.
        record_model: Function that wraps the model of the entailment scorer.
        judge: Loaded judge, already wrapped so that its answers are recorded.
        workspace: Workspace in which models are looked up.

    Raises:
        InputError: The model of the entailment scorer gives no probabilities of options.
    """
    from climassay.metrics import sentence_encoder
    from climassay.metrics.entailment import load_entailment
    from climassay.metrics.facts import FactMetric

    encoder = sentence_encoder(spec.encoder)
    entailment = None
    is_needed = not spec.names or any(METRICS.find(name).needs in ("entailment", "facts") for name in spec.names)
    if spec.entailment and is_needed:
        entailment = load_entailment(
            spec.entailment, load=lambda name: record_model(load_model(name, folder=workspace.root))
        )
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
