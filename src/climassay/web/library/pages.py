"""Pages of the library: collections, documents, passages, search, adding and removing documents."""

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
from climassay.corpus.documents import Hit, Passage, count_repeated_characters, excerpt
from climassay.corpus.search import RRF_CONSTANT, SearchMode, check_mode
from climassay.corpus.sentences import split_sentences
from climassay.errors import ClimassayError, InputError
from climassay.grounding.quotations import mark_quotations
from climassay.reporting.bibtex import bibtex_entry
from climassay.reporting.marking import Piece, highlight_words, stems
from climassay.reporting.results import csv_lines
from climassay.web.access import DocumentAdder, DocumentRemover, Reader, may_stop
from climassay.web.app_state import App, AppState
from climassay.web.failures import NotFound, not_found_if_invalid
from climassay.web.library.cache import CollectionCache, collection_cache, find_passage
from climassay.web.library.evidence import CitationLinks, Quotations
from climassay.web.library.uploads import (
    ALLOWED_SUFFIXES,
    DETAIL_FIELDS,
    MAX_FILES,
    UPLOAD_KIND,
    add_documents,
    delete_finished_uploads,
    list_outcomes,
    parse_addition,
    single_line,
    store_addition,
    submit_addition,
)
from climassay.web.pages import (
    PageNumber,
    as_file,
    clamp_page,
    is_web_address,
    make_part,
    page,
    redirect_to,
    slice_page,
)

MAX_QUERY_LENGTH = 1000
"""Maximum number of characters of a query."""
MAX_HITS = 100
HITS_PER_STEP = 10
"""Number of hits shown at first, and number of hits added at each request for more."""
MAX_EXCERPT_WORDS = 75
_PASSAGE_COLUMNS = ("document", "source", "first_page", "last_page", "citation", "url", "licence", "text")
HIT_COLUMNS = ("rank", "score", "cosine", "collection", "passage", *_PASSAGE_COLUMNS)
MODES: tuple[tuple[SearchMode, str], ...] = (
    ("hybrid", "words and meaning"),
    ("bm25", "words (BM25)"),
    ("dense", "meaning (dense)"),
)
"""Search modes that the page offers, with their labels."""
router = APIRouter(prefix="/library", include_in_schema=False)
PASSAGES_PER_PAGE = 20
"""Number of passages shown at a time for a document."""
DOCUMENTS_PER_PAGE = 200
"""Number of documents shown at a time for a collection."""
_YEAR_PATTERN = re.compile(r"\b(?:1[5-9]|20)\d{2}\b")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Query with the options of a search."""

    words: str
    mode: SearchMode = "hybrid"
    document: str | None = None
    """Id of the only document to search; None for all documents."""
    everything: bool = False
    """Whether to include hits below the relevance threshold measured for the encoder."""
    hits: int = HITS_PER_STEP


def parse_search(
    words: Annotated[str, Query(alias="q")] = "",
    mode: Annotated[str, Query()] = MODES[0][0],
    document: Annotated[str, Query()] = "",
    everything: Annotated[bool, Query(alias="all")] = False,
    hits: Annotated[int, Query()] = HITS_PER_STEP,
) -> SearchRequest:
    """Build a search request from the query parameters of a URL.

    Raises:
        InputError: The query is too long, or the mode does not exist.
    """
    if len(words) > MAX_QUERY_LENGTH:
        raise InputError(f"The query is longer than {MAX_QUERY_LENGTH} characters.")
    return SearchRequest(words.strip(), check_mode(mode), document or None, everything, min(max(hits, 1), MAX_HITS))


SearchQuery = Annotated[SearchRequest, Depends(parse_search)]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Hit of a search, with the name of its collection and an excerpt."""

    collection: str
    hit: Hit
    pieces: tuple[Piece, ...]
    """Excerpt: the sentences that share the most words with the query, with these words marked."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Hits of a search in one or all collections."""

    hits: tuple[SearchHit, ...]
    hidden: bool
    """Whether a relevance threshold was applied and there are no hits, which the threshold may explain."""
    more: bool
    """Whether there may be further hits."""
    errors: tuple[str, ...] = ()
    """Reasons why collections could not be searched, one sentence each."""


