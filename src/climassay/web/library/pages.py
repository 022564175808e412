"""The pages of the library: collections, documents, passages at permanent addresses, search, adding and removing."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import numpy as np
from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.datastructures import FormData, UploadFile
from starlette.responses import JSONResponse, Response

from climassay.corpus.collection import MAX_TITLE_LENGTH, remove_collection
from climassay.corpus.collection_storage import PASSAGE_COLUMNS
from climassay.corpus.documents import Hit, Passage, excerpt, shared_start
from climassay.corpus.search import RRF_CONSTANT, SearchMode, check_mode
from climassay.corpus.sentences import split_sentences
from climassay.errors import ClimassayError, InputError
from climassay.grounding.citations import mark_quotations
from climassay.reporting.marking import Piece, marked, stems
from climassay.reporting.results import csv_lines
from climassay.reporting.tables import escape_latex
from climassay.web.access import Adjudicator, Admin, Reader, may_stop
from climassay.web.app_state import App, AppState
from climassay.web.failures import Missing, missing
from climassay.web.library.cache import CollectionCache, found_passage, library_of
from climassay.web.library.evidence import CitationLinks, Quotations
from climassay.web.library.uploads import (
    ALLOWED_SUFFIXES,
    KIND,
    MOST_FILES,
    add_documents,
    addition_of,
    outcomes_of,
    plain_text,
    receive_addition,
    submit,
    tidy,
)
from climassay.web.pages import PageNumber, as_file, back_to, clamp_page, cut_page, is_web_address, page, part_of

MAX_QUERY_LENGTH = 1000
"""Characters."""
MAX_HITS = 100
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
router = APIRouter(prefix="/library", include_in_schema=False)
PAGE = 20
"""Passages on one page of a document."""
LISTED_DOCUMENTS = 200
"""Documents on one page of a collection."""
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d{2}\b")
_KEY = re.compile(r"[^A-Za-z0-9:_-]+")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What somebody looks for."""

    words: str
    mode: SearchMode = "hybrid"
    document: str | None = None
    """Id of the only document looked at."""
    everything: bool = False
    """Show also what is not relevant by what was measured for the encoder."""
    hits: int = STEP


def search_query(
    q: Annotated[str, Query()] = "",
    mode: Annotated[str, Query()] = MODES[0][0],
    document: Annotated[str, Query()] = "",
    everything: Annotated[bool, Query(alias="all")] = False,
    hits: Annotated[int, Query()] = STEP,
) -> SearchRequest:
    """What the address of a search asks for.

    Raises:
        InputError: The query is too long, or there is no such mode.
    """
    if len(q) > MAX_QUERY_LENGTH:
        raise InputError(f"The query is longer than {MAX_QUERY_LENGTH} characters.")
    return SearchRequest(q.strip(), check_mode(mode), document or None, everything, min(max(hits, 1), MAX_HITS))


SearchQuery = Annotated[SearchRequest, Depends(search_query)]


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

    hits: tuple[SearchHit, ...]
    hidden: bool
    """Whether there may be passages, of which none is relevant."""
    more: bool
    """Whether there may be further hits."""
    errors: tuple[str, ...] = ()
    """Why collections could not be searched, a sentence each."""


def search_library(library: CollectionCache, wanted: SearchRequest, only: str = "") -> SearchResults:
    """Search all collections; their rankings are fused by reciprocal rank, because their scores do not compare.

    A collection that cannot be searched, as when its encoder is not here, is reported and does not stop the others.

    Args:
        library: The collections.
        wanted: What is looked for.
        only: The one collection to search, whose errors are raised; empty for all.

    Raises:
        Missing: There is no such collection.
        InputError: It, or its encoder, cannot be used.
        ModelError: Its encoder is not here.
    """
    rankings: list[list[tuple[str, Hit]]] = []
    failed, hidden = [], False
    for name in [only] if only else [contents.name for contents in library.all_contents()]:
        try:
            collection = library.browse(name)
            applied = not (wanted.everything or wanted.mode == "bm25" or collection.relevance is None)
            # Words alone need no encoder, so that a collection can be read where its encoder is not.
            collection = collection if wanted.mode == "bm25" else library.search(name)
            hits = collection.search(
                wanted.words,
                k=wanted.hits + 1,
                mode=wanted.mode,
                min_cosine="measured" if applied else None,
                document=wanted.document,
            )
        except ClimassayError as error:
            if only:
                raise
            failed.append(f"{name} was not searched: {error}")
            continue
        rankings.append([(name, hit) for hit in hits])
        hidden = hidden or applied
    fused = [one for ranking in rankings for one in ranking]
    if len(rankings) > 1:
        scored = [(1 / (RRF_CONSTANT + hit.rank), name, hit) for name, hit in fused]
        scored.sort(key=lambda row: (-row[0], -(row[2].cosine or 0.0), row[1], row[2].passage.id))
        unique = {row[2].passage.id: row for row in reversed(scored)}  # several collections may hold a passage
        first = [row for row in scored if unique[row[2].passage.id] is row]
        fused = [(name, replace(hit, rank=rank, score=score)) for rank, (score, name, hit) in enumerate(first, 1)]
    stemmed = set(stems(wanted.words))
    results = []
    for name, hit in fused[: wanted.hits]:
        sentences = split_sentences(hit.passage.text)
        shared = np.array([len(stemmed.intersection(stems(one))) for one in sentences], dtype=np.float64)
        text = excerpt(sentences, shared, EXCERPT_WORDS) if sentences else hit.passage.text
        results.append(SearchHit(name, hit, marked(text, [wanted.words])))
    return SearchResults(tuple(results), hidden and not results, len(fused) > wanted.hits, tuple(failed))


