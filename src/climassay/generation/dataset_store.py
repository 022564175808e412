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
EXPERT_KEY_PREFIX = "experts:"
"""Prefix for the keys of decisions that follow from experts' labels; see :mod:`climassay.generation.annotation`."""

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
    """Draft with the position of its seed passage."""

    draft: Draft
    book: str
    """Document id of the main passage."""
    number: int
    """Index of the seed passage among the book's passages, in the order of their use for this kind and level."""

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
    """Name, age and counts of a dataset."""

    name: str
    made_at: float
    """Time of creation in seconds since 1970-01-01 UTC."""
    states: Mapping[str, int]
    """Number of drafts by current state."""


class DatasetStore:
    """Store of the datasets in a records database; missing tables are created."""

    def __init__(self, records: Records) -> None:
        self._database = records.database
        self._database.create_tables(metadata)

    def begin(self, name: str, recipe: Mapping[str, Any]) -> None:
        """Create a dataset, or continue an existing one with the same recipe.

        Raises:
            InputError: The dataset was begun with another recipe.
        """
        text = canonical_json(recipe)
        row = {"name": name, "recipe": text, "made_at": time.time()}
        self._database.write(lambda connection: self._database.insert_new(connection, datasets, [row]))
        differing_entries = sorted(_find_differing_entries(self.recipe(name), json.loads(text)))
        if differing_entries:
            raise InputError(
                f"The dataset {name} was started with another recipe; these entries differ: "
                f"{', '.join(differing_entries)}. Give the new dataset another name."
            )

    def __contains__(self, name: str) -> bool:
        """Return whether there is a dataset with this name."""
        return self._database.first(sa.select(datasets.c.name).where(datasets.c.name == name)) is not None

    def recipe(self, name: str) -> dict[str, Any]:
        """Return the entries of the recipe with which a dataset was begun.

        Raises:
            InputError: The dataset does not exist.
        """
        text = self._database.scalar(sa.select(datasets.c.recipe).where(datasets.c.name == name))
        if text is None:
            names = ", ".join(dataset.name for dataset in self.list()) or "none yet"
            raise InputError(f"There is no dataset {name!r} in this workspace; there are: {names}.")
        result: dict[str, Any] = json.loads(text)
        return result

    def save(self, name: str, stored_drafts: Sequence[StoredDraft]) -> None:
        """Append drafts to a dataset in one transaction.

        A draft whose id is already stored replaces the stored draft.
        """
        rows: list[dict[str, Any]] = [
            {
                "dataset": name,
                "id": stored_draft.draft.id,
                "kind": stored_draft.draft.kind,
                "level": stored_draft.draft.level,
                "book": stored_draft.book,
                "number": stored_draft.number,
                "state": stored_draft.state,
                "body": json.dumps(asdict(stored_draft.draft), ensure_ascii=False, allow_nan=False),
            }
            for stored_draft in stored_drafts
        ]

        def write(connection: sa.Connection) -> None:
            in_dataset = drafts.c.dataset == name
            last_ordinal = connection.execute(sa.select(sa.func.max(drafts.c.ordinal)).where(in_dataset)).scalar()
            ordinals = self._load_ordinals(connection, name, [row["id"] for row in rows])
            new_ordinals = count(0 if last_ordinal is None else last_ordinal + 1)
            new_rows = []
            for row in rows:
                if row["id"] in ordinals:
                    values = row | {"ordinal": ordinals[row["id"]]}
                    connection.execute(drafts.update().where(in_dataset, drafts.c.id == row["id"]).values(values))
                else:
                    new_rows.append(row | {"ordinal": next(new_ordinals)})
            self._database.insert_new(connection, drafts, new_rows)

        if rows:
            self._database.write(write)

    @staticmethod
    def _load_ordinals(connection: sa.Connection, name: str, ids: Sequence[str]) -> dict[str, int]:
        results: dict[str, int] = {}
        for chunk in split_keys(ids):
            query = sa.select(drafts.c.id, drafts.c.ordinal).where(drafts.c.dataset == name, drafts.c.id.in_(chunk))
            results |= {row.id: row.ordinal for row in connection.execute(query)}
        return results

    def stored_drafts(self, name: str) -> Iterator[StoredDraft]:
        """Yield all drafts of a dataset in the order of generation, with the decisions that were made later.

        Raises:
            InputError: The dataset does not exist.
        """
        self.recipe(name)
        last_ordinal = -1
        while True:
            query = (
                sa.select(drafts)
                .where(drafts.c.dataset == name, drafts.c.ordinal > last_ordinal)
                .order_by(drafts.c.ordinal)
                .limit(KEYS_PER_QUERY)
            )
            with self._database.read() as connection:
                rows = connection.execute(query).all()
                later_decisions = _load_later_decisions(connection, name, [row.id for row in rows])
            if not rows:
                return
            for row in rows:
                yield StoredDraft(_restore_draft(row.body, later_decisions.get(row.id, ())), row.book, row.number)
            last_ordinal = rows[-1].ordinal

    def drafts(self, name: str) -> Iterator[Draft]:
        """Yield all drafts of a dataset in the order of generation, with the decisions that were made later."""
        return (stored_draft.draft for stored_draft in self.stored_drafts(name))

    def list(self) -> list[DatasetSummary]:
        """Return a summary of each dataset, the newest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(datasets.c.name, datasets.c.made_at)).all()
            counts = connection.execute(
                sa.select(drafts.c.dataset, drafts.c.state, sa.func.count()).group_by(drafts.c.dataset, drafts.c.state)
            ).all()
            later_decisions = (
                sa.select(decisions.c.dataset, decisions.c.draft, decisions.c.body, drafts.c.state)
                .join(drafts, sa.and_(drafts.c.dataset == decisions.c.dataset, drafts.c.id == decisions.c.draft))
                .where(drafts.c.state != "failed")
                .order_by(decisions.c.made_at, decisions.c.key)
            )
            state_changes: dict[tuple[str, str], tuple[str, State]] = {}
            for row in connection.execute(later_decisions):
                decision = json.loads(row.body)["decision"]
                if decision["step"] == "expert" and decision["accepted"] is not None:
                    state: State = "accepted" if decision["accepted"] else "rejected"
                    state_changes[row.dataset, row.draft] = (row.state, state)
        states: dict[str, Counter[str]] = {}
        for name, stored_state, n_drafts in counts:
            states.setdefault(name, Counter())[stored_state] = n_drafts
        for (name, _), (stored_state, new_state) in state_changes.items():
            states[name][stored_state] -= 1
            states[name][new_state] += 1
        rows = sorted(rows, key=lambda row: (-row.made_at, row.name))
        return [DatasetSummary(row.name, row.made_at, dict(+states.get(row.name, Counter()))) for row in rows]


def drafts_before_experts(connection: sa.Connection, name: str, ids: Sequence[str]) -> dict[str, Draft]:
    """Return drafts by id as they were before annotation: without the decisions that follow from experts' labels."""
    results: dict[str, Draft] = {}
    for chunk in split_keys(ids):
        query = sa.select(drafts.c.id, drafts.c.body).where(drafts.c.dataset == name, drafts.c.id.in_(chunk))
        later_decisions = _load_later_decisions(connection, name, chunk, excluded_prefix=EXPERT_KEY_PREFIX)
        for row in connection.execute(query):
            results[row.id] = _restore_draft(row.body, later_decisions.get(row.id, ()))
    return results


