"""Long work behind the pages: kept in the database, done in order, begun again after a kill.

A job is a row before anybody hears of it. One thread per lane does the work, so that two debates never load two models
and two uploads never write one collection at once. A server that was killed finds its jobs again when it starts: they
are queued once more, which is why work has to be resumable. A job that runs belongs to the server that does it: as long
as that gives signs of life, no other one takes the job, and who has lost it changes nothing about it any more.

Nobody polls for what jobs tell, which goes as server-sent events to any number of listeners: a job that tells something
wakes one task, which reads the database once for all who listen to that job. What other processes change is seen by one
query for all jobs together, every few seconds.
"""

import asyncio
import contextlib
import json
import os
import threading
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from climassay.errors import ClimassayError, InputError, RecordsError
from climassay.records.database import Database, record_of

Lane = Literal["models", "corpus"]
"""What must not be done twice at once: asking models, and changing collections."""
State = Literal["queued", "running", "done", "failed", "stopped"]
ENDED: tuple[State, ...] = ("done", "failed", "stopped")
QUIET_SECONDS = 0.2
"""Progress is written at most so often."""
HEARTBEAT_SECONDS = 5.0
"""How often a server says that it is doing its jobs."""
LEASE_SECONDS = 30.0
"""A job whose server has given no sign of life for so long may be queued again."""
WAKE_SECONDS = 5.0
"""A lane looks for work so often even if nobody wakes it."""


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
    sa.Column("told_at", sa.Float),
    comment="What a job told while it ran, numbered from 1.",
)
TOGETHER_SECONDS = 0.25
"""What is reported within so short a time goes out together."""
BEATS = 3
"""A comment after so many waits without news keeps the connection open through proxies: every 15 seconds."""
KEPT_EVENTS = 200
"""The last events of a job, which need not be read again for those who follow it closely."""


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of long work."""

    id: str
    kind: str
    title: str
    state: State
    done: int
    total: int
    """0 where it is not known."""
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
        """Whether nothing more will happen."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that a job reported."""

    number: int
    """From 1, without gaps."""
    kind: str
    body: dict[str, Any]
    told_at: float | None = None
    """Seconds since 1970-01-01 UTC; None where an earlier climassay kept it."""


class Stopped(Exception):
    """Somebody stopped the job, or the server ends."""


class Interrupted(KeyboardInterrupt):
    """Ends the run that a job is in as interrupted, which is what has happened to it; no failure."""


@contextmanager
def interrupting() -> Iterator[None]:
    """Around reports from within a run: a job that should end interrupts the run.

    Raises:
        Interrupted: The job should end; outside of the run that is :class:`Stopped` again.
    """
    try:
        yield
    except Stopped:
        raise Interrupted from None


class JobReport:
    """How work tells how far it is, and learns whether it should end."""

    def __init__(self, owner: "Jobs", job: str) -> None:
        self.job = job
        self._jobs = owner
        self._written = self._asked = 0.0
        self._stopped = self._lost = False
        last = sa.select(sa.func.max(job_events.c.number)).where(job_events.c.job == job)
        self._number: int = owner.database.scalar(last) or 0

    @property
    def stopped(self) -> bool:
        """Whether the work should end: somebody stopped it, another server does it now, or this server ends."""
        if time.monotonic() - self._asked > QUIET_SECONDS:
            self._look()
        return self._stopped or self._lost or self._jobs.closing

    @property
    def stopped_by_somebody(self) -> bool:
        """Whether a person stopped the job that is still this server's to do."""
        self._look()
        return self._stopped and not self._lost

    @property
    def lost(self) -> bool:
        """Whether another server does the job now, which then alone says how it ended."""
        self._look()
        return self._lost

    def _look(self) -> None:
        self._asked = time.monotonic()
        row = self._jobs.database.first(sa.select(jobs.c.state, jobs.c.owner).where(jobs.c.id == self.job))
        self._stopped, self._lost = row.state == "stopped", row.owner != self._jobs.owner

    def progress(self, done: int, total: int = 0, message: str = "") -> None:
        """Say how far the work is.

        Raises:
            Stopped: It should end.
        """
        if self.stopped:
            raise Stopped
        now = time.monotonic()
        if done < total and now - self._written < QUIET_SECONDS:
            return
        self._written = now
        ours = jobs.update().where(jobs.c.id == self.job, jobs.c.owner == self._jobs.owner)
        self._jobs.database.execute(ours.values(done=done, total=total, message=message))
        self._jobs.announce(self.job)

    def event(self, kind: str, body: dict[str, Any]) -> None:
        """Tell something that pages show live.

        Raises:
            Stopped: The work should end.
        """
        if self.stopped:
            raise Stopped
        told = {"kind": kind, "body": json.dumps(body, ensure_ascii=False), "told_at": time.time()}
        self._jobs.database.execute(job_events.insert().values(job=self.job, number=self._number + 1, **told))
        self._number += 1
        self._jobs.announce(self.job)


