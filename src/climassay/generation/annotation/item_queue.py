"""The queue of a dataset: which drafts wait, in which order, and who has which item before them."""

import time
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.labels import AnnotationSettings
from climassay.generation.annotation.rows import settings_from, settings_text
from climassay.generation.annotation.standing import standing_of, validator_confidence
from climassay.generation.annotation.tables import annotations, items, leases, queues, skips
from climassay.generation.dataset_store import DRAFTS_PER_QUERY, datasets, drafts, drafts_before_experts
from climassay.records.database import Database

OUT = "out"
"""State of an item that nobody is asked about."""


def lock_queue(database: Database, connection: sa.Connection, dataset: str) -> Any:
    """The row of a dataset's queue, made where it is missing; until the end of the transaction nobody else writes.

    Raises:
        InputError: There is no such dataset.
    """
    query = sa.select(queues).where(queues.c.dataset == dataset).with_for_update()
    found = connection.execute(query).first()
    if found is None:
        known = connection.execute(sa.select(datasets.c.name).order_by(datasets.c.name)).scalars().all()
        if dataset not in known:
            raise InputError(
                f"There is no dataset {dataset!r} in this workspace; there are: {', '.join(known) or 'none yet'}."
            )
        row = {"dataset": dataset, "settings": settings_text(AnnotationSettings()), "seen": -1, "acts": 0}
        database.insert_new(connection, queues, [row | {"trained_at": 0, "validator": None}])
        found = connection.execute(query).one()
    return found


def take_number(connection: sa.Connection, queue: Any) -> int:
    """Count one more act in a queue that is locked."""
    ours = queues.c.dataset == queue.dataset
    more = queues.update().where(ours).values(acts=queues.c.acts + 1).returning(queues.c.acts)
    return int(connection.execute(more).scalar_one())


def look_at_new_drafts(database: Database, dataset: str) -> None:
    """Take into the queue what the line has written since somebody looked, made-again failures included."""
    with database.read() as connection:
        queue = connection.execute(sa.select(queues).where(queues.c.dataset == dataset)).first()
        unseen, last = _unseen(connection, dataset, -1 if queue is None else queue.seen)
        if queue is not None and not unseen and last <= queue.seen:
            return
        found = []
        for start in range(0, len(unseen), DRAFTS_PER_QUERY):
            written = drafts_before_experts(connection, dataset, unseen[start : start + DRAFTS_PER_QUERY])
            found += [(name, standing_of(one), validator_confidence(one)) for name, one in written.items()]

    def work(connection: sa.Connection) -> None:
        queue = lock_queue(database, connection, dataset)
        settings = settings_from(queue.settings)
        plain = {"dataset": dataset, "labels": 0, "settled_at": 0, "judged_by": None, "position": 0}
        rows = [
            plain
            | {"draft": name, "standing": standing, "state": waiting_state(standing, settings), "p_valid": p_valid}
            for name, standing, p_valid in found
        ]
        failed = items.delete().where(items.c.dataset == dataset, items.c.standing == "failed")
        for start in range(0, len(rows), DRAFTS_PER_QUERY):
            names = [row["draft"] for row in rows[start : start + DRAFTS_PER_QUERY]]
            connection.execute(failed.where(items.c.draft.in_(names)))
        database.insert_new(connection, items, rows)
        seen = max(last, queue.seen)
        connection.execute(queues.update().where(queues.c.dataset == dataset).values(seen=seen))
        order_items(connection, dataset, settings)

    database.write(work)


def _unseen(connection: sa.Connection, dataset: str, seen: int) -> tuple[list[str], int]:
    """Ids of drafts that were not looked at as they are now, and the last ordinal."""
    ours = drafts.c.dataset == dataset
    last = connection.execute(sa.select(sa.func.max(drafts.c.ordinal)).where(ours)).scalar()
    new: list[str] = []
    if last is not None and last > seen:
        new += connection.execute(sa.select(drafts.c.id).where(ours, drafts.c.ordinal > seen)).scalars()
    again = (
        sa.select(items.c.draft)
        .join(drafts, sa.and_(drafts.c.dataset == items.c.dataset, drafts.c.id == items.c.draft))
        .where(
            items.c.dataset == dataset, items.c.state == OUT, items.c.standing == "failed", drafts.c.state != "failed"
        )
    )
    new += connection.execute(again).scalars()
    return new, -1 if last is None else last


