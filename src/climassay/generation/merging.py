"""Merging datasets of another workspace: drafts, what was decided about them, and what experts said."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa

from climassay.generation.annotation.labels import ImportedLabel
from climassay.generation.annotation.store import AnnotationStore
from climassay.generation.annotation.tables import queues
from climassay.generation.dataset_store import DRAFTS_PER_QUERY, EXPERTS, DatasetStore, datasets, decisions, drafts
from climassay.records import Records
from climassay.reporting import counted


@dataclass(frozen=True, slots=True)
class MergedDatasets:
    """What became of the datasets of another workspace."""

    datasets: int
    """Those that were not there before."""
    drafts: int
    """New ones, in these and in others."""
    labels: int
    """New ones."""
    conflicts: tuple[str, ...]
    """One sentence for each thing that is otherwise here, which stays as it is here."""


def merge_datasets(records: Records, other: Records) -> MergedDatasets:
    """Take in datasets; doing it again changes nothing.

    A dataset of the same name and recipe is one dataset: missing drafts come in, and labels appear side by side
    as if they had been given here. One of the same name and another recipe is left out.
    """
    here, there = AnnotationStore(records), AnnotationStore(other)
    ours, theirs = DatasetStore(records), DatasetStore(other)
    begun = new_drafts = new_labels = 0
    conflicts: list[str] = []
    for summary in theirs.list():
        name = summary.name
        if name not in ours:
            begun += 1
            ours.begin(name, theirs.deciding(name))
        elif ours.deciding(name) != theirs.deciding(name):
            conflicts.append(f"The dataset {name} was begun with another recipe here and is left out.")
            continue
        added, differing = _merge_drafts(records, other, name)
        new_drafts += added
        if differing:
            conflicts.append(f"The dataset {name} keeps its own version of {counted(differing, 'draft')}.")
        with other.database.read() as connection:
            annotated = connection.execute(sa.select(queues.c.dataset).where(queues.c.dataset == name)).first()
        if annotated is None:
            continue
        with records.database.read() as connection:
            known = connection.execute(sa.select(queues.c.dataset).where(queues.c.dataset == name)).first()
        if known is None:
            here.configure(name, there.settings(name))
        names = {one.name for one in fields(ImportedLabel)}
        given = [
            ImportedLabel(**{field: getattr(label, field) for field in names})
            for label in there.labels(name, current=False)
        ]
        taken = here.import_labels(name, given, there.skipped(name), there.comments(name))
        new_labels += taken.stored
        conflicts += [f"Left out of the dataset {name}: {said}" for said in taken.refused]
    return MergedDatasets(begun, new_drafts, new_labels, tuple(conflicts))


def _merge_drafts(records: Records, other: Records, name: str) -> tuple[int, int]:
    """How many drafts are new, and how many are otherwise here."""

    def work(connection: sa.Connection) -> tuple[int, int]:
        # Whoever adds drafts at the same time waits for this row, so that no ordinal is given twice.
        connection.execute(datasets.update().where(datasets.c.name == name).values(name=name))
        mine = sa.select(drafts.c.id, drafts.c.body).where(drafts.c.dataset == name)
        known = {row.id: row.body for row in connection.execute(mine)}
        last = connection.execute(sa.select(sa.func.max(drafts.c.ordinal)).where(drafts.c.dataset == name)).scalar()
        ordinal, differing = -1 if last is None else last, 0
        new = []
        for row in _rows(other, drafts, name):
            if row["id"] not in known:
                ordinal += 1
                new.append(row | {"ordinal": ordinal})
            else:
                differing += json.loads(known[row["id"]]) != json.loads(row["body"])
        records.database.insert_new(connection, drafts, new)
        decided = [row for row in _rows(other, decisions, name) if not row["key"].startswith(EXPERTS)]
        records.database.insert_new(connection, decisions, decided)
        return len(new), differing

    return records.database.write(work)


def _rows(other: Records, table: sa.Table, name: str) -> Iterator[dict[str, Any]]:
    order = table.c.ordinal if table is drafts else table.c.made_at
    query = sa.select(table).where(table.c.dataset == name).order_by(order)
    with other.database.read() as connection:
        for row in connection.execution_options(yield_per=DRAFTS_PER_QUERY).execute(query).mappings():
            yield dict(row)
