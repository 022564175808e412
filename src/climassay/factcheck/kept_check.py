"""A fact-check that somebody asked for, as it is kept: asked, debated, reviewed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from climassay.factcheck.configuration import DebateSettings, settings_tables
from climassay.factcheck.serialisation import as_data
from climassay.factcheck.transcript import Claim, Transcript
from climassay.statistics.intervals import Estimate

CheckState = Literal["waiting", "done", "failed", "stopped"]
"""``waiting`` until its debate has ended; ``failed`` where something broke, ``stopped`` where a person said so."""
Opinion = Literal["agree", "disagree", "undecided"]
Reviewed = Literal["agreed", "disagreed", "divided", "commented", "unreviewed"]
"""What most of those who reviewed a check hold of it: more agree, more disagree, as many of both, only comments."""
LONGEST_CLAIM = 2000
LONGEST_SOURCE = 500
LONGEST_COMMENT = 4000
"""Characters."""
PAGE = 50
"""Checks on one page of a list."""


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """A check without its debate, as lists show it."""

    id: str
    claim: Claim
    by: str | None
    """Name of the account; None for somebody without one, or the command line."""
    asked_at: float
    """Seconds since 1970-01-01 UTC."""
    ended_at: float | None
    state: CheckState
    set_up: str
    """Name of the debate's set-up."""
    job: str | None
    """Id of the job that does, or did, the work."""
    run: str | None
    """Id of the run in the records, once it has ended."""
    outcome: str | None
    """As in :class:`~climassay.factcheck.transcript.Verdict`; None before it has ended."""
    label: str | None
    """The verdict."""
    error: str | None
    """Why it failed."""
    agree: int = 0
    """People whose present word is that they agree."""
    disagree: int = 0
    undecided: int = 0

    @property
    def reviewed(self) -> Reviewed:
        """What most of the reviewers hold."""
        if self.agree != self.disagree:
            return "agreed" if self.agree > self.disagree else "disagreed"
        return "divided" if self.agree else "commented" if self.undecided else "unreviewed"


@dataclass(frozen=True, slots=True)
class KeptCheck:
    """A check with its debate."""

    about: CheckSummary
    settings: DebateSettings
    """Who debates, and by which rules."""
    transcript: Transcript | None
    """None until it has ended, and where it was stopped or broke."""


@dataclass(frozen=True, slots=True)
class CheckReview:
    """What a person says about a finished check."""

    by: str
    """Name of the account."""
    opinion: Opinion
    comment: str
    made_at: float
    """Seconds since 1970-01-01 UTC."""
    current: bool
    """Whether it is the person's last word."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which checks a list shows; an empty text leaves a filter out."""

    words: str = ""
    """All of them must stand in the claim or its source, in any case."""
    verdict: str = ""
    """Label, or outcome of a check without one."""
    review: str = ""
    """One of :data:`Reviewed`."""


@dataclass(frozen=True, slots=True)
class CheckList:
    """A page of a list of checks."""

    checks: tuple[CheckSummary, ...]
    total: int
    """On all pages."""
    page: int
    """From 1."""

    @property
    def pages(self) -> int:
        """At least 1."""
        return max(1, -(-self.total // PAGE))


@dataclass(frozen=True, slots=True)
class AgreementShare:
    """How often people agree with the verdicts of checks; a check counts once, however many reviewed it."""

    agreed: Estimate | None
    """Share of the checks with most reviewers for it, among those with a majority; None where there is none."""
    divided: int
    """Checks with as many for as against it, which are not counted."""


def summary_data(about: CheckSummary) -> dict[str, Any]:
    """A check without its debate as texts and numbers, for ``json.dumps``."""
    return {
        "id": about.id,
        "claim": about.claim.text,
        "source": about.claim.source,
        "date": about.claim.date,
        "asked_by": about.by,
        "asked_at": iso_time(about.asked_at),
        "ended_at": None if about.ended_at is None else iso_time(about.ended_at),
        "state": about.state,
        "error": about.error,
        "outcome": about.outcome,
        "verdict": about.label,
        "run": about.run,
        "set_up": about.set_up,
        "reviewed": about.reviewed,
        "agree": about.agree,
        "disagree": about.disagree,
        "undecided": about.undecided,
    }


def check_data(kept: KeptCheck, reviews: Sequence[CheckReview]) -> dict[str, Any]:
    """A check for a file: what was asked, how it ended, what people said, and the debate.

    Args:
        kept: The check.
        reviews: As :meth:`~climassay.factcheck.kept_checks.KeptChecks.reviews` gives them.

    Returns:
        What ``json.dumps`` takes; ``transcript`` is what :func:`climassay.factcheck.from_data` reads, ``settings`` are
        the tables of a file that sets up a debate.
    """
    said = [
        {
            "by": one.by,
            "opinion": one.opinion,
            "comment": one.comment,
            "at": iso_time(one.made_at),
            "current": one.current,
        }
        for one in reviews
    ]
    return {
        **summary_data(kept.about),
        "reviews": said,
        "settings": settings_tables(kept.settings),
        "transcript": None if kept.transcript is None else as_data(kept.transcript),
    }


def iso_time(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
