"""Adapters of tuned settings: found by name, or trained when an experiment first needs them."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.errors import InputError
from climassay.evaluation.examples import TaskPrompts, chat_examples
from climassay.evaluation.experiment_file import ExperimentPlan, ModelSpec, located
from climassay.evaluation.matrix import Adapter
from climassay.evaluation.settings import SettingSpec, Training
from climassay.primer import gold_questions
from climassay.questions import Question, QuestionSet, read_questions
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.tuning import ChatData, TextData, TuningConfig, TuningResult
    from climassay.tuning.config import Task

VALIDATION_SHARE = 0.1
"""Of the questions to learn from, where no others are given to validate on."""
ADAPTER_CONFIG = "adapter_config.json"


def find_adapter(
    model: ModelSpec,
    spec: SettingSpec,
    plan: ExperimentPlan,
    workspace: Workspace,
    *,
    prompts: TaskPrompts | None = None,
    on_progress: Callable[[str, int, int, float], None] | None = None,
) -> Adapter | None:
    """What a setting adds to a model: the adapter it names, or the one that its training makes.

    A training that is done already is not done again, and an interrupted one goes on.

    Args:
        model: Which is tuned; local.
        spec: The setting. ``{model}`` in its adapter's name stands for the model's label.
        plan: For relative files and the seed.
        workspace: Adapters lie in its folder ``adapters``.
        prompts: In which questions are learned; the built-in ones by default.
        on_progress: Called with (adapter, steps taken, steps in all, validation loss).

    Returns:
        None where the setting asks for nothing.

    Raises:
        InputError: There is no such adapter, or it was made for another setting than the plan's says.
    """
    if spec.adapter:
        return Adapter(_named(spec.adapter.format(model=model.shown), workspace, plan))
    if spec.training is None:
        return None
    if not model.name.startswith("local:"):
        raise InputError(f"The setting {spec.label} trains an adapter; only local: models take one, not {model.name}.")
    name = _file_name(f"{spec.label}-{model.shown}")
    result = _train(name, model, spec.training, plan, workspace, prompts or TaskPrompts.load(), on_progress)
    return Adapter(result.folder, (_summary(result), *result.warnings))


def adapters_folder(workspace: Workspace) -> Path:
    """Where a workspace keeps its adapters."""
    return workspace.root / "adapters"


def question_data(name: str, questions: Sequence[Question], prompts: TaskPrompts) -> "ChatData":
    """Questions as examples to learn from, each in the prompt of the evaluation."""
    from climassay.tuning import ChatData

    return ChatData(name, tuple(chat_examples(questions, prompts)))


def split_questions(questions: Sequence[Question], share: float, *, seed: int) -> tuple[list[Question], list[Question]]:
    """Split questions so that none made from the same text stand on both sides."""
    from climassay.tuning import split_groups

    groups = [question.context or question.document or question.id for question in questions]
    kept, held_out = split_groups(list(questions), groups, share, seed=seed)
    return list(kept), list(held_out)


def collection_data(workspace: Workspace, names: Sequence[str]) -> "TextData":
    """All documents of some collections as texts to learn from."""
    from climassay.corpus import Collection
    from climassay.tuning import TextData, TextDocument

    documents = []
    for name in names:
        collection = Collection.open(workspace, name)
        for stored in collection.documents():
            passages = [passage.text for passage in collection.document_passages(stored.id)]
            documents.append(TextDocument.from_passages(stored.id, stored.title, passages))
    return TextData("+".join(names), tuple(documents))


def _train(
    name: str,
    model: ModelSpec,
    training: Training,
    plan: ExperimentPlan,
    workspace: Workspace,
    prompts: TaskPrompts,
    on_progress: Callable[[str, int, int, float], None] | None,
) -> "TuningResult":
    from climassay.tuning import TuningProgress, search, train

    warnings: tuple[str, ...] = ()
    task: Task = "finetune" if training.questions else "pretrain"
    learned: ChatData | TextData
    checked: ChatData | TextData
    if training.questions:
        learned, checked = _questions_to_learn(training, plan, prompts)
    else:
        learned, checked, warnings = _texts_to_learn(training, workspace)
    preset, config = chosen_config(model.name, task, training.preset, dict(training.settings))

    def tell(progress: TuningProgress) -> None:
        if on_progress is not None:
            on_progress(name, progress.step, progress.steps, progress.validation_loss)

    run = search if training.search else train
    folder = adapters_folder(workspace) / name
    return run(
        model.name,
        learned,
        checked,
        config,
        folder,
        device=model.device,
        preset=preset,
        warnings=warnings,
        on_progress=tell,
    )


def chosen_config(
    model: str, task: "Task", preset: str, settings: dict[str, object]
) -> "tuple[str | None, TuningConfig]":
    """Hyper-parameters: of the preset named, else of the one for this model, with values of one's own over them.

    Returns:
        The preset's name, None where there is none, and the settings.

    Raises:
        InputError: No such preset or setting.
    """
    from climassay.tuning import PRESETS, TuningConfig, find_preset

    chosen = find_preset(preset) if preset else None
    if chosen is None:
        chosen = next((one for one in PRESETS.values() if one.task == task and one.model == model), None)
    config = TuningConfig() if chosen is None else chosen.config
    return (None if chosen is None else chosen.name), config.with_values(settings)


def _questions_to_learn(training: Training, plan: ExperimentPlan, prompts: TaskPrompts) -> "tuple[ChatData, ChatData]":
    learned = _read(training.questions, plan)
    if training.validation:
        sets = [_read(file, plan) for file in training.validation]
        held_out = [question for one in sets for question in one.questions]
        checked_name = "+".join(one.name for one in sets)
        return question_data(learned.name, learned.questions, prompts), question_data(checked_name, held_out, prompts)
    kept, held_out = split_questions(learned.questions, VALIDATION_SHARE, seed=plan.seed)
    return (
        question_data(learned.name, kept, prompts),
        question_data(f"{learned.name}, held out", held_out, prompts),
    )


def _texts_to_learn(training: Training, workspace: Workspace) -> "tuple[TextData, TextData, tuple[str, ...]]":
    from climassay.tuning import ContinuedPretrainingData, split_documents

    if not training.collections:
        raise InputError("A training needs questions (a file) or collections to learn from.")
    learned = collection_data(workspace, training.collections)
    source = collection_data(workspace, training.source) if training.source else None
    checked = collection_data(workspace, training.validation) if training.validation else None
    if checked is None and training.validate_on == "held-out":
        learned, checked = split_documents(learned, VALIDATION_SHARE)
    data = ContinuedPretrainingData.assemble(
        learned, source=source, validation=checked, validate_on=training.validate_on
    )
    return data.train, data.validation, data.warnings


def _read(file: str, plan: ExperimentPlan) -> QuestionSet:
    return gold_questions() if file == "primer" else read_questions(located(plan, file))


def _named(name: str, workspace: Workspace, plan: ExperimentPlan) -> Path:
    places = (adapters_folder(workspace) / name, Path(located(plan, name)).expanduser())
    for place in places:
        if (place / ADAPTER_CONFIG).is_file():
            return place
    raise InputError(f"There is no adapter {name!r}: it is neither one of climassay tune list nor a folder with one.")


def _summary(result: "TuningResult") -> str:
    stopped = ", stopped early" if result.stopped_early else ""
    return (
        f"adapter {result.name}: {result.train.size} {result.train.kind} of {result.train.name}, validation loss "
        f"{result.before.loss:.3f} to {result.best.loss:.3f} nats a token at step {result.best_step} of "
        f"{result.steps}{stopped}"
    )


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-")
