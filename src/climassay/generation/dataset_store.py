"""Datasets in the records database: drafts and the decisions on them.

The drafts of a batch are stored in one transaction; later decisions are stored beside them, once for each key. So a
process may be killed at any moment, and an annotator may press a key twice.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Literal

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.draft import Draft, draft_from_row
from climassay.generation.recipe import Stream
from climassay.records import Records
from climassay.records.database import KEYS_PER_QUERY, split_keys
from climassay.records.identity import canonical_json

State = Literal["accepted", "rejected", "failed"]
EXPERTS = "experts:"
"""Prefix of the keys of decisions computed from experts' labels; see :mod:`climassay.generation.annotation`."""

metadata = sa.MetaData()

datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("name", sa.String(120), primary_key=True),
    sa.Column("recipe", sa.Text, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    comment="One dataset of generated questions. recipe: the entries that decide which questions are generated.",
)
drafts = sa.Table(
    "drafts",
    metadata,
    sa.Column("dataset", sa.String(120), sa.ForeignKey("datasets.name"), primary_key=True),
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(12), nullable=False),
    sa.Column("level", sa.String(16), nullable=False),
    sa.Column("book", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("drafts_by_ordinal", "dataset", "ordinal"),
    comment="A generated question, accepted or not; nothing is deleted.",
)
decisions = sa.Table(
    "draft_decisions",
    metadata,
    sa.Column("dataset", sa.String(120), primary_key=True),
    sa.Column("key", sa.String(120), primary_key=True),
    sa.Column("draft", sa.String(40), nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["dataset", "draft"], ["drafts.dataset", "drafts.id"]),
    sa.Index("decisions_by_draft", "dataset", "draft"),
    comment="A decision made after the pipeline, mostly by experts; one row per key.",
)


@dataclass(frozen=True, slots=True)
class StoredDraft:
    """A draft and its seed passage in the plan of its dataset."""

    draft: Draft
    book: str
    """Document id of the main passage."""
    number: int
    """Number of the seed passage in the book's order, in the draft's stream."""

    @property
    def stream(self) -> Stream:
        """Kind and level of the draft."""
        return Stream(self.draft.kind, self.draft.level)

    @property
    def state(self) -> State:
        """Current state of the draft."""
        if self.draft.error is not None:
            return "failed"
        return "accepted" if self.draft.rejection is None else "rejected"


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    """Counts of a dataset."""

    name: str
    made_at: float
    """Time of creation in seconds since 1970-01-01 UTC."""
    states: Mapping[str, int]
    """Number of drafts by state, including later decisions."""


