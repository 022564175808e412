"""Search the passages of a collection by vectors, by words, or by both."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.collection_storage import ensure_text_index, passage_columns, quote_sql, to_matrix, to_passage
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.relevance import QueryWords, RelevanceRule, Threshold, compute_heading_share
from climassay.errors import InputError
from climassay.models.contract import Encoder
from climassay.reporting.marking import STOP_WORDS

DENSE_WEIGHT: Mapping[str, float] = MappingProxyType({"local:minilm": 0.3})
"""Weight of the cosine in hybrid search, by encoder name.

For the bundled encoder, the mean reciprocal rank on questions in everyday words is the same for weights of 0.1 to 0.4,
and lower for larger weights (``benchmarks/search.py``).
"""

DEFAULT_DENSE_WEIGHT = 0.5
"""Weight of the cosine for encoders without a measured weight."""


SearchMode = Literal["hybrid", "dense", "bm25", "rrf"]
SEARCH_MODES: tuple[SearchMode, ...] = get_args(SearchMode)

RRF_CONSTANT = 60
"""Constant k of reciprocal rank fusion, as in Cormack et al. (2009)."""
CANDIDATES = 50
"""Minimum number of candidates that each of the two fused rankings contributes. If twice the number of hits is larger,
it is used instead."""
MEMORY_BUDGET = 1 << 30
"""Maximum size of the vectors that a searcher keeps in memory, in bytes."""
MAX_CACHED_PASSAGES = 4096
"""Maximum number of passages that a searcher keeps in memory between searches."""
MAX_K = 1000
_MIN_BATCH = 16
"""Minimum number of passages that are loaded at a time to compare their words with the query."""
MAX_COUNTED_PASSAGES = 10_000
"""Passages that contain a word are counted up to this number; words in more passages have almost no weight."""
_DECIMAL_PLACES = 6
"""Number of decimal places to which scores are rounded, so that rounding errors do not change the ranking."""
_MAX_ROUNDING_ERROR = 1e-4
"""Upper bound of the error of a single-precision dot product of unit vectors."""

_COMPOUND = re.compile(r"[^\W_]+(?:[-\u2010-\u2013.'\u2019][^\W_]+)*")
"""Pattern of a word, a number or a hyphenated compound in a query."""
_PLURALS = (("", "s"), ("is", "es"), ("on", "a"), ("um", "a"), ("us", "i"), ("ix", "ices"), ("ex", "ices"))
"""Endings of singular and plural that English stemming does not unify, such as NDC and NDCs, or crisis and crises."""
_UMLAUT_PLURALS = (("", ""), ("", "e"), ("", "er"), ("", "en"), ("", "ern"))
"""Endings of singular and plural of German nouns whose plural has an umlaut, such as Wald and Wälder."""
_GERMAN_PLURALS = (("", "e"), ("", "n"), ("", "en"), ("", "er"), ("o", "en"), ("um", "en"))
_MUTATION = str.maketrans("aouAOU", "äöüÄÖÜ")
_REVERSE_MUTATION = {new: old for old, new in _MUTATION.items()}
_LAST_VOWEL = re.compile(r"(?:au|[aou])(?=[^aouäöü\W\d_]*\Z)", re.IGNORECASE)
_LAST_UMLAUT = re.compile(r"([äöü])(?=u?[^aouäöü\W\d_]*\Z)", re.IGNORECASE)
_ACCENTED_LETTERS = dict(zip("aeiouc", "äéíöüç", strict=True))
_MAX_LETTERS = 40
_MIN_STEM_LETTERS = 3
"""Minimum number of letters before an ending."""
_MIN_GERMAN_BASE = 5
"""Minimum number of letters before a German ending without an umlaut; shorter bases would match English words."""

Scores = dict[str, float]
"""Scores by passage id, highest first."""


def fuse_rankings(*rankings: Iterable[str]) -> Scores:
    """Fuse rankings of ids, each best first, by reciprocal rank fusion.

    Returns:
        Sum of 1 / (:data:`RRF_CONSTANT` + rank) over the rankings, by id, highest first. Ranks start at 1; ties are
        ordered by id.
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, passage_id in enumerate(ranking, start=1):
            scores[passage_id] = scores.get(passage_id, 0.0) + 1.0 / (RRF_CONSTANT + rank)
    return _sort_scores(scores)


