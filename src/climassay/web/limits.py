"""How much of a server one visitor or connection may have, so that nobody can keep it from the others.

A visitor is an address; of IPv6 its network, because everybody has millions of those. People with an account are not
bounded here, nor are programs of this machine: behind a proxy that tells no addresses everybody would be one of them.
What bounds connections holds before a request is whole, so that nothing is read, looked up or logged for who only holds
a place.
"""

import asyncio
import ipaddress
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from starlette.requests import HTTPConnection
from uvicorn.protocols.http.h11_impl import H11Protocol

from climassay.web.accounts import User
from climassay.web.failures import Failure
from climassay.web.settings import Networks

PAGES_AT_ONCE = 4
"""Pages that are made at the same time for all visitors without an account; others wait."""
PAGES_AT_ONCE_FOR_ONE = 2
WAITING = 1000
"""Requests of visitors without an account that wait or are answered; more are refused."""
WAITING_OF_ONE = 20
STREAMS_OF_ONE = 50
"""Event streams of one visitor without an account."""
RETRY_SECONDS = 5
MANY = "The server is busy: try again in a few seconds."
FILES_LEFT = 300
"""Open files that are not for connections: databases, collections, documents, uploads."""
ACCEPTED_AT_ONCE = 128
"""Connections that are taken before the limits are looked at."""


class Crowded(Failure):
    """More is asked for at once than is served."""

    status = 503


def visitor_address(connection: HTTPConnection) -> str:
    """What visitors are distinguished by."""
    host = connection.client.host if connection.client else "unknown"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else str(ipaddress.ip_network((address, 64), strict=False))
    return host


def is_this_machine(address: str) -> bool:
    """Whether an address is one of this machine's own."""
    return address.startswith("127.") or address == "::/64"


class Visitors:
    """Visitors without an account who are served at this moment."""

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()
        self._own_turns: dict[str, asyncio.Semaphore] = {}
        self._waiting: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()

    def stream(self, connection: HTTPConnection, user: User | None, lines: AsyncIterator[str]) -> AsyncIterator[str]:
        """The lines of an event stream; a visitor who follows too many is told to close some."""
        address = visitor_address(connection)
        if user is not None or is_this_machine(address):
            return lines
        if self._streams[address] >= STREAMS_OF_ONE:
            raise Crowded("You have too many pages with live updates open: close some of them.")

        async def counted() -> AsyncIterator[str]:
            self._streams[address] += 1
            try:
                async for line in lines:
                    yield line
            finally:
                _less(self._streams, address)

        return counted()

    def full_for(self, address: str) -> bool:
        """Whether no more requests of a visitor are taken."""
        mine = 0 if is_this_machine(address) else self._waiting[address]
        return mine >= WAITING_OF_ONE or self._waiting.total() >= WAITING

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for one's turn, and have it while something is done; of too many who wait the last are refused."""
        if self.full_for(address):
            raise Crowded(MANY)
        await self.begin(address)
        try:
            yield
        finally:
            self.end(address)

    async def begin(self, address: str) -> None:
        """Wait for one's turn; :meth:`end` gives it back."""
        self._waiting[address] += 1
        try:
            if not is_this_machine(address):
                await self._own_turns.setdefault(address, asyncio.Semaphore(PAGES_AT_ONCE_FOR_ONE)).acquire()
            try:
                await self._turn.acquire()
            except BaseException:
                self._end_own(address)
                raise
        except BaseException:
            _less(self._waiting, address)
            raise

    def end(self, address: str) -> None:
        """Let the next one in."""
        self._turn.release()
        self._end_own(address)
        _less(self._waiting, address)

    def _end_own(self, address: str) -> None:
        if address in self._own_turns:
            self._own_turns[address].release()
            if self._waiting[address] <= 1:
                del self._own_turns[address]

    @property
    def _turn(self) -> asyncio.Semaphore:
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(PAGES_AT_ONCE))


def _less(counts: Counter[str], address: str) -> None:
    counts[address] -= 1
    if counts[address] <= 0:
        del counts[address]


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
