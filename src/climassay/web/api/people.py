"""People in the API: oneself, and for admins the accounts of everybody."""

from typing import Annotated

from climassay import __version__
from climassay.errors import InputError
from climassay.web.access import Admin, Annotator
from climassay.web.accounts import Purpose
from climassay.web.api.fields import AfterName, Limit, Listed, named, part_of
from climassay.web.api.people_data import Invitation, LinkData, MeData, UserChange, UserData, user_data
from climassay.web.api.routing import area
from climassay.web.failures import Missing
from climassay.web.place import Place, PlaceHere

router = area("", "people")
UserName = Annotated[str, named("Name that the user signs in with.", "ada")]


@router.get("/me")
def get_me(place: PlaceHere, user: Annotator) -> MeData:
    """Who one is here; a first request to see whether a token works."""
    return MeData(
        user=user_data(user),
        version=__version__,
        public=place.settings.public,
        publisher=place.settings.publisher,
    )


@router.get("/users")
def list_users(place: PlaceHere, user: Admin, limit: Limit = 50, after: AfterName = None) -> Listed[UserData]:
    """Everybody by name, those who were shut out included."""
    shown, following = part_of(place.accounts.users(), limit, lambda one: one.name, after)
    return Listed(items=[user_data(one) for one in shown], next=following)


@router.post("/users", status_code=201)
def invite_user(place: PlaceHere, user: Admin, invitation: Invitation) -> LinkData:
    """Add somebody, and get the link that lets them in and asks for a password."""
    made = place.accounts.add(invitation.name.strip().lower(), invitation.role, invitation.shown)
    return _link(place, made.name, "invitation")


@router.get("/users/{name}")
def get_user(place: PlaceHere, user: Admin, name: UserName) -> UserData:
    """One user."""
    _require(place, name)
    return user_data(place.accounts.user(name))


@router.patch("/users/{name}")
def change_user(place: PlaceHere, user: Admin, name: UserName, change: UserChange) -> UserData:
    """Another role or name, shut out, or let in again; there is always an admin left."""
    _require(place, name)
    shown = None if change.shown is None else " ".join(change.shown.split()) or name
    return user_data(place.accounts.change(name, role=change.role, shown=shown, active=change.active))


@router.post("/users/{name}/link", status_code=201)
def make_password_link(place: PlaceHere, user: Admin, name: UserName) -> LinkData:
    """A link by which somebody sets a new password; earlier ones no longer work."""
    _require(place, name)
    return _link(place, name, "password")


def _link(place: Place, name: str, purpose: Purpose) -> LinkData:
    address = f"{place.settings.root}/enter/{place.accounts.make_link(name, purpose)}"
    return LinkData(user=user_data(place.accounts.user(name)), purpose=purpose, address=address)


def _require(place: Place, name: str) -> None:
    try:
        place.accounts.user(name)
    except InputError as error:
        raise Missing(str(error)) from None
