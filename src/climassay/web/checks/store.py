"""The checks of a server: how claims may be debated, how checks are asked for and begun, and how they are kept."""

import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from climassay.errors import InputError
from climassay.factcheck import Claim, PastCheck, claim_review, find_past, make_claim
from climassay.factcheck.check_store import (
    CheckStore,
    CheckSummary,
    StoredCheck,
    check_lengths,
    iso_time,
)
from climassay.factcheck.claims import iso_date
from climassay.factcheck.configuration import AdvocateSettings, DebateSettings, load_settings
from climassay.factcheck.scales import load_scale
from climassay.factcheck.transcript import reader_view
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.reporting import counted
from climassay.web.accounts import User
from climassay.web.app_state import AppState
from climassay.web.failures import Failure, Missing, Refused
from climassay.web.jobs import Job, JobEvent, Jobs
from climassay.web.library.cache import library_of

KIND = "check"
"""Kind of the jobs that check a claim."""
ASK = "ask"
"""Kind of the jobs that answer a question; they share the models, and so the places of those who wait, with checks."""
BEGIN = "begin"
"""Event with which every attempt begins: what an attempt that was cut had told does not count any more."""
_TITLE_CHARACTERS = 80
MOST_PAST = 5
"""Past checks shown before a claim is checked again."""
MOST_WAITING = 200
"""Checks that have not ended, until no more are taken."""
MOST_WAITING_OF_ACCOUNT = 50
"""Checks and questions of one person that have not ended, until no more of theirs are taken."""
LONGEST_DATE = 40
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of whatever follows them."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """One way to debate that a visitor can choose."""

    name: str
    settings: DebateSettings

    @property
    def summary(self) -> str:
        """Who takes part, in words."""
        names = ", ".join(advocate.name for advocate in self.settings.advocates)
        return f"{names}: {self.settings.model}, at most {counted(self.settings.rounds, 'round')}"


def set_ups(app: AppState) -> tuple[SetUp, ...]:
    """The set-ups that visitors can choose from, the first of which is chosen where nobody does.

    Files are read once a server. Without files every collection that has passages now is an advocate of equal weight,
    and where there is none the model debates with itself, without documents.

    Raises:
        InputError: A file cannot be read, sets up no debate, or has the name of another one.
    """
    if app.settings.debates:
        return app.shared("debate set-ups", lambda: _from_files(app.settings.debates))
    names = library_of(app).with_passages()
    if names:
        # An advocate for each collection, under its name as far as that can be an advocate's.
        made: dict[str, AdvocateSettings] = {}
        for name in names:
            own = name
            while own.lower() in ("mediator", *made):
                own += "_"
            made[own.lower()] = AdvocateSettings(own, collections=(name,))
        return (SetUp("every collection", DebateSettings(tuple(made.values()), model=app.settings.model)),)
    plain = (AdvocateSettings("model", "plain"),)
    return (SetUp("the model alone", DebateSettings(plain, model=app.settings.model)),)


def chosen(app: AppState, name: str) -> SetUp:
    """The set-up of a name; the first one for an empty name.

    Raises:
        InputError: There is none with that name.
    """
    every = set_ups(app)
    for one in every:
        if name in ("", one.name):
            return one
    raise InputError(f"There is no set-up {name!r}; there are {', '.join(one.name for one in every)}.")


def _from_files(paths: Sequence[Path]) -> tuple[SetUp, ...]:
    files = [file for path in paths for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path])]
    if not files:
        raise InputError(f"{paths[0]} has no .toml files that set up debates: climassay factcheck init writes one.")
    made = []
    for file in files:
        settings = load_settings(file)
        load_scale(settings.scale)
        if not settings.advocates:
            raise InputError(f"{file} has no [[advocate]], so nobody would debate.")
        made.append(SetUp(file.stem, settings))
    names = [one.name for one in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"Two files that set up debates are called {twice}: rename one.")
    return tuple(made)


def checks_of(app: AppState) -> CheckStore:
    """The store of a server's checks."""
    return app.shared("checks", lambda: CheckStore(app.records))


