"""Searching several collections as one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from climassay.corpus.collection import Collection
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.relevance import RELEVANCE_COSINE
from climassay.corpus.search import RRF_CONSTANT, SearchMode
from climassay.errors import InputError
from climassay.models.contract import Encoder
from climassay.workspace import Workspace


@dataclass(frozen=True, slots=True)
class CollectionGroup:
    """One or several collections; each may have an encoder of its own."""

    collections: tuple[Collection, ...]

    @property
    def encoder(self) -> Encoder:
        """The first collection's encoder; what else has to be compared is compared with it."""
        return self.collections[0].encoder

    def search(self, query: str, *, k: int, min_cosine: float | None = None) -> list[Hit]:
        """The passages that are relevant to one query, best first; none where nothing is.

        Args:
            query: A question or statement.
            k: Passages, over all collections.
            min_cosine: Similarity below which a passage is not relevant; None takes the threshold measured for each
                collection's encoder (``climassay.corpus.RELEVANCE_COSINE``), or none where it was not measured.
        """
        rankings = []
        for collection in self.collections:
            limit = RELEVANCE_COSINE.get(collection.settings.encoder) if min_cosine is None else min_cosine
            rankings.append(collection.search(query, k=k, min_cosine=limit))
        return _fuse(rankings, k)

    def search_many(
        self, queries: Sequence[str], *, k: int, min_cosine: float | None = None, mode: SearchMode = "hybrid"
    ) -> list[list[Hit]]:
        """The best passages for many queries.

        Rankings of several collections are fused by reciprocal rank: their scores need not be comparable.

        Args:
            queries: Texts to search for.
            k: Passages a query, over all collections.
            min_cosine: Leave out passages less similar than this; None keeps all.
            mode: See :meth:`climassay.corpus.Collection.search_many`.
        """
        rankings = [
            collection.search_many(queries, k=k, min_cosine=min_cosine, mode=mode) for collection in self.collections
        ]
        return [_fuse(lists, k) for lists in zip(*rankings, strict=True)]

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
    """Best hits of several rankings, one ranking as it is; equals by similarity, then by id."""
    if len(rankings) == 1:
        return list(rankings[0])
    scored = [(1 / (RRF_CONSTANT + hit.rank), hit) for hits in rankings for hit in hits]
    scored.sort(key=lambda pair: (-pair[0], -(pair[1].cosine or 0.0), pair[1].passage.id))
    return [replace(hit, rank=rank, score=score) for rank, (score, hit) in enumerate(scored[:k], start=1)]


def open_collections(workspace: Workspace, names: Sequence[str], *, encoder: Encoder | None = None) -> CollectionGroup:
    """Open collections by name.

    Encoders are loaded once, however many collections share them.

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
    encoders = {encoder.name: encoder} if encoder else {}
    opened = []
    for name in names:
        collection = Collection.open(workspace, name)
        made_with = collection.settings.encoder
        if made_with in encoders:
            collection = Collection.open(workspace, name, encoders[made_with])
        else:
            encoders[made_with] = collection.encoder
        opened.append(collection)
    return CollectionGroup(tuple(opened))
