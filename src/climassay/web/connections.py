"""Connections of a server: how many there may be, and how long one may take to say what it wants.

All of this holds before a request is whole, so that nothing is read, looked up or logged for who only holds a place.
"""

import asyncio
import logging
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from climassay.web.settings import Networks

FILES_LEFT = 300
"""Open files that are not for connections: databases, collections, documents, uploads."""
ACCEPTED_AT_ONCE = 128
"""Connections that are taken before the limits are looked at."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections a server holds, and for how long."""

    most: int = 2000
    """Where all serve a request, more are refused; otherwise the one that has waited longest makes room."""
    by_peer: int = 200
    """Connections of one address; a proxy has as many as it likes."""
    waiting: int = 500
    """Connections without a whole request; of more the oldest is closed."""
    header_seconds: float = 10.0
    """Time for a request to be there, from the beginning of the connection or of the request."""
    stalled_seconds: float = 60.0
    """Time in which who is answered must take something of what is sent."""

    @classmethod
    def for_files(cls, files: int) -> "ConnectionLimits":
        """Limits that leave room for other files, where a process may have so many open."""
        usual = cls()
        most = max(20, min(usual.most, files - FILES_LEFT - ACCEPTED_AT_ONCE))
        return replace(usual, most=most, by_peer=min(usual.by_peer, most), waiting=min(usual.waiting, most // 2))


class Connections:
    """The open connections of a server; proxies have no limit of their own."""

    def __init__(self, limits: ConnectionLimits, proxies: Networks) -> None:
        self.limits = limits
        self._proxies = proxies
        self._peers: dict[GuardedProtocol, str] = {}
        self._by_peer: Counter[str] = Counter()
        self._waiting: dict[GuardedProtocol, None] = {}

    def enter(self, one: "GuardedProtocol") -> bool:
        """Whether a new connection is borne; one that waits makes room for it where there is none."""
        peer = one.client[0] if one.client else "unknown"
        if self._by_peer[peer] >= self.limits.by_peer and peer not in self._proxies:
            return False
        if len(self._peers) >= self.limits.most and not self._make_room():
            return False
        self._peers[one] = peer
        self._by_peer[peer] += 1
        self.wait(one)
        return True

    def leave(self, one: "GuardedProtocol") -> None:
        """A connection ends."""
        self._waiting.pop(one, None)
        peer = self._peers.pop(one, None)
        if peer is not None:
            self._by_peer[peer] -= 1
            if not self._by_peer[peer]:
                del self._by_peer[peer]

    def wait(self, one: "GuardedProtocol") -> None:
        """A connection has no whole request."""
        if one in self._peers:
            self._waiting[one] = None
            if len(self._waiting) > self.limits.waiting:
                self._make_room()

    def serve(self, one: "GuardedProtocol") -> None:
        """A connection has a whole request."""
        self._waiting.pop(one, None)

    def _make_room(self) -> bool:
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.drop()
        return True


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, within the limits of a server's connections."""

    guard: Connections
    """Connections of the server; a subclass has it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or end at once where there are too many."""
        super().connection_made(transport)
        self._patience: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        if not self.guard.enter(self):
            self.drop()
            return
        self._begin_to_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.guard.leave(self)
        for timer in (self._patience, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; the time for a request begins with its first byte and ends with the last of its headers."""
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.guard.serve(self)
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None
        elif self._patience is None:
            self._begin_to_wait()

    def on_response_complete(self) -> None:
        """Wait for the next request; uvicorn closes who says nothing for a few seconds."""
        self.guard.wait(self)
        super().on_response_complete()
        if not self.cycle.response_complete:  # The next request had come in already.
            self.guard.serve(self)

    def pause_writing(self) -> None:
        """The other side takes nothing for a moment."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.guard.limits.stalled_seconds, self.drop)

    def resume_writing(self) -> None:
        """It goes on."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def drop(self) -> None:
        """Close the connection without a word."""
        self.transport.abort()

    def _begin_to_wait(self) -> None:
        self.guard.wait(self)
        self._patience = self.loop.call_later(self.guard.limits.header_seconds, self.drop)


def guarded(limits: ConnectionLimits, proxies: Networks) -> type[GuardedProtocol]:
    """The protocol of one server."""
    return type("Guarded", (GuardedProtocol,), {"guard": Connections(limits, proxies)})


def most_files() -> int:
    """How many files this process may have open, after asking for as many as it is given."""
    try:
        import resource
    except ImportError:  # Windows knows no such limit.
        return 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return wanted if soft == resource.RLIM_INFINITY else soft


class LogLimit(logging.Filter):
    """Lets a few messages of one kind through a minute, so that nobody can fill a disk with what a log says of them."""

    def __init__(self, most: int = 10, now: Any = time.monotonic) -> None:
        super().__init__()
        self._most = most
        self._now = now
        self._since = now()
        self._counts: Counter[object] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is written."""
        if self._now() - self._since >= 60:
            self._since = self._now()
            self._counts.clear()
        # The same mistake of a page is one kind, whatever else the message says.
        kind = (record.msg, record.exc_info[0] if record.exc_info else None)
        self._counts[kind] += 1
        if self._counts[kind] == self._most:
            record.msg = f"{record.msg} (more of these are left out for a minute)"
        return self._counts[kind] <= self._most
