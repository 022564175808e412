"""The server's own pages: start, sign-in, accounts, users, and the event streams of jobs."""

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
    may_read,
    may_stop,
)
from climassay.web.accounts import ROLES, Link, Purpose, Role, TooManyAttempts, User
from climassay.web.app_state import App, AppState
from climassay.web.checks.store import CHECK_KIND, find_check
from climassay.web.failures import Forbidden, NotFound, not_found_if_invalid
from climassay.web.jobs import Job
from climassay.web.limits import visitor_address
from climassay.web.pages import page, redirect_to, safe_next, set_private_cookie

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form()]
ShortField = Annotated[str, Form(max_length=120)]


@router.get("/")
def show_start_page(request: Request) -> Response:
    """Show the start page."""
    return page(request, "auth/start.html.j2")


@router.get("/sign-in")
def show_sign_in(request: Request, user: Visitor, next_path: Annotated[str, Query(alias="next")] = "") -> Response:
    """Show the sign-in form; redirect users who are already signed in to ``next_path``."""
    return _sign_in_page(request, next_path) if user is None else redirect_to(safe_next(next_path))


@router.post("/sign-in")
async def sign_in(
    request: Request,
    app: App,
    name: Field = "",
    password: Field = "",
    next_path: Annotated[str, Form(alias="next")] = "",
) -> Response:
    """Check the password and begin a session."""
    device = request.cookies.get(DEVICE_COOKIE, "")
    # Waiting here occupies no thread, so that people who guess passwords do not slow down other requests.
    if delay := await run_in_threadpool(app.accounts.sign_in_delay, name, device):
        await asyncio.sleep(delay)
    async with app.visitors.slot(visitor_address(request)):
        return await run_in_threadpool(_sign_in_with_password, request, app, name, password, next_path, device)


def _sign_in_with_password(
    request: Request, app: AppState, name: str, password: str, next_path: str, device: str
) -> Response:
    try:
        user = app.accounts.check_password(name, password, visitor_address(request), device)
    except TooManyAttempts as error:
        return _sign_in_page(request, next_path, name, str(error), status=429)
    if user is None:
        return _sign_in_page(request, next_path, name, "Wrong name or password.", status=401)
    return _begin_session(app, request, user, safe_next(next_path))


@router.post("/sign-out")
def sign_out(request: Request, app: App) -> Response:
    """End the session."""
    if token := request.cookies.get(SESSION_COOKIE):
        app.accounts.end_session(token)
    response = redirect_to("/")
    response.delete_cookie(SESSION_COOKIE, path="/")
    response.delete_cookie(VISITOR_COOKIE, path="/")
    return response


@router.get("/enter/{token}")
def show_link(request: Request, app: App, token: str) -> Response:
    """Show the purpose of a one-time link.

    The link is used up only by the button on the page, not by a preview of the page.
    """
    return page(request, "auth/enter.html.j2", link=_require_link(app, token), token=token, error="")


@router.post("/enter/{token}")
def use_link(request: Request, app: App, token: str, password: Field = "", repeated_password: Field = "") -> Response:
    """Sign in by a one-time link, and set a new password unless the link is only for signing in."""
    link = _require_link(app, token)
    try:
        if link.purpose != "enter" and password != repeated_password:
            raise InputError("The two passwords do not match.")
        user = app.accounts.use_link(token, None if link.purpose == "enter" else password)
    except InputError as error:
        return page(request, "auth/enter.html.j2", status=400, link=link, token=token, error=str(error))
    if user is None:
        raise NotFound("This link has just been used.")
    return _begin_session(app, request, link.user, "/")


def _require_link(app: AppState, token: str) -> Link:
    link = app.accounts.find_link(token)
    if link is None:
        raise NotFound("This link no longer works: it has been used, or it is too old. Ask for a new one.")
    return link


def _begin_session(app: AppState, request: Request, user: User, next_path: str) -> Response:
    """Begin a session, end the browser's earlier session, and redirect to ``next_path``."""
    if old_token := request.cookies.get(SESSION_COOKIE):
        app.accounts.end_session(old_token)
    response = redirect_to(next_path)
    set_private_cookie(response, app, SESSION_COOKIE, app.accounts.begin_session(user.name, app.settings.session_days))
    set_private_cookie(response, app, DEVICE_COOKIE, app.accounts.make_device_cookie(user.name))
    response.delete_cookie(VISITOR_COOKIE, path="/")
    return response


def _sign_in_page(request: Request, next_path: str, name: str = "", error: str = "", status: int = 200) -> Response:
    values = {"next_path": next_path, "name": name[:40], "error": error}
    return page(request, "auth/sign_in.html.j2", status=status, **values)


@router.get("/account")
def show_account(request: Request, app: App, user: Member) -> Response:
    """Show the user's account: password and API tokens."""
    return _account_page(request, app, user)


