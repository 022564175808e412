"""Annotations of a records database: items to label, labels, comments, progress and agreement."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import wraps
from time import time
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from climassay.generation.annotation.agreement import (
    AnnotatorAgreement,
    AnnotatorStatistics,
    measure_agreement,
    summarise_annotators,
)
from climassay.generation.annotation.labels import (
    AnnotationItem,
    AnnotationProgress,
    AnnotationSettings,
    Comment,
    FoundItem,
    ItemFilter,
    Label,
    QueueSummary,
    Skip,
    check_name,
    parse_stored_settings,
)
from climassay.generation.annotation.locked_queue import LockedQueue, enqueue_new_drafts
from climassay.generation.annotation.merging import import_labels
from climassay.generation.annotation.tables import (
    NOT_QUEUED,
    NoItemError,
    annotations,
    comments,
    count_items,
    current_label_conditions,
    item_row,
    item_rows,
    items,
    labels_by_draft,
    metadata,
    queued_ids,
    queues,
    read_items,
    read_labels,
    select_labels,
    skip_conditions,
    skips,
)
from climassay.generation.dataset_store import DatasetStore, drafts, drafts_before_experts
from climassay.questions import KINDS
from climassay.records import Records
from climassay.records.database import build_record, split_keys

P = ParamSpec("P")
T = TypeVar("T")
_QUEUED_IDS = (
    sa.select(items.c.draft)
    .join(drafts, sa.and_(drafts.c.dataset == items.c.dataset, drafts.c.id == items.c.draft))
    .where(items.c.state != NOT_QUEUED)
)
"""Query for the draft ids of all queued items."""


def _in_transaction(
    method: Callable[Concatenate[LockedQueue, P], T], *, enqueue: bool = False
) -> Callable[Concatenate["AnnotationStore", str, P], T]:
    """Convert a method of the queue to a method of the store, which takes the dataset's name and uses one transaction.

    If ``enqueue`` is True, the pipeline's new drafts are always queued first, otherwise only if the item is missing.
    """

    @wraps(method)
    def call(self: "AnnotationStore", dataset: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if enqueue:
            enqueue_new_drafts(self._database, dataset)
        return self._retry_with_new_drafts(
            dataset, lambda: self._write(dataset, lambda queue: method(queue, *args, **kwargs))
        )

    return call


class AnnotationStore:
    """Annotations of all datasets in one records database.

    Threads can share a store, and processes can share a database.
    """

    def __init__(self, records: Records) -> None:
        self._database = records.database
        self._datasets = DatasetStore(records)
        self._database.create_tables(metadata)
        # SQLite has one writer at a time and lets the others poll; within a process a lock is fairer.
        self._write_lock: AbstractContextManager[Any] = threading.Lock() if self._database.is_sqlite else nullcontext()

    def _write(self, dataset: str, change: Callable[[LockedQueue], T]) -> T:
        with self._write_lock:
            return self._database.write(lambda connection: change(LockedQueue(self._database, connection, dataset)))

    def _retry_with_new_drafts(self, dataset: str, call: Callable[[], T]) -> T:
        """Call a function; if its item is not queued yet, queue the pipeline's new drafts and call it again."""
        try:
            return call()
        except NoItemError:
            enqueue_new_drafts(self._database, dataset)
            return call()

    def settings(self, dataset: str) -> AnnotationSettings:
        """Return the settings of a dataset's queue; the defaults if none were stored.

        Raises:
            InputError: The dataset does not exist.
        """
        settings = self._database.scalar(sa.select(queues.c.settings).where(queues.c.dataset == dataset))
        if settings is not None:
            return parse_stored_settings(settings)
        self._datasets.recipe(dataset)
        return AnnotationSettings()

    def queues(self) -> list[QueueSummary]:
        """Return a summary of each dataset, newest first, including datasets without items to annotate."""
        results = []
        for dataset in self._datasets.list():
            settings = self.settings(dataset.name)
            enqueue_new_drafts(self._database, dataset.name)
            with self._database.read() as connection:
                counts = count_items(connection, dataset.name)
            n_open, n_settled, n_conflicts = (counts.get(state, 0) for state in ("open", "settled", "conflict"))
            total = n_open + n_settled + n_conflicts
            results.append(QueueSummary(dataset.name, total, n_open, n_settled, n_conflicts, settings.overlap))
        return results

    def item(self, dataset: str, draft: str) -> AnnotationItem:
        """Return an item with its labels.

        Raises:
            InputError: The dataset does not contain the item.
        """

        def read() -> AnnotationItem:
            with self._database.read() as connection:
                item_row(connection, dataset, draft)
                return read_items(connection, dataset, [draft])[0]

        return self._retry_with_new_drafts(dataset, read)

    def items(self, dataset: str) -> Iterator[AnnotationItem]:
        """Yield all queued items in the queue's order."""
        enqueue_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            draft_ids = queued_ids(connection, dataset)
        for chunk in split_keys(draft_ids):
            with self._database.read() as connection:
                yield from read_items(connection, dataset, chunk)

    def labels(
        self, dataset: str, *, draft: str | None = None, annotator: str | None = None, current: bool = True
    ) -> list[Label]:
        """Return labels in the order in which they were made.

        Args:
            dataset: Name of the dataset.
            draft: Id of a draft, to return only its labels.
            annotator: Name of an annotator, to return only their labels.
            current: Exclude withdrawn labels.
        """
        conditions = [annotations.c.dataset == dataset]
        if current:
            conditions.append(annotations.c.withdrawn_at.is_(None))
        if draft is not None:
            conditions.append(annotations.c.draft == draft)
        if annotator is not None:
            conditions.append(annotations.c.annotator == annotator)
        with self._database.read() as connection:
            return read_labels(connection, *conditions)

    def find(
        self, dataset: str, annotator: str, item_filter: ItemFilter, limit: int = 25, offset: int = 0
    ) -> tuple[list[FoundItem], int]:
        """Return one page of the items matching a filter, in the order of generation, and the total number of matches.

        Args:
            dataset: Name of the dataset.
            annotator: Annotator whose own labels and skips are shown.
            item_filter: Text, kind and state of the items.
            limit: Maximum number of items on the page.
            offset: Number of matching items before the page.

        Raises:
            InputError: The dataset does not exist.
        """
        enqueue_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            draft_ids = _matching_ids(connection, dataset, annotator, item_filter)
            page = draft_ids[offset : offset + limit]
            rows, labels = item_rows(connection, dataset, page), labels_by_draft(connection, dataset, page)
            drafts_by_id = drafts_before_experts(connection, dataset, page)
            skipped_ids = set(
                connection.execute(sa.select(skips.c.draft).where(*skip_conditions(dataset, annotator))).scalars()
            )
            count = sa.select(comments.c.draft, sa.func.count()).where(comments.c.dataset == dataset)
            n_comments = {str(draft): int(n) for draft, n in connection.execute(count.group_by(comments.c.draft))}
        own_labels = {
            label.draft: label
            for draft_labels in labels.values()
            for label in draft_labels
            if label.annotator == annotator and not label.adjudicates
        }
        results = [
            FoundItem(
                drafts_by_id[draft],
                rows[draft].state,
                own_labels.get(draft),
                draft in skipped_ids,
                n_comments.get(draft, 0),
            )
            for draft in page
        ]
        return results, len(draft_ids)

    def kinds(self, dataset: str) -> list[str]:
        """Return the kinds of the queued questions, in the order of :data:`~climassay.questions.KINDS`."""
        query = _QUEUED_IDS.with_only_columns(drafts.c.kind).where(items.c.dataset == dataset).distinct()
        kinds = {row.kind for row in self._database.rows(query)}
        return [kind for kind in KINDS if kind in kinds]

    def history(
        self, dataset: str, annotator: str, limit: int = 20, *, after: str | None = None, settled_only: bool = False
    ) -> list[Label]:
        """Return an annotator's latest current labels, newest first.

        Args:
            dataset: Name of the dataset.
            annotator: Name of the annotator.
            limit: Maximum number of labels.
            after: Key of a label, to return only earlier labels (pagination).
            settled_only: Return only labels of settled items.
        """
        query = sa.select(annotations).where(*current_label_conditions(dataset, annotator=annotator))
        if after is not None:
            number = sa.select(annotations.c.number).where(annotations.c.dataset == dataset, annotations.c.key == after)
            query = query.where(annotations.c.number < number.scalar_subquery())
        if settled_only:
            settled_ids = sa.select(items.c.draft).where(items.c.dataset == dataset, items.c.state == "settled")
            query = query.where(annotations.c.draft.in_(settled_ids))
        with self._database.read() as connection:
            return select_labels(connection, query.order_by(annotations.c.number.desc()).limit(limit))

    def comments(self, dataset: str, draft: str | None = None) -> list[Comment]:
        """Return the comments on a draft, or on all drafts, in the order in which they were made."""
        query = sa.select(comments).where(comments.c.dataset == dataset)
        query = query if draft is None else query.where(comments.c.draft == draft)
        rows = self._database.rows(query.order_by(comments.c.made_at, comments.c.key))
        return [build_record(Comment, row) for row in rows]

    def skips(self, dataset: str) -> list[Skip]:
        """Return the skips of all annotators in the order in which they were made."""
        query = sa.select(skips).where(skips.c.dataset == dataset).order_by(skips.c.number)
        return [build_record(Skip, row) for row in self._database.rows(query)]

    def progress(self, dataset: str, annotator: str | None = None) -> AnnotationProgress:
        """Return the progress of a dataset and, if ``annotator`` is given, of that annotator.

        Raises:
            InputError: The dataset does not exist.
        """
        enqueue_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            counts = count_items(connection, dataset)
            totals = sa.select(annotations.c.annotator, sa.func.count(), sa.func.sum(annotations.c.seconds))
            totals = totals.where(*current_label_conditions(dataset)).group_by(annotations.c.annotator)
            label_totals = {
                name: (int(count), float(seconds or 0))
                for name, count, seconds in connection.execute(totals.where(~annotations.c.adjudicates))
            }
            adjudication_counts = {
                name: int(count) for name, count, _ in connection.execute(totals.where(annotations.c.adjudicates))
            }
            n_labelled, seconds = 0, sum(seconds for _, seconds in label_totals.values())
            n_remaining, n_skipped = counts.get("open", 0), 0
            if annotator is not None:
                n_labelled, seconds = label_totals.get(annotator, (0, 0.0))
                own_skips = sa.select(skips.c.draft).where(*skip_conditions(dataset, annotator))
                n_skipped = len(connection.execute(own_skips).all())
                own_labels = sa.select(annotations.c.draft).where(
                    *current_label_conditions(dataset, annotator=annotator)
                )
                finished_drafts = own_labels.union(own_skips).subquery()
                n_finished_query = (
                    sa.select(sa.func.count())
                    .select_from(
                        finished_drafts.join(
                            items, sa.and_(items.c.dataset == dataset, items.c.draft == finished_drafts.c.draft)
                        )
                    )
                    .where(items.c.state == "open")
                )
                n_remaining -= int(connection.execute(n_finished_query).scalar_one())
        sorted_totals = sorted(label_totals.items(), key=lambda entry: (-entry[1][0], entry[0]))
        return AnnotationProgress(
            items=sum(counts.values()) - counts.get(NOT_QUEUED, 0),
            left_out=counts.get(NOT_QUEUED, 0),
            settled=counts.get("settled", 0),
            conflicts=counts.get("conflict", 0),
            labelled_by={name: count for name, (count, _) in sorted_totals},
            mine=n_labelled,
            adjudicated=adjudication_counts.get(annotator or "", 0),
            skipped=n_skipped,
            left_for_me=n_remaining,
            seconds=seconds,
        )

    def conflicts(self, dataset: str, limit: int | None = None, offset: int = 0) -> list[AnnotationItem]:
        """Return the items whose labels disagree, in the queue's order; ``limit`` None returns all after ``offset``."""
        with self._database.read() as connection:
            draft_ids = queued_ids(connection, dataset, "conflict")[offset:]
            return read_items(connection, dataset, draft_ids[:limit])

    def next_conflict(self, dataset: str, after: str) -> str | None:
        """Return the draft id of the next conflict after an item; None if there is no other conflict.

        The first conflict follows the last one.

        Raises:
            InputError: The dataset does not contain the item.
        """
        with self._database.read() as connection:
            item = item_row(connection, dataset, after)
            is_before = sa.or_(
                items.c.position < item.position,
                sa.and_(items.c.position == item.position, items.c.draft <= item.draft),
            )
            query = sa.select(items.c.draft).where(
                items.c.dataset == dataset, items.c.state == "conflict", items.c.draft != after
            )
            order = (sa.case((is_before, 1), else_=0), items.c.position, items.c.draft)
            return connection.execute(query.order_by(*order).limit(1)).scalar()

    def revision(self, dataset: str) -> tuple[object, ...]:
        """Return a value that changes whenever a label, a skip or an outcome is added, changed or removed."""
        label, skip, item, count, maximum = annotations.c, skips.c, items.c, sa.func.count, sa.func.max
        queries = (
            sa.select(count(), count(label.withdrawn_at), maximum(label.number)).where(label.dataset == dataset),
            sa.select(count(), maximum(skip.number)).where(skip.dataset == dataset),
            sa.select(count(), maximum(item.settled_number)).where(item.dataset == dataset, item.state == "settled"),
        )
        with self._database.read() as connection:
            return tuple(value for query in queries for value in connection.execute(query).one())

    def agreement(self, dataset: str) -> AnnotatorAgreement:
        """Return the annotators' agreement on whether drafts are valid, before any adjudication."""
        return measure_agreement(self.labels(dataset))

    def annotators(self, dataset: str) -> list[AnnotatorStatistics]:
        """Return statistics of each annotator, the one with the most labels first."""
        return summarise_annotators(self.labels(dataset), [skip.annotator for skip in self.skips(dataset)])

    def validator(self, dataset: str) -> str | None:
        """Return the name of the file of the last validator trained on the dataset's labels; None if there is none."""
        result: str | None = self._database.scalar(sa.select(queues.c.validator).where(queues.c.dataset == dataset))
        return result

    def new_labels(self, dataset: str) -> int:
        """Return the number of settled items whose outcome changed after the last training of a validator."""
        query = (
            sa.select(sa.func.count())
            .select_from(items.join(queues, queues.c.dataset == items.c.dataset))
            .where(items.c.dataset == dataset, items.c.state == "settled")
            .where(items.c.settled_number > queues.c.trained_number)
        )
        return int(self._database.scalar(query))

    _next = _in_transaction(LockedQueue.next_item, enqueue=True)

    def next(self, dataset: str, annotator: str) -> AnnotationItem | None:
        """Reserve and return the next item that an annotator should label.

        The item is reserved for :attr:`AnnotationSettings.lease_seconds`. Until the annotator labels or skips it, this
        method returns the same item again. Labels and reservations of an item together never exceed ``overlap``.

        Returns:
            The item, or None if no item is left for this annotator.

        Raises:
            InputError: The dataset does not exist.
        """
        check_name(annotator, "The name of an annotator")
        draft = self._next(dataset, annotator)
        if draft is None:
            return None
        with self._database.read() as connection:
            return read_items(connection, dataset, [draft])[0]

    def label(self, dataset: str, label: Label) -> bool:
        """Store a label and update the item's state and outcome, in one transaction.

        The label replaces the annotator's earlier one. An adjudication overrides the labels of a conflict or of a
        settled item. It is refused for an item that still needs labels. The call may be repeated: if the annotator's
        label of this draft with the same key is stored already, nothing changes.

        Args:
            dataset: Name of the dataset.
            label: Label with a key; its ``made_at`` is set to now.

        Returns:
            True if the label was stored; False if it was stored by an earlier call.

        Raises:
            InputError: The item does not exist, it is reserved for others, or the label does not fit the draft.
        """
        check_name(label.annotator, "The name of an annotator")
        check_name(label.key, "The key of a label")
        new_label = replace(label, made_at=time(), withdrawn_at=None)

        def store() -> bool:
            # A queued draft never changes, so it can be read before the queue is locked.
            with self._database.read() as connection:
                drafts_by_id = drafts_before_experts(connection, dataset, [label.draft])
            draft = drafts_by_id.get(label.draft)
            if draft is None:
                raise NoItemError(f"The dataset {dataset} has no item {label.draft!r} to annotate.")
            return self._write(dataset, lambda queue: queue.label(new_label, draft))

        return self._retry_with_new_drafts(dataset, store)

    configure = _in_transaction(LockedQueue.configure, enqueue=True)
    claim = _in_transaction(LockedQueue.claim)
    comment = _in_transaction(LockedQueue.comment)
    skip = _in_transaction(LockedQueue.skip)
    unskip = _in_transaction(LockedQueue.unskip)
    undo = _in_transaction(LockedQueue.undo)
    import_labels = _in_transaction(import_labels, enqueue=True)


