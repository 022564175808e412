"""Checking claims in the browser: ask, watch the debate, read the verdict, say what one thinks of it; and texts."""

from climassay.web.app_state import AppState
from climassay.web.checks.debate import check_claim
from climassay.web.checks.lists import router as lists_router
from climassay.web.checks.pages import router
from climassay.web.checks.store import KIND, checks_of, send_forgotten, set_ups
from climassay.web.checks.texts import router as texts_router

__all__ = ["register", "router"]

router.include_router(lists_router)
router.include_router(texts_router)


def register(app: AppState) -> None:
    """Make the tables, and say how a claim is checked.

    Raises:
        InputError: A file that sets up debates cannot be read.
    """
    checks_of(app)
    set_ups(app)
    app.jobs.register(KIND, check_claim, "models")
    send_forgotten(app)
