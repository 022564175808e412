"""Moderation of checks: who may read them, and their deletion."""

from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.factcheck.check_records import VISIBILITIES, Visibility
from climassay.factcheck.check_store import checks
from climassay.web.access import CheckModerator, Visitor, may_read
from climassay.web.accounts import User
from climassay.web.app_state import App, AppState
from climassay.web.checks.store import find_check, get_check_store, readable_visibilities
from climassay.web.failures import NotFound
from climassay.web.pages import redirect_to

router = APIRouter(include_in_schema=False)


def hidden_runs(user: User | None) -> sa.Select[tuple[str]]:
    """Return a query that selects the run ids of checks that a user may not read."""
    return sa.select(checks.c.run).where(
        checks.c.run.is_not(None), checks.c.visibility.not_in(readable_visibilities(user))
    )


def require_visible_run(request: Request, app: App, user: Visitor) -> None:
    """Raise NotFound if the run in the path belongs to a check that the visitor may not read."""
    run = request.path_params.get("run")
    if run is None or not may_read(user, app):
        return
    check = get_check_store(app).ids_by_run([run]).get(run)
    if check is not None and get_check_store(app).get(check).about.visibility not in readable_visibilities(user):
        raise NotFound(f"There is no run {run[:40]}.")


def change_visibility(app: AppState, user: User, check: str, readers: Visibility) -> None:
    """Change who may read a check that has ended: publish it, unpublish it, or hide it.

    Raises:
        NotFound: The check does not exist.
        InputError: The check's debate has not ended.
    """
    if find_check(app, check, user)[0].about.state == "waiting":
        raise InputError("A check can be published or hidden once its debate has ended.")
    get_check_store(app).set_visibility(check, readers)


def remove_check(app: AppState, user: User, check: str) -> None:
    """Delete a check that has ended, its debate and reviews, and all answers used by no other run.

    Raises:
        NotFound: The check does not exist.
        InputError: The check's debate, or the job that stores it, has not ended.
    """
    stored_check, job = find_check(app, check, user)
    if stored_check.about.state == "waiting":
        raise InputError("Stop the check first: a debate that goes on cannot be deleted.")
    if job is not None and not job.has_ended:
        raise InputError("The debate has ended and is being stored: delete it in a moment.")
    get_check_store(app).delete(check)
    app.jobs.remove_for("check", check)
    if stored_check.about.run is not None:
        app.records.forget(stored_check.about.run)
        app.forget("results:")


@router.post("/checks/{check}/visibility")
def set_visibility(app: App, user: CheckModerator, check: str, visibility: Annotated[str, Form()] = "") -> Response:
    """Change who may read a check that has ended: publish it, unpublish it, or hide it."""
    find_check(app, check, user)
    readers = next((value for value in VISIBILITIES if value == visibility), None)
    if readers is None:
        raise InputError(f"A check is {', '.join(VISIBILITIES)}, not {visibility[:40]!r}.")
    change_visibility(app, user, check, readers)
    return redirect_to(f"/checks/{check}#moderation")


@router.post("/checks/{check}/delete")
def delete_check(app: App, user: CheckModerator, check: str) -> Response:
    """Delete a check that has ended, its debate and reviews, and all answers used by no other run."""
    remove_check(app, user, check)
    return redirect_to("/checks")
