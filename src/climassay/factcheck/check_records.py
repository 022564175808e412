"""Records of stored fact-checks and their reviews, and their JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from climassay.errors import InputError
from climassay.factcheck.configuration import DebateSettings, Reviewed, settings_tables
from climassay.factcheck.transcript import Claim, Transcript, as_data
from climassay.statistics.intervals import Estimate

CheckState = Literal["waiting", "done", "failed", "stopped"]
"""State of a check: ``waiting`` until its debate ends, ``failed`` after an error, ``stopped`` by a person."""
Opinion = Literal["agree", "disagree", "undecided"]
"""Opinion of a reviewer on a verdict."""
Visibility = Literal["unpublished", "published", "hidden"]
"""People who may read a check: those with an account (``unpublished``), everybody (``published``), or adjudicators
(``hidden``)."""
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
MAX_CLAIM_LENGTH = 2000
"""Maximum number of characters of a claim."""
MAX_SOURCE_LENGTH = 500
"""Maximum length, in characters, of a claim's source and of the place where the claim appeared."""
MAX_COMMENT_LENGTH = 4000
"""Maximum number of characters of a comment."""
PAGE_SIZE = 50
"""Number of checks on one page of a list."""


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """Summary of a stored check, without its debate."""

    id: str
    claim: Claim
    by: str | None
    """Name of the account that submitted the claim; None for the command line."""
    asked_at: float
    """Time of submission in seconds since 1970-01-01 UTC."""
    ended_at: float | None
    state: CheckState
    setup: str
    """Name of the setup (participants and rules) of the debate."""
    job: str | None
    """Id of the background job that runs the debate; None if it has none."""
    run: str | None
    """Id under which the debate is recorded as a run; None before the debate has ended."""
    outcome: str | None
    """Outcome of the debate, as in :class:`~climassay.factcheck.transcript.Verdict`; None before the debate has
    ended."""
    label: str | None
    """Label of the verdict; None if there is no verdict."""
    error: str | None
    """Error message of a failed check."""
    agree: int = 0
    """Number of people whose last review agrees with the verdict."""
    disagree: int = 0
    undecided: int = 0
    topic: str | None = None
    """CARDS code of a contrarian claim (see :mod:`climassay.factcheck.fallacies`); None if unknown."""
    seconds: float | None = None
    """Duration of the debate; None before it has ended."""
    demonstration: bool = False
    """Whether a very small model took part in the debate; its verdict is then not reliable."""
    visibility: Visibility = "unpublished"

    @property
    def reviewed(self) -> Reviewed:
        """Majority opinion of the reviewers."""
        if self.agree != self.disagree:
            return "agreed" if self.agree > self.disagree else "disagreed"
        return "divided" if self.agree else "commented" if self.undecided else "unreviewed"


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A check with its debate."""

    about: CheckSummary
    settings: DebateSettings
    transcript: Transcript | None
    """Transcript of the debate; None if the debate has not ended, was stopped or failed."""


@dataclass(frozen=True, slots=True)
class CheckReview:
    """Review of a finished check."""

    by: str
    """Name of the reviewer's account."""
    opinion: Opinion
    comment: str
    made_at: float
    """Time of the review in seconds since 1970-01-01 UTC."""
    current: bool
    """Whether this is the account's latest review of the check."""


@dataclass(frozen=True, slots=True)
class CheckList:
    """One page of a list of checks."""

    checks: tuple[CheckSummary, ...]
    total: int
    """Number of checks on all pages."""
    page: int
    """Number of the page, starting at 1."""

    @property
    def pages(self) -> int:
        """Number of pages, at least 1."""
        return max(1, -(-self.total // PAGE_SIZE))


@dataclass(frozen=True, slots=True)
class AgreementShare:
    """Proportion of checks whose reviewers agree with the verdict."""

    agreed: Estimate | None
    """Proportion of checks with which most reviewers agree, among checks without a tie; None if there are no such
    checks."""
    divided: int
    """Number of checks with a tie of reviewers for and against the verdict. They do not count in ``agreed``."""


def summary_data(about: CheckSummary) -> dict[str, Any]:
    """Return a check without its debate as JSON-serialisable values."""
    names = (
        "id", "state", "error", "outcome", "run", "setup", "reviewed", "agree", "disagree", "undecided", "topic",
        "seconds", "demonstration", "visibility",
    )  # fmt: skip
    return {name: getattr(about, name) for name in names} | {
        "claim": about.claim.text,
        "source": about.claim.source,
        "date": about.claim.date,
        "appearance": about.claim.appearance,
        "asked_by": about.by,
        "asked_at": iso_time(about.asked_at),
        "ended_at": None if about.ended_at is None else iso_time(about.ended_at),
        "verdict": about.label,
    }


def check_data(check: StoredCheck, reviews: Sequence[CheckReview]) -> dict[str, Any]:
    """Return a check with its debate, settings and reviews as JSON-serialisable values.

    The value ``transcript`` can be read back with :func:`climassay.factcheck.from_data`. The value ``settings`` holds
    the tables of a configuration file.
    """
    return {
        **summary_data(check.about),
        "reviews": [review_data(review) for review in reviews],
        "settings": settings_tables(check.settings),
        "transcript": None if check.transcript is None else as_data(check.transcript),
    }


def review_data(review: CheckReview) -> dict[str, Any]:
    """Return a review as JSON-serialisable values."""
    values = {name: getattr(review, name) for name in ("by", "opinion", "comment", "current")}
    return values | {"at": iso_time(review.made_at)}


def check_lengths(claim: Claim) -> None:
    """Validate the lengths of a claim, its source and the place where it appeared.

    Raises:
        InputError: One of these texts is too long.
    """
    lengths = (
        ("claim", claim.text, MAX_CLAIM_LENGTH),
        ("source", claim.source, MAX_SOURCE_LENGTH),
        ("place where it appeared", claim.appearance, MAX_SOURCE_LENGTH),
    )
    for name, text, limit in lengths:
        if len(text) > limit:
            raise InputError(f"The {name} has {len(text):,} characters, and the limit is {limit:,}: shorten it.")


def iso_time(seconds: float) -> str:
    """Convert a time in seconds since 1970-01-01 UTC to ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
