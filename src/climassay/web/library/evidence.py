"""Links from a citation to its evidence: the passage and the page of the PDF, with the quoted words marked in both."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import FileResponse, RedirectResponse, Response

from climassay.corpus.documents import Passage
from climassay.corpus.readers.pdf import DrawnPage
from climassay.corpus.readers.sandboxed_reader import draw_sandboxed
from climassay.corpus.sentences import split_sentences
from climassay.errors import DocumentError
from climassay.factcheck.results.citation import Publication
from climassay.factcheck.results.page import page_values, quoted_texts
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import PassageCitation, Transcript
from climassay.grounding.quotations import find_quoted_spans
from climassay.reporting.marking import mark_spans, stems
from climassay.web.access import Member, Reader
from climassay.web.app_state import App, AppState, ResultCache
from climassay.web.failures import Missing
from climassay.web.library.cache import CollectionCache, collection_cache, find_passage
from climassay.web.pages import page

router = APIRouter(prefix="/library", include_in_schema=False)
MAX_QUOTATIONS = 12
MAX_QUOTATION_LENGTH = 2000
"""Maximum number of characters of a quotation that are looked for; the rest is ignored."""
MAX_CONCURRENT_RENDERINGS = 2
MAX_CACHED_PAGES = 24
FURTHER_PAGES = 2
"""Number of pages after the first one of a passage on which quotations are looked for."""
MIN_SHARED_WORDS = 2
"""Minimum number of words that a sentence must share with another one to be its evidence."""

Quotations = Annotated[list[str], Query(alias="quote", max_length=MAX_QUOTATIONS, default_factory=list)]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Addresses of the passage of a citation."""

    passage: str
    """Address of its page in the library."""
    document: str
    """Address of its document."""
    page: str | None
    """Address of the page of the PDF; None if the file was not stored or has no pages."""
    page_words: str
    """Label of the page of the PDF."""


class CitationLinks:
    """Links and titles of citations for one page, as the library is now."""

    def __init__(self, library: CollectionCache) -> None:
        self._titles = library.titles()
        self._originals = library.originals

    def evidence(self, collection: str, passage: Passage, quotations: Iterable[str] = ()) -> Evidence | None:
        """Return the addresses of a passage, with quotations to mark; None if its document was removed."""
        if passage.document_id not in self._titles.of(collection):
            return None
        parameters = [("quote", quotation[:MAX_QUOTATION_LENGTH]) for quotation in quotations][:MAX_QUOTATIONS]
        collection_path = f"/library/{quote(collection)}"
        document = f"{collection_path}/documents/{quote(passage.document_id)}"
        address = f"{collection_path}/passages/{quote(passage.id)}" + (
            f"?{urlencode(parameters)}" if parameters else ""
        )
        first, last = passage.first_page, passage.last_page
        if first is None or self._originals.find_pdf(passage.document_id) is None:
            return Evidence(address, document, None, "")
        label = f"Page {first} of the PDF" if last in (None, first) else f"Pages {first} to {last} of the PDF"
        page_address = f"{document}/pages/{first}?{urlencode([('passage', passage.id), *parameters])}"
        return Evidence(address, document, page_address, label)

    def current(self, source: PassageCitation) -> PassageCitation:
        """Return a citation with the current title of its document."""
        return replace(source, passage=self._titles.titled(source.collection, source.passage))

    def transcript(self, transcript: Transcript) -> Transcript:
        """Return a fact-check with the current titles of its documents."""
        return replace(transcript, sources=tuple(map(self.current, transcript.sources)))


def check_values(
    library: CollectionCache, transcript: Transcript, scale: Scale, publication: Publication | None = None
) -> dict[str, Any]:
    """Return the template values of a fact-check, with links from its citations.

    Raises:
        InputError: The verdict is not a label of the scale.
    """
    links = CitationLinks(library)
    quoted = quoted_texts(transcript)

    def evidence(source: PassageCitation, quotations: Sequence[str] = ()) -> Evidence | None:
        return links.evidence(source.collection, source.passage, quotations or quoted.get(source.number, ()))

    return page_values(links.transcript(transcript), scale, publication) | {"evidence": evidence}


def nearest_sentence(text: str, sentence: str) -> str:
    """Return the sentence of a text that shares most words with another sentence, the shortest of several.

    Empty if no sentence shares :data:`MIN_SHARED_WORDS` words.
    """
    target_words = set(stems(sentence))

    def shared_words(candidate: str) -> tuple[int, int]:
        words = set(stems(candidate))
        return len(target_words & words), -len(words)

    best = max(split_sentences(text), key=shared_words, default="")
    return best if shared_words(best)[0] >= MIN_SHARED_WORDS else ""