class DatasetStore:
    """The datasets of one records database; missing tables are created."""

    def __init__(self, records: Records) -> None:
        self._database = records.database
        self._database.create_tables(metadata)

    def begin(self, name: str, recipe: Mapping[str, Any]) -> None:
        """Create a dataset, or continue one that was begun with the same recipe.

        Raises:
            InputError: The dataset was begun with another recipe.
        """
        text = canonical_json(recipe)
        row = {"name": name, "recipe": text, "made_at": time.time()}
        self._database.write(lambda connection: self._database.insert_new(connection, datasets, [row]))
        changed = sorted(_differing_entries(self.recipe(name), json.loads(text)))
        if changed:
            raise InputError(
                f"The dataset {name} was started with another recipe; these entries differ: {', '.join(changed)}. "
                "Give the new dataset another name."
            )

    def __contains__(self, name: str) -> bool:
        """Return whether there is a dataset of this name."""
        return self._database.first(sa.select(datasets.c.name).where(datasets.c.name == name)) is not None

    def recipe(self, name: str) -> dict[str, Any]:
        """Return the recipe entries that a dataset was begun with.

        Raises:
            InputError: There is no such dataset.
        """
        text = self._database.scalar(sa.select(datasets.c.recipe).where(datasets.c.name == name))
        if text is None:
            names = ", ".join(dataset.name for dataset in self.list()) or "none yet"
            raise InputError(f"There is no dataset {name!r} in this workspace; there are: {names}.")
        result: dict[str, Any] = json.loads(text)
        return result

    def save(self, name: str, stored_drafts: Sequence[StoredDraft]) -> None:
        """Store drafts in one transaction at the end of the dataset; a draft of a known id is replaced in its place."""
        rows: list[dict[str, Any]] = [
            {
                "dataset": name,
                "id": stored.draft.id,
                "kind": stored.draft.kind,
                "level": stored.draft.level,
                "book": stored.book,
                "number": stored.number,
                "state": stored.state,
                "body": json.dumps(asdict(stored.draft), ensure_ascii=False, allow_nan=False),
            }
            for stored in stored_drafts
        ]

        def write(connection: sa.Connection) -> None:
            in_dataset = drafts.c.dataset == name
            last = connection.execute(sa.select(sa.func.max(drafts.c.ordinal)).where(in_dataset)).scalar()
            ordinals = self._ordinals_by_id(connection, name, [row["id"] for row in rows])
            new_ordinals = count(0 if last is None else last + 1)
            new_rows = []
            for row in rows:
                if row["id"] in ordinals:
                    changed = row | {"ordinal": ordinals[row["id"]]}
                    connection.execute(drafts.update().where(in_dataset, drafts.c.id == row["id"]).values(changed))
                else:
                    new_rows.append(row | {"ordinal": next(new_ordinals)})
            self._database.insert_new(connection, drafts, new_rows)

        if rows:
            self._database.write(write)

    @staticmethod
    def _ordinals_by_id(connection: sa.Connection, name: str, ids: Sequence[str]) -> dict[str, int]:
        results: dict[str, int] = {}
        for chunk in split_keys(ids):
            query = sa.select(drafts.c.id, drafts.c.ordinal).where(drafts.c.dataset == name, drafts.c.id.in_(chunk))
            results |= {row.id: row.ordinal for row in connection.execute(query)}
        return results

    def stored_drafts(self, name: str) -> Iterator[StoredDraft]:
        """Yield all drafts of a dataset in the pipeline's order, including later decisions.

        Raises:
            InputError: There is no such dataset.
        """
        self.recipe(name)
        last = -1
        while True:
            query = (
                sa.select(drafts)
                .where(drafts.c.dataset == name, drafts.c.ordinal > last)
                .order_by(drafts.c.ordinal)
                .limit(KEYS_PER_QUERY)
            )
            with self._database.read() as connection:
                rows = connection.execute(query).all()
                later = _later_decisions(connection, name, [row.id for row in rows])
            if not rows:
                return
            for row in rows:
                yield StoredDraft(_draft_with_decisions(row.body, later.get(row.id, ())), row.book, row.number)
            last = rows[-1].ordinal

    def drafts(self, name: str) -> Iterator[Draft]:
        """Yield all drafts of a dataset in the pipeline's order, including later decisions."""
        return (stored.draft for stored in self.stored_drafts(name))

    def list(self) -> list[DatasetSummary]:
        """Return a summary of each dataset, the newest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(datasets.c.name, datasets.c.made_at)).all()
            counts = connection.execute(
                sa.select(drafts.c.dataset, drafts.c.state, sa.func.count()).group_by(drafts.c.dataset, drafts.c.state)
            ).all()
            later = (
                sa.select(decisions.c.dataset, decisions.c.draft, decisions.c.body, drafts.c.state)
                .join(drafts, sa.and_(drafts.c.dataset == decisions.c.dataset, drafts.c.id == decisions.c.draft))
                .where(drafts.c.state != "failed")
                .order_by(decisions.c.made_at, decisions.c.key)
            )
            overruled: dict[tuple[str, str], tuple[str, State]] = {}
            for row in connection.execute(later):
                decision = json.loads(row.body)["decision"]
                if decision["step"] == "expert" and decision["accepted"] is not None:
                    state: State = "accepted" if decision["accepted"] else "rejected"
                    overruled[row.dataset, row.draft] = (row.state, state)
        states: dict[str, Counter[str]] = {}
        for name, before, n_drafts in counts:
            states.setdefault(name, Counter())[before] = n_drafts
        for (name, _), (before, after) in overruled.items():
            states[name][before] -= 1
            states[name][after] += 1
        rows = sorted(rows, key=lambda row: (-row.made_at, row.name))
        return [DatasetSummary(row.name, row.made_at, dict(+states.get(row.name, Counter()))) for row in rows]


def drafts_before_experts(connection: sa.Connection, name: str, ids: Sequence[str]) -> dict[str, Draft]:
    """Return drafts by id, including later decisions except the outcome of experts' labels."""
    results: dict[str, Draft] = {}
    for chunk in split_keys(ids):
        query = sa.select(drafts.c.id, drafts.c.body).where(drafts.c.dataset == name, drafts.c.id.in_(chunk))
        later = _later_decisions(connection, name, chunk, without=EXPERTS)
        for row in connection.execute(query):
            results[row.id] = _draft_with_decisions(row.body, later.get(row.id, ()))
    return results


def _later_decisions(
    connection: sa.Connection, name: str, ids: Sequence[str], without: str = ""
) -> dict[str, list[dict[str, Any]]]:
    """Return bodies of later decisions by draft id, oldest first, except those whose key begins with ``without``."""
    query = (
        sa.select(decisions.c.draft, decisions.c.key, decisions.c.body)
        .where(decisions.c.dataset == name, decisions.c.draft.in_(ids))
        .order_by(decisions.c.made_at, decisions.c.key)
    )
    results: dict[str, list[dict[str, Any]]] = {}
    for row in connection.execute(query):
        if not (without and row.key.startswith(without)):
            results.setdefault(row.draft, []).append(json.loads(row.body))
    return results


def _draft_with_decisions(body: str, later: Sequence[Mapping[str, Any]]) -> Draft:
    """Return a stored draft with its later decisions and wording."""
    row = json.loads(body)
    for entry in later:
        row["decisions"].append(entry["decision"])
        row["wording"] = entry["wording"] or row["wording"]
    return draft_from_row(row)


def _differing_entries(first: Any, second: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of the entries in which two nested mappings differ."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in {*first, *second}:
            yield from _differing_entries(first.get(name), second.get(name), f"{prefix}.{name}" if prefix else name)
    elif first != second:
        yield prefix