def waiting_state(standing: str, settings: AnnotationSettings) -> str:
    """State of an item without labels."""
    waits = standing == "usable" or (standing == "doubted" and settings.include_rejected)
    return "open" if waits else OUT


def order_items(connection: sa.Connection, dataset: str, settings: AnnotationSettings) -> None:
    """Give open items their places: by the validator's confidence where there is one, else by chance."""
    import numpy as np

    from climassay.generation.validation.active_learning import choose_places

    query = sa.select(items.c.draft, items.c.position, items.c.p_valid).where(
        items.c.dataset == dataset, items.c.state == "open"
    )
    rows = connection.execute(query.order_by(items.c.draft)).all()
    judged = any(row.p_valid is not None for row in rows)
    chances = np.array([0.5 if row.p_valid is None else row.p_valid for row in rows], dtype=np.float64)
    places = choose_places(chances, None, len(rows), settings.order if judged else "random", settings.seed)
    moved = [
        {"moved": rows[place].draft, "to": position}
        for position, place in enumerate(places.tolist())
        if rows[place].position != position
    ]
    if moved:
        change = items.update().where(items.c.dataset == dataset, items.c.draft == sa.bindparam("moved"))
        connection.execute(change.values(position=sa.bindparam("to")), moved)


def item_before(connection: sa.Connection, dataset: str, annotator: str, after: str | None, now: float) -> str | None:
    """The first open item that is kept for an annotator already."""
    query = sa.select(leases.c.draft).where(
        leases.c.dataset == dataset, leases.c.annotator == annotator, leases.c.until > now
    )
    names = [name for name in connection.execute(query).scalars() if name != after]
    found = [row for row in items_of(connection, dataset, names).values() if row.state == "open"]
    return min(found, key=lambda row: row.position).draft if found else None


def free_item(
    connection: sa.Connection, dataset: str, annotator: str, overlap: int, after: str | None, now: float
) -> str | None:
    """The first item that still wants a label of this annotator, those counted that others are about to give."""
    at = sa.and_(leases.c.dataset == items.c.dataset, leases.c.draft == items.c.draft)
    taken = (
        sa.select(sa.func.count())
        .where(at, leases.c.annotator != annotator, leases.c.until > now)
        .correlate(items)
        .scalar_subquery()
    )
    labelled = (
        sa.exists()
        .where(annotations.c.dataset == items.c.dataset, annotations.c.draft == items.c.draft)
        .where(annotations.c.annotator == annotator, annotations.c.withdrawn_at.is_(None))
    )
    skipped = (
        sa.exists()
        .where(skips.c.dataset == items.c.dataset, skips.c.annotator == annotator)
        .where(skips.c.draft == items.c.draft)
    )
    query = (
        sa.select(items.c.draft)
        .where(items.c.dataset == dataset, items.c.state == "open", items.c.labels + taken < overlap)
        .where(~labelled, ~skipped)
        .order_by(items.c.position)
        .limit(1)
    )
    if after is not None:
        query = query.where(items.c.draft != after)
    return connection.execute(query).scalar()


def keep_for(connection: sa.Connection, dataset: str, draft: str, annotator: str, until: float) -> None:
    """Keep an item for an annotator; earlier leases of the same are replaced."""
    give_back(connection, dataset, draft, annotator)
    row = {"dataset": dataset, "draft": draft, "annotator": annotator, "until": until}
    connection.execute(leases.insert(), [row])


def give_back(connection: sa.Connection, dataset: str, draft: str, annotator: str) -> None:
    """End a lease."""
    ours = (leases.c.dataset == dataset, leases.c.draft == draft, leases.c.annotator == annotator)
    connection.execute(leases.delete().where(*ours))


def kept_for_others(connection: sa.Connection, dataset: str, draft: str, annotator: str) -> int:
    """How many others have an item before them now."""
    query = sa.select(sa.func.count()).where(
        leases.c.dataset == dataset,
        leases.c.draft == draft,
        leases.c.annotator != annotator,
        leases.c.until > time.time(),
    )
    return int(connection.execute(query).scalar_one())


def items_of(connection: sa.Connection, dataset: str, names: Sequence[str]) -> dict[str, Any]:
    """Rows of items by draft."""
    found: dict[str, Any] = {}
    for start in range(0, len(names), DRAFTS_PER_QUERY):
        chunk = names[start : start + DRAFTS_PER_QUERY]
        query = sa.select(items).where(items.c.dataset == dataset, items.c.draft.in_(chunk))
        found |= {row.draft: row for row in connection.execute(query)}
    return found
