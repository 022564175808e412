"""The library in the API: collections, documents, passages, search, and adding documents."""

from typing import Annotated

from fastapi import File, Form, Query, UploadFile
from starlette.responses import Response

from climassay.corpus.collection import remove_collection
from climassay.corpus.collection_storage import check_name
from climassay.corpus.search import SearchMode
from climassay.errors import InputError
from climassay.web.access import Adjudicator, Admin, Reader
from climassay.web.api.fields import (
    NO_NUL,
    AfterName,
    AfterNumber,
    Limit,
    Listed,
    ShortText,
    named,
    part_of,
)
from climassay.web.api.library_data import (
    CollectionData,
    DocumentData,
    PassageData,
    SearchData,
    UploadTakenData,
    collection_data,
    document_data,
    passage_data,
    search_data,
)
from climassay.web.api.routing import area
from climassay.web.failures import Missing
from climassay.web.library.adding import Addition, submit
from climassay.web.library.finding import LONGEST_QUERY, MOST_HITS, Wanted, search_all, search_collection
from climassay.web.library.names import RESERVED, told_address, told_text
from climassay.web.library.shelf import shelf_of
from climassay.web.library.uploads import SentFile, receive, uploads_folder
from climassay.web.place import PlaceHere

router = area("/library", "library")
CollectionName = Annotated[str, named("Name of the collection.", "primer")]
DocumentId = Annotated[str, named("Id of the document.", "3f2a9c1d")]
Query_ = Annotated[
    str,
    Query(
        description="What to look for.",
        pattern=NO_NUL,
        min_length=1,
        max_length=LONGEST_QUERY,
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
Hits = Annotated[int, Query(description="Most hits.", ge=1, le=MOST_HITS)]


@router.get("/collections")
def list_collections(
    place: PlaceHere, user: Reader, limit: Limit = 50, after: AfterName = None
) -> Listed[CollectionData]:
    """All collections, by name."""
    shown, following = part_of(
        sorted(shelf_of(place).all_contents(), key=lambda one: one.name), limit, lambda one: one.name, after
    )
    return Listed(items=[collection_data(one) for one in shown], next=following)


@router.get("/collections/{collection}")
def get_collection(place: PlaceHere, user: Reader, collection: CollectionName) -> CollectionData:
    """One collection."""
    return collection_data(shelf_of(place).contents(collection))


@router.delete("/collections/{collection}", status_code=204, response_class=Response)
def remove_a_collection(place: PlaceHere, user: Admin, collection: CollectionName) -> None:
    """Delete a collection with everything in it. It cannot be undone."""
    shelf_of(place).browse(collection)
    remove_collection(place.workspace, collection)


@router.get("/collections/{collection}/documents")
def list_documents(
    place: PlaceHere, user: Reader, collection: CollectionName, limit: Limit = 50, after: AfterName = None
) -> Listed[DocumentData]:
    """The documents of a collection, by id."""
    documents = sorted(shelf_of(place).contents(collection).documents, key=lambda one: one.id)
    shown, following = part_of(documents, limit, lambda one: one.id, after)
    return Listed(items=[document_data(one) for one in shown], next=following)


@router.post("/collections/{collection}/documents", status_code=202)
def add_documents(
    place: PlaceHere,
    user: Adjudicator,
    collection: CollectionName,
    files: Annotated[
        list[UploadFile],
        File(description="Up to 50 files: pdf, html, md, txt, docx, epub, csv or jsonl, by their content."),
    ],
    title: Annotated[ShortText, Form(description="Of the one file, in place of its own.")] = "",
    licence: Annotated[ShortText, Form(description="Of all files.")] = "",
    url: Annotated[ShortText, Form(description="Address where the documents are to be found.")] = "",
) -> UploadTakenData:
    """Add documents to a collection; one that is not there yet is made.

    The files are read after the answer, by a job. Files that are there already change nothing.
    """
    if collection.lower() in RESERVED:
        raise InputError(f"A collection cannot be called {collection}: choose another name.")
    check_name(collection)
    told = told_text(title, "title"), told_text(licence, "licence"), told_address(url)
    if told[0] is not None and len(files) > 1:
        raise InputError("A title can be given to one file only: leave it out, or send the files one by one.")
    sent = [SentFile(file.filename or "", file.file) for file in files]
    upload = receive(uploads_folder(place.workspace), sent, place.settings.upload_bytes)
    job = submit(place, Addition(collection, upload, *told), user.name)
    return UploadTakenData(
        job=job,
        collection=collection,
        files=[file.shown for file in upload.files],
        refused=[file.reason for file in upload.refused],
    )


@router.get("/collections/{collection}/documents/{document}")
def get_document(place: PlaceHere, user: Reader, collection: CollectionName, document: DocumentId) -> DocumentData:
    """One document."""
    return document_data(shelf_of(place).contents(collection).document(document))


@router.delete("/collections/{collection}/documents/{document}", status_code=204, response_class=Response)
def remove_document(place: PlaceHere, user: Admin, collection: CollectionName, document: DocumentId) -> None:
    """Take a document out of a collection."""
    shelf = shelf_of(place)
    shelf.contents(collection).document(document)
    shelf.browse(collection).remove(document)


@router.get("/collections/{collection}/documents/{document}/passages")
def list_passages(
    place: PlaceHere,
    user: Reader,
    collection: CollectionName,
    document: DocumentId,
    limit: Limit = 50,
    after: AfterNumber = -1,
) -> Listed[PassageData]:
    """The passages of a document, in its order; `after` is the position of the last one."""
    shelf = shelf_of(place)
    expected = shelf.contents(collection).document(document).expected
    end = min(after + 1 + limit, expected)
    found = shelf.browse(collection).passages_at(document, range(min(after + 1, end), end))
    return Listed(items=[passage_data(collection, one) for one in found], next=end - 1 if end < expected else None)


@router.get("/collections/{collection}/passages/{passage}")
def get_passage(
    place: PlaceHere,
    user: Reader,
    collection: CollectionName,
    passage: Annotated[str, named("Id of the passage.", "3f2a9c1d-4")],
) -> PassageData:
    """One passage."""
    opened = shelf_of(place).browse(collection)
    try:
        return passage_data(collection, opened.passage(passage))
    except InputError as error:
        raise Missing(str(error)) from None


@router.get("/collections/{collection}/search")
def search_in_collection(
    place: PlaceHere,
    user: Reader,
    collection: CollectionName,
    q: Query_,
    mode: Mode = "hybrid",
    document: Annotated[
        str, Query(description="Id of the only document looked at.", pattern=NO_NUL, max_length=120)
    ] = "",
    everything: Everything = False,
    limit: Hits = 10,
) -> SearchData:
    """Search one collection."""
    wanted = Wanted.of(q, mode, document, everything, limit)
    return search_data(search_collection(shelf_of(place), collection, _with_words(wanted)))


@router.get("/search")
def search_everywhere(
    place: PlaceHere, user: Reader, q: Query_, mode: Mode = "hybrid", everything: Everything = False, limit: Hits = 10
) -> SearchData:
    """Search all collections; their rankings are fused by reciprocal rank, because their scores do not compare."""
    return search_data(search_all(shelf_of(place), _with_words(Wanted.of(q, mode, "", everything, limit))))


def _with_words(wanted: Wanted) -> Wanted:
    if not wanted.words:
        raise InputError("Say what to look for: the query is empty.")
    return wanted
