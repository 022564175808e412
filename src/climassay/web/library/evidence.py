"""Links from a citation to the cited passage and its PDF page, with the quoted words marked in both."""

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
from climassay.reporting.marking import highlight_spans, stems
from climassay.web.access import Member, Reader
from climassay.web.app_state import App, AppState, ResultCache
from climassay.web.failures import NotFound
from climassay.web.library.cache import CollectionCache, collection_cache, find_passage
from climassay.web.pages import page

router = APIRouter(prefix="/library", include_in_schema=False)
MAX_QUOTATIONS = 12
MAX_QUOTATION_LENGTH = 2000
"""Length in characters to which quotations are truncated before they are searched for."""
MAX_CONCURRENT_RENDERINGS = 2
MAX_CACHED_PAGES = 24
MAX_FURTHER_PAGES = 2
"""Maximum number of pages after the first page of a passage that are searched for quotations from it."""
MIN_SHARED_WORDS = 2
"""A sentence of a passage is marked only if it shares at least this number of words with a sentence of an answer."""

Quotations = Annotated[list[str], Query(alias="quote", max_length=MAX_QUOTATIONS, default_factory=list)]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Addresses of a cited passage."""

    passage: str
    """Address of the passage's page in the library."""
    document: str
    """Address of the document's page in the library."""
    page: str | None
    """Address of the PDF page on which the passage begins; None if no PDF was stored."""
    page_words: str
    """Label of the link to the PDF page; empty if there is none."""


class CitationLinks:
    """Current links and titles of citations, for rendering one page."""

    def __init__(self, library: CollectionCache) -> None:
        self._titles = library.titles()
        self._originals = library.originals

    def evidence(self, collection: str, passage: Passage, quotations: Iterable[str] = ()) -> Evidence | None:
        """Return the addresses of a passage, with quotations to be marked; None if its document was removed."""
        if passage.document_id not in self._titles.of_collection(collection):
            return None
        parameters = [("quote", quotation[:MAX_QUOTATION_LENGTH]) for quotation in quotations][:MAX_QUOTATIONS]
        collection_path = f"/library/{quote(collection)}"
        document = f"{collection_path}/documents/{quote(passage.document_id)}"
        passage_address = f"{collection_path}/passages/{quote(passage.id)}" + (
            f"?{urlencode(parameters)}" if parameters else ""
        )
        first_page, last_page = passage.first_page, passage.last_page
        if first_page is None or self._originals.find_pdf(passage.document_id) is None:
            return Evidence(passage_address, document, None, "")
        label = (
            f"Page {first_page} of the PDF"
            if last_page in (None, first_page)
            else f"Pages {first_page} to {last_page} of the PDF"
        )
        page_address = f"{document}/pages/{first_page}?{urlencode([('passage', passage.id), *parameters])}"
        return Evidence(passage_address, document, page_address, label)

    def current(self, source: PassageCitation) -> PassageCitation:
        """Return a copy of a citation with the current title of its document."""
        return replace(source, passage=self._titles.with_current_title(source.collection, source.passage))

    def transcript(self, transcript: Transcript) -> Transcript:
        """Return a copy of a fact-check whose citations have the current titles of their documents."""
        return replace(transcript, sources=tuple(map(self.current, transcript.sources)))


def check_values(
    library: CollectionCache, transcript: Transcript, scale: Scale, publication: Publication | None = None
) -> dict[str, Any]:
    """Return the template values of a fact-check, with links from its citations to the library.

    Raises:
        InputError: The verdict is not a label of the scale.
    """
    links = CitationLinks(library)
    quotations_by_source = quoted_texts(transcript)

    def evidence(source: PassageCitation, quotations: Sequence[str] = ()) -> Evidence | None:
        return links.evidence(
            source.collection, source.passage, quotations or quotations_by_source.get(source.number, ())
        )

    return page_values(links.transcript(transcript), scale, publication) | {"evidence": evidence}


def nearest_sentence(text: str, sentence: str) -> str:
    """Return the sentence of a text that shares the most words with ``sentence``; among equals, the shortest.

    Return an empty string if none shares at least :data:`MIN_SHARED_WORDS` words.
    """
    target_words = set(stems(sentence))

    def rank(candidate: str) -> tuple[int, int]:
        words = set(stems(candidate))
        return len(target_words & words), -len(words)

    best_sentence = max(split_sentences(text), key=rank, default="")
    return best_sentence if rank(best_sentence)[0] >= MIN_SHARED_WORDS else ""