def found_check(app: AppState, check: str) -> tuple[StoredCheck, Job | None]:
    """A check, and the job that does the work; a job that ended before the work began ends its check here."""
    checks = checks_of(app)
    if check not in checks:
        raise Missing(f"There is no check {check!r}.")
    kept = checks.get(check)
    job = app.jobs.get(kept.about.job) if kept.about.job else None
    if kept.about.state == "waiting" and job is not None and job.ended:
        if job.state == "failed":
            checks.fail(check, job.error or "The work broke.")
        else:
            checks.stop(check)
        kept = checks.get(check)
    return kept, job


def all_events(jobs: Jobs, job: str) -> list[JobEvent]:
    """Everything that a job has told, in order."""
    events: list[JobEvent] = []
    while more := jobs.events(job, after=events[-1].number if events else 0):
        events += more
    return events


def time_begun(events: Sequence[JobEvent]) -> float | None:
    """When a debate's last attempt would have begun, had it done all the work of those before: seconds since 1970."""
    began: float | None = None
    last: float | None = None
    for event in events:
        if event.told_at is None:
            continue
        if event.kind == BEGIN:
            before = event.body.get("before", 0.0) if began is None or last is None else last - began
            began = event.told_at - before
        last = event.told_at
    return began


def seconds_spent(jobs: Jobs, job: str, now: float | None = None) -> float | None:
    """How long a debate has taken in all attempts until a moment, by default until what its job told last."""
    events = all_events(jobs, job)
    began = time_begun(events)
    told = [event.told_at for event in events if event.told_at is not None]
    return None if began is None else (now or told[-1]) - began


def job_title(what: str, text: str) -> str:
    """What a job about a claim or question is called."""
    return f"{what}: {text[:_TITLE_CHARACTERS]}{'…' if len(text) > _TITLE_CHARACTERS else ''}"


def send_to_work(app: AppState, about: CheckSummary, asker: str = "") -> None:
    """Queue the debate of a check that waits, or that ended without a result, for somebody whose place it takes."""
    checks_of(app).reopen(about.id)
    title = job_title("Check", about.claim.text)
    before = 0.0 if about.job is None else seconds_spent(app.jobs, about.job) or 0.0
    job = app.jobs.submit(KIND, title, {"check": about.id, "asker": asker, "before": before}, about.by)
    checks_of(app).assign_job(about.id, job)


def send_forgotten(app: AppState) -> None:
    """Queue the checks that were stored, but not queued, when the server was killed."""
    for check in checks_of(app).unassigned():
        send_to_work(app, checks_of(app).get(check).about)


def may_stop(user: User | None, about: CheckSummary) -> bool:
    """Whether somebody may stop a check: who asked for it, and who may decide for others."""
    return user is not None and (user.name == about.by or user.may("adjudicator"))


def may_begin_again(user: User | None, kept: StoredCheck) -> bool:
    """Return whether somebody may resume a check: with an account, one that failed; one that was stopped, as may_stop.

    A check that waits, or that has a result, is never resumed.
    """
    about = kept.about
    if user is None:
        return False
    return may_stop(user, about) if about.state == "stopped" else about.state == "failed" or about.outcome == "failed"


def end_check(app: AppState, user: User, check: str) -> None:
    """End a check that goes on; one that has ended stays as it is.

    Raises:
        Missing: There is no such check.
        Refused: It is somebody else's.
    """
    kept, job = found_check(app, check)
    if not may_stop(user, kept.about):
        raise Refused("This is somebody else's check: they or an adjudicator can stop it.")
    if kept.about.state == "waiting":
        if job is not None:
            app.jobs.stop(job.id)
        checks_of(app).stop(check)


def similar_checks(app: AppState, claim: str) -> list[PastCheck]:
    """Debates about the same claim or a similar one, the nearest first."""
    encoder = app.encoder(BUNDLED_ENCODER)
    # Vectors of claims are kept in one file, which two threads must not write at once.
    with app.shared("past checks", threading.Lock):
        return find_past(app.records, claim, encoder, limit=MOST_PAST)


