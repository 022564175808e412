"""Checks of claims in the API: ask, list, read the debate and the ClaimReview, say what one thinks."""

from typing import Annotated, Any

from fastapi import Request
from pydantic import AfterValidator, AliasPath, BeforeValidator, Field, JsonValue
from starlette.responses import JSONResponse, Response

from climassay.factcheck.check_store import CheckReview, CheckState, CheckSummary, Opinion
from climassay.factcheck.configuration import Reviewed, settings_tables
from climassay.factcheck.transcript import as_data
from climassay.web.access import Annotator, Asker, Reader
from climassay.web.accounts import User
from climassay.web.api.base import (
    AfterName,
    Data,
    Limit,
    Listed,
    Moment,
    Share,
    ShortText,
    Text,
    area,
    failing,
    field,
    first_of,
    named,
    named_for,
    whole,
)
from climassay.web.api.server import JobData, job_data
from climassay.web.app_state import App, AppState
from climassay.web.checks.pages import WantedChecks
from climassay.web.checks.store import (
    Busy,
    ClaimForm,
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


class SetUpData(Data):
    """A way to debate that can be chosen."""

    name: str = field("every collection")
    advocates: Annotated[list[str], BeforeValidator(lambda given: [one.name for one in given])] = field(
        ["primer"], "Names of those who debate.", validation_alias=AliasPath("settings", "advocates")
    )
    model: str = field("local:smollm2", validation_alias=AliasPath("settings", "model"))
    rounds: int = field(3, "At most so many.", validation_alias=AliasPath("settings", "rounds"))


class CheckData(Data):
    """A check of a claim, without its debate."""

    id: str = field("c9f3a1b2c4d5")
    claim: str = field(SHOWN_CLAIM, validation_alias=AliasPath("claim", "text"))
    source: str = field("https://example.org/column", validation_alias=AliasPath("claim", "source"))
    date: str = field("2024-05-31", validation_alias=AliasPath("claim", "date"))
    by: str | None = field("ada")
    """Name of who asked; null for somebody without an account, and to readers without one."""
    asked_at: Moment
    ended_at: Moment | None
    state: CheckState = field("done", "`waiting` until the debate has ended; then `done`, `failed` or `stopped`.")
    error: str | None = field(None, "Why it failed, in one sentence.")
    set_up: str = field("every collection")
    job: str | None = field("j4f0c2d1e9a8b", "Id of the work: see `GET /api/v1/jobs/{job}`.")
    run: str | None = field("r00c0ffee", "Id of the run in the records: see `GET /api/v1/runs/{run}`.")
    outcome: str | None = field("verdict")
    """`verdict`, `not enough information`, `not checkable`, `not about climate`, `failed`; null before the end."""
    verdict: str | None = field("incorrect", validation_alias="label")
    """A label of the scale; null where there is none."""
    topic: str | None = field("1.6", "Contrarian claim of CARDS that it makes, where one is likely.")
    seconds: float | None = field(48.2, "How long it was debated; null before the end.")
    reviewed: Reviewed = field("unreviewed", "What most of the people who reviewed it hold.")
    agree: int = field(0, "People whose last word is that they agree.")
    disagree: int = field(0)
    undecided: int = field(0)
    page: Annotated[str, AfterValidator("/checks/{}".format)] = field("/checks/c9f3a1b2c4d5", validation_alias="id")
    """Permanent address on this server."""


class BegunCheck(Data):
    """A check that was taken."""

    check: CheckData
    job: JobData | None
    """The work; null where it was not begun yet."""
    events: str | None = field("/jobs/j4f0c2d1e9a8b/events")
    """Where browsers get the debate live, as server-sent events; programs take `GET /api/v1/jobs/{job}/events`."""


class ReviewToGive(Data):
    """What one thinks of a verdict."""

    opinion: Opinion = field("agree", "`undecided` needs a comment.")
    comment: Text = field("The tide gauges say otherwise.", "At most 4,000 characters.", default="")


class ReviewData(Data):
    """What somebody said about a check."""

    by: str | None = field("ada", "Who said it; null to readers without an account.")
    opinion: Opinion = field("agree")
    comment: str = field("The tide gauges say otherwise.")
    at: Moment = Field(validation_alias="made_at")
    current: bool = field(True, "Whether it is their last word.")


class TranscriptData(Data):
    """A check with its whole debate."""

    check: CheckData
    settings: dict[str, JsonValue] = field({"model": "local:smollm2", "rounds": 3})
    """Who debated and by which rules: the tables of a file that sets up a debate."""
    transcript: dict[str, JsonValue] = field({"scale": "climate-feedback", "rounds": []})
    """As `climassay check --json` writes it: claim, subclaims, advocates, rounds, verdict, sources, usage."""


class AgreementOfReaders(Data):
    """How often people agree with the verdicts; a check counts once, however many reviewed it."""

    agreed: Share | None
    """Share of the checks with most reviewers for it, among those with a majority; null where there is none."""
    divided: int = field(0, "Checks with as many for as against, which are not counted.")


class TooMuchWaits(Failure):
    """More claims wait than can be checked soon."""

    status = 429


@router.get("")
def list_checks(
    app: App,
    user: Reader,
    wanted: WantedChecks,
    limit: Limit = 50,
    after: AfterName = None,
) -> Listed[CheckData]:
    """All checks that fit, the newest first."""
    found = checks_of(app).newest(wanted, most=limit + 1, after=after)
    part = first_of(found, limit, lambda one: one.id)
    return Listed(items=[_check(one, user) for one in part["items"]], next=part["next"])


@router.post("", status_code=202, responses=failing(429))
def check_claim(request: Request, app: App, user: Asker, asked: ClaimToCheck) -> BegunCheck:
    """Have a claim checked.

    The debate goes on after the answer: watch its job, and read the verdict from the check when it has ended. A claim
    that the same person asked for already, and that still waits, is not taken a second time: its check is answered.
    """
    typed = ClaimForm(**asked.model_dump())
    try:
        check = begin_check(app, request, user, typed.cleaned(), chosen(app, typed.set_up))
    except Busy as error:
        raise TooMuchWaits(str(error)) from None
    return _begun(app, user, check)


@router.get("/set-ups", response_model=Listed[SetUpData])
def list_set_ups(app: App, user: Asker) -> dict[str, Any]:
    """The ways to debate that can be chosen; the first is taken where none is."""
    return whole(set_ups(app))


@router.get("/agreement", response_model=AgreementOfReaders)
def get_agreement_of_readers(app: App, user: Reader) -> Any:
    """How often people agree with the verdicts of all checks."""
    return checks_of(app).agreement()


@router.get("/{check}")
def get_check(app: App, user: Reader, check: CheckId) -> CheckData:
    """How a check stands."""
    return _check(found_check(app, check)[0].about, user)


@router.get("/{check}/transcript")
def get_transcript(app: App, user: Reader, check: CheckId) -> TranscriptData:
    """The whole debate; missing until it has ended."""
    kept = found_check(app, check)[0]
    if kept.transcript is None:
        raise Missing(f"The check {check} has no transcript: its state is {kept.about.state!r}.")
    return TranscriptData(
        check=_check(kept.about, user), settings=settings_tables(kept.settings), transcript=as_data(kept.transcript)
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
def get_claim_review(app: App, user: Reader, check: CheckId) -> Response:
    """The verdict as schema.org ClaimReview; missing without a verdict, or where the server names no publisher."""
    return JSONResponse(claim_review_of(app, check), media_type=LD_JSON)


@router.get("/{check}/reviews")
def list_reviews(app: App, user: Reader, check: CheckId) -> Listed[ReviewData]:
    """What people said about a check, in order; earlier words of a person are kept."""
    found_check(app, check)
    return Listed(items=[_review(one, user) for one in checks_of(app).reviews(check)], next=None)


@router.post("/{check}/reviews")
def review_check(app: App, user: Annotator, check: CheckId, review: ReviewToGive) -> ReviewData:
    """Agree, disagree or comment; a later word appears in place of the first, the same word changes nothing."""
    found_check(app, check)
    store = checks_of(app)
    store.review(check, user.name, review.opinion, review.comment)
    return _review([one for one in store.reviews(check) if one.by == user.name and one.current][-1], user)


@router.post("/{check}/stop")
def stop_check(app: App, user: Annotator, check: CheckId) -> CheckData:
    """End a check that goes on: one's own, as an adjudicator anybody's. One that has ended stays as it is."""
    end_check(app, user, check)
    return _check(checks_of(app).get(check).about, user)


@router.post("/{check}/again", status_code=202, responses=failing(429))
def ask_again(request: Request, app: App, user: Asker, check: CheckId) -> BegunCheck:
    """Go on with a check that broke or was stopped; what was answered is not asked again. Others stay as they are.

    One that was stopped goes on for who asked for it, and for adjudicators.
    """
    try:
        begin_again(app, request, user, check)
    except Busy as error:
        raise TooMuchWaits(str(error)) from None
    return _begun(app, user, check)


def _check(about: CheckSummary, user: User | None) -> CheckData:
    return named_for(CheckData.model_validate(about), user)


def _review(review: CheckReview, user: User | None) -> ReviewData:
    return named_for(ReviewData.model_validate(review), user)


def _begun(app: AppState, user: User | None, check: str) -> BegunCheck:
    kept, job = found_check(app, check)
    events = None if job is None else f"/jobs/{job.id}/events"
    return BegunCheck(check=_check(kept.about, user), job=None if job is None else job_data(job, user), events=events)
