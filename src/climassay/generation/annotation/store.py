"""The annotations of a records database: what waits, labelling it, how far it has come, and retraining on it."""

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial, wraps
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.agreement import Agreement, AnnotatorStatistics, agreement_of, statistics_of
from climassay.generation.annotation.labels import (
    AnnotationSettings,
    Comment,
    FoundItem,
    ImportedLabel,
    ImportedSkip,
    Item,
    ItemFilter,
    Label,
    Progress,
    QueueSummary,
    check_label,
    check_name,
)
from climassay.generation.annotation.transactions import (
    OUT,
    LockedQueue,
    NotWaitingError,
    annotations,
    comments,
    count_items,
    current,
    enqueue_new_drafts,
    item_names,
    items,
    items_of,
    items_with_labels,
    label_from,
    labels_by_draft,
    metadata,
    queues,
    skips,
    waiting_item,
)
from climassay.generation.dataset_store import DatasetStore, drafts, drafts_before_experts
from climassay.generation.draft import Wording
from climassay.questions import KINDS
from climassay.records import Records
from climassay.records.database import chunks, record_of
from climassay.records.store import canonical_json
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.generation.validation import LabelSet, Reader


P = ParamSpec("P")
T = TypeVar("T")
_QUEUED = (
    sa.select(items.c.draft)
    .join(drafts, sa.and_(drafts.c.dataset == items.c.dataset, drafts.c.id == items.c.draft))
    .where(items.c.state != OUT)
)
"""Drafts that are annotated or wait for it."""


def _transaction(
    method: Callable[Concatenate[LockedQueue, P], T], *, enqueue: bool = False
) -> Callable[Concatenate["AnnotationStore", str, P], T]:
    """A method of the store that takes the name of a dataset and does all of a queue's method in one transaction.

    ``enqueue`` first takes in what the pipeline has written meanwhile; else that is done where an item is missing.
    """

    @wraps(method)
    def call(self: "AnnotationStore", dataset: str, /, *given: P.args, **named: P.kwargs) -> T:
        if enqueue:
            enqueue_new_drafts(self._database, dataset)
        return self._looking_twice(dataset, lambda: self._write(dataset, lambda queue: method(queue, *given, **named)))

    return call


