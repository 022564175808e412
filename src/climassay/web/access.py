"""Who may do what: the visitor of a request, and the dependencies that guard pages."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from climassay.web.accounts import Role, User
from climassay.web.app_state import App, AppState
from climassay.web.failures import API, Refused, SignInNeeded, missing
from climassay.web.jobs import Job

SESSION_COOKIE = "climassay_session"
VISITOR_COOKIE = "climassay_visitor"
"""Cookie of somebody who is not signed in, so that their forms can be protected too."""
DEVICE_COOKIE = "climassay_device"
"""Cookie of a browser that somebody signed in from, so that guesses of strangers do not count against them."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
_CSRF_BYTES = hashlib.sha256().digest_size


def bearer(request: HTTPConnection) -> str | None:
    """The token of a program; taken below ``/api/`` only."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and request.url.path.startswith(API) else None


def visitor(request: HTTPConnection, app: App) -> User | None:
    """Who asks; None where nobody is signed in. Looked up once a request."""
    if not hasattr(request.state, "user"):
        token, session = bearer(request), request.cookies.get(SESSION_COOKIE)
        user = None
        if token is not None:
            user = app.accounts.token_user(token)
        elif session:
            user = app.accounts.session_user(session)
        request.state.user = user
    result: User | None = request.state.user
    return result


Visitor = Annotated[User | None, Depends(visitor)]


def _at_least(role: Role) -> Callable[[User | None], User]:
    def check(user: Visitor) -> User:
        if user is None:
            raise SignInNeeded("Please sign in first.")
        if not user.may(role):
            raise Refused(f"This page needs the role {role}; yours is {user.role}.")
        return user

    return check


def _reader(user: Visitor, app: App) -> User | None:
    if user is None and app.settings.public == "nothing":
        raise SignInNeeded("Please sign in first.")
    return user


Annotator = Annotated[User, Depends(_at_least("annotator"))]
Adjudicator = Annotated[User, Depends(_at_least("adjudicator"))]
Admin = Annotated[User, Depends(_at_least("admin"))]
Reader = Annotated[User | None, Depends(_reader)]


def may_read(user: User | None, app: AppState) -> bool:
    """Whether results, checks and the library are open to somebody."""
    return user is not None or app.settings.public != "nothing"


def job_for(app: AppState, user: User | None, job_id: str) -> Job:
    """A job that somebody may see: one's own, an adjudicator's any, a check or question also by whoever may read."""
    with missing():
        job = app.jobs.get(job_id)
    own = user is not None and (job.by == user.name or user.may("adjudicator"))
    if not own and not (job.kind in ("check", "ask") and may_read(user, app)):
        raise Refused("This is somebody else's work.")
    return job


def may_stop(job: Job, user: User | None) -> bool:
    """Whether somebody may end a job: who asked for it, and admins."""
    return user is not None and not job.ended and (job.by == user.name or user.may("admin"))


def visitor_token(request: Request) -> str:
    """What forms of this visitor are bound to; made, and sent with the answer, where there is none yet."""
    given = request.cookies.get(SESSION_COOKIE) or request.cookies.get(VISITOR_COOKIE)
    if given:
        return given
    if not hasattr(request.state, "new_visitor"):
        request.state.new_visitor = secrets.token_urlsafe(24)
    made: str = request.state.new_visitor
    return made


def csrf_token(request: Request) -> str:
    """The token that a form of this visitor carries, masked anew for each answer.

    Answers are compressed, and the length of a compressed answer says whether what it repeats of a request occurs in it
    elsewhere: a token that stays the same could be guessed letter by letter (BREACH).
    """
    mask = secrets.token_bytes(_CSRF_BYTES)
    return (mask + _xor(mask, _csrf_secret(request))).hex()


def _csrf_secret(request: Request) -> bytes:
    app: AppState = request.app.state.climassay
    return hmac.new(app.csrf_key, visitor_token(request).encode("utf-8", "replace"), hashlib.sha256).digest()


def _is_csrf_token(given: str, request: Request) -> bool:
    try:
        masked = bytes.fromhex(given)
    except ValueError:
        return False
    mask, rest = masked[:_CSRF_BYTES], masked[_CSRF_BYTES:]
    return len(rest) == _CSRF_BYTES and hmac.compare_digest(_xor(mask, rest), _csrf_secret(request))


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


async def check_csrf(request: Request) -> None:
    """Refuse what a foreign page sends in a visitor's name.

    Raises:
        Refused: The request changes something and does not carry the visitor's token.
    """
    if request.method in SAFE_METHODS or bearer(request) is not None:
        return
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused("This request was sent by another site.")
    if request.url.path.startswith(API) and SESSION_COOKIE not in request.cookies:
        # A program without a token: nothing is done in anybody's name, and the guard of the route says what is missing.
        return
    given = request.headers.get(CSRF_HEADER)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given is None and kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        field = (await request.form()).get(CSRF_FIELD)
        given = field if isinstance(field, str) else None
    known = request.cookies.get(SESSION_COOKIE) or request.cookies.get(VISITOR_COOKIE)
    if not given or not known or not _is_csrf_token(given, request):
        raise Refused("This page is out of date: go back, reload it, and send the form again.")
