"""The job that debates a claim, its events, and the state of a debate for its page."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from climassay.errors import ClimassayError, LostDatabaseError
from climassay.factcheck import Claim, Transcript
from climassay.factcheck.check_records import StoredCheck
from climassay.factcheck.configuration import DebateSettings
from climassay.factcheck.debate.requests import EntailmentRequest, Request, SearchRequest, TextRequest
from climassay.factcheck.fallacies import find_contrarian_claim
from climassay.factcheck.scales import load_scale
from climassay.factcheck.session_debates import open_session_checker
from climassay.factcheck.transcript import (
    EVENT_KINDS,
    Activity,
    ActivityKind,
    AdvocateOpinion,
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
from climassay.web.checks.store import BEGIN_EVENT, get_check_store, load_all_events, measure_duration, start_time
from climassay.web.jobs import Interrupted, JobReport, Jobs, Stopped, stop_as_interruption

Region = Literal["statements", "debate", "passages", "verdict"]
_REGIONS: dict[EventKind, Region] = {"subclaims": "statements", "passages": "passages", "verdict": "verdict"}
MIN_PAST_DEBATES = 3
"""Minimum number of past debates required to estimate the duration of a debate."""
_ACTIVITY_LABELS: Mapping[type[Request], str] = {
    SearchRequest: "searching the documents",
    TextRequest: "writing",
    EntailmentRequest: "comparing sentences with passages",
}


def check_claim(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Run a job: debate a stored claim and store the result; answers in the records are reused.

    Args:
        app: State of the server.
        payload: Payload of the job with the key ``check``.
        report: Report of the job's progress.

    Returns:
        Result of the job: id, outcome and verdict of the check.
    """
    checks, check_id = get_check_store(app), str(payload["check"])
    stored_check = checks.get(check_id)
    if stored_check.about.state == "waiting":
        report.event(BEGIN_EVENT, {"check": check_id, "before": payload.get("before", 0.0)})
        try:
            transcript, run = _debate(app, stored_check, report)
        except Stopped:
            # If the server shuts down, the check stays waiting, and this server or another one continues it.
            if report.was_stopped_by_user:
                checks.stop(check_id, report.job)
            raise
        except LostDatabaseError:
            raise  # The check stays waiting, and its job is queued again.
        except Exception as error:
            if not report.lost:
                message = f"Something unforeseen went wrong ({type(error).__name__})."
                checks.fail(check_id, str(error) if isinstance(error, ClimassayError) else message)
            raise
        scale = load_scale(stored_check.settings.scale)
        checks.finish(
            check_id,
            transcript,
            run=run,
            topic=find_contrarian_claim(transcript, scale, app.encoder(BUNDLED_ENCODER)),
            seconds=measure_duration(app.jobs, report.job, time.time()),
        )
    ended_check = checks.get(check_id).about
    return {"check": check_id, "outcome": ended_check.outcome, "verdict": ended_check.label}


def _debate(app: AppState, stored_check: StoredCheck, report: JobReport) -> tuple[Transcript, str]:
    """Debate the claim of a stored check and return the transcript and the id of the run."""
    progress = DebateProgress(stored_check.settings)

    def on_requests(requests: Sequence[Request]) -> None:
        counts = Counter(type(request) for request in requests)
        activity = ", ".join(_ACTIVITY_LABELS[kind] for kind, _ in counts.most_common())
        with stop_as_interruption():
            report.progress(progress.step - 1, progress.steps, activity)

    def on_event(_claim: Claim, event: Event) -> None:
        progress.update(event)
        with stop_as_interruption():
            report.event(*event_data(event))

    claim = stored_check.about.claim
    report.progress(0, progress.steps, "loading models and collections")
    config = {"claim": claim.text, "check": stored_check.about.id}
    try:
        with open_session_checker(app, stored_check.settings, "check", config) as checker:
            [transcript] = checker.check([claim], on_event=on_event, on_requests=on_requests)
            checker.save_transcripts([transcript])
    except Interrupted:
        raise Stopped from None
    return transcript, checker.run_id


_STAGE_LABELS: Mapping[ActivityKind, str] = {
    "searching": "looking for passages",
    "judging": "the advocates give their views",
    "checking quotations": "the advocates give their views",
    "weighing": "the mediator weighs the views",
    "asking": "questions for another round",
    "concluding": "the mediator writes the verdict",
}


@dataclass(slots=True)
class ParticipantProgress:
    """Current state of a participant in a running debate."""

    name: str
    doing: ActivityKind | None = None
    """Current activity; None if the participant waits for others."""
    opinion: AdvocateOpinion | None = None
    """Latest opinion; None if the participant has not given any or is the mediator."""


