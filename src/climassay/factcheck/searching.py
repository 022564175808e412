"""Searching for evidence: many queries at once, passages cut to their sentences nearest to the query, reranking."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.documents import Hit
from climassay.corpus.passages import excerpt
from climassay.corpus.search import RELEVANCE_COSINE
from climassay.corpus.sentences import split_sentences
from climassay.factcheck.steps import AskPassages, Found
from climassay.grounding import CollectionGroup
from climassay.models.contract import Encoder

RERANK_FACTOR = 4
"""So many times as many passages are found as are kept when the best are chosen by their sentences."""
LATEST_FACTOR = 3
"""As many times as many where old editions will be left out."""
_BEST_SENTENCES = 2
"""Reranking takes the mean of so many nearest sentences."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A search: one query in one collection."""

    ask: AskPassages
    collection: str


def search_all(
    asks: Sequence[AskPassages],
    collections: Mapping[str, CollectionGroup],
    latest_of: Callable[[str], frozenset[str]],
) -> list[tuple[Found, ...]]:
    """Answer searches, in order; queries of one collection are searched together.

    Several collections of one search take turns, in their order.

    Args:
        asks: What is looked for.
        collections: By name.
        latest_of: Ids of the documents of a collection that are the latest of their kind.
    """
    found: dict[tuple[int, str], list[Found]] = {}
    for name in dict.fromkeys(name for ask in asks for name in ask.collections):
        places = [place for place, ask in enumerate(asks) if name in ask.collections]
        lists = _search_one([asks[place] for place in places], name, collections[name], latest_of)
        found.update(((place, name), some) for place, some in zip(places, lists, strict=True))
    return [_merged([found[place, name] for name in ask.collections], ask.passages) for place, ask in enumerate(asks)]


def _merged(lists: Sequence[Sequence[Found]], most: int) -> tuple[Found, ...]:
    """The first of each list, then the second of each and so on: similarities of two collections need not compare."""
    ranked = [(rank, number, one) for number, some in enumerate(lists) for rank, one in enumerate(some)]
    ranked.sort(key=lambda place: place[:2])
    return tuple(one for _, _, one in ranked[:most])


def _search_one(
    asks: Sequence[AskPassages], name: str, group: CollectionGroup, latest_of: Callable[[str], frozenset[str]]
) -> list[list[Found]]:
    [collection] = group.collections
    measured = RELEVANCE_COSINE.get(collection.settings.encoder)
    results: list[list[Found]] = [[] for _ in asks]
    for key in dict.fromkeys(map(_search_settings, asks)):
        places = [place for place, ask in enumerate(asks) if _search_settings(ask) == key]
        passages, limit, rerank, latest_only = key
        wanted = passages * (RERANK_FACTOR if rerank else 1) * (LATEST_FACTOR if latest_only else 1)
        queries = [asks[place].query for place in places]
        hits = group.search_many(queries, k=wanted, min_cosine=measured if limit is None else limit)
        if latest_only:
            kept = latest_of(name)
            hits = [[hit for hit in some if hit.passage.document_id in kept] for some in hits]
        chosen = cut_out([asks[place] for place in places], hits, group.encoder)
        for place, some in zip(places, chosen, strict=True):
            results[place] = [Found(hit.passage, name, hit.cosine, excerpt) for hit, excerpt in some]
    return results


def _search_settings(ask: AskPassages) -> tuple[int, float | None, bool, bool]:
    return (ask.passages, ask.min_cosine, ask.rerank, ask.latest_only)


def cut_out(
    asks: Sequence[AskPassages], hits: Sequence[Sequence[Hit]], encoder: Encoder
) -> list[list[tuple[Hit, str]]]:
    """Hits with their excerpts, reranked where that is asked for, at most as many as wanted.

    Args:
        asks: The searches.
        hits: What each found, best first.
        encoder: Compares sentences with queries.
    """
    chosen: list[list[tuple[Hit, str]]] = []
    sentences = [[split_sentences(hit.passage.text) or [hit.passage.text] for hit in some] for some in hits]
    plain = [not (ask.rerank or ask.excerpt_words) for ask in asks]
    texts = [
        sentence
        for some, whole in zip(sentences, plain, strict=True)
        if not whole
        for passage in some
        for sentence in passage
    ]
    unique = list(dict.fromkeys(texts))
    vectors = dict(zip(unique, encoder.encode(unique), strict=True)) if unique else {}
    queries = encoder.encode([ask.query for ask in asks], role="query") if unique else np.zeros((len(asks), 0))
    for ask, query, some, parts, whole in zip(asks, queries, hits, sentences, plain, strict=True):
        if whole:
            chosen.append([(hit, hit.passage.text) for hit in some[: ask.passages]])
            continue
        near = [np.array([float(vectors[sentence] @ query) for sentence in passage]) for passage in parts]
        order = sorted(range(len(some)), key=lambda place: -_nearness(near[place])) if ask.rerank else range(len(some))
        kept = list(order)[: ask.passages]
        chosen.append([(some[place], excerpt(parts[place], near[place], ask.excerpt_words)) for place in kept])
    return chosen


def _nearness(cosines: NDArray[np.float64]) -> float:
    return float(np.sort(cosines)[-_BEST_SENTENCES:].mean())
