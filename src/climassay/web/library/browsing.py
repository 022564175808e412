"""Pages to read in: the collections, their documents, and every passage at a permanent address."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from climassay.corpus.documents import Passage
from climassay.corpus.passages import shared_start
from climassay.errors import InputError
from climassay.reporting.highlighting import marked
from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.library.citing import reference
from climassay.web.library.downloads import passages_file
from climassay.web.library.finding import LONGEST_QUERY, MODES
from climassay.web.library.names import is_web_address
from climassay.web.library.searching import WantedHere, found_in, search_values
from climassay.web.library.shelf import Shelf, shelf_of
from climassay.web.pages import page
from climassay.web.place import PlaceHere

router = APIRouter(prefix="/library", include_in_schema=False)
PAGE = 20
"""Passages on one page of a document."""
LISTED_DOCUMENTS = 200
"""Documents on one page of a collection."""


@router.get("")
def show_shelf(request: Request, place: PlaceHere, reader: Reader) -> Response:
    """All collections."""
    return page(request, "library/shelf.html.j2", collections=shelf_of(place).all_contents(), modes=MODES)


@router.get("/{collection}")
def show_collection(
    request: Request,
    place: PlaceHere,
    reader: Reader,
    wanted: WantedHere,
    collection: str,
    part: Annotated[int, Query(alias="page", ge=1)] = 1,
) -> Response:
    """A collection: its documents, and what a search in it finds."""
    contents = shelf_of(place).contents(collection)
    values = search_values(f"/library/{collection}", wanted, found_in(place, collection, wanted))
    first = (part - 1) * LISTED_DOCUMENTS
    return page(
        request,
        "library/collection.html.j2",
        contents=contents,
        listed=contents.documents[first : first + LISTED_DOCUMENTS],
        part=part,
        parts=-(-len(contents.documents) // LISTED_DOCUMENTS),
        is_web_address=is_web_address,
        **values,
    )


@router.get("/{collection}/passages.{ending}")
def all_passages(place: PlaceHere, reader: Reader, collection: str, ending: str) -> Response:
    """All passages of a collection as a file."""
    if ending not in ("jsonl", "csv"):
        raise Missing("Passages can be had as .jsonl and as .csv.")
    return passages_file(shelf_of(place).browse(collection).each_passage(), ending, f"{collection}-passages")


@router.get("/{collection}/passages/{passage_id}")
def show_passage(
    request: Request,
    place: PlaceHere,
    reader: Reader,
    collection: str,
    passage_id: str,
    q: Annotated[str, Query(max_length=LONGEST_QUERY)] = "",
) -> Response:
    """A passage with its neighbours, at an address that stays."""
    shelf = shelf_of(place)
    passage = _passage(shelf, collection, passage_id)
    places = range(max(passage.position - 1, 0), passage.position + 2)
    near = {one.position: one for one in shelf.browse(collection).passages_at(passage.document_id, places)}
    before, after = near.get(passage.position - 1), near.get(passage.position + 1)
    address = f"{place.settings.root}{request.url.path}"
    return page(
        request,
        "library/passage.html.j2",
        collection=collection,
        passage=passage,
        pieces=marked(passage.text, [q]),
        before=before,
        before_text=before.text[: len(before.text) - shared_start(before.text, passage.text)] if before else "",
        after=after,
        after_text=after.text[shared_start(passage.text, after.text) :] if after else "",
        reference=reference(passage, address),
        page_of=passage.position // PAGE + 1,
        is_web_address=is_web_address,
    )


@router.get("/{collection}/documents/{document_id}")
def show_document(
    request: Request,
    place: PlaceHere,
    reader: Reader,
    collection: str,
    document_id: str,
    part: Annotated[int, Query(alias="page", ge=1)] = 1,
) -> Response:
    """The passages of a document in reading order, a page of them; what neighbours share stands once."""
    shelf = shelf_of(place)
    document = shelf.contents(collection).document(document_id)
    parts = max(-(-document.expected // PAGE), 1)
    if part > parts:
        raise Missing(f"{document.title} has {parts} pages of passages.")
    first = (part - 1) * PAGE
    passages = shelf.browse(collection).passages_at(document_id, range(max(first - 1, 0), first + PAGE))
    shown = [
        (passage, _without_shared(passages[number - 1] if number else None, passage))
        for number, passage in enumerate(passages)
        if passage.position >= first
    ]
    return page(
        request,
        "library/document.html.j2",
        collection=collection,
        document=document,
        shown=shown,
        part=part,
        parts=parts,
        is_web_address=is_web_address,
    )


def _passage(shelf: Shelf, collection: str, passage_id: str) -> Passage:
    opened = shelf.browse(collection)
    try:
        return opened.passage(passage_id)
    except InputError as error:
        raise Missing(str(error)) from None


def _without_shared(before: Passage | None, passage: Passage) -> str:
    if before is None or before.position + 1 != passage.position:
        return passage.text
    return passage.text[shared_start(before.text, passage.text) :]
