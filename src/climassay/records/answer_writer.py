"""Storing of answers by a thread of its own, and marks on requests that a run has in flight.

A run updates its heartbeat every two seconds and counts as dead after six seconds without one; a run whose process has
ended on this machine counts as dead at once. Each request of a living run is marked, so that other runs wait for its
answer. The transaction that stores the answer deletes the mark. If a mark disappears without an answer, because the
request failed or the run died, a waiting run sends the request itself.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from climassay.errors import RecordsError
from climassay.records import tables
from climassay.records.database import Database, chunks
from climassay.records.identity import AnsweredRequest, answer_columns, insert_requests

HEARTBEAT_SECONDS = 2.0
"""Interval of a run's heartbeat in seconds."""
LEASE_SECONDS = 6.0
"""Seconds without a heartbeat after which the marks of a run expire."""
RECENT_SECONDS = 60.0
"""Seconds since the last heartbeat of a run that may have stored answers since they were looked up."""
MARKS_LOCK = 0x636C6D72
"""Number of the PostgreSQL lock for marking requests; SQLite allows only one writer anyway."""
BATCH_SECONDS = 0.02
"""Seconds to collect further answers before a transaction; this delays the caller, not the provider."""
SILENCE_SECONDS = 90.0
"""Seconds without a heartbeat after which a running run counts as killed."""


def process_identity(pid: int) -> str:
    """Return boot id, namespace, process id and start time, which identify a process uniquely.

    Returns:
        An empty string if the process has ended or the system has no ``/proc``.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return "" if state in "ZX" else f"{boot} {Path('/proc/self/ns/pid').stat().st_ino} {pid} {fields[18]}"
    except (OSError, IndexError):
        return ""


def has_died(identity: str | None) -> bool:
    """Return whether a process of this machine has ended; False for processes of other machines."""
    if not identity:
        return False
    *machine, pid, _start_time = identity.split()
    this_machine = process_identity(os.getpid()).split()[:-2]
    return machine == this_machine and process_identity(int(pid)) != identity


OWNER = "owner of "
"""Prefix, before a run's id, of the entry in ``meta`` that holds the identity of the run's process."""


class InFlight:
    """Marks of one run on the requests that it has in flight."""

    def __init__(self, database: Database, run: str) -> None:
        self._database = database
        self._run = run

    def mark(self, keys: Sequence[bytes], *, ignore_others: bool = False) -> tuple[list[bytes], bool]:
        """Mark requests that no other living run has in flight.

        Args:
            keys: Keys of the requests.
            ignore_others: Mark all requests, including those of other runs.

        Returns:
            The marked keys, and whether no other run was recently active. Otherwise another run may have stored answers
            to them since they were looked up.
        """

        def work(connection: sa.Connection) -> tuple[list[bytes], bool]:
            self._database.lock(connection, MARKS_LOCK)
            active_runs = self._recently_active(connection)
            foreign_keys = set() if ignore_others else self._marked(connection, active_runs)
            own_keys = [key for key in keys if key not in foreign_keys]
            rows = [{"request": key, "run": self._run} for key in own_keys]
            self._database.insert_new(connection, tables.in_flight, rows, replacing=("run",))
            return own_keys, not active_runs

        return self._database.write(work, durable=False)

    def marked_by_others(self) -> set[bytes]:
        """Return the keys of all requests that other living runs have in flight."""
        with self._database.read() as connection:
            return self._marked(connection, self._recently_active(connection))

    def unmark(self, keys: Collection[bytes]) -> None:
        """Delete the marks of requests that will not be answered."""
        if keys:
            self._database.write(lambda connection: self.unmark_in(connection, list(keys)), durable=False)

    def unmark_in(self, connection: sa.Connection, keys: Sequence[bytes]) -> None:
        """Delete marks in the transaction that stores the answers."""
        marks = tables.in_flight
        for chunk in chunks(keys):
            connection.execute(marks.delete().where(marks.c.run == self._run, marks.c.request.in_(chunk)))

    def _recently_active(self, connection: sa.Connection) -> Sequence[Sequence[Any]]:
        """Return id, status, heartbeat and process of other runs that were recently active."""
        runs, owner = tables.runs, tables.meta.c.value
        is_recent = sa.and_(runs.c.id != self._run, runs.c.seen_at > time.time() - RECENT_SECONDS)
        query = sa.select(runs.c.id, runs.c.status, runs.c.seen_at, owner).where(is_recent)
        owners = query.outerjoin_from(runs, tables.meta, tables.meta.c.name == OWNER + runs.c.id)
        return connection.execute(owners).all()

    def _marked(self, connection: sa.Connection, runs: Sequence[Sequence[Any]]) -> set[bytes]:
        oldest = time.time() - LEASE_SECONDS
        living = [
            run
            for run, status, heartbeat, owner in runs
            if status == "running" and heartbeat > oldest and not has_died(owner)
        ]
        if not living:
            return set()
        marks = tables.in_flight
        query = sa.select(marks.c.request).where(marks.c.run.in_(living))
        return set(map(bytes, connection.execute(query).scalars()))


@dataclass(frozen=True, slots=True)
class Submission:
    """Answer to store, with a callback."""

    answered: AnsweredRequest
    confirm: Callable[[], None]
    """Function that the writer's thread calls after the commit."""


