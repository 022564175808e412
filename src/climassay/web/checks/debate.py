"""The job that debates a claim, its events, and the state of a debate for its page."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from climassay.errors import ClimassayError
from climassay.factcheck import Claim, Transcript, open_checker
from climassay.factcheck.check_records import StoredCheck
from climassay.factcheck.configuration import DebateSettings
from climassay.factcheck.debate.steps import EntailmentRequest, Request, ScoringRequest, SearchRequest, TextRequest
from climassay.factcheck.fallacies import find_contrarian_claim
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
from climassay.web.checks.store import BEGIN, all_events, get_check_store, seconds_spent, start_time
from climassay.web.jobs import Interrupted, JobReport, Jobs, Stopped, interrupting

Region = Literal["statements", "debate", "passages", "verdict"]
_REGIONS: dict[EventKind, Region] = {"subclaims": "statements", "passages": "passages", "verdict": "verdict"}
MIN_PAST_DEBATES = 3
"""Minimum number of past debates to estimate the duration of another one."""
_DOING: Mapping[type[Request], str] = {
    SearchRequest: "searching the documents",
    ScoringRequest: "weighing answers",
    TextRequest: "writing",
    EntailmentRequest: "comparing sentences with passages",
}


def check_claim(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Debate a stored claim; answers that are in the records are reused."""
    checks, name = get_check_store(app), str(payload["check"])
    stored = checks.get(name)
    if stored.about.state == "waiting":
        report.event(BEGIN, {"check": name, "before": payload.get("before", 0.0)})
        try:
            transcript, run = _debate(app, stored, report)
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
        scale = load_scale(stored.settings.scale)
        checks.finish(
            name,
            transcript,
            run=run,
            topic=find_contrarian_claim(transcript, scale, app.encoder(BUNDLED_ENCODER)),
            seconds=seconds_spent(app.jobs, report.job, time.time()),
        )
    about = checks.get(name).about
    return {"check": name, "outcome": about.outcome, "verdict": about.label}


def _debate(app: AppState, stored: StoredCheck, report: JobReport) -> tuple[Transcript, str]:
    """Return the transcript and the id of the run."""
    progress = DebateProgress(stored.settings)

    def on_requests(asks: Sequence[Request]) -> None:
        counts = Counter(type(ask) for ask in asks)
        doing = ", ".join(_DOING[kind] for kind, _ in counts.most_common())
        with interrupting():
            report.progress(progress.step - 1, progress.steps, doing)

    def on_event(_claim: Claim, event: Event) -> None:
        progress.take(event)
        with interrupting():
            report.event(*event_data(event))

    claim = stored.about.claim
    report.progress(0, progress.steps, "loading models and collections")
    resources = app.debate(stored.settings)
    config = {"claim": claim.text, "check": stored.about.id}
    try:
        with open_checker(stored.settings, resources, app.records, command="check", config=config) as checker:
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
    """State of a participant in a running debate."""

    name: str
    doing: Doing | None = None
    """Current activity; None if there is none."""
    opinion: AdvocateOpinion | None = None
    """Latest opinion of an advocate."""


class DebateProgress:
    """Progress of a debate, computed from its events.

    The steps are: reading the claim, retrieving passages, in every round one step per advocate and one for the
    mediator, the questions between two rounds, and the verdict. The number of rounds is known at the end of the last.

    Attributes:
        step: Number of the current step, from 1.
        steps: Number of all steps; the maximum as long as ``final`` is false.
        final: Whether the number of steps is known.
        round: Number of the current round, from 1; 0 before the first.
        stage: Current activity in words.
        participants: State of each participant by name, the mediator last.
    """

    def __init__(self, settings: DebateSettings) -> None:
        self._advocates = len(settings.advocates)
        self.step, self.steps = 1, self._last_step(max(settings.rounds, 1))
        self.final = settings.rounds <= 1
        self.round, self.stage = 0, "reading the claim"
        names = [*(advocate.name for advocate in settings.advocates), "mediator"]
        self.participants = {name: ParticipantProgress(name) for name in names}

    def _last_step(self, number: int) -> int:
        """Return the step after a round: the questions for the next one, or the verdict."""
        return 2 + number * (self._advocates + 2)

    def take(self, event: Event) -> None:
        """Update the progress by an event."""
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
            views = (participant.opinion for participant in self.participants.values())
            n_views = sum(view is not None and view.round == event.round for view in views)
            self._at(self._last_step(event.round - 1) + min(n_views + 1, self._advocates), self.stage)
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
    """Estimate the remaining duration of a debate from past ones that took longer than it has taken.

    Args:
        past: Durations of similar debates in seconds.
        elapsed: Seconds since the debate began.

    Returns:
        Median of the remaining seconds; 0 if no past debate took as long, None if there are too few.
    """
    if len(past) < MIN_PAST_DEBATES:
        return None
    return median([seconds - elapsed for seconds in past if seconds > elapsed] or [0.0])


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """An event of a running debate, as its page shows it."""

    number: int
    """Number of the job's event."""
    kind: EventKind
    event: Event
    opens: int | None
    """Number of the round that begins with the event, if one does."""

    @property
    def region(self) -> Region:
        """Region of the page that shows the event."""
        return _REGIONS.get(self.kind, "debate")


@dataclass(frozen=True, slots=True)
class LiveDebate:
    """State of a running debate."""

    entries: tuple[LiveEntry, ...]
    sources: tuple[PassageCitation, ...]
    """Passages found so far, by number."""
    last: int
    """Number of the job's last event; 0 before the first."""
    progress: DebateProgress
    began: float | None = None
    """Start in seconds since 1970, see :func:`~climassay.web.checks.store.start_time`."""

    def after(self, number: int) -> tuple[LiveEntry, ...]:
        """Return the entries after an event."""
        return tuple(entry for entry in self.entries if entry.number > number)


def live_debate(jobs: Jobs, job: str, settings: DebateSettings) -> LiveDebate:
    """Return the state of a debate from the events of its job, without those of interrupted attempts."""
    events = all_events(jobs, job)
    progress = DebateProgress(settings)
    starts = [index for index, event in enumerate(events) if event.kind == BEGIN]
    entries: list[LiveEntry] = []
    sources: dict[int, PassageCitation] = {}
    last_round = 0
    for event in events[starts[-1] + 1 if starts else 0 :]:
        if event.kind not in EVENT_KINDS:
            continue
        debate_event = event_from_data(event.kind, event.body)
        progress.take(debate_event)
        if isinstance(debate_event, Activity):
            continue
        number = debate_event.round if isinstance(debate_event, AdvocateOpinion | FollowUp | MediatorDecision) else 0
        entries.append(LiveEntry(event.number, event.kind, debate_event, number if number > last_round else None))
        last_round = max(last_round, number)
        if isinstance(debate_event, Retrieval):
            sources.update((source.number, source) for source in debate_event.passages)
    return LiveDebate(
        tuple(entries),
        tuple(sources[number] for number in sorted(sources)),
        events[-1].number if events else 0,
        progress,
        start_time(events),
    )