def claim_review_data(app: AppState, kept: StoredCheck) -> dict[str, Any] | None:
    """The ClaimReview of a check; None where it has no verdict, or where no person or no publisher answers for it."""
    about, publisher = kept.about, app.settings.publisher.strip()
    if kept.transcript is None or not publisher:
        return None
    scale = load_scale(kept.settings.scale)
    if reader_view(kept.transcript, scale).verdict.outcome != "verdict":
        return None
    # An adjudicator or admin who is still let in must agree, and nobody disagree.
    people = {user.name for user in app.accounts.users() if user.active and user.may("adjudicator")}
    current = [one for one in checks_of(app).reviews(about.id) if one.current]
    agree = any(one.opinion == "agree" and one.by in people for one in current)
    if not agree or any(one.opinion == "disagree" for one in current):
        return None
    return claim_review(
        kept.transcript,
        url=f"{app.settings.root}/checks/{about.id}",
        author=publisher,
        published=None if about.ended_at is None else iso_time(about.ended_at)[:10],
        scale=scale,
    )


def claim_review_of(app: AppState, check: str) -> dict[str, Any]:
    """The verdict as schema.org ClaimReview; missing without a verdict, or where nobody answers for it."""
    result = claim_review_data(app, found_check(app, check)[0])
    if result is None:
        why = "it has no verdict that an adjudicator agrees with and nobody disagrees with"
        why = why if app.settings.publisher else "it cannot be published: the server names no publisher"
        raise Missing(f"There is no ClaimReview of this check, because {why}.")
    return result


class Busy(Failure):
    """More has been asked for than can be done soon."""

    status = 503


class TooMany(Busy):
    """Somebody has asked for more than their share."""

    status = 429


class ClaimForm(BaseModel):
    """What a visitor wrote into the form."""

    claim: str = ""
    source: str = ""
    date: str = ""
    setup: str = ""
    anyway: bool = False
    """Whether it is to be checked although it was before."""

    def cleaned(self) -> Claim:
        """The claim.

        Raises:
            InputError: It is empty or too long, or the date is none.
        """
        claim = make_claim(plain(self.claim), source=" ".join(plain(self.source).split()))
        check_lengths(claim)
        date = iso_date(" ".join(plain(self.date).split()))
        if len(date) > LONGEST_DATE:
            raise InputError(
                f"The date {date[:LONGEST_DATE]!r}... is not a date: write it like 2024-05-31, or give the year alone."
            )
        return Claim(claim.text, claim.source, date)


def plain(text: str) -> str:
    """Text without what is not to be read: control characters, and those that turn the direction of a line."""
    return "".join(" " if unicodedata.category(one) == "Cc" else one for one in text if one not in _DIRECTIONS)


def begin_check(app: AppState, user: User, claim: Claim, wanted: SetUp) -> str:
    """Have a claim checked; gives the check of the same person's same claim where that still waits.

    Raises:
        Busy: Too many wait already, of this person or of all.
    """
    checks = checks_of(app)
    under_way = checks.find_waiting(claim, user.name, wanted.name)
    if under_way is not None:
        return under_way
    refuse_crowds(app, user)
    check = checks.begin(claim, wanted.settings, setup=wanted.name, by=user.name)
    send_to_work(app, checks.get(check).about, user.name)
    return check


def begin_again(app: AppState, user: User, check: str) -> None:
    """Go on with a check that ended without a result; another one stays as it is.

    Raises:
        Refused: Somebody stopped it who alone, or with adjudicators, may have it go on.
        Busy: Too many wait already, of this person or of all.
    """
    kept, _ = found_check(app, check)
    if may_begin_again(user, kept):
        refuse_crowds(app, user)
        send_to_work(app, kept.about, user.name)
    elif kept.about.state == "stopped":
        raise Refused("This check was stopped: the person who asked for it, or an adjudicator, can resume it.")


def refuse_crowds(app: AppState, user: User) -> None:
    """Refuse another check or question if too many wait.

    Raises:
        Busy: Too many checks and questions wait already.
        TooMany: Too many of this person's do.
    """
    waiting = app.jobs.unended((KIND, ASK))
    if checks_of(app).count_waiting() + sum(job.kind == ASK for job in waiting) >= MOST_WAITING:
        raise Busy("Too many claims and questions are waiting: try again later.")
    if sum(job.payload.get("asker") == user.name for job in waiting) >= MOST_WAITING_OF_ACCOUNT:
        raise TooMany("You have reached the limit of waiting claims and questions: wait until one is done.")
