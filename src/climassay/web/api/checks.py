"""Checks of claims in the API: ask, list, read the debate and the ClaimReview, say what one thinks."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from climassay.factcheck.check_store import CheckFilter, Reviewed
from climassay.factcheck.configuration import settings_tables
from climassay.factcheck.transcript import as_data
from climassay.web.access import Annotator, Asker, Reader
from climassay.web.accounts import User
from climassay.web.api.checks_data import (
    BegunCheck,
    CheckData,
    ClaimToCheck,
    ReviewData,
    ReviewToGive,
    SetUpData,
    TranscriptData,
    check_data,
    review_data,
)
from climassay.web.api.fields import NO_NUL, AfterName, Data, Limit, Listed, Share, named, some_share
from climassay.web.api.jobs import job_data
from climassay.web.api.routing import area, failing
from climassay.web.checks.asking import Asked, Busy, begin_again, begin_check
from climassay.web.checks.downloads import claim_review_of
from climassay.web.checks.set_ups import chosen, set_ups
from climassay.web.checks.store import checks_of, end_check, found_check
from climassay.web.failures import Failure, Missing
from climassay.web.place import Place, PlaceHere

router = area("/checks", "checks")
CheckId = Annotated[str, named("Id of the check.", "c9f3a1b2c4d5")]
LD_JSON = "application/ld+json"


class TooMuchWaits(Failure):
    """More claims wait than can be checked soon."""

    status = 429


class AgreementOfReaders(Data):
    """How often people agree with the verdicts; a check counts once, however many reviewed it."""

    agreed: Share | None
    """Share of the checks with most reviewers for it, among those with a majority; null where there is none."""
    divided: int = Field(examples=[0])
    """Checks with as many for as against, which are not counted."""


@router.get("")
def list_checks(
    place: PlaceHere,
    user: Reader,
    q: Annotated[
        str, Query(description="Words that the claim or its source must hold.", pattern=NO_NUL, max_length=200)
    ] = "",
    verdict: Annotated[
        str, Query(description="Label, or outcome of a check without one.", pattern=NO_NUL, max_length=200)
    ] = "",
    review: Annotated[Reviewed | None, Query(description="What most reviewers hold.")] = None,
    limit: Limit = 50,
    after: AfterName = None,
) -> Listed[CheckData]:
    """All checks that fit, the newest first."""
    found = checks_of(place).newest(CheckFilter(q, verdict, review or ""), most=limit + 1, after=after)
    shown = found[:limit]
    return Listed(items=[check_data(one, user) for one in shown], next=shown[-1].id if len(found) > limit else None)


@router.post("", status_code=202, responses=failing(429))
def check_claim(request: Request, place: PlaceHere, user: Asker, asked: ClaimToCheck) -> BegunCheck:
    """Have a claim checked.

    The debate goes on after the answer: watch its job, and read the verdict from the check when it has ended. A claim
    that the same person asked for already, and that still waits, is not taken a second time: its check is answered.
    """
    typed = Asked(asked.claim, asked.source, asked.date, asked.set_up)
    try:
        check = begin_check(place, request, user, typed.cleaned(), chosen(place, typed.set_up))
    except Busy as error:
        raise TooMuchWaits(str(error)) from None
    return _begun(place, user, check)


@router.get("/set-ups")
def list_set_ups(place: PlaceHere, user: Asker) -> Listed[SetUpData]:
    """The ways to debate that can be chosen; the first is taken where none is."""
    every = [
        SetUpData(
            name=one.name,
            advocates=[advocate.name for advocate in one.settings.advocates],
            model=one.settings.model,
            rounds=one.settings.rounds,
        )
        for one in set_ups(place)
    ]
    return Listed(items=every, next=None)


@router.get("/agreement")
def get_agreement_of_readers(place: PlaceHere, user: Reader) -> AgreementOfReaders:
    """How often people agree with the verdicts of all checks."""
    found = checks_of(place).agreement()
    return AgreementOfReaders(agreed=some_share(found.agreed), divided=found.divided)


@router.get("/{check}")
def get_check(place: PlaceHere, user: Reader, check: CheckId) -> CheckData:
    """How a check stands."""
    return check_data(found_check(place, check)[0].about, user)


@router.get("/{check}/transcript")
def get_transcript(place: PlaceHere, user: Reader, check: CheckId) -> TranscriptData:
    """The whole debate; missing until it has ended."""
    kept = found_check(place, check)[0]
    if kept.transcript is None:
        raise Missing(f"The check {check} has no transcript: its state is {kept.about.state!r}.")
    return TranscriptData(
        check=check_data(kept.about, user), settings=settings_tables(kept.settings), transcript=as_data(kept.transcript)
    )


@router.get(
    "/{check}/claimreview",
    response_class=Response,
    responses={
        200: {
            "description": "JSON-LD, as https://schema.org/ClaimReview describes it.",
            "content": {
                LD_JSON: {
                    "schema": {
                        "type": "object",
                        "required": ["@context", "@type", "url", "claimReviewed", "author", "reviewRating"],
                        "properties": {
                            "@context": {"const": "https://schema.org"},
                            "@type": {"const": "ClaimReview"},
                            "url": {"type": "string", "format": "uri"},
                            "claimReviewed": {"type": "string"},
                        },
                    }
                }
            },
        }
    },
)
def get_claim_review(place: PlaceHere, user: Reader, check: CheckId) -> Response:
    """The verdict as schema.org ClaimReview; missing without a verdict, or where the server names no publisher."""
    kept = found_check(place, check)[0]
    found = claim_review_of(place, kept)
    if found is None:
        why = "has no verdict" if place.settings.publisher else "cannot be published: the server names no publisher"
        raise Missing(f"There is no ClaimReview of this check, because it {why}.")
    return JSONResponse(found, media_type=LD_JSON)


@router.get("/{check}/reviews")
def list_reviews(place: PlaceHere, user: Reader, check: CheckId) -> Listed[ReviewData]:
    """What people said about a check, in order; earlier words of a person are kept."""
    found_check(place, check)
    return Listed(items=[review_data(one, user) for one in checks_of(place).reviews(check)], next=None)


@router.post("/{check}/reviews")
def review_check(place: PlaceHere, user: Annotator, check: CheckId, review: ReviewToGive) -> ReviewData:
    """Agree, disagree or comment; a later word stands in place of the first, the same word changes nothing."""
    found_check(place, check)
    store = checks_of(place)
    store.review(check, user.name, review.opinion, review.comment)
    mine = [one for one in store.reviews(check) if one.by == user.name and one.current]
    return review_data(mine[-1], user)


@router.post("/{check}/stop")
def stop_check(place: PlaceHere, user: Annotator, check: CheckId) -> CheckData:
    """End a check that goes on: one's own, as an adjudicator anybody's. One that has ended stays as it is."""
    end_check(place, user, check)
    return check_data(checks_of(place).get(check).about, user)


@router.post("/{check}/again", status_code=202, responses=failing(429))
def ask_again(request: Request, place: PlaceHere, user: Asker, check: CheckId) -> BegunCheck:
    """Go on with a check that broke or was stopped; what was answered is not asked again. Others stay as they are.

    One that was stopped goes on for who asked for it, and for adjudicators.
    """
    try:
        begin_again(place, request, user, check)
    except Busy as error:
        raise TooMuchWaits(str(error)) from None
    return _begun(place, user, check)


def _begun(place: Place, user: User | None, check: str) -> BegunCheck:
    kept, job = found_check(place, check)
    return BegunCheck(
        check=check_data(kept.about, user),
        job=None if job is None else job_data(job, user),
        events=None if job is None else f"/jobs/{job.id}/events",
    )
