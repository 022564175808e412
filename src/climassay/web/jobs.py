"""Long-running work: stored in the database, done in order, and resumed after the server was killed.

Each kind of work has a lane with threads of its own: a question does not wait for checks, and a check whose model hangs
does not stop the others. The threads share each loaded model, which answers one request at a time. Collections are
changed in one thread, so that two uploads never write one collection at once. In each lane people take turns.

A job that was running when its server was killed is queued again, so its work must be resumable. A running job belongs
to one server as long as that server updates ``seen_at``; a server that has lost a job no longer changes it.

Clients follow a job by server-sent events. A job that reports something wakes one task, which reads the database once
for all followers of that job; changes by other processes are read every few seconds by one query for all jobs.
"""

import asyncio
import contextlib
import json
import math
import os
import threading
import time
import traceback
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

Lane = Literal["checks", "questions", "training", "corpus"]
"""Kinds of work that do not wait for each other."""
WORKERS: Mapping[Lane, int] = {"checks": 4, "questions": 4, "training": 1, "corpus": 1}
"""Number of jobs of each lane that run at the same time."""
MIN_PAST_JOBS = 3
"""Minimum number of past jobs to estimate when a waiting one starts."""
State = Literal["queued", "running", "done", "failed", "stopped"]
ENDED: tuple[State, ...] = ("done", "failed", "stopped")
QUIET_SECONDS = 0.2
"""Minimum number of seconds between two stored reports of progress."""
HEARTBEAT_SECONDS = 5.0
"""Seconds between two updates of ``seen_at``."""
LEASE_SECONDS = 30.0
"""Seconds without an update of ``seen_at`` after which a job is queued again."""
CLOSE_SECONDS = 5.0
"""Maximum number of seconds for which a server that ends waits for its jobs."""
WAKE_SECONDS = 5.0
"""Maximum number of seconds until a lane looks for jobs that other processes queued."""


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
TOGETHER_SECONDS = 0.25
"""Seconds for which news are collected before they are sent."""
BEATS = 3
"""Number of waits without news after which a comment keeps the connection open: every 15 seconds."""
KEPT_EVENTS = 200
"""Number of events of a followed job that are kept in memory."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job."""

    id: str
    kind: str
    title: str
    state: State
    done: int
    total: int
    """Number of steps; 0 if unknown."""
    message: str
    error: str | None
    result: dict[str, Any] | None
    by: str | None
    """Name of the person who requested it; None if nobody did."""
    made_at: float
    ended_at: float | None
    payload: dict[str, Any]

    @property
    def ended(self) -> bool:
        """Whether the job has ended."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event that a job reported."""

    number: int
    """Number of the event, from 1 without gaps."""
    kind: str
    body: dict[str, Any]
    told_at: float
    """Seconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Place of a queued job in its lane."""

    n_before: int
    """Number of queued jobs that are served before it."""
    seconds: float | None
    """Estimated seconds until it starts; None if too few jobs of its kind are known."""


class Stopped(Exception):
    """The job was stopped, or the server shuts down."""


class Interrupted(KeyboardInterrupt):
    """Exception that ends the run of a job as interrupted, not as failed."""


@contextmanager
def interrupting() -> Iterator[None]:
    """Turn Stopped into Interrupted, for reports from within a run of the records.

    Raises:
        Interrupted: The job should end.
    """
    try:
        yield
    except Stopped:
        raise Interrupted from None


