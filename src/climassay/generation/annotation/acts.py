"""What annotators do, each inside one transaction: label, skip, take back; and what follows for the draft."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.checking import Verdict
from climassay.generation.annotation.item_queue import (
    OUT,
    give_back,
    items_of,
    keep_for,
    kept_for_others,
    take_number,
    waiting_state,
)
from climassay.generation.annotation.labels import AnnotationSettings, Label
from climassay.generation.annotation.outcome import Outcome, outcome_of
from climassay.generation.annotation.rows import label_from, label_row, labels_by_draft, settings_from
from climassay.generation.annotation.tables import annotations, items, leases, skips
from climassay.generation.dataset_store import DRAFTS_PER_QUERY, EXPERTS, decisions, drafts_before_experts
from climassay.generation.draft import Draft


def stored_label(connection: sa.Connection, dataset: str, key: str) -> Label | None:
    """The label of a key."""
    found = connection.execute(
        sa.select(annotations).where(annotations.c.dataset == dataset, annotations.c.key == key)
    ).first()
    return None if found is None else label_from(found)


def add_label(connection: sa.Connection, queue: Any, label: Label, item: Any, draft: Draft) -> None:
    """Store a label in place of the annotator's earlier one, and settle its draft.

    The queue is locked, the label is checked, and item and draft are those that it is about.
    """
    withdraw(connection, label.dataset, label.draft, label.annotator, label.adjudicates, label.made_at)
    number = take_number(connection, queue)
    connection.execute(annotations.insert(), [label_row(label, number)])
    give_back(connection, label.dataset, label.draft, label.annotator)
    unskip(connection, label.dataset, label.annotator, label.draft)
    settle(connection, label.dataset, [label.draft], settings_from(queue.settings), number, known=(item, draft))


def make_label(
    dataset: str, draft: str, annotator: str, verdict: Verdict, key: str, *, adjudicates: bool = False
) -> Label:
    """A label that is made now."""
    return Label(
        key,
        dataset,
        draft,
        annotator,
        verdict.accepted,
        verdict.reasons,
        verdict.remark,
        verdict.wording,
        verdict.seconds,
        made_at=time.time(),
        withdrawn_at=None,
        adjudicates=adjudicates,
    )


def withdraw(connection: sa.Connection, dataset: str, draft: str, annotator: str, adjudicates: bool, at: float) -> None:
    """Mark the annotator's current label of a draft as withdrawn."""
    connection.execute(
        annotations.update()
        .where(annotations.c.dataset == dataset, annotations.c.draft == draft, annotations.c.annotator == annotator)
        .where(annotations.c.adjudicates.is_(adjudicates), annotations.c.withdrawn_at.is_(None))
        .values(withdrawn_at=at)
    )


def check_turn(connection: sa.Connection, dataset: str, item: Any, annotator: str, overlap: int) -> None:
    """Refuse a label on an item that was given to others and not to this annotator.

    A lease that has run out is good enough: what somebody was asked, they may answer.

    Raises:
        InputError: It is not this annotator's turn.
    """
    if item.state == "open" and item.labels + kept_for_others(connection, dataset, item.draft, annotator) < overlap:
        return
    theirs = (leases.c.dataset == dataset, leases.c.draft == item.draft, leases.c.annotator == annotator)
    if connection.execute(sa.select(leases.c.until).where(*theirs)).first() is not None:
        return
    said = sa.select(annotations.c.key).where(
        annotations.c.dataset == dataset,
        annotations.c.draft == item.draft,
        annotations.c.annotator == annotator,
        annotations.c.withdrawn_at.is_(None),
    )
    if connection.execute(said.limit(1)).first() is None:
        raise InputError(f"The item {item.draft} is in other hands: ask for the next one.")


def skip_item(connection: sa.Connection, queue: Any, draft: str, annotator: str) -> None:
    """Pass an item over, and leave it to others."""
    number = take_number(connection, queue)
    unskip(connection, queue.dataset, annotator, draft)
    row = {"dataset": queue.dataset, "annotator": annotator, "draft": draft, "number": number, "made_at": time.time()}
    connection.execute(skips.insert(), [row])
    give_back(connection, queue.dataset, draft, annotator)


def unskip(connection: sa.Connection, dataset: str, annotator: str, draft: str | None = None) -> int:
    """Forget that an annotator skipped an item, or all of them."""
    ours = skips.delete().where(skips.c.dataset == dataset, skips.c.annotator == annotator)
    return int(connection.execute(ours if draft is None else ours.where(skips.c.draft == draft)).rowcount)


