"""Checks of a server: available debate configurations, and starting, stopping and resuming of checks."""

import threading
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel

from climassay.errors import InputError
from climassay.factcheck import Claim, PastCheck, claim_review, find_past_checks, make_claim
from climassay.factcheck.check_records import (
    CheckReview,
    CheckSummary,
    StoredCheck,
    Visibility,
    check_lengths,
    iso_time,
)
from climassay.factcheck.check_store import CheckStore
from climassay.factcheck.claims import iso_date
from climassay.factcheck.configuration import AdvocateSettings, DebateSettings, load_settings
from climassay.factcheck.results.citation import Publication, PublishedReview
from climassay.factcheck.scales import load_scale
from climassay.factcheck.transcript import reader_view
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.reporting import counted
from climassay.web.accounts import User
from climassay.web.app_state import AppState
from climassay.web.failures import Failure, Forbidden, NotFound
from climassay.web.jobs import Job, JobEvent, Jobs
from climassay.web.library.cache import collection_cache
from climassay.web.library.evidence import CitationLinks

CHECK_KIND = "check"
"""Kind of jobs that check a claim."""
ASK_KIND = "ask"
"""Kind of jobs that answer a question; they count towards the same limits as checks."""
BEGIN_EVENT = "begin"
"""Kind of the event that starts an attempt; events before the last such event belong to interrupted attempts."""
_MAX_TITLE_LENGTH = 80
MAX_SHOWN_CHECKS = 5
"""Maximum number of past checks of similar claims that are shown before a claim is checked."""
MAX_WAITING = 200
"""Maximum number of unfinished checks and questions of all users together."""
MAX_WAITING_PER_USER = 50
"""Maximum number of unfinished checks and questions of one user."""
MAX_DATE_LENGTH = 40
_DIRECTION_CHARACTERS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Unicode control characters that change the direction of the following text."""


@dataclass(frozen=True, slots=True)
class DebateChoice:
    """Debate configuration that users can choose."""

    name: str
    settings: DebateSettings

    @property
    def summary(self) -> str:
        """Description of the configuration: advocates, model and maximum number of rounds."""
        names = ", ".join(advocate.name for advocate in self.settings.advocates)
        return f"{names}: {self.settings.model}, at most {counted(self.settings.rounds, 'round')}"


def list_debate_choices(app: AppState) -> tuple[DebateChoice, ...]:
    """Return the debate configurations that users can choose; the first is the default.

    They come from the server's configuration files, which are read once. Without such files, there is one
    configuration. It has an advocate for each collection with passages or, if there are no passages, one advocate that
    uses the model's knowledge.

    Raises:
        InputError: A file cannot be read or configures no advocate, or two files have the same name.
    """
    if app.settings.debates:
        return app.shared("debate set-ups", lambda: _load_choices(app.settings.debates))
    names = collection_cache(app).names_with_passages()
    if names:
        # Advocates are named after their collections; underscores are appended to names that are not allowed.
        advocates: dict[str, AdvocateSettings] = {}
        for name in names:
            advocate_name = name
            while advocate_name.lower() in ("mediator", *advocates):
                advocate_name += "_"
            advocates[advocate_name.lower()] = AdvocateSettings(advocate_name, collections=(name,))
        return (DebateChoice("every collection", DebateSettings(tuple(advocates.values()), model=app.settings.model)),)
    plain_advocate = (AdvocateSettings("model", "plain"),)
    return (DebateChoice("the model alone", DebateSettings(plain_advocate, model=app.settings.model)),)


def choose_debate(app: AppState, name: str) -> DebateChoice:
    """Return the debate configuration with the given name, or the default one if the name is empty.

    Raises:
        InputError: The configuration does not exist.
    """
    choices = list_debate_choices(app)
    for choice in choices:
        if name in ("", choice.name):
            return choice
    raise InputError(f"There is no set-up {name!r}; there are {', '.join(choice.name for choice in choices)}.")


def _load_choices(paths: Sequence[Path]) -> tuple[DebateChoice, ...]:
    files = [file for path in paths for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path])]
    if not files:
        raise InputError(f"{paths[0]} has no .toml files that set up debates: climassay factcheck init writes one.")
    choices = []
    for file in files:
        settings = load_settings(file)
        load_scale(settings.scale)
        if not settings.advocates:
            raise InputError(f"{file} has no [[advocate]], so nobody would debate.")
        choices.append(DebateChoice(file.stem, settings))
    names = [choice.name for choice in choices]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(f"Two files that set up debates are called {duplicate}: rename one.")
    return tuple(choices)


def get_check_store(app: AppState) -> CheckStore:
    """Return the server's store of checks."""
    return app.shared("checks", lambda: CheckStore(app.records))


