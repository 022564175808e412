"""Long work in the API: how far it is, what it told, and ending it."""

from typing import Annotated, Any

from pydantic import Field, JsonValue

from climassay.web.access import Admin, Annotator, Reader
from climassay.web.accounts import User
from climassay.web.api.fields import AfterName, AfterNumber, Data, Limit, Listed, Moment, moment, named, some_moment
from climassay.web.api.routing import area
from climassay.web.failures import Refused
from climassay.web.jobs import Job, State
from climassay.web.place import PlaceHere
from climassay.web.working import job_for, may_stop

router = area("/jobs", "jobs")
JobId = Annotated[str, named("Id of the work.", "j4f0c2d1e9a8b")]


class JobData(Data):
    """A piece of long work."""

    id: str = Field(examples=["j4f0c2d1e9a8b"])
    kind: str = Field(examples=["add-documents"])
    """`check`, `add-documents` or `retrain`."""
    title: str = Field(examples=["Add 1 file to primer"])
    state: State = Field(examples=["running"])
    """`queued` or `running`; in the end `done`, `failed` or `stopped`."""
    done: int = Field(examples=[40])
    """Units of work that are done."""
    total: int = Field(examples=[120])
    """All of them; 0 where that is not known."""
    message: str = Field(examples=["passages of carbon-cycle.pdf"])
    error: str | None = Field(examples=[None])
    """Why it failed, in one sentence."""
    result: dict[str, JsonValue] | None = Field(examples=[{"collection": "primer", "documents": 1}])
    """What came of it, once it is done; depends on its kind."""
    by: str | None = Field(examples=["ada"])
    """Who asked for it; null for somebody without an account, and to readers without one."""
    made_at: Moment
    ended_at: Moment | None


class JobEventData(Data):
    """Something that a job told."""

    number: int = Field(examples=[1])
    """From 1, without gaps."""
    kind: str = Field(examples=["file"])
    body: dict[str, JsonValue] = Field(examples=[{"shown": "carbon-cycle.pdf", "outcome": "added"}])


@router.get("")
def list_jobs(place: PlaceHere, user: Admin, limit: Limit = 50, after: AfterName = None) -> Listed[JobData]:
    """The work of everybody, the newest first."""
    found = place.jobs.list(most=limit + 1, after=after)
    return Listed(
        items=[job_data(job, user) for job in found[:limit]], next=found[limit - 1].id if len(found) > limit else None
    )


@router.get("/{job}")
def get_job(place: PlaceHere, user: Reader, job: JobId) -> JobData:
    """How far a job is: one's own, of a check also for readers, for adjudicators any."""
    return job_data(job_for(place, user, job), user)


@router.get("/{job}/events")
def list_job_events(
    place: PlaceHere, user: Reader, job: JobId, limit: Limit = 200, after: AfterNumber = 0
) -> Listed[JobEventData]:
    """What a job told, in order; `after` is the number of the last event that is known.

    `next` is null when there is nothing further yet: ask again with the last number until the job has ended. Browsers
    get the same as server-sent events at `/jobs/{job}/events`, live and resumable by `Last-Event-ID`.
    """
    job_for(place, user, job)
    found = place.jobs.events(job, after=max(after, 0), most=limit + 1)
    shown = found[:limit]
    return Listed(
        items=[JobEventData(number=one.number, kind=one.kind, body=one.body) for one in shown],
        next=shown[-1].number if len(found) > limit else None,
    )


@router.post("/{job}/stop")
def stop_job(place: PlaceHere, user: Annotator, job: JobId) -> JobData:
    """End a job: one's own, as an admin anybody's. One that has ended stays as it is."""
    found = job_for(place, user, job)
    if not found.ended:
        if not may_stop(found, user):
            raise Refused("This is somebody else's work: they or an admin can stop it.")
        place.jobs.stop(job)
    return job_data(place.jobs.get(job), user)


def job_data(job: Job, user: User | None) -> JobData:
    """A job as it is answered; who asked for it is said to people with an account."""
    values: dict[str, Any] = {name: getattr(job, name) for name in ("id", "kind", "title", "state", "done", "total")}
    return JobData(
        **values,
        message=job.message,
        error=job.error,
        result=job.result,
        by=None if user is None else job.by,
        made_at=moment(job.made_at),
        ended_at=some_moment(job.ended_at),
    )
