"""Datasets in the records database: every draft with what was decided about it, stored before it is counted.

Drafts of a batch appear together or not at all; what experts say is added beside them, once for each key. So a process
may be killed at any moment, and an annotator may press a key twice.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.draft import Draft, draft_from_row
from climassay.generation.recipe import Stream
from climassay.records import Records
from climassay.records.database import KEYS_PER_QUERY, chunks
from climassay.records.store import canonical_json

State = Literal["accepted", "rejected", "failed"]
EXPERTS = "experts:"
"""Keys of decisions that are computed from experts' labels begin so; see :mod:`climassay.generation.annotation`."""

metadata = sa.MetaData()

datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("name", sa.String(120), primary_key=True),
    sa.Column("recipe", sa.Text, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    comment="One dataset of generated questions and what decides which questions are made.",
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
    comment="A generated question, whatever became of it; nothing is deleted.",
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
    comment="What was decided after the pipeline was done, by experts above all; one row per key.",
)


@dataclass(frozen=True, slots=True)
class StoredDraft:
    """A draft and its place in the plan of its dataset."""

    draft: Draft
    book: str
    """Document id of the main passage."""
    number: int
    """Number of the seed passage in the book, in the draft's stream."""

    @property
    def stream(self) -> Stream:
        """Kind and level."""
        return Stream(self.draft.kind, self.draft.level)

    @property
    def state(self) -> State:
        """What became of the draft so far."""
        if self.draft.error is not None:
            return "failed"
        return "accepted" if self.draft.rejection is None else "rejected"


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    """One dataset in numbers."""

    name: str
    made_at: float
    """Seconds since 1970-01-01 UTC."""
    states: Mapping[str, int]
    """Drafts by state, with every later decision."""


