"""The page on which a text is checked sentence by sentence against collections; nothing that is sent is kept."""

from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Request
from markupsafe import Markup
from starlette.responses import Response

from climassay.api.documents import TextCheck
from climassay.confidence.overstatement import overstatement
from climassay.errors import ClimassayError, InputError
from climassay.grounding.text_check import Evidence as SentenceEvidence
from climassay.grounding.text_check import check_sentences
from climassay.metrics.entailment_head import load_entailment
from climassay.web.access import Asker
from climassay.web.app_state import App, AppState
from climassay.web.failures import Missing
from climassay.web.library.cache import found_passage, library_of
from climassay.web.library.evidence import CitationLinks, Evidence
from climassay.web.pages import as_file, page, readable_text

LONGEST_TEXT = 10_000
"""Characters of a text that is checked while somebody waits: prose takes about a second, 500 short sentences nine."""
Text = Annotated[str, Form()]
Names = Annotated[Sequence[str], Form()]

router = APIRouter(include_in_schema=False)


@router.get("/check-text")
def ask(request: Request, app: App, _user: Asker) -> Response:
    """The empty form, with all collections chosen."""
    return _page(request, app)


@router.post("/check-text")
def show(request: Request, app: App, _user: Asker, text: Text = "", collection: Names = ()) -> Response:
    """What the collections say about each sentence."""
    return _answer(request, app, text, collection, download=False)


@router.post("/check-text/report")
def download(request: Request, app: App, _user: Asker, text: Text = "", collection: Names = ()) -> Response:
    """The same as one HTML file."""
    return _answer(request, app, text, collection, download=True)


def _answer(request: Request, app: AppState, text: str, names: Sequence[str], *, download: bool) -> Response:
    text, names = readable_text(text, LONGEST_TEXT, "text"), tuple(dict.fromkeys(names))
    try:
        found = _checked(app, text, names)
    except ClimassayError as error:
        status = 400 if isinstance(error, InputError) else getattr(error, "status", 503)
        return _page(request, app, text, names, error=str(error), status=status)
    return as_file(found.page(), "checked-text.html") if download else _page(request, app, text, names, found)


def _checked(app: AppState, text: str, names: Sequence[str]) -> TextCheck:
    """A text beside collections.

    Raises:
        InputError: It is empty, or no collection is chosen.
        Missing: There is no such collection.
        ModelError: The encoder of a collection is not here.
    """
    if not text.strip():
        raise InputError("Paste a text to check.")
    if not names:
        raise InputError("Choose at least one collection to compare the text with.")
    for name in names:
        library_of(app).browse(name)
    scorer = app.shared("entailment", lambda: load_entailment(encoder=app.encoder()))
    found = check_sentences(text, app.collections(names), scorer=scorer, overstated=overstatement)
    return TextCheck("the text", tuple(names), found, scorer.name)


def _page(
    request: Request,
    app: AppState,
    text: str = "",
    names: Sequence[str] | None = None,
    found: TextCheck | None = None,
    *,
    error: str = "",
    status: int = 200,
) -> Response:
    contents = library_of(app).all_contents()
    return page(
        request,
        "checks/text.html.j2",
        status=status,
        text=text,
        error=error,
        collections=contents,
        chosen=[one.name for one in contents] if names is None else names,
        found=found,
        # Escaped by the template of the report.
        sentences=Markup(found.sentences_html(_places(app, found))) if found else "",
        longest=LONGEST_TEXT,
    )


def _places(app: AppState, found: TextCheck) -> Callable[[SentenceEvidence], Evidence | None]:
    """Where the evidence of each sentence can be looked at, with its quotation marked."""
    library = library_of(app)
    links = CitationLinks(library)

    def place(evidence: SentenceEvidence) -> Evidence | None:
        for name in found.collections:
            try:
                passage = found_passage(library, name, evidence.passage)
            except Missing:
                continue
            return links.evidence(name, passage, [evidence.quotation] if evidence.quotation else ())
        return None

    return place
