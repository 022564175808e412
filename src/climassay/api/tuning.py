"""Adapters: local models trained on documents or on questions."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay import evaluation, tuning
from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL
from climassay.questions import read_questions
from climassay.reporting import Table
from climassay.reporting.results import Shown
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.evaluation import ReadDocument
    from climassay.questions import Question, QuestionSet
    from climassay.tuning.config import Task

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def pretrain(
    name: str,
    collections: str | Sequence[str],
    *,
    validation: Sequence[str] = (),
    validation_documents: Sequence[str] = (),
    source: Sequence[str] = (),
    questions: Sequence[str] = (),
    validate_on: "tuning.ValidateOn" = "held-out",
    seed: int = 0,
    workspace: Place = None,
    **training: Any,
) -> "tuning.TuningResult":
    """Continue pre-training on documents of collections, without documents that a question comes from.

    Args:
        name: Name of the adapter in the workspace.
        collections: Collections to train on.
        validation: Collection to validate on; can be repeated.
        validation_documents: Document of the collections, by id, title or file, to validate on; can be repeated.
        source: Collection of the books the benchmark's questions come from; can be repeated.
        questions: Question file, or primer: the documents that it names are excluded from the training; can be
            repeated.
        validate_on: Documents to validate on: held-out, or source as in the ClimaQA paper (a leakage).
        seed: Seed of the training.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        **training: Model, preset and settings, as for :func:`finetune`.

    Raises:
        InputError: A name is unknown, a set is empty, two sets share a document, or a setting is invalid.
        ModelError: The model cannot be loaded.
    """
    names = one_or_several(collections)
    with Session.opened(workspace) as session:
        pool = evaluation.collection_documents(session.workspace, names)
        asked_about = _documents_asked_about(questions)
        excluded = [document for document in pool if asked_about & set(_names(document))]
        held_out = _chosen(pool, validation_documents)
        read = tuple(document.text for document in pool if document not in excluded and document not in held_out)
        if not read:
            raise InputError(f"Nothing is left to read of {', '.join(names)}: all of it is held out.")
        sources = _texts([*evaluation.collection_documents(session.workspace, source), *excluded])
        validated = _texts([*evaluation.collection_documents(session.workspace, validation), *held_out])
        named = [*source, *(Path(file).name for file in questions)]
        data = tuning.ContinuedPretrainingData.assemble(
            tuning.TextData("+".join(names), read),
            source=tuning.TextData("+".join(named), sources) if sources else None,
            validation=tuning.TextData("+".join([*validation, *validation_documents]), validated)
            if validated
            else None,
            validate_on=validate_on,
        )
        return _train(session, "pretrain", name, data.train, data.validation, data.warnings, seed=seed, **training)


def finetune(
    name: str,
    questions: str,
    *,
    validation: str | None = None,
    validation_share: float = 0.1,
    limit: int | None = None,
    with_context: bool = False,
    seed: int = 0,
    workspace: Place = None,
    **training: Any,
) -> "tuning.TuningResult":
    """Fine-tune on questions and their answers, asked as the evaluation asks them.

    Args:
        name: Name of the adapter in the workspace.
        questions: Questions of any kind (see climassay evaluate), or 'primer'.
        validation: Questions to validate on, or 'primer'.
        validation_share: Share of the questions to validate on, if no file is given.
        limit: Number of questions to use, drawn at random.
        with_context: Put the source passage before each question.
        seed: Seed of draws and splits, and of the training.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        **training: ``model``, a local one; ``preset``, by default the one made for model and task; ``settings``,
            values that take the place of the preset's; ``grid``, values of settings to search; ``device``;
            ``replace_other``, whether another adapter of this name is removed.

    Raises:
        InputError: A file cannot be read or split, or a setting is invalid.
        ModelError: The model cannot be loaded.
    """
    with Session.opened(workspace) as session:
        templates = evaluation.TaskPrompts.load(session.options.prompts)
        question_set = read_questions(questions)
        learned: Sequence[Question] = _drawn(question_set, limit, seed)
        held_out: Sequence[Question]
        if validation is not None:
            other = read_questions(validation)
            held_out, other_name = _drawn(other, limit, seed), other.name
        else:
            learned, held_out = evaluation.split_questions(learned, validation_share, seed=seed)
            other_name = f"{question_set.name}, held out"
        train, validate = (
            evaluation.question_data(source, part, templates, with_contexts=with_context)
            for source, part in ((question_set.name, learned), (other_name, held_out))
        )
        return _train(session, "finetune", name, train, validate, (), seed=seed, **training)


def list_adapters(*, workspace: Place = None) -> Shown:
    """List the adapters of the workspace."""
    with Session.opened(workspace) as session:
        result = tuning.list_adapters(session.workspace.adapters)
    rows = [
        (
            adapter.name,
            adapter.base,
            adapter.train.name,
            f"{adapter.train.size} {adapter.train.kind}",
            f"{adapter.before.loss:.4f}",
            f"{adapter.best.loss:.4f}",
            adapter.fingerprint[:12],
        )
        for adapter in result
    ]
    headings = ("name", "model", "trained on", "size", "loss before", "loss after", "fingerprint")
    table = Table.of("Adapters", headings, rows, left=3, note="Validation loss, nats a token.")
    none = () if result else ("There are no adapters yet: see climassay tune --help.",)
    return Shown([adapter.to_dict() for adapter in result], (table,) if rows else (), noted=none)


def show_adapter(name: str, *, workspace: Place = None) -> "tuning.TuningResult":
    """Show an adapter's origin and training.

    Args:
        name: Name of the adapter.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: There is no finished adapter of this name.
    """
    with Session.opened(workspace) as session:
        result = tuning.read_result(session.workspace.adapters / checked_name(name))
    if result is None:
        raise InputError(f"There is no finished adapter {name!r}: see climassay tune list.")
    return result


def list_presets() -> Shown:
    """List the presets: the ClimaQA paper's settings, and those for the bundled model."""
    rows = []
    for preset in tuning.PRESETS.values():
        config = preset.config
        numbers = (config.rank, config.alpha, config.epochs, config.learning_rate, config.max_length)
        rows.append((preset.name, preset.model, *(f"{number:g}" for number in numbers), preset.source))
    headings = ("preset", "model", "rank", "alpha", "epochs", "learning rate", "max length", "source")
    return Shown(list(tuning.PRESETS.values()), (Table.of("Presets", headings, rows, left=2),))


