"""The server's own pages: start, sign-in, accounts, users, and the jobs' event streams."""

import asyncio
from typing import Annotated, Any, cast

from fastapi import APIRouter, Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from climassay.errors import InputError
from climassay.web.access import (
    DEVICE_COOKIE,
    SESSION_COOKIE,
    VISITOR_COOKIE,
    Member,
    Reader,
    UserManager,
    Visitor,
    job_for,
    may_stop,
)
from climassay.web.accounts import ROLES, Link, Purpose, Role, TooManyAttempts, User
from climassay.web.app_state import App, AppState
from climassay.web.failures import Missing, Refused
from climassay.web.limits import visitor_address
from climassay.web.pages import back_to, keep_cookie, page, safe_next

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form()]
ShortField = Annotated[str, Form(max_length=120)]


@router.get("/")
def start(request: Request) -> Response:
    """Show what can be done here."""
    return page(request, "auth/start.html.j2")


@router.get("/sign-in")
def sign_in_page(request: Request, user: Visitor, following: Annotated[str, Query(alias="next")] = "") -> Response:
    """Show the form to sign in, or redirect users who are signed in."""
    return _form(request, following) if user is None else back_to(safe_next(following))


@router.post("/sign-in")
async def sign_in(
    request: Request,
    app: App,
    name: Field = "",
    password: Field = "",
    following: Annotated[str, Form(alias="next")] = "",
) -> Response:
    """Check the password and begin a session."""
    device = request.cookies.get(DEVICE_COOKIE, "")
    # A wait holds no thread, so that those who guess keep nobody from being answered.
    if delay := await run_in_threadpool(app.accounts.delay, name, device):
        await asyncio.sleep(delay)
    async with app.visitors.slot(visitor_address(request)):
        return await run_in_threadpool(_enter, request, app, name, password, following, device)


def _enter(request: Request, app: AppState, name: str, password: str, following: str, device: str) -> Response:
    try:
        user = app.accounts.check_password(name, password, visitor_address(request), device)
    except TooManyAttempts as error:
        return _form(request, following, name, str(error), status=429)
    if user is None:
        return _form(request, following, name, "Wrong name or password.", status=401)
    return _begin(app, request, user, safe_next(following))


@router.post("/sign-out")
def sign_out(request: Request, app: App) -> Response:
    """End the session."""
    if token := request.cookies.get(SESSION_COOKIE):
        app.accounts.end_session(token)
    answer = back_to("/")
    answer.delete_cookie(SESSION_COOKIE, path="/")
    answer.delete_cookie(VISITOR_COOKIE, path="/")
    return answer


@router.get("/enter/{token}")
def link_page(request: Request, app: App, token: str) -> Response:
    """Show what a one-time link is for; it is used up by the button only, so that previews of the link do not."""
    return page(request, "auth/enter.html.j2", link=_link(app, token), token=token, error="")


@router.post("/enter/{token}")
def use_link(request: Request, app: App, token: str, password: Field = "", again: Field = "") -> Response:
    """Sign in by a one-time link, setting a new password if the link asks for one."""
    link = _link(app, token)
    try:
        if link.purpose != "enter" and password != again:
            raise InputError("The two passwords do not match.")
        user = app.accounts.use_link(token, None if link.purpose == "enter" else password)
    except InputError as error:
        return page(request, "auth/enter.html.j2", status=400, link=link, token=token, error=str(error))
    if user is None:
        raise Missing("This link has just been used.")
    return _begin(app, request, link.user, "/")


def _link(app: AppState, token: str) -> Link:
    link = app.accounts.link(token)
    if link is None:
        raise Missing("This link no longer works: it has been used, or it is too old. Ask for a new one.")
    return link


def _begin(app: AppState, request: Request, user: User, following: str) -> Response:
    """Begin a session with a new token, ending the earlier session of the browser."""
    if earlier := request.cookies.get(SESSION_COOKIE):
        app.accounts.end_session(earlier)
    answer = back_to(following)
    keep_cookie(answer, app, SESSION_COOKIE, app.accounts.begin_session(user.name, app.settings.session_days))
    keep_cookie(answer, app, DEVICE_COOKIE, app.accounts.device(user.name))
    answer.delete_cookie(VISITOR_COOKIE, path="/")
    return answer


def _form(request: Request, following: str, name: str = "", error: str = "", status: int = 200) -> Response:
    values = {"following": following, "name": name[:40], "error": error}
    return page(request, "auth/sign_in.html.j2", status=status, **values)


