"""The server itself in the API: oneself, for admins the accounts of everybody, and long work."""

from typing import Annotated, Any

from climassay import __version__
from climassay.web.access import Admin, Annotator, Reader, job_for, may_stop
from climassay.web.accounts import Purpose, Role, User
from climassay.web.api.answers import answer, said
from climassay.web.api.base import (
    AfterName,
    AfterNumber,
    Data,
    Limit,
    Name,
    ShortText,
    area,
    field,
    first_of,
    listed,
    named,
    named_for,
    part_of,
)
from climassay.web.app_state import App, AppState
from climassay.web.failures import Refused, missing
from climassay.web.jobs import Job, JobEvent
from climassay.web.server import link_address
from climassay.web.settings import Public

router = area("", "people")
UserName = Annotated[str, named("Name that the user signs in with.", "ada")]
jobs_router = area("/jobs", "jobs")
JobId = Annotated[str, named("Id of the work.", "j4f0c2d1e9a8b")]


UserData = answer("User", User, "name role shown active made_at")
CallerData = answer(
    "Caller",
    "Who a token or session belongs to, and what this server offers.",
    user=UserData,
    version=said(str, "Version of climassay."),
    public=said(Public, "What people without an account may do: `nothing`, or `read`."),
    publisher=said(str, "Named in published verdicts; empty where verdicts are not published."),
)
LinkData = answer(
    "Link",
    "A link that lets somebody in once.",
    user=UserData,
    purpose=Purpose,
    address=said(str, "Shown this once; send it to them by a way that others do not read."),
)
JobData = answer("Job", Job, "id kind title state done total message error result by made_at ended_at")
JobEventData = answer("JobEvent", JobEvent, "number kind body")


class Invitation(Data):
    """Somebody to be let in."""

    name: Name = field("ada", "2 to 40 small letters, digits, dots, dashes, underscores.")
    role: Role = field("annotator", default="annotator")
    shown: ShortText = field("Ada Lovelace", "As others see it; by default the name.", default="")


class UserChange(Data):
    """What is to change; what is left out stays."""

    role: Role | None = field("adjudicator", default=None)
    shown: ShortText | None = field("Ada L.", default=None, min_length=1, max_length=120)
    active: bool | None = field(True, "False ends all sessions and tokens.", default=None)


@router.get("/me", response_model=CallerData)
def get_me(app: App, user: Annotator) -> Any:
    """Who one is here; a first request to see whether a token works."""
    settings = app.settings
    return {"user": user, "version": __version__, "public": settings.public, "publisher": settings.publisher}


@router.get("/users", response_model=listed(UserData))
def list_users(app: App, user: Admin, limit: Limit = 50, after: AfterName = None) -> Any:
    """Everybody by name, those who were shut out included."""
    return part_of(app.accounts.users(), limit, lambda one: one.name, after)


@router.post("/users", status_code=201, response_model=LinkData)
def invite_user(app: App, user: Admin, invitation: Invitation) -> Any:
    """Add somebody, and get the link that lets them in and asks for a password."""
    made = app.accounts.add(invitation.name.strip().lower(), invitation.role, invitation.shown)
    return _link(app, made.name, "invitation")


@router.get("/users/{name}", response_model=UserData)
def get_user(app: App, user: Admin, name: UserName) -> User:
    """One user."""
    return _user(app, name)


@router.patch("/users/{name}", response_model=UserData)
def change_user(app: App, user: Admin, name: UserName, change: UserChange) -> User:
    """Another role or name, shut out, or let in again; there is always an admin left."""
    _user(app, name)
    shown = None if change.shown is None else " ".join(change.shown.split()) or name
    return app.accounts.change(name, role=change.role, shown=shown, active=change.active)


@router.post("/users/{name}/link", status_code=201, response_model=LinkData)
def make_password_link(app: App, user: Admin, name: UserName) -> Any:
    """A link by which somebody sets a new password; earlier ones no longer work."""
    _user(app, name)
    return _link(app, name, "password")


def _link(app: AppState, name: str, purpose: Purpose) -> Any:
    return {"purpose": purpose, "address": link_address(app, name, purpose), "user": app.accounts.user(name)}


def _user(app: AppState, name: str) -> User:
    with missing():
        return app.accounts.user(name)


@jobs_router.get("", response_model=listed(JobData))
def list_jobs(app: App, user: Admin, limit: Limit = 50, after: AfterName = None) -> Any:
    """The work of everybody, the newest first."""
    return first_of(app.jobs.list(most=limit + 1, after=after), limit, lambda job: job.id)


@jobs_router.get("/{job}", response_model=JobData)
def get_job(app: App, user: Reader, job: JobId) -> Any:
    """How far a job is: one's own, of a check also for readers, for adjudicators any."""
    return named_for(job_for(app, user, job), user)


@jobs_router.get("/{job}/events", response_model=listed(JobEventData))
def list_job_events(app: App, user: Reader, job: JobId, limit: Limit = 200, after: AfterNumber = 0) -> Any:
    """What a job told, in order; `after` is the number of the last event that is known.

    `next` is null when there is nothing further yet: ask again with the last number until the job has ended. Browsers
    get the same as server-sent events at `/jobs/{job}/events`, live and resumable by `Last-Event-ID`.
    """
    job_for(app, user, job)
    result = app.jobs.events(job, after=max(after, 0), most=limit + 1)
    return first_of(result, limit, lambda event: event.number)


@jobs_router.post("/{job}/stop", response_model=JobData)
def stop_job(app: App, user: Annotator, job: JobId) -> Any:
    """End a job: one's own, as an admin anybody's. One that has ended stays as it is."""
    result = job_for(app, user, job)
    if not result.ended:
        if not may_stop(result, user):
            raise Refused("This is somebody else's work: they or an admin can stop it.")
        app.jobs.stop(job)
    return app.jobs.get(job)