def add_weighted_scores(cosines: Mapping[str, float], bm25_scores: Mapping[str, float], weight: float) -> Scores:
    """Fuse cosines and BM25 scores: divide each by its maximum, and return the weighted sums.

    Args:
        cosines: Cosine of every candidate, by id; negative cosines count as zero.
        bm25_scores: BM25 score of the candidates that share words with the query, by id; others count as zero.
        weight: Weight of the cosines, from 0 to 1; BM25 scores have the weight ``1 - weight``.

    Returns:
        Scores from 0 to 1 by id, highest first; ties are ordered by id.
    """
    max_cosine = max((cosine for cosine in cosines.values() if cosine > 0), default=1.0)
    max_score = max((score for score in bm25_scores.values() if score > 0), default=1.0)
    return _sort_scores(
        {
            passage_id: round(
                weight * (max(cosines.get(passage_id, 0.0), 0.0) / max_cosine)
                + (1 - weight) * (bm25_scores.get(passage_id, 0.0) / max_score),
                _DECIMAL_PLACES,
            )
            for passage_id in {**cosines, **bm25_scores}
        }
    )


def add_heading_shares(scores: Mapping[str, float], shares: Mapping[str, float]) -> Scores:
    """Add heading shares to scores, so that passages under a heading that contains all words of the query come first.

    Args:
        scores: Scores from 0 to 1, by id.
        shares: Result of :func:`~climassay.corpus.relevance.compute_heading_share` for each passage under a heading
            that contains all words of the query, by id.

    Returns:
        Scores from 0 to 2 by id, highest first; ties are ordered by id.
    """
    return _sort_scores(
        {
            passage_id: round(score + shares.get(passage_id, 0.0), _DECIMAL_PLACES)
            for passage_id, score in scores.items()
        }
    )


def respell(query: str, has_word: Callable[[str], bool]) -> str:
    """Replace words that occur in no passage by spellings that occur; return the query unchanged if there are none.

    Words are joined or divided (``bio-energy``, ``PM 2.5``, ``CFC11``), put into the English or German plural or
    singular (``NDC``, ``Wald``), or accented (``Erwaermung``, ``rechauffement``, since the full-text index removes
    accents only after stemming).

    Args:
        query: Words to search for.
        has_word: Function that returns whether a passage contains any word of a text.
    """
    has_word = cache(has_word)  # a query may repeat a word

    def occurs(text: str) -> bool:
        words = [word for word in re.findall(r"[^\W_]+", text) if word.lower() not in STOP_WORDS]
        return all(map(has_word, words))

    tokens = _COMPOUND.findall(query)
    is_known = [occurs(token) for token in tokens]
    spellings = [() if is_known[index] else tuple(_vary_spelling(token)) for index, token in enumerate(tokens)]
    pairs = [
        "" if all(is_known[index : index + 2]) else "".join(tokens[index : index + 2])
        for index in range(len(tokens) - 1)
    ]
    # One search for all spellings: most missing words have none that occurs.
    if all(is_known) or not has_word(" ".join([*chain(*spellings), *pairs])):
        return query
    results: list[str] = []
    index = 0
    while index < len(tokens):
        if index < len(pairs) and pairs[index] and occurs(pairs[index]):
            results.append(pairs[index])
            index += 2
            continue
        results.append(next(filter(occurs, spellings[index]), tokens[index]))
        index += 1
    return query if results == tokens else " ".join(results)


