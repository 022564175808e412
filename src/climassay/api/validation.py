"""Validators of generated questions and maskers of cloze statements: train, measure and apply them."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay import generation
from climassay.errors import InputError
from climassay.models import ModelOptions
from climassay.reporting import Report, Section, Table
from climassay.reporting.results import AssembledResult
from climassay.reporting.tables import skipped_note
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.generation import Draft, Subject
    from climassay.generation.validation import FeatureReader, Training, Validator


# ---------------------------------------------------------------------------------------------------------- validators


def open_reader(
    session: Session,
    method: str,
    *,
    model: str,
    encoder: str = "local:minilm",
    layers: tuple[int, ...] = (),
    subject: "Subject | None" = None,
) -> "FeatureReader":
    """Return the feature extractor of a validator: of text features (``features``) or of hidden states (``probe``).

    Raises:
        InputError: The model does not expose hidden states.
    """
    from climassay.generation.validation import StateReader, TextReader, validation_prompt
    from climassay.judging.judges import open_weights

    if method == "features":
        return TextReader(session.encoder(encoder))
    weights = open_weights(session.load(model), "A probe")
    prompt = validation_prompt(session.options.prompts)
    return StateReader(weights, prompt, layers, session.activations, subject or generation.Subject())


def train_validator(
    labels: Path | str,
    output: Path | str,
    *,
    method: str = "features",
    model: str = "local:smollm2",
    precision: float | None = None,
    encoder: str = "local:minilm",
    layers: tuple[int, ...] = (),
    preset: str = "smollm2-cpu-finetune",
    epochs: int | None = None,
    hold_out: float = 0.25,
    folds: int = 5,
    replace_other: bool = False,
    field: str | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Train a validator on experts' labels, and measure it on held-out passages.

    Args:
        labels: Drafts with experts' decisions, a table of questions with a column Validation or valid, or Pira's
            pira_qa.csv.
        output: File to which the validator is saved (features, probe, api), or folder (adapter).
        method: Kind of validator: features, probe, adapter or api (a server's fine-tuning job).
        model: Local model for a probe or an adapter, or a server's model for api.
        precision: Minimum proportion of valid questions among those that the validator accepts, for example 0.95.
        encoder: Encoder whose embeddings are used as features, or ``none``.
        layers: Layers whose hidden states a probe uses, concatenated.
        preset: Preset of hyper-parameters for an adapter.
        epochs: Number of training epochs of an adapter or a fine-tuning job (3 in the paper).
        hold_out: Labels held out to measure an adapter or a fine-tuned model: a proportion below 1, or their number.
        folds: Number of cross-validation folds.
        replace_other: Whether an adapter in the folder that was trained differently is replaced.
        field: Field of science that the prompts name; by default climate science.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The labels cannot be read or are too few, or the output cannot be written.
        ModelError: The model cannot be loaded or trained.
    """
    from climassay.generation.validation import (
        read_label_set,
        reason_figure,
        validation_prompt,
    )
    from climassay.generation.validation import train_validator as fit_validator
    from climassay.generation.validation.labels import threshold_table
    from climassay.learning.evaluation import reliability_plot
    from climassay.learning.model_file import check_model_path

    labels, output = Path(labels), Path(output)
    table, subject = read_label_set(labels), _make_subject(field)
    training_result: Training[Any]
    with Session.opened(workspace) as session, ExitStack() as tasks:
        training_arguments: dict[str, Any] = {
            "prompt": validation_prompt(session.options.prompts),
            "subject": subject,
            "hold_out": hold_out,
            "precision": precision,
            "seed": seed,
        }
        if method == "adapter":
            from climassay.generation.validation.training import train_adapter
            from climassay.tuning import find_preset

            config = find_preset(preset).config.with_values({"epochs": epochs, "seed": seed})
            training_task = tasks.enter_context(session.progress.task(f"Training {model}"))
            training_arguments["on_progress"] = lambda state: training_task.update(
                completed=state.step, total=state.steps
            )
            training_result = train_adapter(
                table, model, output, config, replace_other=replace_other, **training_arguments
            )
        elif method == "api":
            from climassay.generation.validation.training import find_tuning_server, train_api

            if output.is_dir():
                raise InputError(f"{output} is a folder: name the file that stores the state of the fine-tuning job.")
            base_url, model = find_tuning_server(model, session.options.base_url)
            job_task = tasks.enter_context(session.progress.task("Fine-tuning job"))
            training_arguments["on_status"] = lambda state: job_task.update(
                description=f"Fine-tuning job is {state.status}"
            )
            load_model: Any = partial(session.load, defaults=ModelOptions(base_url=base_url))
            training_result = train_api(
                table, model, output, load_model, base_url=base_url, epochs=epochs or 3, **training_arguments
            )
        else:
            check_model_path(output)
            reader = open_reader(session, method, model=model, encoder=encoder, layers=layers, subject=subject)
            reading_task = tasks.enter_context(session.progress.task("Reading questions", len(table.drafts)))
            fold_task = tasks.enter_context(session.progress.task("Cross-validating", folds))
            training_result = fit_validator(
                table,
                reader,
                precision=precision,
                folds=folds,
                seed=seed,
                on_read=reading_task.advance,
                on_fold=fold_task.advance,
            )
            training_result.validator.save(output)
    threshold, no_threshold_reason = training_result.record.threshold, training_result.no_threshold_reason

    def report() -> Report:
        reasons = reason_figure([(table.name, table.drafts)])
        figure = reliability_plot(
            "Do the probabilities mean what they say?", [("P(valid)", training_result.scores.calibration)]
        )
        sections = [Section("Figures", (*training_result.scores.tables(), figure))]
        sections += [] if reasons is None else [Section("Why questions were rejected", (reasons,))]
        introduction = f"A validator trained on {table.name}, measured on passages that it was not trained on."
        return Report("Validator", introduction, tuple(sections))

    return AssembledResult(
        {"validator": str(output), **training_result.to_dict()},
        [*training_result.scores.tables(), *([threshold_table(threshold)] if threshold else [])],
        noted=(
            *skipped_note(table.skipped, "labelled row"),
            *(() if no_threshold_reason is None else (f"No threshold: {no_threshold_reason}",)),
        ),
        reported=report,
    )


