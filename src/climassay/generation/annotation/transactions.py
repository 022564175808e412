"""The tables of annotations, beside the drafts, and what annotators do to them: label, skip, take back, import labels.

What anybody said is only ever added to; ``withdrawn_at`` marks what no longer counts. Everything else can be computed
from it again: the state of an item, and the outcome in ``draft_decisions``. Everything that annotators do is one
transaction that locks the queue.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.labels import (
    AnnotationSettings,
    Comment,
    ImportedLabel,
    ImportedSkip,
    ImportReport,
    Item,
    Label,
    Outcome,
    check_comment,
    check_label,
    check_name,
    outcome_of,
)
from climassay.generation.dataset_store import EXPERTS, datasets, decisions, drafts, drafts_before_experts
from climassay.generation.draft import Draft, Wording, record_from
from climassay.records.database import Database, chunks, record_of

metadata = sa.MetaData()
_needed = partial(sa.Column, nullable=False)


def _table(name: str, *parts: sa.schema.SchemaItem, comment: str, of_drafts: bool = True) -> sa.Table:
    """A table of what belongs to a dataset, and to drafts of it."""
    keys = [sa.ForeignKeyConstraint(["dataset", "draft"], [drafts.c.dataset, drafts.c.id])] if of_drafts else []
    return sa.Table(
        name, metadata, sa.Column("dataset", sa.String(120), primary_key=True), *parts, *keys, comment=comment
    )


queues = _table(
    "annotation_queues",
    _needed("settings", sa.Text),
    _needed("seen", sa.Integer),
    _needed("acts", sa.Integer),
    _needed("trained_at", sa.Integer),
    sa.Column("validator", sa.Text),
    comment="One dataset that is annotated. seen: the last draft's ordinal that was looked at; acts: labels and skips "
    "so far, which numbers them; trained_at: acts when the last training read the labels. Its row is locked by "
    "whoever writes.",
    of_drafts=False,
)
items = _table(
    "annotation_items",
    sa.Column("draft", sa.String(40), primary_key=True),
    _needed("standing", sa.String(12)),
    _needed("state", sa.String(12)),
    _needed("position", sa.Integer),
    _needed("labels", sa.Integer),
    _needed("settled_at", sa.Integer),
    sa.Column("p_valid", sa.Float),
    sa.Column("judged_by", sa.String(80)),
    sa.Index("items_by_position", "dataset", "state", "position"),
    sa.Index("items_by_settling", "dataset", "state", "settled_at"),
    comment="One draft that was looked at. standing: what the automatic steps made of it; state: out, open, settled or "
    "conflict; labels: current ones; settled_at: the act that last changed its outcome.",
)
annotations = _table(
    "annotations",
    sa.Column("key", sa.String(120), primary_key=True),
    _needed("number", sa.Integer),
    _needed("draft", sa.String(40)),
    _needed("annotator", sa.String(120)),
    _needed("accepted", sa.Boolean),
    _needed("reasons", sa.Text),
    _needed("remark", sa.Text),
    sa.Column("wording", sa.Text),
    sa.Column("seconds", sa.Float),
    _needed("made_at", sa.Float),
    sa.Column("withdrawn_at", sa.Float),
    _needed("adjudicates", sa.Boolean),
    sa.Index("annotations_by_draft", "dataset", "draft", "number"),
    sa.Index("annotations_by_annotator", "dataset", "annotator", "number"),
    comment="What an expert said about a draft; one row per key, never deleted.",
)
skips = _table(
    "annotation_skips",
    sa.Column("annotator", sa.String(120), primary_key=True),
    sa.Column("draft", sa.String(40), primary_key=True),
    _needed("number", sa.Integer),
    _needed("made_at", sa.Float),
    comment="Items that an annotator passed over.",
)
comments = _table(
    "annotation_comments",
    sa.Column("key", sa.String(120), primary_key=True),
    _needed("draft", sa.String(40)),
    _needed("author", sa.String(120)),
    _needed("text", sa.Text),
    _needed("made_at", sa.Float),
    _needed("adjudicates", sa.Boolean),
    sa.Index("comments_by_draft", "dataset", "draft", "made_at"),
    comment="What annotators and adjudicators said to each other about a draft; one row a key, never changed.",
)
leases = _table(
    "annotation_leases",
    sa.Column("draft", sa.String(40), primary_key=True),
    sa.Column("annotator", sa.String(120), primary_key=True),
    _needed("until", sa.Float),
    sa.Index("leases_by_annotator", "dataset", "annotator"),
    comment="Items that lie before an annotator, and until when they are kept for them.",
)


def label_row(label: Label, number: int) -> dict[str, Any]:
    """A label as a row; ``number`` puts the labels of a dataset in their order."""
    row = {**asdict(label), "number": number, "reasons": json.dumps(label.reasons)}
    row["wording"] = None if label.wording is None else json.dumps(asdict(label.wording), ensure_ascii=False)
    return row


def label_from(row: Any) -> Label:
    """The label of a row."""
    wording = None if row.wording is None else record_from(Wording, json.loads(row.wording))
    return record_of(Label, row, reasons=tuple(json.loads(row.reasons)), wording=wording)


def current(dataset: str, draft: str | None = None, annotator: str | None = None) -> list[sa.ColumnElement[bool]]:
    """What holds of the labels that count, of one draft or annotator where they are named."""
    results = [annotations.c.dataset == dataset, annotations.c.withdrawn_at.is_(None)]
    results += [] if draft is None else [annotations.c.draft == draft]
    return results + ([] if annotator is None else [annotations.c.annotator == annotator])


def labels_by_draft(connection: sa.Connection, dataset: str, names: Sequence[str]) -> dict[str, list[Label]]:
    """Current labels of drafts, oldest first; a draft without any has no entry."""
    results: dict[str, list[Label]] = {}
    for chunk in chunks(names):
        query = sa.select(annotations).where(*current(dataset), annotations.c.draft.in_(chunk))
        for row in connection.execute(query.order_by(annotations.c.number)):
            results.setdefault(row.draft, []).append(label_from(row))
    return results


def items_of(connection: sa.Connection, dataset: str, names: Sequence[str]) -> dict[str, Any]:
    """Rows of items by draft."""
    results: dict[str, Any] = {}
    for chunk in chunks(names):
        query = sa.select(items).where(items.c.dataset == dataset, items.c.draft.in_(chunk))
        results |= {row.draft: row for row in connection.execute(query)}
    return results


OUT = "out"
"""State of an item that nobody is asked about."""
DraftStatus = Literal["usable", "doubted", "failed", "away"]
"""``usable``: nothing stands against it; ``doubted``: only checks, self-consistency or the validator do; ``failed``:
the call failed and may be made again; ``away``: nobody is asked, because it was never written, repeats another draft,
has no word to mask, or an expert has decided elsewhere."""

_REASON_OF_CHECK = {
    "context reference": "context reference",
    "figure reference": "context reference",
    "not self-contained": "context reference",
    "unsupported answer": "not enough information",
    "not entailed": "not enough information",
    "off topic": "bad context",
}
"""What an expert would call the fault that a check of the screening finds."""


def draft_status(draft: Draft) -> DraftStatus:
    """State of a draft before experts look at it."""
    if draft.error is not None:
        return "failed"
    if not draft.written or any(one.step == "expert" and one.accepted is not None for one in draft.decisions):
        return "away"
    against = {one.step for one in draft.decisions if one.accepted is False}
    if not against:
        return "usable"
    return "doubted" if against <= {"screen", "consistency", "validate"} else "away"


def waiting_state(standing: str, settings: AnnotationSettings) -> str:
    """State of an item without labels."""
    waits = standing == "usable" or (standing == "doubted" and settings.include_rejected)
    return "open" if waits else OUT


def validator_confidence(draft: Draft) -> float | None:
    """P(valid) by the last validator of the pipeline that gave one."""
    scores = (one.score for one in reversed(draft.decisions) if one.step == "validate")
    return next((score for score in scores if score is not None), None)


def items_with_labels(connection: sa.Connection, dataset: str, names: Sequence[str]) -> list[Item]:
    """Items in the order of ``names``, all of which are in the queue."""
    from climassay.generation.masking import StatisticsMasker
    from climassay.generation.terms import candidates

    rows, labels = items_of(connection, dataset, names), labels_by_draft(connection, dataset, names)
    before = drafts_before_experts(connection, dataset, names)
    results = []
    for name in names:
        draft = before[name]
        term: str | None = None
        terms: tuple[str, ...] = ()
        if draft.type.gap:
            term, statement = draft.wording.answer, draft.wording.question
            terms = tuple(word.term for word in candidates(statement))
            if not term:  # no masker has looked at it
                [choice] = StatisticsMasker().choose([statement])
                term = None if choice is None else choice.term
        own, row = tuple(labels.get(name, ())), rows[name]
        reasons = [
            "self-inconsistency" if one.step == "consistency" else _REASON_OF_CHECK.get(one.reason)
            for one in draft.decisions
            if one.accepted is False and one.step in ("consistency", "screen")
        ]
        preselected = tuple(dict.fromkeys(filter(None, reasons)))
        results.append(Item(draft, row.p_valid, term, terms, own, row.state, preselected))
    return results


def item_names(connection: sa.Connection, dataset: str, state: str | None = None) -> list[str]:
    """Drafts that are annotated or wait for it, or those of one state, in the queue's order."""
    chosen = items.c.state != OUT if state is None else items.c.state == state
    query = sa.select(items.c.draft).where(items.c.dataset == dataset, chosen)
    return list(connection.execute(query.order_by(items.c.position, items.c.draft)).scalars())


