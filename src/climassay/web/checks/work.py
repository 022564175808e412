"""The job behind a check: the debate, told event by event, and its transcript kept."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from climassay.errors import ClimassayError
from climassay.factcheck import Claim, Transcript, open_checker
from climassay.factcheck.check_store import StoredCheck
from climassay.factcheck.debate.steps import Ask, AskEntailment, AskHead, AskOptions, AskPassages, AskText
from climassay.factcheck.transcript import Event, event_data
from climassay.web.checks.company import company_of
from climassay.web.checks.store import checks_of
from climassay.web.jobs import JobReport, Stopped
from climassay.web.place import Place

BEGIN = "begin"
"""Event with which every attempt begins: what an attempt that was cut had told does not count any more."""
_DOING: Mapping[type[Ask], str] = {
    AskPassages: "searching the documents",
    AskHead: "judging by the verdict head",
    AskOptions: "weighing answers",
    AskText: "writing",
    AskEntailment: "comparing sentences with passages",
}


class _Interrupted(KeyboardInterrupt):
    """Ends a run as interrupted, which is what has happened to it; no failure."""


def check_claim(place: Place, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Check a claim that is stored; answers that the records have are not asked again.

    Args:
        place: The server's.
        payload: ``check`` is the id.
        report: Told of the debate as it goes.
    """
    checks, name = checks_of(place), str(payload["check"])
    kept = checks.get(name)
    if kept.about.state == "waiting":
        report.event(BEGIN, {"check": name})
        try:
            transcript, run = _debate(place, kept, report)
        except Stopped:
            # A server that ends goes on with the check when it starts again; another one may do it now.
            if report.stopped_by_somebody:
                checks.stop(name, report.job)
            raise
        except Exception as error:
            if not report.lost:
                unforeseen = f"Something unforeseen went wrong ({type(error).__name__})."
                checks.fail(name, str(error) if isinstance(error, ClimassayError) else unforeseen)
            raise
        checks.finish(name, transcript, run=run)
    about = checks.get(name).about
    return {"check": name, "outcome": about.outcome, "verdict": about.label}


def _debate(place: Place, kept: StoredCheck, report: JobReport) -> tuple[Transcript, str]:
    """The transcript, and the id of the run."""
    asked = 0

    def watch(asks: Sequence[Ask]) -> None:
        nonlocal asked
        with _interrupting():
            report.progress(asked, 0, _said(asks))
        asked += len(asks)

    def tell(_claim: Claim, event: Event) -> None:
        with _interrupting():
            report.event(*event_data(event))

    claim = kept.about.claim
    report.progress(0, 0, "loading models and collections")
    company = company_of(place, kept.settings)
    config = {"claim": claim.text, "check": kept.about.id}
    try:
        with open_checker(kept.settings, company, place.records, command="check", config=config) as checker:
            [transcript] = checker.check([claim], tell=tell, watch=watch)
            checker.keep([transcript])
    except _Interrupted:
        raise Stopped from None
    return transcript, checker.run


@contextmanager
def _interrupting() -> Iterator[None]:
    try:
        yield
    except Stopped:
        raise _Interrupted from None


def _said(asks: Sequence[Ask]) -> str:
    """What is being done, most of it first."""
    counts = Counter(type(ask) for ask in asks)
    return ", ".join(_DOING[kind] for kind, _ in counts.most_common())
