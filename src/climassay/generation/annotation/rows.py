"""Labels as rows of the database, and reading them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from climassay.generation.annotation.labels import AnnotationSettings, Label
from climassay.generation.annotation.tables import annotations
from climassay.generation.dataset_store import DRAFTS_PER_QUERY
from climassay.generation.draft import Wording


def settings_text(settings: AnnotationSettings) -> str:
    """Settings as they are stored."""
    return json.dumps(asdict(settings))


def settings_from(text: str) -> AnnotationSettings:
    """The settings that :func:`settings_text` wrote."""
    return AnnotationSettings(**json.loads(text))


def label_row(label: Label, number: int) -> dict[str, Any]:
    """A label as a row; ``number`` puts the labels of a dataset in their order."""
    row = {**asdict(label), "number": number, "reasons": json.dumps(label.reasons)}
    row["wording"] = None if label.wording is None else json.dumps(asdict(label.wording), ensure_ascii=False)
    return row


def label_from(row: Any) -> Label:
    """The label of a row."""
    values = {name: getattr(row, name) for name in Label.__dataclass_fields__}
    values["reasons"] = tuple(json.loads(row.reasons))
    values["wording"] = None if row.wording is None else wording_from(json.loads(row.wording))
    return Label(**values)


def wording_from(values: dict[str, Any]) -> Wording:
    """The wording that ``asdict`` and JSON made this of."""
    return Wording(**{**values, "options": tuple(values.get("options") or ())})


def labels_by_draft(connection: sa.Connection, dataset: str, drafts: Sequence[str]) -> dict[str, list[Label]]:
    """Current labels of drafts, oldest first; a draft without any has no entry."""
    found: dict[str, list[Label]] = {}
    for start in range(0, len(drafts), DRAFTS_PER_QUERY):
        query = (
            sa.select(annotations)
            .where(
                annotations.c.dataset == dataset,
                annotations.c.draft.in_(drafts[start : start + DRAFTS_PER_QUERY]),
                annotations.c.withdrawn_at.is_(None),
            )
            .order_by(annotations.c.number)
        )
        for row in connection.execute(query):
            found.setdefault(row.draft, []).append(label_from(row))
    return found
