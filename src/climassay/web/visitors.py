"""How much of a server one visitor may have, so that nobody without an account can keep it from the others.

A visitor is an address; of IPv6 its network, because everybody has millions of those. People with an account are not
bounded here, nor are programs of this machine: behind a proxy that tells no addresses everybody would be one of them.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from starlette.requests import HTTPConnection

from climassay.web.accounts import User
from climassay.web.failures import Failure

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
            raise Crowded("You have too many pages open that wait for news: close some of them.")

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