def _vary_spelling(word: str) -> Iterator[str]:
    """Yield other spellings of a word or compound, which need not exist; none for longer texts than a word."""
    if len(word) > _MAX_LETTERS:
        return
    if (joined_word := re.sub("[-\u2010-\u2013]", "", word)) != word:
        yield joined_word
    if (divided_word := re.sub(r"(?<=[^\W\d_])(?=\d)", " ", word)) != word:
        yield divided_word
    yield from _exchange_endings(word, _PLURALS, _MIN_STEM_LETTERS)
    yield word.replace("ss", "ß")
    for index, letter in enumerate(word):
        if letter in _ACCENTED_LETTERS:
            yield word[:index] + _ACCENTED_LETTERS[letter] + word[index + 1 :]
    umlaut_word = re.sub("([aouAOU])e", lambda match: match[1].translate(_MUTATION), word)
    if umlaut_word != word:
        yield umlaut_word
    yield from _exchange_endings(umlaut_word, _GERMAN_PLURALS, _MIN_GERMAN_BASE)
    plain_word = _LAST_UMLAUT.sub(lambda match: match[1].translate(_REVERSE_MUTATION), umlaut_word)
    if plain_word != umlaut_word:
        yield plain_word
        yield from _exchange_endings(plain_word, _UMLAUT_PLURALS, _MIN_STEM_LETTERS)
    elif len(word) > _MIN_STEM_LETTERS:
        mutated_word = _LAST_VOWEL.sub(lambda match: match[0][0].translate(_MUTATION) + match[0][1:], word)
        yield from (mutated_word + ending for ending in ("", "e", "er"))
    for index in range(_MIN_STEM_LETTERS, len(word) - _MIN_STEM_LETTERS + 1):
        if word.isalpha():
            yield f"{word[:index]} {word[index:]}"


def _exchange_endings(word: str, pairs: Sequence[tuple[str, str]], min_base: int) -> Iterator[str]:
    """Yield a word with one ending of a pair in place of the other, in both directions."""
    for endings in pairs:
        for ending, other_ending in (endings, endings[::-1]):
            base = word.removesuffix(ending)
            if word.endswith(ending) and len(base) >= min_base and base.isalpha():
                yield base + other_ending


def check_mode(mode: str) -> SearchMode:
    """Check a search mode and return it unchanged.

    Raises:
        InputError: The mode does not exist; the message lists the modes.
    """
    for known_mode in SEARCH_MODES:
        if mode == known_mode:
            return known_mode
    raise InputError(f"There is no search mode {mode!r}: use {', '.join(SEARCH_MODES)}.")


@dataclass(frozen=True, slots=True)
class _Vectors:
    """All vectors of a table in one of its versions."""

    version: int
    ids: tuple[str, ...]
    rows: Mapping[str, int]
    matrix: NDArray[np.float32]

    def cosines(self, query: NDArray[np.float32], rows: Sequence[int] | NDArray[np.intp]) -> Scores:
        """Return the cosines between a query and the given rows, by passage id."""
        indices = np.asarray(rows, dtype=np.intp)
        return {
            self.ids[row]: cosine
            for row, cosine in zip(indices, _compute_rounded_cosines(self.matrix[indices], query), strict=True)
        }