def hit_row(found: SearchHit) -> dict[str, Any]:
    """A hit as a row of a table or an object, by :data:`HIT_COLUMNS`."""
    hit, passage = found.hit, found.hit.passage
    values = {"rank": hit.rank, "score": hit.score, "cosine": hit.cosine, "collection": found.collection}
    return values | {"passage": passage.id} | {name: getattr(passage, name) for name in _OF_PASSAGE}


def register(app: AppState) -> None:
    """Say how documents are added, and tidy what an earlier server left."""
    app.jobs.register(KIND, add_documents, "corpus")
    tidy(app)


@router.get("/search")
def search(request: Request, app: App, reader: Reader, wanted: SearchQuery) -> Response:
    """Search all collections."""
    library = library_of(app)
    results = search_library(library, wanted) if wanted.words else None
    return page(request, "library/search.html.j2", **_search_values(library, "/library/search", wanted, results))


@router.get("/search.{ending}")
def search_file(app: App, reader: Reader, wanted: SearchQuery, ending: str) -> Response:
    """What a search of all collections found, as CSV or JSON."""
    return _file(app, wanted, ending)


@router.get("/{collection}/search.{ending}")
def collection_search_file(app: App, reader: Reader, wanted: SearchQuery, collection: str, ending: str) -> Response:
    """What a search of one collection found, as CSV or JSON."""
    return _file(app, wanted, ending, collection)


def _search_values(
    library: CollectionCache, path: str, wanted: SearchRequest, results: SearchResults | None
) -> dict[str, Any]:
    """What templates need to show a search; results are None where nothing was looked for yet."""
    query = urlencode(_fields(wanted))
    more = urlencode(_fields(wanted) | {"hits": min(wanted.hits + STEP, MAX_HITS)})
    everything = urlencode(_fields(wanted) | {"all": "true"})
    files = path if path.endswith("/search") else f"{path}/search"
    return {
        "wanted": wanted,
        "results": results,
        "modes": MODES,
        "here": path,
        "files": {ending: f"{files}.{ending}?{query}" for ending in ("csv", "json")},
        "show_more": f"{path}?{more}" if results and results.more and wanted.hits < MAX_HITS else None,
        "show_everything": f"{path}?{everything}",
        "passage_query": urlencode({"q": wanted.words}),
        "titled": library.titles().titled,
    }


def _fields(wanted: SearchRequest) -> dict[str, str | int]:
    fields: dict[str, str | int] = {"q": wanted.words, "mode": wanted.mode, "hits": wanted.hits}
    fields |= {"document": wanted.document} if wanted.document else {}
    return fields | ({"all": "true"} if wanted.everything else {})


def _file(app: AppState, wanted: SearchRequest, ending: str, only: str = "") -> Response:
    library = library_of(app)
    if only:
        library.browse(only)  # a collection that is not there is missing, with or without words
    results = search_library(library, wanted, only) if wanted.words else SearchResults((), False, False)
    name = f"{only}-search" if only else "search"
    rows = [hit_row(result) for result in results.hits]
    if ending == "csv":
        return as_file(csv_lines(HIT_COLUMNS, rows), f"{name}.csv")
    if ending == "json":
        told = {"query": wanted.words, "mode": wanted.mode, "document": wanted.document, "all": wanted.everything}
        content = told | {"not_searched": results.errors, "hits": rows}
        return as_file([json.dumps(content, ensure_ascii=False, indent=2) + "\n"], f"{name}.json")
    raise Missing("Search results are available as .csv and as .json.")


