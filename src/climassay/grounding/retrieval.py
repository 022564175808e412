"""Searching several collections as one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from climassay.corpus.collection import Collection
from climassay.corpus.collection_storage import StoredDocument
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.search import (
    CANDIDATES,
    DEFAULT_DENSE_WEIGHT,
    DENSE_WEIGHT,
    RELEVANCE_COSINE,
    RRF_CONSTANT,
    SearchMode,
    weighted_sum,
)
from climassay.errors import InputError
from climassay.models.contract import Encoder
from climassay.models.encoders import CachedEncoder
from climassay.workspace import Workspace


@dataclass(frozen=True, slots=True)
class CollectionGroup:
    """One or several collections; each may have an encoder of its own."""

    collections: tuple[Collection, ...]

    @property
    def encoder(self) -> Encoder:
        """The first collection's encoder; what else has to be compared is compared with it."""
        return self.collections[0].encoder

    def search(self, query: str, *, k: int, min_cosine: float | None = None, mode: SearchMode = "hybrid") -> list[Hit]:
        """The passages that are relevant to one query, best first; none where nothing is.

        Args:
            query: A question or statement.
            k: Passages, over all collections.
            min_cosine: Similarity below which a passage is not relevant; None takes the threshold measured for each
                collection's encoder (``climassay.corpus.RELEVANCE_COSINE``), or none where it was not measured.
            mode: See :meth:`climassay.corpus.Collection.search_many`.
        """
        limits = [
            RELEVANCE_COSINE.get(collection.settings.encoder) if min_cosine is None else min_cosine
            for collection in self.collections
        ]
        return self._ranked([query], k, limits, mode)[0]

    def search_many(
        self, queries: Sequence[str], *, k: int, min_cosine: float | None = None, mode: SearchMode = "hybrid"
    ) -> list[list[Hit]]:
        """The best passages for many queries.

        Passages of several collections are ranked together, so that a collection has a place for each passage that is
        better than those of the others, and none for being asked. ``hybrid`` divides cosines and BM25 scores by their
        greatest ones over all collections; where encoders differ, what a cosine has beyond the threshold of its encoder
        stands for it (:data:`~climassay.corpus.search.RELEVANCE_COSINE`). ``rrf`` fuses the ranks.

        Args:
            queries: Texts to search for.
            k: Passages a query, over all collections.
            min_cosine: Leave out passages less similar than this; None keeps all.
            mode: See :meth:`climassay.corpus.Collection.search_many`.
        """
        return self._ranked(queries, k, [min_cosine] * len(self.collections), mode)

    def _ranked(
        self, queries: Sequence[str], k: int, limits: Sequence[float | None], mode: SearchMode
    ) -> list[list[Hit]]:
        several = len(self.collections) > 1
        pairs = list(zip(self.collections, limits, strict=True))
        depth = max(CANDIDATES, k) if several else k
        found = [one.search_many(queries, k=depth, min_cosine=limit, mode=mode) for one, limit in pairs]
        if not several:
            return found[0]
        if mode == "rrf":
            return [_fuse(lists, k) for lists in zip(*found, strict=True)]
        by_words = [one.search_many(queries, k=depth, mode="bm25") for one in self.collections if mode == "hybrid"]
        return [
            self._together(
                [hits[number] for hits in found], [hit for hits in by_words for hit in hits[number]], k, mode
            )
            for number in range(len(queries))
        ]

    def _together(
        self, rankings: Sequence[Sequence[Hit]], by_words: Sequence[Hit], k: int, mode: SearchMode
    ) -> list[Hit]:
        """The best hits of all collections for one query; a passage that several hold appears once."""
        hits = {hit.passage.id: hit for ranking in rankings for hit in ranking}
        if mode == "bm25":
            scores = {item: hit.score for item, hit in hits.items()}
        else:
            encoders = [collection.settings.encoder for collection in self.collections]
            floors = [RELEVANCE_COSINE.get(name, 0.0) if len(set(encoders)) > 1 else 0.0 for name in encoders]
            near = {
                hit.passage.id: ((hit.cosine or 0.0) - floor) / (1 - floor)
                for ranking, floor in zip(rankings, floors, strict=True)
                for hit in ranking
            }
            words = {hit.passage.id: hit.score for hit in by_words if hit.passage.id in hits}
            weights = [DENSE_WEIGHT.get(name, DEFAULT_DENSE_WEIGHT) for name in encoders]
            scores = near if mode == "dense" else weighted_sum(near, words, sum(weights) / len(weights))
        best = sorted(scores, key=lambda item: (-scores[item], -(hits[item].cosine or 0.0), item))[:k]
        return [replace(hits[item], rank=rank, score=scores[item]) for rank, item in enumerate(best, start=1)]

    def document_words(self) -> list[str]:
        """Title, file name, report and date of every document, in one line each."""
        return [" ".join(filter(None, (one.title, one.source, one.report, one.date))) for one in self.documents()]

    def documents(self) -> list[StoredDocument]:
        """The documents of all collections."""
        return [one for collection in self.collections for one in collection.documents()]

    def document_passages(self, document: str) -> list[Passage]:
        """All passages of a document of one of the collections, in its order.

        Raises:
            InputError: No collection, or several, have a document of that id, title or source.
        """
        holders = [
            collection
            for collection in self.collections
            if any(document in (one.id, one.title, one.source) for one in collection.documents())
        ]
        if len(holders) != 1:
            names = ", ".join(collection.name for collection in self.collections)
            count = "none has" if not holders else f"{len(holders)} have"
            raise InputError(f"Of the collections {names} {count} a document {document!r}.")
        return holders[0].document_passages(document)


def _fuse(rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """Best hits of several rankings by reciprocal rank; equals by similarity, then by id."""
    scored = [(1 / (RRF_CONSTANT + hit.rank), hit) for hits in rankings for hit in hits]
    scored.sort(key=lambda pair: (-pair[0], -(pair[1].cosine or 0.0), pair[1].passage.id))
    return [replace(hit, rank=rank, score=score) for rank, (score, hit) in enumerate(scored[:k], start=1)]


def open_collections(workspace: Workspace, names: Sequence[str], *, encoder: Encoder | None = None) -> CollectionGroup:
    """Open collections by name.

    Encoders are loaded once, however many collections share them, and encode a text once.

    Args:
        workspace: Where they are.
        names: One or more; each once.
        encoder: The encoder of all of them, where it is loaded already.

    Raises:
        InputError: No name, a name twice, or no such collection.
    """
    if not names:
        raise InputError("Name at least one collection (--collection NAME).")
    if len(set(names)) < len(names):
        raise InputError(f"Every collection can be named once, got {', '.join(names)}.")
    encoders = {encoder.name: CachedEncoder.of(encoder)} if encoder else {}
    opened = []
    for name in names:
        collection = Collection.open(workspace, name)
        made_with = collection.settings.encoder
        if made_with not in encoders:
            encoders[made_with] = CachedEncoder(collection.encoder)
        opened.append(Collection.open(workspace, name, encoders[made_with]))
    return CollectionGroup(tuple(opened))
