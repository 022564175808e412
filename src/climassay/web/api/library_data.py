"""The library in the API's words: collections, documents, passages, hits."""

from pydantic import Field

from climassay.corpus.collection_rows import StoredDocument
from climassay.corpus.documents import Passage
from climassay.web.api.fields import Data, Figure
from climassay.web.library.finding import Found, Results
from climassay.web.library.shelf import Contents


class CollectionData(Data):
    """A set of documents that can be searched."""

    name: str = Field(examples=["primer"])
    encoder: str = Field(examples=["local:minilm"])
    """Name of the model that its vectors come from."""
    documents: int = Field(examples=[12])
    passages: int = Field(examples=[340])
    bytes: int = Field(examples=[5_400_000])
    """On disk, with vectors and index."""
    page: str = Field(examples=["/library/primer"])
    """Address of its page on this server."""


class DocumentData(Data):
    """A document of a collection."""

    id: str = Field(examples=["3f2a9c1d"])
    title: str = Field(examples=["The carbon cycle"])
    source: str = Field(examples=["carbon-cycle.pdf"])
    """File name or address that it was read from."""
    passages: int = Field(examples=[31])
    """Stored."""
    complete: bool = Field(examples=[True])
    """Whether all its passages are stored."""
    pages: int | None = Field(examples=[18])
    """Number of the last page with text; null where the source has no pages."""
    report: str | None = Field(examples=["AR6 WG1"])
    """Series or report that it belongs to."""
    date: str | None = Field(examples=["2021"])
    """ISO 8601 date, or the year."""
    edition: str | None = Field(examples=[None])
    licence: str | None = Field(examples=["CC BY 4.0"])
    url: str | None = Field(examples=["https://example.org/carbon-cycle"])


class PassageData(Data):
    """Some 2,000 characters of a document: what is found and cited."""

    id: str = Field(examples=["3f2a9c1d-4"])
    text: str = Field(examples=["The ocean takes up about a quarter of the carbon dioxide that people emit."])
    document_id: str = Field(examples=["3f2a9c1d"])
    document: str = Field(examples=["The carbon cycle"])
    """Title of the document."""
    source: str = Field(examples=["carbon-cycle.pdf"])
    position: int = Field(examples=[4])
    """Number in the document, from 0."""
    headings: list[str] = Field(examples=[["Sinks", "The ocean"]])
    """Outermost first."""
    first_page: int | None = Field(examples=[7])
    last_page: int | None = Field(examples=[8])
    url: str | None = Field(examples=["https://example.org/carbon-cycle#page=7"])
    licence: str | None = Field(examples=["CC BY 4.0"])
    citation: str = Field(examples=["The carbon cycle (carbon-cycle.pdf), Sinks > The ocean, pp. 7-8"])
    """Where it stands, in words."""
    page: str = Field(examples=["/library/primer/passages/3f2a9c1d-4"])
    """Permanent address on this server."""


class HitData(Data):
    """A passage that was found."""

    rank: int = Field(examples=[1])
    """From 1."""
    score: Figure = Field(examples=[0.83])
    """What the list is sorted by; scores of different modes or collections do not compare."""
    cosine: Figure = Field(examples=[0.61])
    """Cosine similarity of query and passage, where it was computed."""
    collection: str = Field(examples=["primer"])
    excerpt: str = Field(examples=["The ocean takes up about a quarter of the carbon dioxide that people emit."])
    """The sentences that hold most of the words looked for."""
    passage: PassageData


class SearchData(Data):
    """What a search found, best first."""

    hits: list[HitData]
    more: bool = Field(examples=[True])
    """Whether there may be further hits."""
    hidden: bool = Field(examples=[False])
    """Whether there are only passages that are less similar than the encoder's threshold; `all` shows them."""
    not_searched: list[str] = Field(examples=[[]])
    """Why collections could not be searched, a sentence each."""


class UploadTakenData(Data):
    """Documents that will be added."""

    job: str = Field(examples=["j4f0c2d1e9a8b"])
    """Id of the work: see `GET /api/v1/jobs/{job}`."""
    collection: str = Field(examples=["primer"])
    files: list[str] = Field(examples=[["carbon-cycle.pdf"]])
    """That were taken."""
    refused: list[str] = Field(examples=[["notes.exe is of no kind that is taken here."]])
    """Why files were not taken, a sentence each."""


def collection_data(contents: Contents) -> CollectionData:
    """A collection as it is answered."""
    return CollectionData(
        name=contents.name,
        encoder=contents.encoder,
        documents=len(contents.documents),
        passages=contents.passages,
        bytes=contents.bytes,
        page=f"/library/{contents.name}",
    )


def document_data(document: StoredDocument) -> DocumentData:
    """A document as it is answered."""
    return DocumentData(
        id=document.id,
        title=document.title,
        source=document.source,
        passages=document.passages,
        complete=document.complete,
        pages=document.pages,
        report=document.report,
        date=document.date,
        edition=document.edition,
        licence=document.licence,
        url=document.url,
    )


def passage_data(collection: str, passage: Passage) -> PassageData:
    """A passage as it is answered."""
    return PassageData(
        id=passage.id,
        text=passage.text,
        document_id=passage.document_id,
        document=passage.document,
        source=passage.source,
        position=passage.position,
        headings=list(passage.headings),
        first_page=passage.first_page,
        last_page=passage.last_page,
        url=passage.url,
        licence=passage.licence,
        citation=passage.citation,
        page=f"/library/{collection}/passages/{passage.id}",
    )


def search_data(results: Results) -> SearchData:
    """What was found as it is answered."""
    return SearchData(
        hits=[_hit(found) for found in results.found],
        more=results.more,
        hidden=results.hidden,
        not_searched=list(results.failed),
    )


def _hit(found: Found) -> HitData:
    return HitData(
        rank=found.hit.rank,
        score=found.hit.score,
        cosine=found.hit.cosine,
        collection=found.collection,
        excerpt="".join(text for text, _ in found.pieces),
        passage=passage_data(found.collection, found.hit.passage),
    )
