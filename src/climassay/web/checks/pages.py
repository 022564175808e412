"""The pages of checks: a claim with its debate, verdict, reviews and files; past checks; a text by its sentences."""

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request
from markupsafe import Markup
from starlette.responses import Response

from climassay.api.documents import TextCheck
from climassay.confidence.overstatement import overstatement
from climassay.errors import ClimassayError, InputError
from climassay.factcheck import factcheck_page
from climassay.factcheck.check_store import (
    MAX_CLAIM_LENGTH,
    MAX_COMMENT_LENGTH,
    MAX_SOURCE_LENGTH,
    PAGE_SIZE,
    StoredCheck,
    check_data,
)
from climassay.factcheck.configuration import CheckFilter, Reviewed
from climassay.factcheck.fallacies import CLAIMS, GROUPS
from climassay.factcheck.results.page import shared_values
from climassay.factcheck.scales import load_scale
from climassay.grounding.text_check import Evidence as SentenceEvidence
from climassay.grounding.text_check import check_sentences
from climassay.reporting.results import csv_lines, write_workbook
from climassay.web.access import Annotator, Reader
from climassay.web.accounts import User
from climassay.web.app_state import App, AppState
from climassay.web.checks.debate import DebateProgress, LiveDebate, check_claim, live_debate, seconds_left
from climassay.web.checks.store import (
    KIND,
    LONGEST_DATE,
    ClaimForm,
    begin_again,
    begin_check,
    checks_of,
    chosen,
    claim_review_data,
    claim_review_of,
    end_check,
    found_check,
    may_begin_again,
    may_stop,
    send_forgotten,
    set_ups,
    similar_checks,
)
from climassay.web.failures import Missing, SignInNeeded, plainly
from climassay.web.jobs import Job
from climassay.web.library.cache import found_passage, library_of
from climassay.web.library.evidence import CitationLinks, Evidence, check_values
from climassay.web.pages import PageNumber, as_file, back_to, page, part_of, readable_text
from climassay.web.redaction import Redactor

router = APIRouter(include_in_schema=False)
_NAMES = {"words": "q"}
"""Names of filters in addresses, where they differ."""
FORMS = ("csv", "xlsx", "jsonl")
COLUMNS = (
    "id", "claim", "source", "date", "verdict", "outcome", "state", "failure", "topic", "topic_in_words",
    "collections", "asked_at", "asked_by", "ended_at", "seconds", "setup", "run", "reviewed", "agree", "disagree",
    "undecided", "page",
)  # fmt: skip
"""Columns of a table of checks."""
_BLOCK = 2**16
"""Bytes of a workbook that are sent at a time."""
LONGEST_TEXT = 10_000
"""Characters of a text that is checked while somebody waits: prose takes about a second, 500 short sentences nine."""
Text = Annotated[str, Form()]
Names = Annotated[Sequence[str], Form()]


def register(app: AppState) -> None:
    """Make the tables, say how a claim is checked, and queue what a kill kept from being queued.

    Raises:
        InputError: A file that sets up debates cannot be read.
    """
    checks_of(app)
    set_ups(app)
    app.jobs.register(KIND, check_claim, "models")
    send_forgotten(app)


@router.get("/check")
def ask(request: Request, app: App, _user: Reader, claim: str = "", source: str = "", date: str = "") -> Response:
    """Show the form with the claim of a link filled in; without an account, a link to sign in."""
    asked = ClaimForm(
        claim=claim[: 2 * MAX_CLAIM_LENGTH], source=source[: 2 * MAX_SOURCE_LENGTH], date=date[:LONGEST_DATE]
    )
    return _form(request, app, asked)


@router.post("/check")
def submit_claim(request: Request, app: App, user: Annotator, asked: Annotated[ClaimForm, Form()]) -> Response:
    """Begin a check; where the claim was checked before, show that first."""
    try:
        made, wanted = asked.cleaned(), chosen(app, asked.setup)
    except InputError as error:
        return _form(request, app, asked, error=str(error), status=400)
    checks = checks_of(app)
    under_way = checks.find_waiting(made, user.name, wanted.name)
    if under_way is not None:
        return back_to(f"/checks/{under_way}")
    past = [] if asked.anyway else similar_checks(app, made.text)
    if past:
        known = checks.ids_by_run([one.run for one in past])
        return page(request, "checks/past.html.j2", asked=asked, claim=made, past=past, known=known)
    return back_to(f"/checks/{begin_check(app, user, made, wanted)}")