def search_library(library: CollectionCache, query: SearchRequest, collection_name: str = "") -> SearchResults:
    """Search one or all collections.

    Rankings of several collections are fused by reciprocal rank, because their scores are not comparable.

    Args:
        library: Collections of the server.
        query: Query with the options of the search.
        collection_name: Name of the collection to search. If empty, all collections are searched, and those that cannot
            be searched are reported in the result instead of raising an error.

    Raises:
        NotFound: The named collection does not exist.
        InputError: The named collection or its encoder cannot be used.
        ModelError: The encoder of the named collection is not installed.
    """
    rankings: list[list[tuple[str, Hit]]] = []
    errors, has_threshold_applied = [], False
    for name in [collection_name] if collection_name else [contents.name for contents in library.list_contents()]:
        try:
            collection = library.open_readable(name)
            has_threshold = not (query.everything or query.mode == "bm25" or collection.relevance is None)
            # Keyword search needs no encoder, so it works even if the encoder of a collection is not installed.
            collection = collection if query.mode == "bm25" else library.open_searchable(name)
            hits = collection.search(
                query.words,
                k=query.hits + 1,
                mode=query.mode,
                min_cosine="measured" if has_threshold else None,
                document=query.document,
            )
        except ClimassayError as error:
            if collection_name:
                raise
            errors.append(f"{name} was not searched: {error}")
            continue
        rankings.append([(name, hit) for hit in hits])
        has_threshold_applied = has_threshold_applied or has_threshold
    ranked_hits = [named_hit for ranking in rankings for named_hit in ranking]
    if len(rankings) > 1:
        scored_hits = [(1 / (RRF_CONSTANT + hit.rank), name, hit) for name, hit in ranked_hits]
        scored_hits.sort(key=lambda row: (-row[0], -(row[2].cosine or 0.0), row[1], row[2].passage.id))
        first_rows = {row[2].passage.id: row for row in reversed(scored_hits)}
        # Several collections may hold the same passage.
        unique_hits = [row for row in scored_hits if first_rows[row[2].passage.id] is row]
        ranked_hits = [
            (name, replace(hit, rank=rank, score=score)) for rank, (score, name, hit) in enumerate(unique_hits, 1)
        ]
    query_stems = set(stems(query.words))
    results = []
    for name, hit in ranked_hits[: query.hits]:
        sentences = split_sentences(hit.passage.text)
        n_shared = [len(query_stems.intersection(stems(sentence))) for sentence in sentences]
        text = hit.passage.text
        if sentences:
            text = excerpt(sentences, np.array(n_shared, dtype=np.float64), MAX_EXCERPT_WORDS)
        results.append(SearchHit(name, hit, highlight_words(text, [query.words])))
    return SearchResults(
        tuple(results), has_threshold_applied and not results, len(ranked_hits) > query.hits, tuple(errors)
    )


def make_hit_row(result: SearchHit) -> dict[str, Any]:
    """Return a hit as a row with the columns :data:`HIT_COLUMNS`."""
    hit, passage = result.hit, result.hit.passage
    values = {"rank": hit.rank, "score": hit.score, "cosine": hit.cosine, "collection": result.collection}
    return values | {"passage": passage.id} | {name: getattr(passage, name) for name in _PASSAGE_COLUMNS}


def register(app: AppState) -> None:
    """Register the job that adds documents, and delete the files of finished uploads."""
    app.jobs.register(UPLOAD_KIND, add_documents, "corpus")
    delete_finished_uploads(app)


@router.get("/search")
def show_search(request: Request, app: App, reader: Reader, query: SearchQuery) -> Response:
    """Show the search form, with the hits of all collections if there is a query."""
    library = collection_cache(app)
    results = search_library(library, query) if query.words else None
    return page(request, "library/search.html.j2", **_search_values(library, "/library/search", query, results))


@router.get("/search.{format}")
def download_search(app: App, reader: Reader, query: SearchQuery, format: str) -> Response:
    """Send the hits of all collections as CSV or JSON."""
    return _search_download(app, query, format)


