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
"""Maximum number of cached orders of passages: one for each kind and level, book and repetition."""


SectionPassage = tuple[str, tuple[str, ...]]
"""Id of a passage, and the headings of its section."""


class SeedSampler:
    """Sampler of seed passages from the books of several collections, stratified by section.

    Incomplete documents are excluded, because their order would change when they are completed. A document in several
    collections counts once.

    Notes:
        ClimaQA (section 4.2) draws seed passages at random from all books, which favours the longest book and its
        longest sections.
    """

    def __init__(
        self, group: CollectionGroup, *, seed: int = 0, find_fault: Callable[[Passage], str | None] | None = None
    ) -> None:
        """Create a sampler; each book is read when it is first used.

        Args:
            group: Collections with the books.
            seed: Random seed of the order of passages.
            find_fault: Function that returns why no question should be written from a passage, or None if it is
                suitable. By default every passage is suitable.
        """
        self._group = group
        self._find_fault = find_fault
        self._suitable_passages: dict[str, tuple[SectionPassage, ...]] = {}
        self._load = lru_cache(maxsize=_MAX_CACHED_PASSAGES)(
            lambda book, id: self._collection_by_document[book].passage(id)
        )
        self._order = lru_cache(maxsize=_MAX_CACHED_ORDERS)(
            lambda *parts: stratified_order(self._section_passages(parts[1]), "\x1f".join(map(str, (seed, *parts))))
        )

    @cached_property
    def books(self) -> tuple[str, ...]:
        """Ids of the documents with a suitable passage, sorted by title."""
        return tuple(book for book in self._collection_by_document if self._section_passages(book))

    def passage(self, stream: str, book: str, passage_number: int) -> Passage | None:
        """Return a seed passage; as long as the book is unchanged, the same arguments give the same passage.

        Args:
            stream: Name of a kind and level, for example ``mcq/base``.
            book: Document id.
            passage_number: Index in the order in which the stream uses the book's suitable passages. There is no upper
                limit: beyond the last passage, all passages follow again in another order.

        Returns:
            The passage, or None if the book does not exist or has no suitable passage.
        """
        if book not in self._collection_by_document:
            return None
        n_passages = len(self._section_passages(book))
        if n_passages == 0:
            return None
        repetition, index = divmod(passage_number, n_passages)
        return self._load(book, self._order(stream, book, repetition)[index])

    @cached_property
    def _collection_by_document(self) -> dict[str, Collection]:
        """Mapping from the id of each complete document to the first collection that contains it, sorted by title."""
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
                if self._find_fault is None or self._find_fault(passage) is None:
                    section = passage.headings or ((passage.chapter,) if passage.chapter else ())
                    passages.append((passage.id, section))
            self._suitable_passages[book] = tuple(passages)
        return self._suitable_passages[book]


def stratified_order(passages: Sequence[SectionPassage], key: str) -> tuple[str, ...]:
    """Return the passages' ids in a random order that takes one passage of each section in turn.

    The order depends only on ``key`` and on the passages.
    """
    sections: dict[tuple[str, ...], list[str]] = {}
    for passage_id, section in passages:
        sections.setdefault(section, []).append(passage_id)
    queues = [
        sorted(sections[section], key=lambda passage_id: _random_rank(key, passage_id))
        for section in sorted(sections, key=lambda section: _random_rank(key, *section))
    ]
    max_length = max((len(queue) for queue in queues), default=0)
    return tuple(queue[index] for index in range(max_length) for queue in queues if index < len(queue))


def _random_rank(*parts: str) -> bytes:
    """Return a sort key that gives a pseudo-random order; unlike Python's own hash it is equal in every process."""
    return hashlib.sha256("\x1f".join(parts).encode()).digest()


_MIN_SHARED_WORDS = 12
"""Number of consecutive words that two passages must share to count as copies of the same text."""
_EXTRA_HITS = 20
"""Number of search hits to request in addition, because neighbours and copies of the seed passage are excluded."""


@dataclass(frozen=True)
class ContextFinder:
    """Retriever of passages that are similar to a seed passage.

    ClimaQA (section 4.2) takes passages above a cosine threshold, to use several sources. Here, passages of documents
    that are not yet represented come first. A passage is excluded if it overlaps with a chosen one, for example because
    it is its neighbour or comes from another edition.

    Raises:
        InputError: ``max_passages`` is negative.
    """

    group: CollectionGroup
    max_passages: int = 2
    """Maximum number of retrieved passages per seed passage."""
    threshold: float | None = None
    """Minimum cosine similarity to the seed passage, in every search mode. None: the value that was measured for each
    collection's encoder (:mod:`climassay.corpus.relevance`)."""
    mode: SearchMode = "dense"
    """Search mode; see :meth:`climassay.corpus.Collection.search_many`."""
    other_documents: bool = False
    """Exclude passages of the seed passage's document."""
    find_fault: Callable[[Passage], str | None] | None = None
    """Function that returns why a passage is unsuitable, or None if it is suitable; see :class:`SeedSampler`."""

    def __post_init__(self) -> None:
        if self.max_passages < 0:
            raise InputError(f"The number of retrieved passages is {self.max_passages}: use 0 or more.")

    def find(self, seeds: Sequence[Passage]) -> list[tuple[SourcePassage, ...]]:
        """Return for each seed passage a tuple of that passage and its retrieved passages, nearest first.

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
        """Select up to ``max_passages`` hits: first the best hit of each new document, then the best remaining hits."""
        candidates = [
            hit
            for hit in hits
            if hit.passage.id != seed.id
            and not (self.other_documents and hit.passage.document_id == seed.document_id)
            and (self.find_fault is None or self.find_fault(hit.passage) is None)
        ]
        chosen_hits: list[Hit] = []
        chosen_sequences, document_ids = _word_sequences(seed.text), {seed.document_id}
        for needs_new_document in (True, False):
            for hit in candidates:
                if len(chosen_hits) == self.max_passages:
                    break
                hit_sequences = _word_sequences(hit.passage.text)
                if hit_sequences & chosen_sequences or (needs_new_document and hit.passage.document_id in document_ids):
                    continue
                chosen_hits.append(hit)
                chosen_sequences |= hit_sequences
                document_ids.add(hit.passage.document_id)
        return sorted(chosen_hits, key=lambda hit: (-(hit.cosine or 0.0), hit.rank))


def _word_sequences(text: str) -> set[tuple[str, ...]]:
    """Return all sequences of :data:`_MIN_SHARED_WORDS` consecutive words; a shorter text is one sequence."""
    words = re.findall(r"\w+", text.casefold())
    n_sequences = max(1, len(words) - _MIN_SHARED_WORDS + 1)
    return {tuple(words[start : start + _MIN_SHARED_WORDS]) for start in range(n_sequences)}
