"""The page on which a claim is typed."""

import hashlib
import hmac
import time
import unicodedata
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.factcheck import Claim, make_claim
from climassay.factcheck.check_store import LONGEST_CLAIM, LONGEST_SOURCE
from climassay.factcheck.claims import iso_date
from climassay.web.access import Asker
from climassay.web.accounts import User
from climassay.web.checks.company import similar_checks
from climassay.web.checks.set_ups import SetUp, chosen, set_ups
from climassay.web.checks.store import KIND, checks_of, found_check, may_begin_again, send_to_work
from climassay.web.failures import Failure, Refused
from climassay.web.pages import back_to, page
from climassay.web.place import Place, PlaceHere
from climassay.web.visitors import visitor_address

MOST_WAITING = 200
"""Checks that have not ended, until no more are taken."""
MOST_WAITING_FOR_ANYBODY = 20
"""As many, where somebody without an account asks."""
MOST_WAITING_OF_ONE = 3
"""Checks of one visitor without an account that have not ended."""
MOST_WAITING_OF_ACCOUNT = 50
LONGEST_DATE = 40
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of whatever follows them."""

router = APIRouter()


class Busy(Failure):
    """More has been asked for than can be done soon."""

    status = 503


class TooMany(Busy):
    """Somebody has asked for more than their share."""

    status = 429


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
    return back_to(f"/checks/{begin_check(place, request, user, made, wanted)}")


def begin_check(place: Place, request: Request, user: User | None, claim: Claim, wanted: SetUp) -> str:
    """Have a claim checked; one that the same person asked for, and that still waits, is not begun a second time.

    Returns:
        Id of the check.

    Raises:
        Busy: Too many wait already.
        TooMany: The visitor has begun too many.
    """
    checks, by = checks_of(place), user.name if user else None
    under_way = checks.under_way(claim, by, wanted.name)
    if under_way is not None:
        return under_way
    asker = refuse_crowds(place, request, user)
    check = checks.begin(claim, wanted.settings, set_up=wanted.name, by=by)
    send_to_work(place, checks.get(check).about, asker)
    return check


def begin_again(place: Place, request: Request, user: User | None, check: str) -> None:
    """Go on with a check that ended without a result; another one stays as it is.

    Raises:
        Refused: Somebody stopped it who alone, or with adjudicators, may have it go on.
        Busy: Too many wait already, of this asker or of all.
    """
    kept, _ = found_check(place, check)
    if may_begin_again(user, kept):
        send_to_work(place, kept.about, refuse_crowds(place, request, user))
    elif kept.about.state == "stopped":
        raise Refused("This check was stopped: who asked for it or an adjudicator can have it go on.")


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


def refuse_crowds(place: Place, request: Request, user: User | None) -> str:
    """Refuse what would take the places of others.

    Returns:
        What the asker's jobs are known by; addresses are kept as a keyed hash.

    Raises:
        Busy: Too many checks wait already.
        TooMany: The asker has too many.
    """
    if checks_of(place).waiting() >= (MOST_WAITING_FOR_ANYBODY if user is None else MOST_WAITING):
        raise Busy("Many claims are waiting to be checked already: try again later.")
    address = f"user {user.name}" if user else f"visitor {visitor_address(request)}"
    asker = hmac.new(place.csrf_key, address.encode(), hashlib.sha256).hexdigest()[:32]
    mine = [job for job in place.jobs.unended_or_since(KIND, time.time() - 3600) if job.payload.get("asker") == asker]
    if sum(not job.ended for job in mine) >= (MOST_WAITING_OF_ONE if user is None else MOST_WAITING_OF_ACCOUNT):
        raise TooMany("As many of your claims are waiting as may: wait until one has been checked.")
    if user is None and len(mine) >= place.settings.visitor_checks:
        raise TooMany(
            f"Without an account {place.settings.visitor_checks} claims an hour are checked: try again later."
        )
    return asker