@router.get("/{collection}/search.{format}")
def download_collection_search(app: App, reader: Reader, query: SearchQuery, collection: str, format: str) -> Response:
    """Send the hits of one collection as CSV or JSON."""
    return _search_download(app, query, format, collection)


def _search_values(
    library: CollectionCache, path: str, query: SearchRequest, results: SearchResults | None
) -> dict[str, Any]:
    """Return the template values of a search form and its results; ``results`` is None without a query."""
    parameters = urlencode(_search_parameters(query))
    more_parameters = urlencode(_search_parameters(query) | {"hits": min(query.hits + HITS_PER_STEP, MAX_HITS)})
    all_parameters = urlencode(_search_parameters(query) | {"all": "true"})
    download_path = path if path.endswith("/search") else f"{path}/search"
    return {
        "query": query,
        "results": results,
        "modes": MODES,
        "here": path,
        "files": {format: f"{download_path}.{format}?{parameters}" for format in ("csv", "json")},
        "show_more": f"{path}?{more_parameters}" if results and results.more and query.hits < MAX_HITS else None,
        "show_everything": f"{path}?{all_parameters}",
        "passage_query": urlencode({"q": query.words}),
        "with_current_title": library.titles().with_current_title,
    }


def _search_parameters(query: SearchRequest) -> dict[str, str | int]:
    fields: dict[str, str | int] = {"q": query.words, "mode": query.mode, "hits": query.hits}
    fields |= {"document": query.document} if query.document else {}
    return fields | ({"all": "true"} if query.everything else {})


def _search_download(app: AppState, query: SearchRequest, format: str, collection_name: str = "") -> Response:
    library = collection_cache(app)
    if collection_name:
        library.open_readable(collection_name)  # Raises NotFound even if the query is empty.
    results = search_library(library, query, collection_name) if query.words else SearchResults((), False, False)
    name = f"{collection_name}-search" if collection_name else "search"
    rows = [make_hit_row(result) for result in results.hits]
    if format == "csv":
        return as_file(csv_lines(HIT_COLUMNS, rows), f"{name}.csv")
    if format == "json":
        request = {"query": query.words, "mode": query.mode, "document": query.document, "all": query.everything}
        content = request | {"not_searched": results.errors, "hits": rows}
        return as_file([json.dumps(content, ensure_ascii=False, indent=2) + "\n"], f"{name}.json")
    raise NotFound("Search results are available as .csv and as .json.")


async def parse_form(request: Request) -> AsyncIterator[FormData]:
    """Yield the form of a request, and close its temporary files afterwards."""
    form = await request.form()
    try:
        yield form
    finally:
        await form.close()


@router.get("/upload")
def show_upload_form(
    request: Request, app: App, user: DocumentAdder, collection: Annotated[str, Query()] = ""
) -> Response:
    """Show the form for adding documents."""
    return _upload_page(request, app, {"collection": collection})


@router.post("/upload")
def submit_upload(
    request: Request, app: App, user: DocumentAdder, form: Annotated[FormData, Depends(parse_form)]
) -> Response:
    """Store the submitted files and queue the job that adds them to a collection."""
    fields = {name: form.get(name, "") for name in ("collection", "new_collection", *DETAIL_FIELDS)}
    values = {name: value if isinstance(value, str) else "" for name, value in fields.items()}
    is_script_request = request.headers.get("accept", "").startswith("application/json")
    files = [part for part in form.getlist("files") if isinstance(part, UploadFile) and part.filename]
    collection = values["new_collection"].strip() or values["collection"]
    try:
        if not collection:
            raise InputError("Choose a collection, or name a new one.")
        if not values["new_collection"].strip():
            collection_cache(app).open_readable(collection)
        details = {name: values[name] for name in DETAIL_FIELDS}
        job = submit_addition(app, store_addition(app, files, collection=collection, **details), user.name)
    except InputError as error:
        if is_script_request:
            return JSONResponse({"error": str(error)}, 400)
        return _upload_page(request, app, values, error=str(error), status=400)
    address = f"/library/uploads/{job}"
    return JSONResponse({"page": address}) if is_script_request else redirect_to(address)