class PageRenderer:
    """Renderer of PDF pages that limits concurrent renderings and caches the most recently used pages."""

    def __init__(self) -> None:
        self._turns = threading.BoundedSemaphore(MAX_CONCURRENT_RENDERINGS)
        self._rendered = ResultCache(MAX_CACHED_PAGES)

    def draw(self, file: Path, number: int) -> DrawnPage:
        """Return a rendered page. The page may be cached, because the file's name is a hash of its content.

        Raises:
            DocumentError: The page cannot be rendered.
        """
        return self._rendered.get((file.name, number), lambda: self._draw(file, number))

    def _draw(self, file: Path, number: int) -> DrawnPage:
        with self._turns:
            return draw_sandboxed(file, number)


@router.get("/{collection}/documents/{document_id}/original")
def download_original(app: App, user: Member, collection: str, document_id: str) -> Response:
    """Send the original file from which a document was read."""
    library = collection_cache(app)
    document = library.contents(collection).document(document_id)
    file = library.originals.find(document_id)
    if file is None:
        raise NotFound(f"The file of {document.title} was not stored.")
    return FileResponse(file, media_type="application/octet-stream", filename=document.source)


@router.get("/{collection}/documents/{document_id}/pages/{number}.png")
def send_page_image(app: App, reader: Reader, collection: str, document_id: str, number: int) -> Response:
    """Send a page of a document's PDF as a PNG image."""
    _, rendered_page = _render_page(app, collection, document_id, number)
    return Response(rendered_page.png, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


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
    """Show a page of a document's PDF and its text, with quotations from a passage marked in both.

    If this is the passage's first page and contains none of the quotations, redirect to a later page that does.
    """
    title, rendered_page = _render_page(app, collection, document_id, number)
    library = collection_cache(app)
    document_path = f"/library/{quote(collection)}/documents/{quote(document_id)}"
    query = urlencode([("passage", passage), *(("quote", quotation) for quotation in quotations)]) if passage else ""

    def address(other_number: int) -> str:
        return f"{document_path}/pages/{other_number}" + (f"?{query}" if query else "")

    cited_passage = find_passage(library, collection, passage) if passage else None
    marked_spans = find_quotations(rendered_page, cited_passage, quotations)
    if cited_passage is not None and cited_passage.document_id == document_id and quotations and not any(marked_spans):
        last_page = min(cited_passage.last_page or number, number + MAX_FURTHER_PAGES, rendered_page.pages)
        for other_number in range(number + 1, last_page + 1) if number == cited_passage.first_page else ():
            if any(
                find_quotations(_render_page(app, collection, document_id, other_number)[1], cited_passage, quotations)
            ):
                return RedirectResponse(address(other_number), 303)
    spans = [span for spans_of_quotation in marked_spans for span in spans_of_quotation]
    return page(
        request,
        "library/pdf_page.html.j2",
        collection=collection,
        document_id=document_id,
        title=title,
        cited_passage=cited_passage,
        rendered_page=rendered_page,
        image_address=f"{document_path}/pages/{number}.png",
        rectangles=[box for start, end in spans for box in rendered_page.rectangles(start, end)],
        pieces=highlight_spans(rendered_page.text, spans),
        n_found=sum(map(bool, marked_spans)),
        n_quotations=len(quotations),
        previous_address=address(number - 1) if number > 1 else None,
        next_address=address(number + 1) if number < rendered_page.pages else None,
        evidence=CitationLinks(library).evidence(collection, cited_passage, quotations) if cited_passage else None,
    )


def find_quotations(
    rendered_page: DrawnPage, passage: Passage | None, quotations: Sequence[str]
) -> list[list[tuple[int, int]]]:
    """Return the spans of each quotation in a page's text; [] if it is missing from the page or the passage."""
    text = passage.text if passage else ""
    return [
        [
            span
            for start, end in find_quoted_spans(quotation[:MAX_QUOTATION_LENGTH], text)
            for span in rendered_page.find(text[start:end], text[:start], text[end:])
        ]
        for quotation in quotations
    ]


def _render_page(app: AppState, collection: str, document_id: str, number: int) -> tuple[str, DrawnPage]:
    """Return the title of a document and a rendered page of its PDF.

    Raises:
        NotFound: The document or page does not exist, no PDF was stored, or the page cannot be rendered.
    """
    library = collection_cache(app)
    document = library.contents(collection).document(document_id)
    file = library.originals.find_pdf(document_id)
    if file is None:
        raise NotFound(f"No PDF of {document.title} was stored, so only its text can be shown.")
    try:
        rendered_page = app.shared("pdf pages", PageRenderer).draw(file, number)
    except DocumentError as error:
        raise NotFound(f"{document.title}: {error}") from None
    return library.titles().of_collection(collection)[document_id], rendered_page
