"""A debate on a server: the job that holds it, its events, and what a page shows of it while it goes on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from climassay.errors import ClimassayError
from climassay.factcheck import Claim, Transcript, open_checker
from climassay.factcheck.check_store import StoredCheck
from climassay.factcheck.debate.steps import Ask, AskEntailment, AskHead, AskOptions, AskPassages, AskText
from climassay.factcheck.transcript import (
    EVENT_KINDS,
    AdvocateOpinion,
    Event,
    EventKind,
    FollowUp,
    MediatorDecision,
    PassageCitation,
    Retrieval,
    event_data,
    event_from_data,
)
from climassay.web.app_state import AppState
from climassay.web.checks.store import checks_of
from climassay.web.jobs import JobEvent, JobReport, Jobs, Stopped

Region = Literal["statements", "debate", "passages", "verdict"]
_REGIONS: dict[EventKind, Region] = {"subclaims": "statements", "passages": "passages", "verdict": "verdict"}
BEGIN = "begin"
"""Event with which every attempt begins: what an interrupted attempt had reported does not count any more."""
_DOING: Mapping[type[Ask], str] = {
    AskPassages: "searching the documents",
    AskHead: "judging by the verdict head",
    AskOptions: "weighing answers",
    AskText: "writing",
    AskEntailment: "comparing sentences with passages",
}


class _Interrupted(KeyboardInterrupt):
    """Ends a run as interrupted, which is what has happened to it; no failure."""


def check_claim(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Check a claim that is stored; answers that the records have are not asked again."""
    checks, name = checks_of(app), str(payload["check"])
    kept = checks.get(name)
    if kept.about.state == "waiting":
        report.event(BEGIN, {"check": name})
        try:
            transcript, run = _debate(app, kept, report)
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


def _debate(app: AppState, kept: StoredCheck, report: JobReport) -> tuple[Transcript, str]:
    """The transcript, and the id of the run."""
    asked = 0

    def watch(asks: Sequence[Ask]) -> None:
        nonlocal asked
        counts = Counter(type(ask) for ask in asks)
        with _interrupting():
            report.progress(asked, 0, ", ".join(_DOING[kind] for kind, _ in counts.most_common()))
        asked += len(asks)

    def on_event(_claim: Claim, event: Event) -> None:
        with _interrupting():
            report.event(*event_data(event))

    claim = kept.about.claim
    report.progress(0, 0, "loading models and collections")
    company = app.debate(kept.settings)
    config = {"claim": claim.text, "check": kept.about.id}
    try:
        with open_checker(kept.settings, company, app.records, command="check", config=config) as checker:
            [transcript] = checker.check([claim], on_event=on_event, watch=watch)
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


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """Something that happened in a debate."""

    number: int
    """Number of the job's event."""
    kind: EventKind
    event: Event
    opens: int | None
    """The round that begins with it; None where none does."""

    @property
    def region(self) -> Region:
        """Where a page shows it."""
        return _REGIONS.get(self.kind, "debate")


@dataclass(frozen=True, slots=True)
class LiveDebate:
    """What is known of a debate that goes on."""

    entries: tuple[LiveEntry, ...]
    sources: tuple[PassageCitation, ...]
    """Passages found so far, by number."""
    last: int
    """Number of the job's last event; 0 before the first."""

    def after(self, number: int) -> tuple[LiveEntry, ...]:
        """What has happened since an event."""
        return tuple(entry for entry in self.entries if entry.number > number)


def live_debate(jobs: Jobs, job: str) -> LiveDebate:
    """The debate that a job has reported so far, without what an interrupted attempt reported."""
    events: list[JobEvent] = []
    while more := jobs.events(job, after=events[-1].number if events else 0):
        events += more
    begins = [place for place, event in enumerate(events) if event.kind == BEGIN]
    entries: list[LiveEntry] = []
    sources: dict[int, PassageCitation] = {}
    latest = 0
    for event in events[begins[-1] + 1 if begins else 0 :]:
        if event.kind not in EVENT_KINDS:
            continue
        happened = event_from_data(event.kind, event.body)
        number = happened.round if isinstance(happened, AdvocateOpinion | FollowUp | MediatorDecision) else 0
        entries.append(LiveEntry(event.number, event.kind, happened, number if number > latest else None))
        latest = max(latest, number)
        if isinstance(happened, Retrieval):
            sources.update((source.number, source) for source in happened.sources)
    return LiveDebate(tuple(entries), tuple(sources[number] for number in sorted(sources)),
                      events[-1].number if events else 0)  # fmt: skip
