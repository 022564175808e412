"""Past checks: the list with its filters, and the checks that fit as a file."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from climassay.factcheck.check_store import PAGE
from climassay.factcheck.configuration import CheckFilter, Reviewed
from climassay.factcheck.fallacies import CLAIMS, GROUPS
from climassay.reporting.results import csv_lines, write_workbook
from climassay.web.access import Reader
from climassay.web.accounts import User
from climassay.web.app_state import App, AppState
from climassay.web.checks.store import checks_of
from climassay.web.failures import Missing, SignInNeeded, plainly
from climassay.web.middleware import PublicView
from climassay.web.pages import as_file, page
from climassay.web.results.blocks import PageNumber, part_of

router = APIRouter(include_in_schema=False)
_TEXT = {"pattern": r"^[^\x00]*$", "max_length": 200}
_DAY = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})?$"
_NAMES = {"words": "q"}
"""Names of filters in addresses, where they differ."""
FORMS = ("csv", "xlsx", "jsonl")
COLUMNS = (
    "id", "claim", "source", "date", "verdict", "outcome", "state", "failure", "topic", "topic_in_words",
    "collections", "asked_at", "asked_by", "ended_at", "seconds", "set_up", "run", "reviewed", "agree", "disagree",
    "undecided", "page",
)  # fmt: skip
"""Columns of a table of checks."""
_BLOCK = 2**16
"""Bytes of a workbook that are sent at a time."""


def wanted_checks(
    user: Reader,
    q: Annotated[str, Query(description="Words that the claim or its source must hold.", **_TEXT)] = "",
    verdict: Annotated[str, Query(description="Label, or outcome of a check without one.", **_TEXT)] = "",
    review: Annotated[Reviewed | Literal[""], Query(description="What most reviewers hold.")] = "",
    topic: Annotated[
        str, Query(description="Contrarian claim of CARDS that it makes (`2.1`), or group of them (`2`).", **_TEXT)
    ] = "",
    collection: Annotated[str, Query(description="Collection that an advocate read.", **_TEXT)] = "",
    source: Annotated[str, Query(description="Words of who says it, or where it stands.", **_TEXT)] = "",
    since: Annotated[str, Query(description="First day on which it was asked for, UTC.", pattern=_DAY)] = "",
    until: Annotated[str, Query(description="Last day.", pattern=_DAY)] = "",
    reviewer: Annotated[
        str, Query(description="Name of an account that has reviewed it; for people with an account.", **_TEXT)
    ] = "",
) -> CheckFilter:
    """Which checks a list shows.

    Raises:
        SignInNeeded: Who reviewed what is for people with an account.
    """
    if reviewer and user is None:
        raise SignInNeeded("Please sign in to see who has reviewed what.")
    return CheckFilter(q, verdict, review, topic, collection, source, since, until, reviewer)


WantedChecks = Annotated[CheckFilter, Depends(wanted_checks)]


@router.get("/checks")
def show_all(request: Request, app: App, user: Reader, wanted: WantedChecks, number: PageNumber = 1) -> Response:
    """Checks that fit, the newest first, fifty a page."""
    checks = checks_of(app)
    found = checks.list(wanted, number)
    given = {_NAMES.get(one.name, one.name): getattr(wanted, one.name) for one in fields(wanted)}
    asked = urlencode({name: value for name, value in given.items() if value})
    called = names_for(app, user)
    topics = {group: [one for one in checks.topics() if one.partition(".")[0] == group] for group in GROUPS}
    reviewers = {name: called(name) for name in checks.reviewers()} if user else {}
    return page(
        request,
        "checks/list.html.j2",
        found=found,
        part=part_of(found.checks, number, found.total, PAGE, "/checks", given),
        given=given,
        asked=asked,
        said=_in_words(wanted, reviewers),
        verdicts=checks.verdicts(),
        reviewed=get_args(Reviewed),
        topics=[(group, GROUPS[group], claims) for group, claims in topics.items() if claims],
        claims=CLAIMS,
        collections=checks.collections(),
        reviewers=reviewers,
        forms=FORMS,
        agreement=checks.agreement(),
    )


def _in_words(wanted: CheckFilter, reviewers: Mapping[str, str]) -> list[str]:
    """What was asked for, filter by filter."""
    topic = CLAIMS.get(wanted.topic) or GROUPS.get(wanted.topic) or wanted.topic
    said = {
        f"the words \u201c{wanted.words}\u201d": wanted.words,
        f"the verdict \u201c{wanted.verdict}\u201d": wanted.verdict,
        f"reviews: {wanted.review}": wanted.review,
        f"the contrarian claim \u201c{topic}\u201d": wanted.topic,
        f"evidence from {wanted.collection}": wanted.collection,
        f"\u201c{wanted.source}\u201d as its source": wanted.source,
        f"from {wanted.since} on": wanted.since,
        f"until {wanted.until}": wanted.until,
        f"reviewed by {reviewers.get(wanted.reviewer, wanted.reviewer)}": wanted.reviewer,
    }
    return [words for words, asked in said.items() if asked]


@router.get("/checks.{form}")
def download_all(request: Request, app: App, user: Reader, wanted: WantedChecks, form: str) -> Response:
    """All checks that fit, the newest first: a row each, or as JSON lines with every word of the debates."""
    if form not in FORMS:
        raise Missing(f"Checks can be had as {', '.join(FORMS)}, not as {form[:20]}.")
    checks = checks_of(app)
    checks.newest(wanted, most=1)  # What cannot be asked for is told before anything is sent.
    name = f"checks.{form}"
    called = names_for(app, user)
    found = (shown_to(user, one, called) for one in checks.each(wanted, debates=form == "jsonl"))
    if form == "jsonl":
        return as_file((json.dumps(one, ensure_ascii=False) + "\n" for one in found), name)
    rows = (_row(app, one) for one in found)
    if form == "csv":
        return as_file(csv_lines(COLUMNS, rows), name)
    if user is None:
        # Nobody can take anything out of a workbook that is on its way to the public.
        view = PublicView(request.app, app)

        def public(cell: Any) -> Any:
            return view.shown(cell.encode("utf-8", "replace")).decode("utf-8", "replace")

        rows = ({name: public(one) if isinstance(one, str) else one for name, one in row.items()} for row in rows)
    return as_file(_workbook(rows), name)


def _row(app: AppState, check: Mapping[str, Any]) -> dict[str, Any]:
    more = {
        "failure": check["error"] and plainly(check["error"]),
        "topic_in_words": CLAIMS.get(check["topic"] or ""),
        "page": f"{app.settings.root}/checks/{check['id']}",
    }
    return {name: more[name] if name in more else check[name] for name in COLUMNS}


def _workbook(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as file:
        write_workbook(file, COLUMNS, rows)
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block


def shown_to(viewer: User | None, check: dict[str, Any], name: Callable[[str | None], str]) -> dict[str, Any]:
    """A check as data, with the names of people as :func:`names_for` has them."""
    if viewer is None:
        check["asked_by"] = name(check["asked_by"]) or None
        for said in check.get("reviews", ()):
            said["by"] = name(said["by"])
    return check


def names_for(app: AppState, viewer: User | None) -> Callable[[str | None], str]:
    """How people are called before a viewer; empty for somebody without an account.

    The name that somebody signs in by is for those who have an account themselves.
    """
    known = {one.name: one.shown for one in app.accounts.users()}

    def shown(name: str | None) -> str:
        if name is None:
            return ""
        found = known.get(name, name)
        return "somebody with an account" if viewer is None and found == name else found

    return shown
