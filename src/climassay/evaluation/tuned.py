"""Adapters of tuned settings, found by name or trained when first needed, and their training data."""

import re
from collections.abc import Callable, Iterable, Sequence
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
"""Proportion of the training data that is held out for validation if no validation data is named."""
ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True, slots=True)
class Adapter:
    """Adapter of a model for a setting."""

    folder: Path
    notes: tuple[str, ...] = ()
    """Notes on results that use the adapter, for example a warning of a data leak."""
    training_texts: Sequence[str] | None = field(default=None, repr=False)
    """Training texts of the adapter; None if they are unknown."""


def find_adapter(
    model: ModelSpec,
    spec: SettingSpec,
    plan: ExperimentPlan,
    workspace: Workspace,
    *,
    prompts: TaskPrompts | None = None,
    on_progress: Callable[[str, int, int, float], None] | None = None,
) -> Adapter | None:
    """Return the adapter of a setting, which names it or specifies its training; None if the setting has no adapter.

    The adapter is trained if necessary: a completed training is reused, and an interrupted one is resumed. ``{model}``
    in the name of an adapter is replaced by the model's label.

    Args:
        model: Local model to tune.
        spec: Specification of the setting.
        plan: Plan with the seed, and with the folder that contains the files with relative names.
        workspace: Workspace with adapters and collections.
        prompts: Prompt templates of training examples; the built-in templates by default.
        on_progress: Function that is called with the adapter's name, the step, the total number of steps and the
            validation loss.

    Raises:
        InputError: The adapter does not exist, the model is not local, or an adapter of this name was trained
            differently.
    """
    from climassay.tuning import TuningProgress, search, train

    if spec.adapter:
        return Adapter(_find_adapter_folder(spec.adapter.format(model=model.display_name), workspace, plan))
    if spec.training is None:
        return None
    if is_served(model.name):
        raise InputError(f"The setting {spec.label} trains an adapter; only local: models take one, not {model.name}.")
    # Named after the model and not its label: a model that is listed twice, with two scorings, is trained once.
    model_part = "-".join(part for part in (Path(model.name.partition(":")[2] or model.name).name, model.dtype) if part)
    name = re.sub(r"[^\w.-]+", "-", f"{spec.label}-{model_part}").strip("-")
    data = (
        _load_question_data(spec.training, plan, prompts or TaskPrompts.load())
        if spec.training.questions
        else _load_text_data(spec.training, workspace)
    )
    task: Task = "finetune" if spec.training.questions else "pretrain"
    preset, config = choose_config(model.name, task, spec.training.preset, dict(spec.training.settings))

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
    early_stop_note = ", stopped early" if result.stopped_early else ""
    return Adapter(
        result.folder,
        (
            f"adapter {result.name}: {result.train.size} {result.train.kind} of {result.train.name}, validation loss "
            f"{result.before.loss:.3f} to {result.best.loss:.3f} nats a token at step {result.best_step} of "
            f"{result.steps}{early_stop_note}",
            *result.warnings,
        ),
        data.texts,
    )


