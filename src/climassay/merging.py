"""One workspace taken into another: answers and runs, datasets and labels, checks and reviews, collections."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from climassay.errors import InputError
from climassay.records import Records
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
    from climassay.generation.merging import merge_datasets

    file = other / "records.sqlite"
    if not other.is_dir() or not (file.is_file() or (other / "collections").is_dir()):
        raise InputError(f"{other} is not a workspace: there are neither records.sqlite nor collections in it.")
    if other.resolve() == workspace.root.resolve():
        raise InputError(f"{other} is this workspace itself: name another one.")
    merged = MergedWorkspace(MergedAnswers(), 0, 0, 0, 0, 0, (), ())
    if file.is_file():
        with Records(f"sqlite:///{file.absolute()}") as theirs:
            answers, runs = merge_records(records.database, theirs.database, on_progress)
            found = merge_datasets(records, theirs)
            checks, waiting = CheckStore(records).merge(CheckStore(theirs))
        conflicts = found.conflicts
        if waiting:
            conflicts += (f"{counted(waiting, 'unfinished check')} left out.",)
        merged = MergedWorkspace(answers, runs, found.datasets, found.drafts, found.labels, checks, (), conflicts)
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
        raise InputError(f"{folder} cannot be written ({error.strerror}): make room and run it again.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
