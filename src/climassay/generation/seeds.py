"""Seed passages: which passage of which book a question is written from.

Every stream of questions (for example ``mcq/base``) has an order of its own through each book. It goes round the
book's sections, so that a long section does not crowd out short ones, and it repeats a passage only when all have been
used. The order hangs on hashes of the passages' ids alone: the same in every process and on every machine, and no
passage is loaded to work it out.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType

from climassay.corpus import Collection, Passage
from climassay.grounding import CollectionGroup

_PASSAGES_KEPT = 512
"""Passages in memory, of about 2000 characters each."""
_ORDERS_KEPT = 256
"""Orders in memory: one for each stream, book and round in use."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What the order needs to know of a passage."""

    id: str
    section: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Book:
    """A document whose passages were looked at."""

    collection: Collection
    places: tuple[_Place, ...]
    """Of its suitable passages, in reading order."""


class SeedSampler:
    """Passages of a group of collections, drawn book by book and stratified over sections.

    Documents whose adding was interrupted are left out: their order would change when it is finished. A document that
    several collections hold counts once.

    Notes:
        The paper (section 4.2) draws seed passages at random from all books; that gives most questions to the longest
        book and to its longest sections.
    """

    def __init__(
        self, group: CollectionGroup, *, seed: int = 0, suitable: Callable[[Passage], str | None] | None = None
    ) -> None:
        """Prepare to sample; books are read when they are first asked for, one at a time.

        Args:
            group: Where the books are.
            seed: Another one gives other orders.
            suitable: From a passage to why no question should be written from it, in a few words, or to None;
                by default every passage is suitable.
        """
        self._group = group
        self._seed = seed
        self._suitable = suitable
        self._read: dict[str, _Book] = {}
        self._faults: Counter[str] = Counter()
        self._load = lru_cache(maxsize=_PASSAGES_KEPT)(self._load_passage)
        self._order = lru_cache(maxsize=_ORDERS_KEPT)(self._ordered_places)

    @cached_property
    def books(self) -> tuple[str, ...]:
        """Ids of the documents that have a suitable passage, by title; reads every book once."""
        return tuple(book for book in self._holders if self._book(book).places)

    @property
    def unsuitable(self) -> Mapping[str, int]:
        """Passages that no question should be written from, by fault, in the books looked at so far."""
        return MappingProxyType(dict(self._faults.most_common()))

    def passage(self, stream: str, book: str, number: int) -> Passage | None:
        """A seed passage.

        Args:
            stream: Whose order is meant, for example ``mcq/base``.
            book: Document id.
            number: Place in the order, from 0 and without end: when all suitable passages have been used, they come
                again in another order.

        Returns:
            The same passage at every call, as long as the book stays as it is; None where the book is not there or has
            no suitable passage.
        """
        if book not in self._holders:
            return None
        count = len(self._book(book).places)
        if count == 0:
            return None
        turn, at = divmod(number, count)
        return self._load(book, self._order(stream, book, turn)[at])

    @cached_property
    def _holders(self) -> dict[str, Collection]:
        """The first collection that holds each complete document, by document id, in the order of titles."""
        found = {}
        for collection in self._group.collections:
            for document in collection.documents():
                if document.complete and document.id not in found:
                    found[document.id] = (document.title, collection)
        return {book: found[book][1] for book in sorted(found, key=lambda book: (found[book][0], book))}

    def _book(self, book: str) -> _Book:
        if book not in self._read:
            collection = self._holders[book]
            places = []
            for passage in collection.document_passages(book):
                fault = None if self._suitable is None else self._suitable(passage)
                if fault is None:
                    places.append(_Place(passage.id, _section(passage)))
                else:
                    self._faults[fault] += 1
            self._read[book] = _Book(collection, tuple(places))
        return self._read[book]

    def _load_passage(self, book: str, passage_id: str) -> Passage:
        return self._read[book].collection.passage(passage_id)

    def _ordered_places(self, stream: str, book: str, turn: int) -> tuple[str, ...]:
        return stratified_order(self._book(book).places, f"{self._seed}\x1f{stream}\x1f{book}\x1f{turn}")


def stratified_order(places: Sequence[_Place], key: str) -> tuple[str, ...]:
    """Passage ids in an order that takes one passage of every section in turn, until all are taken.

    Args:
        places: Of the passages.
        key: Decides the order of the sections, and of the passages within each.
    """
    sections: dict[tuple[str, ...], list[str]] = {}
    for place in places:
        sections.setdefault(place.section, []).append(place.id)
    queues = [
        sorted(sections[section], key=lambda item: _rank(key, item))
        for section in sorted(sections, key=lambda section: _rank(key, *section))
    ]
    longest = max((len(queue) for queue in queues), default=0)
    return tuple(queue[turn] for turn in range(longest) for queue in queues if turn < len(queue))


def _section(passage: Passage) -> tuple[str, ...]:
    """What counts as the passage's section: its headings, else its chapter."""
    return passage.headings or ((passage.chapter,) if passage.chapter else ())


def _rank(*parts: str) -> bytes:
    """A place in a random order that is the same everywhere; Python's own hash differs from process to process."""
    return hashlib.sha256("\x1f".join(parts).encode()).digest()
