"""Search the passages of a collection by vectors, by words, or by both."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.collection_storage import ensure_text_index, passage_columns, quoted, to_matrix, to_passage
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.relevance import QueryWords, RelevanceRule, Threshold, heading_share
from climassay.errors import InputError
from climassay.models.contract import Encoder

DENSE_WEIGHT: Mapping[str, float] = MappingProxyType({"local:minilm": 0.3})
"""Weight of the cosine in hybrid search, by name of the encoder.

Measured for the bundled encoder (``benchmarks/search.py``): the mean reciprocal rank of questions in everyday words is
flat from 0.1 to 0.4, and lower for larger weights.
"""

DEFAULT_DENSE_WEIGHT = 0.5
"""Weight of the cosine for encoders that were not measured."""


SearchMode = Literal["hybrid", "dense", "bm25", "rrf"]
SEARCH_MODES: tuple[SearchMode, ...] = get_args(SearchMode)

RRF_CONSTANT = 60
"""Constant k of reciprocal rank fusion, as in its paper."""
CANDIDATES = 50
"""Minimum length of the dense and BM25 lists that are fused; twice the number of hits if that is larger."""
MEMORY_BUDGET = 1 << 30
"""Maximum number of bytes of vectors that a searcher caches."""
MAX_CACHED_PASSAGES = 4096
"""Maximum number of passages that a searcher caches between searches."""
MAX_K = 1000
_MIN_BATCH = 16
"""Minimum number of passages per batch in which words are compared with the query."""
MAX_COUNTED = 10_000
"""Upper limit of the number of passages counted for a word; more frequent words have almost no weight."""
_DIGITS = 6
"""Decimal places to which scores are rounded, so that rounding errors do not change the order."""
_ROUNDING = 1e-4
"""Upper bound of the error of a single-precision dot product of unit vectors."""

Scores = dict[str, float]
"""Score by passage id, best first."""


def fuse(*rankings: Iterable[str], constant: int = RRF_CONSTANT) -> Scores:
    """Fuse rankings by reciprocal rank fusion.

    Args:
        rankings: Ids, best first.
        constant: Number added to each rank; a larger one reduces the weight of the first ranks.

    Returns:
        Sum over rankings of 1 / (constant + rank), ranks from 1; best first, ties by id.
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (constant + rank)
    return _sort_scores(scores)


def weighted_sum(cosines: Mapping[str, float], words: Mapping[str, float], weight: float) -> Scores:
    """Fuse cosines and BM25 scores: divide each list by its maximum and add the two with weights.

    Args:
        cosines: Cosine of every candidate, by id; those below zero count as zero.
        words: BM25 score of the candidates that share words with the query; other candidates count as zero.
        weight: Weight of the cosines, from 0 to 1; the weight of BM25 is one minus this.

    Returns:
        Scores from 0 to 1; best first, ties by id.
    """
    max_cosine = max((cosine for cosine in cosines.values() if cosine > 0), default=1.0)
    max_score = max((score for score in words.values() if score > 0), default=1.0)
    return _sort_scores(
        {
            item: round(
                weight * (max(cosines.get(item, 0.0), 0.0) / max_cosine)
                + (1 - weight) * (words.get(item, 0.0) / max_score),
                _DIGITS,
            )
            for item in {**cosines, **words}
        }
    )


def add_headings(scores: Mapping[str, float], shares: Mapping[str, float]) -> Scores:
    """Add to the score of each passage the share of its heading's words that the query has.

    Passages under a heading that has all words of the query thus come first.

    Args:
        scores: Scores from 0 to 1, by id.
        shares: :func:`~climassay.corpus.relevance.heading_share` of the passages whose headings have all words of the
            query, by id.

    Returns:
        Scores from 0 to 2; best first, ties by id.
    """
    return _sort_scores({item: round(score + shares.get(item, 0.0), _DIGITS) for item, score in scores.items()})


def check_mode(mode: str) -> SearchMode:
    """Return a search mode unchanged if it is valid.

    Raises:
        InputError: The mode does not exist; the message lists the modes.
    """
    for known_mode in SEARCH_MODES:
        if mode == known_mode:
            return known_mode
    raise InputError(f"There is no search mode {mode!r}: use {', '.join(SEARCH_MODES)}.")


