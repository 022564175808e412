"""Limits on the concurrent requests of visitors without an account.

A visitor is identified by the IP address, or for IPv6 by the /64 network, because everybody has many IPv6 addresses.
Signed-in users are not limited. Requests from this machine have no limits per visitor, since all visitors behind a
proxy that does not forward addresses seem to be on this machine.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from starlette.requests import HTTPConnection

from climassay.web.accounts import User
from climassay.web.failures import Failure

MAX_RENDERED_PAGES = 4
"""Maximum number of requests of all visitors that are handled at the same time; further requests wait."""
MAX_RENDERED_PAGES_PER_VISITOR = 2
MAX_REQUESTS = 1000
"""Maximum number of requests of all visitors that wait or are being handled; further requests are refused."""
MAX_REQUESTS_PER_VISITOR = 20
MAX_STREAMS_PER_VISITOR = 50
"""Maximum number of event streams that one visitor may have open."""
RETRY_SECONDS = 5
BUSY_MESSAGE = "The server is busy: try again in a few seconds."


class Overloaded(Failure):
    """Error for a request if too many requests or event streams are open."""

    status = 503


def visitor_address(connection: HTTPConnection) -> str:
    """Return the IP address by which a visitor is counted; for IPv6, the /64 network that contains it."""
    host = connection.client.host if connection.client else "unknown"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        ipv4_address = address.ipv4_mapped
        return str(ipv4_address) if ipv4_address else str(ipaddress.ip_network((address, 64), strict=False))
    return host


def is_local(address: str) -> bool:
    """Return whether a visitor's address is a loopback address."""
    return address.startswith("127.") or address == "::/64"


class VisitorLimits:
    """Limits on concurrent requests and event streams of visitors without an account.

    Visitors on the server's own machine are not limited.
    """

    def __init__(self) -> None:
        self._page_slots: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()
        self._visitor_slots: dict[str, asyncio.Semaphore] = {}
        self._requests: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()

    def limit_stream(
        self, connection: HTTPConnection, user: User | None, lines: AsyncIterator[str]
    ) -> AsyncIterator[str]:
        """Return the lines of an event stream, which counts towards the visitor's limit until it ends.

        Raises:
            Overloaded: The visitor has too many event streams open.
        """
        address = visitor_address(connection)
        if user is not None or is_local(address):
            return lines
        if self._streams[address] >= MAX_STREAMS_PER_VISITOR:
            raise Overloaded("You have too many pages with live updates open: close some of them.")

        async def counted_lines() -> AsyncIterator[str]:
            self._streams[address] += 1
            try:
                async for line in lines:
                    yield line
            finally:
                _decrement(self._streams, address)

        return counted_lines()

    def is_full(self, address: str) -> bool:
        """Return whether another request from the address of a visitor would be refused."""
        n_requests = 0 if is_local(address) else self._requests[address]
        return n_requests >= MAX_REQUESTS_PER_VISITOR or self._requests.total() >= MAX_REQUESTS

    @asynccontextmanager
    async def slot(self, address: str) -> AsyncIterator[None]:
        """Wait for a free slot for handling a request, and occupy it within the context.

        Raises:
            Overloaded: Too many requests of this visitor, or of all visitors, are waiting.
        """
        if self.is_full(address):
            raise Overloaded(BUSY_MESSAGE)
        self._requests[address] += 1
        try:
            async with AsyncExitStack() as slots:
                if not is_local(address):
                    visitor_slots = self._visitor_slots.setdefault(
                        address, asyncio.Semaphore(MAX_RENDERED_PAGES_PER_VISITOR)
                    )
                    await slots.enter_async_context(visitor_slots)
                page_slots = self._page_slots.setdefault(
                    asyncio.get_running_loop(), asyncio.Semaphore(MAX_RENDERED_PAGES)
                )
                await slots.enter_async_context(page_slots)
                yield
        finally:
            _decrement(self._requests, address)
            if address not in self._requests:
                self._visitor_slots.pop(address, None)


def _decrement(counts: Counter[str], address: str) -> None:
    counts[address] -= 1
    if counts[address] <= 0:
        del counts[address]
