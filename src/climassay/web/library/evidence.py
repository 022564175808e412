"""From a citation to what it rests on: the passage and the printed page, with the quoted words marked in both."""

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
from climassay.factcheck.results.page import page_values, quoted_texts
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import PassageCitation, Transcript
from climassay.grounding.citations import quoted_spans
from climassay.reporting.marking import mark_spans, stems
from climassay.web.access import Annotator, Reader
from climassay.web.app_state import App, AppState, ResultCache
from climassay.web.failures import Missing
from climassay.web.library.cache import CollectionCache, found_passage, library_of
from climassay.web.pages import page

router = APIRouter(prefix="/library", include_in_schema=False)
MOST_QUOTATIONS = 12
LONGEST_QUOTATION = 2000
"""Characters; of more the beginning is looked for."""
DRAWN_AT_ONCE = 2
KEPT_PAGES = 24
FURTHER_PAGES = 2
"""Pages after the first of a passage that are looked at for words which are not on the first."""
FEWEST_SHARED = 2
"""Words that a sentence must share with another one to be the one it rests on."""

Quotations = Annotated[list[str], Query(alias="quote", max_length=MOST_QUOTATIONS, default_factory=list)]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the passage of a citation can be looked at."""

    passage: str
    """Address of its page in the library."""
    document: str
    """Address of its document there."""
    page: str | None
    """Address of the printed page; None where the file is not kept or has no pages."""
    page_words: str
    """Name of the printed page."""


class CitationLinks:
    """Where the citations of one page lead, as the library is when the page is made."""

    def __init__(self, library: CollectionCache) -> None:
        self._titles = library.titles()
        self._originals = library.originals

    def evidence(self, collection: str, passage: Passage, quotations: Iterable[str] = ()) -> Evidence | None:
        """Where a passage can be looked at, with quotations marked; None where its document is there no more."""
        if passage.document_id not in self._titles.of(collection):
            return None
        given = [("quote", one[:LONGEST_QUOTATION]) for one in quotations][:MOST_QUOTATIONS]
        top = f"/library/{quote(collection)}"
        document = f"{top}/documents/{quote(passage.document_id)}"
        address = f"{top}/passages/{quote(passage.id)}" + (f"?{urlencode(given)}" if given else "")
        first, last = passage.first_page, passage.last_page
        if first is None or self._originals.find_pdf(passage.document_id) is None:
            return Evidence(address, document, None, "")
        words = f"Page {first} of the PDF" if last in (None, first) else f"Pages {first} to {last} of the PDF"
        printed = f"{document}/pages/{first}?{urlencode([('passage', passage.id), *given])}"
        return Evidence(address, document, printed, words)

    def current(self, source: PassageCitation) -> PassageCitation:
        """A citation under the title that its document goes by today."""
        return replace(source, passage=self._titles.titled(source.collection, source.passage))

    def transcript(self, transcript: Transcript) -> Transcript:
        """A fact-check whose passages go by the titles that their documents have today."""
        return replace(transcript, sources=tuple(map(self.current, transcript.sources)))


def check_values(library: CollectionCache, transcript: Transcript, scale: Scale) -> dict[str, Any]:
    """What a page needs to show a fact-check with links from each citation to where it can be looked at.

    Raises:
        InputError: The verdict is not one of the scale's labels.
    """
    links = CitationLinks(library)
    quoted = quoted_texts(transcript)

    def evidence(source: PassageCitation, quotations: Sequence[str] = ()) -> Evidence | None:
        return links.evidence(source.collection, source.passage, quotations or quoted.get(source.number, ()))

    return page_values(links.transcript(transcript), scale) | {"evidence": evidence}


def nearest_sentence(text: str, sentence: str) -> str:
    """The sentence of a text that shares most words with another one, the shortest of them; empty where none does."""
    wanted = set(stems(sentence))

    def shared(one: str) -> tuple[int, int]:
        words = set(stems(one))
        return len(wanted & words), -len(words)

    best = max(split_sentences(text), key=shared, default="")
    return best if shared(best)[0] >= FEWEST_SHARED else ""


class PageDrawer:
    """Draws pages of PDF files, a few at a time, and keeps those that were drawn last."""

    def __init__(self) -> None:
        self._turns = threading.BoundedSemaphore(DRAWN_AT_ONCE)
        self._drawn = ResultCache(KEPT_PAGES)

    def draw(self, file: Path, number: int) -> DrawnPage:
        """A page; a file's name tells its content.

        Raises:
            DocumentError: It cannot be drawn.
        """
        return self._drawn.get((file.name, number), lambda: self._draw(file, number))

    def _draw(self, file: Path, number: int) -> DrawnPage:
        with self._turns:
            return draw_sandboxed(file, number)


@router.get("/{collection}/documents/{document_id}/original")
def download_original(app: App, user: Annotator, collection: str, document_id: str) -> Response:
    """The file that a document was read from, for people with an account."""
    library = library_of(app)
    document = library.contents(collection).document(document_id)
    file = library.originals.find(document_id)
    if file is None:
        raise Missing(f"The file of {document.title} was not stored.")
    return FileResponse(file, media_type="application/octet-stream", filename=document.source)


@router.get("/{collection}/documents/{document_id}/pages/{number}.png")
def page_picture(app: App, reader: Reader, collection: str, document_id: str, number: int) -> Response:
    """A page of a PDF as a picture."""
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
    """A page of a PDF as it is printed, with its text; words that are quoted from a passage are marked in both."""
    title, drawn = _drawn(app, collection, document_id, number)
    library = library_of(app)
    here = f"/library/{quote(collection)}/documents/{quote(document_id)}"
    query = urlencode([("passage", passage), *(("quote", one) for one in quotations)]) if passage else ""

    def address(other: int) -> str:
        return f"{here}/pages/{other}" + (f"?{query}" if query else "")

    cited = found_passage(library, collection, passage) if passage else None
    marks = marks_on(drawn, cited, quotations)
    if cited is not None and cited.document_id == document_id and quotations and not any(marks):
        last = min(cited.last_page or number, number + FURTHER_PAGES, drawn.pages)
        for other in range(number + 1, last + 1) if number == cited.first_page else ():
            if any(marks_on(_drawn(app, collection, document_id, other)[1], cited, quotations)):
                return RedirectResponse(address(other), 303)
    spans = [span for places in marks for span in places]
    return page(
        request,
        "library/pdf_page.html.j2",
        collection=collection,
        document_id=document_id,
        title=title,
        cited=cited,
        drawn=drawn,
        picture=f"{here}/pages/{number}.png",
        rectangles=[box for start, end in spans for box in drawn.rectangles(start, end)],
        pieces=mark_spans(drawn.text, spans),
        found=sum(map(bool, marks)),
        wanted=len(quotations),
        before=address(number - 1) if number > 1 else None,
        after=address(number + 1) if number < drawn.pages else None,
        evidence=CitationLinks(library).evidence(collection, cited, quotations) if cited else None,
    )


def marks_on(drawn: DrawnPage, cited: Passage | None, quotations: Sequence[str]) -> list[list[tuple[int, int]]]:
    """Where on a page the words of each quotation stand; none for one that is not there, or not in its passage."""
    text = cited.text if cited else ""
    return [
        [
            place
            for start, end in quoted_spans(one[:LONGEST_QUOTATION], text)
            for place in drawn.find(text[start:end], text[:start], text[end:])
        ]
        for one in quotations
    ]


def _drawn(app: AppState, collection: str, document_id: str, number: int) -> tuple[str, DrawnPage]:
    """The title of a document, and a page of its PDF file.

    Raises:
        Missing: There is no such document or page, its file is not kept, or it cannot be drawn.
    """
    library = library_of(app)
    document = library.contents(collection).document(document_id)
    file = library.originals.find_pdf(document_id)
    if file is None:
        raise Missing(f"No PDF of {document.title} was stored, so only its text can be shown.")
    try:
        drawn = app.shared("pdf pages", PageDrawer).draw(file, number)
    except DocumentError as error:
        raise Missing(f"{document.title}: {error}") from None
    return library.titles().of(collection)[document_id], drawn
