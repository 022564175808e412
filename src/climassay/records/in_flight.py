"""Requests that a run is asking, marked in the database, so that another run waits for the answers.

A mark counts while its run lives: a run gives a sign of life every two seconds, and is taken for dead after six without
one. The mark goes in the transaction that stores the answer, so that whoever waits finds the answer as soon as the mark
is gone; where there is none (the request failed, or the run died), the one who waits asks.
"""

import time
from collections.abc import Collection, Sequence

import sqlalchemy as sa

from climassay.records import tables
from climassay.records.database import Database

HEARTBEAT_SECONDS = 2.0
"""How often a run says that it is alive."""
LEASE_SECONDS = 6.0
"""A run without a sign of life for so long holds no marks any more."""
LATELY_SECONDS = 60.0
"""Looking up what is missing and marking it is done in less."""
MARKS_LOCK = 0x636C6D72
"""Number of the PostgreSQL lock under which requests are marked; on SQLite there is one writer anyway."""
_AT_ONCE = 500


class InFlight:
    """The marks of one run.

    Args:
        database: Of the records.
        run: Id of the run, which is open.
    """

    def __init__(self, database: Database, run: str) -> None:
        self._database = database
        self._run = run

    def take(self, keys: Sequence[bytes], *, all_of_them: bool = False) -> tuple[list[bytes], bool]:
        """Mark the requests that no other living run is asking.

        Args:
            keys: Of the requests.
            all_of_them: Take those of others, too: they were waited for long enough.

        Returns:
            The keys that are marked now; and whether no other run has been at work lately, which might have stored
            answers to them since they were looked up.
        """
        runs = tables.runs
        lately = sa.and_(runs.c.id != self._run, runs.c.seen_at > time.time() - LATELY_SECONDS)

        def work(connection: sa.Connection) -> tuple[list[bytes], bool]:
            self._database.lock(connection, MARKS_LOCK)
            others = set() if all_of_them else self._held(connection)
            mine = [key for key in keys if key not in others]
            rows = [{"request": key, "run": self._run} for key in mine]
            self._database.insert_new(connection, tables.in_flight, rows, replacing=("run",))
            company = connection.execute(sa.select(runs.c.id).where(lately).limit(1)).first()
            return mine, company is None

        return self._database.write(work, durable=False)

    def held_by_others(self) -> set[bytes]:
        """Keys of all requests that other living runs are asking."""
        with self._database.read() as connection:
            return self._held(connection)

    def drop(self, keys: Collection[bytes]) -> None:
        """Take marks away from requests that will not be answered."""
        if keys:
            self._database.write(lambda connection: self.drop_in(connection, list(keys)), durable=False)

    def drop_in(self, connection: sa.Connection, keys: Sequence[bytes]) -> None:
        """Take marks away in a transaction that stores the answers."""
        marks = tables.in_flight
        for start in range(0, len(keys), _AT_ONCE):
            some = marks.c.request.in_(keys[start : start + _AT_ONCE])
            connection.execute(marks.delete().where(marks.c.run == self._run, some))

    def _held(self, connection: sa.Connection) -> set[bytes]:
        marks, runs = tables.in_flight, tables.runs
        alive = sa.and_(runs.c.status == "running", runs.c.seen_at > time.time() - LEASE_SECONDS)
        held = sa.select(marks.c.request).join(runs, runs.c.id == marks.c.run).where(marks.c.run != self._run, alive)
        return set(map(bytes, connection.execute(held).scalars()))
