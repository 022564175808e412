"""Storage of answers in a background thread, and marks on the requests that are in flight.

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
from climassay.records.database import Database, split_keys
from climassay.records.identity import AnsweredRequest, answer_columns, insert_requests

HEARTBEAT_SECONDS = 2.0
"""Interval between heartbeats of a run, in seconds."""
LEASE_SECONDS = 6.0
"""A run's requests no longer count as in flight after this number of seconds without a heartbeat."""
RECENT_SECONDS = 60.0
"""A run is recently active if its last heartbeat is at most this number of seconds old. Such a run may have stored new
answers."""
MARKS_LOCK = 0x636C6D72
"""Number of the PostgreSQL lock for marking requests. SQLite needs no lock, since it allows only one writer."""
BATCH_SECONDS = 0.02
"""Time, in seconds, for which the writer waits for further answers before a transaction. The wait delays the caller,
but no model call."""
SILENCE_SECONDS = 90.0
"""A run with the status ``running`` counts as killed after this number of seconds without a heartbeat."""


def process_identity(pid: int) -> str:
    """Return an identifier of a process: boot id, namespace, process id and start time.

    Returns:
        An empty string if the process has ended or if the system has no ``/proc``.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return "" if state in "ZX" else f"{boot} {Path('/proc/self/ns/pid').stat().st_ino} {pid} {fields[18]}"
    except (OSError, IndexError):
        return ""


def has_died(identity: str | None) -> bool:
    """Return whether a process on this machine has ended; False for processes on other machines."""
    if not identity:
        return False
    *machine_parts, pid, _start_time = identity.split()
    this_machine = process_identity(os.getpid()).split()[:-2]
    return machine_parts == this_machine and process_identity(int(pid)) != identity


OWNER = "owner of "
"""Prefix of the entries in ``meta`` that hold the identities of runs' processes; the run's id follows it."""


class InFlight:
    """Database marks for one run's requests in flight, so that other runs do not send the same requests."""

    def __init__(self, database: Database, run: str) -> None:
        self._database = database
        self._run = run

    def mark(self, keys: Sequence[bytes], *, ignore_others: bool = False) -> tuple[list[bytes], bool]:
        """Mark requests as in flight, except those that another living run has in flight.

        Args:
            keys: Keys of the requests.
            ignore_others: Whether to mark all requests, including requests that other runs have in flight.

        Returns:
            The marked keys, and whether no other run was recently active. Otherwise another run may have stored answers
            to these requests since the caller looked them up.
        """

        def mark_requests(connection: sa.Connection) -> tuple[list[bytes], bool]:
            self._database.lock(connection, MARKS_LOCK)
            active_runs = self._find_recently_active(connection)
            foreign_keys = set() if ignore_others else self._find_marked_keys(connection, active_runs)
            own_keys = [key for key in keys if key not in foreign_keys]
            rows = [{"request": key, "run": self._run} for key in own_keys]
            self._database.insert_new(connection, tables.in_flight, rows, replacing=("run",))
            return own_keys, not active_runs

        return self._database.write(mark_requests, durable=False)

    def find_marks_of_others(self) -> set[bytes]:
        """Return the keys of all requests that other living runs have in flight."""
        with self._database.read() as connection:
            return self._find_marked_keys(connection, self._find_recently_active(connection))

    def unmark(self, keys: Collection[bytes]) -> None:
        """Delete the in-flight marks of requests that this run will not answer, so that other runs can send them."""
        if keys:
            self._database.write(lambda connection: self.unmark_in(connection, list(keys)), durable=False)

    def unmark_in(self, connection: sa.Connection, keys: Sequence[bytes]) -> None:
        """Delete the in-flight marks of requests whose answers are stored in the same transaction."""
        marks = tables.in_flight
        for chunk in split_keys(keys):
            connection.execute(marks.delete().where(marks.c.run == self._run, marks.c.request.in_(chunk)))

    def _find_recently_active(self, connection: sa.Connection) -> Sequence[Sequence[Any]]:
        """Return id, status, last heartbeat and process identity of each other run that was recently active."""
        runs, owner = tables.runs, tables.meta.c.value
        is_recent = sa.and_(runs.c.id != self._run, runs.c.seen_at > time.time() - RECENT_SECONDS)
        query = sa.select(runs.c.id, runs.c.status, runs.c.seen_at, owner).where(is_recent)
        owners = query.outerjoin_from(runs, tables.meta, tables.meta.c.name == OWNER + runs.c.id)
        return connection.execute(owners).all()

    def _find_marked_keys(self, connection: sa.Connection, runs: Sequence[Sequence[Any]]) -> set[bytes]:
        min_heartbeat = time.time() - LEASE_SECONDS
        living_runs = [
            run
            for run, status, heartbeat, owner in runs
            if status == "running" and heartbeat > min_heartbeat and not has_died(owner)
        ]
        if not living_runs:
            return set()
        marks = tables.in_flight
        query = sa.select(marks.c.request).where(marks.c.run.in_(living_runs))
        return set(map(bytes, connection.execute(query).scalars()))


@dataclass(frozen=True, slots=True)
class Submission:
    """Answer to be stored, with a callback."""

    answered: AnsweredRequest
    confirm: Callable[[], None]
    """Function that the writer's thread calls after the transaction is committed."""


class AnswerWriter:
    """Background thread that stores the answers of one run, several per transaction."""

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
        """Raise the error that stopped the writer, if there is one."""
        if self._failure is not None:
            raise self._failure

    def set_urgent(self, is_urgent: bool) -> None:
        """Register (True) or unregister (False) a caller that needs commits without delay."""
        with self._urgency_lock:
            self._n_waiting += 1 if is_urgent else -1
            if self._n_waiting:
                self._urgent.set()
            else:
                self._urgent.clear()

    def close(self) -> None:
        """Store the queued answers and stop the thread."""
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
                    answered_requests = [submission.answered for submission in batch] if self._failure is None else []
                    self._database.write(
                        partial(self._insert_answers, answered_requests), durable=bool(answered_requests)
                    )
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
        """Wait for queued answers and return them, and whether the writer was closed.

        Returns no answers if none arrives before the next heartbeat is due.
        """
        batch: list[Submission] = []
        try:
            submission = self._queue.get(timeout=HEARTBEAT_SECONDS)
        except queue.Empty:
            return batch, False
        if submission is not None:
            self._urgent.wait(BATCH_SECONDS)
        while submission is not None:
            batch.append(submission)
            try:
                submission = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _insert_answers(self, batch: list[AnsweredRequest], connection: sa.Connection) -> None:
        insert_requests(self._database, connection, [answered_request.identity for answered_request in batch])
        answers = [
            {
                "request": answered_request.identity.key,
                "run": self._run,
                "answered_at": answered_request.answered_at,
                **answer_columns(answered_request.answer),
            }
            for answered_request in batch
        ]
        if answers:
            connection.execute(tables.answers.insert(), answers)
            self._in_flight.unmark_in(connection, [row["request"] for row in answers])
        connection.execute(tables.runs.update().where(tables.runs.c.id == self._run).values(seen_at=time.time()))
