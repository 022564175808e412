"""Long work in the API: how far it is, what it reported, and stopping it."""

from typing import Annotated, Any

from pydantic import JsonValue

from climassay.web.access import Admin, Annotator, Reader
from climassay.web.accounts import User
from climassay.web.api.base import (
    AfterName,
    AfterNumber,
    Data,
    Limit,
    Listed,
    Moment,
    area,
    field,
    first_of,
    named,
    named_for,
)
from climassay.web.app_state import App
from climassay.web.failures import Refused
from climassay.web.job_pages import job_for, may_stop
from climassay.web.jobs import Job, State

router = area("/jobs", "jobs")
JobId = Annotated[str, named("Id of the work.", "j4f0c2d1e9a8b")]


class JobData(Data):
    """A piece of long work."""

    id: str = field("j4f0c2d1e9a8b")
    kind: str = field("add-documents", "`check`, `ask`, `add-documents` or `retrain`.")
    title: str = field("Add 1 file to primer")
    state: State = field("running", "`queued` or `running`; in the end `done`, `failed` or `stopped`.")
    done: int = field(40, "Units of work that are done.")
    total: int = field(120, "All of them; 0 where that is not known.")
    message: str = field("passages of carbon-cycle.pdf")
    error: str | None = field(None, "Why it failed, in one sentence.")
    result: dict[str, JsonValue] | None = field({"collection": "primer", "documents": 1})
    """What came of it, once it is done; depends on its kind."""
    by: str | None = field("ada", "Who asked for it; null for somebody without an account, and to readers without one.")
    made_at: Moment
    ended_at: Moment | None


class JobEventData(Data):
    """Something that a job reported."""

    number: int = field(1, "From 1, without gaps.")
    kind: str = field("file")
    body: dict[str, JsonValue] = field({"shown": "carbon-cycle.pdf", "outcome": "added"})


@router.get("", response_model=Listed[JobData])
def list_jobs(app: App, user: Admin, limit: Limit = 50, after: AfterName = None) -> dict[str, Any]:
    """The work of everybody, the newest first."""
    return first_of(app.jobs.list(most=limit + 1, after=after), limit, lambda job: job.id)


@router.get("/{job}")
def get_job(app: App, user: Reader, job: JobId) -> JobData:
    """How far a job is: one's own, of a check also for readers, for adjudicators any."""
    return job_data(job_for(app, user, job), user)


@router.get("/{job}/events", response_model=Listed[JobEventData])
def list_job_events(app: App, user: Reader, job: JobId, limit: Limit = 200, after: AfterNumber = 0) -> dict[str, Any]:
    """What a job told, in order; `after` is the number of the last event that is known.

    `next` is null when there is nothing further yet: ask again with the last number until the job has ended. Browsers
    get the same as server-sent events at `/jobs/{job}/events`, live and resumable by `Last-Event-ID`.
    """
    job_for(app, user, job)
    found = app.jobs.events(job, after=max(after, 0), most=limit + 1)
    return first_of(found, limit, lambda event: event.number)


@router.post("/{job}/stop")
def stop_job(app: App, user: Annotator, job: JobId) -> JobData:
    """End a job: one's own, as an admin anybody's. One that has ended stays as it is."""
    found = job_for(app, user, job)
    if not found.ended:
        if not may_stop(found, user):
            raise Refused("This is somebody else's work: they or an admin can stop it.")
        app.jobs.stop(job)
    return job_data(app.jobs.get(job), user)


def job_data(job: Job, user: User | None) -> JobData:
    """A job as it is answered; who asked for it is said to people with an account."""
    return named_for(JobData.model_validate(job), user)
