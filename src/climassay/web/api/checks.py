"""Checks of claims in the API: ask, list, read the debate and the ClaimReview, say what one thinks."""

from typing import Annotated, Any

from pydantic import BeforeValidator, JsonValue
from starlette.responses import JSONResponse, Response

from climassay.factcheck.check_store import CheckReview, CheckSummary, Opinion
from climassay.factcheck.configuration import Reviewed, settings_tables
from climassay.factcheck.transcript import as_data
from climassay.web.access import Annotator, Reader
from climassay.web.accounts import User
from climassay.web.api.answers import Share, answer, at, page_at, said
from climassay.web.api.base import (
    AfterName,
    Data,
    Limit,
    Moment,
    ShortText,
    Text,
    area,
    failing,
    field,
    first_of,
    listed,
    named,
    named_for,
    whole,
)
from climassay.web.api.server import JobData
from climassay.web.app_state import App, AppState
from climassay.web.checks.pages import WantedChecks
from climassay.web.checks.store import (
    Busy,
    ClaimForm,
    SetUp,
    begin_again,
    begin_check,
    checks_of,
    chosen,
    claim_review_of,
    end_check,
    found_check,
    set_ups,
)
from climassay.web.failures import Failure, Missing

router = area("/checks", "checks")
CheckId = Annotated[str, named("Id of the check.", "c9f3a1b2c4d5")]
LD_JSON = "application/ld+json"
SHOWN_CLAIM = "Sea level has not risen since 1900."


class ClaimToCheck(Data):
    """A claim, and how it is to be debated."""

    claim: Text = field(SHOWN_CLAIM, "One sentence or a few, at most 2,000 characters.", min_length=1)
    source: ShortText = field("https://example.org/column", "Who says it, or where it stands.", default="")
    date: ShortText = field("2024-05-31", "When it was said: ISO 8601 date, or the year.", default="")
    set_up: ShortText = field("", default="")
    """Who debates: a name that `GET /api/v1/checks/set-ups` lists; by default the first."""


CheckData = answer(
    "Check",
    CheckSummary,
    "id by asked_at ended_at state error set_up job run outcome topic seconds reviewed agree disagree undecided",
    claim=at("claim.text", str),
    source=at("claim.source", str),
    date=at("claim.date", str),
    reviewed=said(Reviewed, "What most of the people who reviewed it hold."),
    verdict=at("label", str | None, "A label of the scale; null where there is none."),
    page=page_at("/checks/{}", "id"),
)
SetUpData = answer(
    "SetUp",
    SetUp,
    "name",
    advocates=at(
        "settings.advocates",
        Annotated[list[str], BeforeValidator(lambda given: [one.name for one in given])],
        "Names of those who debate.",
    ),
    model=at("settings.model", str),
    rounds=at("settings.rounds", int, "At most so many."),
)
BegunCheck = answer(
    "BegunCheck",
    "A check that was taken.",
    check=CheckData,
    job=said(JobData | None, "The work; null where it was not begun yet."),
    events=said(
        str | None,
        "Where browsers get the debate live, as server-sent events; programs take `GET /api/v1/jobs/{job}/events`.",
    ),
)
ReviewData = answer("Review", CheckReview, "by opinion comment current", by=str | None, at=at("made_at", Moment))
TranscriptData = answer(
    "Transcript",
    "A check with its whole debate.",
    check=CheckData,
    settings=said(dict[str, JsonValue], "Who debated and by which rules: the tables of a file that sets up a debate."),
    transcript=said(
        dict[str, JsonValue],
        "As `climassay check --json` writes it: claim, subclaims, advocates, rounds, verdict, sources, usage.",
    ),
)
AgreementOfReaders = answer(
    "AgreementOfReaders",
    "How often people agree with the verdicts; a check counts once, however many reviewed it.",
    agreed=said(
        Share | None,
        "Share of the checks with most reviewers for it, among those with a majority; null where there is none.",
    ),
    divided=said(int, "Checks with as many for as against, which are not counted."),
)


class ReviewToGive(Data):
    """What one thinks of a verdict."""

    opinion: Opinion = field("agree", "`undecided` needs a comment.")
    comment: Text = field("The tide gauges say otherwise.", "At most 4,000 characters.", default="")


class TooMuchWaits(Failure):
    """More claims wait than can be checked soon."""

    status = 429


