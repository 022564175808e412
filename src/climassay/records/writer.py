"""The thread that stores answers: many in one transaction, each confirmed only after the commit."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from climassay.errors import RecordsError
from climassay.records import tables
from climassay.records.answers import AnsweredRequest, answer_columns, storable_text
from climassay.records.database import Database
from climassay.records.identity import Identity, text_digest
from climassay.records.in_flight import HEARTBEAT_SECONDS, InFlight

LINGER_SECONDS = 0.02
"""How long a transaction waits for company. The provider is not kept waiting, only the answer's user is."""


@dataclass(frozen=True, slots=True)
class Submission:
    """An answer to store and whom to tell."""

    answered: AnsweredRequest
    confirm: Callable[[], None]
    """Called from the writer's thread after the commit."""


class AnswerWriter:
    """Stores the answers of one run from a thread of its own (group commit).

    Args:
        database: Where to.
        run: Identifier of the run; its row is touched every two seconds as a sign of life.
        in_flight: The run's marks, which go with the answers.
    """

    def __init__(self, database: Database, run: str, in_flight: InFlight) -> None:
        self._database = database
        self._run = run
        self._in_flight = in_flight
        self._queue: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._hurry = threading.Event()
        self._hurried = 0
        self._hurrying = threading.Lock()
        self._failure: RecordsError | None = None
        self._thread = threading.Thread(target=self._work, name="climassay-records", daemon=True)
        self._thread.start()

    def submit(self, submission: Submission) -> None:
        """Queue an answer; returns at once.

        Raises:
            RecordsError: An earlier answer could not be stored.
        """
        self.check()
        self._queue.put(submission)

    def check(self) -> None:
        """Raise the error that stopped the writer, if any."""
        if self._failure is not None:
            raise self._failure

    def hurry(self, on: bool) -> None:
        """Commit at once (somebody waits, of several threads perhaps) or gather answers for a moment first."""
        with self._hurrying:
            self._hurried += 1 if on else -1
            if self._hurried:
                self._hurry.set()
            else:
                self._hurry.clear()

    def close(self) -> None:
        """Store what is queued, then end the thread."""
        self._hurry.set()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        last_sign = time.monotonic()
        while True:
            batch, ended = self._gather()
            beat = time.monotonic() - last_sign >= HEARTBEAT_SECONDS
            if batch or beat:
                try:
                    self._store(batch)
                    last_sign = time.monotonic()
                except Exception as error:
                    self._fail(error, batch)
            for submission in batch:
                submission.confirm()
            if ended:
                return

    def _gather(self) -> tuple[list[Submission], bool]:
        """The next answers, at least one unless the heartbeat is due, and whether the writer is to end."""
        batch: list[Submission] = []
        try:
            item = self._queue.get(timeout=HEARTBEAT_SECONDS)
        except queue.Empty:
            return batch, False
        if item is not None:
            self._hurry.wait(LINGER_SECONDS)
        while item is not None:
            batch.append(item)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _fail(self, error: Exception, batch: list[Submission]) -> None:
        if not isinstance(error, RecordsError):
            error = RecordsError(f"{len(batch)} answers could not be stored ({type(error).__name__}: {error}).")
        self._failure = error

    def _store(self, batch: list[Submission]) -> None:
        answered = [submission.answered for submission in batch] if self._failure is None else []
        self._database.write(lambda connection: self._insert(connection, answered), durable=bool(answered))

    def _insert(self, connection: sa.Connection, batch: list[AnsweredRequest]) -> None:
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
            self._in_flight.drop_in(connection, [row["request"] for row in answers])
        connection.execute(tables.runs.update().where(tables.runs.c.id == self._run).values(seen_at=time.time()))


def insert_requests(database: Database, connection: sa.Connection, identities: Sequence[Identity]) -> None:
    """Store requests with their texts, as far as they are not there yet."""
    texts, requests = [], []
    for identity in identities:
        prompt, settings = text_digest(identity.prompt), text_digest(identity.settings)
        texts += [
            {"digest": prompt, "body": storable_text(identity.prompt)},
            {"digest": settings, "body": identity.settings},
        ]
        requests.append(
            {
                "key": identity.key,
                "kind": identity.kind,
                "model": identity.model,
                "fingerprint": identity.fingerprint,
                "prompt": prompt,
                "settings": settings,
            }
        )
    database.insert_new(connection, tables.texts, texts)
    database.insert_new(connection, tables.requests, requests)
