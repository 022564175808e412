"""Compaction: files of small additions joined, the full-text index brought up to date, old versions removed.

An addition writes a file of its own and leaves the others alone, whatever the size of the collection. Passages outside
the index would be scored by other counts of words than those in it, so that a search for words takes a small addition
into the index first, and every search gives the same hits before and after a compaction. LanceDB rewrites a collection
where it joins files; that is done once for many additions: at the first search for words after them, when they have
become many, or by ``climassay corpus compact``.
"""

import logging
import warnings
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from climassay.corpus.collection_damage import DamagedCollectionError
from climassay.corpus.collection_lock import no_reader, write_lock
from climassay.corpus.collection_store import CollectionStore
from climassay.corpus.collection_text_index import ensure_text_index, outside_text_index

logger = logging.getLogger(__name__)

SMALL = 512
"""Passages that may wait outside the index for the next search; more are taken in as soon as they have been added."""
SHARE = 0.05
"""Share of a collection's passages that may wait likewise, so that small collections have no need to."""
FILES = 64
"""Files of passages beyond which an addition joins them."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did."""

    bytes_before: int
    """Size of the collection's folder; 0 for one in an object store."""
    bytes_after: int


def compact(table: Any, store: CollectionStore, name: str) -> Compaction:
    """Join files, bring the index up to date and remove what earlier versions and killed writers have left.

    It may be killed anywhere, and is finished by the next one. Old versions stay while somebody reads passages one
    after the other, and in an object store, where nobody could be asked to wait.
    """
    before = store.bytes_of(name)
    with write_lock(store.lock_file(name)):
        join(table, store, name)
    return Compaction(before, store.bytes_of(name))


def join(table: Any, store: CollectionStore, name: str) -> None:
    """As :func:`compact`, for who holds the write lock.

    Passages outside the index are found as well, only more slowly: LanceDB scans them. So when another process is at
    the same work, nothing is lost by leaving it to that one.
    """
    ensure_text_index(table)
    try:
        with no_reader(store.reading_file(name)) as alone, warnings.catch_warnings():
            # The warning is about other readers and writers, of whom there are none now.
            warnings.simplefilter("ignore", UserWarning)
            table.optimize()
            if alone:
                table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
    except DamagedCollectionError as error:
        logger.info("The files of %s were left as they are: %s", name, error)


def join_if_many(table: Any, store: CollectionStore, name: str) -> None:
    """Compact after an addition that was not small, or after many; the write lock is held."""
    files = table.stats()["fragment_stats"]["num_fragments"]
    if outside_text_index(table) > min(SMALL, SHARE * table.count_rows()) or files > FILES:
        join(table, store, name)


def take_in_small(table: Any, store: CollectionStore, name: str) -> None:
    """Take a small addition into the index before a search for words.

    A large one is under way in another process, or was killed: its passages are scanned until it has ended.
    """
    if not 0 < outside_text_index(table) <= SMALL:
        return
    # Where nothing can be written, the passages are scanned.
    with suppress(OSError), write_lock(store.lock_file(name)):
        if outside_text_index(table):
            join(table, store, name)
