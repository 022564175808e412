"""The tables of annotations, in the records database beside the drafts, and what a queue is asked.

What anybody said is only ever added to; ``withdrawn_at`` marks what no longer counts. Everything else can be computed
from it again: the state of an item, and the outcome in ``draft_decisions``.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import sqlalchemy as sa

from climassay.generation.annotation.labels import (
    AnnotationSettings,
    Comment,
    FoundItem,
    Item,
    ItemFilter,
    Label,
    Progress,
)
from climassay.generation.dataset_store import chunks, drafts, drafts_before_experts
from climassay.generation.draft import Draft, wording_from
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


OUT = "out"
"""State of an item that nobody is asked about."""
DraftStatus = Literal["usable", "doubted", "failed", "away"]
"""``usable``: nothing stands against it; ``doubted``: only checks, self-consistency or the validator do; ``failed``:
the call failed and may be made again; ``away``: nobody is asked, because it was never written, repeats another draft,
has no word to mask, or an expert has decided elsewhere."""

_DOUBTS = ("screen", "consistency", "validate")
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
    return "doubted" if against <= set(_DOUBTS) else "away"


def waiting_state(standing: str, settings: AnnotationSettings) -> str:
    """State of an item without labels."""
    waits = standing == "usable" or (standing == "doubted" and settings.include_rejected)
    return "open" if waits else OUT


def preselected_reasons(draft: Draft) -> tuple[str, ...]:
    """Reasons for rejection that the automatic steps found, in an expert's words."""
    found: dict[str, None] = {}
    for one in draft.decisions:
        if one.accepted is False and one.step == "consistency":
            found["self-inconsistency"] = None
        elif one.accepted is False and one.step == "screen" and one.reason in _REASON_OF_CHECK:
            found[_REASON_OF_CHECK[one.reason]] = None
    return tuple(found)


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
        found.append(Item(draft, row.p_valid, term, terms, own, row.state, preselected_reasons(draft)))
    return found


def item_names(connection: sa.Connection, dataset: str, state: str | None = None) -> list[str]:
    """Drafts that are annotated or wait for it, or those of one state, in the queue's order."""
    chosen = items.c.state != OUT if state is None else items.c.state == state
    query = sa.select(items.c.draft).where(items.c.dataset == dataset, chosen)
    return list(connection.execute(query.order_by(items.c.position, items.c.draft)).scalars())


def filtered_names(connection: sa.Connection, dataset: str, annotator: str, wanted: ItemFilter) -> list[str]:
    """Drafts of the items that fit, in the order in which they were generated."""
    labelled = sa.exists().where(
        *current(dataset, annotator=annotator), annotations.c.draft == items.c.draft, ~annotations.c.adjudicates
    )
    skipped = sa.exists().where(
        skips.c.dataset == dataset, skips.c.annotator == annotator, skips.c.draft == items.c.draft
    )
    fitting: dict[str, list[sa.ColumnElement[bool]]] = {
        "": [],
        "todo": [items.c.state == "open", ~labelled, ~skipped],
        "done": [labelled],
        "skipped": [skipped],
        "conflict": [items.c.state == "conflict"],
        "decided": [items.c.state == "settled"],
    }
    query = (
        sa.select(items.c.draft)
        .join(drafts, sa.and_(drafts.c.dataset == items.c.dataset, drafts.c.id == items.c.draft))
        .where(items.c.dataset == dataset, items.c.state != OUT, *fitting[wanted.state])
        .order_by(drafts.c.ordinal)
    )
    query = query.where(drafts.c.kind == wanted.kind) if wanted.kind else query
    sought = wanted.text.strip().lower()
    if not sought:
        return list(connection.execute(query).scalars())
    # Databases differ in what they call the same letter: they look for plain letters only, and the rest is done here.
    plain = max(re.findall(r"[0-9a-z ]+", sought), key=len, default="")
    rows = connection.execute(query.add_columns(drafts.c.body).where(drafts.c.body.icontains(plain, autoescape=True)))
    found = []
    for name, body in rows:
        wording = json.loads(body)["wording"]
        texts = (wording["question"], wording["answer"], *wording["options"])
        if any(sought in text.lower() for text in texts):
            found.append(name)
    return found


def found_items(connection: sa.Connection, dataset: str, annotator: str, names: Sequence[str]) -> list[FoundItem]:
    """Items in the order of ``names`` as a list shows them to an annotator."""
    rows, labels = items_of(connection, dataset, names), labels_by_draft(connection, dataset, names)
    before = drafts_before_experts(connection, dataset, names)
    passed = sa.select(skips.c.draft).where(skips.c.dataset == dataset, skips.c.annotator == annotator)
    skipped = set(connection.execute(passed).scalars())
    counted = sa.select(comments.c.draft, sa.func.count()).where(comments.c.dataset == dataset)
    said = {str(name): int(count) for name, count in connection.execute(counted.group_by(comments.c.draft))}
    return [
        FoundItem(
            before[name],
            rows[name].state,
            next((one for one in labels.get(name, ()) if one.annotator == annotator and not one.adjudicates), None),
            name in skipped,
            said.get(name, 0),
        )
        for name in names
    ]


def count_items(connection: sa.Connection, dataset: str) -> dict[str, int]:
    """Items by state, with those that nobody is asked about."""
    query = sa.select(items.c.state, sa.func.count()).where(items.c.dataset == dataset)
    return {str(state): int(count) for state, count in connection.execute(query.group_by(items.c.state))}


def progress_of(connection: sa.Connection, dataset: str, annotator: str | None) -> Progress:
    """How far a dataset has come, and one annotator in it."""
    counts = count_items(connection, dataset)
    by = sa.select(annotations.c.annotator, sa.func.count(), sa.func.sum(annotations.c.seconds))
    by = by.where(*current(dataset)).group_by(annotations.c.annotator)
    labelled = connection.execute(by.where(~annotations.c.adjudicates))
    totals = {name: (int(count), float(seconds or 0)) for name, count, seconds in labelled}
    decisions = {name: int(count) for name, count, _ in connection.execute(by.where(annotations.c.adjudicates))}
    mine, seconds = 0, sum(spent for _, spent in totals.values())
    left, skipped = counts.get("open", 0), 0
    if annotator is not None:
        mine, seconds = totals.get(annotator, (0, 0.0))
        passed = sa.select(skips.c.draft).where(skips.c.dataset == dataset, skips.c.annotator == annotator)
        skipped = len(connection.execute(passed).all())
        own = sa.select(annotations.c.draft).where(*current(dataset, annotator=annotator))
        done = own.union(passed).subquery()
        touched = (
            sa.select(sa.func.count())
            .select_from(done.join(items, sa.and_(items.c.dataset == dataset, items.c.draft == done.c.draft)))
            .where(items.c.state == "open")
        )
        left -= int(connection.execute(touched).scalar_one())
    return Progress(
        items=sum(counts.values()) - counts.get(OUT, 0),
        left_out=counts.get(OUT, 0),
        settled=counts.get("settled", 0),
        conflicts=counts.get("conflict", 0),
        labelled_by={name: totals[name][0] for name in sorted(totals, key=lambda name: (-totals[name][0], name))},
        mine=mine,
        adjudicated=decisions.get(annotator or "", 0),
        skipped=skipped,
        left_for_me=left,
        seconds=seconds,
    )