@router.get("/uploads/{job_id}")
def show_upload(request: Request, app: App, user: DocumentAdder, job_id: str) -> Response:
    """Show the progress of an upload and the outcome of each file."""
    with not_found_if_invalid():
        job = app.jobs.get(job_id)
    if job.kind != UPLOAD_KIND:
        raise NotFound(f"The job {job_id!r} is not an upload.")
    addition = parse_addition(job)
    return page(
        request,
        "library/upload_job.html.j2",
        job=job,
        collection=addition.collection,
        files=len(addition.upload.files) + len(addition.upload.refused),
        outcomes=list_outcomes(app, job),
        has_collection=collection_cache(app).has(addition.collection),
        may_stop=may_stop(job, user),
    )


@router.post("/{collection}/documents/{document_id}/edit")
def edit_document(
    app: App,
    user: DocumentAdder,
    collection: str,
    document_id: str,
    title: Annotated[str, Form()] = "",
    author: Annotated[str, Form()] = "",
    date: Annotated[str, Form()] = "",
) -> Response:
    """Change the title, author and date of a document."""
    details = {"title": single_line(title), "author": single_line(author), "date": single_line(date)}
    collection_cache(app).edit_document(collection, document_id, **details)
    return redirect_to(f"/library/{quote(collection)}/documents/{quote(document_id)}")


@router.post("/{collection}/documents/{document_id}/remove")
def remove_document(app: App, user: DocumentRemover, collection: str, document_id: str) -> Response:
    """Remove a document from a collection."""
    collection_cache(app).remove_document(collection, document_id)
    return redirect_to(f"/library/{collection}")


@router.post("/{collection}/remove")
def remove_library_collection(
    request: Request, app: App, user: DocumentRemover, collection: str, confirmed: Annotated[str, Form()] = ""
) -> Response:
    """Delete a collection, provided that its name was typed as confirmation."""
    collection_cache(app).open_readable(collection)
    if confirmed.strip() != collection:
        raise InputError(f"The collection {collection} was not removed: type its name to confirm.")
    remove_collection(app.workspace, collection)
    return redirect_to("/library")


def _upload_page(
    request: Request, app: AppState, values: dict[str, str], *, error: str = "", status: int = 200
) -> Response:
    return page(
        request,
        "library/upload.html.j2",
        status=status,
        values={"collection": "", "new_collection": "", **dict.fromkeys(DETAIL_FIELDS, ""), **values},
        error=error,
        collections=[contents.name for contents in collection_cache(app).list_contents()],
        suffixes=ALLOWED_SUFFIXES,
        max_files=MAX_FILES,
        max_bytes=app.settings.upload_bytes,
        originals=app.settings.originals,
    )


@router.get("")
def show_collections(request: Request, app: App, reader: Reader) -> Response:
    """Show all collections."""
    return page(request, "library/collections.html.j2", collections=collection_cache(app).list_contents(), modes=MODES)


@router.get("/{collection}")
def show_collection(
    request: Request, app: App, reader: Reader, query: SearchQuery, collection: str, number: PageNumber = 1
) -> Response:
    """Show the documents of a collection, and the hits in the collection if there is a query."""
    contents = collection_cache(app).contents(collection)
    results = search_library(collection_cache(app), query, collection) if query.words else None
    values = _search_values(collection_cache(app), f"/library/{collection}", query, results)
    return page(
        request,
        "library/collection.html.j2",
        contents=contents,
        titles=collection_cache(app).titles().of_collection(collection),
        original_bytes=collection_cache(app).originals.bytes_of(document.id for document in contents.documents),
        part=slice_page(contents.documents, number, DOCUMENTS_PER_PAGE, f"/library/{quote(collection)}", {}),
        **values,
    )


