"""Answers to the requests of debates: searches in collections, and calls of models in batches."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from climassay.corpus.documents import Hit, excerpt
from climassay.corpus.sentences import split_sentences
from climassay.errors import ModelError
from climassay.factcheck.claims import latest_editions
from climassay.factcheck.debate.steps import Ask, AskEntailment, AskOptions, AskPassages, AskText, FoundPassage
from climassay.grounding import CollectionGroup
from climassay.models.contract import Completion, ConcurrentModel, Encoder, OptionScores, unwrap_model
from climassay.records import RecordedModel

EntailmentScorer = Callable[[Sequence[tuple[str, str]]], list[float | None]]
"""Function that returns, for pairs of premise and statement, the probability of entailment; None for a failed pair."""
RERANK_FACTOR = 4
"""Number of candidates per returned passage if passages are reranked."""
LATEST_FACTOR = 3
"""Number of candidates per returned passage if older editions are filtered out afterwards."""
_BEST_SENTENCES = 2
"""Number of sentences per passage, those nearest to the query, whose mean similarity reranks the passage."""


def search_all(
    asks: Sequence[AskPassages],
    collections: Mapping[str, CollectionGroup],
    find_latest: Callable[[str], frozenset[str]],
) -> list[tuple[FoundPassage, ...]]:
    """Run searches and return their results in the same order; searches in the same collection are batched.

    Args:
        asks: Searches to run. The results of a search in several collections are interleaved.
        collections: Collections by name.
        find_latest: Function that returns the ids of a collection's documents that have no later edition, by the
            collection's name.
    """
    results: dict[tuple[int, str], list[FoundPassage]] = {}
    for name in dict.fromkeys(name for ask in asks for name in ask.collections):
        group = collections[name]
        batches: dict[tuple[Any, ...], list[int]] = {}
        for index, ask in enumerate(asks):
            if name in ask.collections:
                batches.setdefault((ask.passages, ask.min_cosine, ask.rerank, ask.latest_only), []).append(index)
        for (n_passages, min_cosine, rerank, latest_only), indices in batches.items():
            n_candidates = n_passages * (RERANK_FACTOR if rerank else 1) * (LATEST_FACTOR if latest_only else 1)
            queries = [asks[index].query for index in indices]
            hits = group.search_many(
                queries, k=n_candidates, min_cosine="measured" if min_cosine is None else min_cosine
            )
            if latest_only:
                latest = find_latest(name)
                hits = [[hit for hit in query_hits if hit.passage.document_id in latest] for query_hits in hits]
            selected = select_excerpts([asks[index] for index in indices], hits, group.encoder)
            for index, selection in zip(indices, selected, strict=True):
                results[index, name] = [FoundPassage(hit.passage, name, hit.cosine, text) for hit, text in selection]
    return [_interleave([results[index, name] for name in ask.collections], ask) for index, ask in enumerate(asks)]


def _interleave(lists: Sequence[Sequence[FoundPassage]], ask: AskPassages) -> tuple[FoundPassage, ...]:
    """Return the first passage of each collection, then the second and so on, without duplicates.

    Similarities of different collections may not be comparable.
    """
    ranked = [(rank, number, result) for number, results in enumerate(lists) for rank, result in enumerate(results)]
    ranked.sort(key=lambda entry: entry[:2])
    unique: dict[str, FoundPassage] = {}  # several collections may contain a passage
    for _, _, result in ranked:
        unique.setdefault(result.passage.id, result)
    return tuple(unique.values())[: ask.passages]


def select_excerpts(
    asks: Sequence[AskPassages], hits: Sequence[Sequence[Hit]], encoder: Encoder
) -> list[list[tuple[Hit, str]]]:
    """Return the best hits of each search with their excerpts; hits are reranked if the search requests it."""
    needs_sentences = [ask.rerank or ask.excerpt_words > 0 for ask in asks]
    sentences = [
        [split_sentences(hit.passage.text) or [hit.passage.text] for hit in query_hits] if needed else []
        for query_hits, needed in zip(hits, needs_sentences, strict=True)
    ]
    texts = list(dict.fromkeys(text for passages in sentences for passage in passages for text in passage))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    queries = encoder.encode([ask.query for ask in asks], role="query") if texts else np.zeros((len(asks), 0))
    results: list[list[tuple[Hit, str]]] = []
    for ask, query, query_hits, passages, needed in zip(asks, queries, hits, sentences, needs_sentences, strict=True):
        if not needed:
            results.append([(hit, hit.passage.text) for hit in query_hits[: ask.passages]])
            continue
        cosines = [np.array([float(vectors[sentence] @ query) for sentence in passage]) for passage in passages]
        order = list(range(len(query_hits)))
        if ask.rerank:
            means = [float(np.sort(values)[-_BEST_SENTENCES:].mean()) for values in cosines]
            order.sort(key=lambda index: -means[index])
        results.append(
            [(query_hits[i], excerpt(passages[i], cosines[i], ask.excerpt_words)) for i in order[: ask.passages]]
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
        self._blank_scores: dict[AskOptions, OptionScores] = {}
        self._latest: dict[str, frozenset[str]] = {}

    def concurrent_model(self, ask: Ask) -> str | None:
        """Return the name of the model that answers a request if it accepts concurrent calls; otherwise None."""
        if not isinstance(ask, AskText | AskOptions):
            return None
        return ask.model if isinstance(unwrap_model(self._models[ask.model]), ConcurrentModel) else None

    def cancel(self, threads: Collection[int]) -> None:
        """Cancel model calls that run in these threads; see :class:`~climassay.models.contract.ConcurrentModel`."""
        for model in map(unwrap_model, self._models.values()):
            if isinstance(model, ConcurrentModel):
                model.cancel(threads)

    def answer(self, asks: Sequence[Ask]) -> list[Any]:
        """Return the answers to requests in the same order. Thread-safe for models that accept concurrent calls."""
        handlers: Mapping[type[Ask], Callable[[list[Any]], Sequence[Any]]] = {
            AskPassages: lambda asks: search_all(asks, self._collections, self._find_latest),
            AskOptions: self._score_options,
            AskText: self._generate,
            AskEntailment: self._score_entailment,
        }
        answers: dict[int, Any] = {}
        for ask_type, handle in handlers.items():
            indices = [index for index, ask in enumerate(asks) if isinstance(ask, ask_type)]
            if indices:
                answers.update(zip(indices, handle([asks[index] for index in indices]), strict=True))
        return [answers[index] for index in range(len(asks))]

    def _generate(self, asks: Sequence[AskText]) -> list[Completion]:
        answers: dict[int, Completion] = {}
        for name in dict.fromkeys(ask.model for ask in asks):
            indices = [index for index, ask in enumerate(asks) if ask.model == name]
            completions = self._models[name].generate([asks[index].request for index in indices])
            answers.update(zip(indices, completions, strict=True))
        return [answers[index] for index in range(len(asks))]

    def _score_options(self, asks: Sequence[AskOptions]) -> list[OptionScores]:
        scores = dict(self._blank_scores)
        missing = [ask for ask in dict.fromkeys(asks) if ask not in scores]
        for name in dict.fromkeys(ask.model for ask in missing):
            model_asks = [ask for ask in missing if ask.model == name]
            try:
                answers = self._models[name].option_logprobs([ask.request for ask in model_asks])
            except ModelError as error:
                answers = [OptionScores.failed(str(error)) for _ in model_asks]
            scores.update(zip(model_asks, answers, strict=True))
        self._blank_scores.update((ask, scores[ask]) for ask in missing if ask.blank and scores[ask].error is None)
        return [scores[ask] for ask in asks]

    def _score_entailment(self, asks: Sequence[AskEntailment]) -> list[float | None]:
        if self._entailment is None:
            raise ModelError("A debate asks for entailment, but no model that measures it was loaded.")
        return self._entailment([(ask.premise, ask.statement) for ask in asks])

    def _find_latest(self, name: str) -> frozenset[str]:
        if name not in self._latest:
            [collection] = self._collections[name].collections
            self._latest[name] = latest_editions(collection.documents())
        return self._latest[name]