@router.post("/account/password")
def change_password(
    request: Request,
    app: App,
    user: Member,
    password: Field = "",
    repeated_password: Field = "",
    current_password: Field = "",
) -> Response:
    """Change the user's password and end the user's other sessions."""
    device = request.cookies.get(DEVICE_COOKIE, "")
    try:
        address = visitor_address(request)
        if user.has_password and app.accounts.check_password(user.name, current_password, address, device) is None:
            raise InputError("The current password is wrong.")
        if password != repeated_password:
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
    """Create an API token and show it. The token cannot be shown again."""
    return _account_page(request, app, user, token=app.accounts.make_token(user.name, label))


@router.post("/account/tokens/{token_id}/revoke")
def revoke_token(app: App, user: Member, token_id: str) -> Response:
    """Revoke an API token."""
    app.accounts.revoke_token(user.name, token_id)
    return redirect_to("/account")


def _account_page(request: Request, app: AppState, user: User, **values: Any) -> Response:
    template_values = {"error": "", "announcement": "", "token": "", **values}
    template_values |= {"me": app.accounts.user(user.name), "tokens": app.accounts.tokens(user.name)}
    return page(request, "auth/account.html.j2", **template_values)


@router.get("/users")
def show_users(request: Request, app: App, user: UserManager) -> Response:
    """Show all accounts, and the running and waiting jobs."""
    return _users_page(request, app)


@router.post("/users")
def invite_user(
    request: Request,
    app: App,
    user: UserManager,
    name: Field = "",
    display_name: ShortField = "",
    role: Field = "annotator",
) -> Response:
    """Create an account and show its invitation link."""
    try:
        new_user = app.accounts.add(name.strip().lower(), cast(Role, role), display_name)
    except InputError as error:
        return _users_page(request, app, error=str(error), status=400)
    return _users_page(request, app, link=make_link_address(app, new_user.name, "invitation"), linked=new_user.name)


@router.post("/users/{name}/link")
def make_password_link(request: Request, app: App, user: UserManager, name: str) -> Response:
    """Create and show a link by which a user can set a new password."""
    return _users_page(request, app, link=make_link_address(app, name, "password"), linked=name)


@router.post("/users/{name}")
def change_user(
    request: Request, app: App, user: UserManager, name: str, role: Field = "", active: Field = ""
) -> Response:
    """Change a user's role, or block or unblock the account."""
    try:
        new_role = cast(Role, role) if role else None
        app.accounts.change(name, role=new_role, active={"yes": True, "no": False}.get(active))
    except InputError as error:
        return _users_page(request, app, error=str(error), status=400)
    return redirect_to("/users")


def make_link_address(app: AppState, name: str, purpose: Purpose) -> str:
    """Create a one-time link for a user and return its address."""
    return f"{app.settings.root}/enter/{app.accounts.make_link(name, purpose)}"


def _users_page(request: Request, app: AppState, **values: Any) -> Response:
    template_values = {"link": "", "linked": "", "error": "", **values}
    jobs = app.jobs.list_unfinished()
    return page(request, "auth/people.html.j2", users=app.accounts.users(), roles=ROLES, jobs=jobs, **template_values)


def find_visible_job(app: AppState, user: User | None, job_id: str) -> Job:
    """Return a job if the user may see it; ``user`` is None if nobody is signed in.

    All users see their own jobs, the jobs of checks that they may read, and the jobs of questions; adjudicators see all
    jobs. Visitors without an account see only jobs of questions, because checks are not published while their jobs run.

    Raises:
        NotFound: The job does not exist, or the user may not read its check.
        Forbidden: The user may not see the job.
    """
    with not_found_if_invalid():
        job = app.jobs.get(job_id)
    if job.kind == CHECK_KIND and user is not None:
        find_check(app, job.payload["check"], user)
    may_follow = user is not None and (job.by == user.name or user.may("follow others' work"))
    is_readable_kind = job.kind == "ask" or (job.kind == "check" and user is not None)
    if not may_follow and not (is_readable_kind and may_read(user, app)):
        raise Forbidden("This is somebody else's work.")
    return job


@router.post("/jobs/{job_id}/stop")
def stop_job(app: App, user: Member, job_id: str, next_path: Annotated[str, Form(alias="next")] = "") -> Response:
    """Stop a job and redirect to the path in the form field ``next``; users may stop their own jobs, admins all."""
    job = find_visible_job(app, user, job_id)
    if not may_stop(job, user):
        raise Forbidden("This is somebody else's work: they or an admin can stop it.")
    app.jobs.stop(job_id)
    return redirect_to(safe_next(next_path))


@router.get("/jobs/{job_id}/events")
async def follow_job(request: Request, app: App, user: Reader, job_id: str) -> StreamingResponse:
    """Stream a job's events with numbers above ``Last-Event-ID`` or the parameter ``after`` as server-sent events."""
    await run_in_threadpool(find_visible_job, app, user, job_id)
    last_event = request.headers.get("last-event-id", "") or request.query_params.get("after", "")
    first_number = int(last_event) if last_event.isascii() and last_event.isdigit() and len(last_event) < 10 else 0
    stream = app.visitors.limit_stream(request, user, app.streams.follow(job_id, first_number))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