def checked_name(name: str) -> str:
    """Return the name of an adapter after checking it.

    Raises:
        InputError: The name cannot be the name of a folder on every operating system.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"An adapter cannot be called {name!r}: use letters, digits, dots, hyphens and underscores.")
    return name


def _train(
    session: Session,
    task: "Task",
    name: str,
    learned: "tuning.TuningData",
    held_out: "tuning.TuningData",
    warnings: Sequence[str],
    *,
    seed: int,
    model: str = DEFAULT_MODEL,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    device: str | None = None,
    replace_other: bool = False,
) -> "tuning.TuningResult":
    """Train or search, showing progress."""
    from climassay.evaluation.tuned import chosen_config

    name_of_model = model if model.startswith("local:") else f"local:{model}"
    used, config = chosen_config(name_of_model, task, preset or "", {"seed": seed, **(settings or {})})
    if used is not None and tuning.PRESETS[used].task != task:
        raise InputError(f"The preset {used} is for climassay tune {tuning.PRESETS[used].task}, not for {task}.")
    folder = session.workspace.adapters / checked_name(name)
    for warning in warnings:
        session.progress.say(f"Warning: {warning}")
    base = tuning.TuningBase(model, device=device, dtype=config.dtype)
    with session.progress.task(f"Loading {model}") as bar:
        heading = "Training"

        def trial(state: "tuning.SearchProgress") -> None:
            nonlocal heading
            heading = f"Trial {state.trial} of {state.trials}"
            bar.update(description=heading, completed=0)

        def step(state: "tuning.TuningProgress") -> None:
            loss = "" if state.loss is None else f", loss {state.loss:.3f}"
            description = f"{heading}{loss}, validation {state.validation_loss:.3f}"
            bar.update(description=description, completed=state.step, total=state.steps)

        shared: dict[str, Any] = {
            "preset": used,
            "warnings": tuple(warnings),
            "replace_other": replace_other,
            "on_progress": step,
        }
        if grid is None:
            return tuning.train(base, learned, held_out, config, folder, **shared)
        searched = {setting: tuple(values) for setting, values in grid.items()}
        return tuning.search(base, learned, held_out, config, folder, searched, on_trial=trial, **shared)


def _names(document: "ReadDocument") -> tuple[str, ...]:
    """Return the names by which a document can be chosen: id, title, file name, and file name without suffix."""
    return document.stored.id, document.stored.title, document.stored.source, Path(document.stored.source).stem


def _texts(documents: "Iterable[ReadDocument]") -> "tuple[tuning.TextDocument, ...]":
    return tuple({document.stored.id: document.text for document in documents}.values())


def _chosen(pool: "Sequence[ReadDocument]", names: Sequence[str]) -> "list[ReadDocument]":
    """Return the documents of the names, each of which must exist."""
    chosen = []
    for name in names:
        results = [document for document in pool if name in _names(document)]
        if not results:
            raise InputError(
                f"There is no validation document called {name!r}: see `climassay corpus show COLLECTION`."
            )
        chosen += results
    return chosen


def _documents_asked_about(files: Sequence[str]) -> set[str]:
    """Return the document names in question files, each of which must name at least one document."""
    names: set[str] = set()
    for file in files:
        named = {question.document for question in read_questions(file).questions if question.document}
        if not named:
            raise InputError(f"The questions of {file} name no documents: name the books' collection with --source.")
        names |= named
    return names


def _drawn(questions: "QuestionSet", limit: int | None, seed: int) -> "tuple[Question, ...]":
    if limit is None or limit >= len(questions.questions):
        return questions.questions
    indices = random.Random(seed).sample(range(len(questions.questions)), limit)
    return tuple(questions.questions[index] for index in sorted(indices))
