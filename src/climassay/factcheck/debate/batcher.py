"""Answers to the requests of debates: searches in collections, and calls of models in batches."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from climassay.corpus.documents import Hit, excerpt
from climassay.corpus.sentences import split_sentences
from climassay.errors import ModelError
from climassay.factcheck.claims import latest_editions
from climassay.factcheck.debate.requests import EntailmentRequest, FoundPassage, Request, SearchRequest, TextRequest
from climassay.grounding import CollectionGroup
from climassay.models.contract import Completion, ConcurrentModel, Encoder, unwrap_model
from climassay.records import RecordedModel

EntailmentScorer = Callable[[Sequence[tuple[str, str]]], list[float | None]]
"""Function that returns, for pairs of premise and statement, the probability of entailment; None for a failed pair."""
RERANK_FACTOR = 4
"""Number of candidates per returned passage if passages are reranked."""
LATEST_FACTOR = 3
"""Number of candidates per returned passage if older editions are filtered out afterwards."""
_BEST_SENTENCES = 2
"""Number of sentences per passage, those most similar to the query, by whose mean similarity the passage is
reranked."""


def search_all(
    requests: Sequence[SearchRequest],
    collections: Mapping[str, CollectionGroup],
    find_latest: Callable[[str], frozenset[str]],
) -> list[tuple[FoundPassage, ...]]:
    """Run searches and return their results in the same order; searches in the same collection are batched.

    Args:
        requests: Searches to run. The results of a search in several collections are interleaved.
        collections: Collections by name.
        find_latest: Function that takes a collection's name and returns the ids of its documents that have no later
            edition.
    """
    results: dict[tuple[int, str], list[FoundPassage]] = {}
    for name in dict.fromkeys(name for request in requests for name in request.collections):
        group = collections[name]
        batches: dict[tuple[Any, ...], list[int]] = {}
        for index, request in enumerate(requests):
            if name in request.collections:
                batches.setdefault(
                    (request.passages, request.min_cosine, request.rerank, request.latest_only), []
                ).append(index)
        for (n_passages, min_cosine, is_reranked, latest_only), indices in batches.items():
            n_candidates = n_passages * (RERANK_FACTOR if is_reranked else 1) * (LATEST_FACTOR if latest_only else 1)
            queries = [requests[index].query for index in indices]
            hits = group.search_many(
                queries, k=n_candidates, min_cosine="measured" if min_cosine is None else min_cosine
            )
            if latest_only:
                latest_ids = find_latest(name)
                hits = [[hit for hit in query_hits if hit.passage.document_id in latest_ids] for query_hits in hits]
            selections = select_excerpts([requests[index] for index in indices], hits, group.encoder)
            for index, selection in zip(indices, selections, strict=True):
                results[index, name] = [FoundPassage(hit.passage, name, hit.cosine, text) for hit, text in selection]
    return [
        _interleave([results[index, name] for name in request.collections], request)
        for index, request in enumerate(requests)
    ]


def _interleave(lists: Sequence[Sequence[FoundPassage]], request: SearchRequest) -> tuple[FoundPassage, ...]:
    """Return the first passage of each collection, then the second and so on, without duplicates.

    Similarities of different collections may not be comparable.
    """
    ranked_results = [
        (rank, number, result) for number, results in enumerate(lists) for rank, result in enumerate(results)
    ]
    ranked_results.sort(key=lambda entry: entry[:2])
    unique_passages: dict[str, FoundPassage] = {}  # several collections may contain a passage
    for _, _, result in ranked_results:
        unique_passages.setdefault(result.passage.id, result)
    return tuple(unique_passages.values())[: request.passages]


def select_excerpts(
    requests: Sequence[SearchRequest], hits: Sequence[Sequence[Hit]], encoder: Encoder
) -> list[list[tuple[Hit, str]]]:
    """Return the best hits of each search with their excerpts; hits are reranked if the search requests it."""
    needs_sentences = [request.rerank or request.excerpt_words > 0 for request in requests]
    sentences = [
        [split_sentences(hit.passage.text) or [hit.passage.text] for hit in query_hits] if needs_excerpt else []
        for query_hits, needs_excerpt in zip(hits, needs_sentences, strict=True)
    ]
    texts = list(dict.fromkeys(text for passages in sentences for passage in passages for text in passage))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    queries = (
        encoder.encode([request.query for request in requests], role="query") if texts else np.zeros((len(requests), 0))
    )
    results: list[list[tuple[Hit, str]]] = []
    for request, query, query_hits, passages, needs_excerpt in zip(
        requests, queries, hits, sentences, needs_sentences, strict=True
    ):
        if not needs_excerpt:
            results.append([(hit, hit.passage.text) for hit in query_hits[: request.passages]])
            continue
        cosines = [np.array([float(vectors[sentence] @ query) for sentence in passage]) for passage in passages]
        order = list(range(len(query_hits)))
        if request.rerank:
            means = [float(np.sort(values)[-_BEST_SENTENCES:].mean()) for values in cosines]
            order.sort(key=lambda index: -means[index])
        results.append(
            [
                (query_hits[i], excerpt(passages[i], cosines[i], request.excerpt_words))
                for i in order[: request.passages]
            ]
        )
    return results


class RequestBatcher:
    """Answers the requests of debates; pending requests to a model are sent in one call.

    Args:
        models: Models by name, each with its records.
        collections: Collections by name.
        entailment: Scorer of entailment; None if debates do not measure it.
    """

    def __init__(
        self,
        models: Mapping[str, RecordedModel],
        collections: Mapping[str, CollectionGroup],
        entailment: EntailmentScorer | None = None,
    ) -> None:
        self._models = models
        self._collections = collections
        self._entailment = entailment
        self._latest: dict[str, frozenset[str]] = {}

    def concurrent_model(self, request: Request) -> str | None:
        """Return the name of the model that answers a request if it accepts concurrent calls; otherwise None."""
        if not isinstance(request, TextRequest):
            return None
        return request.model if isinstance(unwrap_model(self._models[request.model]), ConcurrentModel) else None

    def cancel(self, threads: Collection[int]) -> None:
        """Cancel model calls that run in these threads; see :class:`~climassay.models.contract.ConcurrentModel`."""
        for model in map(unwrap_model, self._models.values()):
            if isinstance(model, ConcurrentModel):
                model.cancel(threads)

    def answer(self, requests: Sequence[Request]) -> list[Any]:
        """Return the answers to requests in the same order. Thread-safe for models that accept concurrent calls."""
        handlers: Mapping[type[Request], Callable[[list[Any]], Sequence[Any]]] = {
            SearchRequest: lambda requests: search_all(requests, self._collections, self._find_latest),
            TextRequest: self._generate,
            EntailmentRequest: self._score_entailment,
        }
        answers: dict[int, Any] = {}
        for request_type, handle in handlers.items():
            indices = [index for index, request in enumerate(requests) if isinstance(request, request_type)]
            if indices:
                answers.update(zip(indices, handle([requests[index] for index in indices]), strict=True))
        return [answers[index] for index in range(len(requests))]

    def _generate(self, requests: Sequence[TextRequest]) -> list[Completion]:
        answers: dict[int, Completion] = {}
        for name in dict.fromkeys(request.model for request in requests):
            indices = [index for index, request in enumerate(requests) if request.model == name]
            completions = self._models[name].generate([requests[index].model_request for index in indices])
            answers.update(zip(indices, completions, strict=True))
        return [answers[index] for index in range(len(requests))]

    def _score_entailment(self, requests: Sequence[EntailmentRequest]) -> list[float | None]:
        if self._entailment is None:
            raise ModelError("A debate asks for entailment, but no model that measures it was loaded.")
        return self._entailment([(request.premise, request.statement) for request in requests])

    def _find_latest(self, name: str) -> frozenset[str]:
        if name not in self._latest:
            [collection] = self._collections[name].collections
            self._latest[name] = latest_editions(collection.documents())
        return self._latest[name]
