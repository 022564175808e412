"""Training a validator on what experts have said so far, and putting what waits into its order."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from climassay.generation.annotation.store import AnnotationStore
from climassay.generation.annotation.tables import items, queues
from climassay.generation.annotation.transactions import LockedQueue, enqueue_new_drafts
from climassay.generation.dataset_store import DatasetStore, drafts_before_experts
from climassay.records import Records
from climassay.records.store import canonical_json
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.generation.validation import LabelSet, Reader

OnProgress = Callable[[int, int, str], None]
"""(done, total, what is being done)."""
FOLDER = "validators"
"""Folder of the workspace with one file per training."""
AT_ONCE = 100
"""Items that are judged before their probabilities are stored."""


@dataclass(frozen=True, slots=True)
class Retraining:
    """What a training came to."""

    validator: Path
    """Its file, as ``climassay generate validate show`` and ``apply`` take it."""
    method: str
    """``features`` or ``probe``."""
    labels: int
    """Drafts that experts have decided on."""
    invalid: int
    cross_validated: dict[str, float]
    """AUROC with its interval, Brier scores, the constant's; see :attr:`climassay.learning.Evaluation.figures`."""
    judged: int
    """Items that were judged by this call."""
    trained: bool
    """Whether it was trained now; False where an earlier call had done so on the same labels."""


def retrain(
    records: Records,
    workspace: Workspace,
    dataset: str,
    *,
    reader: "Reader | None" = None,
    precision: float | None = None,
    folds: int = 5,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> Retraining:
    """Train a validator on the settled labels of a dataset, judge what waits, and put it into the new order.

    A call that was interrupted is finished by calling it again: the validator's file is kept under the hash of its
    labels and settings, and probabilities are stored as they come.

    Args:
        records: Open records.
        workspace: Keeps the validator's file, in the folder ``validators``.
        dataset: Its name.
        reader: What the validator reads of drafts; by default the features of the bundled encoder.
        precision: Wanted share of valid ones among those kept; None chooses no threshold.
        folds: Number of cross-validation folds.
        seed: Seed of the folds.
        progress: Called as work goes on.

    Raises:
        InputError: There is no such dataset, or labels are too few or of one kind only.
        ModelError: The encoder or the model cannot work.
    """
    from climassay.generation.validation import TextReader, TrainedValidator, train_validator
    from climassay.models.encoders import load_encoder

    report = progress or (lambda _done, _total, _message: None)
    AnnotationStore(records)  # makes the tables where they are missing
    enqueue_new_drafts(records.database, dataset)
    with records.database.read() as connection:
        acts = int(connection.execute(sa.select(queues.c.acts).where(queues.c.dataset == dataset)).scalar_one())
    labels = settled_labels(records, dataset)
    if reader is None:
        reader = TextReader(load_encoder())
    source = reader.provenance
    method = source.settings["kind"]
    settings = {
        "method": method,
        "fingerprint": source.encoder_fingerprint or source.fingerprint,
        "precision": precision,
        "folds": folds,
        "seed": seed,
    }
    digest = hashlib.sha256(canonical_json([labels.sha256, settings]).encode()).hexdigest()
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", dataset)[:60]
    file = workspace.root / FOLDER / f"{plain}-{method}-{digest[:12]}.safetensors"
    trained = not file.is_file()
    if trained:
        done = Counter[str]()

        def counted(message: str, total: int, count: int) -> None:
            done[message] += count
            report(min(done[message], total), total, message)

        training = train_validator(
            labels,
            reader,
            precision=precision,
            folds=folds,
            seed=seed,
            on_read=partial(counted, "Reading labelled questions", len(labels.drafts)),
            on_fold=partial(counted, "Cross-validating", folds),
        )
        training.validator.save(file)
    validator = TrainedValidator.load(file).with_reader(reader)
    # Every item that is not settled gets the validator's P(valid).
    name = digest[:12]
    query = (
        sa.select(items.c.draft)
        .where(items.c.dataset == dataset, items.c.state.in_(("open", "conflict")))
        .where(sa.or_(items.c.judged_by.is_(None), items.c.judged_by != name))
        .order_by(items.c.draft)
    )
    with records.database.read() as connection:
        waiting = list(connection.execute(query).scalars())
    change = items.update().where(items.c.dataset == dataset, items.c.draft == sa.bindparam("judged"))
    change = change.values(p_valid=sa.bindparam("given"), judged_by=name)
    for start in range(0, len(waiting), AT_ONCE):
        chunk = waiting[start : start + AT_ONCE]
        with records.database.read() as connection:
            drafts = drafts_before_experts(connection, dataset, chunk)
        given = validator.judge([drafts[one] for one in chunk])
        rows = [{"judged": draft, "given": value} for draft, value in zip(chunk, given, strict=True)]
        records.database.write(lambda connection, rows=rows: connection.execute(change, rows))  # type: ignore[misc]
        report(start + len(chunk), len(waiting), "Judging what waits")

    def work(connection: sa.Connection) -> None:
        """Remember the training, and order the queue by it."""
        queue = LockedQueue(records.database, connection, dataset)
        queue.update(trained_at=acts, validator=file.name)
        queue.order()

    records.database.write(work)
    report(1, 1, "Done")
    made = validator.learned.provenance
    return Retraining(file, method, made.items, made.settings["invalid"], made.measured, len(waiting), trained)


def settled_labels(records: Records, dataset: str) -> "LabelSet":
    """Drafts of a dataset on which experts have decided, with their decision as the label.

    Raises:
        InputError: There is no such dataset, or too few labels of either kind.
    """
    from climassay.generation.validation.labels import LabelSet, check_labels, label_of

    labelled, unlabelled = [], 0
    for draft in DatasetStore(records).drafts(dataset):
        found = label_of(draft)
        if found is None:
            unlabelled += 1
        else:
            labelled.append(found)
    check_labels([one.valid for one in labelled])
    content = [[one.draft.id, one.valid, asdict(one.draft.wording)] for one in labelled]
    digest = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return LabelSet(f"labels of {dataset}", tuple(labelled), unlabelled, (), digest)
