"""Search the passages of a collection by vectors, by words, and by both."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.collection_storage import PASSAGE_COLUMNS, ensure_text_index, quoted, to_matrix, to_passage
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.relevance import QueryWords, RelevanceRule, Threshold, heading_share
from climassay.errors import InputError
from climassay.models.contract import Encoder

DENSE_WEIGHT: Mapping[str, float] = MappingProxyType({"local:minilm": 0.3})
"""Weight of the cosine in hybrid search, by name of the encoder.

Measured for the bundled encoder (``benchmarks/search.py``): from 0.1 to 0.4 the mean reciprocal rank of questions in
people's own words is flat; more than that gives up what BM25 finds.
"""

DEFAULT_DENSE_WEIGHT = 0.5
"""For encoders that were not measured."""


SearchMode = Literal["hybrid", "dense", "bm25", "rrf"]
SEARCH_MODES: tuple[SearchMode, ...] = get_args(SearchMode)

RRF_CONSTANT = 60
"""The k of reciprocal rank fusion, as in its paper."""
CANDIDATES = 50
"""Length of the dense and BM25 lists that are fused; longer where more hits are asked for."""
MEMORY_BUDGET = 1 << 30
"""Maximum number of bytes of vectors that a searcher keeps in memory."""
KEPT_PASSAGES = 4096
"""Passages that were found and are kept, since many searches find the same ones."""
LARGEST_K = 1000
_READ_TOGETHER = 16
"""Minimum number of passages whose words are looked at together."""
MAX_COUNTED = 10_000
"""Passages with a word up to which they are counted; all words that more have weigh next to nothing."""
_DIGITS = 6
"""Scores are compared to so many digits, so that the last bits of a sum decide no order."""
_ROUNDING = 1e-4
"""More than a product in single precision can be off."""

Scores = dict[str, float]
"""Score by passage id, best first."""


def fuse(*rankings: Iterable[str], constant: int = RRF_CONSTANT) -> Scores:
    """Reciprocal rank fusion.

    Args:
        rankings: Ids, best first.
        constant: Added to every rank; the larger, the less the first ranks count.

    Returns:
        Sum over rankings of 1 / (constant + rank), ranks from 1; best first, equals by id.
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (constant + rank)
    return _ordered(scores)


def weighted_sum(cosines: Mapping[str, float], words: Mapping[str, float], weight: float) -> Scores:
    """Fusion of scores: each list is divided by its greatest score, so that its best has 1, and the two are added.

    Args:
        cosines: Cosine of every candidate, by id; those below zero count as zero.
        words: BM25 score of the candidates that share words with the query; the others count as zero.
        weight: Of the cosines, from 0 to 1; BM25 has the rest.

    Returns:
        Scores from 0 to 1; best first, equals by id.
    """
    nearest = max((cosine for cosine in cosines.values() if cosine > 0), default=1.0)
    likest = max((score for score in words.values() if score > 0), default=1.0)
    return _ordered(
        {
            item: round(
                weight * (max(cosines.get(item, 0.0), 0.0) / nearest) + (1 - weight) * (words.get(item, 0.0) / likest),
                _DIGITS,
            )
            for item in {**cosines, **words}
        }
    )


def add_headings(scores: Mapping[str, float], shares: Mapping[str, float]) -> Scores:
    """Add to the score of each passage the share of its heading that the query is, so that titled passages come first.

    Args:
        scores: Scores from 0 to 1, by id.
        shares: :func:`~climassay.corpus.relevance.heading_share` of the passages whose headings have all words of the
            query, by id.

    Returns:
        Scores from 0 to 2; best first, equals by id.
    """
    return _ordered({item: round(score + shares.get(item, 0.0), _DIGITS) for item, score in scores.items()})


def check_mode(mode: str) -> SearchMode:
    """Return a search mode when it is one.

    Raises:
        InputError: It is none; the message names them.
    """
    for known in SEARCH_MODES:
        if mode == known:
            return known
    raise InputError(f"There is no search mode {mode!r}: use {', '.join(SEARCH_MODES)}.")


@dataclass(frozen=True, slots=True)
class _Vectors:
    """All vectors of a table at one version of it."""

    version: int
    ids: tuple[str, ...]
    rows: Mapping[str, int]
    matrix: NDArray[np.float32]

    def cosines(self, query: NDArray[np.float32], rows: Sequence[int] | NDArray[np.intp]) -> Scores:
        """Cosines of some rows to a query, by id."""
        places = np.asarray(rows, dtype=np.intp)
        return {self.ids[row]: cosine for row, cosine in zip(places, _cosines(self.matrix[places], query), strict=True)}


