"""The pages of checks: asking for one, the list, the debate as it goes, the verdict, reviews, and files."""

import json
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.factcheck import factcheck_page
from climassay.factcheck.check_store import (
    LONGEST_CLAIM,
    LONGEST_COMMENT,
    LONGEST_SOURCE,
    CheckFilter,
    Reviewed,
    StoredCheck,
    check_data,
)
from climassay.factcheck.results.page import shared_values
from climassay.factcheck.scales import load_scale
from climassay.web.access import Annotator, Asker, Reader
from climassay.web.accounts import User
from climassay.web.app_state import App, AppState
from climassay.web.checks.debate import LiveDebate, live_debate
from climassay.web.checks.store import (
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
    set_ups,
    similar_checks,
)
from climassay.web.failures import Missing
from climassay.web.jobs import Job
from climassay.web.library.cache import library_of
from climassay.web.library.evidence import CitationLinks, check_values
from climassay.web.pages import as_file, back_to, page

router = APIRouter()
LONGEST_SEARCH = 200


@router.get("/check")
def ask(request: Request, app: App, _user: Asker, claim: str = "", source: str = "", date: str = "") -> Response:
    """The form; what a link names is filled in."""
    asked = ClaimForm(claim=claim[: 2 * LONGEST_CLAIM], source=source[: 2 * LONGEST_SOURCE], date=date[:LONGEST_DATE])
    return _form(request, app, asked)


@router.post("/check")
def take(request: Request, app: App, user: Asker, asked: Annotated[ClaimForm, Form()]) -> Response:
    """Begin a check; where the claim was checked before, show that first."""
    try:
        made, wanted = asked.cleaned(), chosen(app, asked.set_up)
    except InputError as error:
        return _form(request, app, asked, error=str(error), status=400)
    checks = checks_of(app)
    under_way = checks.under_way(made, user.name if user else None, wanted.name)
    if under_way is not None:
        return back_to(f"/checks/{under_way}")
    past = [] if asked.anyway else similar_checks(app, made.text)
    if past:
        known = checks.of_runs([one.run for one in past])
        return page(request, "checks/past.html.j2", asked=asked, claim=made, past=past, known=known)
    return back_to(f"/checks/{begin_check(app, request, user, made, wanted)}")


def _form(request: Request, app: AppState, asked: ClaimForm, *, error: str = "", status: int = 200) -> Response:
    return page(
        request,
        "checks/ask.html.j2",
        status=status,
        asked=asked,
        error=error,
        choices=set_ups(app),
        longest_claim=LONGEST_CLAIM,
        longest_source=LONGEST_SOURCE,
        longest_date=LONGEST_DATE,
    )


@router.get("/checks")
def show_all(
    request: Request,
    app: App,
    _user: Reader,
    q: str = "",
    verdict: str = "",
    review: str = "",
    number: int = Query(1, alias="page", ge=1, le=10**6),
) -> Response:
    """Checks that fit, the newest first, fifty a page."""
    if len(q) > LONGEST_SEARCH:
        raise InputError(f"Search for at most {LONGEST_SEARCH} characters.")
    checks = checks_of(app)
    found = checks.list(CheckFilter(q, verdict, review), number)
    given = {name: value for name, value in (("q", q), ("verdict", verdict), ("review", review)) if value}
    return page(
        request,
        "checks/list.html.j2",
        found=found,
        verdicts=checks.verdicts(),
        reviewed=get_args(Reviewed),
        given={"q": q, "verdict": verdict, "review": review},
        address=lambda page: "/checks?" + urlencode({**given, "page": page}),
        agreement=checks.agreement(),
    )


