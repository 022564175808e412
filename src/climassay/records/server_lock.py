"""One server at a time on a records database: a lock that the system frees when the process dies, however it dies."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.records import tables
from climassay.records.database import Database

if TYPE_CHECKING:
    from filelock import FileLock

WAIT_SECONDS = 15.0
"""So long a server that starts waits for another one to end: the time that a restart overlaps."""
LOOK_SECONDS = 0.1
SERVER_LOCK = 0x636C6D73
"""Number of the lock in PostgreSQL; beside a SQLite file it is a file."""
_ADDRESS = "server"
"""Name of the entry of ``meta`` that says where the server is."""


class ServerLock:
    """Held by the server of a records database as long as it runs.

    Args:
        url: Of the database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._database: Database | None = None
        self._file: FileLock | None = None
        self._connection: sa.Connection | None = None

    def take(self, on_wait: Callable[[str], None] = lambda _address: None) -> None:
        """Hold the lock from now on; the holder's second call does nothing.

        Args:
            on_wait: Called once, with the address of the other server, before that is waited for.

        Raises:
            InputError: Another server has not ended within :data:`WAIT_SECONDS`.
        """
        if self._database is not None:
            return
        database = Database(self._url)
        until: float | None = None
        while not self._try(database):
            address = _stored_address(database)
            if until is None:
                until = time.monotonic() + WAIT_SECONDS
                on_wait(address)
            if time.monotonic() > until:
                database.close()
                raise InputError(f"This workspace is served at {address} already: open that address, or stop it first.")
            time.sleep(LOOK_SECONDS)
        self._database = database

    def announce(self, address: str) -> None:
        """Tell others where the server is."""
        assert self._database is not None
        database, row = self._database, {"name": _ADDRESS, "value": address}
        database.write(lambda connection: database.insert_new(connection, tables.meta, [row], replacing=("value",)))

    def close(self) -> None:
        """Let another server begin."""
        if self._connection is not None:
            self._connection.close()
        if self._database is not None:
            self._database.close()
        if self._file is not None:
            self._file.release()
        self._database = self._file = self._connection = None

    def _try(self, database: Database) -> bool:
        if database.is_sqlite:
            from filelock import FileLock, Timeout

            path = Path(str(database.url.database))
            file = FileLock(path.with_name(f".{path.name}.server"), timeout=0, mode=0o600)
            try:
                file.acquire()
            except Timeout:
                return False
            self._file = file
            return True
        connection = database.connect()
        if connection.execute(sa.select(sa.func.pg_try_advisory_lock(SERVER_LOCK))).scalar_one():
            self._connection = connection
            return True
        connection.close()
        return False


def _stored_address(database: Database) -> str:
    with database.read() as connection:
        query = sa.select(tables.meta.c.value).where(tables.meta.c.name == _ADDRESS)
        return connection.execute(query).scalar_one_or_none() or "an address that it has not told yet"