class DebateProgress:
    """Progress of a debate, computed from its events.

    A debate has these steps: parsing the claim; retrieving passages; in each round, one step per advocate and one for
    the mediator; one step for questions between two rounds; and the verdict. The number of rounds is only known when
    the mediator closes the last round.

    Attributes:
        step: Number of the current step, from 1.
        steps: Total number of steps; the maximum number while ``final`` is False.
        final: Whether the total number of steps is known.
        round: Number of the current round, from 1; 0 before the first round.
        stage: Description of the current stage.
        participants: State of each participant by name, the mediator last.
    """

    def __init__(self, settings: DebateSettings) -> None:
        self._advocates = len(settings.advocates)
        self.step, self.steps = 1, self._step_after_round(max(settings.rounds, 1))
        self.final = settings.rounds <= 1
        self.round, self.stage = 0, "reading the claim"
        names = [*(advocate.name for advocate in settings.advocates), "mediator"]
        self.participants = {name: ParticipantProgress(name) for name in names}

    def _step_after_round(self, round_number: int) -> int:
        """Return the number of the progress step after a round, in which advocates or the mediator are asked."""
        return 2 + round_number * (self._advocates + 2)

    def update(self, event: Event) -> None:
        """Update the progress with the next event of the debate."""
        if isinstance(event, tuple):
            self._advance_to(2, "looking for passages")
        elif isinstance(event, Activity):
            self.participants[event.participant].doing = event.doing
            stage = _STAGE_LABELS[event.doing]
            first_step = self._step_after_round(event.round - 1) + 1
            if event.doing == "judging":
                self.round = event.round
                self._advance_to(first_step, stage)
            elif event.doing == "weighing":
                self._advance_to(first_step + self._advocates, stage)
            elif event.doing == "concluding":
                self._advance_to(self.steps, stage)
            elif event.round > 1:
                self._advance_to(first_step - 1, stage)
        elif isinstance(event, AdvocateOpinion):
            self.participants[event.advocate].doing = None
            self.participants[event.advocate].opinion = event
            opinions = (participant.opinion for participant in self.participants.values())
            n_opinions = sum(opinion is not None and opinion.round == event.round for opinion in opinions)
            self._advance_to(self._step_after_round(event.round - 1) + min(n_opinions + 1, self._advocates), self.stage)
        elif isinstance(event, MediatorDecision):
            self.participants["mediator"].doing = None
            if event.closes or event.error is not None:
                self.steps, self.final = self._step_after_round(event.round), True
        elif isinstance(event, Verdict):
            self.participants["mediator"].doing = None

    def _advance_to(self, step: int, stage: str) -> None:
        if step >= self.step:
            self.step, self.stage = min(step, self.steps), stage


def estimate_remaining_seconds(past_durations: Sequence[float], elapsed: float) -> float | None:
    """Estimate the remaining seconds of a running debate from past debates.

    Args:
        past_durations: Durations of similar debates in seconds.
        elapsed: Time since the debate began in seconds.

    Returns:
        Median of ``duration - elapsed`` over the past debates that took longer than ``elapsed``; 0 if none did, None if
        there are fewer than :data:`MIN_PAST_DEBATES` past debates.
    """
    if len(past_durations) < MIN_PAST_DEBATES:
        return None
    return median([seconds - elapsed for seconds in past_durations if seconds > elapsed] or [0.0])


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """Event of a running debate that is shown on its page."""

    number: int
    """Number of the event among the job's events."""
    kind: EventKind
    event: Event
    opens: int | None
    """Number of the round that begins with the event; None if no round begins with it."""

    @property
    def region(self) -> Region:
        """Region of the page in which the event is shown."""
        return _REGIONS.get(self.kind, "debate")


@dataclass(frozen=True, slots=True)
class LiveDebate:
    """State of a running debate."""

    entries: tuple[LiveEntry, ...]
    sources: tuple[PassageCitation, ...]
    """Passages retrieved so far, sorted by their numbers."""
    last_number: int
    """Number of the job's last event; 0 if there is none."""
    progress: DebateProgress
    began: float | None = None
    """Start of the debate in seconds since 1970, see :func:`~climassay.web.checks.store.start_time`."""

    def entries_after(self, number: int) -> tuple[LiveEntry, ...]:
        """Return the entries of events with numbers above ``number``."""
        return tuple(entry for entry in self.entries if entry.number > number)


def load_live_debate(jobs: Jobs, job: str, settings: DebateSettings) -> LiveDebate:
    """Compute the state of a debate from its job's events, ignoring events of interrupted attempts."""
    events = load_all_events(jobs, job)
    progress = DebateProgress(settings)
    begin_indices = [index for index, event in enumerate(events) if event.kind == BEGIN_EVENT]
    entries: list[LiveEntry] = []
    sources: dict[int, PassageCitation] = {}
    last_round = 0
    for event in events[begin_indices[-1] + 1 if begin_indices else 0 :]:
        if event.kind not in EVENT_KINDS:
            continue
        debate_event = event_from_data(event.kind, event.body)
        progress.update(debate_event)
        if isinstance(debate_event, Activity):
            continue
        round_number = (
            debate_event.round if isinstance(debate_event, AdvocateOpinion | FollowUp | MediatorDecision) else 0
        )
        entries.append(
            LiveEntry(event.number, event.kind, debate_event, round_number if round_number > last_round else None)
        )
        last_round = max(last_round, round_number)
        if isinstance(debate_event, Retrieval):
            sources.update((source.number, source) for source in debate_event.passages)
    return LiveDebate(
        tuple(entries),
        tuple(sources[source_number] for source_number in sorted(sources)),
        events[-1].number if events else 0,
        progress,
        start_time(events),
    )
