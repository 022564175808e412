"""Seed passages and the passages retrieved for them.

Every stream of questions (for example ``mcq/base``) has its own order of the passages of each book. The order cycles
through the book's sections, so that a long section does not dominate, and repeats a passage only when all have been
used. It depends on hashes of the passages' ids alone, so it is the same in every process and on every machine.
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

_MAX_CACHED_PASSAGES = 512
"""Maximum number of cached passages, of about 2000 characters each."""
_MAX_CACHED_ORDERS = 256
"""Maximum number of cached orders: one for each stream, book and round."""


SectionPassage = tuple[str, tuple[str, ...]]
"""Id and section of a passage."""


class SeedSampler:
    """Samples seed passages from a group of collections, by book and stratified by section.

    Incomplete documents are excluded, because their order would change once they are complete. A document in several
    collections counts once.

    Notes:
        ClimaQA (section 4.2) draws seed passages at random from all books, which favours the longest book and its
        longest sections.
    """

    def __init__(
        self, group: CollectionGroup, *, seed: int = 0, fault: Callable[[Passage], str | None] | None = None
    ) -> None:
        """Create a sampler; each book is read when it is first used.

        Args:
            group: Collections with the books.
            seed: Seed of the orders.
            fault: Function that returns why no question should be written from a passage, or None; by default every
                passage is suitable.
        """
        self._group = group
        self._fault = fault
        self._suitable_passages: dict[str, tuple[SectionPassage, ...]] = {}
        self._load = lru_cache(maxsize=_MAX_CACHED_PASSAGES)(
            lambda book, id: self._collection_by_document[book].passage(id)
        )
        self._order = lru_cache(maxsize=_MAX_CACHED_ORDERS)(
            lambda *parts: stratified_order(self._section_passages(parts[1]), "\x1f".join(map(str, (seed, *parts))))
        )

    @cached_property
    def books(self) -> tuple[str, ...]:
        """Ids of the documents with a suitable passage, sorted by title; every book is read once."""
        return tuple(book for book in self._collection_by_document if self._section_passages(book))

    def passage(self, stream: str, book: str, number: int) -> Passage | None:
        """Return a seed passage: the same one at every call, as long as the book is unchanged.

        Args:
            stream: Name of the stream, for example ``mcq/base``.
            book: Document id.
            number: Index in the stream's order of the book, without limit: after all suitable passages, they are
                repeated in another order.

        Returns:
            The passage, or None if the book does not exist or has no suitable passage.
        """
        if book not in self._collection_by_document:
            return None
        count = len(self._section_passages(book))
        if count == 0:
            return None
        repetition, index = divmod(number, count)
        return self._load(book, self._order(stream, book, repetition)[index])

    @cached_property
    def _collection_by_document(self) -> dict[str, Collection]:
        """First collection that contains each complete document, by document id, sorted by the documents' titles."""
        results = {}
        for collection in self._group.collections:
            for document in collection.documents():
                if document.complete and document.id not in results:
                    results[document.id] = (document.title, collection)
        return {book: results[book][1] for book in sorted(results, key=lambda book: (results[book][0], book))}

    def _section_passages(self, book: str) -> tuple[SectionPassage, ...]:
        if book not in self._suitable_passages:
            passages = []
            for passage in self._collection_by_document[book].document_passages(book):
                if self._fault is None or self._fault(passage) is None:
                    section = passage.headings or ((passage.chapter,) if passage.chapter else ())
                    passages.append((passage.id, section))
            self._suitable_passages[book] = tuple(passages)
        return self._suitable_passages[book]


def stratified_order(passages: Sequence[SectionPassage], key: str) -> tuple[str, ...]:
    """Return passage ids in an order that cycles through the sections, one passage of each at a time."""
    sections: dict[tuple[str, ...], list[str]] = {}
    for passage_id, section in passages:
        sections.setdefault(section, []).append(passage_id)
    queues = [
        sorted(sections[section], key=lambda passage_id: _random_rank(key, passage_id))
        for section in sorted(sections, key=lambda section: _random_rank(key, *section))
    ]
    longest = max((len(queue) for queue in queues), default=0)
    return tuple(queue[index] for index in range(longest) for queue in queues if index < len(queue))