@router.get("", response_model=listed(CheckData))
def list_checks(
    app: App,
    user: Reader,
    wanted: WantedChecks,
    limit: Limit = 50,
    after: AfterName = None,
) -> Any:
    """All checks that fit, the newest first."""
    results = [named_for(one, user) for one in checks_of(app).newest(wanted, most=limit + 1, after=after)]
    return first_of(results, limit, lambda one: one.id)


@router.post("", status_code=202, response_model=BegunCheck, responses=failing(429))
def check_claim(app: App, user: Annotator, asked: ClaimToCheck) -> Any:
    """Have a claim checked.

    The debate goes on after the answer: watch its job, and read the verdict from the check when it has ended. A claim
    that the same person asked for already, and that still waits, is not taken a second time: its check is answered.
    """
    typed = ClaimForm(**asked.model_dump())
    try:
        check = begin_check(app, user, typed.cleaned(), chosen(app, typed.set_up))
    except Busy as error:
        raise TooMuchWaits(str(error)) from None
    return _begun(app, user, check)


@router.get("/set-ups", response_model=listed(SetUpData))
def list_set_ups(app: App, user: Annotator) -> Any:
    """The ways to debate that can be chosen; the first is taken where none is."""
    return whole(set_ups(app))


@router.get("/agreement", response_model=AgreementOfReaders)
def get_agreement_of_readers(app: App, user: Reader) -> Any:
    """How often people agree with the verdicts of all checks."""
    return checks_of(app).agreement()


@router.get("/{check}", response_model=CheckData)
def get_check(app: App, user: Reader, check: CheckId) -> Any:
    """How a check stands."""
    return named_for(found_check(app, check)[0].about, user)


@router.get("/{check}/transcript", response_model=TranscriptData)
def get_transcript(app: App, user: Reader, check: CheckId) -> Any:
    """The whole debate; missing until it has ended."""
    kept = found_check(app, check)[0]
    if kept.transcript is None:
        raise Missing(f"The check {check} has no transcript: its state is {kept.about.state!r}.")
    tables, transcript = settings_tables(kept.settings), as_data(kept.transcript)
    return {"check": named_for(kept.about, user), "settings": tables, "transcript": transcript}


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
def get_claim_review(app: App, user: Reader, check: CheckId) -> Response:
    """The verdict as schema.org ClaimReview; missing without a verdict, or where the server names no publisher."""
    return JSONResponse(claim_review_of(app, check), media_type=LD_JSON)


@router.get("/{check}/reviews", response_model=listed(ReviewData))
def list_reviews(app: App, user: Reader, check: CheckId) -> Any:
    """What people said about a check, in order; earlier words of a person are kept."""
    found_check(app, check)
    return whole([named_for(one, user) for one in checks_of(app).reviews(check)])


@router.post("/{check}/reviews", response_model=ReviewData)
def review_check(app: App, user: Annotator, check: CheckId, review: ReviewToGive) -> Any:
    """Agree, disagree or comment; a later word appears in place of the first, the same word changes nothing."""
    found_check(app, check)
    store = checks_of(app)
    store.review(check, user.name, review.opinion, review.comment)
    return [one for one in store.reviews(check) if one.by == user.name and one.current][-1]


@router.post("/{check}/stop", response_model=CheckData)
def stop_check(app: App, user: Annotator, check: CheckId) -> Any:
    """End a check that goes on: one's own, as an adjudicator anybody's. One that has ended stays as it is."""
    end_check(app, user, check)
    return checks_of(app).get(check).about


@router.post("/{check}/again", status_code=202, response_model=BegunCheck, responses=failing(429))
def ask_again(app: App, user: Annotator, check: CheckId) -> Any:
    """Go on with a check that broke or was stopped; what was answered is not asked again. Others stay as they are.

    One that was stopped goes on for who asked for it, and for adjudicators.
    """
    try:
        begin_again(app, user, check)
    except Busy as error:
        raise TooMuchWaits(str(error)) from None
    return _begun(app, user, check)


def _begun(app: AppState, user: User | None, check: str) -> Any:
    kept, job = found_check(app, check)
    events = None if job is None else f"/jobs/{job.id}/events"
    return {"check": named_for(kept.about, user), "job": job and named_for(job, user), "events": events}
