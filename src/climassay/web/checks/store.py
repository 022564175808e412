"""The checks of a server: the debates to choose from, and how checks are begun, stopped and resumed."""

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
from climassay.web.failures import Failure, Missing, Refused
from climassay.web.jobs import Job, JobEvent, Jobs
from climassay.web.library.cache import collection_cache
from climassay.web.library.evidence import CitationLinks

KIND = "check"
"""Kind of the jobs that check a claim."""
ASK = "ask"
"""Kind of the jobs that answer a question; they count towards the same limits as checks."""
BEGIN = "begin"
"""Event at the start of each attempt; events of interrupted attempts before it do not count."""
_MAX_TITLE_LENGTH = 80
MAX_PAST_CHECKS = 5
"""Maximum number of past checks shown before a claim is checked again."""
MAX_WAITING = 200
"""Maximum number of unfinished checks and questions of all users."""
MAX_WAITING_PER_USER = 50
"""Maximum number of unfinished checks and questions of one user."""
MAX_DATE_LENGTH = 40
_DIRECTION_CHARACTERS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the text after them."""


@dataclass(frozen=True, slots=True)
class DebateChoice:
    """A debate configuration that users can choose."""

    name: str
    settings: DebateSettings

    @property
    def summary(self) -> str:
        """Participants, model and rounds in words."""
        names = ", ".join(advocate.name for advocate in self.settings.advocates)
        return f"{names}: {self.settings.model}, at most {counted(self.settings.rounds, 'round')}"


def debate_choices(app: AppState) -> tuple[DebateChoice, ...]:
    """Return the debate configurations to choose from; the first is the default.

    Configuration files are read once per server. Without files, every collection with passages is an advocate of equal
    weight. Without passages, the model debates with itself.

    Raises:
        InputError: A file cannot be read, configures no debate, or has the name of another one.
    """
    if app.settings.debates:
        return app.shared("debate set-ups", lambda: _from_files(app.settings.debates))
    names = collection_cache(app).with_passages()
    if names:
        # An advocate for each collection, under its name as far as that can be an advocate's.
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
    """Return the debate configuration of a name, or the first one for an empty name.

    Raises:
        InputError: There is no configuration of that name.
    """
    choices = debate_choices(app)
    for choice in choices:
        if name in ("", choice.name):
            return choice
    raise InputError(f"There is no set-up {name!r}; there are {', '.join(choice.name for choice in choices)}.")


def _from_files(paths: Sequence[Path]) -> tuple[DebateChoice, ...]:
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
    """Return the store of a server's checks."""
    return app.shared("checks", lambda: CheckStore(app.records))


def visible_to(user: User | None) -> tuple[Visibility, ...]:
    """Return the visibilities of the checks that a user may read; None is a visitor without an account."""
    if user is None:
        return ("published",)
    return get_args(Visibility) if user.may("moderate checks") else ("unpublished", "published")


def find_check(app: AppState, check: str, user: User | None) -> tuple[StoredCheck, Job | None]:
    """Return a check and its job; if the job ended before the work began, the check is ended first.

    Raises:
        Missing: There is no such check, or the user may not read it.
    """
    checks = get_check_store(app)
    if check not in checks:
        raise Missing(f"There is no check {check!r}.")
    stored = checks.get(check)
    if stored.about.visibility not in visible_to(user):
        raise Missing(f"There is no check {check!r}." if user is None else "An adjudicator has hidden this check.")
    job = app.jobs.get(stored.about.job) if stored.about.job else None
    if stored.about.state == "waiting" and job is not None and job.ended:
        if job.state == "failed":
            checks.fail(check, job.error or "The work broke.")
        else:
            checks.stop(check)
        stored = checks.get(check)
    return stored, job


def all_events(jobs: Jobs, job: str) -> list[JobEvent]:
    """Return all events of a job, in order."""
    events: list[JobEvent] = []
    while more := jobs.events(job, after=events[-1].number if events else 0):
        events += more
    return events


def start_time(events: Sequence[JobEvent]) -> float | None:
    """Return when a debate began in seconds since 1970, without time between attempts; None if not begun."""
    start: float | None = None
    previous: float | None = None
    for event in events:
        if event.kind == BEGIN:
            before = event.body.get("before", 0.0) if start is None or previous is None else previous - start
            start = event.told_at - before
        previous = event.told_at
    return start


