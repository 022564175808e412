"""The start page, signing in and out, and one-time links."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from climassay.errors import InputError
from climassay.web.access import DEVICE_COOKIE, SESSION_COOKIE, VISITOR_COOKIE, Visitor
from climassay.web.accounts import TooManyAttempts, User
from climassay.web.failures import Missing
from climassay.web.pages import back_to, keep_cookie, page, safe_next
from climassay.web.place import Place, PlaceHere
from climassay.web.visitors import visitor_address

router = APIRouter(include_in_schema=False)


@router.get("/")
def start(request: Request) -> Response:
    """What can be done here."""
    return page(request, "entrance/start.html.j2")


@router.get("/sign-in")
def sign_in_page(request: Request, user: Visitor, following: Annotated[str, Query(alias="next")] = "") -> Response:
    """The form."""
    if user is not None:
        return back_to(safe_next(following))
    return _form(request, following)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    place: PlaceHere,
    name: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    following: Annotated[str, Form(alias="next")] = "",
) -> Response:
    """Check the password, and begin a session of a new name."""
    device = request.cookies.get(DEVICE_COOKIE, "")
    # A wait holds no thread, so that those who guess keep nobody from being answered.
    if delay := await run_in_threadpool(place.accounts.delay, name, device):
        await asyncio.sleep(delay)
    async with place.visitors.turn(visitor_address(request)):
        return await run_in_threadpool(_enter, request, place, name, password, following, device)


def _enter(request: Request, place: Place, name: str, password: str, following: str, device: str) -> Response:
    try:
        user = place.accounts.check_password(name, password, visitor_address(request), device)
    except TooManyAttempts as error:
        return _form(request, following, name, str(error), status=429)
    if user is None:
        return _form(request, following, name, "Wrong name or password.", status=401)
    return begin(place, request, user, safe_next(following))


@router.post("/sign-out")
def sign_out(request: Request, place: PlaceHere) -> Response:
    """End the session."""
    token = request.cookies.get(SESSION_COOKIE)
    if token:
        place.accounts.end_session(token)
    answer = back_to("/")
    answer.delete_cookie(SESSION_COOKIE, path="/")
    answer.delete_cookie(VISITOR_COOKIE, path="/")
    return answer


@router.get("/enter/{token}")
def link_page(request: Request, place: PlaceHere, token: str) -> Response:
    """What a one-time link is for; only the button uses it up, so that a preview of the link does not."""
    link = place.accounts.link(token)
    if link is None:
        raise Missing("This link is no longer good: it was used, or it is too old. Ask for a new one.")
    return page(request, "entrance/enter.html.j2", link=link, token=token, error="")


@router.post("/enter/{token}")
def use_link(
    request: Request,
    place: PlaceHere,
    token: str,
    password: Annotated[str, Form()] = "",
    again: Annotated[str, Form()] = "",
) -> Response:
    """Enter by a one-time link, with a new password where the link asks for one."""
    link = place.accounts.link(token)
    if link is None:
        raise Missing("This link is no longer good: it was used, or it is too old. Ask for a new one.")
    try:
        if link.purpose != "enter" and password != again:
            raise InputError("The two passwords are not the same.")
        used = place.accounts.use_link(token, None if link.purpose == "enter" else password)
    except InputError as error:
        return page(request, "entrance/enter.html.j2", status=400, link=link, token=token, error=str(error))
    if used is None:
        raise Missing("This link was used a moment ago.")
    return begin(place, request, link.user, "/")


def begin(place: Place, request: Request, user: User, following: str) -> Response:
    """Begin a session; a token that the browser had before is never taken over."""
    earlier = request.cookies.get(SESSION_COOKIE)
    if earlier:
        place.accounts.end_session(earlier)
    answer = back_to(following)
    keep_cookie(answer, place, SESSION_COOKIE, place.accounts.begin_session(user.name, place.settings.session_days))
    keep_cookie(answer, place, DEVICE_COOKIE, place.accounts.device(user.name))
    answer.delete_cookie(VISITOR_COOKIE, path="/")
    return answer


def _form(request: Request, following: str, name: str = "", error: str = "", status: int = 200) -> Response:
    values = {"following": following, "name": name[:40], "error": error}
    return page(request, "entrance/sign_in.html.j2", status=status, **values)
