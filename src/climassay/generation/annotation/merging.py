"""Importing labels, skips and comments that were made elsewhere; importing them again changes nothing."""

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
    """Import labels, skips and comments in one transaction; annotators need no lease.

    If an annotator has labelled a draft twice, the later label counts, whatever the order of import. A label without a
    time counts as known if it equals the annotator's current label.

    Args:
        queue: Locked queue of the dataset.
        labels: Labels, each with a key that is the same whenever the label is imported.
        skips: Skipped items.
        comments: Comments on items.

    Returns:
        Counts, and a sentence for each label or comment that cannot be stored.

    Raises:
        InputError: There is no such dataset.
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
            merge.refused.append(f"The comment of {comment.author} on {comment.draft}: {error}")
    number = queue.next_number()
    for chunk in split_keys(drafts):
        queue.settle(item_rows(queue.connection, queue.dataset, chunk), number)
    return ImportReport(len(merge.new), merge.n_known, merge.n_withdrawn, tuple(merge.refused), n_comments)


class _LabelMerge:
    """Merges imported labels with the stored ones: per draft, annotator and role only one label counts."""

    def __init__(self, queue: LockedQueue, drafts: Sequence[str], keys: Sequence[str]) -> None:
        self._queue = queue
        self._drafts = drafts_before_experts(queue.connection, queue.dataset, drafts)
        self._withdrawals: dict[str, float | None] = {}
        """Time of the withdrawal by key of each stored label."""
        for chunk in split_keys(keys):
            query = sa.select(annotations.c.key, annotations.c.withdrawn_at)
            query = query.where(annotations.c.dataset == queue.dataset, annotations.c.key.in_(chunk))
            self._withdrawals |= {row.key: row.withdrawn_at for row in queue.connection.execute(query)}
        self._current = {
            (label.draft, label.annotator, label.adjudicates): label
            for labels in labels_by_draft(queue.connection, queue.dataset, drafts).values()
            for label in labels
        }
        self._withdrawn: dict[str, float] = {}
        """Time of the withdrawal by key of each stored label that the import withdraws."""
        self.new: dict[str, Label] = {}
        self.refused: list[str] = []
        self.n_known = self.n_withdrawn = 0

    def add(self, label: Label) -> None:
        """Add, withdraw or refuse one label; must be called in the order of the labels' times."""
        if label.key in self._withdrawals or label.key in self.new:
            if label.withdrawn_at is not None and self._withdrawals.get(label.key, 0.0) is None:
                self._withdrawals[label.key] = self._withdrawn[label.key] = label.withdrawn_at
                self.n_withdrawn += 1
            else:
                self.n_known += 1
            return
        try:
            checked = self._validate_label(label)
        except InputError as error:
            self.refused.append(f"The label of {label.annotator} on {label.draft}: {error}")
            return
        slot = (checked.draft, checked.annotator, checked.adjudicates)
        earlier = self._current.get(slot)
        if not label.made_at and earlier is not None and _label_content(earlier) == _label_content(checked):
            self.n_known += 1
        elif checked.withdrawn_at is not None:
            self.new[checked.key] = checked
        elif earlier is not None and earlier.made_at > checked.made_at:
            self.new[checked.key] = replace(checked, withdrawn_at=earlier.made_at)
        else:
            if earlier is not None and earlier.key in self.new:
                self.new[earlier.key] = replace(earlier, withdrawn_at=checked.made_at)
            elif earlier is not None:
                self._withdrawn[earlier.key] = checked.made_at
            self.new[checked.key] = self._current[slot] = checked

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
        if self._withdrawn:
            update = annotations.update().where(
                *current_label_conditions(dataset), annotations.c.key == sa.bindparam("withdrawn")
            )
            rows = [{"withdrawn": key, "at": at} for key, at in self._withdrawn.items()]
            connection.execute(update.values(withdrawn_at=sa.bindparam("at")), rows)
        if self.new:
            rows = [label_row(dataset, label, self._queue.next_number()) for label in self.new.values()]
            connection.execute(annotations.insert(), rows)


def _label_content(label: Label) -> tuple[object, ...]:
    # Some tools lose the order of reasons.
    return label.accepted, set(label.reasons), label.remark, label.wording


def _import_skips(queue: LockedQueue, imported: Sequence[Skip]) -> None:
    """Store skips of queued items that their annotators have not labelled."""
    drafts = [skip.draft for skip in imported]
    labels = labels_by_draft(queue.connection, queue.dataset, drafts)
    queued = item_rows(queue.connection, queue.dataset, drafts)
    rows = [
        {"dataset": queue.dataset, **asdict(skip), "number": queue.next_number()}
        for skip in imported
        if skip.draft in queued and skip.annotator not in {label.annotator for label in labels.get(skip.draft, ())}
    ]
    queue.database.insert_new(queue.connection, skips, rows)
