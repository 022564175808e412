"""A debate on a server: the job that holds it, its events, and what a page shows of it while it goes on."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from climassay.errors import ClimassayError
from climassay.factcheck import Claim, Transcript, open_checker
from climassay.factcheck.check_store import StoredCheck
from climassay.factcheck.configuration import DebateSettings
from climassay.factcheck.debate.steps import Ask, AskEntailment, AskOptions, AskPassages, AskText
from climassay.factcheck.fallacies import contrarian_claim
from climassay.factcheck.scales import load_scale
from climassay.factcheck.transcript import (
    EVENT_KINDS,
    Activity,
    AdvocateOpinion,
    Doing,
    Event,
    EventKind,
    FollowUp,
    MediatorDecision,
    PassageCitation,
    Retrieval,
    Verdict,
    event_data,
    event_from_data,
)
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.web.app_state import AppState
from climassay.web.checks.store import BEGIN, all_events, checks_of, seconds_spent, time_begun
from climassay.web.jobs import Interrupted, JobReport, Jobs, Stopped, interrupting

Region = Literal["statements", "debate", "passages", "verdict"]
_REGIONS: dict[EventKind, Region] = {"subclaims": "statements", "passages": "passages", "verdict": "verdict"}
LEAST_PAST = 3
"""Past debates from which on it is estimated how long one will take."""
_DOING: Mapping[type[Ask], str] = {
    AskPassages: "searching the documents",
    AskOptions: "weighing answers",
    AskText: "writing",
    AskEntailment: "comparing sentences with passages",
}


def check_claim(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Check a claim that is stored; answers that the records have are not asked again."""
    checks, name = checks_of(app), str(payload["check"])
    kept = checks.get(name)
    if kept.about.state == "waiting":
        report.event(BEGIN, {"check": name, "before": payload.get("before", 0.0)})
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
        scale = load_scale(kept.settings.scale)
        checks.finish(
            name,
            transcript,
            run=run,
            topic=contrarian_claim(transcript, scale, app.encoder(BUNDLED_ENCODER)),
            seconds=seconds_spent(app.jobs, report.job, time.time()),
        )
    about = checks.get(name).about
    return {"check": name, "outcome": about.outcome, "verdict": about.label}


def _debate(app: AppState, kept: StoredCheck, report: JobReport) -> tuple[Transcript, str]:
    """The transcript, and the id of the run."""
    progress = DebateProgress(kept.settings)

    def on_requests(asks: Sequence[Ask]) -> None:
        counts = Counter(type(ask) for ask in asks)
        doing = ", ".join(_DOING[kind] for kind, _ in counts.most_common())
        with interrupting():
            report.progress(progress.step - 1, progress.steps, doing)

    def on_event(_claim: Claim, event: Event) -> None:
        progress.take(event)
        with interrupting():
            report.event(*event_data(event))

    claim = kept.about.claim
    report.progress(0, progress.steps, "loading models and collections")
    resources = app.debate(kept.settings)
    config = {"claim": claim.text, "check": kept.about.id}
    try:
        with open_checker(kept.settings, resources, app.records, command="check", config=config) as checker:
            [transcript] = checker.check([claim], on_event=on_event, on_requests=on_requests)
            checker.keep([transcript])
    except Interrupted:
        raise Stopped from None
    return transcript, checker.run


_STAGES: Mapping[Doing, str] = {
    "searching": "looking for passages",
    "judging": "the advocates give their views",
    "checking quotations": "the advocates give their views",
    "weighing": "the mediator weighs the views",
    "asking": "questions for another round",
    "replying": "questions for another round",
    "concluding": "the mediator writes the verdict",
}


@dataclass(slots=True)
class ParticipantProgress:
    """What somebody does in a debate that goes on."""

    name: str
    doing: Doing | None = None
    """None before the first time, and once that is done."""
    opinion: AdvocateOpinion | None = None
    """An advocate's latest."""