@dataclass(eq=False)
class Searcher:
    """Search in a collection's table; each search includes the additions of all processes."""

    table: Any
    """LanceDB table with the columns of :func:`climassay.corpus.collection_storage.table_schema`."""
    width: int
    """Dimension of the vectors, which are loaded when first needed."""
    dense_weight: float = 0.5
    """Weight of the cosine in hybrid search, from 0 to 1."""
    memory_budget: int = MEMORY_BUDGET
    """Maximum size of the vectors kept in memory, in bytes."""
    index_words: Callable[[], None] = lambda: None
    """Function that updates the full-text index; called before a search for words."""
    relevance: RelevanceRule | None = None
    """Relevance rule of the encoder; if it is None, all passages count as relevant."""
    _vectors: _Vectors | None = None
    _indexed_version: int = 0
    """Version of the table at the last update of its full-text index."""
    _cached_passages: dict[str, Passage] = field(default_factory=dict)
    _cached_version: int = 0
    """Version of the table to which the cached passages and counts belong."""
    _passage_counts: dict[str, int] = field(default_factory=dict)
    """Number of passages that contain a word, by word."""

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

        ``encoder`` is only called if vectors are needed, so that a search by words loads no model. ``where`` is an SQL
        condition on the columns of the table.
        """
        _check_arguments(queries, k, mode, min_cosine)
        if not queries:
            return []
        depth = max(CANDIDATES, 2 * k)
        version = self.table.version
        if mode != "dense" and version != self._indexed_version:
            ensure_text_index(self.table)
            self.index_words()
            version = self._indexed_version = self.table.version
        if min_cosine == "measured" and (mode == "bm25" or self.relevance is None):
            min_cosine = None
        query_vectors, stored_vectors = None, None
        if mode != "bm25" or min_cosine is not None:
            query_vectors, stored_vectors = encoder().encode(queries, role="query"), self._load_vectors(version)
        results: list[tuple[Scores, Scores]] = []
        for index, query in enumerate(queries):
            words = query
            if mode != "dense" and QueryWords(query).is_short:
                words = respell(query, lambda word: self._has_word(word, version))
            bm25_scores = self._search_words(words, depth, where) if mode != "dense" else {}
            heading_shares = self._search_headings(words, depth, where, version) if mode == "hybrid" else {}
            other_ids = {**bm25_scores, **heading_shares}
            dense_scores, cosines = (
                ({}, {})
                if query_vectors is None
                else self._compute_cosines(query_vectors[index], stored_vectors, depth, other_ids, where)
            )
            match mode:
                case "dense":
                    scores = dense_scores
                case "bm25":
                    scores = bm25_scores
                case "rrf":
                    scores = fuse_rankings(dense_scores, bm25_scores)
                case "hybrid":
                    scores = add_heading_shares(
                        add_weighted_scores(cosines, bm25_scores, self.dense_weight), heading_shares
                    )
            if min_cosine == "measured":
                word_candidates = set(bm25_scores) if mode != "dense" else set(scores)
                scores = self._select_relevant(words, scores, cosines, heading_shares, word_candidates, k, version)
            elif min_cosine is not None:
                scores = {
                    passage_id: score
                    for passage_id, score in scores.items()
                    if cosines.get(passage_id, -1.0) >= min_cosine
                }
            results.append((_select_top(scores, k), cosines))
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
        """Return the best ``k`` passages that are relevant to a query; see :mod:`climassay.corpus.relevance`."""
        assert self.relevance is not None
        words = QueryWords(query)
        words_suffice = words.is_short and words.weigh(
            lambda word: self._count_passages_with(word, version), self.table.count_rows()
        )
        # If a word of the query occurs in no passage, a medium cosine is not enough.
        is_word_missing = words.is_short and not words_suffice
        min_cosine = self.relevance.min_cosine_short if is_word_missing else self.relevance.min_cosine_for(query)
        relevant_ids = {
            passage_id
            for passage_id in scores
            if cosines.get(passage_id, -1.0) >= min_cosine or passage_id in heading_shares
        }
        if not words_suffice:
            return {passage_id: score for passage_id, score in scores.items() if passage_id in relevant_ids}
        results: Scores = {}
        ids, size = list(scores), max(k, _MIN_BATCH)
        for start in range(0, len(ids), size):
            batch = ids[start : start + size]
            passages = self._load_passages(candidates_with_words.intersection(batch) - relevant_ids, version)
            results |= {
                passage_id: scores[passage_id]
                for passage_id in batch
                if passage_id in relevant_ids or (passage_id in passages and words.match(passages[passage_id]))
            }
            if len(results) >= k:
                break
        return results

    def _has_word(self, word: str, version: int) -> bool:
        self._evict_outdated(version)
        return bool(self._passage_counts.get(word) or self.table.search_words(word, None, 1).num_rows)

    def _count_passages_with(self, word: str, version: int) -> int:
        """Return the number of passages that contain a word, at most :data:`MAX_COUNTED_PASSAGES`."""
        self._evict_outdated(version)
        counts = self._passage_counts  # another thread may replace the attribute
        if word not in counts:
            counts[word] = self.table.search_words(word, None, MAX_COUNTED_PASSAGES).num_rows
        return counts[word]

    def _compute_cosines(
        self,
        query: NDArray[np.float32],
        stored_vectors: _Vectors | None,
        depth: int,
        other_ids: Iterable[str],
        where: str | None,
    ) -> tuple[Scores, Scores]:
        """Return the ``depth`` passages with the highest cosines, and the cosines of these and of ``other_ids``."""
        if stored_vectors is None:
            top_cosines = self._search_dense_on_disk(query, depth, where)
            return top_cosines, top_cosines | self._compute_cosines_on_disk(
                query, [passage_id for passage_id in other_ids if passage_id not in top_cosines]
            )
        rows = None if where is None else self._select_rows(where, stored_vectors)
        top_cosines = _select_top(
            _sort_scores(stored_vectors.cosines(query, _find_rows_near_top(stored_vectors.matrix, query, depth, rows))),
            depth,
        )
        other_cosines = stored_vectors.cosines(
            query, [stored_vectors.rows[passage_id] for passage_id in other_ids if passage_id in stored_vectors.rows]
        )
        # Passages that another process has stored since the vectors were read.
        new_cosines = self._compute_cosines_on_disk(
            query, [passage_id for passage_id in other_ids if passage_id not in stored_vectors.rows]
        )
        return top_cosines, top_cosines | other_cosines | new_cosines

    def _select_rows(self, where: str, stored_vectors: _Vectors) -> NDArray[np.intp]:
        table = self.table.search().where(where).select(["id"]).limit(None).to_arrow()
        rows = (stored_vectors.rows.get(passage_id) for passage_id in table["id"].to_pylist())
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
        return _select_top(_sort_scores(self._compute_cosines_by_id(rows, query)), depth)

    def _search_words(self, query: str, depth: int, where: str | None) -> Scores:
        """Return the ``depth`` passages with the highest BM25 scores, including passages outside the index."""
        rows = self.table.search_words(query, where, 2 * depth).to_pylist()
        return _select_top(_sort_scores({row["id"]: round(row["_score"], _DECIMAL_PLACES) for row in rows}), depth)

    def _search_headings(self, query: str, depth: int, where: str | None, version: int) -> Scores:
        """Return the heading share of each passage under a heading that contains all words of a query."""
        words = " ".join(QueryWords(query).spelling_by_stem.values())
        if not words:
            return {}
        rows = self.table.search_words(words, where, 2 * depth, headings=True).to_pylist()
        passages = self._load_passages({row["id"] for row in rows}, version)
        shares = {
            passage_id: compute_heading_share(query, passage.headings) for passage_id, passage in passages.items()
        }
        return {passage_id: share for passage_id, share in shares.items() if share > 0}

    def _compute_cosines_on_disk(self, query: NDArray[np.float32], ids: Sequence[str]) -> Scores:
        if not ids:
            return {}
        return self._compute_cosines_by_id(self._fetch_rows(ids, ["id", "vector"]), query)

    def _compute_cosines_by_id(self, rows: Any, query: NDArray[np.float32]) -> Scores:
        cosines = _compute_rounded_cosines(to_matrix(rows["vector"], self.width), query)
        return dict(zip(rows["id"].to_pylist(), cosines, strict=True))

    def _build_hits(self, results: Sequence[tuple[Scores, Scores]], version: int) -> list[list[Hit]]:
        """Build the hits of all queries, reading the passages of all hits from the table at once."""
        passages = self._load_passages({passage_id for scores, _ in results for passage_id in scores}, version)
        hits_by_query = []
        for scores, cosines in results:
            ids = [passage_id for passage_id in scores if passage_id in passages]
            hits_by_query.append(
                [
                    Hit(passages[passage_id], rank, scores[passage_id], cosines.get(passage_id))
                    for rank, passage_id in enumerate(ids, start=1)
                ]
            )
        return hits_by_query

    def _evict_outdated(self, version: int) -> None:
        if version != self._cached_version:
            # The version last: other threads must not take the former contents for those of this version.
            self._cached_passages, self._passage_counts, self._cached_version = {}, {}, version

    def _load_passages(self, ids: set[str], version: int) -> dict[str, Passage]:
        self._evict_outdated(version)
        if len(self._cached_passages) + len(ids) > MAX_CACHED_PASSAGES:
            self._cached_passages = {}
        cached_passages = self._cached_passages
        missing_ids = [passage_id for passage_id in sorted(ids) if passage_id not in cached_passages]
        if missing_ids:
            cached_passages |= {
                row["id"]: to_passage(row)
                for row in self._fetch_rows(missing_ids, passage_columns(self.table)).to_pylist()
            }
        return {passage_id: cached_passages[passage_id] for passage_id in ids if passage_id in cached_passages}

    def _fetch_rows(self, ids: Sequence[str], columns: list[str]) -> Any:
        id_list = ", ".join(quote_sql(passage_id) for passage_id in ids) or "''"
        return self.table.search().where(f"id IN ({id_list})").select(columns).limit(None).to_arrow()

    def _load_vectors(self, version: int) -> _Vectors | None:
        """Return all vectors, reloading them if the table has changed; None if they exceed the memory budget."""
        if self._vectors is None or self._vectors.version != version:
            if self.table.count_rows() * self.width * 4 > self.memory_budget:
                self._vectors = None
                return None
            rows = self.table.search().select(["id", "vector"]).limit(None).to_arrow()
            ids = tuple(rows["id"].to_pylist())
            matrix = to_matrix(rows["vector"], self.width)
            self._vectors = _Vectors(version, ids, {passage_id: row for row, passage_id in enumerate(ids)}, matrix)
        return self._vectors


@cache
def _blas_controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def limit_to_one_thread() -> AbstractContextManager[Any]:
    """Limit linear algebra to one thread.

    Matrix products of this size gain little from a second thread, and its busy-waiting slows down LanceDB and the
    encoder: with it, the 95th percentile of search times doubled.
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