JobWork = Callable[[Any, dict[str, Any], JobReport], dict[str, Any] | None]
"""What does the jobs of a kind, from the state of the server, what the job was given, and how to report on it."""


class Jobs:
    """The jobs of one workspace."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._works: dict[str, tuple[Lane, JobWork]] = {}
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._news = threading.Condition()
        self._listeners: list[Callable[[str], None]] = []
        self.owner = "s" + os.urandom(6).hex()
        database.create_tables(metadata)

    def register(self, kind: str, work: JobWork, lane: Lane) -> None:
        """Say how jobs of a kind are done."""
        self._works[kind] = (lane, work)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Have a function called, in any thread, with the id of every job that tells something or changes its state."""
        self._listeners.append(listener)

    def start(self, context: Any) -> None:
        """Begin, also with what a kill has cut; ``context`` is given to all work."""
        threads = [
            threading.Thread(target=self._work_lane, args=(context, lane), name=f"jobs-{lane}", daemon=True)
            for lane in get_args(Lane)
        ]
        self._threads += [*threads, threading.Thread(target=self._live, name="jobs-life", daemon=True)]
        for thread in self._threads:
            thread.start()

    def take_over(self) -> None:
        """Queue again what other servers had begun, dead or alive: for the one that knows itself to be the only one."""
        self._queue_again(jobs.c.owner != self.owner)

    def _queue_again(self, *whose: sa.ColumnElement[bool]) -> None:
        cut = jobs.update().where(jobs.c.state == "running", sa.or_(jobs.c.owner.is_(None), *whose))
        self.database.execute(cut.values(state="queued", owner=None))

    def _live(self) -> None:
        """Give signs of life for the jobs that are done here, and queue again those of servers that give none."""
        while not self._stopping.is_set():
            try:
                self._give_sign()
                silent = jobs.c.seen_at < time.time() - LEASE_SECONDS
                self._queue_again(sa.and_(jobs.c.owner != self.owner, silent))
            except Exception:
                traceback.print_exc()
            self._stopping.wait(HEARTBEAT_SECONDS)

    def close(self) -> None:
        """Ask what runs to end, and wait a moment; it goes on at the next start."""
        self._stopping.set()
        self.announce("")
        for thread in self._threads:
            thread.join(timeout=5)

    @property
    def closing(self) -> bool:
        """Whether the server ends."""
        return self._stopping.is_set()

    def submit(self, kind: str, title: str, payload: dict[str, Any], by: str | None = None) -> str:
        """Queue a job; gives its id."""
        lane, _ = self._works[kind]
        job = "j" + os.urandom(6).hex()
        row = {"id": job, "kind": kind, "lane": lane, "title": title, "by": by, "made_at": time.time()}
        row |= {"payload": json.dumps(payload, ensure_ascii=False), "state": "queued", "done": 0, "total": 0}
        self.database.execute(jobs.insert().values(message="", **row))
        self.announce(job)
        return job

    def stop(self, job: str) -> None:
        """Stop a job; one that has ended stays as it is."""
        ours = jobs.update().where(jobs.c.id == job, jobs.c.state.in_(("queued", "running")))
        self.database.execute(ours.values(state="stopped", ended_at=time.time()))
        self.announce(job)

    def _read(self, query: sa.Select[Any]) -> "Sequence[Job]":
        return [
            record_of(
                Job, row, payload=json.loads(row.payload), result=None if row.result is None else json.loads(row.result)
            )
            for row in self.database.rows(query)
        ]

    def get(self, job: str) -> Job:
        """A job.

        Raises:
            InputError: There is none with that id.
        """
        for result in self.many([job]):
            return result
        raise InputError(f"There is no job {job!r}.")

    def many(self, ids: Collection[str]) -> "Sequence[Job]":
        """The jobs of some ids, those that there are."""
        return self._read(sa.select(jobs).where(jobs.c.id.in_(ids)))

    def last_events(self, ids: Collection[str]) -> dict[str, int]:
        """Numbers of the last events of jobs that have reported something."""
        query = sa.select(job_events.c.job, sa.func.max(job_events.c.number)).where(job_events.c.job.in_(ids))
        return {job: int(last) for job, last in self.database.rows(query.group_by(job_events.c.job))}

    def unended(self, kinds: Collection[str] = ()) -> "Sequence[Job]":
        """Return the jobs that have not ended, oldest first; only those of some kinds if any are given."""
        query = sa.select(jobs).where(jobs.c.state.not_in(ENDED)).order_by(jobs.c.made_at)
        return self._read(query.where(jobs.c.kind.in_(kinds)) if kinds else query)

    def list(self, kind: str | None = None, most: int = 50, after: str | None = None) -> list[Job]:
        """Jobs, the newest first; those behind one of them where its id is given.

        Raises:
            InputError: There is no job of that id.
        """
        query = sa.select(jobs).order_by(jobs.c.made_at.desc(), jobs.c.id).limit(most)
        if kind is not None:
            query = query.where(jobs.c.kind == kind)
        if after is not None:
            query = query.where(sa.tuple_(-jobs.c.made_at, jobs.c.id) > sa.tuple_(-self.get(after).made_at, after))
        return [*self._read(query)]

    def events(self, job: str, after: int = 0, most: int = 500) -> "Sequence[JobEvent]":
        """What a job has reported, in order."""
        query = sa.select(job_events).where(job_events.c.job == job, job_events.c.number > after)
        rows = self.database.rows(query.order_by(job_events.c.number).limit(most))
        return [record_of(JobEvent, row, body=json.loads(row.body)) for row in rows]

    def wait_for_news(self, seconds: float) -> None:
        """Wait until any job tells something, at most so long."""
        with self._news:
            self._news.wait(seconds)

    def _give_sign(self) -> None:
        mine = sa.and_(jobs.c.state == "running", jobs.c.owner == self.owner)
        self.database.execute(jobs.update().where(mine).values(seen_at=time.time()), durable=False)

    def _work_lane(self, context: Any, lane: Lane) -> None:
        while not self._stopping.is_set():
            try:
                job = self._take(lane)
                if job is None:
                    with self._news:
                        if not self._stopping.is_set():
                            self._news.wait(WAKE_SECONDS)
                else:
                    self._do(context, job)
            except Exception:
                # The database may be away for a while; a lane must outlive that.
                traceback.print_exc()
                self._stopping.wait(WAKE_SECONDS)

    def _take(self, lane: Lane) -> Job | None:
        mine = sa.and_(jobs.c.state == "queued", jobs.c.lane == lane, jobs.c.kind.in_(list(self._works)))
        for job in self._read(sa.select(jobs).where(mine).order_by(jobs.c.made_at).limit(1)):
            ours = jobs.update().where(jobs.c.id == job.id, jobs.c.state == "queued")
            taken = ours.values(state="running", owner=self.owner, seen_at=time.time())
            if self.database.execute(taken):
                self.announce(job.id)
                return job
        return None

    def _do(self, context: Any, job: Job) -> None:
        _, work = self._works[job.kind]
        report = JobReport(self, job.id)
        try:
            result = work(context, job.payload, report)
        except Stopped:
            self._end(job.id, "queued" if self._stopping.is_set() else "stopped")
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
        mine = jobs.update().where(jobs.c.id == job, jobs.c.state == "running", jobs.c.owner == self.owner)
        self.database.execute(mine.values(values))
        self.announce(job)

    def announce(self, job: str) -> None:
        """Wake who waits for news; ``job`` is empty where the server ends."""
        with self._news:
            self._news.notify_all()
        for listener in self._listeners:
            listener(job)


