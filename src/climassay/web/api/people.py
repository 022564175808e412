"""People in the API: oneself, and for admins the accounts of everybody."""

from typing import Annotated, Any

from climassay import __version__
from climassay.web.access import Admin, Annotator
from climassay.web.accounts import Purpose, Role, User
from climassay.web.api.base import AfterName, Data, Limit, Listed, Moment, Name, ShortText, area, field, named, part_of
from climassay.web.app_state import App, AppState
from climassay.web.auth import link_address
from climassay.web.failures import missing
from climassay.web.settings import Public

router = area("", "people")
UserName = Annotated[str, named("Name that the user signs in with.", "ada")]


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