class PageDrawer:
    """Renders pages of PDF files, a few at a time, and caches the latest ones."""

    def __init__(self) -> None:
        self._turns = threading.BoundedSemaphore(MAX_CONCURRENT_RENDERINGS)
        self._drawn = ResultCache(MAX_CACHED_PAGES)

    def draw(self, file: Path, number: int) -> DrawnPage:
        """Return a rendered page; files are cached by name, which depends on their content.

        Raises:
            DocumentError: The page cannot be rendered.
        """
        return self._drawn.get((file.name, number), lambda: self._draw(file, number))

    def _draw(self, file: Path, number: int) -> DrawnPage:
        with self._turns:
            return draw_sandboxed(file, number)


@router.get("/{collection}/documents/{document_id}/original")
def download_original(app: App, user: Member, collection: str, document_id: str) -> Response:
    """Download the file that a document was read from."""
    library = collection_cache(app)
    document = library.contents(collection).document(document_id)
    file = library.originals.find(document_id)
    if file is None:
        raise Missing(f"The file of {document.title} was not stored.")
    return FileResponse(file, media_type="application/octet-stream", filename=document.source)


@router.get("/{collection}/documents/{document_id}/pages/{number}.png")
def page_picture(app: App, reader: Reader, collection: str, document_id: str, number: int) -> Response:
    """Return a page of a PDF as an image."""
    _, drawn = _drawn(app, collection, document_id, number)
    return Response(drawn.png, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


@router.get("/{collection}/documents/{document_id}/pages/{number}")
def show_page(
    request: Request,
    app: App,
    reader: Reader,
    collection: str,
    document_id: str,
    number: int,
    quotations: Quotations,
    passage: str = "",
) -> Response:
    """Show a page of a PDF and its text, with quotations from a passage marked in both.

    If no quotation is on the first page of a passage, redirect to a later page that has one.
    """
    title, drawn = _drawn(app, collection, document_id, number)
    library = collection_cache(app)
    document_path = f"/library/{quote(collection)}/documents/{quote(document_id)}"
    query = urlencode([("passage", passage), *(("quote", quotation) for quotation in quotations)]) if passage else ""

    def address(other: int) -> str:
        return f"{document_path}/pages/{other}" + (f"?{query}" if query else "")

    cited = find_passage(library, collection, passage) if passage else None
    marked_spans = marks_on(drawn, cited, quotations)
    if cited is not None and cited.document_id == document_id and quotations and not any(marked_spans):
        last = min(cited.last_page or number, number + FURTHER_PAGES, drawn.pages)
        for other in range(number + 1, last + 1) if number == cited.first_page else ():
            if any(marks_on(_drawn(app, collection, document_id, other)[1], cited, quotations)):
                return RedirectResponse(address(other), 303)
    spans = [span for spans_of_quotation in marked_spans for span in spans_of_quotation]
    return page(
        request,
        "library/pdf_page.html.j2",
        collection=collection,
        document_id=document_id,
        title=title,
        cited=cited,
        drawn=drawn,
        picture=f"{document_path}/pages/{number}.png",
        rectangles=[box for start, end in spans for box in drawn.rectangles(start, end)],
        pieces=mark_spans(drawn.text, spans),
        found=sum(map(bool, marked_spans)),
        wanted=len(quotations),
        before=address(number - 1) if number > 1 else None,
        after=address(number + 1) if number < drawn.pages else None,
        evidence=CitationLinks(library).evidence(collection, cited, quotations) if cited else None,
    )


def marks_on(drawn: DrawnPage, cited: Passage | None, quotations: Sequence[str]) -> list[list[tuple[int, int]]]:
    """Return the spans of each quotation on a page; empty if it is not on the page, or not in the passage."""
    text = cited.text if cited else ""
    return [
        [
            span
            for start, end in find_quoted_spans(quotation[:MAX_QUOTATION_LENGTH], text)
            for span in drawn.find(text[start:end], text[:start], text[end:])
        ]
        for quotation in quotations
    ]


def _drawn(app: AppState, collection: str, document_id: str, number: int) -> tuple[str, DrawnPage]:
    """Return the title of a document and a rendered page of its PDF.

    Raises:
        Missing: There is no such document or page, the file was not stored, or the page cannot be rendered.
    """
    library = collection_cache(app)
    document = library.contents(collection).document(document_id)
    file = library.originals.find_pdf(document_id)
    if file is None:
        raise Missing(f"No PDF of {document.title} was stored, so only its text can be shown.")
    try:
        drawn = app.shared("pdf pages", PageDrawer).draw(file, number)
    except DocumentError as error:
        raise Missing(f"{document.title}: {error}") from None
    return library.titles().of(collection)[document_id], drawn
