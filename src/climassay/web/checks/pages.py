"""The pages of checks: asking for one, the debate as it goes, the verdict, reviews, and files."""

import json
import time
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.factcheck import factcheck_page
from climassay.factcheck.check_store import (
    LONGEST_CLAIM,
    LONGEST_COMMENT,
    LONGEST_SOURCE,
    StoredCheck,
    check_data,
)
from climassay.factcheck.results.page import shared_values
from climassay.factcheck.scales import load_scale
from climassay.web.access import Annotator, Asker, Reader
from climassay.web.app_state import App, AppState
from climassay.web.checks.debate import DebateProgress, LiveDebate, check_claim, live_debate, seconds_left
from climassay.web.checks.lists import names_for, shown_to
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
from climassay.web.failures import Missing
from climassay.web.jobs import Job
from climassay.web.library.cache import library_of
from climassay.web.library.evidence import CitationLinks, check_values
from climassay.web.pages import as_file, back_to, page

router = APIRouter(include_in_schema=False)


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
def ask(request: Request, app: App, _user: Asker, claim: str = "", source: str = "", date: str = "") -> Response:
    """The form; what a link names is filled in."""
    asked = ClaimForm(claim=claim[: 2 * LONGEST_CLAIM], source=source[: 2 * LONGEST_SOURCE], date=date[:LONGEST_DATE])
    return _form(request, app, asked)


@router.post("/check")
def submit_claim(request: Request, app: App, user: Asker, asked: Annotated[ClaimForm, Form()]) -> Response:
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
        longest_comment=LONGEST_COMMENT,
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
def ask_again(request: Request, app: App, user: Asker, check: str) -> Response:
    """Go on with a check that broke or was stopped; what was answered is not asked again."""
    begin_again(app, request, user, check)
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
    found = json.dumps(claim_review_of(app, check), ensure_ascii=False, indent=2)
    return as_file(found, f"{check}.claimreview.json", "application/ld+json")


@router.get("/checks/{check}/page.html")
def download_page(app: App, _user: Reader, check: str) -> Response:
    """The fact-check as one file that asks nothing of any server."""
    kept, _ = found_check(app, check)
    if kept.transcript is None:
        raise Missing("This check has no result, so it has no page.")
    transcript = CitationLinks(library_of(app)).transcript(kept.transcript)
    return as_file(factcheck_page(transcript, load_scale(kept.settings.scale)), f"{check}.html")
