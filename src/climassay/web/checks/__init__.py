"""Checking claims in the browser: ask, watch the debate, read the verdict, say what one thinks of it."""

from fastapi import APIRouter

from climassay.web.checks import asking, downloads, lists, reviews, showing
from climassay.web.checks.set_ups import set_ups
from climassay.web.checks.store import KIND, checks_of, send_forgotten
from climassay.web.checks.work import check_claim
from climassay.web.place import Place

router = APIRouter()
for part in (asking, lists, showing, reviews, downloads):
    router.include_router(part.router)


def register(place: Place) -> None:
    """Make the tables, and say how a claim is checked.

    Raises:
        InputError: A file that sets up debates cannot be read.
    """
    checks_of(place)
    set_ups(place)
    place.jobs.register(KIND, check_claim, "models")
    send_forgotten(place)
