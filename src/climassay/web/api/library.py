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
    """A collection of documents."""

    name: str = Field(examples=["primer"])
    encoder: str = Field(examples=["local:minilm"])
    """Name of the model that computed the vectors of its passages."""
    documents: int
    """Number of documents."""
    passages: int
    """Number of passages."""
    bytes: int
    """Size on disk, with vectors and index; 0 in an object store."""
    page: str = Field(examples=["/library/primer"])
    """Path of its page."""


class PassageData(Data):
    """A passage of a document."""

    id: str
    text: str
    document_id: str
    document: str
    """Title of the document."""
    source: str
    """Name of the file that the document was read from."""
    position: int
    """Index of the passage in its document, from 0."""
    headings: list[str]
    """Headings above the passage, outermost first."""
    first_page: int | None
    last_page: int | None
    url: str | None
    licence: str | None
    citation: str
    """Document, section and pages in words."""
    page: str
    """Path of its page."""

    @classmethod
    def of(cls, collection: str, passage: Passage) -> "PassageData":
        """Return a passage with the path of its page."""
        fields = {name: getattr(passage, name) for name in cls.model_fields if name != "page"}
        return cls(**fields, page=f"/library/{collection}/passages/{passage.id}")


class HitData(Data):
    """A passage that a search found."""

    rank: int
    """Rank, from 1."""
    score: float | None
    """Score of the search mode; reciprocal-rank score if several collections were searched."""
    cosine: float | None
    """Cosine similarity of query and passage; null in mode `bm25`."""
    collection: str
    excerpt: str
    """Sentences of the passage that share most words with the query."""
    passage: PassageData


class SearchData(Data):
    """Result of a search."""

    hits: list[HitData]
    more: bool
    """Whether there may be further hits."""
    hidden: bool
    """Whether all passages were less similar than the threshold measured for the encoder."""
    not_searched: list[str]
    """Reasons why collections could not be searched, a sentence each."""


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
    """Search one or all collections; rankings of several are fused by reciprocal rank."""
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
