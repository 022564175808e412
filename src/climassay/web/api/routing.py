"""How operations of the API are declared: what they may answer beside what was asked for, and for whom they are."""

from enum import Enum
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from climassay.web.access import Adjudicator, Admin, Annotator, Asker, Reader, bearer, visitor
from climassay.web.accounts import User
from climassay.web.api.fields import Problem
from climassay.web.failures import SignInNeeded
from climassay.web.place import PlaceHere

PREFIX = "/api/v1"
WHY = {
    400: "It cannot be done so; the sentence says why.",
    401: "Nobody is signed in, or the token is not good (any more).",
    403: "The role does not suffice, it is somebody else's, or the request carries no CSRF token.",
    404: "There is no such thing.",
    413: "More was sent than is taken.",
    422: "A parameter or a field does not fit; `details` says which.",
    429: "Too much is waiting already: try again later.",
}
"""What failures mean."""
READERS = "readers"
ASKERS = "askers"
ROLE_OF: tuple[tuple[Any, str], ...] = (
    (Annotator, "annotator"),
    (Adjudicator, "adjudicator"),
    (Admin, "admin"),
    (Reader, READERS),
    (Asker, ASKERS),
)
"""Types of the parameter ``user`` of an operation, and for whom it then is."""


def known_caller(request: Request, place: PlaceHere) -> User | None:
    """Who asks.

    Raises:
        SignInNeeded: A token was sent that is not good; nobody is served as somebody else than they think.
    """
    user = visitor(request, place)
    if user is None and "authorization" in request.headers:
        if bearer(request) is None:
            raise SignInNeeded("Send the token as `Authorization: Bearer TOKEN`.")
        raise SignInNeeded("This token is not good: it is wrong, or it was revoked.")
    return user


Caller = Annotated[User | None, Depends(known_caller)]


def failing(*more: int) -> dict[int | str, dict[str, Any]]:
    """The failures of an operation, for its documentation.

    Args:
        *more: Beside those that every operation has.
    """
    return {
        status: {"model": Problem, "description": WHY[status]} for status in sorted({400, 401, 403, 404, 422, *more})
    }


def area(path: str, tag: str) -> APIRouter:
    """A router for the operations below a path."""
    tags: list[str | Enum] = [tag]
    return APIRouter(prefix=PREFIX + path, tags=tags, responses=failing(), dependencies=[Depends(known_caller)])
