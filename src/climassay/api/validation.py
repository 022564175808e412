"""Validators of generated questions and maskers of cloze statements: train, measure and apply them."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay import generation
from climassay.api.learned import check_model_path, provenance_data
from climassay.errors import InputError
from climassay.models import ModelOptions, OpenWeights
from climassay.models.provider import is_served
from climassay.models.servers import OPENAI, find_server
from climassay.reporting import Report, Section, Table
from climassay.reporting.results import Shown
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
    """Return the reader of drafts for a validator to be trained with ``features`` or as a ``probe``.

    Raises:
        InputError: The model does not expose hidden states.
    """
    from climassay.generation.validation import StateReader, TextReader, validation_prompt

    if method == "features":
        return TextReader(session.encoder(encoder))
    loaded = session.load(model)
    if not isinstance(loaded, OpenWeights):
        raise InputError(f"A probe reads hidden states: use a local: model, not {model}.")
    prompt = validation_prompt(session.options.prompts)
    return StateReader(loaded, prompt, layers, session.activations, subject or generation.Subject())


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
) -> Shown:
    """Train a validator on experts' labels and measure it on passages it was not trained on.

    Args:
        labels: Drafts with expert decisions, a question table with Validation or valid, or pira_qa.csv.
        output: File (features, probe, api) or folder (adapter).
        method: Kind of validator to train.
        model: Local model for a probe or an adapter, or a server's model for api.
        precision: Minimum share of valid questions among the accepted ones, for example 0.95.
        encoder: Encoder whose vectors are used, or none.
        layers: Layers of ``probe``, side by side.
        preset: Tuning preset of the adapter.
        epochs: Epochs of training for adapter and api (paper: 3).
        hold_out: Labels held out to measure adapter and api: a share below 1, or their number.
        folds: Number of cross-validation folds.
        replace_other: Replace an adapter of another training.
        field: Field of science in the prompts; by default climate science.
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
    from climassay.generation.validation import train_validator as trained_on
    from climassay.generation.validation.labels import threshold_table
    from climassay.learning.evaluation import reliability_plot

    labels, output = Path(labels), Path(output)
    table, subject = read_label_set(labels), _subject(field)
    trained: Training[Any]
    with Session.opened(workspace) as session, ExitStack() as tasks:
        tuning: dict[str, Any] = {
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
            bar = tasks.enter_context(session.progress.task(f"Training {model}"))
            tuning["on_progress"] = lambda now: bar.update(completed=now.step, total=now.steps)
            trained = train_adapter(table, model, output, config, replace_other=replace_other, **tuning)
        elif method == "api":
            from climassay.generation.validation.training import train_api

            if output.is_dir():
                raise InputError(f"{output} is a folder: name the file that stores the state of the fine-tuning job.")
            base_url, model = _server(model, session.options.base_url)
            job = tasks.enter_context(session.progress.task("Fine-tuning job"))
            tuning["on_status"] = lambda now: job.update(description=f"Fine-tuning job is {now.status}")
            at_server: Any = partial(session.load, defaults=ModelOptions(base_url=base_url))
            trained = train_api(table, model, output, at_server, base_url=base_url, epochs=epochs or 3, **tuning)
        else:
            check_model_path(output)
            reader = open_reader(session, method, model=model, encoder=encoder, layers=layers, subject=subject)
            reading = tasks.enter_context(session.progress.task("Reading questions", len(table.drafts)))
            fitting = tasks.enter_context(session.progress.task("Cross-validating", folds))
            trained = trained_on(
                table,
                reader,
                precision=precision,
                folds=folds,
                seed=seed,
                on_read=reading.advance,
                on_fold=fitting.advance,
            )
            trained.validator.save(output)
    threshold, refusal = trained.record.threshold, trained.refusal

    def report() -> Report:
        reasons = reason_figure([(table.name, table.drafts)])
        figure = reliability_plot(
            "Do the probabilities mean what they say?", [("P(valid)", trained.scores.calibration)]
        )
        sections = [Section("Figures", (*trained.scores.tables(), figure))]
        sections += [] if reasons is None else [Section("Why questions were rejected", (reasons,))]
        lead = f"A validator trained on {table.name}, measured on passages that it was not trained on."
        return Report("Validator", lead, tuple(sections))

    return Shown(
        {"validator": str(output), **trained.facts()},
        [*trained.scores.tables(), *([threshold_table(threshold)] if threshold else [])],
        noted=(
            *skipped_note(table.skipped, "labelled row"),
            *(() if refusal is None else (f"No threshold: {refusal}",)),
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
) -> Shown:
    """Measure a validator on labelled questions it was not trained on.

    Args:
        validator: prompted:MODEL, adapter:FOLDER, api:STATE.json, a trained file, or mcq=...,freeform=...
        labels: Drafts with expert decisions, a question table with Validation or valid, or pira_qa.csv.
        field: Field of science in the prompts; by default climate science.
        include_trained: Also score items of the training data.
        limit: Number of items to draw at random; by default all are used.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The validator or the labels cannot be read, or it was trained on all of them.
        ModelError: A model cannot be loaded.
    """
    from climassay.generation.validation import ByKind, read_label_set
    from climassay.learning import sample

    labels = Path(labels)
    table = read_label_set(labels)
    with Session.opened(workspace) as session:
        judge = _validator(session, validator, field)
        single = judge.validators.values() if isinstance(judge, ByKind) else [judge]
        records = [getattr(draft, "record", None) for draft in single]
        known = [record.provenance for record in records if record is not None and not include_trained]
        training_ids = {draft_id for provenance in known for draft_id in provenance.trained_on}
        fresh = [example for example in table.drafts if example.draft.id not in training_ids]
        if not fresh:
            raise InputError(f"{judge.name} was trained on all questions of {labels}: measure it on others.")
        trained_on = len(table.drafts) - len(fresh)
        fresh = list(sample(fresh, limit, seed))
        with session.progress.task(f"Asking {judge.name}", len(fresh)) as task:
            scores = judge.score(fresh, seed=seed, on_judged=task.advance)
    source = {"validator": judge.name, "file": str(labels), "sha256": table.sha256, "trained_on": trained_on}
    notes = [*skipped_note(table.skipped, "labelled row")]
    if trained_on:
        notes.append(f"{trained_on} questions left out: it was trained on them.")
    return Shown({**source, **asdict(scores)}, scores.tables(), noted=notes)


def apply_validator(
    validator: str,
    drafts: Path | str,
    output: Path | str | None = None,
    *,
    threshold: float | None = None,
    field: str | None = None,
    workspace: Place = None,
) -> Shown:
    """Decide on drafts; drafts that were rejected before stay rejected.

    Args:
        validator: prompted:MODEL, adapter:FOLDER, api:STATE.json, a trained file, or mcq=...,freeform=...
        drafts: Drafts of climassay (JSON Lines).
        output: File of the drafts with their decisions.
        threshold: Minimum P(valid) to keep a draft; by default the validator's own, else 0.5.
        field: Field of science in the prompts; by default climate science.
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
        judge = _validator(session, validator, field)
        usable = sum(draft.usable for draft in draft_list)
        with session.progress.task(f"Asking {judge.name}", usable) as task:
            decided = validate(draft_list, judge, threshold, on_judged=task.advance)
    if output is not None:
        generation.write_drafts(output, decided)
    new = _newly_decided(draft_list, decided)
    words = [draft.decisions[-1].accepted for draft in new]
    counts = {
        "kept": words.count(True),
        "rejected": words.count(False),
        "not judged": words.count(None) + usable - len(new),
        "rejected or failed before": len(draft_list) - usable,
    }
    rows = [
        {"id": draft.id, "accepted": draft.decisions[-1].accepted, "probability": draft.decisions[-1].score}
        for draft in new
    ]
    cells = [(name, str(count)) for name, count in counts.items()]
    return Shown(
        {"validator": judge.name, "counts": counts, "decisions": rows},
        (Table.of(f"Decisions of {judge.name}", ("decision", "questions"), cells),),
        rows,
        noted=() if output is None else (f"Written to {output}.",),
    )


def show_validator(validator: Path | str) -> Shown:
    """Show a trained validator's data, figures and threshold, without loading its model.

    Args:
        validator: A trained validator: its file, adapter folder or state file.

    Raises:
        InputError: The file is not a trained validator.
    """
    from climassay.generation.validation import read_training_record
    from climassay.generation.validation.labels import threshold_table

    validator = Path(validator)
    record = read_training_record(validator)
    source = provenance_data(record.provenance)
    facts = {**source.pop("settings"), **source}
    rows = [(name.replace("_", " "), _words(value)) for name, value in facts.items() if value not in ("", (), None)]
    threshold = [] if record.threshold is None else [threshold_table(record.threshold)]
    data = {"validator": str(validator), **facts, "threshold": record.threshold}
    return Shown(data, [Table.of(str(validator), ("", ""), rows, left=2), *threshold])


def _validator(session: Session, name: str, field: str | None) -> "Validator":
    from climassay.generation.validation import load_validator

    prompts = session.options.prompts
    return load_validator(name, load=session.load, prompts=prompts, subject=_subject(field), store=session.activations)


def _newly_decided(before: "Sequence[Draft]", after: "Sequence[Draft]") -> "list[Draft]":
    return [new for old, new in zip(before, after, strict=True) if len(new.decisions) > len(old.decisions)]


def _server(model: str, base_url: str | None) -> tuple[str | None, str]:
    """Return the server address and the model name for a fine-tuning job."""
    provider, _, name = model.partition(":")
    if not is_served(model):
        raise InputError(f"A fine-tuning job needs a server's model: write openai:NAME, not {model}.")
    if provider == OPENAI:
        return base_url, model
    # Found again by its address, to which the provider's key is bound.
    return find_server(provider, base_url).base_url, f"{OPENAI}:{name}"


def _subject(field: str | None) -> "Subject":
    return generation.Subject() if field is None else generation.Subject(field=field)


def _words(value: Any) -> str:
    """Format a value for display; lists and mappings are joined by commas."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(count)}" for name, count in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# ------------------------------------------------------------------------------------------------------------- maskers


def apply_masker(
    masker: str,
    drafts: Path | str,
    output: Path | str,
    *,
    model: str | None = None,
    glossary: Path | str | None = None,
    workspace: Place = None,
) -> Shown:
    """Choose a term for every accepted cloze statement without one.

    Args:
        masker: statistics or prompted:MODEL.
        drafts: Drafts (JSONL).
        output: File of the drafts with their terms.
        model: Model for the masker 'prompted': local:NAME or openai:NAME.
        glossary: File of preferred terms of the field, one per line.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The drafts or the masker cannot be read, or the file cannot be written.
        ModelError: A model cannot be loaded.
    """
    from climassay.generation.masking import mask, open_masker
    from climassay.generation.terms import read_glossary

    drafts, output = Path(drafts), Path(output)
    glossary = None if glossary is None else Path(glossary)
    before = list(generation.read_drafts(drafts))
    if not before:
        raise InputError(f"{drafts} holds no draft: there is nothing to mask.")
    with Session.opened(workspace) as session:
        chooser = open_masker(
            masker,
            model=None if model is None else session.load(model),
            glossary=() if glossary is None else read_glossary(glossary),
            prompts=session.options.prompts,
            load=session.load,
        )
        after = mask(before, chooser)
    generation.write_drafts(output, after)
    new = [draft.decisions[-1].accepted for draft in _newly_decided(before, after)]
    counts = {"masked": new.count(True), "no_term": new.count(False), "failed": new.count(None)}
    words = f"{counts['masked']} masked, {counts['no_term']} without a term, {counts['failed']} failed"
    return Shown({"drafts": output, **counts}, printed_lines=(f"{output}: {words}.",))