@dataclass(frozen=True, slots=True)
class _Vectors:
    """All vectors of a table at one version."""

    version: int
    ids: tuple[str, ...]
    rows: Mapping[str, int]
    matrix: NDArray[np.float32]

    def cosines(self, query: NDArray[np.float32], rows: Sequence[int] | NDArray[np.intp]) -> Scores:
        """Return the cosines of some rows to a query, by passage id."""
        indices = np.asarray(rows, dtype=np.intp)
        return {
            self.ids[row]: cosine for row, cosine in zip(indices, _cosines(self.matrix[indices], query), strict=True)
        }


@dataclass(eq=False)
class Searcher:
    """Searcher of a collection's table; each search sees the additions of all processes."""

    table: Any
    """LanceDB table with the columns of :func:`climassay.corpus.collection_storage.table_schema`."""
    width: int
    """Dimensions of the vectors, which are loaded at first use."""
    dense_weight: float = 0.5
    """Weight of the cosine in hybrid search, from 0 to 1."""
    memory_budget: int = MEMORY_BUDGET
    """Maximum number of bytes of vectors that are cached."""
    index_words: Callable[[], None] = lambda: None
    """Function called before a search for words, to update the index."""
    relevance: RelevanceRule | None = None
    """Relevance rule of the encoder; None if it was not measured, which makes all passages relevant."""
    _vectors: _Vectors | None = None
    _indexed: int = 0
    """Version of the table whose index is up to date."""
    _cached_passages: dict[str, Passage] = field(default_factory=dict)
    _cached_version: int = 0
    """Version of the table that the cached passages and counts belong to."""
    _counts: dict[str, int] = field(default_factory=dict)
    """Number of passages with a word, by word."""

    def search(
        self,
        queries: Sequence[str],
        encoder: Callable[[], Encoder],
        *,
        k: int = 8,
        mode: SearchMode = "hybrid",
        min_cosine: Threshold = None,
        where: str | None = None,
    ) -> list[list[Hit]]:
        """Return the hits of each query; see :meth:`climassay.corpus.collection.Collection.search_many`.

        ``encoder`` is called only if vectors are needed, so that a search by words loads no model; ``where`` is an SQL
        condition on the table's columns.
        """
        _check_arguments(queries, k, mode, min_cosine)
        if not queries:
            return []
        depth = max(CANDIDATES, 2 * k)
        version = self.table.version
        if mode != "dense" and version != self._indexed:
            ensure_text_index(self.table)
            self.index_words()
            version = self._indexed = self.table.version
        if min_cosine == "measured" and (mode == "bm25" or self.relevance is None):
            min_cosine = None
        vectors, loaded = None, None
        if mode != "bm25" or min_cosine is not None:
            vectors, loaded = encoder().encode(queries, role="query"), self._load_vectors(version)
        results: list[tuple[Scores, Scores]] = []
        for index, query in enumerate(queries):
            words = self._search_words(query, depth, where) if mode != "dense" else {}
            heading_shares = self._search_headings(query, depth, where, version) if mode == "hybrid" else {}
            other_ids = {**words, **heading_shares}
            dense, cosines = (
                ({}, {}) if vectors is None else self._compute_cosines(vectors[index], loaded, depth, other_ids, where)
            )
            match mode:
                case "dense":
                    scores = dense
                case "bm25":
                    scores = words
                case "rrf":
                    scores = fuse(dense, words)
                case "hybrid":
                    scores = add_headings(weighted_sum(cosines, words, self.dense_weight), heading_shares)
            if min_cosine == "measured":
                sharing = set(words) if mode != "dense" else set(scores)
                scores = self._select_relevant(query, scores, cosines, heading_shares, sharing, k, version)
            elif min_cosine is not None:
                scores = {item: score for item, score in scores.items() if cosines.get(item, -1.0) >= min_cosine}
            results.append((_top_scores(scores, k), cosines))
        return self._build_hits(results, version)

    def _select_relevant(
        self,
        query: str,
        scores: Scores,
        cosines: Scores,
        heading_shares: Scores,
        candidates_with_words: set[str],
        k: int,
        version: int,
    ) -> Scores:
        """Return the best ``k`` passages that are relevant to a query; see :mod:`climassay.corpus.relevance`.

        Args:
            query: The query.
            scores: Scores of the candidates, best first.
            cosines: Cosines of the candidates.
            heading_shares: Passages under a heading with all words of the query.
            candidates_with_words: Ids of passages that may have some of the words.
            k: Number of hits.
            version: Version of the table.
        """
        assert self.relevance is not None
        words = QueryWords(query)
        words_suffice = words.decide and words.weigh(
            lambda word: self._count_passages_with(word, version), self.table.count_rows()
        )
        # A word that no passage has tells more than a middling cosine.
        is_word_missing = words.decide and not words_suffice
        min_cosine = self.relevance.min_cosine_short if is_word_missing else self.relevance.min_cosine_of(query)
        relevant_ids = {item for item in scores if cosines.get(item, -1.0) >= min_cosine or item in heading_shares}
        if not words_suffice:
            return {item: score for item, score in scores.items() if item in relevant_ids}
        results: Scores = {}
        items, size = list(scores), max(k, _MIN_BATCH)
        for start in range(0, len(items), size):
            batch = items[start : start + size]
            passages = self._load_passages(candidates_with_words.intersection(batch) - relevant_ids, version)
            results |= {
                item: scores[item]
                for item in batch
                if item in relevant_ids or (item in passages and words.are_in(passages[item]))
            }
            if len(results) >= k:
                break
        return results

    def _count_passages_with(self, word: str, version: int) -> int:
        """Return the number of passages with a word, at most :data:`MAX_COUNTED`."""
        self._evict_outdated(version)
        if word not in self._counts:
            self._counts[word] = self.table.search_words(word, None, MAX_COUNTED).num_rows
        return self._counts[word]

    def _compute_cosines(
        self,
        query: NDArray[np.float32],
        loaded: _Vectors | None,
        depth: int,
        other_ids: Iterable[str],
        where: str | None,
    ) -> tuple[Scores, Scores]:
        """Return the ``depth`` passages with the highest cosine; and the cosines of these and of ``other_ids``."""
        if loaded is None:
            dense = self._search_dense_on_disk(query, depth, where)
            return dense, dense | self._cosines_on_disk(query, [item for item in other_ids if item not in dense])
        rows = None if where is None else self._select_rows(where, loaded)
        dense = _top_scores(
            _sort_scores(loaded.cosines(query, _rows_near_top(loaded.matrix, query, depth, rows))), depth
        )
        other_cosines = loaded.cosines(query, [loaded.rows[item] for item in other_ids if item in loaded.rows])
        # What another process has stored since the vectors were read.
        new = self._cosines_on_disk(query, [item for item in other_ids if item not in loaded.rows])
        return dense, dense | other_cosines | new

    def _select_rows(self, where: str, loaded: _Vectors) -> NDArray[np.intp]:
        """Return the rows of the loaded vectors that meet an SQL condition."""
        table = self.table.search().where(where).select(["id"]).limit(None).to_arrow()
        rows = (loaded.rows.get(item) for item in table["id"].to_pylist())
        return np.array(sorted(row for row in rows if row is not None), dtype=np.intp)

    def _search_dense_on_disk(self, query: NDArray[np.float32], depth: int, where: str | None) -> Scores:
        # Twice the depth, since LanceDB orders ties at the end of the list differently.
        result = (
            self.table.search(query, vector_column_name="vector")
            .distance_type("dot")
            .select(["id", "vector", "_distance"])
        )
        if where is not None:
            result = result.where(where, prefilter=True)
        rows = result.limit(2 * depth).to_arrow()
        return _top_scores(_sort_scores(self._cosines_by_id(rows, query)), depth)

    def _search_words(self, query: str, depth: int, where: str | None) -> Scores:
        """Return the ``depth`` passages with the highest BM25 score; passages outside the index are scanned."""
        rows = self.table.search_words(query, where, 2 * depth).to_pylist()
        return _top_scores(_sort_scores({row["id"]: round(row["_score"], _DIGITS) for row in rows}), depth)

    def _search_headings(self, query: str, depth: int, where: str | None, version: int) -> Scores:
        """Return :func:`heading_share` of the passages under a heading with all words of a query."""
        words = " ".join(QueryWords(query).spelled.values())
        if not words:
            return {}
        rows = self.table.search_words(words, where, 2 * depth, headings=True).to_pylist()
        passages = self._load_passages({row["id"] for row in rows}, version)
        shares = {item: heading_share(query, passage.headings) for item, passage in passages.items()}
        return {item: share for item, share in shares.items() if share > 0}

    def _cosines_on_disk(self, query: NDArray[np.float32], ids: Sequence[str]) -> Scores:
        if not ids:
            return {}
        return self._cosines_by_id(self._fetch_rows(ids, ["id", "vector"]), query)

    def _cosines_by_id(self, rows: Any, query: NDArray[np.float32]) -> Scores:
        products = _cosines(to_matrix(rows["vector"], self.width), query)
        return dict(zip(rows["id"].to_pylist(), products, strict=True))

    def _build_hits(self, results: Sequence[tuple[Scores, Scores]], version: int) -> list[list[Hit]]:
        """Build hits, reading the passages of all queries from the table at once."""
        passages = self._load_passages({item for scores, _ in results for item in scores}, version)
        hits_by_query = []
        for scores, cosines in results:
            ids = [item for item in scores if item in passages]
            hits_by_query.append(
                [Hit(passages[item], rank, scores[item], cosines.get(item)) for rank, item in enumerate(ids, start=1)]
            )
        return hits_by_query

    def _evict_outdated(self, version: int) -> None:
        """Empty the caches if the table has changed."""
        if version != self._cached_version:
            self._cached_version, self._cached_passages, self._counts = version, {}, {}

    def _load_passages(self, ids: set[str], version: int) -> dict[str, Passage]:
        self._evict_outdated(version)
        if len(self._cached_passages) + len(ids) > MAX_CACHED_PASSAGES:
            self._cached_passages = {}
        cached = self._cached_passages
        missing = [item for item in sorted(ids) if item not in cached]
        if missing:
            cached |= {
                row["id"]: to_passage(row) for row in self._fetch_rows(missing, passage_columns(self.table)).to_pylist()
            }
        return {item: cached[item] for item in ids if item in cached}

    def _fetch_rows(self, ids: Sequence[str], columns: list[str]) -> Any:
        listed = ", ".join(quoted(item) for item in ids) or "''"
        return self.table.search().where(f"id IN ({listed})").select(columns).limit(None).to_arrow()

    def _load_vectors(self, version: int) -> _Vectors | None:
        """Return all vectors, reloaded if the table has changed; None if they exceed the memory budget."""
        if self._vectors is None or self._vectors.version != version:
            if self.table.count_rows() * self.width * 4 > self.memory_budget:
                self._vectors = None
                return None
            rows = self.table.search().select(["id", "vector"]).limit(None).to_arrow()
            ids = tuple(rows["id"].to_pylist())
            matrix = to_matrix(rows["vector"], self.width)
            self._vectors = _Vectors(version, ids, {item: row for row, item in enumerate(ids)}, matrix)
        return self._vectors


