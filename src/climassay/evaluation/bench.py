"""The parts of an experiment as a workspace has them: models, collections, pools, adapters, metrics."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from climassay.configuration import located
from climassay.errors import InputError
from climassay.evaluation.answer_scores import AnswerScorer
from climassay.evaluation.examples import ExamplePool, TaskPrompts, open_pool
from climassay.evaluation.experiment_file import ExperimentPlan, MetricSpec, ModelSpec
from climassay.evaluation.matrix import Adapter, Ask, Bench
from climassay.evaluation.settings import Retriever, SettingSpec, Sources
from climassay.evaluation.tuned import find_adapter
from climassay.models.contract import Generator, OptionScorer
from climassay.workspace import Workspace

OnTraining = Callable[[str, int, int, float], None]
LoadModel = Callable[..., Generator]
"""Like :func:`climassay.models.load_model`."""


def open_bench(
    plan: ExperimentPlan,
    workspace: Workspace,
    *,
    prompts: TaskPrompts | None = None,
    deadline: float | None = None,
    on_training: OnTraining | None = None,
    load: LoadModel | None = None,
) -> Bench:
    """Everything that a plan names, opened when it is first needed.

    Args:
        plan: What is to be run.
        workspace: Where collections and adapters are.
        prompts: In which questions are asked and learned; the built-in ones by default.
        deadline: Seconds after which a request to a server has failed, retries included.
        on_training: Called with (adapter, steps taken, steps in all, validation loss) while an adapter is trained.
        load: Loads the models that are asked; :func:`climassay.models.load_model` by default.
    """

    def open_model(spec: ModelSpec, adapter: Path | None) -> Generator:
        return load_spec(spec, workspace, adapter=adapter, deadline=deadline, load=load)

    def adapter(model: ModelSpec, setting: SettingSpec) -> Adapter | None:
        return find_adapter(model, setting, plan, workspace, prompts=prompts, on_progress=on_training)

    def pool(name: str) -> ExamplePool:
        return open_pool(located(plan.folder, name))

    @cache
    def retriever(names: tuple[str, ...]) -> Retriever:
        from climassay.grounding import open_collections

        return open_collections(workspace, names)

    def scorer(ask: Ask) -> AnswerScorer:
        spec = plan.metrics.judge
        judge = None if spec is None else ask(load_spec(spec, workspace, deadline=deadline, load=load))
        return make_scorer(plan.metrics, ask, judge, folder=plan.folder, workspace=workspace)

    return Bench(open_model, Sources(retriever, pool), adapter, scorer)


def load_spec(
    spec: ModelSpec,
    workspace: Workspace,
    *,
    adapter: Path | None = None,
    deadline: float | None = None,
    load: LoadModel | None = None,
) -> Generator:
    """Load a model of a plan; see :func:`open_bench`.

    Raises:
        InputError: Its name or an option is not understood.
        ModelError: It cannot be found or loaded.
    """
    from climassay.models import load_model
    from climassay.models.openai_prices import model_price
    from climassay.models.openai_retry import retry_policy

    return (load or load_model)(
        spec.name,
        base_url=spec.base_url,
        device=spec.device,
        dtype=spec.dtype,
        adapter=None if adapter is None else str(adapter),
        concurrency=spec.concurrency,
        price=model_price(spec.name, spec.price_in, spec.price_out, workspace.root),
        policy=retry_policy(deadline, spec.timeout),
        max_output_tokens=spec.max_output_tokens,
        reasoning_effort=spec.reasoning_effort,
        folder=workspace.root,
    )


def make_scorer(
    spec: MetricSpec, ask: Ask, judge: Generator | None = None, *, folder: Path, workspace: Workspace
) -> AnswerScorer:
    """The scorer that a plan's metrics describe.

    Args:
        spec: What scores.
        ask: Puts records around a model that judges.
        judge: The loaded judge of the specification, behind records already.
        folder: Where a file of entailment is looked for.
        workspace: Where it is kept what the server of a judging model can do.
    """
    from climassay.metrics import sentence_encoder
    from climassay.metrics.entailment_loading import load_entailment, model_name
    from climassay.metrics.facts import FactMetric

    beside = folder / spec.entailment
    encoder = sentence_encoder(spec.encoder)
    named = model_name(spec.entailment)
    model = None if named is None else _asked(named, ask, workspace)
    entailment = load_entailment(str(beside) if beside.is_file() else spec.entailment, model=model)
    return AnswerScorer(
        encoder=encoder,
        bert_model=spec.bert_model or spec.encoder,
        entailment=entailment,
        facts=FactMetric(entailment, encoder) if spec.facts else None,
        window=spec.window,
        temperature=spec.temperature,
        judge=judge,
    )


def _asked(name: str, ask: Ask, workspace: Workspace) -> OptionScorer:
    """A judging model behind records."""
    from climassay.models import load_model

    model = load_model(name, folder=workspace.root)
    if not isinstance(model, OptionScorer):
        raise InputError(f"{name} gives no probabilities of answers: take another model to judge.")
    recorded = ask(model)
    assert isinstance(recorded, OptionScorer)
    return recorded
