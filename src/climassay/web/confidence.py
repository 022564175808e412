"""The tab of "Check a text" on which a draft's terms and the level of a statement are checked."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.confidence.linting import RULES, Checked, check, draft_of
from climassay.confidence.linting.presentation import pieces
from climassay.confidence.tagging.opened import OpenedTagger, levels_of, open_tagger
from climassay.errors import ClimassayError, InputError
from climassay.learning import reweighted
from climassay.web.access import Annotator, Reader
from climassay.web.app_state import App, AppState
from climassay.web.pages import page, readable_text

LONGEST_TEXT = 20_000
"""Characters of a text that is checked."""
LONGEST_STATEMENT = 1_000
LONGEST_CONTEXT = 4_000
TAGGER = "confidence-tagger"
"""Name under which a server keeps the tagger."""
NATURAL = "Use this for text like that of the reports, where one level is far more frequent than the others"
EQUAL = "Use this for a single statement of your own, or to find rare levels"

router = APIRouter(include_in_schema=False)


@router.get("/confidence")
def show(request: Request, app: App, _user: Reader) -> Response:
    """Show the empty forms; without an account, a link to sign in."""
    return _page(request, app)


@router.post("/confidence")
def check_text(request: Request, app: App, _user: Annotator, text: Annotated[str, Form()] = "") -> Response:
    """Show what is found in a text."""
    text = readable_text(text, LONGEST_TEXT, "text")
    if not text.strip():
        return _page(request, app, asked={"text": text}, error="Paste a text to check.", status=400)
    return _page(request, app, asked={"text": text}, checked=check(draft_of(text)))


@router.post("/confidence/statement")
def tag_statement(
    request: Request,
    app: App,
    _user: Annotator,
    statement: Annotated[str, Form()] = "",
    context: Annotated[str, Form()] = "",
) -> Response:
    """How confident reports would sound about a statement."""
    statement = " ".join(readable_text(statement, LONGEST_STATEMENT, "statement").split())
    context = " ".join(readable_text(context, LONGEST_CONTEXT, "context").split())
    asked = {"statement": statement, "context": context}
    opened = _tagger(app)
    if not any(char.isalpha() for char in statement):
        return _page(request, app, asked=asked, statement_error="Write a statement.", status=400)
    if not isinstance(opened, OpenedTagger):
        return _page(request, app, asked=asked, statement_error=opened, status=503)
    tagger = opened.tagger
    try:
        row = tagger.predict_proba([(statement, context)])[0]
    except ClimassayError as error:
        status = 400 if isinstance(error, InputError) else 503
        return _page(request, app, asked=asked, statement_error=str(error), status=status)
    mixes = [("An IPCC report would most probably say", NATURAL, row, opened.accuracy)]
    if opened.shares is not None:
        even = reweighted(row, opened.shares)
        mixes.append(("If all levels were equally frequent", EQUAL, even, opened.equal_accuracy))
    estimates = []
    for words, when, given, accuracy in mixes:
        levels = levels_of(given, tagger.levels)
        best = max(levels, key=lambda pair: pair[1])[0]
        estimates.append({"words": words, "when": when, "levels": levels, "best": best, "accuracy": accuracy})
    return _page(request, app, asked=asked, estimates=estimates)


def _page(request: Request, app: AppState, *, asked: Mapping[str, str] | None = None, **values: Any) -> Response:
    checked: Checked | None = values.pop("checked", None)
    opened = _tagger(app)
    shown = {"error": "", "statement_error": "", "estimates": ()} | values
    return page(
        request,
        "confidence/check.html.j2",
        asked={"text": "", "statement": "", "context": "", **(asked or {})},
        checked=checked,
        pieces=pieces(checked) if checked else (),
        findings=checked.findings if checked else (),
        rules=RULES,
        tagger=opened if isinstance(opened, OpenedTagger) else None,
        no_tagger="" if isinstance(opened, OpenedTagger) else opened,
        longest={"text": LONGEST_TEXT, "statement": LONGEST_STATEMENT, "context": LONGEST_CONTEXT},
        **shown,
    )


def _tagger(app: AppState) -> OpenedTagger | str:
    """The tagger of this server, opened once; or why there is none."""

    def opened() -> OpenedTagger | str:
        try:
            return open_tagger(encoder=app.encoder)
        except ClimassayError as error:
            return str(error)

    return app.shared(TAGGER, opened)
