"""The accounts of everybody, for admins: invitations, roles, new passwords, who is shut out."""

from typing import Annotated, cast

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.web.access import Admin
from climassay.web.accounts import ROLES, Role
from climassay.web.pages import back_to, page
from climassay.web.place import PlaceHere

router = APIRouter(prefix="/users", include_in_schema=False)


@router.get("")
def show(request: Request, place: PlaceHere, user: Admin) -> Response:
    """Everybody."""
    return _page(request, place)


@router.post("")
def invite(
    request: Request,
    place: PlaceHere,
    user: Admin,
    name: Annotated[str, Form()] = "",
    shown: Annotated[str, Form(max_length=120)] = "",
    role: Annotated[str, Form()] = "annotator",
) -> Response:
    """Add somebody, and show the link that lets them in."""
    try:
        made = place.accounts.add(name.strip().lower(), cast(Role, role), shown)
    except InputError as error:
        return _page(request, place, error=str(error), status=400)
    link = f"{place.settings.root}/enter/{place.accounts.make_link(made.name, 'invitation')}"
    return _page(request, place, link=link, linked=made.name)


@router.post("/{name}/link")
def new_link(request: Request, place: PlaceHere, user: Admin, name: str) -> Response:
    """A link by which somebody sets a new password."""
    link = f"{place.settings.root}/enter/{place.accounts.make_link(name, 'password')}"
    return _page(request, place, link=link, linked=name)


@router.post("/{name}")
def change(
    request: Request,
    place: PlaceHere,
    user: Admin,
    name: str,
    role: Annotated[str, Form()] = "",
    active: Annotated[str, Form()] = "",
) -> Response:
    """Another role, shut out, or let in again."""
    try:
        place.accounts.change(
            name, role=cast(Role, role) if role else None, active={"yes": True, "no": False}.get(active)
        )
    except InputError as error:
        return _page(request, place, error=str(error), status=400)
    return back_to("/users")


def _page(
    request: Request, place: PlaceHere, *, error: str = "", link: str = "", linked: str = "", status: int = 200
) -> Response:
    values = {"users": place.accounts.users(), "roles": ROLES, "link": link, "linked": linked, "error": error}
    return page(request, "entrance/people.html.j2", status=status, **values)
