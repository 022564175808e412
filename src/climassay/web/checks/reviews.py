"""What people say about a check."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Form
from starlette.responses import Response

from climassay.errors import InputError
from climassay.factcheck.check_store import LONGEST_COMMENT, CheckReview
from climassay.web.access import Annotator
from climassay.web.accounts import User
from climassay.web.checks.store import checks_of, found_check
from climassay.web.pages import back_to
from climassay.web.place import Place, PlaceHere

router = APIRouter()


@dataclass(frozen=True, slots=True)
class ShownReview:
    """A review with the name of who gave it, as others see it."""

    name: str
    review: CheckReview


@router.post("/checks/{check}/review")
def review(
    place: PlaceHere,
    user: Annotator,
    check: str,
    opinion: Annotated[str, Form()] = "undecided",
    comment: Annotated[str, Form()] = "",
) -> Response:
    """Agree, disagree or comment; a later word of the same person stands in place of the first."""
    found_check(place, check)
    # Browsers send line ends as CR and LF.
    checks_of(place).review(check, user.name, opinion, comment.replace("\r\n", "\n"))
    return back_to(f"/checks/{check}#reviews")


def review_values(place: Place, check: str, user: User | None) -> dict[str, Any]:
    """What the part of a page about reviews needs: all of them, and the visitor's own last one."""
    every = checks_of(place).reviews(check)
    mine = [one for one in every if user is not None and one.by == user.name]
    return {
        "reviews": [ShownReview(shown_name(place, user, one.by), one) for one in every],
        "mine": mine[-1] if mine else None,
        "longest_comment": LONGEST_COMMENT,
    }


def shown_name(place: Place, viewer: User | None, name: str | None) -> str:
    """Somebody's name as a viewer sees it; empty for somebody without an account.

    The name that somebody signs in by is for those who have an account themselves.
    """
    if name is None:
        return ""
    try:
        shown = place.accounts.user(name).shown
    except InputError:
        shown = name
    return "somebody with an account" if viewer is None and shown == name else shown
