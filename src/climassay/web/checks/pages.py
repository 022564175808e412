"""Pages of checks: a claim with its debate, verdict, reviews and downloads; past checks; and checks of texts."""

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request
from markupsafe import Markup
from starlette.responses import Response

from climassay.errors import ClimassayError, InputError
from climassay.factcheck import factcheck_page
from climassay.factcheck.check_records import (
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
from climassay.factcheck.transcript import as_data, from_data
from climassay.grounding.text_check import PassageEvidence as SentenceEvidence
from climassay.grounding.text_check_result import TextCheck
from climassay.reporting.results import csv_lines, write_workbook
from climassay.web.access import Asker, Reader
from climassay.web.accounts import User
from climassay.web.app_state import App, AppState
from climassay.web.checks.debate import (
    DebateProgress,
    LiveDebate,
    check_claim,
    estimate_remaining_seconds,
    load_live_debate,
)
from climassay.web.checks.store import (
    CHECK_KIND,
    MAX_DATE_LENGTH,
    ClaimForm,
    begin_check,
    cancel_check,
    choose_debate,
    claim_review_data,
    find_check,
    get_check_store,
    list_debate_choices,
    make_publication,
    may_resume,
    may_stop,
    queue_unqueued_checks,
    readable_visibilities,
    require_claim_review,
    restart_check,
    similar_checks,
)
from climassay.web.failures import NotFound, SignInRequired, plain_message
from climassay.web.jobs import Job
from climassay.web.library.cache import collection_cache, find_passage
from climassay.web.library.evidence import CitationLinks, Evidence, check_values
from climassay.web.pages import PageNumber, as_file, clean_text, make_part, page, redirect_to
from climassay.web.redaction import Redactor
from climassay.web.text_checks import SENTENCES, answer_questions, compare_text, make_request
from climassay.web.text_processes import HasLeft

router = APIRouter(include_in_schema=False)
_QUERY_NAMES = {"words": "q"}
"""Names of query parameters by filter field, for the fields whose names differ."""
FORMATS = ("csv", "xlsx", "jsonl")
COLUMNS = (
    "id", "claim", "source", "appearance", "date", "verdict", "demonstration", "outcome", "state", "failure", "topic",
    "topic_in_words", "collections", "asked_at", "asked_by", "ended_at", "seconds", "setup", "run", "visibility",
    "reviewed", "agree", "disagree", "undecided", "page",
)  # fmt: skip
"""Columns of a downloaded table of checks."""
_CHUNK_BYTES = 2**16
"""Number of bytes of a workbook that are read and sent at a time."""
MAX_TEXT_LENGTH = 10_000
"""Maximum length, in characters, of a text whose sentences are checked. A check takes 1 to 9 seconds."""
Text = Annotated[str, Form()]
Names = Annotated[Sequence[str], Form()]


def register(app: AppState) -> None:
    """Create the database tables, register the job that checks claims, and queue all checks not queued yet.

    Raises:
        InputError: A debate configuration cannot be read.
    """
    get_check_store(app)
    if app.settings.debates:  # Otherwise all collections would be opened, which takes a second.
        list_debate_choices(app)
    app.jobs.register(CHECK_KIND, check_claim, "checks")
    queue_unqueued_checks(app)


@router.get("/check")
def show_form(
    request: Request, app: App, _user: Reader, claim: str = "", source: str = "", appearance: str = "", date: str = ""
) -> Response:
    """Show the form, filled in with the claim in the address; visitors without an account get a link to sign in."""
    form = ClaimForm(
        claim=claim[: 2 * MAX_CLAIM_LENGTH],
        source=source[: 2 * MAX_SOURCE_LENGTH],
        appearance=appearance[: 2 * MAX_SOURCE_LENGTH],
        date=date[:MAX_DATE_LENGTH],
    )
    return _form_page(request, app, form)


@router.post("/check")
def submit_claim(request: Request, app: App, user: Asker, form: Annotated[ClaimForm, Form()]) -> Response:
    """Submit a claim to be checked; if similar claims were checked before, first show these checks."""
    try:
        claim, debate = form.to_claim(), choose_debate(app, form.setup)
    except InputError as error:
        return _form_page(request, app, form, error=str(error), status=400)
    checks = get_check_store(app)
    waiting_check = checks.find_waiting(claim, user.name, debate.name)
    if waiting_check is not None:
        return redirect_to(f"/checks/{waiting_check}")
    past_checks = [] if form.anyway else similar_checks(app, claim.text)
    if past_checks:
        checks_by_run = checks.ids_by_run([check.run for check in past_checks])
        return page(
            request, "checks/past.html.j2", form=form, claim=claim, past_checks=past_checks, checks_by_run=checks_by_run
        )
    return redirect_to(f"/checks/{begin_check(app, user, claim, debate, force=form.force)}")


def _form_page(request: Request, app: AppState, form: ClaimForm, *, error: str = "", status: int = 200) -> Response:
    return page(
        request,
        "checks/ask.html.j2",
        status=status,
        form=form,
        error=error,
        choices=list_debate_choices(app),
        longest_claim=MAX_CLAIM_LENGTH,
        longest_source=MAX_SOURCE_LENGTH,
        longest_date=MAX_DATE_LENGTH,
    )


@router.get("/checks/{check}")
def show_check(request: Request, app: App, user: Reader, check: str) -> Response:
    """Show a check: the debate while it is running, afterwards the verdict and the debate that led to it."""
    stored_check, job = find_check(app, check, user)
    name_of = display_names(app, user)
    common_values: dict[str, Any] = {
        "about": stored_check.about,
        "settings": stored_check.settings,
        # Visitors without an account do not see who asked.
        "asker": "" if user is None else name_of(stored_check.about.by),
        "is_public": app.settings.public == "read",
        "repeatable": may_resume(user, stored_check),
        "is_refused": user is not None and stored_check.about.outcome in ("not checkable", "not about climate"),
    }
    if stored_check.transcript is None:
        is_stoppable = stored_check.about.state == "waiting" and may_stop(user, stored_check.about)
        values = _live_values(app, stored_check, job)
        return page(request, "checks/live.html.j2", job=job, stoppable=is_stoppable, **common_values, **values)
    reviews = get_check_store(app).reviews(check)
    own_reviews = [review for review in reviews if user is not None and review.by == user.name]
    return page(
        request,
        "checks/verdict.html.j2",
        reviews=[(name_of(review.by), review) for review in reviews],
        own_review=own_reviews[-1] if own_reviews else None,
        longest_comment=MAX_COMMENT_LENGTH,
        claim_review=claim_review_data(app, stored_check),
        **common_values,
        **check_values(
            collection_cache(app),
            stored_check.transcript,
            load_scale(stored_check.settings.scale),
            make_publication(app, stored_check.about, reviews, name_of),
        ),
    )


@router.get("/checks/{check}/debate")
def show_new_events(request: Request, app: App, user: Reader, check: str, after: int = 0) -> Response:
    """Return the HTML fragment that shows the events of a debate with numbers above ``after``."""
    stored_check, job = find_check(app, check, user)
    return page(
        request, "checks/news.html.j2", settings=stored_check.settings, **_live_values(app, stored_check, job, after)
    )


@router.post("/checks/{check}/stop")
def stop_check(app: App, user: Asker, check: str) -> Response:
    """Stop a check whose debate is running or queued."""
    cancel_check(app, user, check)
    return redirect_to(f"/checks/{check}")


@router.post("/checks/{check}/again")
def resume_check(app: App, user: Asker, check: str) -> Response:
    """Resume a check that failed or was stopped; stored answers are reused."""
    restart_check(app, user, check)
    return redirect_to(f"/checks/{check}")


def _live_values(app: AppState, stored_check: StoredCheck, job: Job | None, min_number: int = 0) -> dict[str, Any]:
    """Return the template values that change during a debate, with the entries of events above ``min_number``."""
    settings = stored_check.settings
    debate = load_live_debate(app.jobs, job.id, settings) if job else LiveDebate((), (), 0, DebateProgress(settings))
    numbers = {source.number for source in debate.sources}
    elapsed_seconds = None if debate.began is None else max(0.0, time.time() - debate.began)
    past_durations = get_check_store(app).durations(settings.model, len(settings.advocates))
    return {
        **shared_values(load_scale(settings.scale), numbers),
        "entries": debate.entries_after(min_number),
        "last_number": debate.last_number,
        "progress": debate.progress,
        "elapsed_seconds": elapsed_seconds,
        "remaining_seconds": None
        if elapsed_seconds is None
        else estimate_remaining_seconds(past_durations, elapsed_seconds),
        "n_past_debates": len(past_durations),
        "queue_position": app.jobs.find_queue_position(job) if job and stored_check.about.state == "waiting" else None,
    }


@router.post("/checks/{check}/review")
def review_check(
    app: App,
    user: Asker,
    check: str,
    opinion: Annotated[str, Form()] = "undecided",
    comment: Annotated[str, Form()] = "",
) -> Response:
    """Store the user's review of a verdict, which replaces the user's earlier review."""
    find_check(app, check, user)
    # Browsers send line ends as CR and LF.
    get_check_store(app).review(check, user.name, opinion, comment.replace("\r\n", "\n"))
    return redirect_to(f"/checks/{check}#reviews")


@router.get("/checks/{check}/check.json")
def download_data(app: App, user: Reader, check: str) -> Response:
    """Send the claim, the complete debate and the reviews as JSON."""
    stored_check, _ = find_check(app, check, user)
    if stored_check.transcript is not None:
        stored_check = replace(
            stored_check, transcript=CitationLinks(collection_cache(app)).transcript(stored_check.transcript)
        )
    data = hide_names(user, check_data(stored_check, get_check_store(app).reviews(check)), display_names(app, user))
    return as_file(json.dumps(data, ensure_ascii=False, indent=2), f"{check}.json")


@router.get("/checks/{check}/claimreview.json")
def download_claim_review(app: App, user: Reader, check: str) -> Response:
    """Send the verdict as a schema.org ClaimReview (JSON-LD)."""
    result = json.dumps(require_claim_review(app, check, user), ensure_ascii=False, indent=2)
    return as_file(result, f"{check}.claimreview.json", "application/ld+json")


@router.get("/checks/{check}/page.html")
def download_page(app: App, user: Reader, check: str) -> Response:
    """Send the fact-check as one self-contained HTML page."""
    stored_check, _ = find_check(app, check, user)
    if stored_check.transcript is None:
        raise NotFound("This check has no result, so it has no page.")
    transcript = CitationLinks(collection_cache(app)).transcript(stored_check.transcript)
    publication = make_publication(
        app, stored_check.about, get_check_store(app).reviews(check), display_names(app, user)
    )
    return as_file(factcheck_page(transcript, load_scale(stored_check.settings.scale), publication), f"{check}.html")


def check_filters(user: Reader, filters: Annotated[CheckFilter, Depends()]) -> CheckFilter:
    """Return the filters in the query parameters.

    Raises:
        SignInRequired: Checks are filtered by reviewer, and nobody is signed in.
    """
    if filters.reviewer and user is None:
        raise SignInRequired("Please sign in to see who has reviewed what.")
    return filters


CheckFilters = Annotated[CheckFilter, Depends(check_filters)]


@router.get("/checks")
def show_checks(request: Request, app: App, user: Reader, filters: CheckFilters, number: PageNumber = 1) -> Response:
    """Show one page of the checks that match the filters, newest first."""
    checks = get_check_store(app)
    matches = checks.list(filters, number, readable_visibilities(user))
    parameters = {_QUERY_NAMES.get(field.name, field.name): getattr(filters, field.name) for field in fields(filters)}
    query = urlencode({name: value for name, value in parameters.items() if value})
    name_of = display_names(app, user)
    topics = {group: [name for name in checks.topics() if name.partition(".")[0] == group] for group in GROUPS}
    reviewers = {name: name_of(name) for name in checks.reviewers()} if user else {}
    return page(
        request,
        "checks/list.html.j2",
        matches=matches,
        part=make_part(matches.checks, number, matches.total, PAGE_SIZE, "/checks", parameters),
        parameters=parameters,
        query=query,
        filter_texts=_filter_texts(filters, reviewers),
        verdicts=checks.verdicts(),
        reviewed=get_args(Reviewed),
        topics=[(group, GROUPS[group], claims) for group, claims in topics.items() if claims],
        claims=CLAIMS,
        collections=checks.collections(),
        reviewers=reviewers,
        formats=FORMATS,
        is_public=app.settings.public == "read",
        visibilities=readable_visibilities(user),
        agreement=checks.agreement(),
    )


def _filter_texts(filters: CheckFilter, reviewers: Mapping[str, str]) -> list[str]:
    topic = CLAIMS.get(filters.topic) or GROUPS.get(filters.topic) or filters.topic
    active_values = {
        f"the words \u201c{filters.words}\u201d": filters.words,
        f"the verdict \u201c{filters.verdict}\u201d": filters.verdict,
        f"reviews: {filters.review}": filters.review,
        f"the contrarian claim \u201c{topic}\u201d": filters.topic,
        f"evidence from {filters.collection}": filters.collection,
        f"\u201c{filters.source}\u201d as its source": filters.source,
        f"from {filters.since} on": filters.since,
        f"until {filters.until}": filters.until,
        f"readers: {filters.visibility}": filters.visibility,
        f"reviewed by {reviewers.get(filters.reviewer, filters.reviewer)}": filters.reviewer,
    }
    return [text for text, value in active_values.items() if value]


@router.get("/checks.{format}")
def download_all(request: Request, app: App, user: Reader, filters: CheckFilters, format: str) -> Response:
    """Send the checks that match the filters, newest first, as a table or as JSON lines with complete debates."""
    if format not in FORMATS:
        raise NotFound(f"Checks are available as {', '.join(FORMATS)}, not as {format[:20]}.")
    checks = get_check_store(app)
    checks.newest(
        filters, limit=1, visibilities=readable_visibilities(user)
    )  # Invalid filters are reported before the download starts.
    name = f"checks.{format}"
    name_of = display_names(app, user)
    citation_links = CitationLinks(collection_cache(app))

    def prepare(check: dict[str, Any]) -> dict[str, Any]:
        if check.get("transcript") is not None:
            check["transcript"] = as_data(citation_links.transcript(from_data(check["transcript"])))
        return hide_names(user, check, name_of)

    checks_data = map(prepare, checks.iterate(filters, readable_visibilities(user), debates=format == "jsonl"))
    if format == "jsonl":
        return as_file((json.dumps(check, ensure_ascii=False) + "\n" for check in checks_data), name)

    def make_row(check: Mapping[str, Any]) -> dict[str, Any]:
        failure, topic = check["error"] and plain_message(check["error"]), CLAIMS.get(check["topic"] or "")
        computed_cells = {
            "failure": failure,
            "topic_in_words": topic,
            "page": f"{app.settings.root}/checks/{check['id']}",
        }
        return {name: computed_cells[name] if name in computed_cells else check[name] for name in COLUMNS}

    rows: Iterable[dict[str, Any]] = map(make_row, checks_data)
    if format == "csv":
        return as_file(csv_lines(COLUMNS, rows), name)
    if user is None:
        # The middleware cannot redact a workbook, because it is compressed.
        redactor = Redactor(app)

        def redact_cell(cell: Any) -> Any:
            return redactor.redact(cell.encode("utf-8", "replace")).decode("utf-8", "replace")

        rows = (
            {key: redact_cell(cell) if isinstance(cell, str) else cell for key, cell in cells.items()} for cells in rows
        )

    def workbook_chunks() -> Iterator[bytes]:
        with tempfile.TemporaryFile() as file:
            write_workbook(file, COLUMNS, rows)
            file.seek(0)
            while block := file.read(_CHUNK_BYTES):
                yield block

    return as_file(workbook_chunks(), name)


def hide_names(viewer: User | None, check: dict[str, Any], name_of: Callable[[str | None], str]) -> dict[str, Any]:
    """Hide user names from visitors without an account: remove the asker, and replace reviewers by their display names.

    The data are changed in place and returned.
    """
    if viewer is None:
        check["asked_by"] = None
        for review in check.get("reviews", ()):
            review["by"] = name_of(review["by"])
    return check


def display_names(app: AppState, viewer: User | None) -> Callable[[str | None], str]:
    """Return a function that maps a user name to the display name, and None to an empty text.

    Visitors without an account never see a user name, even if it is also the display name.
    """
    names = {user.name: user.display_name for user in app.accounts.users()}

    def name_of(name: str | None) -> str:
        if name is None:
            return ""
        result = names.get(name, name)
        return "somebody with an account" if viewer is None and result == name else result

    return name_of


@router.get("/check-text")
def show_text_form(request: Request, app: App, _user: Reader) -> Response:
    """Show the empty form with all collections selected; visitors without an account get a link to sign in."""
    return _text_page(request, app)


@router.post("/check-text")
def check_text_form(
    request: Request, app: App, user: Asker, has_left: HasLeft, text: Text = "", collection: Names = ()
) -> Response:
    """Show a comparison of each sentence of a text with collections."""
    return _checked_text_response(request, app, user, text, collection, has_left, download=False)


@router.post("/check-text/report")
def download_text(
    request: Request, app: App, user: Asker, has_left: HasLeft, text: Text = "", collection: Names = ()
) -> Response:
    """Send the comparison of a text with collections as one HTML page."""
    return _checked_text_response(request, app, user, text, collection, has_left, download=True)


def check_text(app: AppState, user: User, text: str, names: Sequence[str], has_left: Callable[[], bool]) -> TextCheck:
    """Compare each sentence of a text with collections, until ``has_left`` returns True.

    Raises:
        InputError: The text is empty, or no collection is named.
        TooLarge: The text is too long, or its check reached a limit.
        TooManyTexts: Earlier texts of the user are still being checked.
        CheckStopped: The user has closed the connection, or the server shuts down.
        NotFound: A collection does not exist.
        ModelError: The encoder of a collection is not installed.
    """
    text, names = clean_text(text, MAX_TEXT_LENGTH, "text"), tuple(dict.fromkeys(names))
    if not text.strip():
        raise InputError("Paste a text to check.")
    if not names:
        raise InputError("Choose at least one collection to compare the text with.")
    for name in names:
        collection_cache(app).open_readable(name)
    group = app.collections(names)
    sentences = app.text_processes.call(
        user, compare_text, make_request(text, group), answer=answer_questions(group), has_left=has_left
    )
    return TextCheck("the text", names, SENTENCES.validate_python(sentences))


def _checked_text_response(
    request: Request,
    app: AppState,
    user: User,
    text: str,
    names: Sequence[str],
    has_left: Callable[[], bool],
    *,
    download: bool,
) -> Response:
    try:
        text = clean_text(text, MAX_TEXT_LENGTH, "text")
        result = check_text(app, user, text, names, has_left)
    except ClimassayError as error:
        status = 400 if isinstance(error, InputError) else getattr(error, "status", 503)
        return _text_page(request, app, text, names, error=str(error), status=status)
    return as_file(result.page(), "checked-text.html") if download else _text_page(request, app, text, names, result)


def _text_page(
    request: Request,
    app: AppState,
    text: str = "",
    names: Sequence[str] | None = None,
    result: TextCheck | None = None,
    *,
    error: str = "",
    status: int = 200,
) -> Response:
    collections = collection_cache(app).list_contents()
    return page(
        request,
        "checks/text.html.j2",
        status=status,
        text=text,
        error=error,
        collections=collections,
        chosen=[collection.name for collection in collections] if names is None else names,
        result=result,
        # Escaped by the template of the report.
        sentences=Markup(result.sentences_html(_evidence_links(app, result))) if result else "",
        longest=MAX_TEXT_LENGTH,
    )


def _evidence_links(app: AppState, result: TextCheck) -> Callable[[SentenceEvidence], Evidence | None]:
    """Return a function that returns the links of a sentence's evidence, or None if the passage was removed."""
    library = collection_cache(app)
    links = CitationLinks(library)

    def link(evidence: SentenceEvidence) -> Evidence | None:
        for name in result.collections:
            try:
                passage = find_passage(library, name, evidence.passage)
            except NotFound:
                continue
            return links.evidence(name, passage, [evidence.quotation] if evidence.quotation else ())
        return None

    return link
