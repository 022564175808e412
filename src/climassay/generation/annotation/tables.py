"""The tables of annotations, in the records database beside the drafts.

What anybody said is only ever added to; ``withdrawn_at`` marks what no longer counts. Everything else can be computed
from it again: the state of an item, and the outcome in ``draft_decisions``.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from climassay.generation.annotation.labels import AnnotationSettings, Comment, Label
from climassay.generation.dataset_store import chunks, drafts
from climassay.generation.draft import wording_from
from climassay.records.database import record_of

metadata = sa.MetaData()


def _of_a_draft() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["dataset", "draft"], [drafts.c.dataset, drafts.c.id])


queues = sa.Table(
    "annotation_queues",
    metadata,
    sa.Column("dataset", sa.String(120), primary_key=True),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("seen", sa.Integer, nullable=False),
    sa.Column("acts", sa.Integer, nullable=False),
    sa.Column("trained_at", sa.Integer, nullable=False),
    sa.Column("validator", sa.Text),
    comment="One dataset that is annotated. seen: the last draft's ordinal that was looked at; acts: labels and skips "
    "so far, which numbers them; trained_at: acts when the last training read the labels. Its row is locked by "
    "whoever writes.",
)
items = sa.Table(
    "annotation_items",
    metadata,
    sa.Column("dataset", sa.String(120), primary_key=True),
    sa.Column("draft", sa.String(40), primary_key=True),
    sa.Column("standing", sa.String(12), nullable=False),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("labels", sa.Integer, nullable=False),
    sa.Column("settled_at", sa.Integer, nullable=False),
    sa.Column("p_valid", sa.Float),
    sa.Column("judged_by", sa.String(80)),
    _of_a_draft(),
    sa.Index("items_by_position", "dataset", "state", "position"),
    sa.Index("items_by_settling", "dataset", "state", "settled_at"),
    comment="One draft that was looked at. standing: what the automatic steps made of it; state: out, open, settled or "
    "conflict; labels: current ones; settled_at: the act that last changed its outcome.",
)
annotations = sa.Table(
    "annotations",
    metadata,
    sa.Column("dataset", sa.String(120), primary_key=True),
    sa.Column("key", sa.String(120), primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("draft", sa.String(40), nullable=False),
    sa.Column("annotator", sa.String(120), nullable=False),
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("reasons", sa.Text, nullable=False),
    sa.Column("remark", sa.Text, nullable=False),
    sa.Column("wording", sa.Text),
    sa.Column("seconds", sa.Float),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("withdrawn_at", sa.Float),
    sa.Column("adjudicates", sa.Boolean, nullable=False),
    _of_a_draft(),
    sa.Index("annotations_by_draft", "dataset", "draft", "number"),
    sa.Index("annotations_by_annotator", "dataset", "annotator", "number"),
    comment="What an expert said about a draft; one row per key, never deleted.",
)
skips = sa.Table(
    "annotation_skips",
    metadata,
    sa.Column("dataset", sa.String(120), primary_key=True),
    sa.Column("annotator", sa.String(120), primary_key=True),
    sa.Column("draft", sa.String(40), primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    _of_a_draft(),
    comment="Items that an annotator passed over.",
)
comments = sa.Table(
    "annotation_comments",
    metadata,
    sa.Column("dataset", sa.String(120), primary_key=True),
    sa.Column("key", sa.String(120), primary_key=True),
    sa.Column("draft", sa.String(40), nullable=False),
    sa.Column("author", sa.String(120), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("adjudicates", sa.Boolean, nullable=False),
    _of_a_draft(),
    sa.Index("comments_by_draft", "dataset", "draft", "made_at"),
    comment="What annotators and adjudicators said to each other about a draft; one row a key, never changed.",
)
leases = sa.Table(
    "annotation_leases",
    metadata,
    sa.Column("dataset", sa.String(120), primary_key=True),
    sa.Column("draft", sa.String(40), primary_key=True),
    sa.Column("annotator", sa.String(120), primary_key=True),
    sa.Column("until", sa.Float, nullable=False),
    _of_a_draft(),
    sa.Index("leases_by_annotator", "dataset", "annotator"),
    comment="Items that lie before an annotator, and until when they are kept for them.",
)


def settings_from(text: str) -> AnnotationSettings:
    """Settings as they are stored."""
    return AnnotationSettings(**json.loads(text))


def label_row(label: Label, number: int) -> dict[str, Any]:
    """A label as a row; ``number`` puts the labels of a dataset in their order."""
    row = {**asdict(label), "number": number, "reasons": json.dumps(label.reasons)}
    row["wording"] = None if label.wording is None else json.dumps(asdict(label.wording), ensure_ascii=False)
    return row


def label_from(row: Any) -> Label:
    """The label of a row."""
    wording = None if row.wording is None else wording_from(json.loads(row.wording))
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


def comment_from(row: Any) -> Comment:
    """The comment of a row."""
    return Comment(**{name: getattr(row, name) for name in Comment.__dataclass_fields__})


def items_of(connection: sa.Connection, dataset: str, names: Sequence[str]) -> dict[str, Any]:
    """Rows of items by draft."""
    found: dict[str, Any] = {}
    for chunk in chunks(names):
        query = sa.select(items).where(items.c.dataset == dataset, items.c.draft.in_(chunk))
        found |= {row.draft: row for row in connection.execute(query)}
    return found