def _form(request: Request, app: AppState, asked: ClaimForm, *, error: str = "", status: int = 200) -> Response:
    return page(
        request,
        "checks/ask.html.j2",
        status=status,
        asked=asked,
        error=error,
        choices=set_ups(app),
        longest_claim=MAX_CLAIM_LENGTH,
        longest_source=MAX_SOURCE_LENGTH,
        longest_date=LONGEST_DATE,
    )


@router.get("/checks/{check}")
def show(request: Request, app: App, user: Reader, check: str) -> Response:
    """A check: its debate so far while it goes on, the verdict and everything behind it afterwards."""
    kept, job = found_check(app, check)
    called = names_for(app, user)
    common: dict[str, Any] = {
        "about": kept.about,
        "settings": kept.settings,
        "asker": called(kept.about.by),
        "repeatable": may_begin_again(user, kept),
    }
    if kept.transcript is None:
        stoppable = kept.about.state == "waiting" and may_stop(user, kept.about)
        values = _live_values(app, kept, job)
        return page(request, "checks/live.html.j2", job=job, stoppable=stoppable, **common, **values)
    reviews = checks_of(app).reviews(check)
    mine = [one for one in reviews if user is not None and one.by == user.name]
    return page(
        request,
        "checks/verdict.html.j2",
        reviews=[(called(one.by), one) for one in reviews],
        mine=mine[-1] if mine else None,
        longest_comment=MAX_COMMENT_LENGTH,
        claim_review=claim_review_data(app, kept),
        **common,
        **check_values(library_of(app), kept.transcript, load_scale(kept.settings.scale)),
    )


@router.get("/checks/{check}/debate")
def show_news(request: Request, app: App, _user: Reader, check: str, after: int = 0) -> Response:
    """What has happened in a debate since an event: a piece of the page, made by the template that makes the page."""
    kept, job = found_check(app, check)
    return page(request, "checks/news.html.j2", settings=kept.settings, **_live_values(app, kept, job, after))


@router.post("/checks/{check}/stop")
def stop(app: App, user: Annotator, check: str) -> Response:
    """End a check that goes on."""
    end_check(app, user, check)
    return back_to(f"/checks/{check}")


@router.post("/checks/{check}/again")
def ask_again(app: App, user: Annotator, check: str) -> Response:
    """Go on with a check that broke or was stopped; what was answered is not asked again."""
    begin_again(app, user, check)
    return back_to(f"/checks/{check}")


def _live_values(app: AppState, kept: StoredCheck, job: Job | None, after: int = 0) -> dict[str, Any]:
    settings = kept.settings
    debate = live_debate(app.jobs, job.id, settings) if job else LiveDebate((), (), 0, DebateProgress(settings))
    numbers = {source.number for source in debate.sources}
    elapsed = None if debate.began is None else max(0.0, time.time() - debate.began)
    past = checks_of(app).durations(settings.model, len(settings.advocates))
    return {
        **shared_values(load_scale(settings.scale), numbers),
        "entries": debate.after(after),
        "last": debate.last,
        "progress": debate.progress,
        "elapsed": elapsed,
        "left": None if elapsed is None else seconds_left(past, elapsed),
        "past": len(past),
    }


@router.post("/checks/{check}/review")
def review(
    app: App,
    user: Annotator,
    check: str,
    opinion: Annotated[str, Form()] = "undecided",
    comment: Annotated[str, Form()] = "",
) -> Response:
    """Agree, disagree or comment; a later word of the same person appears in place of the first."""
    found_check(app, check)
    # Browsers send line ends as CR and LF.
    checks_of(app).review(check, user.name, opinion, comment.replace("\r\n", "\n"))
    return back_to(f"/checks/{check}#reviews")