class DebateProgress:
    """How far a debate is, by what it has told.

    Its steps are: reading the claim, looking for passages, in every round each advocate's view and the mediator's, the
    questions between two rounds, and the verdict. How many rounds there will be is known at the end of the last.

    Attributes:
        step: The one that is being done, from 1.
        steps: All of them; at most so many as long as ``final`` is false.
        final: Whether it is known how many there are.
        round: From 1; 0 before the first.
        stage: What is being done, in words.
        participants: Who does what, the mediator last.
    """

    def __init__(self, settings: DebateSettings) -> None:
        self._advocates = len(settings.advocates)
        self.step, self.steps = 1, self._last_step(max(settings.rounds, 1))
        self.final = settings.rounds <= 1
        self.round, self.stage = 0, "reading the claim"
        names = [*(advocate.name for advocate in settings.advocates), "mediator"]
        self.participants = {name: ParticipantProgress(name) for name in names}

    def _last_step(self, number: int) -> int:
        """The step that ends a round: the questions for the next one, or the verdict."""
        return 2 + number * (self._advocates + 2)

    def take(self, event: Event) -> None:
        """Take note of what has happened."""
        if isinstance(event, tuple):
            self._at(2, "looking for passages")
        elif isinstance(event, Activity):
            self.participants[event.participant].doing = event.doing
            stage = _STAGES[event.doing]
            first = self._last_step(event.round - 1) + 1
            if event.doing == "judging":
                self.round = event.round
                self._at(first, stage)
            elif event.doing == "weighing":
                self._at(first + self._advocates, stage)
            elif event.doing == "concluding":
                self._at(self.steps, stage)
            elif event.round > 1:
                self._at(first - 1, stage)
        elif isinstance(event, AdvocateOpinion):
            self.participants[event.advocate].doing = None
            self.participants[event.advocate].opinion = event
            views = (one.opinion for one in self.participants.values())
            given = sum(view is not None and view.round == event.round for view in views)
            self._at(self._last_step(event.round - 1) + min(given + 1, self._advocates), self.stage)
        elif isinstance(event, MediatorDecision):
            self.participants["mediator"].doing = None
            if event.closes or event.error is not None:
                self.steps, self.final = self._last_step(event.round), True
        elif isinstance(event, Verdict):
            self.participants["mediator"].doing = None

    def _at(self, step: int, stage: str) -> None:
        if step >= self.step:
            self.step, self.stage = min(step, self.steps), stage


def seconds_left(past: Sequence[float], elapsed: float) -> float | None:
    """How long a debate will probably go on: the median of those past ones that took longer than it has taken so far.

    Args:
        past: Seconds that debates like it took.
        elapsed: Seconds that it has taken so far.

    Returns:
        Seconds; 0 where no past one took so long, and None where there are too few.
    """
    if len(past) < LEAST_PAST:
        return None
    return median([seconds - elapsed for seconds in past if seconds > elapsed] or [0.0])


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
    progress: DebateProgress
    began: float | None = None
    """When it began, in seconds since 1970, as if no attempt had been cut; None before that, and where it is not
    known."""

    def after(self, number: int) -> tuple[LiveEntry, ...]:
        """What has happened since an event."""
        return tuple(entry for entry in self.entries if entry.number > number)


def live_debate(jobs: Jobs, job: str, settings: DebateSettings) -> LiveDebate:
    """The debate that a job has reported so far, without what an interrupted attempt reported."""
    events = all_events(jobs, job)
    progress = DebateProgress(settings)
    begins = [place for place, event in enumerate(events) if event.kind == BEGIN]
    entries: list[LiveEntry] = []
    sources: dict[int, PassageCitation] = {}
    latest = 0
    for event in events[begins[-1] + 1 if begins else 0 :]:
        if event.kind not in EVENT_KINDS:
            continue
        happened = event_from_data(event.kind, event.body)
        progress.take(happened)
        if isinstance(happened, Activity):
            continue
        number = happened.round if isinstance(happened, AdvocateOpinion | FollowUp | MediatorDecision) else 0
        entries.append(LiveEntry(event.number, event.kind, happened, number if number > latest else None))
        latest = max(latest, number)
        if isinstance(happened, Retrieval):
            sources.update((source.number, source) for source in happened.passages)
    return LiveDebate(
        tuple(entries),
        tuple(sources[number] for number in sorted(sources)),
        events[-1].number if events else 0,
        progress,
        time_begun(events),
    )
