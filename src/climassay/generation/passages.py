"""Seed passages: which passage of which book a question is written from.

Every stream of questions (for example ``mcq/base``) has an order of its own through each book. It goes round the
book's sections, so that a long section does not crowd out short ones, and it repeats a passage only when all have been
used. The order hangs on hashes of the passages' ids alone: the same in every process and on every machine, and no
passage is loaded to work it out.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from climassay.corpus import Collection, Hit, Passage, SearchMode
from climassay.errors import InputError
from climassay.generation.draft import SourcePassage
from climassay.grounding import CollectionGroup

_PASSAGES_KEPT = 512
"""Passages in memory, of about 2000 characters each."""
_ORDERS_KEPT = 256
"""Orders in memory: one for each stream, book and round in use."""


Place = tuple[str, tuple[str, ...]]
"""Id and section of a passage."""


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
        self._suitable = suitable
        self._read: dict[str, tuple[Place, ...]] = {}
        self._load = lru_cache(maxsize=_PASSAGES_KEPT)(lambda book, id: self._holders[book].passage(id))
        self._order = lru_cache(maxsize=_ORDERS_KEPT)(
            lambda *parts: stratified_order(self._book(parts[1]), "\x1f".join(map(str, (seed, *parts))))
        )

    @cached_property
    def books(self) -> tuple[str, ...]:
        """Ids of the documents that have a suitable passage, by title; reads every book once."""
        return tuple(book for book in self._holders if self._book(book))

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
        count = len(self._book(book))
        if count == 0:
            return None
        turn, at = divmod(number, count)
        return self._load(book, self._order(stream, book, turn)[at])

    @cached_property
    def _holders(self) -> dict[str, Collection]:
        """The first collection that holds each complete document, by document id, in the order of titles."""
        results = {}
        for collection in self._group.collections:
            for document in collection.documents():
                if document.complete and document.id not in results:
                    results[document.id] = (document.title, collection)
        return {book: results[book][1] for book in sorted(results, key=lambda book: (results[book][0], book))}

    def _book(self, book: str) -> tuple[Place, ...]:
        if book not in self._read:
            places = []
            for passage in self._holders[book].document_passages(book):
                if self._suitable is None or self._suitable(passage) is None:
                    section = passage.headings or ((passage.chapter,) if passage.chapter else ())
                    places.append((passage.id, section))
            self._read[book] = tuple(places)
        return self._read[book]


def stratified_order(places: Sequence[Place], key: str) -> tuple[str, ...]:
    """Passage ids in an order that takes one passage of every section in turn, until all are taken."""
    sections: dict[tuple[str, ...], list[str]] = {}
    for passage_id, section in places:
        sections.setdefault(section, []).append(passage_id)
    queues = [
        sorted(sections[section], key=lambda item: _rank(key, item))
        for section in sorted(sections, key=lambda section: _rank(key, *section))
    ]
    longest = max((len(queue) for queue in queues), default=0)
    return tuple(queue[turn] for turn in range(longest) for queue in queues if turn < len(queue))


def _rank(*parts: str) -> bytes:
    """A place in a random order that is the same everywhere; Python's own hash differs from process to process."""
    return hashlib.sha256("\x1f".join(parts).encode()).digest()


_SHARED_WORDS = 12
"""Passages that have a run of so many words in common are two cuts of one text, not two sources."""
_SPARE = 20
"""Hits asked for beyond those wanted, since neighbours and copies of the main passage are left out."""


@dataclass(frozen=True)
class ContextFinder:
    """Finds the passages that are shown beside a seed passage.

    The paper (section 4.2) takes passages above a cosine threshold, so that several sources have a say. Here passages
    of documents that are not yet among the chosen ones come first, and what overlaps with a chosen passage, such as
    its neighbour or another edition of it, is left out: it would say the same again.

    Raises:
        InputError: ``most`` is negative.
    """

    group: CollectionGroup
    most: int = 2
    """Retrieved passages of a seed passage, at most; 0 leaves it alone."""
    threshold: float | None = None
    """Minimum cosine to the seed passage, whatever the mode; by default what was measured for each collection's encoder
    (:mod:`climassay.corpus.relevance`)."""
    mode: SearchMode = "dense"
    """What the search sorts by; see :meth:`climassay.corpus.Collection.search_many`."""
    other_documents: bool = False
    """Only passages of other documents than the seed passage's."""
    suitable: Callable[[Passage], str | None] | None = None
    """As for :class:`~climassay.generation.passages.SeedSampler`; unsuitable passages are left out."""

    def __post_init__(self) -> None:
        if self.most < 0:
            raise InputError(f"{self.most} passages cannot be shown beside the main one: use 0 or more.")

    def find(self, seeds: Sequence[Passage]) -> list[tuple[SourcePassage, ...]]:
        """Each seed passage with those found for it, nearest first; all are searched for in one call.

        Raises:
            InputError: The threshold or the search mode makes no sense.
        """
        if not seeds or self.most == 0:
            return [(SourcePassage.of(seed),) for seed in seeds]
        result = self.group.search_many(
            [seed.text for seed in seeds],
            k=10 * self.most + _SPARE,
            min_cosine="measured" if self.threshold is None else self.threshold,
            mode=self.mode,
        )
        return [
            (SourcePassage.of(seed), *(SourcePassage.of(hit.passage, hit.cosine) for hit in self._chosen(seed, hits)))
            for seed, hits in zip(seeds, result, strict=True)
        ]

    def _chosen(self, seed: Passage, hits: Sequence[Hit]) -> list[Hit]:
        """The hits to show: the best of each new document, then the best of the rest."""
        usable = [
            hit
            for hit in hits
            if hit.passage.id != seed.id
            and not (self.other_documents and hit.passage.document_id == seed.document_id)
            and (self.suitable is None or self.suitable(hit.passage) is None)
        ]
        chosen: list[Hit] = []
        runs, documents = _runs(seed.text), {seed.document_id}
        for only_new in (True, False):
            for hit in usable:
                if len(chosen) == self.most:
                    break
                own = _runs(hit.passage.text)
                if own & runs or (only_new and hit.passage.document_id in documents):
                    continue
                chosen.append(hit)
                runs |= own
                documents.add(hit.passage.document_id)
        return sorted(chosen, key=lambda hit: (-(hit.cosine or 0.0), hit.rank))


def _runs(text: str) -> set[tuple[str, ...]]:
    """All runs of words by which two cuts of one text are known; a shorter text is one run."""
    words = re.findall(r"\w+", text.casefold())
    last = max(1, len(words) - _SHARED_WORDS + 1)
    return {tuple(words[start : start + _SHARED_WORDS]) for start in range(last)}