class DatasetStore:
    """The datasets of one records database; its tables are made when they are first needed."""

    def __init__(self, records: Records) -> None:
        self._database = records.database
        self._database.create_tables(metadata)

    def begin(self, name: str, deciding: Mapping[str, Any]) -> None:
        """Begin a dataset, or go on with it.

        Raises:
            InputError: The dataset was begun with something else.
        """
        text = canonical_json(deciding)
        row = {"name": name, "recipe": text, "made_at": time.time()}
        self._database.write(lambda connection: self._database.insert_new(connection, datasets, [row]))
        kept = self.deciding(name)
        changed = sorted(_differences(kept, json.loads(text)))
        if changed:
            raise InputError(
                f"The dataset {name} was started with another recipe; these entries differ: {', '.join(changed)}. "
                "Give the new dataset another name."
            )

    def __contains__(self, name: str) -> bool:
        """Whether there is a dataset of a name."""
        return self._database.first(sa.select(datasets.c.name).where(datasets.c.name == name)) is not None

    def deciding(self, name: str) -> dict[str, Any]:
        """What decides the questions of a dataset.

        Raises:
            InputError: There is no such dataset.
        """
        text = self._database.scalar(sa.select(datasets.c.recipe).where(datasets.c.name == name))
        if text is None:
            known = ", ".join(one.name for one in self.list()) or "none yet"
            raise InputError(f"There is no dataset {name!r} in this workspace; there are: {known}.")
        result: dict[str, Any] = json.loads(text)
        return result

    def save(self, name: str, placed: Sequence[StoredDraft]) -> None:
        """Store drafts in one transaction, after those there are; a draft of the same id is replaced in its place."""
        rows: list[dict[str, Any]] = [
            {
                "dataset": name,
                "id": one.draft.id,
                "kind": one.draft.kind,
                "level": one.draft.level,
                "book": one.book,
                "number": one.number,
                "state": one.state,
                "body": json.dumps(asdict(one.draft), ensure_ascii=False, allow_nan=False),
            }
            for one in placed
        ]

        def work(connection: sa.Connection) -> None:
            ours = drafts.c.dataset == name
            last = connection.execute(sa.select(sa.func.max(drafts.c.ordinal)).where(ours)).scalar()
            there = self._ordinals(connection, name, [row["id"] for row in rows])
            following = iter(range(0 if last is None else last + 1, 2**62))
            placed_rows = [{**row, "ordinal": there.get(row["id"], -1)} for row in rows]
            for row in placed_rows:
                if row["ordinal"] < 0:
                    row["ordinal"] = next(following)
                else:
                    connection.execute(drafts.update().where(ours, drafts.c.id == row["id"]).values(row))
            self._database.insert_new(connection, drafts, [row for row in placed_rows if row["id"] not in there])

        if rows:
            self._database.write(work)

    @staticmethod
    def _ordinals(connection: sa.Connection, name: str, ids: Sequence[str]) -> dict[str, int]:
        results: dict[str, int] = {}
        for chunk in chunks(ids):
            query = sa.select(drafts.c.id, drafts.c.ordinal).where(drafts.c.dataset == name, drafts.c.id.in_(chunk))
            results |= {row.id: row.ordinal for row in connection.execute(query)}
        return results

    def placed(self, name: str) -> Iterator[StoredDraft]:
        """All drafts of a dataset in the pipeline's order, with every later decision.

        Raises:
            InputError: There is no such dataset.
        """
        self.deciding(name)
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
                later = _decisions(connection, name, [row.id for row in rows])
            if not rows:
                return
            for row in rows:
                yield StoredDraft(_draft(row.body, later.get(row.id, ())), row.book, row.number)
            last = rows[-1].ordinal

    def drafts(self, name: str) -> Iterator[Draft]:
        """All drafts of a dataset in the pipeline's order, with every later decision."""
        return (one.draft for one in self.placed(name))

    def list(self) -> list[DatasetSummary]:
        """All datasets, the newest first."""
        with self._database.read() as connection:
            made = connection.execute(sa.select(datasets.c.name, datasets.c.made_at)).all()
            counts = connection.execute(
                sa.select(drafts.c.dataset, drafts.c.state, sa.func.count()).group_by(drafts.c.dataset, drafts.c.state)
            ).all()
            words = (
                sa.select(decisions.c.dataset, decisions.c.draft, decisions.c.body, drafts.c.state)
                .join(drafts, sa.and_(drafts.c.dataset == decisions.c.dataset, drafts.c.id == decisions.c.draft))
                .where(drafts.c.state != "failed")
                .order_by(decisions.c.made_at, decisions.c.key)
            )
            overruled: dict[tuple[str, str], tuple[str, State]] = {}
            for row in connection.execute(words):
                decision = json.loads(row.body)["decision"]
                if decision["step"] == "expert" and decision["accepted"] is not None:
                    now: State = "accepted" if decision["accepted"] else "rejected"
                    overruled[row.dataset, row.draft] = (row.state, now)
        states: dict[str, Counter[str]] = {}
        for name, state, count in counts:
            states.setdefault(name, Counter())[state] = count
        for (name, _), (before, now) in overruled.items():
            states[name][before] -= 1
            states[name][now] += 1
        ordered = sorted(made, key=lambda row: (-row.made_at, row.name))
        return [
            DatasetSummary(row.name, row.made_at, {one: n for one, n in states.get(row.name, {}).items() if n})
            for row in ordered
        ]


def drafts_before_experts(connection: sa.Connection, name: str, ids: Sequence[str]) -> dict[str, Draft]:
    """Drafts by id with every later decision but the outcome of experts' labels."""
    results: dict[str, Draft] = {}
    for chunk in chunks(ids):
        query = sa.select(drafts.c.id, drafts.c.body).where(drafts.c.dataset == name, drafts.c.id.in_(chunk))
        later = _decisions(connection, name, chunk, without=EXPERTS)
        for row in connection.execute(query):
            results[row.id] = _draft(row.body, later.get(row.id, ()))
    return results


def _decisions(
    connection: sa.Connection, name: str, ids: Sequence[str], without: str = ""
) -> dict[str, list[dict[str, Any]]]:
    """Bodies of later decisions by draft, oldest first; those left out whose key begins with ``without``."""
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


def _draft(body: str, later: Sequence[Mapping[str, Any]]) -> Draft:
    """A stored draft with the decisions that were added to it."""
    row = json.loads(body)
    for entry in later:
        row["decisions"].append(entry["decision"])
        row["wording"] = entry["wording"] or row["wording"]
    return draft_from_row(row)


def _differences(first: Any, second: Any, at: str = "") -> Iterator[str]:
    """Dotted names of the entries in which two nested tables differ."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in {*first, *second}:
            yield from _differences(first.get(name), second.get(name), f"{at}.{name}" if at else name)
    elif first != second:
        yield at