def undo_last(connection: sa.Connection, queue: Any, annotator: str) -> str | None:
    """Take back the last label or skip of an annotator; the item lies before them again where there is room."""
    dataset, settings = queue.dataset, settings_from(queue.settings)
    label = connection.execute(
        sa.select(annotations)
        .where(annotations.c.dataset == dataset, annotations.c.annotator == annotator)
        .where(annotations.c.withdrawn_at.is_(None))
        .order_by(annotations.c.number.desc())
        .limit(1)
    ).first()
    skip = connection.execute(
        sa.select(skips)
        .where(skips.c.dataset == dataset, skips.c.annotator == annotator)
        .order_by(skips.c.number.desc())
        .limit(1)
    ).first()
    if skip is not None and (label is None or skip.number > label.number):
        draft = str(skip.draft)
        unskip(connection, dataset, annotator, draft)
    elif label is not None:
        draft = str(label.draft)
        withdraw(connection, dataset, draft, annotator, label.adjudicates, time.time())
        settle(connection, dataset, [draft], settings, take_number(connection, queue))
    else:
        return None
    item = items_of(connection, dataset, [draft])[draft]
    if item.state == "open" and item.labels + kept_for_others(connection, dataset, draft, annotator) < settings.overlap:
        keep_for(connection, dataset, draft, annotator, time.time() + settings.lease_seconds)
    return draft


def settle(
    connection: sa.Connection,
    dataset: str,
    names: Sequence[str],
    settings: AnnotationSettings,
    number: int,
    known: tuple[Any, Draft] | None = None,
) -> None:
    """Compute state and outcome of items from their labels, and store what changes.

    Args:
        connection: In a transaction that has locked the queue.
        dataset: Name of the dataset.
        names: Drafts, all of them in the queue.
        settings: Of the dataset.
        number: Of the act that made this necessary.
        known: Row of the item and its draft, where it is one and they were read already.
    """
    before = items_of(connection, dataset, names) if known is None else {known[0].draft: known[0]}
    labels = labels_by_draft(connection, dataset, names)
    if known is None:
        bases = drafts_before_experts(connection, dataset, [name for name in names if name in labels])
    else:
        bases = {known[1].id: known[1]}
    for name in names:
        item, own = before[name], labels.get(name, [])
        outcome = outcome_of(own, settings.overlap, bases[name].wording) if own else Outcome("open")
        state = outcome.state if own else waiting_state(item.standing, settings)
        changed = _store_outcome(connection, dataset, name, outcome)
        ordinary = sum(not label.adjudicates for label in own)
        connection.execute(
            items.update()
            .where(items.c.dataset == dataset, items.c.draft == name)
            .values(state=state, labels=ordinary, settled_at=number if changed else item.settled_at)
        )


def _store_outcome(connection: sa.Connection, dataset: str, draft: str, outcome: Outcome) -> bool:
    """Keep the outcome of a draft, or take it out where there is none; whether it is another than before."""
    key = EXPERTS + draft
    ours = (decisions.c.dataset == dataset, decisions.c.key == key)
    before = connection.execute(sa.select(decisions.c.body).where(*ours)).scalar()
    body = None
    if outcome.decision is not None:
        wording = None if outcome.wording is None else asdict(outcome.wording)
        body = json.dumps({"decision": asdict(outcome.decision), "wording": wording})
    if body == before:
        return False
    if before is not None:
        connection.execute(decisions.delete().where(*ours))
    if body is not None:
        row = {"dataset": dataset, "key": key, "draft": draft, "made_at": outcome.made_at, "body": body}
        connection.execute(decisions.insert(), [row])
    return True


def settle_all(connection: sa.Connection, dataset: str, settings: AnnotationSettings, number: int) -> None:
    """State and outcome of everything, after the settings changed."""
    names = connection.execute(sa.select(items.c.draft).where(items.c.dataset == dataset)).scalars().all()
    labelled = connection.execute(
        sa.select(annotations.c.draft).distinct().where(annotations.c.dataset == dataset)
    ).scalars()
    with_labels = set(labelled)
    for standing in ("usable", "doubted", "failed", "away"):
        state = waiting_state(standing, settings)
        without = items.update().where(items.c.dataset == dataset, items.c.standing == standing)
        without = without.where(items.c.labels == 0, items.c.state.in_(("open", OUT)), items.c.state != state)
        connection.execute(without.values(state=state))
    affected = [name for name in names if name in with_labels]
    for start in range(0, len(affected), DRAFTS_PER_QUERY):
        settle(connection, dataset, affected[start : start + DRAFTS_PER_QUERY], settings, number)


class NotWaitingError(InputError):
    """There is no such item, as far as the drafts were looked at."""


def waiting_item(connection: sa.Connection, dataset: str, draft: str) -> Any:
    """An item of the queue.

    Raises:
        NotWaitingError: The draft does not wait for experts, or there is none.
    """
    item = items_of(connection, dataset, [draft]).get(draft)
    if item is None or item.state == OUT:
        raise NotWaitingError(f"The dataset {dataset} has no item {draft!r} to annotate.")
    return item
