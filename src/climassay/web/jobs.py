"""Queue of long-running jobs, which is stored in the database and resumed after the server was killed.

Each kind of job belongs to a lane with its own threads: questions do not wait for checks, and a check whose model hangs
does not stop other checks. The threads share each loaded model, which answers one request at a time. Collections are
changed in one thread, so that two uploads never write to a collection at the same time. In each lane, users take turns,
and the jobs of one user never take all places.

A job that was running when its server was killed is queued again, so its work must be resumable. A running job belongs
to one server as long as that server updates ``seen_at``; a server that has lost a job no longer changes it.

Browsers follow a job by server-sent events. When a job reports progress, one task reads the database once for all
followers of the job. Changes by other processes are read every few seconds by one query for all jobs.
"""

import asyncio
import contextlib
import json
import logging
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from climassay.errors import ClimassayError, InputError, LostDatabaseError, RecordsError
from climassay.records.database import Database, build_record
from climassay.web.failures import describe_outage

Lane = Literal["checks", "questions", "training", "corpus"]
"""Name of a queue; jobs in different lanes do not wait for each other."""
WORKERS: Mapping[Lane, int] = {"checks": 8, "questions": 8, "training": 1, "corpus": 1}
"""Maximum number of concurrently running jobs by lane. Most of them wait for a model."""
MAX_RUNNING_PER_USER = 3
"""Maximum number of a user's running jobs in a lane, so that two users whose jobs hang leave places for others."""
MIN_PAST_JOBS = 3
"""Minimum number of past jobs required to estimate the start of a queued job."""
State = Literal["queued", "running", "done", "failed", "stopped"]
ENDED_STATES: tuple[State, ...] = ("done", "failed", "stopped")
MIN_REPORT_INTERVAL = 0.2
"""Minimum time, in seconds, between two stored progress reports of a job and between two checks of its state."""
HEARTBEAT_SECONDS = 5.0
"""Time between two updates of the ``seen_at`` of a server's running jobs, in seconds."""
LEASE_SECONDS = 30.0
"""A running job is queued again if its ``seen_at`` was not updated for this number of seconds."""
CLOSE_SECONDS = 5.0
"""Maximum time, in seconds, that a server waits for running jobs when it shuts down."""
POLL_INTERVAL = 5.0
"""Time between two checks of the database for jobs and events of other processes, in seconds."""


_LOGGER = logging.getLogger("climassay.web")
metadata = sa.MetaData()