@dataclass(eq=False)
class _Topic:
    """A job that somebody listens to."""

    job: Job
    last: int
    """Number of the last event that was read."""
    events: deque[JobEvent] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    followers: set[asyncio.Event] = field(default_factory=set)
    beats: int = 0

    @property
    def before(self) -> int:
        """All events behind this number are kept."""
        return self.events[0].number - 1 if self.events else self.last


class JobStreams:
    """The streams of one server."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._topics: dict[str, _Topic] = {}
        self._changed: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        jobs.listen(self._hear)

    async def follow(self, job: str, after: int) -> AsyncIterator[str]:
        """The events of a job behind a number, and its state, until it ends."""
        topic = await self._topic(job)
        woken = asyncio.Event()
        topic.followers.add(woken)
        shown, beats = "", topic.beats
        try:
            while not self._jobs.closing:
                woken.clear()
                # The state first: whatever the job told before it ended is then seen below.
                now, told = topic.job, [event for event in topic.events if event.number > after]
                while after < topic.before:
                    earlier = await run_in_threadpool(self._jobs.events, job, after)
                    for event in earlier:
                        after = event.number
                        yield _event_lines(event)
                    if not earlier:
                        break
                for event in told:
                    if event.number > after:
                        after = event.number
                        yield _event_lines(event)
                state = json.dumps({"done": now.done, "total": now.total, "message": now.message, "state": now.state})
                if state != shown:
                    shown, beats = state, topic.beats
                    yield f"event: progress\ndata: {state}\n\n"
                if now.ended:
                    yield f"event: end\ndata: {json.dumps({'state': now.state, 'error': now.error})}\n\n"
                    return
                if topic.beats - beats >= BEATS:
                    beats = topic.beats
                    yield ": still here\n\n"
                await woken.wait()
        finally:
            topic.followers.discard(woken)
            if not topic.followers and self._topics.get(job) is topic:
                del self._topics[job]

    async def _topic(self, job: str) -> _Topic:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._topics, self._news, self._task = loop, {}, asyncio.Event(), None
        if job not in self._topics:
            read = await run_in_threadpool(self._jobs.get, job)
            last = await run_in_threadpool(self._jobs.last_events, [job])
            self._topics.setdefault(job, _Topic(read, last.get(job, 0)))
            # What was told meanwhile is read by the first look.
            self._note(job)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._watch())
        return self._topics[job]

    def _hear(self, job: str) -> None:
        """Take note of news, in whatever thread they come."""
        if self._loop is not None and (job in self._topics or not job):
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                self._loop.call_soon_threadsafe(self._note, job)

    def _note(self, job: str) -> None:
        self._changed.add(job)
        self._news.set()

    async def _watch(self) -> None:
        """Read what is new for all followers; ends when nobody listens any more."""
        loop = asyncio.get_running_loop()
        look = loop.time() + WAKE_SECONDS
        while self._topics and not self._jobs.closing:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._news.wait(), max(0.0, look - loop.time()))
                await asyncio.sleep(TOGETHER_SECONDS)
            self._news.clear()
            told, self._changed, everything = self._changed, set(), loop.time() >= look
            with contextlib.suppress(RecordsError):  # The database may be away for a while.
                await self._read({job: one for job, one in self._topics.items() if everything or job in told})
            if everything:
                look = loop.time() + WAKE_SECONDS
                for topic in self._topics.values():
                    topic.beats += 1
                self._wake([topic for topic in self._topics.values() if topic.beats % BEATS == 0])
        self._wake(self._topics.values())

    async def _read(self, topics: dict[str, _Topic]) -> None:
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
    def _wake(topics: Collection[_Topic]) -> None:
        for topic in topics:
            for woken in topic.followers:
                woken.set()


def _event_lines(event: JobEvent) -> str:
    return f"id: {event.number}\nevent: {event.kind}\ndata: {json.dumps(event.body)}\n\n"
