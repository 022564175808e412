"""Training a validator on what experts have said so far, and putting what waits into its order."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.item_queue import lock_queue, look_at_new_drafts, order_items
from climassay.generation.annotation.reader import AnnotationReader
from climassay.generation.annotation.rows import settings_from
from climassay.generation.annotation.tables import items, queues
from climassay.generation.dataset_store import DatasetStore, drafts_before_experts
from climassay.generation.draft import Draft
from climassay.generation.validation.labels import LabelSet, label_of
from climassay.learning import ActivationStore
from climassay.models.contract import Encoder, OpenWeights
from climassay.records import Records
from climassay.records.database import Database
from climassay.records.identity import canonical_json
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.generation.validation import Validator, ValidatorHead

Method = Literal["features", "probe"]
OnProgress = Callable[[int, int, str], None]
"""(done, total, what is being done)."""
FOLDER = "validators"
"""Of the workspace; one file a training."""
AT_ONCE = 100
"""Items that are judged before their probabilities are stored."""


@dataclass(frozen=True, slots=True)
class Retraining:
    """What a training came to."""

    validator: Path
    """Its file, as ``climassay validator show`` and ``apply`` take it."""
    method: Method
    labels: int
    """Drafts that experts have decided on."""
    invalid: int
    cross_validated: tuple[tuple[str, float], ...]
    """AUROC with its interval, Brier scores and the constant baseline; see :class:`ValidatorHead`."""
    judged: int
    """Items that were judged by this call."""
    trained: bool
    """Whether it was trained now; False where an earlier call had done so on the same labels."""


def retrain(
    records: Records,
    workspace: Workspace,
    dataset: str,
    *,
    method: Method = "features",
    encoder: Encoder | None = None,
    model: OpenWeights | None = None,
    activations: ActivationStore | None = None,
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
        method: ``features`` of the text, or a ``probe`` on a model's hidden states.
        encoder: For ``features``; the bundled one by default.
        model: For ``probe``.
        activations: Where a probe's hidden states are kept.
        precision: Wanted share of valid ones among those kept; None chooses no threshold.
        folds: Of the cross-validation.
        seed: Of the folds.
        progress: Called as work goes on.

    Raises:
        InputError: There is no such dataset, labels are too few or of one kind only, or a probe has no model.
        ModelError: The encoder or the model cannot work.
    """
    tell = progress or (lambda _done, _total, _message: None)
    AnnotationReader(records)  # makes the tables where they are missing
    look_at_new_drafts(records.database, dataset)
    acts = _acts(records.database, dataset)
    labels = settled_labels(records, dataset)
    reader: Encoder | OpenWeights
    if method == "probe":
        if model is None:
            raise InputError("A probe reads the hidden states of a model: give it one.")
        reader = model
    else:
        reader = encoder or _bundled_encoder()
    settings = {
        "method": method,
        "fingerprint": reader.fingerprint,
        "precision": precision,
        "folds": folds,
        "seed": seed,
    }
    digest = hashlib.sha256(canonical_json([labels.sha256, settings]).encode()).hexdigest()
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", dataset)[:60]
    file = workspace.root / FOLDER / f"{plain}-{method}-{digest[:12]}.safetensors"
    trained = not file.is_file()
    if trained:
        _train(labels, reader, file, activations, precision, folds, seed, tell)
    head, validator = _opened(file, reader, activations)
    judged = _judge(records.database, dataset, validator, digest[:12], tell)
    _finish(records.database, dataset, acts, file)
    tell(1, 1, "Done")
    return Retraining(
        file, method, head.source.labels, head.source.invalid, head.source.cross_validated, judged, trained
    )


def settled_labels(records: Records, dataset: str) -> LabelSet:
    """Drafts of a dataset on which experts have decided, with their decision as the label.

    Raises:
        InputError: There is no such dataset, or too few labels of either kind.
    """
    from climassay.generation.validation.calibrator import check_labels

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


def _bundled_encoder() -> Encoder:
    from climassay.models.encoder import load_encoder

    return load_encoder()


def _acts(database: Database, dataset: str) -> int:
    with database.read() as connection:
        query = sa.select(queues.c.acts).where(queues.c.dataset == dataset)
        return int(connection.execute(query).scalar_one())


def _train(
    labels: LabelSet,
    reader: Encoder | OpenWeights,
    file: Path,
    activations: ActivationStore | None,
    precision: float | None,
    folds: int,
    seed: int,
    tell: OnProgress,
) -> None:
    from climassay.generation.validation import save_head, train_features, train_probe

    on_read = _Counted(tell, len(labels.drafts), "Reading labelled questions")
    on_fold = _Counted(tell, folds, "Cross-validating")
    if isinstance(reader, OpenWeights):
        trained = train_probe(
            labels,
            reader,
            store=activations,
            precision=precision,
            folds=folds,
            seed=seed,
            on_read=on_read,
            on_fold=on_fold,
        )
    else:
        trained = train_features(
            labels, reader, precision=precision, folds=folds, seed=seed, on_read=on_read, on_fold=on_fold
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    save_head(trained.head, file)


class _Counted:
    """Turns steps into progress."""

    def __init__(self, tell: OnProgress, total: int, message: str) -> None:
        self._tell, self._total, self._message, self._done = tell, total, message, 0

    def __call__(self, count: int) -> None:
        self._done += count
        self._tell(min(self._done, self._total), self._total, self._message)


def _opened(
    file: Path, reader: Encoder | OpenWeights, activations: ActivationStore | None
) -> "tuple[ValidatorHead, Validator]":
    from climassay.generation.validation import FeatureValidator, ProbeValidator, load_head

    head = load_head(file)
    if isinstance(reader, OpenWeights):
        return head, ProbeValidator(head, reader, store=activations, name=file.name)
    return head, FeatureValidator(head, reader, name=file.name)


def _judge(database: Database, dataset: str, validator: "Validator", name: str, tell: OnProgress) -> int:
    """Give every item that is not settled the validator's P(valid); how many were judged now."""
    waiting = _waiting(database, dataset, name)
    counted = _Counted(tell, len(waiting), "Judging what waits")
    change = items.update().where(items.c.dataset == dataset, items.c.draft == sa.bindparam("judged"))
    change = change.values(p_valid=sa.bindparam("given"), judged_by=name)
    for chunk in _chunks(waiting):
        with database.read() as connection:
            drafts = drafts_before_experts(connection, dataset, chunk)
        known: list[Draft] = [drafts[one] for one in chunk]
        given = validator.judge(known, on_judged=None)
        rows = [{"judged": draft, "given": value} for draft, value in zip(chunk, given, strict=True)]
        database.write(lambda connection, rows=rows: connection.execute(change, rows))  # type: ignore[misc]
        counted(len(chunk))
    return len(waiting)


def _waiting(database: Database, dataset: str, name: str) -> list[str]:
    query = (
        sa.select(items.c.draft)
        .where(items.c.dataset == dataset, items.c.state.in_(("open", "conflict")))
        .where(sa.or_(items.c.judged_by.is_(None), items.c.judged_by != name))
        .order_by(items.c.draft)
    )
    with database.read() as connection:
        return list(connection.execute(query).scalars())


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE))


def _finish(database: Database, dataset: str, acts: int, file: Path) -> None:
    """Remember the training, and order the queue by it."""

    def work(connection: sa.Connection) -> None:
        queue = lock_queue(database, connection, dataset)
        ours = queues.c.dataset == dataset
        connection.execute(queues.update().where(ours).values(trained_at=acts, validator=file.name))
        order_items(connection, dataset, settings_from(queue.settings))

    database.write(work)
