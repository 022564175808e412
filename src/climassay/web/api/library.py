"""Operations on the library: collections, and search."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from climassay.corpus.documents import Passage
from climassay.corpus.search import SearchMode
from climassay.errors import InputError
from climassay.web.access import Reader
from climassay.web.api.base import MAX_NAME_LENGTH, NO_NUL, Data, Page, api_router
from climassay.web.app_state import App
from climassay.web.library import pages
from climassay.web.library.cache import collection_cache

router = api_router("/library", "library")


class CollectionData(Data):
    """Collection of documents."""

    name: str = Field(examples=["primer"])
    encoder: str = Field(examples=["local:minilm"])
    """Name of the encoder that computed the vectors of its passages."""
    documents: int
    """Number of documents."""
    passages: int
    """Number of passages."""
    bytes: int
    """Size on disk in bytes, including vectors and index; 0 for a collection in an object store."""
    page: str = Field(examples=["/library/primer"])
    """Path of the collection's page."""


class PassageData(Data):
    """Passage of a document."""

    id: str
    text: str
    document_id: str
    document: str
    """Title of the document."""
    source: str
    """Name of the file from which the document was read."""
    position: int
    """Index of the passage in its document, from 0."""
    headings: list[str]
    """Headings above the passage, outermost first."""
    first_page: int | None
    last_page: int | None
    url: str | None
    licence: str | None
    citation: str
    """Citation that names the document, section and pages."""
    page: str
    """Path of the passage's page."""

    @classmethod
    def of(cls, collection: str, passage: Passage) -> "PassageData":
        """Return the data of a passage in a collection."""
        fields = {name: getattr(passage, name) for name in cls.model_fields if name != "page"}
        return cls(**fields, page=f"/library/{collection}/passages/{passage.id}")


class HitData(Data):
    """Passage found by a search."""

    rank: int
    """Rank among the hits, from 1."""
    score: float | None
    """Score of the search mode, or reciprocal-rank score if several collections were searched."""
    cosine: float | None
    """Cosine similarity of query and passage; null in mode `bm25`."""
    collection: str
    excerpt: str
    """Sentences of the passage that share the most words with the query."""
    passage: PassageData


class SearchData(Data):
    """Hits of a search."""

    hits: list[HitData]
    more: bool
    """Whether there may be further hits."""
    hidden: bool
    """Whether there are no hits because all passages are below the relevance threshold measured for the encoder."""
    not_searched: list[str]
    """One sentence per collection that could not be searched, with the reason."""


@router.get("/collections", response_model=Page[CollectionData])
def list_collections(app: App, user: Reader) -> Any:
    """List all collections by name."""
    collections = [
        CollectionData(
            name=contents.name,
            encoder=contents.encoder,
            documents=len(contents.documents),
            passages=contents.passages,
            bytes=contents.bytes,
            page=f"/library/{contents.name}",
        )
        for contents in collection_cache(app).list_contents()
    ]
    return {"items": collections}


@router.get("/search", response_model=SearchData)
def search(
    app: App,
    user: Reader,
    q: Annotated[
        str,
        Query(
            description="Query.",
            pattern=NO_NUL,
            min_length=1,
            max_length=pages.MAX_QUERY_LENGTH,
            examples=["how much carbon the ocean takes up"],
        ),
    ],
    collection: Annotated[
        str, Query(description="Collection to search; all if empty.", pattern=NO_NUL, max_length=MAX_NAME_LENGTH)
    ] = "",
    mode: Annotated[
        SearchMode,
        Query(description="`hybrid` (words and meaning), `bm25` (words), `dense` (meaning), `rrf` (fused ranks)."),
    ] = "hybrid",
    document: Annotated[
        str, Query(description="Id of the only document to search.", pattern=NO_NUL, max_length=MAX_NAME_LENGTH)
    ] = "",
    show_all: Annotated[
        bool, Query(alias="all", description="Include hits below the threshold measured for the encoder.")
    ] = False,
    limit: Annotated[int, Query(description="Maximum number of hits.", ge=1, le=pages.MAX_HITS)] = 10,
) -> Any:
    """Search one or all collections; the rankings of several collections are fused by reciprocal rank."""
    query = pages.parse_search(q, mode, document, show_all, limit)
    if not query.words:
        raise InputError("The query is empty.")
    results = pages.search_library(collection_cache(app), query, collection)
    hits = [
        HitData(
            rank=result.hit.rank,
            score=result.hit.score,
            cosine=result.hit.cosine,
            collection=result.collection,
            excerpt="".join(text for text, _ in result.pieces),
            passage=PassageData.of(result.collection, result.hit.passage),
        )
        for result in results.hits
    ]
    return SearchData(hits=hits, more=results.more, hidden=results.hidden, not_searched=list(results.errors))
