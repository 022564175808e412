"""Limits on TCP connections, including those without a complete request, and filters of log messages.

A connection without a complete request occupies only a socket: it causes no database access and no log entry.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from textwrap import indent

from uvicorn.protocols.http.h11_impl import H11Protocol

from climassay.terminal import visible
from climassay.web.settings import Networks

RESERVED_FILES = 300
"""Number of open files that are reserved for databases, collections, documents and uploads."""
ACCEPT_BACKLOG = 128
"""Maximum number of connections that the operating system queues before the server accepts them."""
MAX_OPEN_FILES = 8192
LOG_WINDOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on the connections of a server."""

    max_connections: int = 2000
    """Maximum number of connections. At the limit, a new connection either replaces the connection that has waited
    longest or is refused."""
    max_per_peer: int = 200
    """Maximum number of connections from one IP address; trusted proxies are exempt."""
    max_waiting: int = 500
    """Maximum number of connections without a complete request. If there are more, the connection that has waited
    longest is closed."""
    header_seconds: float = 10.0
    """Time within which a client must send complete request headers, in seconds."""
    stalled_seconds: float = 60.0
    """A connection is closed if its client has not read the response for this number of seconds."""

    @classmethod
    def for_open_files(cls, n_files: int) -> "ConnectionLimits":
        """Return limits for a process that may have ``n_files`` open files and sockets."""
        default_limits = cls()
        max_connections = max(20, min(default_limits.max_connections, n_files - RESERVED_FILES - ACCEPT_BACKLOG))
        return replace(
            default_limits,
            max_connections=max_connections,
            max_per_peer=min(default_limits.max_per_peer, max_connections),
            max_waiting=min(default_limits.max_waiting, max_connections // 2),
        )


class ConnectionPool:
    """Open connections of a server, with their limits."""

    def __init__(self, limits: ConnectionLimits, proxies: Networks) -> None:
        self.limits = limits
        self._proxies = proxies
        self._peers: dict[LimitedProtocol, str] = {}
        self._counts: Counter[str] = Counter()
        self._waiting_connections: dict[LimitedProtocol, None] = {}

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._peers)

    def admit(self, connection: "LimitedProtocol") -> bool:
        """Register a connection and return whether it was accepted.

        If the pool is full, the connection that has waited longest is dropped.
        """
        peer = connection.client[0] if connection.client else "unknown"
        if self._counts[peer] >= self.limits.max_per_peer and peer not in self._proxies:
            return False
        if len(self._peers) >= self.limits.max_connections and not self._drop_longest_waiting():
            return False
        self._peers[connection] = peer
        self._counts[peer] += 1
        self.mark_waiting(connection)
        return True

    def remove(self, connection: "LimitedProtocol") -> None:
        """Remove a connection; do nothing if it is not registered."""
        self._waiting_connections.pop(connection, None)
        peer = self._peers.pop(connection, None)
        if peer is not None:
            self._counts[peer] -= 1
            if not self._counts[peer]:
                del self._counts[peer]

    def mark_waiting(self, connection: "LimitedProtocol") -> None:
        """Record that a connection waits for a complete request.

        If too many are waiting, drop the connection that has waited longest.
        """
        if connection in self._peers:
            self._waiting_connections[connection] = None
            if len(self._waiting_connections) > self.limits.max_waiting:
                self._drop_longest_waiting()

    def mark_served(self, connection: "LimitedProtocol") -> None:
        """Record that a connection has received a complete request."""
        self._waiting_connections.pop(connection, None)

    def _drop_longest_waiting(self) -> bool:
        connection = next(iter(self._waiting_connections), None)
        if connection is None:
            return False
        self.remove(connection)
        connection.drop()
        return True


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with the limits of a :class:`ConnectionPool`."""

    pool: ConnectionPool
    """Connections of the server; set in the subclass that :func:`make_protocol_class` returns."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection, or close it if it is refused."""
        super().connection_made(transport)
        self._header_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        if self.pool.admit(self):
            self._wait_for_headers()
        else:
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection and cancel its timers."""
        self.pool.remove(self)
        for timer in (self._header_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received data. The header timer runs from a request's first byte until its headers are complete."""
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.pool.mark_served(self)
            if self._header_timer is not None:
                self._header_timer.cancel()
                self._header_timer = None
        elif self._header_timer is None:
            self._wait_for_headers()

    def on_response_complete(self) -> None:
        """Mark the connection as waiting for its next request."""
        self.pool.mark_waiting(self)
        super().on_response_complete()
        if not self.cycle.response_complete:  # The next request was already received.
            self.pool.mark_served(self)

    def pause_writing(self) -> None:
        """Start the timer that closes the connection if its client does not read the response."""
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self.pool.limits.stalled_seconds, self.drop)

    def resume_writing(self) -> None:
        """Cancel the timer that :meth:`pause_writing` started."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()

    def drop(self) -> None:
        """Close the connection without a response."""
        self.transport.abort()

    def _wait_for_headers(self) -> None:
        self.pool.mark_waiting(self)
        self._header_timer = self.loop.call_later(self.pool.limits.header_seconds, self.drop)


def make_protocol_class(limits: ConnectionLimits, proxies: Networks) -> type[LimitedProtocol]:
    """Return a protocol class whose connections share one :class:`ConnectionPool`."""
    return type("ServerProtocol", (LimitedProtocol,), {"pool": ConnectionPool(limits, proxies)})


def raise_open_file_limit() -> int:
    """Raise this process's limit of open files to :data:`MAX_OPEN_FILES` if allowed; return the resulting limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return MAX_OPEN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(MAX_OPEN_FILES, hard)
    if soft == resource.RLIM_INFINITY:
        return target
    if soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return max(soft, target)


class ControlCharacterFilter(logging.Filter):
    """Logging filter that escapes what strangers' text could do to a log: forge lines, or command its terminal."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Escape control characters and line feeds in a message, and indent its traceback; log every message."""
        record.msg, record.args = visible(record.getMessage()).replace("\n", "\\n"), None
        if record.exc_info:
            record.exc_text = indent(visible(logging.Formatter().formatException(record.exc_info)), "  ")
        return True


class RepeatedMessageFilter(logging.Filter):
    """Logging filter that limits the number of similar messages per minute, so that visitors cannot fill the disk.

    Messages are similar if they have the same format string and exception type.
    """

    def __init__(self, max_messages: int = 10, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._max_messages = max_messages
        self._clock = clock
        self._window_start = clock()
        self._counts: Counter[object] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a message.

        Append a remark to the last message that is logged before similar ones are suppressed.
        """
        if self._clock() - self._window_start >= LOG_WINDOW_SECONDS:
            self._window_start = self._clock()
            self._counts.clear()
        kind = (record.msg, record.exc_info[0] if record.exc_info else None)
        self._counts[kind] += 1
        if self._counts[kind] == self._max_messages:
            record.msg = f"{record.msg} (more of these are left out for a minute)"
        return self._counts[kind] <= self._max_messages
