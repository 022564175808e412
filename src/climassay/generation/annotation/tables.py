"""The tables of annotations, in the records database beside the drafts, and what a queue is asked.

What anybody said is only ever added to; ``withdrawn_at`` marks what no longer counts. Everything else can be computed
from it again: the state of an item, and the outcome in ``draft_decisions``.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import sqlalchemy as sa

from climassay.generation.annotation.labels import (
    AnnotationSettings,
    Item,
    Label,
)
from climassay.generation.dataset_store import chunks, drafts, drafts_before_experts
from climassay.generation.draft import Draft, Wording, record_from
from climassay.records.database import record_of

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
    found = [annotations.c.dataset == dataset, annotations.c.withdrawn_at.is_(None)]
    found += [] if draft is None else [annotations.c.draft == draft]
    return found + ([] if annotator is None else [annotations.c.annotator == annotator])


def labels_by_draft(connection: sa.Connection, dataset: str, names: Sequence[str]) -> dict[str, list[Label]]:
    """Current labels of drafts, oldest first; a draft without any has no entry."""
    found: dict[str, list[Label]] = {}
    for chunk in chunks(names):
        query = sa.select(annotations).where(*current(dataset), annotations.c.draft.in_(chunk))
        for row in connection.execute(query.order_by(annotations.c.number)):
            found.setdefault(row.draft, []).append(label_from(row))
    return found


def items_of(connection: sa.Connection, dataset: str, names: Sequence[str]) -> dict[str, Any]:
    """Rows of items by draft."""
    found: dict[str, Any] = {}
    for chunk in chunks(names):
        query = sa.select(items).where(items.c.dataset == dataset, items.c.draft.in_(chunk))
        found |= {row.draft: row for row in connection.execute(query)}
    return found


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
    from climassay.generation.masking import StatisticsMasker, candidates

    rows, labels = items_of(connection, dataset, names), labels_by_draft(connection, dataset, names)
    before = drafts_before_experts(connection, dataset, names)
    found = []
    for name in names:
        draft = before[name]
        term: str | None = None
        terms: tuple[str, ...] = ()
        if draft.type.gap:
            term, statement = draft.wording.answer, draft.wording.question
            terms = tuple(word.term for word in candidates(statement))
            if not term:  # no masker has looked at it
                [choice] = StatisticsMasker(passage.text for passage in draft.passages).choose([statement])
                term = None if choice is None else choice.term
        own, row = tuple(labels.get(name, ())), rows[name]
        reasons = [
            "self-inconsistency" if one.step == "consistency" else _REASON_OF_CHECK.get(one.reason)
            for one in draft.decisions
            if one.accepted is False and one.step in ("consistency", "screen")
        ]
        preselected = tuple(dict.fromkeys(filter(None, reasons)))
        found.append(Item(draft, row.p_valid, term, terms, own, row.state, preselected))
    return found


def item_names(connection: sa.Connection, dataset: str, state: str | None = None) -> list[str]:
    """Drafts that are annotated or wait for it, or those of one state, in the queue's order."""
    chosen = items.c.state != OUT if state is None else items.c.state == state
    query = sa.select(items.c.draft).where(items.c.dataset == dataset, chosen)
    return list(connection.execute(query.order_by(items.c.position, items.c.draft)).scalars())


def count_items(connection: sa.Connection, dataset: str) -> dict[str, int]:
    """Items by state, with those that nobody is asked about."""
    query = sa.select(items.c.state, sa.func.count()).where(items.c.dataset == dataset)
    return {str(state): int(count) for state, count in connection.execute(query.group_by(items.c.state))}