def count_items(connection: sa.Connection, dataset: str) -> dict[str, int]:
    """Items by state, with those that nobody is asked about."""
    query = sa.select(items.c.state, sa.func.count()).where(items.c.dataset == dataset)
    return {str(state): int(count) for state, count in connection.execute(query.group_by(items.c.state))}


class NotWaitingError(InputError):
    """There is no such item, as far as the drafts were looked at."""


def enqueue_new_drafts(database: Database, dataset: str) -> None:
    """Take into the queue what the pipeline has written since somebody looked, made-again failures included."""
    with database.read() as connection:
        queue = connection.execute(sa.select(queues).where(queues.c.dataset == dataset)).first()
        seen, ours = -1 if queue is None else queue.seen, drafts.c.dataset == dataset
        last = connection.execute(sa.select(sa.func.max(drafts.c.ordinal)).where(ours)).scalar()
        last = -1 if last is None else last
        unseen: list[str] = []
        if last > seen:
            unseen += connection.execute(sa.select(drafts.c.id).where(ours, drafts.c.ordinal > seen)).scalars()
        again = (
            sa.select(items.c.draft)
            .join(drafts, sa.and_(drafts.c.dataset == items.c.dataset, drafts.c.id == items.c.draft))
            .where(items.c.dataset == dataset, items.c.state == OUT)
            .where(items.c.standing == "failed", drafts.c.state != "failed")
        )
        unseen += connection.execute(again).scalars()
        if queue is not None and not unseen and last <= seen:
            return
        results = [
            (name, draft_status(one), validator_confidence(one))
            for chunk in chunks(unseen)
            for name, one in drafts_before_experts(connection, dataset, chunk).items()
        ]

    def work(connection: sa.Connection) -> None:
        queue = LockedQueue(database, connection, dataset)
        plain = {"dataset": dataset, "labels": 0, "settled_at": 0, "judged_by": None, "position": 0}
        rows = [
            plain
            | {
                "draft": name,
                "standing": standing,
                "state": waiting_state(standing, queue.settings),
                "p_valid": p_valid,
            }
            for name, standing, p_valid in results
        ]
        failed = items.delete().where(items.c.dataset == dataset, items.c.standing == "failed")
        for chunk in chunks([name for name, _, _ in results]):
            connection.execute(failed.where(items.c.draft.in_(chunk)))
        database.insert_new(connection, items, rows)
        queue.update(seen=max(last, queue.row.seen))
        queue.order()

    database.write(work)