jobs = sa.Table(
    "web_jobs",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("lane", sa.String(16), nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("done", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("result", sa.Text),
    sa.Column("by", sa.String(40)),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("started_at", sa.Float),
    sa.Column("ended_at", sa.Float),
    sa.Column("owner", sa.String(16)),
    sa.Column("seen_at", sa.Float),
    sa.Index("web_jobs_by_state", "state", "made_at"),
    comment="Long work that people asked for in the browser.",
)
job_events = sa.Table(
    "web_job_events",
    metadata,
    sa.Column("job", sa.String(16), sa.ForeignKey("web_jobs.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("told_at", sa.Float, nullable=False),
    comment="What a job told while it ran, numbered from 1.",
)
COLLECT_SECONDS = 0.25
"""Time, in seconds, for which changes of jobs are collected before subscribers are notified."""
POLLS_PER_KEEP_ALIVE = 3
"""A silent connection gets a comment after this number of polls of the database (15 seconds), to keep it open."""
MAX_EVENTS_IN_MEMORY = 200
"""Maximum number of recent events held in memory for a job with subscribers."""


@dataclass(frozen=True, slots=True)
class Job:
    """Long-running work that was requested on a page, with its state and result."""

    id: str
    kind: str
    title: str
    state: State
    done: int
    total: int
    """Total number of steps, of which ``done`` are finished; 0 if unknown."""
    message: str
    error: str | None
    result: dict[str, Any] | None
    by: str | None
    """Name of the user who requested the job; None if no user did."""
    made_at: float
    ended_at: float | None
    payload: dict[str, Any]

    @property
    def has_ended(self) -> bool:
        """Whether the job is done, failed or stopped."""
        return self.state in ENDED_STATES


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Event reported by a running job."""

    number: int
    """Number of the event among the job's events, from 1 without gaps."""
    kind: str
    body: dict[str, Any]
    told_at: float
    """Time of the event in seconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Position of a queued job in its lane."""

    n_before: int
    """Number of queued jobs that will start before it."""
    n_own_running: int
    """Number of the user's running jobs if one of them has to end first; else 0."""
    seconds: float | None
    """Estimated seconds until the job starts; None if too few jobs of its kind have finished for an estimate."""


class Stopped(Exception):
    """Exception that ends the work on a job, because it was stopped or the server shuts down."""


class Interrupted(KeyboardInterrupt):
    """Exception that makes the records mark the run of a stopped job as interrupted instead of failed."""


@contextmanager
def stop_as_interruption() -> Iterator[None]:
    """Convert Stopped to Interrupted, in callbacks that report progress from within a recorded run.

    Raises:
        Interrupted: The job has to end.
    """
    try:
        yield
    except Stopped:
        raise Interrupted from None


class JobReport:
    """Handle by which the work on a job reports progress and learns whether it has to end."""

    def __init__(self, owner: "Jobs", job: str) -> None:
        self.job = job
        self._jobs = owner
        self._reported_at = self._checked_at = 0.0
        self._stopped = self._lost = False
        last = sa.select(sa.func.max(job_events.c.number)).where(job_events.c.job == job)
        self._number: int = owner.database.scalar(last) or 0

    @property
    def stopped(self) -> bool:
        """Whether the work has to end: the job was stopped, this server lost it, or the server shuts down."""
        if time.monotonic() - self._checked_at > MIN_REPORT_INTERVAL:
            self._read_state()
        return self._stopped or self._lost or self._jobs.closing

    @property
    def was_stopped_by_user(self) -> bool:
        """Whether a user stopped the job while this server owned it."""
        self._read_state()
        return self._stopped and not self._lost

    @property
    def lost(self) -> bool:
        """Whether this server no longer owns the job, because it was queued again."""
        self._read_state()
        return self._lost

    def _read_state(self) -> None:
        self._checked_at = time.monotonic()
        row = self._jobs.database.first(sa.select(jobs.c.state, jobs.c.owner).where(jobs.c.id == self.job))
        self._stopped, self._lost = row.state == "stopped", row.owner != self._jobs.owner

    def progress(self, done: int, total: int = 0, message: str = "") -> None:
        """Store the job's progress; calls within :data:`MIN_REPORT_INTERVAL` of the last report are ignored.

        ``message`` describes the current activity; ``total`` is 0 if unknown.

        Raises:
            Stopped: The work has to end.
        """
        if self.stopped:
            raise Stopped
        now = time.monotonic()
        if done < total and now - self._reported_at < MIN_REPORT_INTERVAL:
            return
        self._reported_at = now
        update = jobs.update().where(jobs.c.id == self.job, jobs.c.owner == self._jobs.owner)
        self._jobs.database.execute(update.values(done=done, total=total, message=message))
        self._jobs.notify(self.job)

    def event(self, kind: str, body: dict[str, Any]) -> None:
        """Store an event of the job and notify its subscribers.

        Raises:
            Stopped: The work has to end.
        """
        if self.stopped:
            raise Stopped
        row = {"kind": kind, "body": json.dumps(body, ensure_ascii=False), "told_at": time.time()}
        self._jobs.database.execute(job_events.insert().values(job=self.job, number=self._number + 1, **row))
        self._number += 1
        self._jobs.notify(self.job)


JobWork = Callable[[Any, dict[str, Any], JobReport], dict[str, Any] | None]
"""Function that runs a job. Its arguments are the server's state, the job's payload and its report; it returns the
result."""


class Jobs:
    """Persistent queue of a workspace's jobs, and the threads of this server that work on them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._work_by_kind: dict[str, tuple[Lane, JobWork]] = {}
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._claim_lock = threading.Lock()
        self._changed_condition = threading.Condition()
        self._listeners: list[Callable[[str], None]] = []
        self.owner = "s" + os.urandom(6).hex()
        self._active_ids: set[str] = set()
        """Ids of the jobs that this server's threads are working on."""
        self._outages: dict[str, str] = {}
        """Reasons why the end of a job could not be stored, by the job's id, until the job is taken up again."""
        database.create_tables(metadata)

    def register(self, kind: str, work: JobWork, lane: Lane) -> None:
        """Register the function that runs jobs of a kind, and the lane in which these jobs wait."""
        self._work_by_kind[kind] = (lane, work)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Register a function to be called with a job's id, from any thread, whenever the job changes."""
        self._listeners.append(listener)

    def start(self, context: Any) -> None:
        """Start the threads that run jobs; ``context`` is the first argument of every :data:`JobWork`."""
        threads = [
            threading.Thread(target=self._work_lane, args=(context, lane), name=f"jobs-{lane}", daemon=True)
            for lane, workers in WORKERS.items()
            for _ in range(workers)
        ]
        self._threads += [*threads, threading.Thread(target=self._run_heartbeat, name="jobs-life", daemon=True)]
        for thread in self._threads:
            thread.start()

    def requeue_foreign_jobs(self) -> None:
        """Queue again the jobs that other servers left running; must only be called if no other server is running."""
        self._queue_again(jobs.c.owner != self.owner)

    def _queue_again(self, *conditions: sa.ColumnElement[bool]) -> None:
        update = jobs.update().where(jobs.c.state == "running", sa.or_(jobs.c.owner.is_(None), *conditions))
        self.database.execute(update.values(state="queued", owner=None))

    def _run_heartbeat(self) -> None:
        """Until the server shuts down, update the ``seen_at`` of its jobs and queue abandoned jobs again.

        A job is abandoned if its server no longer updates ``seen_at``, or if its thread in this server lost the
        connection to the database.
        """
        while not self._stopping.is_set():
            try:
                self._send_heartbeat()
                is_abandoned = jobs.c.seen_at < time.time() - LEASE_SECONDS
                now, active_ids = time.time(), list(self._active_ids)
                is_orphaned = sa.and_(jobs.c.owner == self.owner, jobs.c.started_at < now, jobs.c.id.not_in(active_ids))
                self._queue_again(sa.and_(jobs.c.owner != self.owner, is_abandoned), is_orphaned)
            except RecordsError as error:
                _LOGGER.error("%s", error)
            except Exception:
                _LOGGER.exception("Jobs could not be queued again.")
            self._stopping.wait(HEARTBEAT_SECONDS)

    def close(self) -> None:
        """Tell running jobs to end and wait for them; unfinished jobs continue when the server starts again."""
        self._stopping.set()
        self.notify("")
        deadline = time.monotonic() + CLOSE_SECONDS
        for thread in self._threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))

    @property
    def closing(self) -> bool:
        """Whether the server is shutting down."""
        return self._stopping.is_set()

    def submit(self, kind: str, title: str, payload: dict[str, Any], by: str | None = None) -> str:
        """Queue a job and return its id; ``by`` is the name of the user who requested it."""
        lane, _ = self._work_by_kind[kind]
        job = "j" + os.urandom(6).hex()
        row = {"id": job, "kind": kind, "lane": lane, "title": title, "by": by, "made_at": time.time()}
        row |= {"payload": json.dumps(payload, ensure_ascii=False), "state": "queued", "done": 0, "total": 0}
        self.database.execute(jobs.insert().values(message="", **row))
        self.notify(job)
        return job

    def stop(self, job: str) -> None:
        """Stop a job; do nothing if it has ended."""
        update = jobs.update().where(jobs.c.id == job, jobs.c.state.in_(("queued", "running")))
        self.database.execute(update.values(state="stopped", ended_at=time.time()))
        self.notify(job)

    def remove_for(self, kind: str, subject: str) -> None:
        """Delete the ended jobs about a subject, with their events.

        Args:
            kind: Kind of the jobs, which is also the key of the subject's id in their payloads.
            subject: Id of the subject, for example of a check.
        """
        text = f'"{kind}": {json.dumps(subject)}'
        matches = sa.and_(
            jobs.c.kind == kind, jobs.c.state.in_(ENDED_STATES), jobs.c.payload.contains(text, autoescape=True)
        )
        ids = [job.id for job in self._read_jobs(sa.select(jobs).where(matches))]

        def delete_rows(connection: sa.Connection) -> None:
            connection.execute(job_events.delete().where(job_events.c.job.in_(ids)))
            connection.execute(jobs.delete().where(jobs.c.id.in_(ids)))

        self.database.write(delete_rows)

    def _read_jobs(self, query: sa.Select[Any]) -> "Sequence[Job]":
        return [
            build_record(
                Job,
                row,
                payload=json.loads(row.payload),
                result=None if row.result is None else json.loads(row.result),
                message=row.message if row.state in ENDED_STATES else self._outages.get(row.id, row.message),
            )
            for row in self.database.rows(query)
        ]

    def get(self, job: str) -> Job:
        """Return the job with the given id.

        Raises:
            InputError: The job does not exist.
        """
        for found_job in self.get_many([job]):
            return found_job
        raise InputError(f"There is no job {job!r}.")

    def get_many(self, ids: Collection[str]) -> "Sequence[Job]":
        """Return the jobs with these ids in any order; unknown ids are left out."""
        return self._read_jobs(sa.select(jobs).where(jobs.c.id.in_(ids)))

    def last_events(self, ids: Collection[str]) -> dict[str, int]:
        """Return the number of each job's last event by job id; jobs without events are left out."""
        query = sa.select(job_events.c.job, sa.func.max(job_events.c.number)).where(job_events.c.job.in_(ids))
        return {job: int(last_number) for job, last_number in self.database.rows(query.group_by(job_events.c.job))}

    def list_unfinished(self, kinds: Collection[str] = ()) -> "Sequence[Job]":
        """Return the jobs of these kinds (all kinds if empty) that have not ended, oldest first."""
        query = sa.select(jobs).where(jobs.c.state.not_in(ENDED_STATES)).order_by(jobs.c.made_at)
        return self._read_jobs(query.where(jobs.c.kind.in_(kinds)) if kinds else query)

    def list(self, kind: str | None = None, limit: int = 50) -> list[Job]:
        """Return at most ``limit`` jobs of a kind (None for all kinds), newest first."""
        query = sa.select(jobs).order_by(jobs.c.made_at.desc(), jobs.c.id).limit(limit)
        if kind is not None:
            query = query.where(jobs.c.kind == kind)
        return [*self._read_jobs(query)]

    def events(self, job: str, after: int = 0, limit: int = 500) -> "Sequence[JobEvent]":
        """Return at most ``limit`` events of a job with numbers above ``after``, in order."""
        query = sa.select(job_events).where(job_events.c.job == job, job_events.c.number > after)
        rows = self.database.rows(query.order_by(job_events.c.number).limit(limit))
        return [build_record(JobEvent, row, body=json.loads(row.body)) for row in rows]

    def wait_for_change(self, seconds: float) -> None:
        """Wait until any job changes, but at most the given number of seconds."""
        with self._changed_condition:
            self._changed_condition.wait(seconds)

    def _send_heartbeat(self) -> None:
        is_own = sa.and_(jobs.c.state == "running", jobs.c.owner == self.owner)
        self.database.execute(jobs.update().where(is_own).values(seen_at=time.time()), durable=False)

    def _work_lane(self, context: Any, lane: Lane) -> None:
        while not self._stopping.is_set():
            try:
                job = self._claim_next(lane)
                if job is None:
                    with self._changed_condition:
                        if not self._stopping.is_set():
                            self._changed_condition.wait(POLL_INTERVAL)
                else:
                    try:
                        self._run_job(context, job)
                    except RecordsError as error:
                        self._outages[job.id] = describe_outage(error) or str(error)
                        raise
                    finally:
                        self._active_ids.discard(job.id)
            except RecordsError as error:
                # The thread must survive a temporary loss of the database.
                _LOGGER.error("%s", error)
                self._stopping.wait(POLL_INTERVAL)
            except Exception:
                _LOGGER.exception("The state of a job could not be stored.")
                self._stopping.wait(POLL_INTERVAL)

    def list_queued(self, lane: Lane) -> "Sequence[Job]":
        """Return the queued jobs of a lane in the order in which they will start.

        Users take turns: the next job is the oldest job of the user with the fewest running jobs. If several users have
        equally few, the user whose last job started earliest comes first. Jobs of a user with
        :data:`MAX_RUNNING_PER_USER` running jobs wait until one of these has ended.
        """
        return self._read_queue(lane)[0]

    def _read_queue(self, lane: Lane) -> "tuple[Sequence[Job], Mapping[str | None, int]]":
        """Return the queued jobs of a lane in order, and the number of running jobs by user."""
        in_lane = sa.and_(jobs.c.lane == lane, jobs.c.kind.in_(list(self._work_by_kind)))
        queued_jobs = self._read_jobs(
            sa.select(jobs).where(in_lane, jobs.c.state == "queued").order_by(jobs.c.made_at, jobs.c.id)
        )
        if not queued_jobs:
            return (), {}
        is_running = jobs.c.state == "running"
        has_started_since = sa.or_(is_running, jobs.c.started_at >= queued_jobs[0].made_at)
        columns = sa.func.sum(sa.case((is_running, 1), else_=0)), sa.func.max(jobs.c.started_at)
        rows = self.database.rows(sa.select(jobs.c.by, *columns).where(in_lane, has_started_since).group_by(jobs.c.by))
        activity_by_user = {
            by: (int(n_running), float(last_started_at or 0.0)) for by, n_running, last_started_at in rows
        }
        n_queued_before: Counter[str | None] = Counter()
        keys = {}
        for job in queued_jobs:
            n_running, last_started_at = activity_by_user.get(job.by, (0, 0.0))
            is_first = n_queued_before[job.by] == 0
            keys[job.id] = (n_running + n_queued_before[job.by], last_started_at if is_first else math.inf, job.made_at)
            n_queued_before[job.by] += 1
        running_by_user = {by: n_running for by, (n_running, _) in activity_by_user.items()}
        return sorted(queued_jobs, key=lambda job: keys[job.id]), running_by_user

    def find_queue_position(self, job: Job) -> QueuePosition | None:
        """Return the position of a job in its lane, with an estimate of its start; None if the job is not queued."""
        if job.state != "queued":
            return None
        lane, _ = self._work_by_kind[job.kind]
        queued_jobs, running_by_user = self._read_queue(lane)
        n_before = next((index for index, queued_job in enumerate(queued_jobs) if queued_job.id == job.id), None)
        if n_before is None:
            return None
        is_past = sa.and_(jobs.c.kind == job.kind, jobs.c.state == "done", jobs.c.started_at.is_not(None))
        query = sa.select(jobs.c.ended_at - jobs.c.started_at).where(is_past).order_by(jobs.c.made_at.desc()).limit(20)
        durations = [float(row[0]) for row in self.database.rows(query)]
        n_own_running = running_by_user.get(job.by, 0)
        if n_own_running < MAX_RUNNING_PER_USER:
            n_own_running = 0
        n_own_before = sum(queued_job.by == job.by for queued_job in queued_jobs[:n_before])
        n_rounds = max(-(-(n_before + 1) // WORKERS[lane]), -(-(n_own_before + 1) // MAX_RUNNING_PER_USER))
        seconds = median(durations) * n_rounds if len(durations) >= MIN_PAST_JOBS else None
        return QueuePosition(n_before, n_own_running, seconds)

    def _claim_next(self, lane: Lane) -> Job | None:
        # Only one thread claims at a time, so that none removes an id from _active that another has just added.
        with self._claim_lock:
            queued_jobs, running_by_user = self._read_queue(lane)
            for job in queued_jobs:
                if running_by_user.get(job.by, 0) >= MAX_RUNNING_PER_USER:
                    continue
                self._active_ids.add(job.id)
                now = time.time()
                update = jobs.update().where(jobs.c.id == job.id, jobs.c.state == "queued")
                claim = update.values(state="running", owner=self.owner, seen_at=now, started_at=now)
                if self.database.execute(claim):
                    self._outages.pop(job.id, None)
                    self.notify(job.id)
                    return job
                self._active_ids.discard(job.id)
        return None

    def _run_job(self, context: Any, job: Job) -> None:
        _, job_work = self._work_by_kind[job.kind]
        report = JobReport(self, job.id)
        try:
            result = job_work(context, job.payload, report)
        except Stopped:
            self._end_job(job.id, "queued" if self._stopping.is_set() else "stopped")
        except LostDatabaseError:
            self._end_job(job.id, "queued")  # The next attempt reuses all stored answers.
        except ClimassayError as error:
            self._end_job(job.id, "failed", error=str(error))
        except Exception as error:
            _LOGGER.exception("A job failed.")
            self._end_job(job.id, "failed", error=f"Something unexpected went wrong ({type(error).__name__}).")
        else:
            self._end_job(job.id, "done", result=result)

    def _end_job(
        self, job: str, state: State, *, error: str | None = None, result: dict[str, Any] | None = None
    ) -> None:
        values: dict[str, Any] = {"state": state, "error": error}
        if state in ENDED_STATES:
            values["ended_at"] = time.time()
        if result is not None:
            values["result"] = json.dumps(result, ensure_ascii=False)
        update = jobs.update().where(jobs.c.id == job, jobs.c.state == "running", jobs.c.owner == self.owner)
        self.database.execute(update.values(values))
        self.notify(job)

    def notify(self, job: str) -> None:
        """Wake the threads that wait for changes, and call the listeners; ``job`` is empty if the server shuts down."""
        with self._changed_condition:
            self._changed_condition.notify_all()
        for listener in self._listeners:
            listener(job)


@dataclass(eq=False)
class _FollowedJob:
    """State, recent events and subscribers of a job."""

    job: Job
    last_number: int
    """Number of the last event that was read from the database."""
    events: deque[JobEvent] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS_IN_MEMORY))
    subscribers: set[asyncio.Event] = field(default_factory=set)
    n_polls: int = 0

    @property
    def last_evicted(self) -> int:
        """Number of the last event that is no longer in memory."""
        return self.events[0].number - 1 if self.events else self.last_number


class JobStreams:
    """Streams of server-sent events about jobs; the database is read once for all subscribers of a job."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._followed_jobs: dict[str, _FollowedJob] = {}
        self._changed: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._change_event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        jobs.listen(self._on_change)

    async def follow(self, job: str, after: int) -> AsyncIterator[str]:
        """Yield the job's events with numbers above ``after`` and its progress as server-sent events, until it ends."""
        followed_job = await self._follow_job(job)
        wake_event = asyncio.Event()
        followed_job.subscribers.add(wake_event)
        last_progress, n_polls = "", followed_job.n_polls
        try:
            while not self._jobs.closing:
                wake_event.clear()
                # The state is read before the events, so that no event of an ended job is missed.
                current_job, recent_events = (
                    followed_job.job,
                    [event for event in followed_job.events if event.number > after],
                )
                while after < followed_job.last_evicted:
                    stored_events = await run_in_threadpool(self._jobs.events, job, after)
                    for event in stored_events:
                        after = event.number
                        yield _event_lines(event)
                    if not stored_events:
                        break
                for event in recent_events:
                    if event.number > after:
                        after = event.number
                        yield _event_lines(event)
                progress = json.dumps(
                    {
                        "done": current_job.done,
                        "total": current_job.total,
                        "message": current_job.message,
                        "state": current_job.state,
                    }
                )
                if progress != last_progress:
                    last_progress, n_polls = progress, followed_job.n_polls
                    yield f"event: progress\ndata: {progress}\n\n"
                if current_job.has_ended:
                    outcome = {"state": current_job.state, "error": current_job.error}
                    yield f"event: end\ndata: {json.dumps(outcome)}\n\n"
                    return
                if followed_job.n_polls - n_polls >= POLLS_PER_KEEP_ALIVE:
                    n_polls = followed_job.n_polls
                    yield ": still here\n\n"
                await wake_event.wait()
        finally:
            followed_job.subscribers.discard(wake_event)
            if not followed_job.subscribers and self._followed_jobs.get(job) is followed_job:
                del self._followed_jobs[job]

    async def _follow_job(self, job: str) -> _FollowedJob:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._followed_jobs, self._change_event, self._task = loop, {}, asyncio.Event(), None
        if job not in self._followed_jobs:
            current_job = await run_in_threadpool(self._jobs.get, job)
            last_numbers = await run_in_threadpool(self._jobs.last_events, [job])
            self._followed_jobs.setdefault(job, _FollowedJob(current_job, last_numbers.get(job, 0)))
            # Events since the query are read by the first poll.
            self._mark_changed(job)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._poll_changes())
        return self._followed_jobs[job]

    def _on_change(self, job: str) -> None:
        """Tell the event loop that a job has changed (empty: the server shuts down); may be called in any thread."""
        if self._loop is not None and (job in self._followed_jobs or not job):
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                self._loop.call_soon_threadsafe(self._mark_changed, job)

    def _mark_changed(self, job: str) -> None:
        self._changed.add(job)
        self._change_event.set()

    async def _poll_changes(self) -> None:
        """Poll the database for changes of jobs and notify the subscribers, while any job has subscribers."""
        loop = asyncio.get_running_loop()
        next_poll = loop.time() + POLL_INTERVAL
        while self._followed_jobs and not self._jobs.closing:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._change_event.wait(), max(0.0, next_poll - loop.time()))
                await asyncio.sleep(COLLECT_SECONDS)
            self._change_event.clear()
            changed_ids, self._changed, is_poll_due = self._changed, set(), loop.time() >= next_poll
            with contextlib.suppress(RecordsError):  # The database may be away for a while.
                await self._read_changes(
                    {
                        job: followed_job
                        for job, followed_job in self._followed_jobs.items()
                        if is_poll_due or job in changed_ids
                    }
                )
            if is_poll_due:
                next_poll = loop.time() + POLL_INTERVAL
                for followed_job in self._followed_jobs.values():
                    followed_job.n_polls += 1
                self._wake(
                    [
                        followed_job
                        for followed_job in self._followed_jobs.values()
                        if followed_job.n_polls % POLLS_PER_KEEP_ALIVE == 0
                    ]
                )
        self._wake(self._followed_jobs.values())

    async def _read_changes(self, followed_jobs: dict[str, _FollowedJob]) -> None:
        current_jobs = await run_in_threadpool(self._jobs.get_many, list(followed_jobs))
        last_numbers = await run_in_threadpool(self._jobs.last_events, list(followed_jobs))
        for job in current_jobs:
            followed_job = followed_jobs[job.id]
            if job == followed_job.job and last_numbers.get(job.id, 0) <= followed_job.last_number:
                continue
            while followed_job.last_number < last_numbers.get(job.id, 0):
                events = await run_in_threadpool(self._jobs.events, job.id, followed_job.last_number)
                followed_job.events.extend(events)
                followed_job.last_number = events[-1].number
            followed_job.job = job
            self._wake([followed_job])

    @staticmethod
    def _wake(followed_jobs: Collection[_FollowedJob]) -> None:
        for followed_job in followed_jobs:
            for wake_event in followed_job.subscribers:
                wake_event.set()


def _event_lines(event: JobEvent) -> str:
    return f"id: {event.number}\nevent: {event.kind}\ndata: {json.dumps(event.body)}\n\n"