class AnswerWriter:
    """Writer that stores the answers of one run in a background thread, several per transaction."""

    def __init__(self, database: Database, run: str, in_flight: InFlight) -> None:
        self._database = database
        self._run = run
        self._in_flight = in_flight
        self._queue: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._urgent = threading.Event()
        self._n_waiting = 0
        self._urgency_lock = threading.Lock()
        self._failure: RecordsError | None = None
        self._thread = threading.Thread(target=self._write_batches, name="climassay-records", daemon=True)
        self._thread.start()

    def submit(self, submission: Submission) -> None:
        """Queue an answer and return at once.

        Raises:
            RecordsError: An earlier answer could not be stored.
        """
        self.check()
        self._queue.put(submission)

    def check(self) -> None:
        """Raise the error that stopped the writer, if any."""
        if self._failure is not None:
            raise self._failure

    def set_urgent(self, is_urgent: bool) -> None:
        """Register a caller that needs commits without delay (True), or unregister it (False)."""
        with self._urgency_lock:
            self._n_waiting += 1 if is_urgent else -1
            if self._n_waiting:
                self._urgent.set()
            else:
                self._urgent.clear()

    def close(self) -> None:
        """Store the queued answers and end the thread."""
        self._urgent.set()
        self._queue.put(None)
        self._thread.join()

    def _write_batches(self) -> None:
        last_heartbeat = time.monotonic()
        while True:
            batch, is_closed = self._collect_batch()
            is_heartbeat_due = time.monotonic() - last_heartbeat >= HEARTBEAT_SECONDS
            if batch or is_heartbeat_due:
                try:
                    answered = [submission.answered for submission in batch] if self._failure is None else []
                    self._database.write(partial(self._insert_answers, answered), durable=bool(answered))
                    last_heartbeat = time.monotonic()
                except RecordsError as error:
                    self._failure = error
                except Exception as error:
                    message = f"{type(error).__name__}: {error}"
                    self._failure = RecordsError(f"{len(batch)} answers could not be stored ({message}).")
            for submission in batch:
                submission.confirm()
            if is_closed:
                return

    def _collect_batch(self) -> tuple[list[Submission], bool]:
        """Return queued answers, none if the heartbeat is due, and whether the writer was closed."""
        batch: list[Submission] = []
        try:
            item = self._queue.get(timeout=HEARTBEAT_SECONDS)
        except queue.Empty:
            return batch, False
        if item is not None:
            self._urgent.wait(BATCH_SECONDS)
        while item is not None:
            batch.append(item)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _insert_answers(self, batch: list[AnsweredRequest], connection: sa.Connection) -> None:
        insert_requests(self._database, connection, [answered.identity for answered in batch])
        answers = [
            {
                "request": answered.identity.key,
                "run": self._run,
                "answered_at": answered.answered_at,
                **answer_columns(answered.answer),
            }
            for answered in batch
        ]
        if answers:
            connection.execute(tables.answers.insert(), answers)
            self._in_flight.unmark_in(connection, [row["request"] for row in answers])
        connection.execute(tables.runs.update().where(tables.runs.c.id == self._run).values(seen_at=time.time()))