@router.get("/account")
def show_account(request: Request, app: App, user: Member) -> Response:
    """Show the user's account: password and API tokens."""
    return _account_page(request, app, user)


@router.post("/account/password")
def change_password(
    request: Request, app: App, user: Member, password: Field = "", again: Field = "", present: Field = ""
) -> Response:
    """Change the user's password and end all other sessions."""
    device = request.cookies.get(DEVICE_COOKIE, "")
    try:
        address = visitor_address(request)
        if user.has_password and app.accounts.check_password(user.name, present, address, device) is None:
            raise InputError("The current password is wrong.")
        if password != again:
            raise InputError("The two new passwords do not match.")
        app.accounts.set_password(user.name, password, keep_session=request.cookies.get(SESSION_COOKIE))
    except InputError as error:
        status = 429 if isinstance(error, TooManyAttempts) else 400
        return _account_page(request, app, user, error=str(error), status=status)
    return _account_page(
        request, app, user, announcement="Your password has been changed, and you have been signed out everywhere else."
    )


@router.post("/account/tokens")
def make_token(request: Request, app: App, user: Member, label: ShortField = "") -> Response:
    """Create an API token and show it once."""
    return _account_page(request, app, user, token=app.accounts.make_token(user.name, label))


@router.post("/account/tokens/{token_id}/revoke")
def revoke_token(app: App, user: Member, token_id: str) -> Response:
    """Revoke an API token."""
    app.accounts.revoke_token(user.name, token_id)
    return back_to("/account")


def _account_page(request: Request, app: AppState, user: User, **values: Any) -> Response:
    all_values = {"error": "", "announcement": "", "token": "", **values}
    all_values |= {"me": app.accounts.user(user.name), "tokens": app.accounts.tokens(user.name)}
    return page(request, "auth/account.html.j2", **all_values)


@router.get("/users")
def show_users(request: Request, app: App, user: UserManager) -> Response:
    """Show all accounts, and the running and waiting jobs."""
    return _users_page(request, app)


@router.post("/users")
def invite(
    request: Request,
    app: App,
    user: UserManager,
    name: Field = "",
    display_name: ShortField = "",
    role: Field = "annotator",
) -> Response:
    """Create an account and show its invitation link."""
    try:
        added = app.accounts.add(name.strip().lower(), cast(Role, role), display_name)
    except InputError as error:
        return _users_page(request, app, error=str(error), status=400)
    return _users_page(request, app, link=link_address(app, added.name, "invitation"), linked=added.name)


@router.post("/users/{name}/link")
def new_link(request: Request, app: App, user: UserManager, name: str) -> Response:
    """Show a link by which a user sets a new password."""
    return _users_page(request, app, link=link_address(app, name, "password"), linked=name)


@router.post("/users/{name}")
def change(request: Request, app: App, user: UserManager, name: str, role: Field = "", active: Field = "") -> Response:
    """Change a user's role, or block or unblock the account."""
    try:
        chosen = cast(Role, role) if role else None
        app.accounts.change(name, role=chosen, active={"yes": True, "no": False}.get(active))
    except InputError as error:
        return _users_page(request, app, error=str(error), status=400)
    return back_to("/users")


def link_address(app: AppState, name: str, purpose: Purpose) -> str:
    """Return the address of a new one-time link for a user."""
    return f"{app.settings.root}/enter/{app.accounts.make_link(name, purpose)}"


def _users_page(request: Request, app: AppState, **values: Any) -> Response:
    all_values = {"link": "", "linked": "", "error": "", **values}
    jobs = app.jobs.unended()
    return page(request, "auth/people.html.j2", users=app.accounts.users(), roles=ROLES, jobs=jobs, **all_values)


@router.post("/jobs/{job_id}/stop")
def stop_job(app: App, user: Member, job_id: str, following: Annotated[str, Form(alias="next")] = "") -> Response:
    """Stop the user's own job, or as an admin any job, and redirect to the path in the field ``next``."""
    job = job_for(app, user, job_id)
    if not may_stop(job, user):
        raise Refused("This is somebody else's work: they or an admin can stop it.")
    app.jobs.stop(job_id)
    return back_to(safe_next(following))


@router.get("/jobs/{job_id}/events")
async def follow_job(request: Request, app: App, user: Reader, job_id: str) -> StreamingResponse:
    """Stream the events of a job as server-sent events, after ``Last-Event-ID``."""
    await run_in_threadpool(job_for, app, user, job_id)
    last = request.headers.get("last-event-id", "") or request.query_params.get("after", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
    stream = app.visitors.limit_stream(request, user, app.streams.follow(job_id, after))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