async def sent_form(request: Request) -> AsyncIterator[FormData]:
    """The form of a request; its files lie in nameless temporary files, which vanish with whoever holds them."""
    form = await request.form()
    try:
        yield form
    finally:
        await form.close()


@router.get("/upload")
def show_form(request: Request, app: App, user: Adjudicator, collection: Annotated[str, Query()] = "") -> Response:
    """The form to add documents with."""
    return _form(request, app, {"collection": collection})


@router.post("/upload")
def upload(request: Request, app: App, user: Adjudicator, form: Annotated[FormData, Depends(sent_form)]) -> Response:
    """Keep the files that were sent, and queue the work of adding them."""
    fields = {name: form.get(name, "") for name in ("collection", "new_collection", "title", "licence", "url")}
    given = {name: value if isinstance(value, str) else "" for name, value in fields.items()}
    from_script = request.headers.get("accept", "").startswith("application/json")
    files = [part for part in form.getlist("files") if isinstance(part, UploadFile) and part.filename]
    collection = given["new_collection"].strip() or given["collection"]
    try:
        if not collection:
            raise InputError("Choose a collection, or name a new one.")
        if not given["new_collection"].strip():
            library_of(app).browse(collection)
        told = {name: given[name] for name in ("title", "licence", "url")}
        job = submit(app, receive_addition(app, files, collection=collection, **told), user.name)
    except InputError as error:
        if from_script:
            return JSONResponse({"error": str(error)}, 400)
        return _form(request, app, given, error=str(error), status=400)
    address = f"/library/uploads/{job}"
    return JSONResponse({"page": address}) if from_script else back_to(address)


@router.get("/uploads/{job_id}")
def show_upload(request: Request, app: App, user: Adjudicator, job_id: str) -> Response:
    """How far an upload is, and what became of each file."""
    with missing():
        job = app.jobs.get(job_id)
    if job.kind != KIND:
        raise Missing(f"The job {job_id!r} is not an upload.")
    addition = addition_of(job)
    return page(
        request,
        "library/upload_job.html.j2",
        job=job,
        collection=addition.collection,
        files=len(addition.upload.files) + len(addition.upload.refused),
        outcomes=outcomes_of(app, job),
        there=library_of(app).has(addition.collection),
        may_stop=may_stop(job, user),
    )


@router.post("/{collection}/documents/{document_id}/rename")
def rename_document(
    app: App, user: Adjudicator, collection: str, document_id: str, title: Annotated[str, Form()] = ""
) -> Response:
    """Give a document another title."""
    library_of(app).rename_document(collection, document_id, plain_text(title))
    return back_to(f"/library/{quote(collection)}/documents/{quote(document_id)}")


@router.post("/{collection}/documents/{document_id}/remove")
def remove_document(app: App, user: Admin, collection: str, document_id: str) -> Response:
    """Take a document out of a collection."""
    library_of(app).remove_document(collection, document_id)
    return back_to(f"/library/{collection}")


@router.post("/{collection}/remove")
def remove(
    request: Request, app: App, user: Admin, collection: str, confirmed: Annotated[str, Form()] = ""
) -> Response:
    """Delete a collection, if its name was typed to confirm that."""
    library_of(app).browse(collection)
    if confirmed.strip() != collection:
        raise InputError(f"The collection {collection} was not removed: type its name to confirm.")
    remove_collection(app.workspace, collection)
    return back_to("/library")


def _form(request: Request, app: AppState, given: dict[str, str], *, error: str = "", status: int = 200) -> Response:
    return page(
        request,
        "library/upload.html.j2",
        status=status,
        given={"new_collection": "", "title": "", "licence": "", "url": "", **given},
        error=error,
        collections=[contents.name for contents in library_of(app).all_contents()],
        suffixes=ALLOWED_SUFFIXES,
        most_files=MOST_FILES,
        most_bytes=app.settings.upload_bytes,
        originals=app.settings.originals,
    )


@router.get("")
def show_collections(request: Request, app: App, reader: Reader) -> Response:
    """All collections."""
    return page(request, "library/collections.html.j2", collections=library_of(app).all_contents(), modes=MODES)


@router.get("/{collection}")
def show_collection(
    request: Request,
    app: App,
    reader: Reader,
    wanted: SearchQuery,
    collection: str,
    number: PageNumber = 1,
) -> Response:
    """A collection: its documents, and what a search in it finds."""
    contents = library_of(app).contents(collection)
    results = search_library(library_of(app), wanted, collection) if wanted.words else None
    values = _search_values(library_of(app), f"/library/{collection}", wanted, results)
    return page(
        request,
        "library/collection.html.j2",
        contents=contents,
        titles=library_of(app).titles().of(collection),
        kept=library_of(app).originals.bytes_of(one.id for one in contents.documents),
        part=cut_page(contents.documents, number, LISTED_DOCUMENTS, f"/library/{quote(collection)}", {}),
        **values,
    )