@router.get("/checks/{check}/check.json")
def download_data(app: App, user: Reader, check: str) -> Response:
    """What was asked, the whole debate, and what people said about it."""
    kept, _ = found_check(app, check)
    data = shown_to(user, check_data(kept, checks_of(app).reviews(check)), names_for(app, user))
    return as_file(json.dumps(data, ensure_ascii=False, indent=2), f"{check}.json")


@router.get("/checks/{check}/claimreview.json")
def download_claim_review(app: App, _user: Reader, check: str) -> Response:
    """The verdict as schema.org ClaimReview."""
    result = json.dumps(claim_review_of(app, check), ensure_ascii=False, indent=2)
    return as_file(result, f"{check}.claimreview.json", "application/ld+json")


@router.get("/checks/{check}/page.html")
def download_page(app: App, _user: Reader, check: str) -> Response:
    """The fact-check as one file that asks nothing of any server."""
    kept, _ = found_check(app, check)
    if kept.transcript is None:
        raise Missing("This check has no result, so it has no page.")
    transcript = CitationLinks(library_of(app)).transcript(kept.transcript)
    return as_file(factcheck_page(transcript, load_scale(kept.settings.scale)), f"{check}.html")


def wanted_checks(user: Reader, wanted: Annotated[CheckFilter, Depends()]) -> CheckFilter:
    """Which checks a list shows.

    Raises:
        SignInNeeded: Who reviewed what is for people with an account.
    """
    if wanted.reviewer and user is None:
        raise SignInNeeded("Please sign in to see who has reviewed what.")
    return wanted


WantedChecks = Annotated[CheckFilter, Depends(wanted_checks)]


@router.get("/checks")
def show_all(request: Request, app: App, user: Reader, wanted: WantedChecks, number: PageNumber = 1) -> Response:
    """Checks that fit, the newest first, fifty a page."""
    checks = checks_of(app)
    result = checks.list(wanted, number)
    given = {_NAMES.get(one.name, one.name): getattr(wanted, one.name) for one in fields(wanted)}
    asked = urlencode({name: value for name, value in given.items() if value})
    called = names_for(app, user)
    topics = {group: [one for one in checks.topics() if one.partition(".")[0] == group] for group in GROUPS}
    reviewers = {name: called(name) for name in checks.reviewers()} if user else {}
    return page(
        request,
        "checks/list.html.j2",
        found=result,
        part=part_of(result.checks, number, result.total, PAGE_SIZE, "/checks", given),
        given=given,
        asked=asked,
        said=_in_words(wanted, reviewers),
        verdicts=checks.verdicts(),
        reviewed=get_args(Reviewed),
        topics=[(group, GROUPS[group], claims) for group, claims in topics.items() if claims],
        claims=CLAIMS,
        collections=checks.collections(),
        reviewers=reviewers,
        forms=FORMS,
        agreement=checks.agreement(),
    )


def _in_words(wanted: CheckFilter, reviewers: Mapping[str, str]) -> list[str]:
    """What was asked for, filter by filter."""
    topic = CLAIMS.get(wanted.topic) or GROUPS.get(wanted.topic) or wanted.topic
    said = {
        f"the words \u201c{wanted.words}\u201d": wanted.words,
        f"the verdict \u201c{wanted.verdict}\u201d": wanted.verdict,
        f"reviews: {wanted.review}": wanted.review,
        f"the contrarian claim \u201c{topic}\u201d": wanted.topic,
        f"evidence from {wanted.collection}": wanted.collection,
        f"\u201c{wanted.source}\u201d as its source": wanted.source,
        f"from {wanted.since} on": wanted.since,
        f"until {wanted.until}": wanted.until,
        f"reviewed by {reviewers.get(wanted.reviewer, wanted.reviewer)}": wanted.reviewer,
    }
    return [words for words, asked in said.items() if asked]


