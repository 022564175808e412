"""Search in one collection or in all, and what of every hit is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Query

from climassay.corpus.collection import Collection
from climassay.corpus.documents import Hit
from climassay.corpus.passages import excerpt
from climassay.corpus.search import RRF_CONSTANT, SearchMode, check_mode
from climassay.corpus.sentences import split_sentences
from climassay.errors import ClimassayError, InputError
from climassay.reporting.highlighting import Piece, marked, stems
from climassay.web.library.cache import CollectionCache

LONGEST_QUERY = 1000
"""Characters."""
MOST_HITS = 100
STEP = 10
"""Hits that are shown at first, and that are added by showing more."""
EXCERPT_WORDS = 75
_OF_PASSAGE = ("document", "source", "first_page", "last_page", "citation", "url", "licence", "text")
HIT_COLUMNS = ("rank", "score", "cosine", "collection", "passage", *_OF_PASSAGE)
MODES: tuple[tuple[SearchMode, str], ...] = (
    ("hybrid", "words and meaning"),
    ("bm25", "words (BM25)"),
    ("dense", "meaning (dense)"),
)
"""Ways to search that the page offers, with their names there."""


@dataclass(frozen=True, slots=True)
class SearchSpec:
    """What somebody looks for."""

    words: str
    mode: SearchMode = "hybrid"
    document: str | None = None
    """Id of the only document looked at."""
    everything: bool = False
    """Show also what is less similar than the threshold measured for the encoder."""
    hits: int = STEP


def search_spec(
    q: Annotated[str, Query()] = "",
    mode: Annotated[str, Query()] = MODES[0][0],
    document: Annotated[str, Query()] = "",
    everything: Annotated[bool, Query(alias="all")] = False,
    hits: Annotated[int, Query()] = STEP,
) -> SearchSpec:
    """What the address of a search asks for.

    Raises:
        InputError: The query is too long, or there is no such mode.
    """
    if len(q) > LONGEST_QUERY:
        raise InputError(f"The query is longer than {LONGEST_QUERY} characters.")
    return SearchSpec(q.strip(), check_mode(mode), document or None, everything, min(max(hits, 1), MOST_HITS))


SearchQuery = Annotated[SearchSpec, Depends(search_spec)]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A hit, with the collection it lies in and what is shown of it."""

    collection: str
    hit: Hit
    pieces: tuple[Piece, ...]
    """The sentences that hold most of the words looked for, with these marked."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search found."""

    found: tuple[SearchHit, ...]
    hidden: bool
    """Whether there are passages below the threshold only."""
    more: bool
    """Whether there may be further hits."""
    failed: tuple[str, ...] = ()
    """Why collections could not be searched, a sentence each."""


def search_collection(library: CollectionCache, name: str, wanted: SearchSpec) -> SearchResults:
    """Search one collection.

    Raises:
        Missing: There is no such collection.
        InputError: It, or its encoder, cannot be used.
        ModelError: Its encoder is not here.
    """
    hits = _hits(library, name, wanted)
    hidden = not hits and _threshold(library.browse(name), wanted) is not None
    return SearchResults(_views([(name, hit) for hit in hits[: wanted.hits]], wanted), hidden, len(hits) > wanted.hits)


def search_all(library: CollectionCache, wanted: SearchSpec) -> SearchResults:
    """Search all collections; their rankings are fused by reciprocal rank, because their scores do not compare.

    A collection that cannot be searched, as when its encoder is not here, is reported and does not stop the others.
    """
    rankings: list[list[tuple[str, Hit]]] = []
    failed, hidden = [], False
    for contents in library.all_contents():
        try:
            hits = _hits(library, contents.name, wanted)
        except ClimassayError as error:
            failed.append(f"{contents.name} was not searched: {error}")
            continue
        rankings.append([(contents.name, hit) for hit in hits])
        hidden = hidden or _threshold(library.browse(contents.name), wanted) is not None
    fused = rankings[0] if len(rankings) == 1 else _fused(rankings)
    shown = _views(fused[: wanted.hits], wanted)
    return SearchResults(shown, hidden and not shown, len(fused) > wanted.hits, tuple(failed))


def hit_row(found: SearchHit) -> dict[str, Any]:
    """A hit as a row of a table or an object, by :data:`HIT_COLUMNS`."""
    hit, passage = found.hit, found.hit.passage
    values = {"rank": hit.rank, "score": hit.score, "cosine": hit.cosine, "collection": found.collection}
    return values | {"passage": passage.id} | {name: getattr(passage, name) for name in _OF_PASSAGE}


def shown_excerpt(text: str, words: str) -> tuple[Piece, ...]:
    """The sentences of a passage that hold most of the words looked for, with these marked."""
    wanted = set(stems(words))
    sentences = split_sentences(text)
    shared = np.array([len(wanted.intersection(stems(sentence))) for sentence in sentences], dtype=np.float64)
    return marked(excerpt(sentences, shared, EXCERPT_WORDS) if sentences else text, [words])


def _hits(library: CollectionCache, name: str, wanted: SearchSpec) -> list[Hit]:
    if not wanted.words:
        return []
    threshold = _threshold(library.browse(name), wanted)
    # Words alone need no encoder, so that a collection can be read where its encoder is not.
    collection = library.browse(name) if wanted.mode == "bm25" else library.search(name)
    return collection.search(
        wanted.words, k=wanted.hits + 1, mode=wanted.mode, min_cosine=threshold, document=wanted.document
    )


def _threshold(collection: Collection, wanted: SearchSpec) -> float | None:
    return None if wanted.everything or wanted.mode == "bm25" else collection.relevance_threshold


def _fused(rankings: Sequence[Sequence[tuple[str, Hit]]]) -> list[tuple[str, Hit]]:
    scored = [(1 / (RRF_CONSTANT + hit.rank), name, hit) for hits in rankings for name, hit in hits]
    scored.sort(key=lambda row: (-row[0], -(row[2].cosine or 0.0), row[1], row[2].passage.id))
    return [(name, replace(hit, rank=rank, score=score)) for rank, (score, name, hit) in enumerate(scored, start=1)]


def _views(hits: Sequence[tuple[str, Hit]], wanted: SearchSpec) -> tuple[SearchHit, ...]:
    return tuple(SearchHit(name, hit, shown_excerpt(hit.passage.text, wanted.words)) for name, hit in hits)
