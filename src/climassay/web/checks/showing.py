"""The page of one check: the debate as it goes, and what came of it."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from climassay.factcheck.check_store import StoredCheck
from climassay.factcheck.results.page import page_values, shared_values
from climassay.factcheck.scales import load_scale
from climassay.factcheck.transcript import Transcript
from climassay.web.access import Annotator, Asker, Reader
from climassay.web.accounts import User
from climassay.web.checks.asking import begin_again
from climassay.web.checks.downloads import claim_review_of
from climassay.web.checks.live import LiveDebate, live_debate
from climassay.web.checks.reviews import review_values, shown_name
from climassay.web.checks.store import end_check, found_check, may_begin_again, may_stop
from climassay.web.jobs import Job
from climassay.web.pages import back_to, page
from climassay.web.place import Place, PlaceHere

router = APIRouter()


@router.get("/checks/{check}")
def show(request: Request, place: PlaceHere, user: Reader, check: str) -> Response:
    """A check: its debate so far while it goes on, the verdict and everything behind it afterwards."""
    kept, job = found_check(place, check)
    common: dict[str, Any] = {
        "about": kept.about,
        "settings": kept.settings,
        "asker": shown_name(place, user, kept.about.by),
        "repeatable": may_begin_again(user, kept),
    }
    if kept.transcript is None:
        stoppable = kept.about.state == "waiting" and may_stop(user, kept.about)
        values = _live_values(place, kept, job)
        return page(request, "checks/live.html.j2", job=job, stoppable=stoppable, **common, **values)
    values = _verdict_values(place, kept, kept.transcript, user)
    return page(request, "checks/verdict.html.j2", **common, **values)


@router.get("/checks/{check}/debate")
def show_news(request: Request, place: PlaceHere, _user: Reader, check: str, after: int = 0) -> Response:
    """What has happened in a debate since an event: a piece of the page, made by the template that makes the page."""
    kept, job = found_check(place, check)
    return page(request, "checks/news.html.j2", **_live_values(place, kept, job, after))


@router.post("/checks/{check}/stop")
def stop(place: PlaceHere, user: Annotator, check: str) -> Response:
    """End a check that goes on."""
    end_check(place, user, check)
    return back_to(f"/checks/{check}")


@router.post("/checks/{check}/again")
def ask_again(request: Request, place: PlaceHere, user: Asker, check: str) -> Response:
    """Go on with a check that broke or was stopped; what was answered is not asked again."""
    begin_again(place, request, user, check)
    return back_to(f"/checks/{check}")


def _live_values(place: Place, kept: StoredCheck, job: Job | None, after: int = 0) -> dict[str, Any]:
    debate = LiveDebate((), (), 0) if job is None else live_debate(place.jobs, job.id)
    numbers = {source.number for source in debate.sources}
    return {
        **shared_values(load_scale(kept.settings.scale), numbers),
        "entries": debate.after(after),
        "last": debate.last,
    }


def _verdict_values(place: Place, kept: StoredCheck, transcript: Transcript, user: User | None) -> dict[str, Any]:
    return {
        **page_values(transcript, load_scale(kept.settings.scale)),
        **review_values(place, kept.about.id, user),
        "claim_review": claim_review_of(place, kept),
    }
