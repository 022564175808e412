"""A check as files: the data, the ClaimReview, the page that stands alone."""

import json
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from climassay.factcheck import claim_review, factcheck_page
from climassay.factcheck.check_store import StoredCheck, check_data, iso_time
from climassay.factcheck.results.view import as_shown
from climassay.factcheck.scales import load_scale
from climassay.web.access import Reader
from climassay.web.checks.reviews import shown_name
from climassay.web.checks.store import checks_of, found_check
from climassay.web.failures import Missing
from climassay.web.place import Place, PlaceHere

router = APIRouter()


@router.get("/checks/{check}/check.json")
def download_data(place: PlaceHere, user: Reader, check: str) -> Response:
    """What was asked, the whole debate, and what people said about it."""
    kept, _ = found_check(place, check)
    data = check_data(kept, checks_of(place).reviews(check))
    if user is None:
        data["asked_by"] = shown_name(place, user, data["asked_by"]) or None
        for said in data["reviews"]:
            said["by"] = shown_name(place, user, said["by"])
    return _file(data, f"{check}.json", "application/json")


@router.get("/checks/{check}/claimreview.json")
def download_claim_review(place: PlaceHere, _user: Reader, check: str) -> Response:
    """The verdict as schema.org ClaimReview."""
    kept, _ = found_check(place, check)
    found = claim_review_of(place, kept)
    if found is None:
        missing = "has no verdict" if place.settings.publisher else "cannot be published: the server names no publisher"
        raise Missing(f"There is no ClaimReview of this check, because it {missing}.")
    return _file(found, f"{check}.claimreview.json", "application/ld+json")


@router.get("/checks/{check}/page.html")
def download_page(place: PlaceHere, _user: Reader, check: str) -> Response:
    """The fact-check as one file that asks nothing of any server."""
    kept, _ = found_check(place, check)
    if kept.transcript is None:
        raise Missing("This check has no result, so there is no page of it.")
    made = factcheck_page(kept.transcript, load_scale(kept.settings.scale))
    return Response(made, media_type="text/html", headers=_attached(f"{check}.html"))


def claim_review_of(place: Place, kept: StoredCheck) -> dict[str, Any] | None:
    """The ClaimReview of a check; None without a verdict, or where the server names nobody who answers for it."""
    about, publisher = kept.about, place.settings.publisher.strip()
    if kept.transcript is None or not publisher:
        return None
    scale = load_scale(kept.settings.scale)
    if as_shown(kept.transcript, scale).verdict.outcome != "verdict":
        return None
    return claim_review(
        kept.transcript,
        url=f"{place.settings.root}/checks/{about.id}",
        author=publisher,
        published=None if about.ended_at is None else iso_time(about.ended_at)[:10],
        scale=scale,
    )


def _file(data: dict[str, Any], name: str, kind: str) -> Response:
    return Response(json.dumps(data, ensure_ascii=False, indent=2), media_type=kind, headers=_attached(name))


def _attached(name: str) -> dict[str, str]:
    """Headers of a file that browsers keep instead of showing it as a page of this server."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