class TrainingDocument(NamedTuple):
    """A document of a collection, with its text as training data."""

    stored: "StoredDocument"
    text: "TextDocument"

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which a user can select the document: id, title, and file name with and without suffix."""
        return self.stored.id, self.stored.title, self.stored.source, Path(self.stored.source).stem


def question_data(
    name: str, questions: Sequence[Question], prompts: TaskPrompts, *, with_contexts: bool = False
) -> "ChatData":
    """Convert questions to training data with the prompts of the evaluation.

    Args:
        name: Name of the data in reports.
        questions: Questions of any kinds.
        prompts: Templates.
        with_contexts: Whether the source text of a question, if it has one, precedes the question in the prompt.
    """
    from climassay.tuning import ChatData

    contexts = {question.id: question.context for question in questions if with_contexts and question.context}
    return ChatData(name, tuple(chat_examples(questions, prompts, contexts=contexts)))


def split_questions(questions: Sequence[Question], share: float, *, seed: int) -> tuple[list[Question], list[Question]]:
    """Split questions into two sets so that questions with the same source text are in the same set.

    The source text is identified by a question's context, or else by its document and section. Questions without
    either are assigned individually.

    Args:
        questions: Questions of any kinds.
        share: Proportion of the questions in the second set (:func:`climassay.learning.splits.split_groups`).
        seed: Random seed of the split.

    Raises:
        InputError: All questions have the same source text, or the proportion is 0.
    """
    from climassay.learning.splits import split_groups

    # A book without sections is not a text in this sense: all its questions would be on one side.
    texts = [
        question.context or ((question.document, question.section) if question.section else question.id)
        for question in questions
    ]
    first_questions, second_questions = split_groups(list(questions), texts, share, seed=seed)
    return list(first_questions), list(second_questions)


def collection_documents(workspace: Workspace, names: Sequence[str]) -> list[TrainingDocument]:
    """Return the documents of several collections with their texts for training, each document once.

    Raises:
        InputError: A collection does not exist.
    """
    from climassay.corpus import Collection
    from climassay.tuning import TextDocument

    results: dict[str, TrainingDocument] = {}
    for name in dict.fromkeys(names):
        collection = Collection.open(workspace, name)
        for document in collection.documents():
            if document.id not in results:
                passages = [passage.text for passage in collection.document_passages(document.id)]
                text = TextDocument.from_passages(document.id, document.title, passages)
                results[document.id] = TrainingDocument(document, text)
    return list(results.values())


def collect_texts(documents: Iterable[TrainingDocument]) -> "tuple[TextDocument, ...]":
    """Return the texts of documents, each document once."""
    return tuple({document.stored.id: document.text for document in documents}.values())


def select_documents(pool: Sequence[TrainingDocument], names: Sequence[str]) -> list[TrainingDocument]:
    """Return the documents with the given names.

    Raises:
        InputError: A name is that of no document.
    """
    documents = []
    for name in names:
        matches = [document for document in pool if name in document.names]
        if not matches:
            raise InputError(
                f"There is no validation document called {name!r}: see `climassay corpus show COLLECTION`."
            )
        documents += matches
    return documents


def collect_source_names(files: Sequence[str]) -> set[str]:
    """Return the names of the source documents of question files.

    Raises:
        InputError: A file cannot be read, or names no document.
    """
    names: set[str] = set()
    for file in files:
        document_names = {question.document for question in read_questions(file).questions if question.document}
        if not document_names:
            raise InputError(f"The questions of {file} name no documents: name the books' collection with --source.")
        names |= document_names
    return names


def _load_collection_data(workspace: Workspace, names: Sequence[str]) -> "TextData":
    from climassay.tuning import TextData

    return TextData("+".join(names), tuple(document.text for document in collection_documents(workspace, names)))


@dataclass(frozen=True, slots=True)
class _TrainingData:
    """Training and validation data for an adapter."""

    training: "TuningData"
    validation: "TuningData"
    texts: tuple[str, ...]
    """Plain texts of the training data, one per question or document."""
    warnings: tuple[str, ...] = ()


def choose_config(
    model: str, task: "Task", preset: str, settings: dict[str, object]
) -> "tuple[str | None, TuningConfig]":
    """Return the name of a preset, and its hyper-parameters overridden by ``settings``.

    An empty ``preset`` selects the preset for the model and task; if there is none, the name is None and the defaults
    are used.

    Raises:
        InputError: The preset or a setting is unknown.
    """
    from climassay.tuning import PRESETS, TuningConfig, find_preset

    selected_preset = find_preset(preset) if preset else None
    if selected_preset is None:
        selected_preset = next(
            (candidate for candidate in PRESETS.values() if candidate.task == task and candidate.model == model), None
        )
    config = TuningConfig() if selected_preset is None else selected_preset.config
    return (None if selected_preset is None else selected_preset.name), config.with_values(settings)


def _load_question_data(training: AdapterTraining, plan: ExperimentPlan, prompts: TaskPrompts) -> _TrainingData:
    def read(file: str) -> QuestionSet:
        return read_questions(file if file == PRIMER else resolve_file(plan.folder, file))

    question_set = read(training.questions)
    training_questions: Sequence[Question] = question_set.questions
    if training.validation:
        sets = [read(file) for file in training.validation]
        validation_questions = [question for validation_set in sets for question in validation_set.questions]
        validation_name = "+".join(validation_set.name for validation_set in sets)
    else:
        training_questions, validation_questions = split_questions(training_questions, VALIDATION_SHARE, seed=plan.seed)
        validation_name = f"{question_set.name}, held out"
    return _TrainingData(
        question_data(question_set.name, training_questions, prompts),
        question_data(validation_name, validation_questions, prompts),
        tuple(map(question_text, training_questions)),
    )


def _load_text_data(training: AdapterTraining, workspace: Workspace) -> _TrainingData:
    from climassay.tuning import ContinuedPretrainingData, split_documents

    if not training.collections:
        raise InputError("A training needs questions (a file) or collections to learn from.")
    training_texts = _load_collection_data(workspace, training.collections)
    source = _load_collection_data(workspace, training.source) if training.source else None
    validation = _load_collection_data(workspace, training.validation) if training.validation else None
    if validation is None and training.validate_on == "held-out":
        training_texts, validation = split_documents(training_texts, VALIDATION_SHARE)
    data = ContinuedPretrainingData.assemble(
        training_texts, source=source, validation=validation, validate_on=training.validate_on
    )
    return _TrainingData(
        data.train, data.validation, tuple(document.text for document in data.train.documents), data.warnings
    )


def _find_adapter_folder(name: str, workspace: Workspace, plan: ExperimentPlan) -> Path:
    for folder in (workspace.adapters / name, Path(resolve_file(plan.folder, name)).expanduser()):
        if (folder / ADAPTER_CONFIG).is_file():
            return folder
    raise InputError(
        f"There is no adapter {name!r}: it is neither listed by climassay tune list nor a folder that holds one."
    )
