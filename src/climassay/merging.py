"""One workspace taken into another: answers and runs, datasets and labels, checks and reviews, collections."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.labels import ImportedLabel
from climassay.generation.annotation.store import AnnotationStore
from climassay.generation.annotation.transactions import queues
from climassay.generation.dataset_store import EXPERTS, DatasetStore, datasets, decisions, drafts
from climassay.records import Records
from climassay.records.database import KEYS_PER_QUERY, record_of
from climassay.records.transfer import MergedAnswers, merge_records
from climassay.reporting import counted
from climassay.workspace import Workspace


@dataclass(frozen=True, slots=True)
class MergedWorkspace:
    """What became of the content of another workspace."""

    answers: MergedAnswers
    runs: int
    """New ones, as all counts here."""
    datasets: int
    drafts: int
    labels: int
    checks: int
    collections: tuple[str, ...]
    """Names of those copied."""
    conflicts: tuple[str, ...]
    """One sentence for each thing that is otherwise here, which stays as it is here."""


def merge_workspace(
    records: Records, workspace: Workspace, other: Path, on_progress: Callable[[int], None] | None = None
) -> MergedWorkspace:
    """Take in what another workspace has; doing it again, for example after a kill, changes nothing more.

    Accounts, sessions and jobs are not taken in: nobody gets in here by what appears in another workspace.

    Args:
        records: The open records of the workspace that takes in.
        workspace: Its folder.
        other: Folder of the other workspace. Its records are moved to this version, if they are of an earlier one.
        on_progress: Called with the number of answers looked at since the last call.

    Raises:
        InputError: The other folder is not a workspace, or the same one.
    """
    from climassay.factcheck.check_store import CheckStore

    file = other / "records.sqlite"
    if not other.is_dir() or not (file.is_file() or (other / "collections").is_dir()):
        raise InputError(f"{other} is not a workspace: there are neither records.sqlite nor collections in it.")
    if other.resolve() == workspace.root.resolve():
        raise InputError(f"{other} is this workspace itself: name another one.")
    merged = MergedWorkspace(MergedAnswers(), 0, 0, 0, 0, 0, (), ())
    if file.is_file():
        with Records(f"sqlite:///{file.absolute()}") as theirs:
            answers, runs = merge_records(records.database, theirs.database, on_progress)
            begun, new_drafts, new_labels, conflicts = _merge_datasets(records, theirs)
            checks, waiting = CheckStore(records).merge(CheckStore(theirs))
        if waiting:
            conflicts.append(f"{counted(waiting, 'unfinished check')} left out.")
        merged = MergedWorkspace(answers, runs, begun, new_drafts, new_labels, checks, (), tuple(conflicts))
    copied, differing = _merge_collections(workspace, Workspace(other))
    return replace(merged, collections=copied, conflicts=merged.conflicts + differing)


def _merge_collections(workspace: Workspace, other: Workspace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the collections copied, and a sentence for each that is otherwise here."""
    from climassay.corpus import Collection
    from climassay.corpus.collection_storage import CollectionStore, write_lock
    from climassay.corpus.originals import Originals

    ours, theirs = CollectionStore.at(workspace), CollectionStore.at(other.collections)
    copied, differing = [], []
    here = set(ours.names())
    for name in theirs.names():
        if name in here:
            both = [Collection.open(place, name) for place in (workspace, other.collections)]
            documents = [sorted((one.id, one.passages) for one in collection.documents()) for collection in both]
            if both[0].settings != both[1].settings or documents[0] != documents[1]:
                differing.append(f"The collection {name} has other documents here and is left out.")
        elif ours.folder is None:
            differing.append(f"The collection {name} is left out: collections are in {ours.address}.")
        else:
            with write_lock(theirs.lock_file(name)), _appearing(ours.folder / f"{name}.lance") as folder:
                shutil.copytree(other.collections / f"{name}.lance", folder)
            copied.append(name)
    for name in here.intersection(theirs.names()).union(copied):
        collection = Collection.open(workspace, name)
        collection.originals.copy_from(Originals(theirs.originals), [one.id for one in collection.documents()])
    return tuple(copied), tuple(differing)


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill, which appears under its name when it is whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    try:
        yield partial
        partial.replace(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): free some space and run it again.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _merge_datasets(records: Records, other: Records) -> tuple[int, int, int, list[str]]:
    """Numbers of new datasets, drafts and labels, and a sentence for each thing that is otherwise here.

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
        queue = sa.select(queues.c.dataset).where(queues.c.dataset == name)
        with other.database.read() as connection:
            if connection.execute(queue).first() is None:
                continue
        with records.database.read() as connection:
            known = connection.execute(queue).first()
        if known is None:
            here.configure(name, there.settings(name))
        given = [record_of(ImportedLabel, label) for label in there.labels(name, current=False)]
        taken = here.import_labels(name, given, there.skipped(name), there.comments(name))
        new_labels += taken.stored
        conflicts += [f"Left out of the dataset {name}: {said}" for said in taken.refused]
    return begun, new_drafts, new_labels, conflicts


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
        for row in connection.execution_options(yield_per=KEYS_PER_QUERY).execute(query).mappings():
            yield dict(row)
