"""When requests are sent: how many at once, found by trying as TCP does, and when a failed one is tried again."""

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as the client sees it; tests give another one."""

    now: Callable[[], float] = time.monotonic
    """Seconds that only go forward."""
    wall: Callable[[], float] = time.time
    """Seconds since 1970, for the dates of servers."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    """Uniform in [0, 1), for the jitter."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long and how often one request is tried. All times in seconds."""

    deadline: float = 1200.0
    """From the first attempt until the request is given up, waits included."""
    attempt_timeout: float | None = None
    """A server that says nothing for so long is asked again; None waits until the deadline, so that no slow answer is
    thrown away and paid for twice."""
    max_attempts: int = 12
    base: float = 0.5
    """The first wait is drawn between 0 and this, the next between 0 and twice this, and so on."""
    cap: float = 30.0
    """No wait of our own is longer."""

    def backoff(self, attempts: int, clock: Clock) -> float:
        """Wait after the given number of failed attempts: exponential with full jitter.

        References:
            M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        """
        return clock.draw() * min(self.cap, self.base * 2.0 ** min(attempts - 1, 60))


def retry_policy(deadline: float | None = None, timeout: float | None = None) -> RetryPolicy | None:
    """The policy with what a user has set of it, in seconds; None where nothing is set."""
    if deadline is None and timeout is None:
        return None
    usual = RetryPolicy()
    return replace(usual, deadline=deadline or usual.deadline, attempt_timeout=timeout)


def parse_retry_after(seconds: str | None, milliseconds: str | None, wall: float) -> float | None:
    """Seconds that a server asks to wait, from its ``Retry-After`` and ``retry-after-ms`` headers.

    ``Retry-After`` is a number of seconds or an HTTP date (RFC 9110, section 10.2.3); ``retry-after-ms``, which some
    servers send with it, is preferred. ``wall`` is the present time in seconds since 1970.

    Returns:
        At least 0; None where there is no header or it cannot be read.
    """
    for text, unit in ((milliseconds, 0.001), (seconds, 1.0)):
        try:
            wait = float(text or "") * unit
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait
    try:
        return max(0.0, parsedate_to_datetime(seconds or "").timestamp() - wall)
    except (ValueError, OverflowError):
        return None


START = 32
"""Requests at once before anything is known about the server."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Permission to send one request."""

    generation: int
    """Number of halvings before it was given."""


class AdaptiveLimit:
    """Additive increase, multiplicative decrease of the number of requests under way.

    The limit starts at 32 (or the ceiling) and grows by one with every success (slow start: it doubles each round
    trip) until the server is first overloaded; from then on it grows by one each round trip. Overload (429, 503, 529,
    a time-out) halves it, once for all requests that were under way at that time. A ``Retry-After`` stops all sending
    until then.

    Used from one event loop only.

    References:
        D.-M. Chiu and R. Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer
        networks", Computer Networks and ISDN Systems 17 (1989).
    """

    def __init__(self, ceiling: int, clock: Clock) -> None:
        self.ceiling = ceiling
        self.limit = float(min(START, ceiling))
        self.in_flight = 0
        self.paused_until = 0.0
        self._clock = clock
        self._generation = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self, patience: float = math.inf) -> Slot | None:
        """Wait for a free place and the end of a pause; None at once for a pause longer than ``patience`` seconds."""
        while True:
            pause = self.paused_until - self._clock.now()
            if pause > 0:
                if pause >= patience:
                    return None
                await self._clock.sleep(pause)
            elif self.in_flight < int(self.limit):
                self.in_flight += 1
                return Slot(self._generation)
            else:
                place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(place)
                try:
                    await place
                except asyncio.CancelledError:
                    if place.done() and not place.cancelled():
                        self._wake(1)
                    raise

    def release(self, slot: Slot, *, succeeded: bool, overloaded: bool) -> None:
        """Give a place back and learn from how it went."""
        self.in_flight -= 1
        if overloaded and slot.generation == self._generation:
            self._generation += 1
            self.limit = max(1.0, self.limit / 2)
        elif succeeded:
            step = 1.0 if self._generation == 0 else 1.0 / self.limit
            self.limit = min(float(self.ceiling), self.limit + step)
        self._wake(int(self.limit) - self.in_flight)

    def pause(self, seconds: float) -> None:
        """Send nothing for so long; who waits for a place learns of it at once."""
        self.paused_until = max(self.paused_until, self._clock.now() + seconds)
        self._wake(len(self._waiting))

    def _wake(self, free: int) -> None:
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1
