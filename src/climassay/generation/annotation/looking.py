"""Reading the state of a queue."""

from collections.abc import Sequence

import sqlalchemy as sa

from climassay.generation.annotation.item_queue import OUT, items_of
from climassay.generation.annotation.labels import Item, Progress
from climassay.generation.annotation.rows import labels_by_draft
from climassay.generation.annotation.standing import preselected_reasons, suggested_term, term_candidates
from climassay.generation.annotation.tables import annotations, items, skips
from climassay.generation.dataset_store import drafts_before_experts


def items_with_labels(connection: sa.Connection, dataset: str, names: Sequence[str]) -> list[Item]:
    """Items in the order of ``names``, all of which are in the queue."""
    rows, labels = items_of(connection, dataset, names), labels_by_draft(connection, dataset, names)
    drafts = drafts_before_experts(connection, dataset, names)
    return [
        Item(
            draft,
            rows[name].p_valid,
            suggested_term(draft),
            term_candidates(draft),
            tuple(labels.get(name, ())),
            rows[name].state,
            preselected_reasons(draft),
        )
        for name in names
        for draft in (drafts[name],)
    ]


def item_names(connection: sa.Connection, dataset: str) -> list[str]:
    """Drafts that are annotated or wait for it, in the queue's order."""
    query = sa.select(items.c.draft).where(items.c.dataset == dataset, items.c.state != OUT)
    return list(connection.execute(query.order_by(items.c.position, items.c.draft)).scalars())


def conflict_names(connection: sa.Connection, dataset: str) -> list[str]:
    """Drafts whose labels do not agree, in the queue's order."""
    query = sa.select(items.c.draft).where(items.c.dataset == dataset, items.c.state == "conflict")
    return list(connection.execute(query.order_by(items.c.position, items.c.draft)).scalars())


def count_items(connection: sa.Connection, dataset: str) -> dict[str, int]:
    """Items by state, those left out that nobody is asked about."""
    query = (
        sa.select(items.c.state, sa.func.count())
        .where(items.c.dataset == dataset, items.c.state != OUT)
        .group_by(items.c.state)
    )
    return {str(state): int(count) for state, count in connection.execute(query)}


def progress_of(connection: sa.Connection, dataset: str, annotator: str | None) -> Progress:
    """How far a dataset has come; see :class:`Progress`."""
    counts = count_items(connection, dataset)
    said = (
        annotations.c.dataset == dataset,
        annotations.c.withdrawn_at.is_(None),
        annotations.c.adjudicates.is_(False),
    )
    by = sa.select(annotations.c.annotator, sa.func.count(), sa.func.sum(annotations.c.seconds)).where(*said)
    totals = {
        name: (int(count), float(seconds or 0))
        for name, count, seconds in connection.execute(by.group_by(annotations.c.annotator))
    }
    names = sorted(totals, key=lambda name: (-totals[name][0], name))
    left = open_ = counts.get("open", 0)
    skipped = 0
    if annotator is not None:
        passed = (skips.c.dataset == dataset, skips.c.annotator == annotator)
        skipped = int(connection.execute(sa.select(sa.func.count()).select_from(skips).where(*passed)).scalar_one())
        own = sa.select(annotations.c.draft).where(*said[:2], annotations.c.annotator == annotator)
        done = own.union(sa.select(skips.c.draft).where(*passed)).subquery()
        touched = (
            sa.select(sa.func.count())
            .select_from(done.join(items, sa.and_(items.c.dataset == dataset, items.c.draft == done.c.draft)))
            .where(items.c.state == "open")
        )
        left = open_ - int(connection.execute(touched).scalar_one())
    seconds = sum(spent for _, spent in totals.values())
    return Progress(
        items=sum(counts.values()),
        settled=counts.get("settled", 0),
        conflicts=counts.get("conflict", 0),
        labelled_by={name: totals[name][0] for name in names},
        mine=0 if annotator is None else totals.get(annotator, (0, 0.0))[0],
        skipped=skipped,
        left_for_me=left,
        seconds=seconds if annotator is None else totals.get(annotator, (0, 0.0))[1],
    )
