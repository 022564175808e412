"""Pages and live streams of long work."""

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from climassay.web.access import Admin, Annotator, Reader, may_read
from climassay.web.accounts import User
from climassay.web.app_state import App, AppState
from climassay.web.failures import Refused, missing
from climassay.web.jobs import Job
from climassay.web.pages import back_to, page

router = APIRouter(prefix="/jobs", include_in_schema=False)


@router.get("")
def show_all(request: Request, app: App, user: Admin) -> Response:
    """All long work, the newest first."""
    return page(request, "job_pages/jobs.html.j2", jobs=app.jobs.list(most=200))


@router.get("/{job_id}")
def show(request: Request, app: App, user: Reader, job_id: str) -> Response:
    """How far a job is."""
    job = job_for(app, user, job_id)
    return page(request, "job_pages/job.html.j2", job=job, may_stop=may_stop(job, user))


@router.post("/{job_id}/stop")
def stop(app: App, user: Annotator, job_id: str) -> Response:
    """End a job: one's own, or as an admin anybody's."""
    job = job_for(app, user, job_id)
    if not may_stop(job, user):
        raise Refused("This is somebody else's work: they or an admin can stop it.")
    app.jobs.stop(job_id)
    return back_to(f"/{'ask' if job.kind == 'ask' else 'jobs'}/{job_id}")


@router.get("/{job_id}/events")
async def events(request: Request, app: App, user: Reader, job_id: str) -> StreamingResponse:
    """What a job tells, as server-sent events, from ``Last-Event-ID`` on."""
    await run_in_threadpool(job_for, app, user, job_id)
    last = request.headers.get("last-event-id", "") or request.query_params.get("after", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
    stream = app.visitors.stream(request, user, app.streams.follow(job_id, after))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def job_for(app: AppState, user: User | None, job_id: str) -> Job:
    """A job that somebody may see: one's own, an adjudicator's any, a check or question also by whoever may read."""
    with missing():
        job = app.jobs.get(job_id)
    own = user is not None and (job.by == user.name or user.may("adjudicator"))
    if not own and not (job.kind in ("check", "ask") and may_read(user, app)):
        raise Refused("This is somebody else's work.")
    return job


def may_stop(job: Job, user: User | None) -> bool:
    """Whether somebody may end a job: who asked for it, and admins."""
    return user is not None and not job.ended and (job.by == user.name or user.may("admin"))
