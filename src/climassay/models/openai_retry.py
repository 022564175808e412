"""When a failed attempt is made again: the policy, and the waits that servers ask for."""

import asyncio
import random
import time
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
    """The policy with what a user has set of it; None where nothing is set.

    Args:
        deadline: Seconds from the first attempt until a request is given up.
        timeout: Seconds that one attempt may take; by default as long as the deadline allows.
    """
    if deadline is None and timeout is None:
        return None
    usual = RetryPolicy()
    return replace(usual, deadline=deadline or usual.deadline, attempt_timeout=timeout)


def parse_retry_after(seconds: str | None, milliseconds: str | None, wall: float) -> float | None:
    """Seconds that a server asks to wait, from its ``Retry-After`` and ``retry-after-ms`` headers.

    Args:
        seconds: ``Retry-After``: a number of seconds or an HTTP date (RFC 9110, section 10.2.3).
        milliseconds: ``retry-after-ms``, which some servers send with it and which is preferred.
        wall: The present time, seconds since 1970.

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
