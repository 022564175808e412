"""Adapters of tuned settings, found by name or trained when first needed, and what such trainings learn from."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from climassay.errors import InputError
from climassay.evaluation.contamination import question_text
from climassay.evaluation.experiment_file import ExperimentPlan, ModelSpec
from climassay.evaluation.settings import SettingSpec, TaskPrompts, Training, chat_examples
from climassay.models.provider import is_served
from climassay.questions import PRIMER, Question, QuestionSet, read_questions
from climassay.settings import located
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.corpus import StoredDocument
    from climassay.tuning import ChatData, TextData, TextDocument, TuningConfig, TuningData
    from climassay.tuning.config import Task

VALIDATION_SHARE = 0.1
"""Share of the questions to learn from, where no others are given to validate on."""
ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True, slots=True)
class Adapter:
    """What a tuned setting adds to a model."""

    folder: Path
    notes: tuple[str, ...] = ()
    """For the cells' notes, for example a leakage warning."""
    learned: Sequence[str] | None = field(default=None, repr=False)
    """The texts it was trained on, where they are known."""


def find_adapter(
    model: ModelSpec,
    spec: SettingSpec,
    plan: ExperimentPlan,
    workspace: Workspace,
    *,
    prompts: TaskPrompts | None = None,
    on_progress: Callable[[str, int, int, float], None] | None = None,
) -> Adapter | None:
    """What a setting adds to a model: the adapter it names, or the one that its training makes; None for nothing.

    A training that is done already is not done again, and an interrupted one goes on. ``{model}`` in the adapter's name
    stands for the model's label.

    Args:
        model: Which is tuned; local.
        spec: The setting.
        plan: For relative files and the seed.
        workspace: Where adapters and collections lie.
        prompts: In which questions are learned; the built-in ones by default.
        on_progress: Called with (adapter, steps taken, steps in all, validation loss).

    Raises:
        InputError: There is no such adapter, or it was made for another setting than the plan's says.
    """
    from climassay.tuning import TuningProgress, search, train

    if spec.adapter:
        return Adapter(_named(spec.adapter.format(model=model.shown), workspace, plan))
    if spec.training is None:
        return None
    if is_served(model.name):
        raise InputError(f"The setting {spec.label} trains an adapter; only local: models take one, not {model.name}.")
    # Named for what is trained and not for its label: a model that is listed twice, asked in two ways, trains once.
    trained = "-".join(part for part in (Path(model.name.partition(":")[2] or model.name).name, model.dtype) if part)
    name = re.sub(r"[^\w.-]+", "-", f"{spec.label}-{trained}").strip("-")
    lesson = (
        _questions_to_learn(spec.training, plan, prompts or TaskPrompts.load())
        if spec.training.questions
        else _texts_to_learn(spec.training, workspace)
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
        lesson.learned,
        lesson.checked,
        config,
        folder,
        device=model.device,
        preset=preset,
        warnings=lesson.warnings,
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
        lesson.texts,
    )


class ReadDocument(NamedTuple):
    """A document of a collection and its text to learn from."""

    stored: "StoredDocument"
    text: "TextDocument"


def question_data(
    name: str, questions: Sequence[Question], prompts: TaskPrompts, *, with_contexts: bool = False
) -> "ChatData":
    """Questions as examples to learn from, each in the prompt of the evaluation.

    Args:
        name: For reports.
        questions: Any kinds.
        prompts: Templates.
        with_contexts: Put the text that a question was made from before it, where it has one.
    """
    from climassay.tuning import ChatData

    contexts = {one.id: one.context for one in questions if with_contexts and one.context}
    return ChatData(name, tuple(chat_examples(questions, prompts, contexts=contexts)))


def split_questions(questions: Sequence[Question], share: float, *, seed: int) -> tuple[list[Question], list[Question]]:
    """Split questions so that none made from the same text appear on both sides.

    A text is a question's context or, where the file has none, its section of its document; else questions stand alone.

    Args:
        questions: Any kinds.
        share: Share of the questions for the second side; as :func:`climassay.learning.splits.split_groups` takes it.
        seed: Decides which.

    Raises:
        InputError: All questions come from one text, or the share is none.
    """
    from climassay.learning.splits import split_groups

    # A whole book is not one text in this sense: its questions would all have to appear on one side.
    texts = [one.context or ((one.document, one.section) if one.section else one.id) for one in questions]
    kept, held_out = split_groups(list(questions), texts, share, seed=seed)
    return list(kept), list(held_out)


def collection_documents(workspace: Workspace, names: Sequence[str]) -> list[ReadDocument]:
    """All documents of some collections as texts to learn from, each document once.

    Raises:
        InputError: There is no such collection.
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

    return TextData("+".join(names), tuple(one.text for one in collection_documents(workspace, names)))


@dataclass(frozen=True, slots=True)
class _TrainingData:
    """What a training learns from and is checked on."""

    learned: "TuningData"
    checked: "TuningData"
    texts: tuple[str, ...]
    """What is learned, as plain texts: one a question or document."""
    warnings: tuple[str, ...] = ()


def chosen_config(
    model: str, task: "Task", preset: str, settings: dict[str, object]
) -> "tuple[str | None, TuningConfig]":
    """Name and hyper-parameters of the preset named, else of the one for this model, with one's own values over them.

    Raises:
        InputError: No such preset or setting.
    """
    from climassay.tuning import PRESETS, TuningConfig, find_preset

    chosen = find_preset(preset) if preset else None
    if chosen is None:
        chosen = next((one for one in PRESETS.values() if one.task == task and one.model == model), None)
    config = TuningConfig() if chosen is None else chosen.config
    return (None if chosen is None else chosen.name), config.with_values(settings)


def _questions_to_learn(training: Training, plan: ExperimentPlan, prompts: TaskPrompts) -> _TrainingData:
    def read(file: str) -> QuestionSet:
        return read_questions(file if file == PRIMER else located(plan.folder, file))

    given = read(training.questions)
    learned: Sequence[Question] = given.questions
    if training.validation:
        sets = [read(file) for file in training.validation]
        held_out = [question for one in sets for question in one.questions]
        checked_name = "+".join(one.name for one in sets)
    else:
        learned, held_out = split_questions(learned, VALIDATION_SHARE, seed=plan.seed)
        checked_name = f"{given.name}, held out"
    return _TrainingData(
        question_data(given.name, learned, prompts),
        question_data(checked_name, held_out, prompts),
        tuple(map(question_text, learned)),
    )


def _texts_to_learn(training: Training, workspace: Workspace) -> _TrainingData:
    from climassay.tuning import ContinuedPretrainingData, split_documents

    if not training.collections:
        raise InputError("A training needs questions (a file) or collections to learn from.")
    learned = _collection_data(workspace, training.collections)
    source = _collection_data(workspace, training.source) if training.source else None
    checked = _collection_data(workspace, training.validation) if training.validation else None
    if checked is None and training.validate_on == "held-out":
        learned, checked = split_documents(learned, VALIDATION_SHARE)
    data = ContinuedPretrainingData.assemble(
        learned, source=source, validation=checked, validate_on=training.validate_on
    )
    return _TrainingData(
        data.train, data.validation, tuple(document.text for document in data.train.documents), data.warnings
    )


def _named(name: str, workspace: Workspace, plan: ExperimentPlan) -> Path:
    places = (workspace.adapters / name, Path(located(plan.folder, name)).expanduser())
    for place in places:
        if (place / ADAPTER_CONFIG).is_file():
            return place
    raise InputError(
        f"There is no adapter {name!r}: it is neither listed by climassay tune list nor a folder that holds one."
    )
