"""Changes of an annotation queue: reserve, label, skip, undo, comment and configure; each locks the queue's row."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.labels import (
    AnnotationSettings,
    Comment,
    ItemOutcome,
    Label,
    check_comment,
    check_label,
    check_name,
    decide_outcome,
    parse_stored_settings,
)
from climassay.generation.annotation.tables import (
    NOT_QUEUED,
    annotations,
    comments,
    current_label_conditions,
    draft_status,
    item_row,
    item_rows,
    items,
    label_row,
    labels_by_draft,
    leases,
    queues,
    skip_conditions,
    skips,
    unlabelled_state,
    validator_confidence,
)
from climassay.generation.dataset_store import EXPERT_KEY_PREFIX, datasets, decisions, drafts, drafts_before_experts
from climassay.generation.draft import Draft
from climassay.records.database import Database, split_keys


def enqueue_new_drafts(database: Database, dataset: str) -> None:
    """Queue drafts stored by the pipeline since the last call, including failed drafts that were written again.

    Raises:
        InputError: The dataset does not exist.
    """
    with database.read() as connection:
        queue = connection.execute(sa.select(queues).where(queues.c.dataset == dataset)).first()
        known_ordinal, in_dataset = -1 if queue is None else queue.last_ordinal, drafts.c.dataset == dataset
        last_ordinal = connection.execute(sa.select(sa.func.max(drafts.c.ordinal)).where(in_dataset)).scalar()
        last_ordinal = -1 if last_ordinal is None else last_ordinal
        draft_ids: list[str] = []
        if last_ordinal > known_ordinal:
            new_ids = sa.select(drafts.c.id).where(in_dataset, drafts.c.ordinal > known_ordinal)
            draft_ids += connection.execute(new_ids).scalars()
        rewritten_ids = (
            sa.select(items.c.draft)
            .join(drafts, sa.and_(drafts.c.dataset == items.c.dataset, drafts.c.id == items.c.draft))
            .where(items.c.dataset == dataset, items.c.state == NOT_QUEUED)
            .where(items.c.draft_status == "failed", drafts.c.state != "failed")
        )
        draft_ids += connection.execute(rewritten_ids).scalars()
        if queue is not None and not draft_ids and last_ordinal <= known_ordinal:
            return
        new_drafts: dict[str, Draft] = {}
        for chunk in split_keys(draft_ids):
            new_drafts |= drafts_before_experts(connection, dataset, chunk)

    def add_items(connection: sa.Connection) -> None:
        queue = LockedQueue(database, connection, dataset)
        rows = []
        for draft_id, draft in new_drafts.items():
            status = draft_status(draft)
            row = {"dataset": dataset, "draft": draft_id, "draft_status": status, "labels": 0, "settled_number": 0}
            row |= {"state": unlabelled_state(status, queue.settings), "position": 0}
            rows.append(row | {"p_valid": validator_confidence(draft), "judged_by": None})
        failed_items_deletion = items.delete().where(items.c.dataset == dataset, items.c.draft_status == "failed")
        for chunk in split_keys(list(new_drafts)):
            connection.execute(failed_items_deletion.where(items.c.draft.in_(chunk)))
        database.insert_new(connection, items, rows)
        queue.update(last_ordinal=max(last_ordinal, queue.row.last_ordinal))
        queue.order()

    database.write(add_items)


class LockedQueue:
    """Annotation queue of a dataset, locked against other writers until the transaction of ``connection`` ends.

    The queue is created if it is missing.

    Raises:
        InputError: The dataset does not exist.
    """

    def __init__(self, database: Database, connection: sa.Connection, dataset: str) -> None:
        self.database, self.connection, self.dataset = database, connection, dataset
        query = sa.select(queues).where(queues.c.dataset == dataset).with_for_update()
        row = connection.execute(query).first()
        if row is None:
            names = connection.execute(sa.select(datasets.c.name).order_by(datasets.c.name)).scalars().all()
            if dataset not in names:
                raise InputError(
                    f"There is no dataset {dataset!r} in this workspace; there are: {', '.join(names) or 'none yet'}."
                )
            defaults: dict[str, Any] = {
                "dataset": dataset,
                "settings": asdict(AnnotationSettings()),
                "last_ordinal": -1,
            }
            database.insert_new(
                connection, queues, [defaults | {"last_number": 0, "trained_number": 0, "validator": None}]
            )
            row = connection.execute(query).one()
        self.row: Any = row
        self.settings = parse_stored_settings(row.settings)

    def update(self, **values: object) -> None:
        """Change columns of the queue's row."""
        self.connection.execute(queues.update().where(queues.c.dataset == self.dataset).values(**values))

    def next_number(self) -> int:
        """Increment and return the sequence number that labels, skips and withdrawals share."""
        increment = queues.update().where(queues.c.dataset == self.dataset).values(last_number=queues.c.last_number + 1)
        return int(self.connection.execute(increment.returning(queues.c.last_number)).scalar_one())

    def order(self) -> None:
        """Assign queue positions to open items, at random if the validator has scored none of them."""
        from climassay.generation.validation import choose_next

        query = sa.select(items.c.draft, items.c.position, items.c.p_valid).where(
            items.c.dataset == self.dataset, items.c.state == "open"
        )
        rows = self.connection.execute(query.order_by(items.c.draft)).all()
        probabilities = [row.p_valid for row in rows]
        strategy = "random" if all(p_valid is None for p_valid in probabilities) else self.settings.order
        order = choose_next(rows, probabilities, None, len(rows), strategy, self.settings.seed)
        changes = [
            {"changed_draft": rows[index].draft, "new_position": position}
            for position, index in enumerate(order)
            if rows[index].position != position
        ]
        if changes:
            update = items.update().where(
                items.c.dataset == self.dataset, items.c.draft == sa.bindparam("changed_draft")
            )
            self.connection.execute(update.values(position=sa.bindparam("new_position")), changes)

    # Leases: items reserved for an annotator

    def _lease_conditions(self, annotator: str, draft: str | None = None) -> list[sa.ColumnElement[bool]]:
        conditions = [leases.c.dataset == self.dataset, leases.c.annotator == annotator]
        return conditions if draft is None else [*conditions, leases.c.draft == draft]

    def next_item(self, annotator: str) -> str | None:
        """Reserve the next item for an annotator and return its draft id, or None if no item is left.

        An item that is already reserved for the annotator comes first, then the first open item that still needs a
        label. Items reserved for others count as labelled.
        """
        now, dataset = time.time(), self.dataset
        query = sa.select(leases.c.draft).where(*self._lease_conditions(annotator), leases.c.expires_at > now)
        leased_drafts = list(self.connection.execute(query).scalars())
        rows = [row for row in item_rows(self.connection, dataset, leased_drafts).values() if row.state == "open"]
        if rows:
            draft: str | None = min(rows, key=lambda row: row.position).draft
        else:
            n_other_leases = (
                sa.select(sa.func.count())
                .where(leases.c.dataset == items.c.dataset, leases.c.draft == items.c.draft)
                .where(leases.c.annotator != annotator, leases.c.expires_at > now)
                .correlate(items)
                .scalar_subquery()
            )
            is_labelled = sa.exists().where(
                *current_label_conditions(dataset, annotator=annotator), annotations.c.draft == items.c.draft
            )
            is_skipped = sa.exists().where(*skip_conditions(dataset, annotator), skips.c.draft == items.c.draft)
            available_items = (
                sa.select(items.c.draft)
                .where(items.c.dataset == dataset, items.c.state == "open")
                .where(items.c.labels + n_other_leases < self.settings.overlap, ~is_labelled, ~is_skipped)
            )
            draft = self.connection.execute(available_items.order_by(items.c.position).limit(1)).scalar()
        if draft is not None:
            self._reserve(draft, annotator)
        return draft

    def _reserve(self, draft: str, annotator: str) -> None:
        """Reserve an item for an annotator for :attr:`AnnotationSettings.lease_seconds`.

        An earlier reservation of the item for the annotator is replaced.
        """
        self._release(draft, annotator)
        expires_at = time.time() + self.settings.lease_seconds
        row = {"dataset": self.dataset, "draft": draft, "annotator": annotator, "expires_at": expires_at}
        self.connection.execute(leases.insert(), [row])

    def claim(self, draft: str, annotator: str) -> bool:
        """Reserve the item that an annotator chose, and end the annotator's other reservations.

        Returns:
            True if the item is reserved for the annotator; False if it needs no further label.

        Raises:
            InputError: The item does not exist.
        """
        check_name(annotator, "The name of an annotator")
        item = item_row(self.connection, self.dataset, draft)
        current_lease = sa.select(leases.c.expires_at).where(
            *self._lease_conditions(annotator, item.draft), leases.c.expires_at > time.time()
        )
        if self.connection.execute(current_lease).first() is None:
            if not self._needs_label(item, annotator):
                return False
            self.connection.execute(
                leases.update().where(*self._lease_conditions(annotator)).values(expires_at=time.time())
            )
            self._reserve(item.draft, annotator)
        return True

    def _release(self, draft: str, annotator: str) -> None:
        self.connection.execute(leases.delete().where(*self._lease_conditions(annotator, draft)))

    def _needs_label(self, item: Any, annotator: str) -> bool:
        """Return whether an open item needs one more label, counting the reservations of other annotators as labels."""
        other_leases = sa.select(sa.func.count()).where(
            leases.c.dataset == self.dataset,
            leases.c.draft == item.draft,
            leases.c.annotator != annotator,
            leases.c.expires_at > time.time(),
        )
        n_other_leases = int(self.connection.execute(other_leases).scalar_one())
        return bool(item.state == "open" and item.labels + n_other_leases < self.settings.overlap)

    def _has_label(self, draft: str, annotator: str) -> bool:
        query = sa.select(annotations.c.key).where(*current_label_conditions(self.dataset, draft, annotator))
        return self.connection.execute(query.limit(1)).first() is not None

    def _check_reservation(self, item: Any, annotator: str) -> None:
        """Check that an annotator may label an item; the annotator's own reservation suffices, even if it has expired.

        Raises:
            InputError: The item needs no label of this annotator.
        """
        own_lease = sa.select(leases.c.expires_at).where(*self._lease_conditions(annotator, item.draft))
        if (
            not self._needs_label(item, annotator)
            and self.connection.execute(own_lease).first() is None
            and not self._has_label(item.draft, annotator)
        ):
            raise InputError(f"The item {item.draft} is reserved for others: ask for the next one.")

    # Labels, skips and comments

    def label(self, label: Label, draft: Draft) -> bool:
        """Store a label, replacing the annotator's earlier one, and update the item's outcome.

        The call may be repeated: if the annotator's label of this draft with the same key is stored already, nothing
        changes. ``draft`` is the draft as it was before annotation.

        Returns:
            True if the label was stored; False if it was stored by an earlier call.

        Raises:
            InputError: The key was used for another draft or by another annotator, the item is unknown or reserved for
                others, or the label does not fit the draft.
        """
        query = sa.select(annotations).where(annotations.c.dataset == self.dataset, annotations.c.key == label.key)
        stored_label = self.connection.execute(query).first()
        if stored_label is not None:
            if (stored_label.draft, stored_label.annotator, stored_label.adjudicates) != (
                label.draft,
                label.annotator,
                label.adjudicates,
            ):
                raise InputError(f"The key {label.key} belongs to another label: use a new key for each label.")
            return False
        item = item_row(self.connection, self.dataset, label.draft)
        label = check_label(draft, label)
        if not label.adjudicates:
            self._check_reservation(item, label.annotator)
        elif item.state == "open":
            raise InputError(f"The item {label.draft} is still waiting for labels: there is nothing to decide yet.")
        self._withdraw(label.draft, label.annotator, label.adjudicates, label.made_at)
        number = self.next_number()
        self.connection.execute(annotations.insert(), [label_row(self.dataset, label, number)])
        self._release(label.draft, label.annotator)
        self.unskip(label.annotator, label.draft)
        self.settle({label.draft: item}, number, {draft.id: draft})
        return True

    def _withdraw(self, draft: str, annotator: str, adjudicates: bool, withdrawn_at: float) -> None:
        conditions = current_label_conditions(self.dataset, draft, annotator)
        update = annotations.update().where(*conditions, annotations.c.adjudicates.is_(adjudicates))
        self.connection.execute(update.values(withdrawn_at=withdrawn_at))

    def skip(self, draft: str, annotator: str) -> None:
        """Skip an item; the annotator does not get it again until :meth:`unskip` or :meth:`undo`.

        Raises:
            InputError: The item does not exist, or the annotator has labelled it.
        """
        check_name(annotator, "The name of an annotator")
        item_row(self.connection, self.dataset, draft)
        if self._has_label(draft, annotator):
            raise InputError(f"You have labelled the item {draft}: change the label, or undo it.")
        number = self.next_number()
        self.unskip(annotator, draft)
        row = {"dataset": self.dataset, "annotator": annotator, "draft": draft, "number": number}
        self.connection.execute(skips.insert(), [row | {"made_at": time.time()}])
        self._release(draft, annotator)

    def unskip(self, annotator: str, draft: str | None = None) -> int:
        """Delete an annotator's skip of a draft, or all their skips, and return how many were deleted."""
        delete = skips.delete().where(*skip_conditions(self.dataset, annotator))
        return int(self.connection.execute(delete if draft is None else delete.where(skips.c.draft == draft)).rowcount)

    def undo(self, annotator: str) -> str | None:
        """Withdraw an annotator's most recent label or skip that is in effect.

        The item is reserved for the annotator again if it needs a label.

        Returns:
            Id of the draft; None if there is nothing to undo.
        """
        labels_query = sa.select(annotations).where(*current_label_conditions(self.dataset, annotator=annotator))
        label = self.connection.execute(labels_query.order_by(annotations.c.number.desc()).limit(1)).first()
        skips_query = sa.select(skips).where(*skip_conditions(self.dataset, annotator))
        skip = self.connection.execute(skips_query.order_by(skips.c.number.desc()).limit(1)).first()
        if skip is not None and (label is None or skip.number > label.number):
            draft = str(skip.draft)
            self.unskip(annotator, draft)
        elif label is not None:
            draft = str(label.draft)
            self._withdraw(draft, annotator, label.adjudicates, time.time())
            self.settle(item_rows(self.connection, self.dataset, [draft]), self.next_number())
        else:
            return None
        item = item_rows(self.connection, self.dataset, [draft])[draft]
        if self._needs_label(item, annotator):
            self._reserve(draft, annotator)
        return draft

    def comment(self, draft: str, author: str, text: str, *, key: str, adjudicates: bool = False) -> bool:
        """Store a comment on an item, unless a comment with the same key is stored already.

        Args:
            draft: Id of the item's draft.
            author: Name of the author.
            text: Text of up to :data:`MAX_TEXT_LENGTH` characters.
            key: Key of the comment; a comment sent again has the same key.
            adjudicates: Whether the author writes as an adjudicator.

        Returns:
            True if the comment was stored; False if it was stored by an earlier call.

        Raises:
            InputError: The item does not exist, or the comment is empty or too long.
        """
        item_row(self.connection, self.dataset, draft)
        return self.add_comment(Comment(key, draft, author, text, time.time(), adjudicates))

    def add_comment(self, comment: Comment) -> bool:
        """Store a comment unless a comment with the same key is stored already; return whether it was stored.

        Raises:
            InputError: The author or the key cannot be stored, or the comment is empty or too long.
        """
        check_name(comment.author, "The name of an author")
        check_name(comment.key, "The key of a comment")
        comment = replace(comment, text=check_comment(comment.text))
        query = sa.select(comments.c.key).where(comments.c.dataset == self.dataset, comments.c.key == comment.key)
        if self.connection.execute(query).first() is not None:
            return False
        self.connection.execute(comments.insert(), [{"dataset": self.dataset, **asdict(comment)}])
        return True

    # Outcomes

    def settle(self, rows: Mapping[str, Any], number: int, drafts_by_id: Mapping[str, Draft] | None = None) -> None:
        """Recompute states and outcomes of items from their labels, and store the changes.

        Args:
            rows: Rows of the items by draft id.
            number: Sequence number of the label or withdrawal that caused the change.
            drafts_by_id: Drafts as they were before annotation, by id; read from the database if None.
        """
        connection, dataset = self.connection, self.dataset
        labels = labels_by_draft(connection, dataset, list(rows))
        if drafts_by_id is None:
            drafts_by_id = drafts_before_experts(connection, dataset, list(labels))
        for draft, row in rows.items():
            draft_labels = labels.get(draft, [])
            outcome = ItemOutcome("open")
            if draft_labels:
                outcome = decide_outcome(draft_labels, self.settings.overlap, drafts_by_id[draft].wording)
            is_changed = self._store_outcome(draft, outcome)
            connection.execute(
                items.update()
                .where(items.c.dataset == dataset, items.c.draft == draft)
                .values(
                    state=outcome.state if draft_labels else unlabelled_state(row.draft_status, self.settings),
                    labels=sum(not label.adjudicates for label in draft_labels),
                    settled_number=number if is_changed else row.settled_number,
                )
            )

    def _store_outcome(self, draft: str, outcome: ItemOutcome) -> bool:
        """Store the experts' decision on a draft, or delete the stored decision if there is none now.

        Return whether the stored decision changed.
        """
        key = EXPERT_KEY_PREFIX + draft
        condition = (decisions.c.dataset == self.dataset, decisions.c.key == key)
        stored_body = self.connection.execute(sa.select(decisions.c.body).where(*condition)).scalar()
        body = None
        if outcome.decision is not None:
            wording = None if outcome.wording is None else asdict(outcome.wording)
            body = json.dumps({"decision": asdict(outcome.decision), "wording": wording})
        if body == stored_body:
            return False
        if stored_body is not None:
            self.connection.execute(decisions.delete().where(*condition))
        if body is not None:
            row = {"dataset": self.dataset, "key": key, "draft": draft, "made_at": outcome.made_at, "body": body}
            self.connection.execute(decisions.insert(), [row])
        return True

    def configure(self, settings: AnnotationSettings) -> None:
        """Change the settings of a dataset, and update states, outcomes and order of its items."""
        if settings.overlap < self.settings.overlap:
            self.connection.execute(leases.delete().where(leases.c.dataset == self.dataset))
        self.settings = settings
        self.update(settings=asdict(settings))
        number = self.next_number()
        for status in ("usable", "doubted", "failed", "excluded"):
            state = unlabelled_state(status, settings)
            update = items.update().where(items.c.dataset == self.dataset, items.c.draft_status == status)
            update = update.where(items.c.labels == 0, items.c.state.in_(("open", NOT_QUEUED)), items.c.state != state)
            self.connection.execute(update.values(state=state))
        labelled_drafts = sa.select(annotations.c.draft).where(annotations.c.dataset == self.dataset).distinct()
        for chunk in split_keys(self.connection.execute(labelled_drafts).scalars().all()):
            self.settle(item_rows(self.connection, self.dataset, chunk), number)
        self.order()
