"""The library in the API: collections, documents, passages, search, and adding documents."""

from typing import Annotated, Any

from fastapi import File, Form, Query, UploadFile
from pydantic import BeforeValidator
from starlette.responses import Response

from climassay.corpus.collection import remove_collection
from climassay.corpus.collection_storage import StoredDocument
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.search import SearchMode
from climassay.errors import InputError
from climassay.web.access import Adjudicator, Admin, Reader
from climassay.web.api.answers import Figure, answer, at, many, page_at, said
from climassay.web.api.base import (
    NO_NUL,
    AfterName,
    AfterNumber,
    Data,
    Extended,
    Limit,
    ShortText,
    area,
    field,
    listed,
    named,
    part_of,
)
from climassay.web.app_state import App
from climassay.web.library import pages
from climassay.web.library.cache import Contents, found_passage, library_of
from climassay.web.library.uploads import RESERVED, plain_text, receive_addition, submit

router = area("/library", "library")
CollectionName = Annotated[str, named("Name of the collection.", "primer")]
DocumentId = Annotated[str, named("Id of the document.", "3f2a9c1d")]
Query_ = Annotated[
    str,
    Query(
        description="What to look for.",
        pattern=NO_NUL,
        min_length=1,
        max_length=pages.LONGEST_QUERY,
        examples=["how much carbon the ocean takes up"],
    ),
]
Mode = Annotated[
    SearchMode,
    Query(description="`hybrid` (words and meaning), `bm25` (words), `dense` (meaning), `rrf` (fused ranks)."),
]
Everything = Annotated[
    bool, Query(alias="all", description="Also what is less similar than the threshold measured for the encoder.")
]
Hits = Annotated[int, Query(description="Maximum number of hits.", ge=1, le=pages.MOST_HITS)]


CollectionData = answer(
    "Collection",
    Contents,
    "name encoder documents passages bytes",
    documents=Annotated[int, BeforeValidator(len)],
    page=page_at("/library/{}", "name"),
)
DocumentData = answer(
    "Document",
    StoredDocument,
    "id title source passages pages report date edition licence url",
    complete=said(bool, "Whether all its passages are stored."),
)
PassageData = answer(
    "Passage",
    Passage,
    "id text document_id document source position headings first_page last_page url licence",
    citation=said(str, "Where it stands, in words."),
    page=said(str, "Permanent address on this server."),
)
HitData = answer(
    "Hit",
    Hit,
    "rank score cosine",
    score=Figure,
    collection=str,
    excerpt=said(str, "The sentences that hold most of the words looked for."),
    passage=PassageData,
)
SearchData = answer(
    "Search",
    pages.SearchResults,
    "more hidden",
    hits=many(HitData),
    not_searched=at("failed", list[str], "Why collections could not be searched, a sentence each."),
)
UploadTakenData = answer(
    "UploadTaken",
    "Documents that will be added.",
    job=said(str, "Id of the work: see `GET /api/v1/jobs/{job}`."),
    collection=str,
    files=said(list[str], "That were taken."),
    refused=said(list[str], "Why files were not taken, a sentence each."),
)


class DocumentChange(Data):
    """What is to be different about a document."""

    title: ShortText = field("The carbon cycle, second edition", "By which it is listed, found and cited from now on.")


@router.get("/collections", response_model=listed(CollectionData))
def list_collections(app: App, user: Reader, limit: Limit = 50, after: AfterName = None) -> Any:
    """All collections, by name."""
    return part_of(library_of(app).all_contents(), limit, lambda one: one.name, after)


@router.get("/collections/{collection}", response_model=CollectionData)
def get_collection(app: App, user: Reader, collection: CollectionName) -> Any:
    """One collection."""
    return library_of(app).contents(collection)


@router.delete("/collections/{collection}", status_code=204, response_class=Response)
def remove_a_collection(app: App, user: Admin, collection: CollectionName) -> None:
    """Delete a collection with everything in it. It cannot be undone."""
    library_of(app).browse(collection)
    remove_collection(app.workspace, collection)


@router.get("/collections/{collection}/documents", response_model=listed(DocumentData))
def list_documents(
    app: App, user: Reader, collection: CollectionName, limit: Limit = 50, after: AfterName = None
) -> Any:
    """The documents of a collection, by id."""
    return part_of(library_of(app).contents(collection).documents, limit, lambda one: one.id, after)


