"""Import labels, skips and comments that were made elsewhere; a repeated import changes nothing."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.labels import Comment, ImportReport, Label, Skip, check_label, check_name
from climassay.generation.annotation.locked_queue import LockedQueue
from climassay.generation.annotation.tables import (
    annotations,
    current_label_conditions,
    item_rows,
    label_row,
    labels_by_draft,
    skips,
)
from climassay.generation.dataset_store import drafts_before_experts
from climassay.records.database import split_keys


def import_labels(
    queue: LockedQueue, labels: Sequence[Label], skips: Sequence[Skip] = (), comments: Sequence[Comment] = ()
) -> ImportReport:
    """Import labels, skips and comments in one transaction.

    The annotators need not have reserved the items. If an annotator has labelled a draft twice, the later label counts,
    whatever the order of import. A label without a time is skipped as a duplicate if it equals the annotator's current
    label.

    Args:
        queue: Locked queue of the dataset.
        labels: Labels, each with a key that stays the same if the label is imported again.
        skips: Skipped items.
        comments: Comments on items.

    Returns:
        Counts, and a sentence for each label or comment that cannot be stored.

    Raises:
        InputError: The dataset does not exist.
    """
    drafts = list(dict.fromkeys(label.draft for label in labels))
    merge = _LabelMerge(queue, drafts, [label.key for label in labels])
    for label in sorted(labels, key=lambda label: label.made_at or time.time()):
        merge.add(label)
    merge.store()
    _import_skips(queue, skips)
    n_comments = 0
    for comment in comments:
        try:
            if comment.draft not in item_rows(queue.connection, queue.dataset, [comment.draft]):
                raise InputError(f"The dataset {queue.dataset} has no draft {comment.draft!r} to comment on.")
            n_comments += queue.add_comment(comment)
        except InputError as error:
            merge.errors.append(f"The comment of {comment.author} on {comment.draft}: {error}")
    number = queue.next_number()
    for chunk in split_keys(drafts):
        queue.settle(item_rows(queue.connection, queue.dataset, chunk), number)
    return ImportReport(len(merge.new_labels), merge.n_known, merge.n_withdrawn, tuple(merge.errors), n_comments)


class _LabelMerge:
    """Merging of imported labels with stored ones.

    Of an annotator's labels for one draft, only the latest counts, but an adjudication and an ordinary label both
    count.
    """

    def __init__(self, queue: LockedQueue, drafts: Sequence[str], keys: Sequence[str]) -> None:
        self._queue = queue
        self._drafts = drafts_before_experts(queue.connection, queue.dataset, drafts)
        self._stored_withdrawals: dict[str, float | None] = {}
        """Withdrawal time of each stored label by its key; None if the label counts."""
        for chunk in split_keys(keys):
            query = sa.select(annotations.c.key, annotations.c.withdrawn_at)
            query = query.where(annotations.c.dataset == queue.dataset, annotations.c.key.in_(chunk))
            self._stored_withdrawals |= {row.key: row.withdrawn_at for row in queue.connection.execute(query)}
        self._current = {
            (label.draft, label.annotator, label.adjudicates): label
            for labels in labels_by_draft(queue.connection, queue.dataset, drafts).values()
            for label in labels
        }
        self._new_withdrawals: dict[str, float] = {}
        """Withdrawal times of the stored labels that the import withdraws, by key."""
        self.new_labels: dict[str, Label] = {}
        self.errors: list[str] = []
        self.n_known = self.n_withdrawn = 0

    def add(self, label: Label) -> None:
        """Merge one label; labels must be added in the order of their times."""
        if label.key in self._stored_withdrawals or label.key in self.new_labels:
            if label.withdrawn_at is not None and self._stored_withdrawals.get(label.key, 0.0) is None:
                self._stored_withdrawals[label.key] = self._new_withdrawals[label.key] = label.withdrawn_at
                self.n_withdrawn += 1
            else:
                self.n_known += 1
            return
        try:
            valid_label = self._validate_label(label)
        except InputError as error:
            self.errors.append(f"The label of {label.annotator} on {label.draft}: {error}")
            return
        label_slot = (valid_label.draft, valid_label.annotator, valid_label.adjudicates)
        current_label = self._current.get(label_slot)
        if (
            not label.made_at
            and current_label is not None
            and _label_content(current_label) == _label_content(valid_label)
        ):
            self.n_known += 1
        elif valid_label.withdrawn_at is not None:
            self.new_labels[valid_label.key] = valid_label
        elif current_label is not None and current_label.made_at > valid_label.made_at:
            self.new_labels[valid_label.key] = replace(valid_label, withdrawn_at=current_label.made_at)
        else:
            if current_label is not None and current_label.key in self.new_labels:
                self.new_labels[current_label.key] = replace(current_label, withdrawn_at=valid_label.made_at)
            elif current_label is not None:
                self._new_withdrawals[current_label.key] = valid_label.made_at
            self.new_labels[valid_label.key] = self._current[label_slot] = valid_label

    def _validate_label(self, label: Label) -> Label:
        check_name(label.annotator, "The name of an annotator")
        check_name(label.key, "The key of a label")
        draft = self._drafts.get(label.draft)
        if draft is None or not draft.written:
            raise InputError(f"The dataset {self._queue.dataset} has no draft {label.draft!r} to annotate.")
        return check_label(draft, replace(label, made_at=label.made_at or time.time()))

    def store(self) -> None:
        """Store the new labels and the withdrawals."""
        connection, dataset = self._queue.connection, self._queue.dataset
        if self._new_withdrawals:
            update = annotations.update().where(
                *current_label_conditions(dataset), annotations.c.key == sa.bindparam("withdrawn")
            )
            rows = [
                {"withdrawn": key, "time": withdrawal_time} for key, withdrawal_time in self._new_withdrawals.items()
            ]
            connection.execute(update.values(withdrawn_at=sa.bindparam("time")), rows)
        if self.new_labels:
            rows = [label_row(dataset, label, self._queue.next_number()) for label in self.new_labels.values()]
            connection.execute(annotations.insert(), rows)


def _label_content(label: Label) -> tuple[object, ...]:
    # Some tools lose the order of reasons.
    return label.accepted, set(label.reasons), label.remark, label.wording


def _import_skips(queue: LockedQueue, imported_skips: Sequence[Skip]) -> None:
    """Store imported skips. Skips of items that are not queued, or that the annotator has labelled, are ignored."""
    drafts = [skip.draft for skip in imported_skips]
    labels = labels_by_draft(queue.connection, queue.dataset, drafts)
    queue_rows = item_rows(queue.connection, queue.dataset, drafts)
    rows = [
        {"dataset": queue.dataset, **asdict(skip), "number": queue.next_number()}
        for skip in imported_skips
        if skip.draft in queue_rows and skip.annotator not in {label.annotator for label in labels.get(skip.draft, ())}
    ]
    queue.database.insert_new(queue.connection, skips, rows)