def _matching_ids(connection: sa.Connection, dataset: str, annotator: str, item_filter: ItemFilter) -> list[str]:
    """Return the draft ids of the items that match a filter, in the order of generation."""
    is_labelled = sa.exists().where(
        *current_label_conditions(dataset, annotator=annotator),
        annotations.c.draft == items.c.draft,
        ~annotations.c.adjudicates,
    )
    is_skipped = sa.exists().where(*skip_conditions(dataset, annotator), skips.c.draft == items.c.draft)
    conditions: dict[str, list[sa.ColumnElement[bool]]] = {
        "": [],
        "todo": [items.c.state == "open", ~is_labelled, ~is_skipped],
        "done": [is_labelled],
        "skipped": [is_skipped],
        "conflict": [items.c.state == "conflict"],
        "decided": [items.c.state == "settled"],
    }
    query = _QUEUED_IDS.where(items.c.dataset == dataset, *conditions[item_filter.state]).order_by(drafts.c.ordinal)
    query = query.where(drafts.c.kind == item_filter.kind) if item_filter.kind else query
    text = item_filter.text.strip().lower()
    if not text:
        return list(connection.execute(query).scalars())
    # Databases ignore the case of different letters: they search for ASCII, and Python checks the rest.
    ascii_part = max(re.findall(r"[0-9a-z ]+", text), key=len, default="")
    query = query.add_columns(drafts.c.body).where(drafts.c.body.icontains(ascii_part, autoescape=True))
    draft_ids = []
    for draft_id, body in connection.execute(query):
        wording = json.loads(body)["wording"]
        if any(
            text in wording_text.lower()
            for wording_text in (wording["question"], wording["answer"], *wording["options"])
        ):
            draft_ids.append(draft_id)
    return draft_ids