@dataclass(eq=False)
class Searcher:
    """Searches the table of a collection; what other processes add to it is found by the next search."""

    table: Any
    """A LanceDB table with the columns of :func:`climassay.corpus.collection_storage.table_schema`."""
    width: int
    """Dimensions of its vectors, which are loaded when first needed."""
    dense_weight: float = 0.5
    """Weight of the cosine in hybrid search, from 0 to 1."""
    memory_budget: int = MEMORY_BUDGET
    """Bytes of vectors up to which they are kept in memory."""
    index_words: Callable[[], None] = lambda: None
    """Called before a search for words, to bring the index up to date."""
    relevance: RelevanceRule | None = None
    """The rule measured for the encoder; None if it was not measured, so that all passages are taken as relevant."""
    _vectors: _Vectors | None = None
    _indexed: int = 0
    """The version of the table that is known to be indexed."""
    _known: dict[str, Passage] = field(default_factory=dict)
    _passages_of: int = 0
    """The version of the table that the known passages and counts are of."""
    _counts: dict[str, int] = field(default_factory=dict)
    """Number of passages that have a word, by the word."""

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
        """Hits of every query; see :meth:`climassay.corpus.collection.Collection.search_many`.

        ``encoder`` is called only when vectors are needed, so that a search by words loads no model; ``where`` is a
        condition on the columns of the table.
        """
        _check(queries, k, mode, min_cosine)
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
        for number, query in enumerate(queries):
            words = self._by_words(query, depth, where) if mode != "dense" else {}
            titled = self._by_headings(query, depth, where, version) if mode == "hybrid" else {}
            compared = {**words, **titled}
            near, cosines = (
                ({}, {}) if vectors is None else self._compare(vectors[number], loaded, depth, compared, where)
            )
            match mode:
                case "dense":
                    scores = near
                case "bm25":
                    scores = words
                case "rrf":
                    scores = fuse(near, words)
                case "hybrid":
                    scores = add_headings(weighted_sum(cosines, words, self.dense_weight), titled)
            if min_cosine == "measured":
                sharing = set(words) if mode != "dense" else set(scores)
                scores = self._relevant(query, scores, cosines, titled, sharing, k, version)
            elif min_cosine is not None:
                scores = {item: score for item, score in scores.items() if cosines.get(item, -1.0) >= min_cosine}
            results.append((_first(scores, k), cosines))
        return self._hits(results, version)

    def _relevant(
        self, query: str, scores: Scores, cosines: Scores, titled: Scores, sharing: set[str], k: int, version: int
    ) -> Scores:
        """Return the best ``k`` passages that are relevant to a query; see :mod:`climassay.corpus.relevance`.

        ``titled`` are those under a heading that has all its words, ``sharing`` those that may have some of them.
        """
        assert self.relevance is not None
        words = QueryWords(query)
        possible = words.decide and words.weigh(lambda word: self._count(word, version), self.table.count_rows())
        # A word that no passage has tells more than a middling cosine.
        missing = words.decide and not possible
        least = self.relevance.min_cosine_short if missing else self.relevance.min_cosine_of(query)
        near = {item for item in scores if cosines.get(item, -1.0) >= least or item in titled}
        if not possible:
            return {item: score for item, score in scores.items() if item in near}
        results: Scores = {}
        items, size = list(scores), max(k, _READ_TOGETHER)
        for start in range(0, len(items), size):
            batch = items[start : start + size]
            passages = self._passages(sharing.intersection(batch) - near, version)
            results |= {
                item: scores[item]
                for item in batch
                if item in near or (item in passages and words.are_in(passages[item]))
            }
            if len(results) >= k:
                break
        return results

    def _count(self, word: str, version: int) -> int:
        """Number of passages that have a word, up to :data:`MAX_COUNTED`."""
        self._forget(version)
        if word not in self._counts:
            self._counts[word] = self.table.search_words(word, None, MAX_COUNTED).num_rows
        return self._counts[word]

    def _compare(
        self,
        query: NDArray[np.float32],
        loaded: _Vectors | None,
        depth: int,
        others: Iterable[str],
        where: str | None,
    ) -> tuple[Scores, Scores]:
        """The ``depth`` passages of greatest cosine to a query; and the cosines of these and of ``others``."""
        if loaded is None:
            near = self._dense_on_disk(query, depth, where)
            return near, near | self._cosines_on_disk(query, [item for item in others if item not in near])
        among = None if where is None else self._rows_of(where, loaded)
        near = _first(_ordered(loaded.cosines(query, _within_reach(loaded.matrix, query, depth, among))), depth)
        known = loaded.cosines(query, [loaded.rows[item] for item in others if item in loaded.rows])
        # What another process has stored since the vectors were read.
        late = self._cosines_on_disk(query, [item for item in others if item not in loaded.rows])
        return near, near | known | late

    def _rows_of(self, where: str, loaded: _Vectors) -> NDArray[np.intp]:
        """Rows of the vectors that meet a condition, as far as they were read."""
        result = self.table.search().where(where).select(["id"]).limit(None).to_arrow()
        rows = (loaded.rows.get(item) for item in result["id"].to_pylist())
        return np.array(sorted(row for row in rows if row is not None), dtype=np.intp)

    def _dense_on_disk(self, query: NDArray[np.float32], depth: int, where: str | None) -> Scores:
        # Twice the depth: among equals at the end of the list LanceDB's order is not ours.
        result = (
            self.table.search(query, vector_column_name="vector")
            .distance_type("dot")
            .select(["id", "vector", "_distance"])
        )
        if where is not None:
            result = result.where(where, prefilter=True)
        rows = result.limit(2 * depth).to_arrow()
        return _first(_ordered(self._cosines_of(rows, query)), depth)

    def _by_words(self, query: str, depth: int, where: str | None) -> Scores:
        """The ``depth`` passages of greatest BM25 score; passages that are not in the index yet are scanned."""
        rows = self.table.search_words(query, where, 2 * depth).to_pylist()
        return _first(_ordered({row["id"]: round(row["_score"], _DIGITS) for row in rows}), depth)

    def _by_headings(self, query: str, depth: int, where: str | None, version: int) -> Scores:
        """Passages under a heading that has all words of a query, with :func:`heading_share`."""
        words = " ".join(QueryWords(query).spelled.values())
        if not words:
            return {}
        rows = self.table.search_words(words, where, 2 * depth, headings=True).to_pylist()
        passages = self._passages({row["id"] for row in rows}, version)
        shares = {item: heading_share(query, passage.headings) for item, passage in passages.items()}
        return {item: share for item, share in shares.items() if share > 0}

    def _cosines_on_disk(self, query: NDArray[np.float32], ids: Sequence[str]) -> Scores:
        if not ids:
            return {}
        return self._cosines_of(self._rows(ids, ["id", "vector"]), query)

    def _cosines_of(self, rows: Any, query: NDArray[np.float32]) -> Scores:
        products = _cosines(to_matrix(rows["vector"], self.width), query)
        return dict(zip(rows["id"].to_pylist(), products, strict=True))

    def _hits(self, found: Sequence[tuple[Scores, Scores]], version: int) -> list[list[Hit]]:
        """Hits with their passages, which are read from the table once for all queries."""
        passages = self._passages({item for scores, _ in found for item in scores}, version)
        results = []
        for scores, cosines in found:
            there = [item for item in scores if item in passages]
            results.append(
                [Hit(passages[item], rank, scores[item], cosines.get(item)) for rank, item in enumerate(there, start=1)]
            )
        return results

    def _forget(self, version: int) -> None:
        """Drop passages and counts of another version of the table."""
        if version != self._passages_of:
            self._passages_of, self._known, self._counts = version, {}, {}

    def _passages(self, wanted: set[str], version: int) -> dict[str, Passage]:
        self._forget(version)
        if len(self._known) + len(wanted) > KEPT_PASSAGES:
            self._known = {}
        known = self._known
        missing = [item for item in sorted(wanted) if item not in known]
        if missing:
            known |= {row["id"]: to_passage(row) for row in self._rows(missing, list(PASSAGE_COLUMNS)).to_pylist()}
        return {item: known[item] for item in wanted if item in known}

    def _rows(self, ids: Sequence[str], columns: list[str]) -> Any:
        listed = ", ".join(quoted(item) for item in ids) or "''"
        return self.table.search().where(f"id IN ({listed})").select(columns).limit(None).to_arrow()

    def _load_vectors(self, version: int) -> _Vectors | None:
        """All vectors, read again when the table has changed; None when they are too many for memory."""
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
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Keep the linear algebra to one thread.

    A second one gains little on a product this small, and the time for which it then waits for more is taken from
    LanceDB and the encoder: measured, half of a search's 95th percentile.
    """
    limit: AbstractContextManager[Any] = _blas().limit(limits=1, user_api="blas")
    return limit


def _check(queries: Sequence[str], k: int, mode: str, min_cosine: Threshold) -> None:
    if isinstance(queries, str):
        raise InputError("search_many takes several queries; use search for one.")
    if any(not query.strip() for query in queries):
        raise InputError("The query is empty: say what to look for.")
    if not 1 <= k <= LARGEST_K:
        raise InputError(f"{k} hits cannot be requested: use 1 to {LARGEST_K}.")
    check_mode(mode)
    if min_cosine not in (None, "measured") and not (isinstance(min_cosine, (int, float)) and -1 <= min_cosine <= 1):
        raise InputError(f"A cosine cannot be {min_cosine}: use a threshold from -1 to 1, or 'measured'.")


def _cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> list[float]:
    """Cosines of unit vectors to a query, to the digits that count.

    Each is added up by itself, so that equal vectors have equal cosines. In a product of matrices the last digits hang
    on the row's place and on the processor.
    """
    products: NDArray[np.float64] = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return [round(cosine, _DIGITS) for cosine in products.tolist()]


def _within_reach(
    matrix: NDArray[np.float32], query: NDArray[np.float32], depth: int, among: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    """Rows that hold the ``depth`` greatest cosines, of all rows or of some: with them all that rounding may hide."""
    with one_thread():
        products = matrix @ query
    rows = np.arange(len(products)) if among is None else among
    looked_at = products[rows]
    if len(looked_at) <= depth:
        return rows
    least = np.partition(looked_at, -depth)[-depth]
    within: NDArray[np.intp] = rows[looked_at >= least - _ROUNDING]
    return within


def _ordered(scores: Mapping[str, float]) -> Scores:
    return dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))


def _first(scores: Scores, count: int) -> Scores:
    return dict(list(scores.items())[:count])