@router.get("/checks.{form}")
def download_all(request: Request, app: App, user: Reader, wanted: WantedChecks, form: str) -> Response:
    """All checks that fit, the newest first: a row each, or as JSON lines with every word of the debates."""
    if form not in FORMS:
        raise Missing(f"Checks are available as {', '.join(FORMS)}, not as {form[:20]}.")
    checks = checks_of(app)
    checks.newest(wanted, limit=1)  # What cannot be asked for is told before anything is sent.
    name = f"checks.{form}"
    called = names_for(app, user)
    results = (shown_to(user, one, called) for one in checks.iterate(wanted, debates=form == "jsonl"))
    if form == "jsonl":
        return as_file((json.dumps(one, ensure_ascii=False) + "\n" for one in results), name)

    def row(check: Mapping[str, Any]) -> dict[str, Any]:
        failure, topic = check["error"] and plainly(check["error"]), CLAIMS.get(check["topic"] or "")
        more = {"failure": failure, "topic_in_words": topic, "page": f"{app.settings.root}/checks/{check['id']}"}
        return {name: more[name] if name in more else check[name] for name in COLUMNS}

    rows: Iterable[dict[str, Any]] = map(row, results)
    if form == "csv":
        return as_file(csv_lines(COLUMNS, rows), name)
    if user is None:
        # Nobody can take anything out of a workbook that is on its way to the public.
        redactor = Redactor(app)

        def public(cell: Any) -> Any:
            return redactor.redact(cell.encode("utf-8", "replace")).decode("utf-8", "replace")

        rows = ({key: public(cell) if isinstance(cell, str) else cell for key, cell in one.items()} for one in rows)

    def workbook() -> Iterator[bytes]:
        with tempfile.TemporaryFile() as file:
            write_workbook(file, COLUMNS, rows)
            file.seek(0)
            while block := file.read(_BLOCK):
                yield block

    return as_file(workbook(), name)


def shown_to(viewer: User | None, check: dict[str, Any], name: Callable[[str | None], str]) -> dict[str, Any]:
    """A check as data, with the names of people as :func:`names_for` has them."""
    if viewer is None:
        check["asked_by"] = name(check["asked_by"]) or None
        for said in check.get("reviews", ()):
            said["by"] = name(said["by"])
    return check


def names_for(app: AppState, viewer: User | None) -> Callable[[str | None], str]:
    """How people are called before a viewer; empty for somebody without an account.

    The name that somebody signs in by is for those who have an account themselves.
    """
    known = {one.name: one.shown for one in app.accounts.users()}

    def shown(name: str | None) -> str:
        if name is None:
            return ""
        result = known.get(name, name)
        return "somebody with an account" if viewer is None and result == name else result

    return shown


@router.get("/check-text")
def ask_text(request: Request, app: App, _user: Reader) -> Response:
    """Show the empty form with all collections chosen; without an account, a link to sign in."""
    return _text_page(request, app)


@router.post("/check-text")
def show_text(request: Request, app: App, _user: Annotator, text: Text = "", collection: Names = ()) -> Response:
    """What the collections say about each sentence."""
    return _text_answer(request, app, text, collection, download=False)


@router.post("/check-text/report")
def download_text(request: Request, app: App, _user: Annotator, text: Text = "", collection: Names = ()) -> Response:
    """The same as one HTML file."""
    return _text_answer(request, app, text, collection, download=True)


def check_text(app: AppState, text: str, names: Sequence[str]) -> TextCheck:
    """Compare each sentence of a text with collections.

    Raises:
        InputError: The text is empty, or no collection is named.
        TooLarge: The text is too long.
        Missing: A collection does not exist.
        ModelError: The encoder of a collection is not installed.
    """
    text, names = readable_text(text, LONGEST_TEXT, "text"), tuple(dict.fromkeys(names))
    if not text.strip():
        raise InputError("Paste a text to check.")
    if not names:
        raise InputError("Choose at least one collection to compare the text with.")
    for name in names:
        library_of(app).browse(name)
    sentences = check_sentences(text, app.collections(names), overstated=overstatement)
    return TextCheck("the text", names, sentences)


def _text_answer(request: Request, app: AppState, text: str, names: Sequence[str], *, download: bool) -> Response:
    text = readable_text(text, LONGEST_TEXT, "text")
    try:
        found = check_text(app, text, names)
    except ClimassayError as error:
        status = 400 if isinstance(error, InputError) else getattr(error, "status", 503)
        return _text_page(request, app, text, names, error=str(error), status=status)
    return as_file(found.page(), "checked-text.html") if download else _text_page(request, app, text, names, found)


def _text_page(
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