def seconds_spent(jobs: Jobs, job: str, until: float | None = None) -> float | None:
    """Return the duration of a debate over all attempts, until a time or its last event; None if not begun."""
    events = all_events(jobs, job)
    start = start_time(events)
    times = [event.told_at for event in events]
    return None if start is None else (until or times[-1]) - start


def job_title(action: str, text: str) -> str:
    """Return the title of a job: an action, and the beginning of the claim or question."""
    return f"{action}: {text[:_MAX_TITLE_LENGTH]}{'…' if len(text) > _MAX_TITLE_LENGTH else ''}"


def submit_check(app: AppState, about: CheckSummary, asker: str = "") -> None:
    """Queue the debate of a check that is waiting or ended without a result.

    Args:
        app: The server.
        about: The check.
        asker: User whose limit the check counts towards.
    """
    get_check_store(app).reopen(about.id)
    title = job_title("Check", about.claim.text)
    before = 0.0 if about.job is None else seconds_spent(app.jobs, about.job) or 0.0
    job = app.jobs.submit(KIND, title, {"check": about.id, "asker": asker, "before": before}, about.by)
    get_check_store(app).assign_job(about.id, job)


def queue_unqueued_checks(app: AppState) -> None:
    """Queue the checks that were stored but not queued when the server was killed."""
    for check in get_check_store(app).unassigned():
        submit_check(app, get_check_store(app).get(check).about)


def may_stop(user: User | None, about: CheckSummary) -> bool:
    """Return whether a user may stop a check: its owner, and adjudicators."""
    return user is not None and (user.name == about.by or user.may("moderate checks"))


def may_begin_again(user: User | None, stored: StoredCheck) -> bool:
    """Return whether a user may resume a check.

    A failed check can be resumed by every user, a stopped one by its owner and adjudicators. A check that is waiting or
    has a result is never resumed.
    """
    about = stored.about
    if user is None:
        return False
    return may_stop(user, about) if about.state == "stopped" else about.state == "failed" or about.outcome == "failed"


def cancel_check(app: AppState, user: User, check: str) -> None:
    """Stop a check; do nothing if it has ended.

    Raises:
        Missing: There is no such check.
        Refused: The user may not stop it.
    """
    stored, job = find_check(app, check, user)
    if not may_stop(user, stored.about):
        raise Refused("This is somebody else's check: they or an adjudicator can stop it.")
    if stored.about.state == "waiting":
        if job is not None:
            app.jobs.stop(job.id)
        get_check_store(app).stop(check)


def similar_checks(app: AppState, claim: str) -> list[PastCheck]:
    """Return past checks of the same or a similar claim, nearest first."""
    encoder = app.encoder(BUNDLED_ENCODER)
    # Vectors of claims are kept in one file, which two threads must not write at once.
    with app.shared("past checks", threading.Lock):
        return find_past_checks(app.records, claim, encoder, limit=MAX_PAST_CHECKS)


def make_publication(
    app: AppState, about: CheckSummary, reviews: Sequence[CheckReview], name_of: Callable[[str | None], str]
) -> Publication:
    """Return publisher, address, date and current reviews of a check.

    Without a publisher the name of the server's host stands for one.

    Args:
        app: The server.
        about: The check, which has ended.
        reviews: Its reviews.
        name_of: Function that gives the name by which readers see a user.
    """
    current = tuple(
        PublishedReview(name_of(review.by), review.opinion, iso_time(review.made_at)[:10])
        for review in reviews
        if review.current
    )
    publisher = app.settings.publisher.strip() or f"climassay at {urlsplit(app.settings.root).netloc}"
    ended_at = about.asked_at if about.ended_at is None else about.ended_at
    return Publication(publisher, f"{app.settings.root}/checks/{about.id}", iso_time(ended_at)[:10], current)


