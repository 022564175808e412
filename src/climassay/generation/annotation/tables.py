"""Database tables of annotations, beside the drafts, and the queries that read items and labels.

Labels, skips and comments are never changed, except that ``withdrawn_at`` is set for a label that no longer counts. The
state of an item, and its outcome in ``draft_decisions``, can be recomputed from them.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import TypeAdapter

from climassay.errors import InputError
from climassay.generation.annotation.labels import AnnotationItem, AnnotationSettings, Label
from climassay.generation.dataset_store import drafts, drafts_before_experts
from climassay.generation.draft import Draft
from climassay.records.database import split_keys

metadata = sa.MetaData()
_required = partial(sa.Column, nullable=False)
_JSON = sa.JSON(none_as_null=True)


def _table(name: str, *columns: sa.schema.SchemaItem, comment: str, has_draft: bool = True) -> sa.Table:
    keys = [sa.ForeignKeyConstraint(["dataset", "draft"], [drafts.c.dataset, drafts.c.id])] if has_draft else []
    dataset = sa.Column("dataset", sa.String(120), primary_key=True)
    return sa.Table(name, metadata, dataset, *columns, *keys, comment=comment)


queues = _table(
    "annotation_queues",
    _required("settings", _JSON),
    _required("last_ordinal", sa.Integer),
    _required("last_number", sa.Integer),
    _required("trained_number", sa.Integer),
    sa.Column("validator", sa.Text),
    comment="One annotated dataset; writers lock its row. last_ordinal: ordinal of the last draft that was queued; "
    "last_number: number of the last label, skip or withdrawal; trained_number: last_number when the labels were read "
    "for the last training.",
    has_draft=False,
)
items = _table(
    "annotation_items",
    sa.Column("draft", sa.String(40), primary_key=True),
    _required("draft_status", sa.String(12)),
    _required("state", sa.String(12)),
    _required("position", sa.Integer),
    _required("labels", sa.Integer),
    _required("settled_number", sa.Integer),
    sa.Column("p_valid", sa.Float),
    sa.Column("judged_by", sa.String(80)),
    sa.Index("items_by_position", "dataset", "state", "position"),
    sa.Index("items_by_settling", "dataset", "state", "settled_number"),
    comment="One queued draft. draft_status: result of the automatic steps; state: out, open, settled or conflict; "
    "labels: number of current labels; settled_number: number of the label that last changed the outcome.",
)
annotations = _table(
    "annotations",
    sa.Column("key", sa.String(120), primary_key=True),
    _required("number", sa.Integer),
    _required("draft", sa.String(40)),
    _required("annotator", sa.String(120)),
    _required("accepted", sa.Boolean),
    _required("reasons", _JSON),
    _required("remark", sa.Text),
    sa.Column("wording", _JSON),
    sa.Column("seconds", sa.Float),
    _required("made_at", sa.Float),
    sa.Column("withdrawn_at", sa.Float),
    _required("adjudicates", sa.Boolean),
    sa.Index("annotations_by_draft", "dataset", "draft", "number"),
    sa.Index("annotations_by_annotator", "dataset", "annotator", "number"),
    comment="An expert's label of a draft; one row per key, never deleted.",
)
skips = _table(
    "annotation_skips",
    sa.Column("annotator", sa.String(120), primary_key=True),
    sa.Column("draft", sa.String(40), primary_key=True),
    _required("number", sa.Integer),
    _required("made_at", sa.Float),
    comment="Items that an annotator skipped.",
)
comments = _table(
    "annotation_comments",
    sa.Column("key", sa.String(120), primary_key=True),
    _required("draft", sa.String(40)),
    _required("author", sa.String(120)),
    _required("text", sa.Text),
    _required("made_at", sa.Float),
    _required("adjudicates", sa.Boolean),
    sa.Index("comments_by_draft", "dataset", "draft", "made_at"),
    comment="Discussion of a draft by annotators and adjudicators; one row per key, never changed.",
)
leases = _table(
    "annotation_leases",
    sa.Column("draft", sa.String(40), primary_key=True),
    sa.Column("annotator", sa.String(120), primary_key=True),
    _required("expires_at", sa.Float),
    sa.Index("leases_by_annotator", "dataset", "annotator"),
    comment="Items reserved for an annotator, and until when.",
)

_LABEL = TypeAdapter(Label)
_COLUMNS = [annotations.c[name] for name in Label.__dataclass_fields__]


def label_row(dataset: str, label: Label, number: int) -> dict[str, Any]:
    """Return the database row of a label; ``number`` is its sequence number in the dataset."""
    return {**asdict(label), "dataset": dataset, "number": number}


def read_labels(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Label]:
    """Return the labels whose rows meet all conditions, oldest first."""
    return select_labels(connection, sa.select(*_COLUMNS).where(*conditions).order_by(annotations.c.number))


def select_labels(connection: sa.Connection, query: sa.Select[Any]) -> list[Label]:
    """Return the labels that a query on the table ``annotations`` selects."""
    rows = connection.execute(query.with_only_columns(*_COLUMNS)).mappings()
    return [_LABEL.validate_python(dict(row), strict=False) for row in rows]


def current_label_conditions(
    dataset: str, draft: str | None = None, annotator: str | None = None
) -> list[sa.ColumnElement[bool]]:
    """Return SQL conditions that select the current labels of a dataset, optionally of one draft or annotator only."""
    conditions = [annotations.c.dataset == dataset, annotations.c.withdrawn_at.is_(None)]
    if draft is not None:
        conditions.append(annotations.c.draft == draft)
    if annotator is not None:
        conditions.append(annotations.c.annotator == annotator)
    return conditions


def skip_conditions(dataset: str, annotator: str) -> list[sa.ColumnElement[bool]]:
    """Return SQL conditions that select an annotator's skips in a dataset."""
    return [skips.c.dataset == dataset, skips.c.annotator == annotator]