class JobReport:
    """Reporter of the progress of a job; also says whether the job must end."""

    def __init__(self, owner: "Jobs", job: str) -> None:
        self.job = job
        self._jobs = owner
        self._reported_at = self._checked_at = 0.0
        self._stopped = self._lost = False
        last = sa.select(sa.func.max(job_events.c.number)).where(job_events.c.job == job)
        self._number: int = owner.database.scalar(last) or 0

    @property
    def stopped(self) -> bool:
        """Whether the work should end: the job was stopped or lost, or the server shuts down."""
        if time.monotonic() - self._checked_at > QUIET_SECONDS:
            self._read_state()
        return self._stopped or self._lost or self._jobs.closing

    @property
    def stopped_by_somebody(self) -> bool:
        """Whether a person stopped the job, and this server still owns it."""
        self._read_state()
        return self._stopped and not self._lost

    @property
    def lost(self) -> bool:
        """Whether another server now does the job."""
        self._read_state()
        return self._lost

    def _read_state(self) -> None:
        self._checked_at = time.monotonic()
        row = self._jobs.database.first(sa.select(jobs.c.state, jobs.c.owner).where(jobs.c.id == self.job))
        self._stopped, self._lost = row.state == "stopped", row.owner != self._jobs.owner

    def progress(self, done: int, total: int = 0, message: str = "") -> None:
        """Store the progress of the job, at most every :data:`QUIET_SECONDS`.

        Raises:
            Stopped: The work should end.
        """
        if self.stopped:
            raise Stopped
        now = time.monotonic()
        if done < total and now - self._reported_at < QUIET_SECONDS:
            return
        self._reported_at = now
        update = jobs.update().where(jobs.c.id == self.job, jobs.c.owner == self._jobs.owner)
        self._jobs.database.execute(update.values(done=done, total=total, message=message))
        self._jobs.announce(self.job)

    def event(self, kind: str, body: dict[str, Any]) -> None:
        """Store an event and send it to all followers.

        Raises:
            Stopped: The work should end.
        """
        if self.stopped:
            raise Stopped
        row = {"kind": kind, "body": json.dumps(body, ensure_ascii=False), "told_at": time.time()}
        self._jobs.database.execute(job_events.insert().values(job=self.job, number=self._number + 1, **row))
        self._number += 1
        self._jobs.announce(self.job)


JobWork = Callable[[Any, dict[str, Any], JobReport], dict[str, Any] | None]
"""Function that does the jobs of a kind, given the state of the server, the payload, and the report."""