def _random_rank(*parts: str) -> bytes:
    """Return a sort key of a random order that is the same in every process, unlike Python's own hash."""
    return hashlib.sha256("\x1f".join(parts).encode()).digest()


_MIN_SHARED_WORDS = 12
"""Minimum number of consecutive words that two passages of the same text share."""
_EXTRA_HITS = 20
"""Number of additional search hits, because neighbours and copies of the main passage are excluded."""


@dataclass(frozen=True)
class ContextFinder:
    """Retrieves further passages for a seed passage.

    ClimaQA (section 4.2) takes passages above a cosine threshold, to use several sources. Here passages of documents
    that are not yet represented come first, and a passage that overlaps with a chosen one, such as its neighbour or
    another edition of it, is excluded.

    Raises:
        InputError: ``max_passages`` is negative.
    """

    group: CollectionGroup
    max_passages: int = 2
    """Maximum number of passages per seed passage."""
    threshold: float | None = None
    """Minimum cosine to the seed passage in every mode; by default the value measured for each collection's encoder
    (:mod:`climassay.corpus.relevance`)."""
    mode: SearchMode = "dense"
    """Search mode; see :meth:`climassay.corpus.Collection.search_many`."""
    other_documents: bool = False
    """Exclude passages of the seed passage's document."""
    fault: Callable[[Passage], str | None] | None = None
    """Function that returns why a passage is unsuitable, or None; see :class:`SeedSampler`."""

    def __post_init__(self) -> None:
        if self.max_passages < 0:
            raise InputError(f"The number of retrieved passages is {self.max_passages}: use 0 or more.")

    def find(self, seeds: Sequence[Passage]) -> list[tuple[SourcePassage, ...]]:
        """Return each seed passage followed by its retrieved passages, nearest first; all are searched in one call.

        Raises:
            InputError: The threshold or the search mode is invalid.
        """
        if not seeds or self.max_passages == 0:
            return [(SourcePassage.of(seed),) for seed in seeds]
        results = self.group.search_many(
            [seed.text for seed in seeds],
            k=10 * self.max_passages + _EXTRA_HITS,
            min_cosine="measured" if self.threshold is None else self.threshold,
            mode=self.mode,
        )
        return [
            (
                SourcePassage.of(seed),
                *(SourcePassage.of(hit.passage, hit.cosine) for hit in self._select_hits(seed, hits)),
            )
            for seed, hits in zip(seeds, results, strict=True)
        ]

    def _select_hits(self, seed: Passage, hits: Sequence[Hit]) -> list[Hit]:
        """Return up to ``max_passages`` hits: first the best of each new document, then the best of all."""
        usable = [
            hit
            for hit in hits
            if hit.passage.id != seed.id
            and not (self.other_documents and hit.passage.document_id == seed.document_id)
            and (self.fault is None or self.fault(hit.passage) is None)
        ]
        chosen: list[Hit] = []
        runs, documents = _word_runs(seed.text), {seed.document_id}
        for only_new in (True, False):
            for hit in usable:
                if len(chosen) == self.max_passages:
                    break
                hit_runs = _word_runs(hit.passage.text)
                if hit_runs & runs or (only_new and hit.passage.document_id in documents):
                    continue
                chosen.append(hit)
                runs |= hit_runs
                documents.add(hit.passage.document_id)
        return sorted(chosen, key=lambda hit: (-(hit.cosine or 0.0), hit.rank))


def _word_runs(text: str) -> set[tuple[str, ...]]:
    """Return all runs of :data:`_MIN_SHARED_WORDS` consecutive words; a shorter text is one run."""
    words = re.findall(r"\w+", text.casefold())
    last = max(1, len(words) - _MIN_SHARED_WORDS + 1)
    return {tuple(words[start : start + _MIN_SHARED_WORDS]) for start in range(last)}