@router.get("/{collection}/passages.{ending}")
def all_passages(app: App, reader: Reader, collection: str, ending: str) -> Response:
    """All passages of a collection as a file."""
    if ending not in ("jsonl", "csv"):
        raise Missing("Passages are available as .jsonl and as .csv.")
    passages = library_of(app).browse(collection).each_passage()
    rows = (asdict(passage) | {"citation": passage.citation} for passage in passages)
    if ending == "csv":
        plain = (row | {"headings": " > ".join(row["headings"])} for row in rows)
        lines = csv_lines((*PASSAGE_COLUMNS, "citation"), plain)
    else:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return as_file(lines, f"{collection}-passages.{ending}", "application/jsonl" if ending == "jsonl" else "")


@router.get("/{collection}/passages/{passage_id}")
def show_passage(
    request: Request,
    app: App,
    reader: Reader,
    collection: str,
    passage_id: str,
    quotations: Quotations,
    q: Annotated[str, Query(max_length=MAX_QUERY_LENGTH)] = "",
) -> Response:
    """A passage with its neighbours, at an address that stays; words quoted from it are marked, or those looked for."""
    library = library_of(app)
    stored = found_passage(library, collection, passage_id)
    passage = library.titles().titled(collection, stored)
    places = range(max(passage.position - 1, 0), passage.position + 2)
    near = {one.position: one for one in library.browse(collection).passages_at(passage.document_id, places)}
    before, after = near.get(passage.position - 1), near.get(passage.position + 1)
    address = f"{app.settings.root}{request.url.path}"
    return page(
        request,
        "library/passage.html.j2",
        collection=collection,
        passage=passage,
        pieces=mark_quotations(passage.text, quotations) if quotations else marked(passage.text, [q]),
        evidence=CitationLinks(library).evidence(collection, passage, quotations),
        before=before,
        before_text=before.text[: len(before.text) - shared_start(before.text, passage.text)] if before else "",
        after=after,
        after_text=after.text[shared_start(passage.text, after.text) :] if after else "",
        address=address,
        bibtex=_bibtex(stored, address),
        page_of=passage.position // PAGE + 1,
    )


@router.get("/{collection}/documents/{document_id}")
def show_document(
    request: Request,
    app: App,
    reader: Reader,
    collection: str,
    document_id: str,
    number: PageNumber = 1,
) -> Response:
    """The passages of a document in reading order, a page of them; what neighbours share appears once."""
    library = library_of(app)
    document = library.contents(collection).document(document_id)
    if number > clamp_page(number, document.expected, PAGE):
        raise Missing(f"{document.title} has {clamp_page(number, document.expected, PAGE)} pages of passages.")
    first = (number - 1) * PAGE
    passages = library.browse(collection).passages_at(document_id, range(max(first - 1, 0), first + PAGE))
    shown = []
    for before, passage in zip([None, *passages], passages, strict=False):
        joined = before is not None and before.position + 1 == passage.position
        start = shared_start(before.text, passage.text) if before is not None and joined else 0
        shown.append((passage, passage.text[start:]))
    shown = [one for one in shown if one[0].position >= first]
    return page(
        request,
        "library/document.html.j2",
        collection=collection,
        document=document,
        title=library.titles().of(collection)[document_id],
        original=library.originals.find(document_id),
        pdf=library.originals.find_pdf(document_id),
        longest_title=MAX_TITLE_LENGTH,
        part=part_of(
            shown, number, document.expected, PAGE, f"/library/{quote(collection)}/documents/{quote(document_id)}", {}
        ),
    )


def _bibtex(passage: Passage, address: str) -> str:
    year = _YEAR.search(passage.date or "")
    pages = dict.fromkeys(str(one) for one in (passage.first_page, passage.last_page) if one is not None)
    fields = {
        "title": escape_latex(passage.document),
        "series": escape_latex(passage.report or ""),
        "edition": escape_latex(passage.edition or ""),
        "chapter": escape_latex(passage.chapter or ""),
        "year": year.group() if year else "",
        "pages": "--".join(pages),
        "url": _plain_address(passage.url) if is_web_address(passage.url) else "",
        "note": escape_latex(f"Passage {passage.id} of {passage.source}"),
        "annote": _plain_address(address),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{_KEY.sub('-', passage.id)},", *lines, "}"])


def _plain_address(address: str | None) -> str:
    """An address that cannot end the braces it appears in."""
    return re.sub(r"[{}\\\s]", lambda match: f"%{ord(match.group()):02X}", address or "")
