"""The page on which a claim is typed."""

import unicodedata
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.factcheck import Claim, make_claim
from climassay.factcheck.claims import iso_date
from climassay.factcheck.kept_check import LONGEST_CLAIM, LONGEST_SOURCE
from climassay.web.access import Asker
from climassay.web.accounts import User
from climassay.web.checks.company import similar_checks
from climassay.web.checks.set_ups import SetUp, chosen, set_ups
from climassay.web.checks.store import checks_of, send_to_work
from climassay.web.failures import Failure
from climassay.web.pages import back_to, page
from climassay.web.place import Place, PlaceHere

MOST_WAITING = 200
"""Checks that have not ended, until no more are taken."""
MOST_WAITING_FOR_ANYBODY = 20
"""As many, where somebody without an account asks."""
LONGEST_DATE = 40
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of whatever follows them."""

router = APIRouter()


class Busy(Failure):
    """More has been asked for than can be done soon."""

    status = 503


@dataclass(frozen=True, slots=True)
class Asked:
    """What a visitor wrote into the form."""

    claim: str = ""
    source: str = ""
    date: str = ""
    set_up: str = ""

    def cleaned(self) -> Claim:
        """The claim.

        Raises:
            InputError: It is empty or too long, or the date is none.
        """
        claim = make_claim(_plain(self.claim), source=" ".join(_plain(self.source).split()))
        for text, most, what in ((claim.text, LONGEST_CLAIM, "claim"), (claim.source, LONGEST_SOURCE, "source")):
            if len(text) > most:
                raise InputError(f"The {what} has {len(text):,} characters, and the limit is {most:,}: shorten it.")
        date = iso_date(" ".join(_plain(self.date).split()))
        if len(date) > LONGEST_DATE:
            raise InputError(
                f"The date {date[:LONGEST_DATE]!r}... is none: write it like 2024-05-31, or the year alone."
            )
        return Claim(claim.text, claim.source, date)


def _plain(text: str) -> str:
    """Text without what is not to be read: control characters, and those that turn the direction of a line."""
    return "".join(" " if unicodedata.category(one) == "Cc" else one for one in text if one not in _DIRECTIONS)


@router.get("/check")
def ask(
    request: Request, place: PlaceHere, _user: Asker, claim: str = "", source: str = "", date: str = ""
) -> Response:
    """The form; what a link names is filled in."""
    asked = Asked(claim[: 2 * LONGEST_CLAIM], source[: 2 * LONGEST_SOURCE], date[:LONGEST_DATE])
    return _form(request, place, asked)


@router.post("/check")
def take(
    request: Request,
    place: PlaceHere,
    user: Asker,
    claim: Annotated[str, Form()] = "",
    source: Annotated[str, Form()] = "",
    date: Annotated[str, Form()] = "",
    set_up: Annotated[str, Form()] = "",
    anyway: Annotated[bool, Form()] = False,
) -> Response:
    """Begin a check; where the claim was checked before, show that first."""
    asked = Asked(claim, source, date, set_up)
    try:
        made, wanted = asked.cleaned(), chosen(place, set_up)
    except InputError as error:
        return _form(request, place, asked, error=str(error), status=400)
    checks = checks_of(place)
    under_way = checks.under_way(made, user.name if user else None, wanted.name)
    if under_way is not None:
        return back_to(f"/checks/{under_way}")
    past = [] if anyway else similar_checks(place, made.text)
    if past:
        known = checks.of_runs([one.run for one in past])
        return page(request, "checks/past.html.j2", asked=asked, claim=made, past=past, known=known)
    return back_to(f"/checks/{begin_check(place, user, made, wanted)}")


def begin_check(place: Place, user: User | None, claim: Claim, wanted: SetUp) -> str:
    """Have a claim checked; one that the same person asked for, and that still waits, is not begun a second time.

    Returns:
        Id of the check.

    Raises:
        Busy: Too many wait already.
    """
    checks, by = checks_of(place), user.name if user else None
    under_way = checks.under_way(claim, by, wanted.name)
    if under_way is not None:
        return under_way
    _refuse_crowds(place, user)
    check = checks.begin(claim, wanted.settings, set_up=wanted.name, by=by)
    send_to_work(place, checks.get(check).about)
    return check


def _form(request: Request, place: Place, asked: Asked, *, error: str = "", status: int = 200) -> Response:
    return page(
        request,
        "checks/ask.html.j2",
        status=status,
        asked=asked,
        error=error,
        choices=set_ups(place),
        longest_claim=LONGEST_CLAIM,
        longest_source=LONGEST_SOURCE,
        longest_date=LONGEST_DATE,
    )


def _refuse_crowds(place: Place, user: User | None) -> None:
    most = MOST_WAITING_FOR_ANYBODY if user is None else MOST_WAITING
    if checks_of(place).waiting() >= most:
        raise Busy("Many claims are waiting to be checked already: try again later.")
