"""A debate that goes on: what its job has told so far, in the order and the places in which a page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from climassay.factcheck.transcript import (
    EVENT_KINDS,
    AdvocateOpinion,
    Event,
    EventKind,
    FollowUp,
    MediatorDecision,
    PassageCitation,
    Retrieval,
    event_from_data,
)
from climassay.web.checks.work import BEGIN
from climassay.web.jobs import JobEvent, Jobs

Region = Literal["statements", "debate", "passages", "verdict"]
_REGIONS: dict[EventKind, Region] = {"subclaims": "statements", "passages": "passages", "verdict": "verdict"}


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """Something that happened in a debate."""

    number: int
    """Of the job's event."""
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
    """The debate that a job has told so far, without what an attempt told that was cut."""
    events = _all_events(jobs, job)
    begins = [place for place, event in enumerate(events) if event.kind == BEGIN]
    entries: list[LiveEntry] = []
    sources: dict[int, PassageCitation] = {}
    latest = 0
    for event in events[begins[-1] + 1 if begins else 0 :]:
        if event.kind not in EVENT_KINDS:
            continue
        happened = event_from_data(event.kind, event.body)
        number = _round(happened)
        entries.append(LiveEntry(event.number, event.kind, happened, number if number > latest else None))
        latest = max(latest, number)
        if isinstance(happened, Retrieval):
            sources.update((source.number, source) for source in happened.sources)
    return LiveDebate(tuple(entries), tuple(sources[number] for number in sorted(sources)),
                      events[-1].number if events else 0)  # fmt: skip


def _round(event: Event) -> int:
    return event.round if isinstance(event, AdvocateOpinion | FollowUp | MediatorDecision) else 0


def _all_events(jobs: Jobs, job: str) -> Sequence[JobEvent]:
    events: list[JobEvent] = []
    while more := jobs.events(job, after=events[-1].number if events else 0):
        events += more
    return events