def _compute_rounded_cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> list[float]:
    """Compute the cosines between unit vectors and a query, rounded to 6 decimal places.

    Each row is summed separately, so that equal vectors have equal cosines. The last digits of a matrix product depend
    on the row's index and on the processor.
    """
    cosines: NDArray[np.float64] = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return [round(cosine, _DECIMAL_PLACES) for cosine in cosines.tolist()]


def _find_rows_near_top(
    matrix: NDArray[np.float32], query: NDArray[np.float32], depth: int, allowed_rows: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    """Return the indices of the rows with the ``depth`` highest cosines, including ties within rounding error.

    ``allowed_rows`` contains the indices of the rows to search; None searches all.
    """
    with limit_to_one_thread():
        cosines = matrix @ query
    rows = np.arange(len(cosines)) if allowed_rows is None else allowed_rows
    allowed_cosines = cosines[rows]
    if len(allowed_cosines) <= depth:
        return rows
    threshold = np.partition(allowed_cosines, -depth)[-depth]
    rows_near_top: NDArray[np.intp] = rows[allowed_cosines >= threshold - _MAX_ROUNDING_ERROR]
    return rows_near_top


def _sort_scores(scores: Mapping[str, float]) -> Scores:
    return dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))


def _select_top(scores: Scores, count: int) -> Scores:
    return dict(list(scores.items())[:count])