def readable_visibilities(user: User | None) -> tuple[Visibility, ...]:
    """Return the visibilities of checks that a user may read; ``user`` is None for a visitor without an account."""
    if user is None:
        return ("published",)
    return get_args(Visibility) if user.may("moderate checks") else ("unpublished", "published")


def find_check(app: AppState, check: str, user: User | None) -> tuple[StoredCheck, Job | None]:
    """Return a check and its job (None if it was never queued).

    A check that is still waiting although its job has ended is first marked as failed or stopped.

    Raises:
        NotFound: The check does not exist, or the user may not read it.
    """
    checks = get_check_store(app)
    if check not in checks:
        raise NotFound(f"There is no check {check!r}.")
    stored_check = checks.get(check)
    if stored_check.about.visibility not in readable_visibilities(user):
        raise NotFound(f"There is no check {check!r}." if user is None else "An adjudicator has hidden this check.")
    job = app.jobs.get(stored_check.about.job) if stored_check.about.job else None
    if stored_check.about.state == "waiting" and job is not None and job.has_ended:
        if job.state == "failed":
            checks.fail(check, job.error or "The work broke.")
        else:
            checks.stop(check)
        stored_check = checks.get(check)
    return stored_check, job


def load_all_events(jobs: Jobs, job: str) -> list[JobEvent]:
    """Load all events of a job, in order."""
    events: list[JobEvent] = []
    while batch := jobs.events(job, after=events[-1].number if events else 0):
        events += batch
    return events


def start_time(events: Sequence[JobEvent]) -> float | None:
    """Return the start of a debate in seconds since 1970, or None if it has not begun.

    The start is moved forward by the pauses between attempts, so that the time since the start excludes pauses.
    """
    start_seconds: float | None = None
    previous_time: float | None = None
    for event in events:
        if event.kind == BEGIN_EVENT:
            earlier_seconds = (
                event.body.get("before", 0.0)
                if start_seconds is None or previous_time is None
                else previous_time - start_seconds
            )
            start_seconds = event.told_at - earlier_seconds
        previous_time = event.told_at
    return start_seconds


def measure_duration(jobs: Jobs, job: str, until: float | None = None) -> float | None:
    """Return the duration of a debate over all attempts in seconds, or None if it has not begun.

    Args:
        jobs: Jobs of the server.
        job: Id of the debate's job.
        until: End in seconds since 1970; the time of the last event if None.
    """
    events = load_all_events(jobs, job)
    start = start_time(events)
    times = [event.told_at for event in events]
    return None if start is None else (until or times[-1]) - start


def job_title(action: str, text: str) -> str:
    """Return the title of a job, which consists of an action and the (truncated) claim or question."""
    return f"{action}: {text[:_MAX_TITLE_LENGTH]}{'…' if len(text) > _MAX_TITLE_LENGTH else ''}"


def submit_check(app: AppState, summary: CheckSummary, asker: str = "") -> None:
    """Queue the debate of a check that is waiting or has ended without a result.

    Args:
        app: State of the server.
        summary: Summary of the check.
        asker: Name of the user whose limit the check counts towards; empty for none.
    """
    get_check_store(app).reopen(summary.id)
    title = job_title("Check", summary.claim.text)
    earlier_seconds = 0.0 if summary.job is None else measure_duration(app.jobs, summary.job) or 0.0
    job = app.jobs.submit(
        CHECK_KIND, title, {"check": summary.id, "asker": asker, "before": earlier_seconds}, summary.by
    )
    get_check_store(app).assign_job(summary.id, job)


def queue_unqueued_checks(app: AppState) -> None:
    """Queue the checks that were stored but not yet queued when the server was killed."""
    for check in get_check_store(app).unassigned():
        submit_check(app, get_check_store(app).get(check).about)


