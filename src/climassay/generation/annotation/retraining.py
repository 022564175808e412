"""Train a validator on the experts' labels of a dataset, and reorder the queue by the validator's confidence."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from climassay.generation.annotation.locked_queue import LockedQueue, enqueue_new_drafts
from climassay.generation.annotation.store import AnnotationStore
from climassay.generation.annotation.tables import items, queues
from climassay.generation.dataset_store import DatasetStore, drafts_before_experts
from climassay.records import Records
from climassay.records.identity import canonical_json
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.generation.validation import FeatureReader, LabelSet, TrainedValidator

OnProgress = Callable[[int, int, str], None]
"""Callback whose arguments are the number of finished steps, the total number, and a description of the current phase.
"""
FOLDER = "validators"
"""Folder of the workspace that holds the trained validators."""
BATCH_SIZE = 100
"""Number of items whose probabilities are stored in one transaction."""


@dataclass(frozen=True, slots=True)
class Retraining:
    """Result of training a validator on a dataset's labels."""

    validator: Path
    """File of the trained validator; ``climassay generate validate show`` and ``apply`` accept it."""
    method: str
    """``features`` or ``probe``."""
    labels: int
    """Number of drafts that experts have decided on."""
    invalid: int
    cross_validated: dict[str, float]
    """Cross-validated scores by name, such as AUROC and Brier; see :attr:`climassay.learning.HeldOutScores.figures`."""
    judged: int
    """Number of items that this call scored with the validator."""
    trained: bool
    """Whether this call trained the validator; False if an earlier call trained it on the same labels."""


def retrain(
    records: Records,
    workspace: Workspace,
    dataset: str,
    *,
    reader: "FeatureReader | None" = None,
    precision: float | None = None,
    folds: int = 5,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> Retraining:
    """Train a validator on the labels of decided items, compute P(valid) of the other items, and reorder the queue.

    Calling it again completes an interrupted call: the validator's file is named after the hash of its labels and
    settings, and probabilities are stored in batches.

    Args:
        records: Records, already open.
        workspace: Workspace whose folder ``validators`` gets the validator's file.
        dataset: Name of the dataset.
        reader: Reader that computes the validator's features; by default it uses the bundled encoder.
        precision: Requested precision: the proportion of valid questions among the accepted ones. None chooses no
            threshold.
        folds: Number of cross-validation folds.
        seed: Seed of the folds.
        progress: Callback for progress.

    Raises:
        InputError: The dataset does not exist, or labels are too few or all of one class.
        ModelError: The encoder or the model fails.
    """
    from climassay.generation.validation import TextReader, TrainedValidator, train_validator
    from climassay.models.encoders import load_encoder

    report = progress or (lambda _done, _total, _phase: None)
    AnnotationStore(records)  # creates missing tables
    enqueue_new_drafts(records.database, dataset)
    last_number = int(records.database.scalar(sa.select(queues.c.last_number).where(queues.c.dataset == dataset)))
    labels = settled_labels(records, dataset)
    if reader is None:
        reader = TextReader(load_encoder())
    source = reader.provenance
    method = source.settings["kind"]
    fingerprint = source.encoder_fingerprint or source.fingerprint
    settings = {"method": method, "fingerprint": fingerprint, "precision": precision, "folds": folds, "seed": seed}
    digest = hashlib.sha256(canonical_json([labels.sha256, settings]).encode()).hexdigest()[:12]
    file_stem = re.sub(r"[^A-Za-z0-9_-]+", "-", dataset)[:60]
    file = workspace.root / FOLDER / f"{file_stem}-{method}-{digest}.safetensors"
    needs_training = not file.is_file()
    if needs_training:
        counts = Counter[str]()

        def count(phase: str, total: int, n_done: int) -> None:
            counts[phase] += n_done
            report(min(counts[phase], total), total, phase)

        training = train_validator(
            labels,
            reader,
            precision=precision,
            folds=folds,
            seed=seed,
            on_read=partial(count, "Reading labelled questions", len(labels.drafts)),
            on_fold=partial(count, "Cross-validating", folds),
        )
        training.validator.save(file)
    validator = TrainedValidator.load(file).with_reader(reader)
    n_judged = _judge_unsettled(records, dataset, validator, digest, report)

    def reorder(connection: sa.Connection) -> None:
        queue = LockedQueue(records.database, connection, dataset)
        queue.update(trained_number=last_number, validator=file.name)
        queue.order()

    records.database.write(reorder)
    report(1, 1, "Done")
    provenance = validator.record.provenance
    n_invalid = provenance.settings["invalid"]
    return Retraining(file, method, provenance.items, n_invalid, provenance.measured, n_judged, needs_training)


def _judge_unsettled(
    records: Records, dataset: str, validator: "TrainedValidator", digest: str, report: OnProgress
) -> int:
    """Compute and store P(valid) for the items that this validator has not scored and that have no final label.

    Return the number of these items.
    """
    query = (
        sa.select(items.c.draft)
        .where(items.c.dataset == dataset, items.c.state.in_(("open", "conflict")))
        .where(sa.or_(items.c.judged_by.is_(None), items.c.judged_by != digest))
        .order_by(items.c.draft)
    )
    with records.database.read() as connection:
        draft_ids = list(connection.execute(query).scalars())
    update = items.update().where(items.c.dataset == dataset, items.c.draft == sa.bindparam("judged"))
    update = update.values(p_valid=sa.bindparam("new_p_valid"), judged_by=digest)

    def store(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
        connection.execute(update, rows)

    for start in range(0, len(draft_ids), BATCH_SIZE):
        batch = draft_ids[start : start + BATCH_SIZE]
        with records.database.read() as connection:
            drafts_by_id = drafts_before_experts(connection, dataset, batch)
        probabilities = validator.judge([drafts_by_id[draft] for draft in batch])
        rows = [{"judged": draft, "new_p_valid": p_valid} for draft, p_valid in zip(batch, probabilities, strict=True)]
        records.database.write(partial(store, rows=rows))
        report(start + len(batch), len(draft_ids), "Judging the unsettled items")
    return len(draft_ids)


def settled_labels(records: Records, dataset: str) -> "LabelSet":
    """Return the drafts on which experts have decided, each with the decision as its label.

    Raises:
        InputError: The dataset does not exist, or too few labels of either class.
    """
    from climassay.generation.validation.labels import LabelSet, check_labels, label_by_experts

    labelled_drafts, n_unlabelled = [], 0
    for draft in DatasetStore(records).drafts(dataset):
        labelled_draft = label_by_experts(draft)
        if labelled_draft is None:
            n_unlabelled += 1
        else:
            labelled_drafts.append(labelled_draft)
    check_labels([example.valid for example in labelled_drafts])
    content = [[example.draft.id, example.valid, asdict(example.draft.wording)] for example in labelled_drafts]
    digest = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return LabelSet(f"labels of {dataset}", tuple(labelled_drafts), n_unlabelled, (), digest)
