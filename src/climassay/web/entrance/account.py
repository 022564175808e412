"""One's own account: password, and tokens for programs."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.web.access import DEVICE_COOKIE, SESSION_COOKIE, Annotator
from climassay.web.accounts import TooManyAttempts
from climassay.web.pages import back_to, page
from climassay.web.place import PlaceHere
from climassay.web.visitors import visitor_address

router = APIRouter(prefix="/account", include_in_schema=False)


@router.get("")
def show(request: Request, place: PlaceHere, user: Annotator) -> Response:
    """The page."""
    return _page(request, place, user.name)


@router.post("/password")
def change_password(
    request: Request,
    place: PlaceHere,
    user: Annotator,
    password: Annotated[str, Form()] = "",
    again: Annotated[str, Form()] = "",
    present: Annotated[str, Form()] = "",
) -> Response:
    """Set another password; other sessions end."""
    device = request.cookies.get(DEVICE_COOKIE, "")
    try:
        address = visitor_address(request)
        if user.has_password and place.accounts.check_password(user.name, present, address, device) is None:
            raise InputError("The present password is not right.")
        if password != again:
            raise InputError("The two new passwords are not the same.")
        place.accounts.set_password(user.name, password, keep_session=request.cookies.get(SESSION_COOKIE))
    except TooManyAttempts as error:
        return _page(request, place, user.name, error=str(error), status=429)
    except InputError as error:
        return _page(request, place, user.name, error=str(error), status=400)
    return _page(request, place, user.name, said="The password is changed; you are signed out everywhere else.")


@router.post("/tokens")
def make_token(
    request: Request, place: PlaceHere, user: Annotator, label: Annotated[str, Form(max_length=120)] = ""
) -> Response:
    """A new token, shown this once."""
    token = place.accounts.make_token(user.name, label)
    return _page(request, place, user.name, token=token)


@router.post("/tokens/{token_id}/revoke")
def revoke_token(place: PlaceHere, user: Annotator, token_id: str) -> Response:
    """End a token."""
    place.accounts.revoke_token(user.name, token_id)
    return back_to("/account")


def _page(
    request: Request,
    place: PlaceHere,
    name: str,
    *,
    error: str = "",
    said: str = "",
    token: str = "",
    status: int = 200,
) -> Response:
    values = {"me": place.accounts.user(name), "tokens": place.accounts.tokens(name)}
    return page(request, "entrance/account.html.j2", status=status, error=error, said=said, token=token, **values)