@router.post("/collections/{collection}/documents", status_code=202, response_model=UploadTakenData)
def add_documents(
    app: App,
    user: Adjudicator,
    collection: CollectionName,
    files: Annotated[
        list[UploadFile],
        File(description="Up to 50 files: pdf, html, md, txt, docx, epub, csv or jsonl, by their content."),
    ],
    title: Annotated[ShortText, Form(description="Title for a single file, in place of its own.")] = "",
    licence: Annotated[ShortText, Form(description="Licence of all files.")] = "",
    url: Annotated[ShortText, Form(description="Address where the documents are to be found.")] = "",
) -> Any:
    """Add documents to a collection; one that is not there yet is made.

    The files are read after the answer, by a job. Files that are there already change nothing.
    """
    if collection.lower() in RESERVED:
        raise InputError(f"A collection cannot be called {collection}: choose another name.")
    addition = receive_addition(app, files, collection=collection, title=title, licence=licence, url=url)
    return {
        "job": submit(app, addition, user.name),
        "collection": collection,
        "files": [file.shown for file in addition.upload.files],
        "refused": [file.reason for file in addition.upload.refused],
    }


@router.get("/collections/{collection}/documents/{document}", response_model=DocumentData)
def get_document(app: App, user: Reader, collection: CollectionName, document: DocumentId) -> Any:
    """One document."""
    return library_of(app).contents(collection).document(document)


@router.patch("/collections/{collection}/documents/{document}", response_model=DocumentData)
def rename_document(
    app: App, user: Adjudicator, collection: CollectionName, document: DocumentId, change: DocumentChange
) -> Any:
    """Give a document another title."""
    library = library_of(app)
    library.rename_document(collection, document, plain_text(change.title))
    return library.contents(collection).document(document)


@router.delete("/collections/{collection}/documents/{document}", status_code=204, response_class=Response)
def remove_document(app: App, user: Admin, collection: CollectionName, document: DocumentId) -> None:
    """Take a document out of a collection."""
    library_of(app).remove_document(collection, document)


@router.get("/collections/{collection}/documents/{document}/passages", response_model=listed(PassageData))
def list_passages(
    app: App, user: Reader, collection: CollectionName, document: DocumentId, limit: Limit = 50, after: AfterNumber = -1
) -> Any:
    """The passages of a document, in its order; `after` is the position of the last one."""
    library = library_of(app)
    expected = library.contents(collection).document(document).expected
    end = min(after + 1 + limit, expected)
    result = library.browse(collection).passages_at(document, range(min(after + 1, end), end))
    return {"items": [_passage(collection, one) for one in result], "next": end - 1 if end < expected else None}


@router.get("/collections/{collection}/passages/{passage}", response_model=PassageData)
def get_passage(
    app: App,
    user: Reader,
    collection: CollectionName,
    passage: Annotated[str, named("Id of the passage.", "3f2a9c1d-4")],
) -> Any:
    """One passage."""
    return _passage(collection, found_passage(library_of(app), collection, passage))


@router.get("/collections/{collection}/search", response_model=SearchData)
def search_in_collection(
    app: App,
    user: Reader,
    collection: CollectionName,
    q: Query_,
    mode: Mode = "hybrid",
    document: Annotated[
        str, Query(description="Id of the only document looked at.", pattern=NO_NUL, max_length=120)
    ] = "",
    everything: Everything = False,
    limit: Hits = 10,
) -> Any:
    """Search one collection."""
    wanted = _with_words(pages.search_spec(q, mode, document, everything, limit))
    return _search(pages.search_library(library_of(app), wanted, collection))


@router.get("/search", response_model=SearchData)
def search_everywhere(
    app: App, user: Reader, q: Query_, mode: Mode = "hybrid", everything: Everything = False, limit: Hits = 10
) -> Any:
    """Search all collections; their rankings are fused by reciprocal rank, because their scores do not compare."""
    return _search(
        pages.search_library(library_of(app), _with_words(pages.search_spec(q, mode, "", everything, limit)))
    )


def _with_words(wanted: pages.SearchSpec) -> pages.SearchSpec:
    if not wanted.words:
        raise InputError("Say what to look for: the query is empty.")
    return wanted


def _passage(collection: str, passage: Passage) -> Extended:
    return Extended(passage, page=f"/library/{collection}/passages/{passage.id}")


def _search(results: pages.SearchResults) -> Any:
    hits = [
        Extended(
            one.hit,
            collection=one.collection,
            excerpt="".join(text for text, _ in one.pieces),
            passage=_passage(one.collection, one.hit.passage),
        )
        for one in results.found
    ]
    return Extended(results, hits=hits)
