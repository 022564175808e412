"""Identify the user of a request, check which role a page requires, and protect forms against other sites."""

import hashlib
import hmac
import secrets
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from climassay.web.accounts import RIGHTS, Action, User
from climassay.web.app_state import App, AppState
from climassay.web.failures import API, Forbidden, SignInRequired
from climassay.web.jobs import Job

SESSION_COOKIE = "climassay_session"
VISITOR_COOKIE = "climassay_visitor"
"""Name of the cookie to which CSRF tokens are bound in browsers without a session."""
DEVICE_COOKIE = "climassay_device"
"""Name of the cookie that marks a browser in which a user has signed in. Failed attempts from such a browser are
counted separately."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
_CSRF_BYTES = hashlib.sha256().digest_size


def bearer_token(request: HTTPConnection) -> str | None:
    """Return the bearer token of a request, or None if it has none or its path is not below ``/api/``."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and request.url.path.startswith(API) else None


def current_user(request: HTTPConnection, app: App) -> User | None:
    """Return the user of a request, or None if nobody is signed in; the database is read once per request."""
    if not hasattr(request.state, "user"):
        token, session_token = bearer_token(request), request.cookies.get(SESSION_COOKIE)
        user = None
        if token is not None:
            user = app.accounts.token_user(token)
        elif session_token:
            user = app.accounts.session_user(session_token)
        request.state.user = user
    current: User | None = request.state.user
    return current


Visitor = Annotated[User | None, Depends(current_user)]


class Guard:
    """Route dependency that admits only users whose role permits an action."""

    def __init__(self, action: Action) -> None:
        self.action = action

    def __call__(self, user: Visitor) -> User:
        """Return the user if the action is permitted.

        Raises:
            SignInRequired: Nobody is signed in.
            Forbidden: The user's role does not permit the action.
        """
        if user is None:
            raise SignInRequired("Please sign in first.")
        if not user.may(self.action):
            raise Forbidden(f"This page needs the role {RIGHTS[self.action]}; yours is {user.role}.")
        return user


def _require_reader(user: Visitor, app: App) -> User | None:
    if user is None and app.settings.public == "nothing":
        raise SignInRequired("Please sign in first.")
    return user


Member = Annotated[User, Depends(Guard("have an account"))]
Asker = Annotated[User, Depends(Guard("ask"))]
Annotator = Annotated[User, Depends(Guard("annotate"))]
Adjudicator = Annotated[User, Depends(Guard("adjudicate"))]
CheckModerator = Annotated[User, Depends(Guard("moderate checks"))]
DocumentAdder = Annotated[User, Depends(Guard("add documents"))]
DatasetManager = Annotated[User, Depends(Guard("manage datasets"))]
DocumentRemover = Annotated[User, Depends(Guard("remove documents"))]
UserManager = Annotated[User, Depends(Guard("manage users"))]
Reader = Annotated[User | None, Depends(_require_reader)]


def may_read(user: User | None, app: AppState) -> bool:
    """Return whether a user may read results, checks and the library; ``user`` is None if nobody is signed in."""
    return user is not None or app.settings.public != "nothing"


def may_stop(job: Job, user: User | None) -> bool:
    """Return whether a user may stop a job that has not ended: only its owner and admins may."""
    return user is not None and not job.has_ended and (job.by == user.name or user.may("stop others' work"))


def visitor_token(request: Request) -> str:
    """Return the cookie value to which a visitor's CSRF tokens are bound. Create a value if the browser sent none."""
    token = request.cookies.get(SESSION_COOKIE) or request.cookies.get(VISITOR_COOKIE)
    if token:
        return token
    if not hasattr(request.state, "new_visitor"):
        request.state.new_visitor = secrets.token_urlsafe(24)
    new_visitor_token: str = request.state.new_visitor
    return new_visitor_token


def csrf_token(request: Request) -> str:
    """Return a CSRF token for a form, masked with random bytes.

    Without the mask, the length of compressed responses could reveal the token letter by letter (BREACH).
    """
    mask = secrets.token_bytes(_CSRF_BYTES)
    return (mask + _xor(mask, _csrf_secret(request))).hex()


def _csrf_secret(request: Request) -> bytes:
    app: AppState = request.app.state.climassay
    return hmac.new(app.csrf_key, visitor_token(request).encode("utf-8", "replace"), hashlib.sha256).digest()


def _is_csrf_token(token: str, request: Request) -> bool:
    try:
        token_bytes = bytes.fromhex(token)
    except ValueError:
        return False
    mask, digest = token_bytes[:_CSRF_BYTES], token_bytes[_CSRF_BYTES:]
    return len(digest) == _CSRF_BYTES and hmac.compare_digest(_xor(mask, digest), _csrf_secret(request))


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


async def check_csrf(request: Request) -> None:
    """Check that a state-changing request was sent from one of our pages.

    Requests with a bearer token are not checked.

    Raises:
        Forbidden: Another site sent the request, or its CSRF token is missing or wrong.
    """
    if request.method in SAFE_METHODS or bearer_token(request) is not None:
        return
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("This request was sent by another site.")
    if request.url.path.startswith(API) and SESSION_COOKIE not in request.cookies:
        # A program without a token acts in nobody's name; the guard of the route refuses it if an account is needed.
        return
    token = request.headers.get(CSRF_HEADER)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if token is None and content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        field = (await request.form()).get(CSRF_FIELD)
        token = field if isinstance(field, str) else None
    visitor_cookie = request.cookies.get(SESSION_COOKIE) or request.cookies.get(VISITOR_COOKIE)
    if not token or not visitor_cookie or not _is_csrf_token(token, request):
        raise Forbidden("This page is out of date: go back, reload it, and send the form again.")