@cache
def _blas_controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Limit linear algebra to one thread.

    A second thread gains little for products this small, and its spinning takes time from LanceDB and the encoder: half
    of the 95th percentile of a search, as measured.
    """
    limit: AbstractContextManager[Any] = _blas_controller().limit(limits=1, user_api="blas")
    return limit


def _check_arguments(queries: Sequence[str], k: int, mode: str, min_cosine: Threshold) -> None:
    if isinstance(queries, str):
        raise InputError("search_many takes several queries; use search for one.")
    if any(not query.strip() for query in queries):
        raise InputError("The query is empty: say what to look for.")
    if not 1 <= k <= MAX_K:
        raise InputError(f"{k} hits cannot be requested: use 1 to {MAX_K}.")
    check_mode(mode)
    if min_cosine not in (None, "measured") and not (isinstance(min_cosine, (int, float)) and -1 <= min_cosine <= 1):
        raise InputError(f"A cosine cannot be {min_cosine}: use a threshold from -1 to 1, or 'measured'.")


def _cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> list[float]:
    """Return cosines of unit vectors to a query, rounded.

    Each row is summed by itself, so that equal vectors have equal cosines; the last digits of a matrix product depend
    on the row's index and on the processor.
    """
    products: NDArray[np.float64] = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return [round(cosine, _DIGITS) for cosine in products.tolist()]


def _rows_near_top(
    matrix: NDArray[np.float32], query: NDArray[np.float32], depth: int, allowed: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    """Return the rows with the ``depth`` highest cosines, and all rows within rounding error of them.

    ``rows`` restricts the rows that are compared; None compares all.
    """
    with one_thread():
        products = matrix @ query
    rows = np.arange(len(products)) if allowed is None else allowed
    candidates = products[rows]
    if len(candidates) <= depth:
        return rows
    threshold = np.partition(candidates, -depth)[-depth]
    near_top: NDArray[np.intp] = rows[candidates >= threshold - _ROUNDING]
    return near_top


def _sort_scores(scores: Mapping[str, float]) -> Scores:
    return dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))


def _top_scores(scores: Scores, count: int) -> Scores:
    return dict(list(scores.items())[:count])
