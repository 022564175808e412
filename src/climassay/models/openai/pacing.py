"""Pacing of requests to a server: pauses between retries, and an adaptive limit of concurrent requests."""

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
    """Time source and random numbers of a client; replaced in tests."""

    now: Callable[[], float] = time.monotonic
    """Function that returns monotonic time in seconds."""
    wall_time: Callable[[], float] = time.time
    """Function that returns the seconds since 1970-01-01 UTC."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    """Function that returns a uniform random number in [0, 1), for jitter."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Deadlines and attempts of one request. All times are in seconds."""

    deadline: float = 1200.0
    """Maximum time from the first attempt until the request fails, including pauses."""
    attempt_timeout: float | None = None
    """Maximum time of one attempt. None waits until the deadline: otherwise, slow answers are discarded and paid for
    twice."""
    max_attempts: int = 12
    base: float = 0.5
    """Upper bound of the first pause. The bound doubles with each attempt."""
    cap: float = 30.0
    """Maximum pause, unless the server requests a longer pause."""

    def backoff(self, attempts: int, clock: Clock) -> float:
        """Return the pause after a number of failed attempts: exponential with full jitter.

        References:
            M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        """
        return clock.draw() * min(self.cap, self.base * 2.0 ** min(attempts - 1, 60))


def retry_policy(deadline: float | None = None, timeout: float | None = None) -> RetryPolicy | None:
    """Return the default policy with a user's deadline and attempt timeout in seconds; None if neither is set."""
    if deadline is None and timeout is None:
        return None
    default = RetryPolicy()
    return replace(default, deadline=deadline or default.deadline, attempt_timeout=timeout)


def parse_retry_after(seconds: str | None, milliseconds: str | None, wall_time: float) -> float | None:
    """Return the seconds to wait that ``Retry-After`` and ``retry-after-ms`` headers state.

    ``Retry-After`` is a number of seconds or an HTTP date (RFC 9110, section 10.2.3); ``retry-after-ms``, which some
    servers add, is preferred. ``wall_time`` is the current time in seconds since 1970.

    Returns:
        At least 0; None without a valid header.
    """
    for text, unit in ((milliseconds, 0.001), (seconds, 1.0)):
        try:
            wait = float(text or "") * unit
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait
    try:
        return max(0.0, parsedate_to_datetime(seconds or "").timestamp() - wall_time)
    except (ValueError, OverflowError):
        return None


INITIAL_LIMIT = 32
"""Initial limit of concurrent requests to a server."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Permission to send one request."""

    n_halvings: int
    """Number of halvings of the limit before the slot was granted."""


class AdaptiveLimit:
    """Limit of concurrent requests with additive increase and multiplicative decrease.

    The limit starts at 32 (or the maximum) and grows by one with every success (slow start: it doubles each round trip)
    until the first overload; then it grows by one per round trip. Overload (429, 503, 529, a time-out) halves it, once
    for all requests in flight at that time. A ``Retry-After`` pauses all requests.

    Used from one event loop only.

    References:
        D.-M. Chiu and R. Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer
        networks", Computer Networks and ISDN Systems 17 (1989).
    """

    def __init__(self, maximum: int, clock: Clock) -> None:
        self.maximum = maximum
        self.limit = float(min(INITIAL_LIMIT, maximum))
        self.in_flight = 0
        self.paused_until = 0.0
        self._clock = clock
        self._n_halvings = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def acquire(self, max_pause: float = math.inf) -> Slot | None:
        """Wait for a free slot; return None if a pause is longer than ``max_pause`` seconds."""
        while True:
            pause = self.paused_until - self._clock.now()
            if pause > 0:
                if pause >= max_pause:
                    return None
                await self._clock.sleep(pause)
            elif self.in_flight < int(self.limit):
                self.in_flight += 1
                return Slot(self._n_halvings)
            else:
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                try:
                    await waiter
                except asyncio.CancelledError:
                    if waiter.done() and not waiter.cancelled():
                        self._wake_waiters(1)
                    raise

    def release(self, slot: Slot, *, has_succeeded: bool, is_overloaded: bool) -> None:
        """Release a slot and adapt the limit to the result."""
        self.in_flight -= 1
        if is_overloaded and slot.n_halvings == self._n_halvings:
            self._n_halvings += 1
            self.limit = max(1.0, self.limit / 2)
        elif has_succeeded:
            step = 1.0 if self._n_halvings == 0 else 1.0 / self.limit
            self.limit = min(float(self.maximum), self.limit + step)
        self._wake_waiters(int(self.limit) - self.in_flight)

    def pause(self, seconds: float) -> None:
        """Pause all requests, and wake waiting ones so that they notice."""
        self.paused_until = max(self.paused_until, self._clock.now() + seconds)
        self._wake_waiters(len(self._waiters))

    def _wake_waiters(self, n_free: int) -> None:
        while n_free > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                n_free -= 1