def _load_later_decisions(
    connection: sa.Connection, name: str, ids: Sequence[str], excluded_prefix: str = ""
) -> dict[str, list[dict[str, Any]]]:
    """Return the stored JSON of the decisions that were added after a draft was stored, by draft id, oldest first.

    If ``excluded_prefix`` is given, decisions whose keys begin with it are excluded.
    """
    query = (
        sa.select(decisions.c.draft, decisions.c.key, decisions.c.body)
        .where(decisions.c.dataset == name, decisions.c.draft.in_(ids))
        .order_by(decisions.c.made_at, decisions.c.key)
    )
    results: dict[str, list[dict[str, Any]]] = {}
    for row in connection.execute(query):
        if not (excluded_prefix and row.key.startswith(excluded_prefix)):
            results.setdefault(row.draft, []).append(json.loads(row.body))
    return results


def _restore_draft(body: str, later_decisions: Sequence[Mapping[str, Any]]) -> Draft:
    """Restore a draft from its stored JSON, and add the decisions and wordings that were stored after it."""
    row = json.loads(body)
    for entry in later_decisions:
        row["decisions"].append(entry["decision"])
        row["wording"] = entry["wording"] or row["wording"]
    return draft_from_row(row)


def _find_differing_entries(stored_value: Any, value: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of the entries in which two nested mappings differ.

    Entries that only the stored recipe has were removed from recipes since, and are ignored.
    """
    if isinstance(stored_value, Mapping) and isinstance(value, Mapping):
        for name in value:
            entry = f"{prefix}.{name}" if prefix else name
            yield from _find_differing_entries(stored_value.get(name), value[name], entry)
    elif stored_value != value:
        yield prefix