class AnnotationStore:
    """What experts say about the drafts of the datasets in one records database.

    One store may be used by many threads at once, and a database by many processes.

    Args:
        records: The open records.
    """

    def __init__(self, records: Records) -> None:
        self._database = records.database
        self._datasets = DatasetStore(records)
        self._database.create_tables(metadata)
        # SQLite has one writer at a time and lets the others poll; within a process waiting in a row is fairer.
        self._turn: AbstractContextManager[Any] = threading.Lock() if self._database.is_sqlite else nullcontext()

    def _write(self, dataset: str, work: Callable[[LockedQueue], T]) -> T:
        with self._turn:
            return self._database.write(lambda connection: work(LockedQueue(self._database, connection, dataset)))

    def _looking_twice(self, dataset: str, work: Callable[[], T]) -> T:
        """Do what needs an item; where it is missing, look first whether the pipeline has written it meanwhile."""
        try:
            return work()
        except NotWaitingError:
            enqueue_new_drafts(self._database, dataset)
            return work()

    def settings(self, dataset: str) -> AnnotationSettings:
        """How a dataset is annotated; the defaults where nothing was set.

        Raises:
            InputError: There is no such dataset.
        """
        text = self._database.scalar(sa.select(queues.c.settings).where(queues.c.dataset == dataset))
        if text is not None:
            return AnnotationSettings(**json.loads(text))
        self._datasets.deciding(dataset)
        return AnnotationSettings()

    def queues(self) -> list[QueueSummary]:
        """The datasets, the newest first, also those without an item to annotate."""
        results = []
        for one in self._datasets.list():
            settings = self.settings(one.name)
            enqueue_new_drafts(self._database, one.name)
            with self._database.read() as connection:
                counts = count_items(connection, one.name)
            open_, settled, conflicts = (counts.get(state, 0) for state in ("open", "settled", "conflict"))
            total = open_ + settled + conflicts
            results.append(QueueSummary(one.name, total, open_, settled, conflicts, settings.overlap))
        return results

    def item(self, dataset: str, draft: str) -> Item:
        """One item with its labels.

        Raises:
            InputError: The dataset has no such item.
        """

        def look() -> Item:
            with self._database.read() as connection:
                waiting_item(connection, dataset, draft)
                return items_with_labels(connection, dataset, [draft])[0]

        return self._looking_twice(dataset, look)

    def items(self, dataset: str) -> Iterator[Item]:
        """Everything that is annotated or waits for it, in the order of the queue."""
        enqueue_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            names = item_names(connection, dataset)
        for chunk in chunks(names):
            with self._database.read() as connection:
                yield from items_with_labels(connection, dataset, chunk)

    def labels(
        self, dataset: str, *, draft: str | None = None, annotator: str | None = None, current: bool = True
    ) -> list[Label]:
        """Labels in the order in which they were made.

        Args:
            dataset: Name of the dataset.
            draft: Only labels of this draft.
            annotator: Only labels of this annotator.
            current: Leave out withdrawn ones.
        """
        query = sa.select(annotations).where(annotations.c.dataset == dataset).order_by(annotations.c.number)
        query = query.where(annotations.c.withdrawn_at.is_(None)) if current else query
        query = query if draft is None else query.where(annotations.c.draft == draft)
        query = query if annotator is None else query.where(annotations.c.annotator == annotator)
        return [label_from(row) for row in self._database.rows(query)]

    def find(
        self, dataset: str, annotator: str, wanted: ItemFilter, most: int = 25, start: int = 0
    ) -> tuple[list[FoundItem], int]:
        """Items that fit, in the order in which they were generated: a part of them, and how many there are.

        Args:
            dataset: Name of the dataset.
            annotator: Who looks.
            wanted: What they look for.
            most: Items that are given back.
            start: How many come before these.

        Raises:
            InputError: There is no such dataset.
        """
        enqueue_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            labelled = sa.exists().where(
                *current(dataset, annotator=annotator), annotations.c.draft == items.c.draft, ~annotations.c.adjudicates
            )
            skipped = sa.exists().where(
                skips.c.dataset == dataset, skips.c.annotator == annotator, skips.c.draft == items.c.draft
            )
            fitting: dict[str, list[sa.ColumnElement[bool]]] = {
                "": [],
                "todo": [items.c.state == "open", ~labelled, ~skipped],
                "done": [labelled],
                "skipped": [skipped],
                "conflict": [items.c.state == "conflict"],
                "decided": [items.c.state == "settled"],
            }
            query = _QUEUED.where(items.c.dataset == dataset, *fitting[wanted.state]).order_by(drafts.c.ordinal)
            query = query.where(drafts.c.kind == wanted.kind) if wanted.kind else query
            if sought := wanted.text.strip().lower():
                # Databases differ in what they call the same letter: they look for plain letters only, and the rest is
                # done here.
                plain = max(re.findall(r"[0-9a-z ]+", sought), key=len, default="")
                within = drafts.c.body.icontains(plain, autoescape=True)
                names = []
                for name, body in connection.execute(query.add_columns(drafts.c.body).where(within)):
                    wording = json.loads(body)["wording"]
                    texts = (wording["question"], wording["answer"], *wording["options"])
                    names += [name] if any(sought in text.lower() for text in texts) else []
            else:
                names = list(connection.execute(query).scalars())
            shown = names[start : start + most]
            rows, labels = items_of(connection, dataset, shown), labels_by_draft(connection, dataset, shown)
            before = drafts_before_experts(connection, dataset, shown)
            passed = sa.select(skips.c.draft).where(skips.c.dataset == dataset, skips.c.annotator == annotator)
            theirs = set(connection.execute(passed).scalars())
            said = sa.select(comments.c.draft, sa.func.count()).where(comments.c.dataset == dataset)
            counts = {str(name): int(count) for name, count in connection.execute(said.group_by(comments.c.draft))}
        own = {
            name: next((one for one in given if one.annotator == annotator and not one.adjudicates), None)
            for name, given in labels.items()
        }
        results = [
            FoundItem(before[name], rows[name].state, own.get(name), name in theirs, counts.get(name, 0))
            for name in shown
        ]
        return results, len(names)

    def kinds(self, dataset: str) -> list[str]:
        """Kinds of questions that a dataset has in its queue, in the order of tables."""
        query = _QUEUED.with_only_columns(drafts.c.kind).where(items.c.dataset == dataset).distinct()
        results = {row.kind for row in self._database.rows(query)}
        return [kind for kind in KINDS if kind in results]

    def history(
        self, dataset: str, annotator: str, most: int = 20, *, after: str | None = None, decided: bool = False
    ) -> list[Label]:
        """The last labels of an annotator that still count, the newest first.

        Args:
            dataset: Name of the dataset.
            annotator: Who gave them.
            most: Labels that are given back.
            after: Key of a label: only what was said before it.
            decided: Only labels of items that have an outcome.
        """
        query = sa.select(annotations).where(*current(dataset, annotator=annotator))
        if after is not None:
            key = sa.select(annotations.c.number).where(annotations.c.dataset == dataset, annotations.c.key == after)
            query = query.where(annotations.c.number < key.scalar_subquery())
        if decided:
            settled = sa.select(items.c.draft).where(items.c.dataset == dataset, items.c.state == "settled")
            query = query.where(annotations.c.draft.in_(settled))
        rows = self._database.rows(query.order_by(annotations.c.number.desc()).limit(most))
        return [label_from(row) for row in rows]

    def comments(self, dataset: str, draft: str | None = None) -> list[Comment]:
        """Comments on a draft, or on all, in the order in which they were made."""
        query = sa.select(comments).where(comments.c.dataset == dataset)
        query = query if draft is None else query.where(comments.c.draft == draft)
        rows = self._database.rows(query.order_by(comments.c.made_at, comments.c.key))
        return [record_of(Comment, row) for row in rows]

    def skipped(self, dataset: str) -> list[ImportedSkip]:
        """Items that annotators skipped, in the order in which they did."""
        query = sa.select(skips).where(skips.c.dataset == dataset).order_by(skips.c.number)
        return [record_of(ImportedSkip, row) for row in self._database.rows(query)]

    def progress(self, dataset: str, annotator: str | None = None) -> Progress:
        """How far a dataset has come, and one annotator in it.

        Raises:
            InputError: There is no such dataset.
        """
        enqueue_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            counts = count_items(connection, dataset)
            by = sa.select(annotations.c.annotator, sa.func.count(), sa.func.sum(annotations.c.seconds))
            by = by.where(*current(dataset)).group_by(annotations.c.annotator)
            labelled = connection.execute(by.where(~annotations.c.adjudicates))
            totals = {name: (int(count), float(seconds or 0)) for name, count, seconds in labelled}
            decisions = {name: int(count) for name, count, _ in connection.execute(by.where(annotations.c.adjudicates))}
            mine, seconds = 0, sum(spent for _, spent in totals.values())
            left, skipped = counts.get("open", 0), 0
            if annotator is not None:
                mine, seconds = totals.get(annotator, (0, 0.0))
                passed = sa.select(skips.c.draft).where(skips.c.dataset == dataset, skips.c.annotator == annotator)
                skipped = len(connection.execute(passed).all())
                own = sa.select(annotations.c.draft).where(*current(dataset, annotator=annotator))
                done = own.union(passed).subquery()
                touched = (
                    sa.select(sa.func.count())
                    .select_from(done.join(items, sa.and_(items.c.dataset == dataset, items.c.draft == done.c.draft)))
                    .where(items.c.state == "open")
                )
                left -= int(connection.execute(touched).scalar_one())
        return Progress(
            items=sum(counts.values()) - counts.get(OUT, 0),
            left_out=counts.get(OUT, 0),
            settled=counts.get("settled", 0),
            conflicts=counts.get("conflict", 0),
            labelled_by={name: totals[name][0] for name in sorted(totals, key=lambda name: (-totals[name][0], name))},
            mine=mine,
            adjudicated=decisions.get(annotator or "", 0),
            skipped=skipped,
            left_for_me=left,
            seconds=seconds,
        )

    def conflicts(self, dataset: str, most: int | None = None, start: int = 0) -> list[Item]:
        """Items whose labels do not agree, in the queue's order.

        Args:
            dataset: Name of the dataset.
            most: Items that are given back; None for all.
            start: How many come before these.
        """
        with self._database.read() as connection:
            names = item_names(connection, dataset, "conflict")[start:]
            return items_with_labels(connection, dataset, names[:most])

    def next_conflict(self, dataset: str, after: str) -> str | None:
        """The conflict after an item in the queue's order, at its end the first again; None where there is no other.

        Raises:
            InputError: The dataset has no such item.
        """
        with self._database.read() as connection:
            here = waiting_item(connection, dataset, after)
            passed = sa.or_(
                items.c.position < here.position,
                sa.and_(items.c.position == here.position, items.c.draft <= here.draft),
            )
            query = sa.select(items.c.draft).where(
                items.c.dataset == dataset, items.c.state == "conflict", items.c.draft != after
            )
            order = (sa.case((passed, 1), else_=0), items.c.position, items.c.draft)
            return connection.execute(query.order_by(*order).limit(1)).scalar()

    def revision(self, dataset: str) -> tuple[object, ...]:
        """Another value once a label, a skip or an outcome has come, changed or gone."""
        said, passed, decided = annotations.c, skips.c, items.c
        counted = sa.func.count
        asked = (
            sa.select(counted(), counted(said.withdrawn_at), sa.func.max(said.number)).where(said.dataset == dataset),
            sa.select(counted(), sa.func.max(passed.number)).where(passed.dataset == dataset),
            sa.select(counted(), sa.func.max(decided.settled_at)).where(
                decided.dataset == dataset, decided.state == "settled"
            ),
        )
        with self._database.read() as connection:
            return tuple(value for query in asked for value in connection.execute(query).one())

    def agreement(self, dataset: str) -> Agreement:
        """How far annotators agree on what is valid, before any adjudication."""
        return agreement_of(self.labels(dataset))

    def annotators(self, dataset: str) -> list[AnnotatorStatistics]:
        """What each annotator did, the busiest first."""
        return statistics_of(self.labels(dataset), [one.annotator for one in self.skipped(dataset)])

    def validator(self, dataset: str) -> str | None:
        """File name of the validator that was last trained on the labels, in the workspace's folder ``validators``."""
        result: str | None = self._database.scalar(sa.select(queues.c.validator).where(queues.c.dataset == dataset))
        return result

    def new_labels(self, dataset: str) -> int:
        """Items that were settled, or settled otherwise, since a validator was last trained."""
        query = (
            sa.select(sa.func.count())
            .select_from(items.join(queues, queues.c.dataset == items.c.dataset))
            .where(items.c.dataset == dataset, items.c.state == "settled", items.c.settled_at > queues.c.trained_at)
        )
        return int(self._database.scalar(query))

    _next = _transaction(LockedQueue.next_item, enqueue=True)

    def next(self, dataset: str, annotator: str, after: str | None = None) -> Item | None:
        """The item that an annotator should label now: the least certain one that still wants a label.

        It is kept for them for :attr:`AnnotationSettings.lease_seconds`, and comes again until they label or skip it;
        no more than ``overlap`` people have it or have labelled it at once.

        Args:
            dataset: Name of the dataset.
            annotator: Who asks.
            after: An item to pass over: the one on the screen, to have the following one ready.

        Returns:
            None where nothing is left for this annotator.

        Raises:
            InputError: There is no such dataset.
        """
        check_name(annotator, "The name of an annotator")
        draft = self._next(dataset, annotator, after)
        if draft is None:
            return None
        with self._database.read() as connection:
            return items_with_labels(connection, dataset, [draft])[0]

    def label(
        self,
        dataset: str,
        draft: str,
        annotator: str,
        *,
        accepted: bool,
        reasons: Sequence[str] = (),
        remark: str = "",
        wording: Wording | None = None,
        seconds: float | None = None,
        key: str,
        adjudicates: bool = False,
    ) -> bool:
        """Store what an annotator says about an item, once for each key, and settle the item where labels suffice.

        A later label of the same annotator takes the place of the earlier one. All of it is one transaction.

        Args:
            dataset: Name of the dataset.
            draft: Id of the item's draft.
            annotator: Who says it.
            accepted: Whether the question is valid, after the edit if there is one.
            reasons: Why it is not, the main one first: names of :data:`ANNOTATION_REASONS`.
            remark: Any text; needed with the reason ``other``.
            wording: The whole wording after an edit; of a cloze statement with the chosen term. Only where accepted.
            seconds: Time spent.
            key: Made by who sends the label, and the same whenever it is sent again.
            adjudicates: Decide the item over its labels: a conflict, or one that is settled wrongly. The latest
                adjudication stands; an item that still waits for labels is refused.

        Returns:
            Whether it was stored now; False where the key was stored before.

        Raises:
            InputError: There is no such item, it is in other hands, or this cannot be said about it.
        """
        check_name(annotator, "The name of an annotator")
        check_name(key, "The key of a label")
        given = ImportedLabel(
            draft, annotator, accepted, tuple(reasons), remark, wording, seconds, time(), None, adjudicates, key
        )

        def attempt() -> bool:
            # What waits never changes its words: it can be read before others have to wait.
            with self._database.read() as connection:
                before = drafts_before_experts(connection, dataset, [draft])

            def work(queue: LockedQueue) -> bool:
                stored = sa.select(annotations).where(annotations.c.dataset == dataset, annotations.c.key == key)
                known = queue.connection.execute(stored).first()
                if known is not None:
                    if (known.draft, known.annotator, known.adjudicates) != (draft, annotator, adjudicates):
                        raise InputError(f"The key {key} belongs to another label: use a new key for each label.")
                    return False
                item = waiting_item(queue.connection, dataset, draft)
                checked = check_label(before[draft], given)
                if not adjudicates:
                    queue.check_turn(item, annotator)
                elif item.state == "open":
                    raise InputError(f"The item {draft} is still waiting for labels: there is nothing to decide yet.")
                queue.add_label(record_of(Label, checked, dataset=dataset), item, before[draft])
                return True

            return self._write(dataset, work)

        return self._looking_twice(dataset, attempt)

    def adjudicate(self, dataset: str, draft: str, annotator: str, **said: Any) -> bool:
        """Decide an item over its labels: :meth:`label` of an adjudicator."""
        return self.label(dataset, draft, annotator, adjudicates=True, **said)

    configure = _transaction(LockedQueue.configure, enqueue=True)
    take = _transaction(LockedQueue.take)
    comment = _transaction(LockedQueue.comment)
    skip = _transaction(LockedQueue.skip)
    unskip = _transaction(LockedQueue.unskip)
    undo = _transaction(LockedQueue.undo)
    import_labels = _transaction(LockedQueue.import_labels, enqueue=True)
    reorder = _transaction(LockedQueue.reorder, enqueue=True)


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
        result = label_of(draft)
        if result is None:
            unlabelled += 1
        else:
            labelled.append(result)
    check_labels([one.valid for one in labelled])
    content = [[one.draft.id, one.valid, asdict(one.draft.wording)] for one in labelled]
    digest = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return LabelSet(f"labels of {dataset}", tuple(labelled), unlabelled, (), digest)
