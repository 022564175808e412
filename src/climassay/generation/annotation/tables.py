"""The tables of annotations, in the records database beside the drafts.

What anybody said is only ever added to; ``withdrawn_at`` marks what no longer counts. Everything else can be computed
from it again: the state of an item, and the outcome in ``draft_decisions``.
"""

import sqlalchemy as sa

from climassay.generation.dataset_store import drafts

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
    comment="What an expert said about a draft; one row a key, never deleted.",
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