def claim_review_data(app: AppState, stored: StoredCheck) -> dict[str, Any] | None:
    """Return the ClaimReview of a check.

    None for a hidden check, without a verdict or a publisher, or unless an active adjudicator agrees with the verdict
    and nobody disagrees.
    """
    about, publisher = stored.about, app.settings.publisher.strip()
    if stored.transcript is None or not publisher or about.visibility == "hidden":
        return None
    scale = load_scale(stored.settings.scale)
    if reader_view(stored.transcript, scale).verdict.outcome != "verdict":
        return None
    # An adjudicator or admin who is still let in must agree, and nobody disagree.
    adjudicators = {user.name for user in app.accounts.users() if user.active and user.may("moderate checks")}
    reviews = [review for review in get_check_store(app).reviews(about.id) if review.current]
    is_approved = any(review.opinion == "agree" and review.by in adjudicators for review in reviews)
    if not is_approved or any(review.opinion == "disagree" for review in reviews):
        return None
    return claim_review(
        CitationLinks(collection_cache(app)).transcript(stored.transcript),
        url=f"{app.settings.root}/checks/{about.id}",
        author=publisher,
        published=None if about.ended_at is None else iso_time(about.ended_at)[:10],
        scale=scale,
    )


def require_claim_review(app: AppState, check: str, user: User | None) -> dict[str, Any]:
    """Return the verdict as schema.org ClaimReview.

    Raises:
        Missing: There is no such check, or no ClaimReview of it.
    """
    result = claim_review_data(app, find_check(app, check, user)[0])
    if result is None:
        why = "it has no verdict that an adjudicator agrees with and nobody disagrees with"
        why = why if app.settings.publisher else "it cannot be published: the server names no publisher"
        raise Missing(f"There is no ClaimReview of this check, because {why}.")
    return result


class Busy(Failure):
    """Too many checks and questions are waiting."""

    status = 503


class TooMany(Busy):
    """Too many checks and questions of the user are waiting."""

    status = 429


class ClaimForm(BaseModel):
    """Fields of the form of a claim."""

    claim: str = ""
    source: str = ""
    appearance: str = ""
    date: str = ""
    setup: str = ""
    anyway: bool = False
    """Whether to check the claim even if it was checked before."""
    force: bool = False
    """Whether to debate the claim even if it appears not to be checkable or not to be about climate."""

    def cleaned(self) -> Claim:
        """Return the claim.

        Raises:
            InputError: The claim is empty, a text is too long, or the date is not a date.
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
    """Return a text without control characters and characters that change the direction of a line."""
    return "".join(
        " " if unicodedata.category(char) == "Cc" else char for char in text if char not in _DIRECTION_CHARACTERS
    )


def begin_check(app: AppState, user: User, claim: Claim, debate: DebateChoice, *, force: bool = False) -> str:
    """Submit a claim to be checked, and return the check's id; the same user's same waiting claim is reused.

    Args:
        app: State of the application.
        user: Account that asks for the check.
        claim: The claim.
        debate: Configuration of the debate.
        force: Whether to debate the claim even if it appears not to be checkable or not to be about climate.

    Raises:
        Busy: Too many checks and questions are waiting.
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
    """Resume a check that ended without a result; do nothing if it is waiting or has a result.

    Raises:
        Refused: It was stopped, and the user may not resume it.
        Busy: Too many checks and questions are waiting.
    """
    stored, _ = find_check(app, check, user)
    if may_begin_again(user, stored):
        require_capacity(app, user)
        submit_check(app, stored.about, user.name)
    elif stored.about.state == "stopped":
        raise Refused("This check was stopped: the person who asked for it, or an adjudicator, can resume it.")


def require_capacity(app: AppState, user: User) -> None:
    """Refuse another check or question if too many wait.

    Raises:
        Busy: Too many checks and questions of all users are waiting.
        TooMany: Too many of this user are waiting.
    """
    unfinished = app.jobs.unended((KIND, ASK))
    if get_check_store(app).count_waiting() + sum(job.kind == ASK for job in unfinished) >= MAX_WAITING:
        raise Busy("Too many claims and questions are waiting: try again later.")
    if sum(job.payload.get("asker") == user.name for job in unfinished) >= MAX_WAITING_PER_USER:
        raise TooMany("You have reached the limit of waiting claims and questions: wait until one is done.")
