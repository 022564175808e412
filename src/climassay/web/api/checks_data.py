"""Checks of claims in the API's words."""

from typing import Any

from pydantic import Field, JsonValue

from climassay.factcheck.check_store import CheckReview, CheckState, CheckSummary, Opinion, Reviewed
from climassay.web.accounts import User
from climassay.web.api.fields import Data, Moment, ShortText, Text, moment, some_moment
from climassay.web.api.jobs import JobData

SHOWN_CLAIM = "Sea level has not risen since 1900."


class ClaimToCheck(Data):
    """A claim, and how it is to be debated."""

    claim: Text = Field(min_length=1, examples=[SHOWN_CLAIM])
    """One sentence or a few, at most 2,000 characters."""
    source: ShortText = Field(default="", examples=["https://example.org/column"])
    """Who says it, or where it stands."""
    date: ShortText = Field(default="", examples=["2024-05-31"])
    """When it was said: ISO 8601 date, or the year."""
    set_up: ShortText = Field(default="", examples=[""])
    """Who debates: a name that `GET /api/v1/checks/set-ups` lists; by default the first."""


class SetUpData(Data):
    """A way to debate that can be chosen."""

    name: str = Field(examples=["every collection"])
    advocates: list[str] = Field(examples=[["primer"]])
    """Names of those who debate."""
    model: str = Field(examples=["local:smollm2"])
    rounds: int = Field(examples=[3])
    """At most so many."""


class CheckData(Data):
    """A check of a claim, without its debate."""

    id: str = Field(examples=["c9f3a1b2c4d5"])
    claim: str = Field(examples=[SHOWN_CLAIM])
    source: str = Field(examples=["https://example.org/column"])
    date: str = Field(examples=["2024-05-31"])
    by: str | None = Field(examples=["ada"])
    """Name of who asked; null for somebody without an account, and to readers without one."""
    asked_at: Moment
    ended_at: Moment | None
    state: CheckState = Field(examples=["done"])
    """`waiting` until the debate has ended; then `done`, `failed` or `stopped`."""
    error: str | None = Field(examples=[None])
    """Why it failed, in one sentence."""
    set_up: str = Field(examples=["every collection"])
    job: str | None = Field(examples=["j4f0c2d1e9a8b"])
    """Id of the work: see `GET /api/v1/jobs/{job}`."""
    run: str | None = Field(examples=["r00c0ffee"])
    """Id of the run in the records: see `GET /api/v1/runs/{run}`."""
    outcome: str | None = Field(examples=["verdict"])
    """`verdict`, `not enough information`, `not checkable`, `not about climate`, `failed`; null before the end."""
    verdict: str | None = Field(examples=["incorrect"])
    """A label of the scale; null where there is none."""
    reviewed: Reviewed = Field(examples=["unreviewed"])
    """What most of the people who reviewed it hold."""
    agree: int = Field(examples=[0])
    """People whose last word is that they agree."""
    disagree: int = Field(examples=[0])
    undecided: int = Field(examples=[0])
    page: str = Field(examples=["/checks/c9f3a1b2c4d5"])
    """Permanent address on this server."""


class BegunCheck(Data):
    """A check that was taken."""

    check: CheckData
    job: JobData | None
    """The work; null where it was not begun yet."""
    events: str | None = Field(examples=["/jobs/j4f0c2d1e9a8b/events"])
    """Where browsers get the debate live, as server-sent events; programs take `GET /api/v1/jobs/{job}/events`."""


class ReviewToGive(Data):
    """What one thinks of a verdict."""

    opinion: Opinion = Field(examples=["agree"])
    """`undecided` needs a comment."""
    comment: Text = Field(default="", examples=["The tide gauges say otherwise."])
    """At most 4,000 characters."""


class ReviewData(Data):
    """What somebody said about a check."""

    by: str | None = Field(examples=["ada"])
    """Who said it; null to readers without an account."""
    opinion: Opinion = Field(examples=["agree"])
    comment: str = Field(examples=["The tide gauges say otherwise."])
    at: Moment
    current: bool = Field(examples=[True])
    """Whether it is their last word."""


class TranscriptData(Data):
    """A check with its whole debate."""

    check: CheckData
    settings: dict[str, JsonValue] = Field(examples=[{"model": "local:smollm2", "rounds": 3}])
    """Who debated and by which rules: the tables of a file that sets up a debate."""
    transcript: dict[str, JsonValue] = Field(examples=[{"scale": "climate-feedback", "rounds": []}])
    """As `climassay check --json` writes it: claim, subclaims, advocates, rounds, verdict, sources, usage."""


def check_data(about: CheckSummary, user: User | None) -> CheckData:
    """A check as it is answered; names that people sign in by are for those who have an account."""
    names = ("id", "state", "error", "set_up", "job", "run", "outcome", "agree", "disagree", "undecided")
    values: dict[str, Any] = {name: getattr(about, name) for name in names}
    return CheckData(
        **values,
        by=None if user is None else about.by,
        claim=about.claim.text,
        source=about.claim.source,
        date=about.claim.date,
        asked_at=moment(about.asked_at),
        ended_at=some_moment(about.ended_at),
        verdict=about.label,
        reviewed=about.reviewed,
        page=f"/checks/{about.id}",
    )


def review_data(review: CheckReview, user: User | None) -> ReviewData:
    """A review as it is answered."""
    return ReviewData(
        by=None if user is None else review.by,
        opinion=review.opinion,
        comment=review.comment,
        at=moment(review.made_at),
        current=review.current,
    )