def labels_by_draft(connection: sa.Connection, dataset: str, draft_ids: Sequence[str]) -> dict[str, list[Label]]:
    """Return the drafts' current labels by draft id, oldest first; a draft without labels has no entry."""
    results: dict[str, list[Label]] = {}
    for chunk in split_keys(draft_ids):
        for label in read_labels(connection, *current_label_conditions(dataset), annotations.c.draft.in_(chunk)):
            results.setdefault(label.draft, []).append(label)
    return results


def item_rows(connection: sa.Connection, dataset: str, draft_ids: Sequence[str]) -> dict[str, Any]:
    """Return the rows of items by draft id."""
    results: dict[str, Any] = {}
    for chunk in split_keys(draft_ids):
        query = sa.select(items).where(items.c.dataset == dataset, items.c.draft.in_(chunk))
        results |= {row.draft: row for row in connection.execute(query)}
    return results


class NoItemError(InputError):
    """Error for a draft that is not in the queue, for example one that was stored after the queue was last filled."""


def item_row(connection: sa.Connection, dataset: str, draft: str) -> Any:
    """Return the row of an item in the queue.

    Raises:
        NoItemError: The dataset does not contain the draft, or the draft is not queued.
    """
    row = item_rows(connection, dataset, [draft]).get(draft)
    if row is None or row.state == NOT_QUEUED:
        raise NoItemError(f"The dataset {dataset} has no item {draft!r} to annotate.")
    return row


NOT_QUEUED = "out"
"""State of a draft that is not queued."""
DraftStatus = Literal["usable", "doubted", "failed", "excluded"]
"""Status of a draft before annotation. ``usable``: not rejected. ``doubted``: rejected, but only by checks,
self-consistency or the validator. ``failed``: the model call failed; the next run may repeat it. ``excluded``: has no
wording or no word to mask, is a duplicate, or was already decided by an expert."""

_REASON_BY_CHECK = {
    "context reference": "context reference",
    "figure reference": "context reference",
    "not self-contained": "context reference",
    "unsupported answer": "not enough information",
    "not entailed": "not enough information",
    "off topic": "bad context",
}
"""Name of the experts' reason that corresponds to each screening check."""


def draft_status(draft: Draft) -> DraftStatus:
    """Return the status of a draft before experts label it."""
    if draft.error is not None:
        return "failed"
    if not draft.written or any(
        decision.step == "expert" and decision.accepted is not None for decision in draft.decisions
    ):
        return "excluded"
    rejecting_steps = {decision.step for decision in draft.decisions if decision.accepted is False}
    if not rejecting_steps:
        return "usable"
    return "doubted" if rejecting_steps <= {"screen", "consistency", "validate"} else "excluded"


def unlabelled_state(status: str, settings: AnnotationSettings) -> str:
    """Return the state of an item without labels, given its draft's status: ``open`` or ``out``."""
    is_queued = status == "usable" or (status == "doubted" and settings.include_rejected)
    return "open" if is_queued else NOT_QUEUED


def validator_confidence(draft: Draft) -> float | None:
    """Return P(valid) by the last validator of the pipeline that scored the draft; None if none did."""
    scores = (decision.score for decision in reversed(draft.decisions) if decision.step == "validate")
    return next((score for score in scores if score is not None), None)


def read_items(connection: sa.Connection, dataset: str, draft_ids: Sequence[str]) -> list[AnnotationItem]:
    """Return the queued items of the given drafts, with their labels, in the order of ``draft_ids``."""
    from climassay.generation.masking import StatisticsMasker
    from climassay.generation.terms import candidates

    rows, labels = item_rows(connection, dataset, draft_ids), labels_by_draft(connection, dataset, draft_ids)
    drafts_by_id = drafts_before_experts(connection, dataset, draft_ids)
    results = []
    for draft_id in draft_ids:
        draft, row = drafts_by_id[draft_id], rows[draft_id]
        term: str | None = None
        terms: tuple[str, ...] = ()
        if draft.type.has_gap:
            term, statement = draft.wording.answer, draft.wording.question
            terms = tuple(word.term for word in candidates(statement))
            if not term:  # no masker has chosen one
                [choice] = StatisticsMasker().choose([statement])
                term = None if choice is None else choice.term
        reasons = [
            "self-inconsistency" if decision.step == "consistency" else _REASON_BY_CHECK.get(decision.reason)
            for decision in draft.decisions
            if decision.accepted is False and decision.step in ("consistency", "screen")
        ]
        preselected = tuple(dict.fromkeys(filter(None, reasons)))
        item = AnnotationItem(draft, row.p_valid, term, terms, tuple(labels.get(draft_id, ())), row.state, preselected)
        results.append(item)
    return results


def queued_ids(connection: sa.Connection, dataset: str, state: str | None = None) -> list[str]:
    """Return the draft ids of queued items, or only of those in one state, in the queue's order."""
    condition = items.c.state != NOT_QUEUED if state is None else items.c.state == state
    query = sa.select(items.c.draft).where(items.c.dataset == dataset, condition)
    return list(connection.execute(query.order_by(items.c.position, items.c.draft)).scalars())


def count_items(connection: sa.Connection, dataset: str) -> dict[str, int]:
    """Return the number of items by state, including ``out`` for those that are not queued."""
    query = sa.select(items.c.state, sa.func.count()).where(items.c.dataset == dataset)
    return {str(state): int(count) for state, count in connection.execute(query.group_by(items.c.state))}