def may_stop(user: User | None, summary: CheckSummary) -> bool:
    """Return whether a user may stop a check: only the user who asked for it and adjudicators may."""
    return user is not None and (user.name == summary.by or user.may("moderate checks"))


def may_resume(user: User | None, stored_check: StoredCheck) -> bool:
    """Return whether a user may resume a check.

    All users may resume a failed check; only the user who asked for a stopped check and adjudicators may resume it. A
    check that is waiting or has a result cannot be resumed.
    """
    summary = stored_check.about
    if user is None:
        return False
    return (
        may_stop(user, summary)
        if summary.state == "stopped"
        else summary.state == "failed" or summary.outcome == "failed"
    )


def cancel_check(app: AppState, user: User, check: str) -> None:
    """Stop a check on behalf of a user; do nothing if it has ended.

    Raises:
        NotFound: The check does not exist, or the user may not read it.
        Forbidden: The user may not stop it.
    """
    stored_check, job = find_check(app, check, user)
    if not may_stop(user, stored_check.about):
        raise Forbidden("This is somebody else's check: they or an adjudicator can stop it.")
    if stored_check.about.state == "waiting":
        if job is not None:
            app.jobs.stop(job.id)
        get_check_store(app).stop(check)


def similar_checks(app: AppState, claim: str) -> list[PastCheck]:
    """Return past checks of the same claim and of similar claims, most similar first."""
    encoder = app.encoder(BUNDLED_ENCODER)
    # The vectors of claims are cached in one file, which two threads must not write at the same time.
    with app.shared("past checks", threading.Lock):
        return find_past_checks(app.records, claim, encoder, limit=MAX_SHOWN_CHECKS)


def make_publication(
    app: AppState, summary: CheckSummary, reviews: Sequence[CheckReview], name_of: Callable[[str | None], str]
) -> Publication:
    """Return the publisher, address, date and current reviews of a check.

    If the server's settings name no publisher, the publisher is the server's host.

    Args:
        app: State of the server.
        summary: Summary of a check that has ended.
        reviews: All reviews of the check.
        name_of: Function that returns the display name for a user name.
    """
    current_reviews = tuple(
        PublishedReview(name_of(review.by), review.opinion, iso_time(review.made_at)[:10])
        for review in reviews
        if review.current
    )
    publisher = app.settings.publisher.strip() or f"climassay at {urlsplit(app.settings.root).netloc}"
    ended_at = summary.asked_at if summary.ended_at is None else summary.ended_at
    return Publication(publisher, f"{app.settings.root}/checks/{summary.id}", iso_time(ended_at)[:10], current_reviews)


def claim_review_data(app: AppState, stored_check: StoredCheck) -> dict[str, Any] | None:
    """Return the schema.org ClaimReview of a check, or None if the check has none.

    A check has a ClaimReview only if it has a verdict and is not hidden, the server has a publisher, at least one
    active adjudicator agrees with the verdict, and nobody disagrees.
    """
    summary, publisher = stored_check.about, app.settings.publisher.strip()
    if stored_check.transcript is None or not publisher or summary.visibility == "hidden":
        return None
    scale = load_scale(stored_check.settings.scale)
    if reader_view(stored_check.transcript, scale).verdict.outcome != "verdict":
        return None
    adjudicators = {user.name for user in app.accounts.users() if user.active and user.may("moderate checks")}
    reviews = [review for review in get_check_store(app).reviews(summary.id) if review.current]
    is_approved = any(review.opinion == "agree" and review.by in adjudicators for review in reviews)
    if not is_approved or any(review.opinion == "disagree" for review in reviews):
        return None
    return claim_review(
        CitationLinks(collection_cache(app)).transcript(stored_check.transcript),
        url=f"{app.settings.root}/checks/{summary.id}",
        author=publisher,
        published=None if summary.ended_at is None else iso_time(summary.ended_at)[:10],
        scale=scale,
    )


def require_claim_review(app: AppState, check: str, user: User | None) -> dict[str, Any]:
    """Return the schema.org ClaimReview of a check.

    Raises:
        NotFound: The check does not exist, may not be read by the user, or has no ClaimReview.
    """
    data = claim_review_data(app, find_check(app, check, user)[0])
    if data is None:
        reason = "it has no verdict that an adjudicator agrees with and nobody disagrees with"
        reason = reason if app.settings.publisher else "it cannot be published: the server names no publisher"
        raise NotFound(f"There is no ClaimReview of this check, because {reason}.")
    return data