class LockedQueue:
    """The queue of a dataset, locked: until the end of the transaction nobody else writes.

    Args:
        database: The database of the records.
        connection: In a transaction.
        dataset: Name of the dataset; its queue is made where it is missing.

    Raises:
        InputError: There is no such dataset.
    """

    def __init__(self, database: Database, connection: sa.Connection, dataset: str) -> None:
        self.database, self.connection, self.dataset = database, connection, dataset
        query = sa.select(queues).where(queues.c.dataset == dataset).with_for_update()
        result = connection.execute(query).first()
        if result is None:
            known = connection.execute(sa.select(datasets.c.name).order_by(datasets.c.name)).scalars().all()
            if dataset not in known:
                raise InputError(
                    f"There is no dataset {dataset!r} in this workspace; there are: {', '.join(known) or 'none yet'}."
                )
            row = {"dataset": dataset, "settings": json.dumps(asdict(AnnotationSettings())), "seen": -1, "acts": 0}
            database.insert_new(connection, queues, [row | {"trained_at": 0, "validator": None}])
            result = connection.execute(query).one()
        self.row: Any = result
        self.settings = AnnotationSettings(**json.loads(result.settings))

    def update(self, **values: object) -> None:
        """Change columns of the queue's row."""
        self.connection.execute(queues.update().where(queues.c.dataset == self.dataset).values(**values))

    def next_number(self) -> int:
        """Count one more act."""
        more = queues.update().where(queues.c.dataset == self.dataset).values(acts=queues.c.acts + 1)
        return int(self.connection.execute(more.returning(queues.c.acts)).scalar_one())

    def order(self) -> None:
        """Give open items their places: by the validator's confidence where there is one, else by chance."""
        from climassay.generation.validation import choose_next

        query = sa.select(items.c.draft, items.c.position, items.c.p_valid).where(
            items.c.dataset == self.dataset, items.c.state == "open"
        )
        rows = self.connection.execute(query.order_by(items.c.draft)).all()
        chances = [row.p_valid for row in rows]
        strategy = "random" if all(one is None for one in chances) else self.settings.order
        places = choose_next(rows, chances, None, len(rows), strategy, self.settings.seed)
        moved = [
            {"moved": rows[place].draft, "to": position}
            for position, place in enumerate(places)
            if rows[place].position != position
        ]
        if moved:
            change = items.update().where(items.c.dataset == self.dataset, items.c.draft == sa.bindparam("moved"))
            self.connection.execute(change.values(position=sa.bindparam("to")), moved)

    def reorder(self, probabilities: Mapping[str, float] | None) -> None:
        """Put open items into a new order.

        Args:
            probabilities: Draft -> a validator's P(valid), kept with the items; others keep theirs. None forgets all of
                them, and the order is chance.

        Raises:
            InputError: There is no such dataset, or a number is not a probability.
        """
        wrong = [name for name, value in (probabilities or {}).items() if not 0 <= value <= 1]
        if wrong:
            raise InputError(f"P(valid) of {wrong[0]} lies outside 0 to 1.")
        change = items.update().where(items.c.dataset == self.dataset)
        if probabilities is None:
            self.connection.execute(change.values(p_valid=None, judged_by=None))
        elif probabilities:
            judged = change.where(items.c.draft == sa.bindparam("judged")).values(p_valid=sa.bindparam("given"))
            rows = [{"judged": name, "given": float(value)} for name, value in probabilities.items()]
            self.connection.execute(judged, rows)
        self.order()

    # Whom an item lies before

    def next_item(self, annotator: str, after: str | None) -> str | None:
        """The open item that is kept for an annotator already, else the first that wants a label of theirs; kept now.

        Labels that others are about to give count as given; the item ``after`` is passed over.
        """
        now, dataset = time.time(), self.dataset
        query = sa.select(leases.c.draft).where(
            leases.c.dataset == dataset, leases.c.annotator == annotator, leases.c.until > now
        )
        names = [name for name in self.connection.execute(query).scalars() if name != after]
        kept = [row for row in items_of(self.connection, dataset, names).values() if row.state == "open"]
        if kept:
            result: str | None = min(kept, key=lambda row: row.position).draft
        else:
            taken = (
                sa.select(sa.func.count())
                .where(leases.c.dataset == items.c.dataset, leases.c.draft == items.c.draft)
                .where(leases.c.annotator != annotator, leases.c.until > now)
                .correlate(items)
                .scalar_subquery()
            )
            labelled = sa.exists().where(*current(dataset, annotator=annotator), annotations.c.draft == items.c.draft)
            skipped = sa.exists().where(
                skips.c.dataset == dataset, skips.c.annotator == annotator, skips.c.draft == items.c.draft
            )
            free = (
                sa.select(items.c.draft)
                .where(items.c.dataset == dataset, items.c.state == "open")
                .where(items.c.labels + taken < self.settings.overlap, ~labelled, ~skipped)
            )
            free = free if after is None else free.where(items.c.draft != after)
            result = self.connection.execute(free.order_by(items.c.position).limit(1)).scalar()
        if result is not None:
            self.reserve(result, annotator)
        return result

    def reserve(self, draft: str, annotator: str) -> None:
        """Keep an item for an annotator from now on; earlier leases of the same are replaced."""
        self.release_item(draft, annotator)
        until = time.time() + self.settings.lease_seconds
        row = {"dataset": self.dataset, "draft": draft, "annotator": annotator, "until": until}
        self.connection.execute(leases.insert(), [row])

    def take(self, draft: str, annotator: str) -> bool:
        """Put an item before an annotator who chose it, as :meth:`next_item` does with the one whose turn it is.

        What lay before them until now is kept no longer: somebody who looks around keeps one item from others.

        Returns:
            Whether it lies before them now; False where it wants no more labels than others have given or are to give.

        Raises:
            InputError: There is no such item.
        """
        check_name(annotator, "The name of an annotator")
        item = waiting_item(self.connection, self.dataset, draft)
        ours = (leases.c.dataset == self.dataset, leases.c.annotator == annotator)
        kept = sa.select(leases.c.until).where(*ours, leases.c.draft == item.draft, leases.c.until > time.time())
        if self.connection.execute(kept).first() is None:
            if not self.has_room(item, annotator):
                return False
            self.connection.execute(leases.update().where(*ours).values(until=time.time()))
            self.reserve(item.draft, annotator)
        return True

    def release_item(self, draft: str, annotator: str) -> None:
        """End a lease."""
        ours = (leases.c.dataset == self.dataset, leases.c.draft == draft, leases.c.annotator == annotator)
        self.connection.execute(leases.delete().where(*ours))

    def has_room(self, item: Any, annotator: str) -> bool:
        """Whether an open item wants one more label, those counted that others have before them now."""
        others = sa.select(sa.func.count()).where(
            leases.c.dataset == self.dataset,
            leases.c.draft == item.draft,
            leases.c.annotator != annotator,
            leases.c.until > time.time(),
        )
        taken = int(self.connection.execute(others).scalar_one())
        return bool(item.state == "open" and item.labels + taken < self.settings.overlap)

    def has_label(self, draft: str, annotator: str) -> bool:
        """Whether a label of the annotator on this draft counts."""
        said = sa.select(annotations.c.key).where(*current(self.dataset, draft, annotator))
        return self.connection.execute(said.limit(1)).first() is not None

    def check_turn(self, item: Any, annotator: str) -> None:
        """Refuse a label on an item that was given to others and not to this annotator.

        A lease that has run out is good enough: what somebody was asked, they may answer.

        Raises:
            InputError: It is not this annotator's turn.
        """
        theirs = (leases.c.dataset == self.dataset, leases.c.draft == item.draft, leases.c.annotator == annotator)
        if (
            not self.has_room(item, annotator)
            and self.connection.execute(sa.select(leases.c.until).where(*theirs)).first() is None
            and not self.has_label(item.draft, annotator)
        ):
            raise InputError(f"The item {item.draft} is reserved for others: ask for the next one.")

    # What is said

    def add_label(self, label: Label, item: Any, draft: Draft) -> None:
        """Store a checked label in place of the annotator's earlier one, and settle its draft."""
        self._withdraw(label.draft, label.annotator, label.adjudicates, label.made_at)
        number = self.next_number()
        self.connection.execute(annotations.insert(), [label_row(label, number)])
        self.release_item(label.draft, label.annotator)
        self.unskip(label.annotator, label.draft)
        self.settle([label.draft], number, known=(item, draft))

    def _withdraw(self, draft: str, annotator: str, adjudicates: bool, at: float) -> None:
        earlier = (*current(self.dataset, draft, annotator), annotations.c.adjudicates.is_(adjudicates))
        self.connection.execute(annotations.update().where(*earlier).values(withdrawn_at=at))

    def skip(self, draft: str, annotator: str) -> None:
        """Pass an item over; it does not come to this annotator again until :meth:`unskip` or :meth:`undo`.

        Raises:
            InputError: There is no such item, or the annotator has labelled it.
        """
        check_name(annotator, "The name of an annotator")
        waiting_item(self.connection, self.dataset, draft)
        if self.has_label(draft, annotator):
            raise InputError(f"You have labelled the item {draft}: change the label, or undo it.")
        number = self.next_number()
        self.unskip(annotator, draft)
        row = {"dataset": self.dataset, "annotator": annotator, "draft": draft, "number": number}
        self.connection.execute(skips.insert(), [row | {"made_at": time.time()}])
        self.release_item(draft, annotator)

    def unskip(self, annotator: str, draft: str | None = None) -> int:
        """Put an item that an annotator skipped back before them, or all of them; how many."""
        ours = skips.delete().where(skips.c.dataset == self.dataset, skips.c.annotator == annotator)
        return int(self.connection.execute(ours if draft is None else ours.where(skips.c.draft == draft)).rowcount)

    def undo(self, annotator: str) -> str | None:
        """Take back an annotator's last label or skip that still counts.

        Returns:
            Id of its draft, kept for the annotator again where there is room; None where there is nothing to undo.
        """
        said = sa.select(annotations).where(*current(self.dataset, annotator=annotator))
        label = self.connection.execute(said.order_by(annotations.c.number.desc()).limit(1)).first()
        passed = sa.select(skips).where(skips.c.dataset == self.dataset, skips.c.annotator == annotator)
        skip = self.connection.execute(passed.order_by(skips.c.number.desc()).limit(1)).first()
        if skip is not None and (label is None or skip.number > label.number):
            draft = str(skip.draft)
            self.unskip(annotator, draft)
        elif label is not None:
            draft = str(label.draft)
            self._withdraw(draft, annotator, label.adjudicates, time.time())
            self.settle([draft], self.next_number())
        else:
            return None
        item = items_of(self.connection, self.dataset, [draft])[draft]
        if self.has_room(item, annotator):
            self.reserve(draft, annotator)
        return draft

    def comment(self, draft: str, author: str, text: str, *, key: str, adjudicates: bool = False) -> bool:
        """Store a comment on an item, once for each key.

        Args:
            draft: Id of the item's draft.
            author: Who writes it.
            text: Up to :data:`LONGEST_TEXT` characters.
            key: Made by who sends the comment, and the same whenever it is sent again.
            adjudicates: Whether the author writes as an adjudicator.

        Returns:
            Whether it was stored now.

        Raises:
            InputError: There is no such item, or the comment is empty or too long.
        """
        check_name(author, "The name of an author")
        check_name(key, "The key of a comment")
        made = Comment(key, draft, author, check_comment(text), time.time(), adjudicates)
        waiting_item(self.connection, self.dataset, draft)
        return self._add_comment(made)

    def _add_comment(self, comment: Comment) -> bool:
        stored = sa.select(comments.c.key).where(comments.c.dataset == self.dataset, comments.c.key == comment.key)
        if self.connection.execute(stored).first() is not None:
            return False
        self.connection.execute(comments.insert(), [{"dataset": self.dataset, **asdict(comment)}])
        return True

    # What follows for the drafts

    def settle(self, names: Sequence[str], number: int, known: tuple[Any, Draft] | None = None) -> None:
        """Compute state and outcome of items from their labels, and store what changes."""
        connection, dataset = self.connection, self.dataset
        labels = labels_by_draft(connection, dataset, names)
        if known is None:
            before = items_of(connection, dataset, names)
            bases = drafts_before_experts(connection, dataset, [name for name in names if name in labels])
        else:
            before, bases = {known[0].draft: known[0]}, {known[1].id: known[1]}
        for name in names:
            item, own = before[name], labels.get(name, [])
            outcome = outcome_of(own, self.settings.overlap, bases[name].wording) if own else Outcome("open")
            changed = self._store_outcome(name, outcome)
            connection.execute(
                items.update()
                .where(items.c.dataset == dataset, items.c.draft == name)
                .values(
                    state=outcome.state if own else waiting_state(item.standing, self.settings),
                    labels=sum(not label.adjudicates for label in own),
                    settled_at=number if changed else item.settled_at,
                )
            )

    def _store_outcome(self, draft: str, outcome: Outcome) -> bool:
        """Keep the outcome of a draft, or take it out where there is none; whether it is another than before."""
        key = EXPERTS + draft
        ours = (decisions.c.dataset == self.dataset, decisions.c.key == key)
        before = self.connection.execute(sa.select(decisions.c.body).where(*ours)).scalar()
        body = None
        if outcome.decision is not None:
            wording = None if outcome.wording is None else asdict(outcome.wording)
            body = json.dumps({"decision": asdict(outcome.decision), "wording": wording})
        if body == before:
            return False
        if before is not None:
            self.connection.execute(decisions.delete().where(*ours))
        if body is not None:
            row = {"dataset": self.dataset, "key": key, "draft": draft, "made_at": outcome.made_at, "body": body}
            self.connection.execute(decisions.insert(), [row])
        return True

    def configure(self, settings: AnnotationSettings) -> None:
        """Set how a dataset is annotated; states, outcomes and order of its items follow at once."""
        fewer = settings.overlap < self.settings.overlap
        self.settings = settings
        self.update(settings=json.dumps(asdict(settings)))
        if fewer:
            self.connection.execute(leases.delete().where(leases.c.dataset == self.dataset))
        number = self.next_number()
        for standing in ("usable", "doubted", "failed", "away"):
            state = waiting_state(standing, settings)
            without = items.update().where(items.c.dataset == self.dataset, items.c.standing == standing)
            without = without.where(items.c.labels == 0, items.c.state.in_(("open", OUT)), items.c.state != state)
            self.connection.execute(without.values(state=state))
        queued = sa.select(items.c.draft).where(items.c.dataset == self.dataset)
        labelled = sa.select(annotations.c.draft).where(annotations.c.dataset == self.dataset)
        affected = queued.where(items.c.draft.in_(labelled))
        for chunk in chunks(self.connection.execute(affected).scalars().all()):
            self.settle(chunk, number)
        self.order()

    # What comes from elsewhere

    def import_labels(
        self, given: Sequence[ImportedLabel], passed: Sequence[ImportedSkip] = (), written: Sequence[Comment] = ()
    ) -> ImportReport:
        """Take in labels from elsewhere, all in one transaction; doing it again changes nothing.

        Of two labels of one annotator about a draft the later one counts, whatever the order in which they come. A
        label without a time that says what the annotator's current one says is known. Nobody has to be asked first.

        Args:
            given: Labels, each with a key that is the same whenever the label is given again.
            passed: Items that were skipped.
            written: Comments on items.

        Returns:
            What became of them.

        Raises:
            InputError: There is no such dataset. Labels and comments that cannot be stored are listed in the result.
        """
        connection, dataset = self.connection, self.dataset
        names = list(dict.fromkeys(one.draft for one in given))
        known: dict[str, float | None] = {}
        """Keys that are there, with the time of their withdrawal."""
        for chunk in chunks([one.key for one in given]):
            query = sa.select(annotations.c.key, annotations.c.withdrawn_at)
            query = query.where(annotations.c.dataset == dataset, annotations.c.key.in_(chunk))
            known |= {row.key: row.withdrawn_at for row in connection.execute(query)}
        # Of a draft, an annotator, and whether they adjudicate, only one label counts.
        counting = {
            (label.draft, label.annotator, label.adjudicates): label
            for own in labels_by_draft(connection, dataset, names).values()
            for label in own
        }
        bases = drafts_before_experts(connection, dataset, names)
        new: dict[str, Label] = {}
        ended: dict[str, float] = {}
        """Keys of stored labels that count no more, and since when."""
        refused: list[str] = []
        again = withdrawn = 0
        for one in sorted(given, key=lambda one: one.made_at or time.time()):
            if one.key in known or one.key in new:
                again += 1
                if one.withdrawn_at is not None and known.get(one.key, 0.0) is None:
                    known[one.key] = ended[one.key] = one.withdrawn_at
                    withdrawn += 1
                continue
            try:
                check_name(one.annotator, "The name of an annotator")
                check_name(one.key, "The key of a label")
                draft = bases.get(one.draft)
                if draft is None or not draft.written:
                    raise InputError(f"The dataset {self.dataset} has no draft {one.draft!r} to annotate.")
                made_at = time.time() if one.made_at is None else one.made_at
                label = record_of(Label, check_label(draft, one), dataset=dataset, made_at=made_at)
            except InputError as error:
                refused.append(f"The label of {one.annotator} on {one.draft}: {error}")
                continue
            slot = (label.draft, label.annotator, label.adjudicates)
            earlier = counting.get(slot)
            said = [
                None if label is None else (label.accepted, set(label.reasons), label.remark, label.wording)
                for label in (earlier, label)
            ]  # in sets, since some tools lose the order of reasons
            if one.made_at is None and said[0] == said[1]:
                again += 1
            elif label.withdrawn_at is not None:
                new[label.key] = label
            elif earlier is not None and earlier.made_at > label.made_at:
                new[label.key] = replace(label, withdrawn_at=earlier.made_at)
            else:
                if earlier is not None and earlier.key in new:
                    new[earlier.key] = replace(earlier, withdrawn_at=label.made_at)
                elif earlier is not None:
                    ended[earlier.key] = label.made_at
                new[label.key] = counting[slot] = label
        if ended:
            ending = annotations.update().where(*current(dataset), annotations.c.key == sa.bindparam("ended"))
            rows = [{"ended": key, "at": at} for key, at in ended.items()]
            connection.execute(ending.values(withdrawn_at=sa.bindparam("at")), rows)
        if new:
            rows = [label_row(label, self.next_number()) for label in new.values()]
            connection.execute(annotations.insert(), rows)
        skipped = [one.draft for one in passed]
        labels, there = labels_by_draft(connection, dataset, skipped), items_of(connection, dataset, skipped)
        rows = [
            {"dataset": dataset, **asdict(one), "number": self.next_number()}
            for one in passed
            if one.draft in there and one.annotator not in {label.annotator for label in labels.get(one.draft, ())}
        ]
        self.database.insert_new(connection, skips, rows)
        added = 0
        for comment in written:
            try:
                check_name(comment.author, "The name of an author")
                check_name(comment.key, "The key of a comment")
                if comment.draft not in items_of(connection, dataset, [comment.draft]):
                    raise InputError(f"The dataset {dataset} has no draft {comment.draft!r} to comment on.")
                added += self._add_comment(replace(comment, text=check_comment(comment.text)))
            except InputError as error:
                refused.append(f"The comment of {comment.author} on {comment.draft}: {error}")
        number = self.next_number()
        for chunk in chunks(list(items_of(connection, dataset, names))):
            self.settle(chunk, number)
        return ImportReport(len(new), again - withdrawn, withdrawn, tuple(refused), added)


def waiting_item(connection: sa.Connection, dataset: str, draft: str) -> Any:
    """An item of the queue.

    Raises:
        NotWaitingError: The draft does not wait for experts, or there is none.
    """
    item = items_of(connection, dataset, [draft]).get(draft)
    if item is None or item.state == OUT:
        raise NotWaitingError(f"The dataset {dataset} has no item {draft!r} to annotate.")
    return item
