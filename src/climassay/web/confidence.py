"""Tab "Confidence language" of "Check a text": terms of certainty in a draft, and the likely level of a statement."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.confidence.linting import RULES
from climassay.confidence.tagging.opened import OpenedTagger, open_tagger, rank_levels
from climassay.errors import ClimassayError, InputError
from climassay.learning import reweight
from climassay.web.access import Asker, Reader
from climassay.web.app_state import App, AppState
from climassay.web.failures import Failure, TooLarge
from climassay.web.pages import clean_text, page
from climassay.web.text_checks import FINDINGS, find_in_draft
from climassay.web.text_processes import HasLeft

MAX_TEXT_LENGTH = 20_000
"""Maximum length of a draft in characters."""
MAX_STATEMENT_LENGTH = 1_000
MAX_CONTEXT_LENGTH = 4_000
TAGGER_KEY = "confidence-tagger"
"""Key of the tagger among the objects that all requests to the server share."""
NATURAL_HINT = "Use this for text like that of the reports, where one level is far more frequent than the others"
EQUAL_HINT = "Use this for a single statement of your own, or to find rare levels"

router = APIRouter(include_in_schema=False)


@router.get("/confidence")
def show_forms(request: Request, app: App, _user: Reader) -> Response:
    """Show the empty forms; visitors without an account get a link to sign in."""
    return _page(request, app)


@router.post("/confidence")
def check_text(
    request: Request, app: App, user: Asker, has_left: HasLeft, text: Annotated[str, Form()] = ""
) -> Response:
    """Check how a draft states confidence and likelihood, and show the findings."""
    try:
        text = clean_text(text, MAX_TEXT_LENGTH, "text")
        if not text.strip():
            raise InputError("Paste a text to check.")
        result = app.text_processes.call(user, find_in_draft, text, has_left=has_left)
    except (Failure, InputError) as error:
        status = getattr(error, "status", 400)
        return _page(request, app, fields={"text": text}, error=str(error), status=status)
    return _page(request, app, fields={"text": text}, checked=FINDINGS.validate_python(result))


@router.post("/confidence/statement")
def tag_statement(
    request: Request,
    app: App,
    _user: Asker,
    statement: Annotated[str, Form()] = "",
    context: Annotated[str, Form()] = "",
) -> Response:
    """Estimate the level of confidence with which an IPCC report would make a statement, and show it."""
    fields = {"statement": statement, "context": context}
    try:
        statement = " ".join(clean_text(statement, MAX_STATEMENT_LENGTH, "statement").split())
        context = " ".join(clean_text(context, MAX_CONTEXT_LENGTH, "context").split())
    except TooLarge as error:
        return _page(request, app, fields=fields, statement_error=str(error), status=error.status)
    fields = {"statement": statement, "context": context}
    tagger_or_error = _load_tagger(app)
    if not any(char.isalpha() for char in statement):
        return _page(request, app, fields=fields, statement_error="Write a statement.", status=400)
    if not isinstance(tagger_or_error, OpenedTagger):
        return _page(request, app, fields=fields, statement_error=tagger_or_error, status=503)
    tagger = tagger_or_error.tagger
    try:
        row = tagger.predict_proba([(statement, context)])[0]
    except ClimassayError as error:
        status = 400 if isinstance(error, InputError) else 503
        return _page(request, app, fields=fields, statement_error=str(error), status=status)
    variants = [("An IPCC report would most probably say", NATURAL_HINT, row, tagger_or_error.accuracy)]
    if tagger_or_error.shares is not None:
        equal_probabilities = reweight(row, tagger_or_error.shares)
        variants.append(
            ("If all levels were equally frequent", EQUAL_HINT, equal_probabilities, tagger_or_error.equal_accuracy)
        )
    estimates = []
    for label, hint, probabilities, accuracy in variants:
        levels = rank_levels(probabilities, tagger.levels)
        best_level = max(levels, key=lambda pair: pair[1])[0]
        estimates.append({"words": label, "when": hint, "levels": levels, "best": best_level, "accuracy": accuracy})
    return _page(request, app, fields=fields, estimates=estimates)


def _page(request: Request, app: AppState, *, fields: Mapping[str, str] | None = None, **values: Any) -> Response:
    tagger_or_error = _load_tagger(app)
    defaults = {"error": "", "statement_error": "", "estimates": (), "checked": None} | values
    return page(
        request,
        "confidence/check.html.j2",
        fields={"text": "", "statement": "", "context": "", **(fields or {})},
        rules=RULES,
        tagger=tagger_or_error if isinstance(tagger_or_error, OpenedTagger) else None,
        no_tagger="" if isinstance(tagger_or_error, OpenedTagger) else tagger_or_error,
        max_length={"text": MAX_TEXT_LENGTH, "statement": MAX_STATEMENT_LENGTH, "context": MAX_CONTEXT_LENGTH},
        **defaults,
    )


def _load_tagger(app: AppState) -> OpenedTagger | str:
    """Return the server's tagger, loading it on first use, or the error message if it cannot be loaded."""

    def load() -> OpenedTagger | str:
        try:
            return open_tagger(encoder=app.encoder)
        except ClimassayError as error:
            return str(error)

    return app.shared(TAGGER_KEY, load)