class TooManyWaiting(Failure):
    """Error for a new check or question if too many of all users together are waiting."""

    status = 503


class TooManyWaitingOfUser(TooManyWaiting):
    """Error for a new check or question if too many of the same user are waiting."""

    status = 429


class ClaimForm(BaseModel):
    """Fields of the form with which a claim is submitted."""

    claim: str = ""
    source: str = ""
    appearance: str = ""
    date: str = ""
    setup: str = ""
    anyway: bool = False
    """Whether to check the claim even if similar claims were checked before."""
    force: bool = False
    """Whether to debate the claim even if it appears not to be checkable or not to be about climate."""

    def to_claim(self) -> Claim:
        """Return the claim with cleaned texts and an ISO 8601 date.

        Raises:
            InputError: The claim is empty, a text is too long, or the date is invalid.
        """
        source, appearance, date = (
            " ".join(strip_controls(text).split()) for text in (self.source, self.appearance, self.date)
        )
        date = iso_date(date)
        claim = make_claim(strip_controls(self.claim), source=source, date=date, appearance=appearance)
        check_lengths(claim)
        if len(date) > MAX_DATE_LENGTH:
            raise InputError(
                f"The date {date[:MAX_DATE_LENGTH]!r}... is not a date: write it like 2024-05-31, or only the year."
            )
        return claim


def strip_controls(text: str) -> str:
    """Replace control characters by spaces and remove characters that change the direction of text."""
    return "".join(
        " " if unicodedata.category(char) == "Cc" else char for char in text if char not in _DIRECTION_CHARACTERS
    )


def begin_check(app: AppState, user: User, claim: Claim, debate: DebateChoice, *, force: bool = False) -> str:
    """Store a claim, queue its debate, and return the check's id.

    If the user has a waiting check of the same claim, its id is returned.

    Args:
        app: State of the server.
        user: User who asks for the check.
        claim: Claim to check.
        debate: Configuration of the debate.
        force: Whether to debate the claim even if it appears not to be checkable or not to be about climate.

    Raises:
        TooManyWaiting: Too many checks and questions are waiting.
    """
    checks = get_check_store(app)
    waiting_check = checks.find_waiting(claim, user.name, debate.name)
    if waiting_check is not None:
        return waiting_check
    require_capacity(app, user)
    settings = replace(debate.settings, check_claims=False) if force else debate.settings
    check = checks.begin(claim, settings, setup=debate.name, by=user.name)
    submit_check(app, checks.get(check).about, user.name)
    return check


def restart_check(app: AppState, user: User, check: str) -> None:
    """Queue a failed or stopped check again; do nothing if it is waiting or has a result.

    Raises:
        Forbidden: The check was stopped, and the user may not resume it.
        TooManyWaiting: Too many checks and questions are waiting.
    """
    stored_check, _ = find_check(app, check, user)
    if may_resume(user, stored_check):
        require_capacity(app, user)
        submit_check(app, stored_check.about, user.name)
    elif stored_check.about.state == "stopped":
        raise Forbidden("This check was stopped: the person who asked for it, or an adjudicator, can resume it.")


def require_capacity(app: AppState, user: User) -> None:
    """Raise an error if the maximum number of waiting checks and questions has been reached.

    Raises:
        TooManyWaiting: All users together have reached :data:`MAX_WAITING`.
        TooManyWaitingOfUser: The user has reached :data:`MAX_WAITING_PER_USER`.
    """
    unfinished_jobs = app.jobs.list_unfinished((CHECK_KIND, ASK_KIND))
    if get_check_store(app).count_waiting() + sum(job.kind == ASK_KIND for job in unfinished_jobs) >= MAX_WAITING:
        raise TooManyWaiting("Too many claims and questions are waiting: try again later.")
    if sum(job.payload.get("asker") == user.name for job in unfinished_jobs) >= MAX_WAITING_PER_USER:
        raise TooManyWaitingOfUser(
            "You have reached the limit of waiting claims and questions: wait until one is done."
        )