def evaluate_validator(
    validator: str,
    labels: Path | str,
    *,
    field: str | None = None,
    include_trained: bool = False,
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Measure a validator on labelled questions that it was not trained on.

    Args:
        validator: Validator: prompted:MODEL, adapter:FOLDER, api:STATE.json, the file of a trained validator, or one
            for each kind of question as mcq=...,freeform=...
        labels: Drafts with experts' decisions, a table of questions with a column Validation or valid, or Pira's
            pira_qa.csv.
        field: Field of science that the prompts name; by default climate science.
        include_trained: Whether questions of the training data are scored as well.
        limit: Number of questions to draw at random; by default all are used.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The validator or the labels cannot be read, or the validator was trained on all the questions.
        ModelError: A model cannot be loaded.
    """
    from climassay.generation.validation import ValidatorsByKind, read_label_set
    from climassay.learning import sample

    labels = Path(labels)
    table = read_label_set(labels)
    with Session.opened(workspace) as session:
        loaded_validator = _load_validator(session, validator, field)
        single_validators = (
            loaded_validator.validators.values()
            if isinstance(loaded_validator, ValidatorsByKind)
            else [loaded_validator]
        )
        records = [getattr(single_validator, "record", None) for single_validator in single_validators]
        known_provenances = [record.provenance for record in records if record is not None and not include_trained]
        training_ids = {draft_id for provenance in known_provenances for draft_id in provenance.trained_on}
        unseen_examples = [example for example in table.drafts if example.draft.id not in training_ids]
        if not unseen_examples:
            raise InputError(f"{loaded_validator.name} was trained on all questions of {labels}: measure it on others.")
        n_training_questions = len(table.drafts) - len(unseen_examples)
        unseen_examples = list(sample(unseen_examples, limit, seed))
        if len({example.valid for example in unseen_examples}) == 1:
            word = "valid" if unseen_examples[0].valid else "invalid"
            raise InputError(
                f"All {len(unseen_examples)} questions to be judged are {word}: a validator is measured on both kinds."
            )
        with session.progress.task(f"Asking {loaded_validator.name}", len(unseen_examples)) as task:
            scores = loaded_validator.score(unseen_examples, seed=seed, on_judged=task.advance)
    source = {
        "validator": loaded_validator.name,
        "file": str(labels),
        "sha256": table.sha256,
        "trained_on": n_training_questions,
    }
    notes = [*skipped_note(table.skipped, "labelled row")]
    if n_training_questions:
        notes.append(f"{n_training_questions} questions left out: it was trained on them.")
    return AssembledResult({**source, **asdict(scores)}, scores.tables(), noted=notes)


def apply_validator(
    validator: str,
    drafts: Path | str,
    output: Path | str | None = None,
    *,
    threshold: float | None = None,
    field: str | None = None,
    workspace: Place = None,
) -> AssembledResult:
    """Accept or reject drafts with a validator; drafts that were rejected or failed earlier stay unchanged.

    Args:
        validator: Validator: prompted:MODEL, adapter:FOLDER, api:STATE.json, the file of a trained validator, or one
            for each kind of question as mcq=...,freeform=...
        drafts: File of drafts (JSON Lines).
        output: File to which the drafts are written with their decisions; by default they are not saved.
        threshold: Minimum P(valid) of an accepted draft; by default the validator's own threshold, or else 0.5.
        field: Field of science that the prompts name; by default climate science.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The validator or the drafts cannot be read, or the file cannot be written.
        ModelError: A model cannot be loaded.
    """
    from climassay.generation.validation import validate

    drafts = Path(drafts)
    output = None if output is None else Path(output)
    draft_list = list(generation.read_drafts(drafts))
    with Session.opened(workspace) as session:
        loaded_validator = _load_validator(session, validator, field)
        n_usable = sum(draft.usable for draft in draft_list)
        with session.progress.task(f"Asking {loaded_validator.name}", n_usable) as task:
            decided_drafts = validate(draft_list, loaded_validator, threshold, on_judged=task.advance)
    if output is not None:
        generation.write_drafts(output, decided_drafts)
    new_decisions = _select_newly_decided(draft_list, decided_drafts)
    verdicts = [draft.decisions[-1].accepted for draft in new_decisions]
    counts = {
        "kept": verdicts.count(True),
        "rejected": verdicts.count(False),
        "not judged": verdicts.count(None) + n_usable - len(new_decisions),
        "rejected or failed before": len(draft_list) - n_usable,
    }
    rows = [
        {"id": draft.id, "accepted": draft.decisions[-1].accepted, "probability": draft.decisions[-1].score}
        for draft in new_decisions
    ]
    cells = [(name, str(count)) for name, count in counts.items()]
    return AssembledResult(
        {"validator": loaded_validator.name, "counts": counts, "decisions": rows},
        (Table.of(f"Decisions of {loaded_validator.name}", ("decision", "questions"), cells),),
        rows,
        noted=() if output is None else (f"Written to {output}.",),
    )


def show_validator(validator: Path | str) -> AssembledResult:
    """Show a trained validator's training data, scores and threshold, without loading its model.

    Args:
        validator: File, adapter folder or state file of the validator.

    Raises:
        InputError: The path does not lead to a trained validator.
    """
    from climassay.generation.validation import read_training_record
    from climassay.generation.validation.labels import threshold_table

    validator = Path(validator)
    record = read_training_record(validator)
    source = record.provenance.summary()
    facts = {**source.pop("settings"), **source}
    rows = [
        (name.replace("_", " "), _format_value(value)) for name, value in facts.items() if value not in ("", (), None)
    ]
    threshold = [] if record.threshold is None else [threshold_table(record.threshold)]
    data = {"validator": str(validator), **facts, "threshold": record.threshold}
    return AssembledResult(data, [Table.of(str(validator), ("", ""), rows, left_columns=2), *threshold])


def _load_validator(session: Session, name: str, field: str | None) -> "Validator":
    from climassay.generation.validation import load_validator

    prompts = session.options.prompts
    return load_validator(
        name, load=session.load, prompts=prompts, subject=_make_subject(field), store=session.activations
    )


def _select_newly_decided(old_drafts: "Sequence[Draft]", new_drafts: "Sequence[Draft]") -> "list[Draft]":
    return [
        new_draft
        for old_draft, new_draft in zip(old_drafts, new_drafts, strict=True)
        if len(new_draft.decisions) > len(old_draft.decisions)
    ]


def _make_subject(field: str | None) -> "Subject":
    return generation.Subject() if field is None else generation.Subject(field=field)


def _format_value(value: Any) -> str:
    """Format a value for display; lists and mappings are joined by commas."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_format_value(count)}" for name, count in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_format_value, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# ------------------------------------------------------------------------------------------------------------- maskers


def apply_masker(
    masker: str,
    drafts: Path | str,
    output: Path | str,
    *,
    glossary: Path | str | None = None,
    workspace: Place = None,
) -> AssembledResult:
    """Choose the term to mask in each accepted cloze statement that has none yet.

    Args:
        masker: Way of choosing the term: statistics, or prompted:MODEL.
        drafts: File of drafts (JSON Lines).
        output: File to which the drafts are written with their terms.
        glossary: File of the field's preferred terms, one per line.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The drafts or the masker cannot be read, or the file cannot be written.
        ModelError: A model cannot be loaded.
    """
    from climassay.generation.masking import mask, open_masker
    from climassay.generation.terms import read_glossary

    drafts, output = Path(drafts), Path(output)
    glossary = None if glossary is None else Path(glossary)
    drafts_before = list(generation.read_drafts(drafts))
    if not drafts_before:
        raise InputError(f"{drafts} holds no draft: there is nothing to mask.")
    with Session.opened(workspace) as session:
        term_masker = open_masker(
            masker,
            glossary=() if glossary is None else read_glossary(glossary),
            prompts=session.options.prompts,
            load=session.load,
        )
        masked_drafts = mask(drafts_before, term_masker)
    generation.write_drafts(output, masked_drafts)
    new_decisions = [draft.decisions[-1].accepted for draft in _select_newly_decided(drafts_before, masked_drafts)]
    counts = {
        "masked": new_decisions.count(True),
        "no_term": new_decisions.count(False),
        "failed": new_decisions.count(None),
    }
    summary = f"{counts['masked']} masked, {counts['no_term']} without a term, {counts['failed']} failed"
    return AssembledResult({"drafts": output, **counts}, printed_lines=(f"{output}: {summary}.",))
