"""The page on which a text or a statement is pasted, and what is found in it."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, UploadFile
from starlette.responses import Response

from climassay.confidence.linting import RULES, Checked, Draft, check, draft_of
from climassay.confidence.linting.checking import OpenedTagger, levels_of, open_tagger
from climassay.confidence.linting.draft import paged_draft
from climassay.confidence.linting.presentation import finding_views, pieces
from climassay.corpus.documents import MEBIBYTE, ReadOptions
from climassay.corpus.readers.sandboxed_reader import read_sandboxed
from climassay.errors import ClimassayError, InputError
from climassay.learning import reweighted
from climassay.web.access import Reader
from climassay.web.app_state import App, AppState
from climassay.web.failures import TooLarge
from climassay.web.library.uploads import shown_name
from climassay.web.pages import page, readable_text

LONGEST_TEXT = 20_000
"""Characters of a text that is checked."""
LARGEST_FILE = 5 * MEBIBYTE
"""Bytes of a Word file that is checked, packed."""
LONGEST_FILE = 200_000
"""Characters of its text."""
LONGEST_STATEMENT = 1_000
LONGEST_CONTEXT = 4_000
KINDS = {"markdown": "Markdown", "text": "plain text"}
TAGGER = "confidence-tagger"
"""What a server keeps the tagger by."""
NATURAL = "Use this for text like that of the reports, where one level is far more frequent than the others"
EQUAL = "Use this for a single statement of your own, or to find rare levels"

router = APIRouter(include_in_schema=False)


@router.get("/confidence")
def show(request: Request, app: App, _user: Reader) -> Response:
    """The empty forms."""
    return _page(request, app)


@router.post("/confidence")
def check_text(
    request: Request,
    app: App,
    _user: Reader,
    text: Annotated[str, Form()] = "",
    kind: Annotated[str, Form()] = "markdown",
) -> Response:
    """What is found in a text."""
    asked = {"text": readable_text(text, LONGEST_TEXT, "text"), "kind": kind}
    if kind not in KINDS:
        raise InputError(f"The format must be one of {', '.join(KINDS)}, not {kind[:40]!r}.")
    if not asked["text"].strip():
        return _page(request, app, asked=asked, error="Paste a text to check.", status=400)
    return _page(request, app, asked=asked, checked=check(draft_of(asked["text"], kind)))


@router.post("/confidence/file")
def check_file(request: Request, app: App, _user: Reader, file: UploadFile) -> Response:
    """What is found in a Word file."""
    try:
        draft = _word_draft(file)
    except InputError as error:
        return _page(request, app, file_error=str(error), status=400)
    return _page(request, app, checked=check(draft))


def _word_draft(file: UploadFile) -> Draft:
    """A Word file that somebody sent, read in a process of its own and not kept.

    Raises:
        TooLarge: It has more bytes or more text than is taken.
        InputError: It is not a Word file, or cannot be read.
    """
    name = shown_name(file.filename or "")
    if not name.lower().endswith(".docx"):
        raise InputError("Choose a Word file, whose name ends in .docx.")
    data = file.file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise TooLarge(f"{name} is larger than {LARGEST_FILE // MEBIBYTE} MB: check it with climassay confidence lint.")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "draft.docx"
        path.write_bytes(data)
        result = read_sandboxed(path, ReadOptions(max_bytes=20 * LARGEST_FILE), source=name)
    if not result.documents:
        raise InputError(result.skipped[0].reason if result.skipped else f"{name} has no text.")
    draft = paged_draft(result.documents[0], name)
    if len(draft.text) > LONGEST_FILE:
        raise TooLarge(
            f"{name} has {len(draft.text):,} characters, and the limit is {LONGEST_FILE:,}: send it in parts."
        )
    return draft


@router.post("/confidence/statement")
def tag_statement(
    request: Request,
    app: App,
    _user: Reader,
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
    shown = {"error": "", "file_error": "", "statement_error": "", "estimates": ()} | values
    return page(
        request,
        "confidence/check.html.j2",
        asked={"text": "", "kind": "markdown", "statement": "", "context": "", **(asked or {})},
        kinds=KINDS,
        checked=checked,
        pieces=pieces(checked) if checked else (),
        findings=finding_views(checked) if checked else (),
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
