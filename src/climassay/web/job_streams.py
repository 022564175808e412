"""What jobs tell, as server-sent events to any number of listeners.

Nobody polls: a job that tells something wakes one task, which reads the database once for all who listen to that job.
What other processes change is seen by one query for all jobs together, every few seconds.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from climassay.errors import RecordsError
from climassay.web.jobs import WAKE_SECONDS, Job, JobEvent, Jobs

QUIET_SECONDS = 0.25
"""What is reported within so short a time goes out together."""
BEATS = 3
"""A comment after so many waits without news keeps the connection open through proxies: every 15 seconds."""
KEPT_EVENTS = 200
"""The last events of a job, which need not be read again for those who follow it closely."""


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
                await asyncio.sleep(QUIET_SECONDS)
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
        found = await run_in_threadpool(self._jobs.many, list(topics))
        last = await run_in_threadpool(self._jobs.last_events, list(topics))
        for job in found:
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
