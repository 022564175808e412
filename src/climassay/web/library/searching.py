"""Search pages, and what was found as files."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.library.downloads import json_file, rows_file
from climassay.web.library.finding import (
    MODES,
    MOST_HITS,
    STEP,
    Results,
    Wanted,
    hit_row,
    search_all,
    search_collection,
)
from climassay.web.library.shelf import shelf_of
from climassay.web.pages import page
from climassay.web.place import Place, PlaceHere

router = APIRouter(prefix="/library", include_in_schema=False)
HIT_COLUMNS = (
    "rank",
    "score",
    "cosine",
    "collection",
    "passage",
    "document",
    "source",
    "first_page",
    "last_page",
    "citation",
    "url",
    "licence",
    "text",
)


def wanted_of(
    q: Annotated[str, Query()] = "",
    mode: Annotated[str, Query()] = MODES[0][0],
    document: Annotated[str, Query()] = "",
    everything: Annotated[bool, Query(alias="all")] = False,
    hits: Annotated[int, Query()] = STEP,
) -> Wanted:
    """What the address of a search asks for."""
    return Wanted.of(q, mode, document, everything, hits)


WantedHere = Annotated[Wanted, Depends(wanted_of)]


@router.get("/search")
def search(request: Request, place: PlaceHere, reader: Reader, wanted: WantedHere) -> Response:
    """Search all collections."""
    results = search_all(shelf_of(place), wanted) if wanted.words else None
    return page(request, "library/search.html.j2", **search_values("/library/search", wanted, results))


@router.get("/search.{ending}")
def search_file(place: PlaceHere, reader: Reader, wanted: WantedHere, ending: str) -> Response:
    """What a search of all collections found, as CSV or JSON."""
    return _file(search_all(shelf_of(place), wanted), wanted, ending, "search")


@router.get("/{collection}/search.{ending}")
def collection_search_file(
    place: PlaceHere, reader: Reader, wanted: WantedHere, collection: str, ending: str
) -> Response:
    """What a search of one collection found, as CSV or JSON."""
    return _file(search_collection(shelf_of(place), collection, wanted), wanted, ending, f"{collection}-search")


def search_values(path: str, wanted: Wanted, results: Results | None) -> dict[str, Any]:
    """What templates need to show a search.

    Args:
        path: Address of the page that searches.
        wanted: What for.
        results: What was found; None where nothing was looked for yet.
    """
    query = urlencode(_fields(wanted))
    more = urlencode(_fields(wanted) | {"hits": min(wanted.hits + STEP, MOST_HITS)})
    everything = urlencode(_fields(wanted) | {"all": "true"})
    files = path if path.endswith("/search") else f"{path}/search"
    return {
        "wanted": wanted,
        "results": results,
        "modes": MODES,
        "here": path,
        "files": {ending: f"{files}.{ending}?{query}" for ending in ("csv", "json")},
        "show_more": f"{path}?{more}" if results and results.more and wanted.hits < MOST_HITS else None,
        "show_everything": f"{path}?{everything}",
        "passage_query": urlencode({"q": wanted.words}),
    }


def _fields(wanted: Wanted) -> dict[str, str | int]:
    fields: dict[str, str | int] = {"q": wanted.words, "mode": wanted.mode, "hits": wanted.hits}
    if wanted.document:
        fields["document"] = wanted.document
    if wanted.everything:
        fields["all"] = "true"
    return fields


def _file(results: Results, wanted: Wanted, ending: str, name: str) -> Response:
    rows = [hit_row(found) for found in results.found]
    if ending == "csv":
        return rows_file(rows, HIT_COLUMNS, name)
    if ending == "json":
        told = {"query": wanted.words, "mode": wanted.mode, "document": wanted.document, "all": wanted.everything}
        return json_file(told | {"not_searched": results.failed, "hits": rows}, name)
    raise Missing("What was found can be had as .csv and as .json.")


def found_in(place: Place, collection: str, wanted: Wanted) -> Results | None:
    """What a search of one collection found; None where nothing is looked for."""
    return search_collection(shelf_of(place), collection, wanted) if wanted.words else None
