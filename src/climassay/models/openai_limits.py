"""How many requests are under way at once: found by trying, as TCP finds its window."""

import asyncio
import math
from collections import deque
from dataclasses import dataclass

from climassay.models.openai_retry import Clock

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

    Args:
        ceiling: Never more than this at once.
        clock: Time.

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
        """Wait for a free place and for the end of a pause.

        Args:
            patience: Seconds.

        Returns:
            None at once where the server asks for a longer pause than that.
        """
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
                await self._wait_for_place()

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

    async def _wait_for_place(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._wake(1)
            raise

    def _wake(self, free: int) -> None:
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1