class Jobs:
    """The jobs of one workspace."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._works: dict[str, tuple[Lane, JobWork]] = {}
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._taking = threading.Lock()
        self._news = threading.Condition()
        self._listeners: list[Callable[[str], None]] = []
        self.owner = "s" + os.urandom(6).hex()
        self._active: set[str] = set()
        """Ids of the jobs that this server's threads are working on."""
        database.create_tables(metadata)

    def register(self, kind: str, work: JobWork, lane: Lane) -> None:
        """Set the function that does the jobs of a kind, and their lane."""
        self._works[kind] = (lane, work)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Register a function that is called in any thread with the id of each job that has news."""
        self._listeners.append(listener)

    def start(self, context: Any) -> None:
        """Start the threads; ``context`` is passed to all work."""
        threads = [
            threading.Thread(target=self._work_lane, args=(context, lane), name=f"jobs-{lane}", daemon=True)
            for lane, workers in WORKERS.items()
            for _ in range(workers)
        ]
        self._threads += [*threads, threading.Thread(target=self._live, name="jobs-life", daemon=True)]
        for thread in self._threads:
            thread.start()

    def take_over(self) -> None:
        """Queue the running jobs of all other servers again, for a server that is known to be the only one."""
        self._queue_again(jobs.c.owner != self.owner)

    def _queue_again(self, *conditions: sa.ColumnElement[bool]) -> None:
        update = jobs.update().where(jobs.c.state == "running", sa.or_(jobs.c.owner.is_(None), *conditions))
        self.database.execute(update.values(state="queued", owner=None))

    def _live(self) -> None:
        """Update ``seen_at`` of own jobs, and queue jobs again on which nobody works.

        These are jobs of servers that stopped updating ``seen_at``, and own jobs that a thread left because it lost the
        database.
        """
        while not self._stopping.is_set():
            try:
                self._give_sign()
                silent = jobs.c.seen_at < time.time() - LEASE_SECONDS
                now, active = time.time(), list(self._active)
                left = sa.and_(jobs.c.owner == self.owner, jobs.c.started_at < now, jobs.c.id.not_in(active))
                self._queue_again(sa.and_(jobs.c.owner != self.owner, silent), left)
            except Exception:
                traceback.print_exc()
            self._stopping.wait(HEARTBEAT_SECONDS)

    def close(self) -> None:
        """Ask running jobs to end and wait up to 5 seconds for them; unfinished jobs resume at the next start."""
        self._stopping.set()
        self.announce("")
        latest = time.monotonic() + CLOSE_SECONDS
        for thread in self._threads:
            thread.join(timeout=max(0.0, latest - time.monotonic()))

    @property
    def closing(self) -> bool:
        """Whether the server shuts down."""
        return self._stopping.is_set()

    def submit(self, kind: str, title: str, payload: dict[str, Any], by: str | None = None) -> str:
        """Queue a job and return its id."""
        lane, _ = self._works[kind]
        job = "j" + os.urandom(6).hex()
        row = {"id": job, "kind": kind, "lane": lane, "title": title, "by": by, "made_at": time.time()}
        row |= {"payload": json.dumps(payload, ensure_ascii=False), "state": "queued", "done": 0, "total": 0}
        self.database.execute(jobs.insert().values(message="", **row))
        self.announce(job)
        return job

    def stop(self, job: str) -> None:
        """Stop a job; do nothing if it has ended."""
        update = jobs.update().where(jobs.c.id == job, jobs.c.state.in_(("queued", "running")))
        self.database.execute(update.values(state="stopped", ended_at=time.time()))
        self.announce(job)

    def remove_of(self, kind: str, subject: str) -> None:
        """Delete the ended jobs of a kind, and their events, whose payload names a subject under the kind.

        Args:
            kind: Kind of the jobs, which is also the name of the field of the payload.
            subject: Value of that field, such as the id of a check.
        """
        text = f'"{kind}": {json.dumps(subject)}'
        matches = sa.and_(jobs.c.kind == kind, jobs.c.state.in_(ENDED), jobs.c.payload.contains(text, autoescape=True))
        ids = [job.id for job in self._read(sa.select(jobs).where(matches))]

        def delete_rows(connection: sa.Connection) -> None:
            connection.execute(job_events.delete().where(job_events.c.job.in_(ids)))
            connection.execute(jobs.delete().where(jobs.c.id.in_(ids)))

        self.database.write(delete_rows)

    def _read(self, query: sa.Select[Any]) -> "Sequence[Job]":
        return [
            build_record(
                Job, row, payload=json.loads(row.payload), result=None if row.result is None else json.loads(row.result)
            )
            for row in self.database.rows(query)
        ]

    def get(self, job: str) -> Job:
        """Return a job.

        Raises:
            InputError: No job has that id.
        """
        for result in self.many([job]):
            return result
        raise InputError(f"There is no job {job!r}.")

    def many(self, ids: Collection[str]) -> "Sequence[Job]":
        """Return the jobs with some ids; unknown ids are left out."""
        return self._read(sa.select(jobs).where(jobs.c.id.in_(ids)))

    def last_events(self, ids: Collection[str]) -> dict[str, int]:
        """Return the number of the last event by job, for jobs with events."""
        query = sa.select(job_events.c.job, sa.func.max(job_events.c.number)).where(job_events.c.job.in_(ids))
        return {job: int(last) for job, last in self.database.rows(query.group_by(job_events.c.job))}

    def unended(self, kinds: Collection[str] = ()) -> "Sequence[Job]":
        """Return the jobs that have not ended, oldest first; only those of some kinds if any are given."""
        query = sa.select(jobs).where(jobs.c.state.not_in(ENDED)).order_by(jobs.c.made_at)
        return self._read(query.where(jobs.c.kind.in_(kinds)) if kinds else query)

    def list(self, kind: str | None = None, limit: int = 50) -> list[Job]:
        """Return the newest jobs, newest first."""
        query = sa.select(jobs).order_by(jobs.c.made_at.desc(), jobs.c.id).limit(limit)
        if kind is not None:
            query = query.where(jobs.c.kind == kind)
        return [*self._read(query)]

    def events(self, job: str, after: int = 0, limit: int = 500) -> "Sequence[JobEvent]":
        """Return the events of a job after a number, in order."""
        query = sa.select(job_events).where(job_events.c.job == job, job_events.c.number > after)
        rows = self.database.rows(query.order_by(job_events.c.number).limit(limit))
        return [build_record(JobEvent, row, body=json.loads(row.body)) for row in rows]

    def wait_for_news(self, seconds: float) -> None:
        """Wait until a job has news, up to a number of seconds."""
        with self._news:
            self._news.wait(seconds)

    def _give_sign(self) -> None:
        is_own = sa.and_(jobs.c.state == "running", jobs.c.owner == self.owner)
        self.database.execute(jobs.update().where(is_own).values(seen_at=time.time()), durable=False)

    def _work_lane(self, context: Any, lane: Lane) -> None:
        while not self._stopping.is_set():
            try:
                job = self._take(lane)
                if job is None:
                    with self._news:
                        if not self._stopping.is_set():
                            self._news.wait(WAKE_SECONDS)
                else:
                    try:
                        self._do(context, job)
                    finally:
                        self._active.discard(job.id)
            except Exception:
                # The database may be away for a while; a lane must outlive that.
                traceback.print_exc()
                self._stopping.wait(WAKE_SECONDS)

    def queued(self, lane: Lane) -> "Sequence[Job]":
        """Return the queued jobs of a lane in the order in which they are served.

        People take turns: the next job is the oldest one of whoever has the fewest jobs running, and among these of
        whoever was served the longest time ago.
        """
        in_lane = sa.and_(jobs.c.lane == lane, jobs.c.kind.in_(list(self._works)))
        queued = self._read(
            sa.select(jobs).where(in_lane, jobs.c.state == "queued").order_by(jobs.c.made_at, jobs.c.id)
        )
        if len(queued) < 2:
            return queued
        is_running = jobs.c.state == "running"
        served_since = sa.or_(is_running, jobs.c.started_at >= queued[0].made_at)
        counts = sa.func.sum(sa.case((is_running, 1), else_=0)), sa.func.max(jobs.c.started_at)
        rows = self.database.rows(sa.select(jobs.c.by, *counts).where(in_lane, served_since).group_by(jobs.c.by))
        served = {by: (int(running), float(latest or 0.0)) for by, running, latest in rows}
        turns: Counter[str | None] = Counter()
        keys = {}
        for job in queued:
            running, latest = served.get(job.by, (0, 0.0))
            first = turns[job.by] == 0
            keys[job.id] = (running + turns[job.by], latest if first else math.inf, job.made_at)
            turns[job.by] += 1
        return sorted(queued, key=lambda job: keys[job.id])

    def turn(self, job: Job) -> Turn | None:
        """Return the place of a queued job in its lane, and an estimate of when it starts; None if it is not queued."""
        if job.state != "queued":
            return None
        lane, _ = self._works[job.kind]
        ids = [waiting_job.id for waiting_job in self.queued(lane)]
        if job.id not in ids:
            return None
        is_past = sa.and_(jobs.c.kind == job.kind, jobs.c.state == "done", jobs.c.started_at.is_not(None))
        query = sa.select(jobs.c.ended_at - jobs.c.started_at).where(is_past).order_by(jobs.c.made_at.desc()).limit(20)
        past = [float(row[0]) for row in self.database.rows(query)]
        n_before = ids.index(job.id)
        rounds = -(-(n_before + 1) // WORKERS[lane])
        return Turn(n_before, median(past) * rounds if len(past) >= MIN_PAST_JOBS else None)

    def _take(self, lane: Lane) -> Job | None:
        # One worker after the other, so that none clears the mark of a job that another one has just taken.
        with self._taking:
            for job in self.queued(lane):
                self._active.add(job.id)
                now = time.time()
                update = jobs.update().where(jobs.c.id == job.id, jobs.c.state == "queued")
                claim = update.values(state="running", owner=self.owner, seen_at=now, started_at=now)
                if self.database.execute(claim):
                    self.announce(job.id)
                    return job
                self._active.discard(job.id)
        return None

    def _do(self, context: Any, job: Job) -> None:
        _, work = self._works[job.kind]
        report = JobReport(self, job.id)
        try:
            result = work(context, job.payload, report)
        except Stopped:
            self._end(job.id, "queued" if self._stopping.is_set() else "stopped")
        except LostDatabaseError:
            self._end(job.id, "queued")  # What is stored is not done again.
        except ClimassayError as error:
            self._end(job.id, "failed", error=str(error))
        except Exception as error:
            traceback.print_exc()
            self._end(job.id, "failed", error=f"Something unexpected went wrong ({type(error).__name__}).")
        else:
            self._end(job.id, "done", result=result)

    def _end(self, job: str, state: State, *, error: str | None = None, result: dict[str, Any] | None = None) -> None:
        values: dict[str, Any] = {"state": state, "error": error}
        if state in ENDED:
            values["ended_at"] = time.time()
        if result is not None:
            values["result"] = json.dumps(result, ensure_ascii=False)
        is_own = jobs.update().where(jobs.c.id == job, jobs.c.state == "running", jobs.c.owner == self.owner)
        self.database.execute(is_own.values(values))
        self.announce(job)

    def announce(self, job: str) -> None:
        """Wake all threads that wait for news; ``job`` is empty if the server shuts down."""
        with self._news:
            self._news.notify_all()
        for listener in self._listeners:
            listener(job)


@dataclass(eq=False)
class _FollowedJob:
    """A followed job."""

    job: Job
    last: int
    """Number of the last event read."""
    events: deque[JobEvent] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    followers: set[asyncio.Event] = field(default_factory=set)
    beats: int = 0

    @property
    def before(self) -> int:
        """Number after which all events are in memory."""
        return self.events[0].number - 1 if self.events else self.last


class JobStreams:
    """Server-sent events of the jobs of one server."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._topics: dict[str, _FollowedJob] = {}
        self._changed: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        jobs.listen(self._hear)

    async def follow(self, job: str, after: int) -> AsyncIterator[str]:
        """Yield the events of a job after a number, and its progress, until it ends."""
        topic = await self._topic(job)
        wake = asyncio.Event()
        topic.followers.add(wake)
        last_progress, beats = "", topic.beats
        try:
            while not self._jobs.closing:
                wake.clear()
                # The state first: whatever the job told before it ended is then seen below.
                current, news = topic.job, [event for event in topic.events if event.number > after]
                while after < topic.before:
                    earlier = await run_in_threadpool(self._jobs.events, job, after)
                    for event in earlier:
                        after = event.number
                        yield _event_lines(event)
                    if not earlier:
                        break
                for event in news:
                    if event.number > after:
                        after = event.number
                        yield _event_lines(event)
                state = json.dumps(
                    {"done": current.done, "total": current.total, "message": current.message, "state": current.state}
                )
                if state != last_progress:
                    last_progress, beats = state, topic.beats
                    yield f"event: progress\ndata: {state}\n\n"
                if current.ended:
                    yield f"event: end\ndata: {json.dumps({'state': current.state, 'error': current.error})}\n\n"
                    return
                if topic.beats - beats >= BEATS:
                    beats = topic.beats
                    yield ": still here\n\n"
                await wake.wait()
        finally:
            topic.followers.discard(wake)
            if not topic.followers and self._topics.get(job) is topic:
                del self._topics[job]

    async def _topic(self, job: str) -> _FollowedJob:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._topics, self._news, self._task = loop, {}, asyncio.Event(), None
        if job not in self._topics:
            read = await run_in_threadpool(self._jobs.get, job)
            last = await run_in_threadpool(self._jobs.last_events, [job])
            self._topics.setdefault(job, _FollowedJob(read, last.get(job, 0)))
            # What was told meanwhile is read by the first look.
            self._note(job)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._watch())
        return self._topics[job]

    def _hear(self, job: str) -> None:
        """Record that a job has news; called in any thread."""
        if self._loop is not None and (job in self._topics or not job):
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                self._loop.call_soon_threadsafe(self._note, job)

    def _note(self, job: str) -> None:
        self._changed.add(job)
        self._news.set()

    async def _watch(self) -> None:
        """Read news for all followers until nobody follows a job."""
        loop = asyncio.get_running_loop()
        look = loop.time() + WAKE_SECONDS
        while self._topics and not self._jobs.closing:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._news.wait(), max(0.0, look - loop.time()))
                await asyncio.sleep(TOGETHER_SECONDS)
            self._news.clear()
            changed, self._changed, everything = self._changed, set(), loop.time() >= look
            with contextlib.suppress(RecordsError):  # The database may be away for a while.
                await self._read({job: topic for job, topic in self._topics.items() if everything or job in changed})
            if everything:
                look = loop.time() + WAKE_SECONDS
                for topic in self._topics.values():
                    topic.beats += 1
                self._wake([topic for topic in self._topics.values() if topic.beats % BEATS == 0])
        self._wake(self._topics.values())

    async def _read(self, topics: dict[str, _FollowedJob]) -> None:
        result = await run_in_threadpool(self._jobs.many, list(topics))
        last = await run_in_threadpool(self._jobs.last_events, list(topics))
        for job in result:
            topic = topics[job.id]
            if job == topic.job and last.get(job.id, 0) <= topic.last:
                continue
            while topic.last < last.get(job.id, 0):
                events = await run_in_threadpool(self._jobs.events, job.id, topic.last)
                topic.events.extend(events)
                topic.last = events[-1].number
            topic.job = job
            self._wake([topic])

    @staticmethod
    def _wake(topics: Collection[_FollowedJob]) -> None:
        for topic in topics:
            for wake in topic.followers:
                wake.set()


def _event_lines(event: JobEvent) -> str:
    return f"id: {event.number}\nevent: {event.kind}\ndata: {json.dumps(event.body)}\n\n"
