"""The list of all checks."""

from typing import get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.factcheck.check_store import CheckFilter, Reviewed
from climassay.web.access import Reader
from climassay.web.checks.store import checks_of
from climassay.web.pages import page
from climassay.web.place import PlaceHere

router = APIRouter()
LONGEST_SEARCH = 200
_LAST_PAGE = 10**6


@router.get("/checks")
def show_all(
    request: Request,
    place: PlaceHere,
    _user: Reader,
    q: str = "",
    verdict: str = "",
    review: str = "",
    number: int = Query(1, alias="page", ge=1, le=_LAST_PAGE),
) -> Response:
    """Checks that fit, the newest first, fifty a page."""
    if len(q) > LONGEST_SEARCH:
        raise InputError(f"Search for at most {LONGEST_SEARCH} characters.")
    checks = checks_of(place)
    found = checks.list(CheckFilter(q, verdict, review), number)
    given = {name: value for name, value in (("q", q), ("verdict", verdict), ("review", review)) if value}
    return page(
        request,
        "checks/list.html.j2",
        found=found,
        verdicts=checks.verdicts(),
        reviewed=get_args(Reviewed),
        given={"q": q, "verdict": verdict, "review": review},
        address=lambda page: "/checks?" + urlencode({**given, "page": page}),
        agreement=checks.agreement(),
    )
