"""Adapters: local models trained on documents or on questions."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay import evaluation, tuning
from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL
from climassay.questions import read_questions
from climassay.reporting import Table
from climassay.reporting.results import AssembledResult
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.questions import Question
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
    """Continue pre-training on the documents of collections, excluding documents from which questions were made.

    Args:
        name: Name of the adapter in the workspace.
        collections: Collections of the training documents.
        validation: Collection of validation documents; can be repeated.
        validation_documents: Id, title or file name of a document of the collections that is used for validation
            instead of training; can be repeated.
        source: Collection of the books from which the benchmark's questions were made; can be repeated.
        questions: Question file, or primer: the documents that it names are excluded from the training; can be
            repeated.
        validate_on: Documents used for validation: held-out documents, or the source books as in the ClimaQA paper,
            which is a data leak.
        seed: Random seed of the training.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        **training: Further arguments as in :func:`finetune`, such as ``model``, ``preset`` and ``settings``.

    Raises:
        InputError: A collection or document does not exist, no training or validation document is left, training and
            validation share a document, or a setting is invalid.
        ModelError: The model cannot be loaded.
    """
    from climassay.evaluation.tuned import collect_source_names, collect_texts, select_documents

    names = one_or_several(collections)
    with Session.opened(workspace) as session:
        pool = evaluation.collection_documents(session.workspace, names)
        source_names = collect_source_names(questions)
        excluded_documents = [document for document in pool if source_names & set(document.names)]
        validation_pool = select_documents(pool, validation_documents)
        training_texts = tuple(
            document.text for document in pool if document not in excluded_documents and document not in validation_pool
        )
        if not training_texts:
            raise InputError(f"Nothing is left to read of {', '.join(names)}: all of it is held out.")
        sources = collect_texts([*evaluation.collection_documents(session.workspace, source), *excluded_documents])
        validation_texts = collect_texts(
            [*evaluation.collection_documents(session.workspace, validation), *validation_pool]
        )
        names_of_sources = [*source, *(Path(file).name for file in questions)]
        data = tuning.ContinuedPretrainingData.assemble(
            tuning.TextData("+".join(names), training_texts),
            source=tuning.TextData("+".join(names_of_sources), sources) if sources else None,
            validation=tuning.TextData("+".join([*validation, *validation_documents]), validation_texts)
            if validation_texts
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
    """Fine-tune on questions and their answers, with the prompts of the evaluation.

    Args:
        name: Name of the adapter in the workspace.
        questions: File of training questions of any kind, or ``primer``.
        validation: File of validation questions, or ``primer``; by default some of the questions are held out.
        validation_share: Proportion of the questions that is held out for validation if ``validation`` names no file.
        limit: Number of questions to draw at random for training, and for validation if it has a file.
        with_context: Whether the source passage precedes each question in its prompt.
        seed: Random seed for sampling, splits and the training.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        **training: Further arguments: ``model``, a local model; ``preset``, by default the one for the model and task;
            ``settings``, hyper-parameters that override the preset's; ``grid``, values to search by name of the
            hyper-parameter; ``device``; and ``replace_other``, whether another adapter of this name is removed.

    Raises:
        InputError: A file cannot be read or split, or a setting is invalid.
        ModelError: The model cannot be loaded.
    """
    from climassay.learning import sample

    with Session.opened(workspace) as session:
        templates = evaluation.TaskPrompts.load(session.options.prompts)
        question_set = read_questions(questions)
        training_questions: Sequence[Question] = sample(question_set.questions, limit, seed)
        validation_questions: Sequence[Question]
        if validation is not None:
            validation_set = read_questions(validation)
            validation_questions, validation_name = sample(validation_set.questions, limit, seed), validation_set.name
        else:
            training_questions, validation_questions = evaluation.split_questions(
                training_questions, validation_share, seed=seed
            )
            validation_name = f"{question_set.name}, held out"
        training_data, validation_data = (
            evaluation.question_data(source, selected_questions, templates, with_contexts=with_context)
            for source, selected_questions in (
                (question_set.name, training_questions),
                (validation_name, validation_questions),
            )
        )
        return _train(session, "finetune", name, training_data, validation_data, (), seed=seed, **training)


def list_adapters(*, workspace: Place = None) -> AssembledResult:
    """List the adapters of the workspace."""
    with Session.opened(workspace) as session:
        adapters = tuning.list_adapters(session.workspace.adapters)
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
        for adapter in adapters
    ]
    headings = ("name", "model", "trained on", "size", "loss before", "loss after", "fingerprint")
    table = Table.of("Adapters", headings, rows, left_columns=3, note="Validation loss, nats a token.")
    notes = () if adapters else ("There are no adapters yet: see climassay tune --help.",)
    return AssembledResult([adapter.to_dict() for adapter in adapters], (table,) if rows else (), noted=notes)


def show_adapter(name: str, *, workspace: Place = None) -> "tuning.TuningResult":
    """Show how an adapter was trained.

    Args:
        name: Name of the adapter.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: There is no adapter of this name, or its training was not finished.
    """
    with Session.opened(workspace) as session:
        result = tuning.read_result(session.workspace.adapters / check_adapter_name(name))
    if result is None:
        raise InputError(f"There is no finished adapter {name!r}: see climassay tune list.")
    return result


def list_presets() -> AssembledResult:
    """List the presets of hyper-parameters: those of the ClimaQA paper, and those for the bundled model."""
    rows = []
    for preset in tuning.PRESETS.values():
        config = preset.config
        numbers = (config.rank, config.alpha, config.epochs, config.learning_rate, config.max_length)
        rows.append((preset.name, preset.model, *(f"{number:g}" for number in numbers), preset.source))
    headings = ("preset", "model", "rank", "alpha", "epochs", "learning rate", "max length", "source")
    return AssembledResult(list(tuning.PRESETS.values()), (Table.of("Presets", headings, rows, left_columns=2),))


def check_adapter_name(name: str) -> str:
    """Check the name of an adapter, and return it.

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
    training_data: "tuning.TuningData",
    validation_data: "tuning.TuningData",
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
    """Train an adapter, or search for hyper-parameters if there is a grid, showing progress."""
    from climassay.evaluation.tuned import choose_config

    full_name = model if model.startswith("local:") else f"local:{model}"
    preset_name, config = choose_config(full_name, task, preset or "", {"seed": seed, **(settings or {})})
    if preset_name is not None and tuning.PRESETS[preset_name].task != task:
        raise InputError(
            f"The preset {preset_name} is for climassay tune {tuning.PRESETS[preset_name].task}, not for {task}."
        )
    folder = session.workspace.adapters / check_adapter_name(name)
    for message in warnings:
        session.progress.say(f"Warning: {message}")
    tuning_base = tuning.TuningBase(model, device=device, dtype=config.dtype)
    with session.progress.task(f"Loading {model}") as task_bar:
        heading = "Training"

        def show_trial(state: "tuning.SearchProgress") -> None:
            nonlocal heading
            heading = f"Trial {state.trial} of {state.trials}"
            task_bar.update(description=heading, completed=0)

        def show_step(state: "tuning.TuningProgress") -> None:
            loss = "" if state.loss is None else f", loss {state.loss:.3f}"
            description = f"{heading}{loss}, validation {state.validation_loss:.3f}"
            task_bar.update(description=description, completed=state.step, total=state.steps)

        keyword_arguments: dict[str, Any] = {
            "preset": preset_name,
            "warnings": tuple(warnings),
            "replace_other": replace_other,
            "on_progress": show_step,
        }
        if grid is None:
            return tuning.train(tuning_base, training_data, validation_data, config, folder, **keyword_arguments)
        search_space = {setting: tuple(values) for setting, values in grid.items()}
        return tuning.search(
            tuning_base,
            training_data,
            validation_data,
            config,
            folder,
            search_space,
            on_trial=show_trial,
            **keyword_arguments,
        )
