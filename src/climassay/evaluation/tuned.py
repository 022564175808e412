"""Adapters of tuned settings, found by name or trained when first needed, and their training data."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from climassay.errors import InputError
from climassay.evaluation.contamination import question_text
from climassay.evaluation.experiment_file import ExperimentPlan, ModelSpec
from climassay.evaluation.settings import AdapterTraining, SettingSpec, TaskPrompts, chat_examples
from climassay.models.provider import is_served
from climassay.questions import PRIMER, Question, QuestionSet, read_questions
from climassay.settings import resolve_file
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.corpus import StoredDocument
    from climassay.tuning import ChatData, TextData, TextDocument, TuningConfig, TuningData
    from climassay.tuning.config import Task

VALIDATION_SHARE = 0.1
"""Share of the training questions that is held out if no others are named for validation."""
ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True, slots=True)
class Adapter:
    """Adapter of a model in a tuned setting."""

    folder: Path
    notes: tuple[str, ...] = ()
    """Notes for the cells, for example a leakage warning."""
    learned: Sequence[str] | None = field(default=None, repr=False)
    """Texts on which the adapter was trained; None if they are unknown."""


def find_adapter(
    model: ModelSpec,
    spec: SettingSpec,
    plan: ExperimentPlan,
    workspace: Workspace,
    *,
    prompts: TaskPrompts | None = None,
    on_progress: Callable[[str, int, int, float], None] | None = None,
) -> Adapter | None:
    """Return the adapter that a setting names, or train the one it describes; None if the setting has neither.

    A finished training is reused, and an interrupted one is resumed. ``{model}`` in the adapter's name is replaced by
    the model's label.

    Args:
        model: Local model to tune.
        spec: Setting.
        plan: Plan with the seed and the folder of relative files.
        workspace: Holds adapters and collections.
        prompts: Templates of training examples; the built-in templates by default.
        on_progress: Receives adapter, step, total number of steps and validation loss.

    Raises:
        InputError: The adapter does not exist, or was made for another setting than the plan's.
    """
    from climassay.tuning import TuningProgress, search, train

    if spec.adapter:
        return Adapter(_adapter_folder(spec.adapter.format(model=model.display_name), workspace, plan))
    if spec.training is None:
        return None
    if is_served(model.name):
        raise InputError(f"The setting {spec.label} trains an adapter; only local: models take one, not {model.name}.")
    # Named after the model and not its label: a model that is listed twice, with two scorings, is trained once.
    model_part = "-".join(part for part in (Path(model.name.partition(":")[2] or model.name).name, model.dtype) if part)
    name = re.sub(r"[^\w.-]+", "-", f"{spec.label}-{model_part}").strip("-")
    data = (
        _question_training_data(spec.training, plan, prompts or TaskPrompts.load())
        if spec.training.questions
        else _text_training_data(spec.training, workspace)
    )
    task: Task = "finetune" if spec.training.questions else "pretrain"
    preset, config = chosen_config(model.name, task, spec.training.preset, dict(spec.training.settings))

    def report(progress: TuningProgress) -> None:
        if on_progress is not None:
            on_progress(name, progress.step, progress.steps, progress.validation_loss)

    run = search if spec.training.search else train
    folder = workspace.adapters / name
    result = run(
        model.name,
        data.training,
        data.validation,
        config,
        folder,
        device=model.device,
        preset=preset,
        warnings=data.warnings,
        on_progress=report,
    )
    stopped = ", stopped early" if result.stopped_early else ""
    return Adapter(
        result.folder,
        (
            f"adapter {result.name}: {result.train.size} {result.train.kind} of {result.train.name}, validation loss "
            f"{result.before.loss:.3f} to {result.best.loss:.3f} nats a token at step {result.best_step} of "
            f"{result.steps}{stopped}",
            *result.warnings,
        ),
        data.texts,
    )


class ReadDocument(NamedTuple):
    """A document of a collection and its training text."""

    stored: "StoredDocument"
    text: "TextDocument"


def question_data(
    name: str, questions: Sequence[Question], prompts: TaskPrompts, *, with_contexts: bool = False
) -> "ChatData":
    """Return questions as training examples, each in the prompt of the evaluation.

    Args:
        name: Name of the data in reports.
        questions: Questions of any kinds.
        prompts: Templates.
        with_contexts: Put the text that a question was made from before the question, if there is one.
    """
    from climassay.tuning import ChatData

    contexts = {question.id: question.context for question in questions if with_contexts and question.context}
    return ChatData(name, tuple(chat_examples(questions, prompts, contexts=contexts)))


def split_questions(questions: Sequence[Question], share: float, *, seed: int) -> tuple[list[Question], list[Question]]:
    """Split questions so that those made from the same text are on the same side.

    A text is a question's context, or its section of its document if the file has no contexts. Other questions are
    split one by one.

    Args:
        questions: Questions of any kinds.
        share: Share of the questions for the second side, see :func:`climassay.learning.splits.split_groups`.
        seed: Seed of the split.

    Raises:
        InputError: All questions come from one text, or the share is 0.
    """
    from climassay.learning.splits import split_groups

    # A book without sections is not a text in this sense: all its questions would be on one side.
    texts = [
        question.context or ((question.document, question.section) if question.section else question.id)
        for question in questions
    ]
    training, held_out = split_groups(list(questions), texts, share, seed=seed)
    return list(training), list(held_out)


def collection_documents(workspace: Workspace, names: Sequence[str]) -> list[ReadDocument]:
    """Return all documents of some collections with their training texts, each document once.

    Raises:
        InputError: A collection does not exist.
    """
    from climassay.corpus import Collection
    from climassay.tuning import TextDocument

    results: dict[str, ReadDocument] = {}
    for name in dict.fromkeys(names):
        collection = Collection.open(workspace, name)
        for stored in collection.documents():
            if stored.id not in results:
                passages = [passage.text for passage in collection.document_passages(stored.id)]
                text = TextDocument.from_passages(stored.id, stored.title, passages)
                results[stored.id] = ReadDocument(stored, text)
    return list(results.values())


def _collection_data(workspace: Workspace, names: Sequence[str]) -> "TextData":
    from climassay.tuning import TextData

    return TextData("+".join(names), tuple(document.text for document in collection_documents(workspace, names)))


@dataclass(frozen=True, slots=True)
class _TrainingData:
    """Training and validation data of an adapter."""

    training: "TuningData"
    validation: "TuningData"
    texts: tuple[str, ...]
    """Training data as plain texts, one per question or document."""
    warnings: tuple[str, ...] = ()


def chosen_config(
    model: str, task: "Task", preset: str, settings: dict[str, object]
) -> "tuple[str | None, TuningConfig]":
    """Return the name and hyper-parameters of a preset, overridden by ``settings``.

    An empty ``preset`` selects the preset for the model and task, if there is one.

    Raises:
        InputError: The preset or a setting is unknown.
    """
    from climassay.tuning import PRESETS, TuningConfig, find_preset

    selected = find_preset(preset) if preset else None
    if selected is None:
        selected = next(
            (candidate for candidate in PRESETS.values() if candidate.task == task and candidate.model == model), None
        )
    config = TuningConfig() if selected is None else selected.config
    return (None if selected is None else selected.name), config.with_values(settings)


def _question_training_data(training: AdapterTraining, plan: ExperimentPlan, prompts: TaskPrompts) -> _TrainingData:
    def read(file: str) -> QuestionSet:
        return read_questions(file if file == PRIMER else resolve_file(plan.folder, file))

    question_set = read(training.questions)
    learned: Sequence[Question] = question_set.questions
    if training.validation:
        sets = [read(file) for file in training.validation]
        held_out = [question for validation_set in sets for question in validation_set.questions]
        validation_name = "+".join(validation_set.name for validation_set in sets)
    else:
        learned, held_out = split_questions(learned, VALIDATION_SHARE, seed=plan.seed)
        validation_name = f"{question_set.name}, held out"
    return _TrainingData(
        question_data(question_set.name, learned, prompts),
        question_data(validation_name, held_out, prompts),
        tuple(map(question_text, learned)),
    )


def _text_training_data(training: AdapterTraining, workspace: Workspace) -> _TrainingData:
    from climassay.tuning import ContinuedPretrainingData, split_documents

    if not training.collections:
        raise InputError("A training needs questions (a file) or collections to learn from.")
    learned = _collection_data(workspace, training.collections)
    source = _collection_data(workspace, training.source) if training.source else None
    validation = _collection_data(workspace, training.validation) if training.validation else None
    if validation is None and training.validate_on == "held-out":
        learned, validation = split_documents(learned, VALIDATION_SHARE)
    data = ContinuedPretrainingData.assemble(
        learned, source=source, validation=validation, validate_on=training.validate_on
    )
    return _TrainingData(
        data.train, data.validation, tuple(document.text for document in data.train.documents), data.warnings
    )


def _adapter_folder(name: str, workspace: Workspace, plan: ExperimentPlan) -> Path:
    for folder in (workspace.adapters / name, Path(resolve_file(plan.folder, name)).expanduser()):
        if (folder / ADAPTER_CONFIG).is_file():
            return folder
    raise InputError(
        f"There is no adapter {name!r}: it is neither listed by climassay tune list nor a folder that holds one."
    )