@router.get("/checks/{check}")
def show(request: Request, app: App, user: Reader, check: str) -> Response:
    """A check: its debate so far while it goes on, the verdict and everything behind it afterwards."""
    kept, job = found_check(app, check)
    common: dict[str, Any] = {
        "about": kept.about,
        "settings": kept.settings,
        "asker": _shown_name(app, user, kept.about.by),
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
        reviews=[(_shown_name(app, user, one.by), one) for one in reviews],
        mine=mine[-1] if mine else None,
        longest_comment=LONGEST_COMMENT,
        claim_review=claim_review_data(app, kept),
        **common,
        **check_values(library_of(app), kept.transcript, load_scale(kept.settings.scale)),
    )


@router.get("/checks/{check}/debate")
def show_news(request: Request, app: App, _user: Reader, check: str, after: int = 0) -> Response:
    """What has happened in a debate since an event: a piece of the page, made by the template that makes the page."""
    kept, job = found_check(app, check)
    return page(request, "checks/news.html.j2", **_live_values(app, kept, job, after))


@router.post("/checks/{check}/stop")
def stop(app: App, user: Annotator, check: str) -> Response:
    """End a check that goes on."""
    end_check(app, user, check)
    return back_to(f"/checks/{check}")


@router.post("/checks/{check}/again")
def ask_again(request: Request, app: App, user: Asker, check: str) -> Response:
    """Go on with a check that broke or was stopped; what was answered is not asked again."""
    begin_again(app, request, user, check)
    return back_to(f"/checks/{check}")


def _live_values(app: AppState, kept: StoredCheck, job: Job | None, after: int = 0) -> dict[str, Any]:
    debate = LiveDebate((), (), 0) if job is None else live_debate(app.jobs, job.id)
    numbers = {source.number for source in debate.sources}
    return {
        **shared_values(load_scale(kept.settings.scale), numbers),
        "entries": debate.after(after),
        "last": debate.last,
    }


@router.post("/checks/{check}/review")
def review(
    app: App,
    user: Annotator,
    check: str,
    opinion: Annotated[str, Form()] = "undecided",
    comment: Annotated[str, Form()] = "",
) -> Response:
    """Agree, disagree or comment; a later word of the same person stands in place of the first."""
    found_check(app, check)
    # Browsers send line ends as CR and LF.
    checks_of(app).review(check, user.name, opinion, comment.replace("\r\n", "\n"))
    return back_to(f"/checks/{check}#reviews")


def _shown_name(app: AppState, viewer: User | None, name: str | None) -> str:
    """Somebody's name as a viewer sees it; empty for somebody without an account.

    The name that somebody signs in by is for those who have an account themselves.
    """
    if name is None:
        return ""
    try:
        shown = app.accounts.user(name).shown
    except InputError:
        shown = name
    return "somebody with an account" if viewer is None and shown == name else shown


@router.get("/checks/{check}/check.json")
def download_data(app: App, user: Reader, check: str) -> Response:
    """What was asked, the whole debate, and what people said about it."""
    kept, _ = found_check(app, check)
    data = check_data(kept, checks_of(app).reviews(check))
    if user is None:
        data["asked_by"] = _shown_name(app, user, data["asked_by"]) or None
        for said in data["reviews"]:
            said["by"] = _shown_name(app, user, said["by"])
    return as_file(json.dumps(data, ensure_ascii=False, indent=2), f"{check}.json")


@router.get("/checks/{check}/claimreview.json")
def download_claim_review(app: App, _user: Reader, check: str) -> Response:
    """The verdict as schema.org ClaimReview."""
    found = json.dumps(claim_review_of(app, check), ensure_ascii=False, indent=2)
    return as_file(found, f"{check}.claimreview.json", "application/ld+json")


@router.get("/checks/{check}/page.html")
def download_page(app: App, _user: Reader, check: str) -> Response:
    """The fact-check as one file that asks nothing of any server."""
    kept, _ = found_check(app, check)
    if kept.transcript is None:
        raise Missing("This check has no result, so there is no page of it.")
    transcript = CitationLinks(library_of(app)).transcript(kept.transcript)
    return as_file(factcheck_page(transcript, load_scale(kept.settings.scale)), f"{check}.html")
