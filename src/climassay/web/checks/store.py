"""The checks of a server: stored, and done by its jobs."""

from climassay.factcheck.check_store import CheckStore, CheckSummary, StoredCheck
from climassay.web.accounts import User
from climassay.web.failures import Missing, Refused
from climassay.web.jobs import Job
from climassay.web.place import Place

KIND = "check"
"""Of the jobs that check a claim."""
_TITLE_CHARACTERS = 80


def checks_of(place: Place) -> CheckStore:
    """The store of a server's checks."""
    return place.shared("checks", lambda: CheckStore(place.records))


def found_check(place: Place, check: str) -> tuple[StoredCheck, Job | None]:
    """A check, and the job that does the work.

    A job that was stopped or broke before the work began leaves its check waiting; that is put right here.

    Raises:
        Missing: There is no such check.
    """
    checks = checks_of(place)
    if check not in checks:
        raise Missing(f"There is no check {check!r}.")
    kept = checks.get(check)
    job = place.jobs.get(kept.about.job) if kept.about.job else None
    if kept.about.state == "waiting" and job is not None and job.ended:
        if job.state == "failed":
            checks.fail(check, job.error or "The work broke.")
        else:
            checks.stop(check)
        kept = checks.get(check)
    return kept, job


def send_to_work(place: Place, about: CheckSummary, asker: str = "") -> None:
    """Queue the debate of a check that waits, or that ended without a result, for somebody whose place it takes."""
    checks_of(place).reopen(about.id)
    shown = about.claim.text[:_TITLE_CHARACTERS]
    title = f"Check: {shown}{'' if shown == about.claim.text else '…'}"
    job = place.jobs.submit(KIND, title, {"check": about.id, "asker": asker}, about.by)
    checks_of(place).give_to(about.id, job)


def send_forgotten(place: Place) -> None:
    """Queue the checks that were stored, but not queued, when the server was killed."""
    for check in checks_of(place).without_job():
        send_to_work(place, checks_of(place).get(check).about)


def may_stop(user: User | None, about: CheckSummary) -> bool:
    """Whether somebody may stop a check: who asked for it, and who may decide for others."""
    return user is not None and (user.name == about.by or user.may("adjudicator"))


def may_begin_again(user: User | None, kept: StoredCheck) -> bool:
    """Whether somebody who may ask may go on with a check: one that broke; one that was stopped, who may stop it."""
    about = kept.about
    return may_stop(user, about) if about.state == "stopped" else about.state == "failed" or about.outcome == "failed"


def end_check(place: Place, user: User, check: str) -> None:
    """End a check that goes on; one that has ended stays as it is.

    Raises:
        Missing: There is no such check.
        Refused: It is somebody else's.
    """
    kept, job = found_check(place, check)
    if not may_stop(user, kept.about):
        raise Refused("This is somebody else's check: they or an adjudicator can stop it.")
    if kept.about.state == "waiting":
        if job is not None:
            place.jobs.stop(job.id)
        checks_of(place).stop(check)
