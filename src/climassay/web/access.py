"""Who is signed in, which role a page needs, and protection of forms against other sites."""

import hashlib
import hmac
import secrets
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from climassay.web.accounts import RIGHTS, Action, User
from climassay.web.app_state import App, AppState
from climassay.web.failures import API, Refused, SignInNeeded, missing
from climassay.web.jobs import Job

SESSION_COOKIE = "climassay_session"
VISITOR_COOKIE = "climassay_visitor"
"""Cookie of a browser without a session, which protects its forms."""
DEVICE_COOKIE = "climassay_device"
"""Cookie of a browser in which a user has signed in; its attempts to sign in are counted separately."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
_CSRF_BYTES = hashlib.sha256().digest_size


def bearer(request: HTTPConnection) -> str | None:
    """Return the bearer token of a request below ``/api/``; elsewhere and without one, return None."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and request.url.path.startswith(API) else None


def visitor(request: HTTPConnection, app: App) -> User | None:
    """Return the user of a request, or None if nobody is signed in; read from the database once per request."""
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


class Guard:
    """Dependency of a route that admits only users who may do an action."""

    def __init__(self, action: Action) -> None:
        self.action = action

    def __call__(self, user: Visitor) -> User:
        """Return the user of the request.

        Raises:
            SignInNeeded: Nobody is signed in.
            Refused: The user's role may not do this.
        """
        if user is None:
            raise SignInNeeded("Please sign in first.")
        if not user.may(self.action):
            raise Refused(f"This page needs the role {RIGHTS[self.action]}; yours is {user.role}.")
        return user


def _reader(user: Visitor, app: App) -> User | None:
    if user is None and app.settings.public == "nothing":
        raise SignInNeeded("Please sign in first.")
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
Reader = Annotated[User | None, Depends(_reader)]


def may_read(user: User | None, app: AppState) -> bool:
    """Return whether results, checks and the library are open to a visitor."""
    return user is not None or app.settings.public != "nothing"


def job_for(app: AppState, user: User | None, job_id: str) -> Job:
    """Return a job that a visitor may see.

    Users see their own jobs, adjudicators all jobs, and other users also checks and questions. Visitors without an
    account see questions only, because no check is published while its job runs.

    Raises:
        Missing: There is no such job.
        Refused: The visitor may not see the job.
    """
    with missing():
        job = app.jobs.get(job_id)
    is_own = user is not None and (job.by == user.name or user.may("follow others' work"))
    is_open = job.kind == "ask" or (job.kind == "check" and user is not None)
    if not is_own and not (is_open and may_read(user, app)):
        raise Refused("This is somebody else's work.")
    return job


def may_stop(job: Job, user: User | None) -> bool:
    """Return whether a user may stop a job: its owner, and admins."""
    return user is not None and not job.ended and (job.by == user.name or user.may("stop others' work"))


def visitor_token(request: Request) -> str:
    """Return the token that the forms of a visitor are bound to; a new one is sent with the response."""
    token = request.cookies.get(SESSION_COOKIE) or request.cookies.get(VISITOR_COOKIE)
    if token:
        return token
    if not hasattr(request.state, "new_visitor"):
        request.state.new_visitor = secrets.token_urlsafe(24)
    new_token: str = request.state.new_visitor
    return new_token


def csrf_token(request: Request) -> str:
    """Return the CSRF token of a form, masked with random bytes.

    Responses are compressed, so the length of a response could reveal a constant token letter by letter (BREACH).
    """
    mask = secrets.token_bytes(_CSRF_BYTES)
    return (mask + _xor(mask, _csrf_secret(request))).hex()


def _csrf_secret(request: Request) -> bytes:
    app: AppState = request.app.state.climassay
    return hmac.new(app.csrf_key, visitor_token(request).encode("utf-8", "replace"), hashlib.sha256).digest()


def _is_csrf_token(token: str, request: Request) -> bool:
    try:
        decoded = bytes.fromhex(token)
    except ValueError:
        return False
    mask, digest = decoded[:_CSRF_BYTES], decoded[_CSRF_BYTES:]
    return len(digest) == _CSRF_BYTES and hmac.compare_digest(_xor(mask, digest), _csrf_secret(request))


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


async def check_csrf(request: Request) -> None:
    """Refuse an unsafe request that does not carry the CSRF token of the visitor.

    Raises:
        Refused: Another site sent the request, or its token is missing or wrong.
    """
    if request.method in SAFE_METHODS or bearer(request) is not None:
        return
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused("This request was sent by another site.")
    if request.url.path.startswith(API) and SESSION_COOKIE not in request.cookies:
        # A program without a token: nothing is done in anybody's name, and the guard of the route says what is missing.
        return
    token = request.headers.get(CSRF_HEADER)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if token is None and content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        field = (await request.form()).get(CSRF_FIELD)
        token = field if isinstance(field, str) else None
    visitor_cookie = request.cookies.get(SESSION_COOKIE) or request.cookies.get(VISITOR_COOKIE)
    if not token or not visitor_cookie or not _is_csrf_token(token, request):
        raise Refused("This page is out of date: go back, reload it, and send the form again.")