@router.get("/{collection}/passages.{format}")
def download_passages(app: App, reader: Reader, collection: str, format: str) -> Response:
    """Send all passages of a collection as JSON lines or CSV."""
    if format not in ("jsonl", "csv"):
        raise NotFound("Passages are available as .jsonl and as .csv.")
    passages = collection_cache(app).open_readable(collection).iterate_passages()
    rows = (asdict(passage) | {"citation": passage.citation} for passage in passages)
    if format == "csv":
        flat_rows = (row | {"headings": " > ".join(row["headings"])} for row in rows)
        lines = csv_lines((*PASSAGE_COLUMNS, "citation"), flat_rows)
    else:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return as_file(lines, f"{collection}-passages.{format}", "application/jsonl" if format == "jsonl" else "")


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
    """Show a passage with the passages before and after it; quotations, or else the words of a query, are marked."""
    library = collection_cache(app)
    stored_passage = find_passage(library, collection, passage_id)
    passage = library.titles().with_current_title(collection, stored_passage)
    positions = range(max(passage.position - 1, 0), passage.position + 2)
    nearby_passages = library.open_readable(collection).passages_at(passage.document_id, positions)
    neighbours = {neighbour.position: neighbour for neighbour in nearby_passages}
    previous_passage, next_passage = neighbours.get(passage.position - 1), neighbours.get(passage.position + 1)
    address = f"{app.settings.root}{request.url.path}"
    return page(
        request,
        "library/passage.html.j2",
        collection=collection,
        passage=passage,
        pieces=mark_quotations(passage.text, quotations) if quotations else highlight_words(passage.text, [q]),
        evidence=CitationLinks(library).evidence(collection, passage, quotations),
        previous_passage=previous_passage,
        previous_text=previous_passage.text[
            : len(previous_passage.text) - count_repeated_characters(previous_passage.text, passage.text)
        ]
        if previous_passage
        else "",
        next_passage=next_passage,
        next_text=next_passage.text[count_repeated_characters(passage.text, next_passage.text) :]
        if next_passage
        else "",
        address=address,
        bibtex=_passage_bibtex(stored_passage, address),
        page_of=passage.position // PASSAGES_PER_PAGE + 1,
    )


@router.get("/{collection}/documents/{document_id}")
def show_document(
    request: Request, app: App, reader: Reader, collection: str, document_id: str, number: PageNumber = 1
) -> Response:
    """Show one page of a document's passages in reading order. Text shared by neighbouring passages is shown once."""
    library = collection_cache(app)
    document = library.contents(collection).document(document_id)
    if number > clamp_page(number, document.expected, PASSAGES_PER_PAGE):
        n_pages = clamp_page(number, document.expected, PASSAGES_PER_PAGE)
        raise NotFound(f"{document.title} has {n_pages} pages of passages.")
    first_position = (number - 1) * PASSAGES_PER_PAGE
    passages = library.open_readable(collection).passages_at(
        document_id, range(max(first_position - 1, 0), first_position + PASSAGES_PER_PAGE)
    )
    texts = []
    for previous_passage, passage in zip([None, *passages], passages, strict=False):
        is_adjacent = previous_passage is not None and previous_passage.position + 1 == passage.position
        n_repeated = (
            count_repeated_characters(previous_passage.text, passage.text)
            if previous_passage is not None and is_adjacent
            else 0
        )
        texts.append((passage, passage.text[n_repeated:]))
    texts = [pair for pair in texts if pair[0].position >= first_position]
    address = f"/library/{quote(collection)}/documents/{quote(document_id)}"
    return page(
        request,
        "library/document.html.j2",
        collection=collection,
        document=document,
        title=library.titles().of_collection(collection)[document_id],
        original=library.originals.find(document_id),
        pdf=library.originals.find_pdf(document_id),
        longest_title=MAX_TITLE_LENGTH,
        part=make_part(texts, number, document.expected, PASSAGES_PER_PAGE, address, {}),
    )


def _passage_bibtex(passage: Passage, address: str) -> str:
    year = _YEAR_PATTERN.search(passage.date or "")
    pages = dict.fromkeys(str(number) for number in (passage.first_page, passage.last_page) if number is not None)
    return bibtex_entry(
        passage.id,
        {
            **({"author": passage.author} if passage.author else {}),
            "title": passage.document,
            "series": passage.report or "",
            "edition": passage.edition or "",
            "chapter": passage.chapter or "",
            "year": year.group() if year else "",
            "pages": "--".join(pages),
            "note": f"Passage {passage.id} of {passage.source}",
        },
        {"url": passage.url or "" if is_web_address(passage.url) else "", "annote": address},
    )
