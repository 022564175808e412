"""The server itself in the API: oneself, for admins the accounts of everybody, and long work."""

from typing import Annotated, Any

from pydantic import JsonValue

from climassay import __version__
from climassay.web.access import Admin, Annotator, Reader, job_for, may_stop
from climassay.web.accounts import Purpose, Role, User
from climassay.web.api.base import (
    AfterName,
    AfterNumber,
    Data,
    Limit,
    Listed,
    Moment,
    Name,
    ShortText,
    area,
    field,
    first_of,
    named,
    named_for,
    part_of,
)
from climassay.web.app_state import App, AppState
from climassay.web.failures import Refused, missing
from climassay.web.jobs import Job, State
from climassay.web.server import link_address
from climassay.web.settings import Public

router = area("", "people")
UserName = Annotated[str, named("Name that the user signs in with.", "ada")]
jobs_router = area("/jobs", "jobs")
JobId = Annotated[str, named("Id of the work.", "j4f0c2d1e9a8b")]


class UserData(Data):
    """Somebody with an account."""

    name: str = field("ada")
    role: Role = field("annotator", "Each may do what those before may: annotator, adjudicator, admin.")
    shown: str = field("Ada Lovelace", "As others see it.")
    active: bool = field(True, "Whether they are let in.")
    made_at: Moment


class CallerData(Data):
    """Who a token or session belongs to, and what this server offers."""

    user: UserData
    version: str = field("0.7.0", "Version of climassay.")
    public: Public = field("nothing")
    """What people without an account may do: `nothing`, `read`, or `check` claims too."""
    publisher: str = field("Example Institute", "Named in published verdicts; empty where verdicts are not published.")


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


class LinkData(Data):
    """A link that lets somebody in once."""

    user: UserData
    purpose: Purpose = field("invitation")
    address: str = field("http://127.0.0.1:8000/enter/TWmZ2q")
    """Shown this once; send it to them by a way that others do not read."""


@router.get("/me", response_model=CallerData)
def get_me(app: App, user: Annotator) -> dict[str, Any]:
    """Who one is here; a first request to see whether a token works."""
    settings = app.settings
    return {"user": user, "version": __version__, "public": settings.public, "publisher": settings.publisher}


@router.get("/users", response_model=Listed[UserData])
def list_users(app: App, user: Admin, limit: Limit = 50, after: AfterName = None) -> dict[str, Any]:
    """Everybody by name, those who were shut out included."""
    return part_of(app.accounts.users(), limit, lambda one: one.name, after)


@router.post("/users", status_code=201, response_model=LinkData)
def invite_user(app: App, user: Admin, invitation: Invitation) -> dict[str, Any]:
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
def make_password_link(app: App, user: Admin, name: UserName) -> dict[str, Any]:
    """A link by which somebody sets a new password; earlier ones no longer work."""
    _user(app, name)
    return _link(app, name, "password")


def _link(app: AppState, name: str, purpose: Purpose) -> dict[str, Any]:
    return {"purpose": purpose, "address": link_address(app, name, purpose), "user": app.accounts.user(name)}


def _user(app: AppState, name: str) -> User:
    with missing():
        return app.accounts.user(name)


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


@jobs_router.get("", response_model=Listed[JobData])
def list_jobs(app: App, user: Admin, limit: Limit = 50, after: AfterName = None) -> dict[str, Any]:
    """The work of everybody, the newest first."""
    return first_of(app.jobs.list(most=limit + 1, after=after), limit, lambda job: job.id)


@jobs_router.get("/{job}")
def get_job(app: App, user: Reader, job: JobId) -> JobData:
    """How far a job is: one's own, of a check also for readers, for adjudicators any."""
    return job_data(job_for(app, user, job), user)


@jobs_router.get("/{job}/events", response_model=Listed[JobEventData])
def list_job_events(app: App, user: Reader, job: JobId, limit: Limit = 200, after: AfterNumber = 0) -> dict[str, Any]:
    """What a job told, in order; `after` is the number of the last event that is known.

    `next` is null when there is nothing further yet: ask again with the last number until the job has ended. Browsers
    get the same as server-sent events at `/jobs/{job}/events`, live and resumable by `Last-Event-ID`.
    """
    job_for(app, user, job)
    found = app.jobs.events(job, after=max(after, 0), most=limit + 1)
    return first_of(found, limit, lambda event: event.number)


@jobs_router.post("/{job}/stop")
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
