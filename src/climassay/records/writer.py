"""The thread that stores answers: many in one transaction, each confirmed only after the commit."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from climassay.errors import RecordsError
from climassay.records import tables
from climassay.records.answers import AnsweredRequest, answer_columns, storable_text
from climassay.records.database import Database
from climassay.records.identity import text_digest

LINGER_SECONDS = 0.02
"""How long a transaction waits for company. The provider is not kept waiting, only the answer's user is."""
HEARTBEAT_SECONDS = 15.0
"""How often a run says that it is alive."""


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
        run: Identifier of the run; its row is touched every 15 seconds as a sign of life.
    """

    def __init__(self, database: Database, run: str) -> None:
        self._database = database
        self._run = run
        self._queue: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._hurry = threading.Event()
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
        """Commit at once (somebody waits) or gather answers for a moment first."""
        if on:
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
        self._database.write(lambda connection: self._insert(connection, answered))

    def _insert(self, connection: sa.Connection, batch: list[AnsweredRequest]) -> None:
        texts, requests, answers = [], [], []
        for answered in batch:
            identity = answered.identity
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
            answers.append(
                {
                    "request": identity.key,
                    "run": self._run,
                    "answered_at": answered.answered_at,
                    **answer_columns(answered.answer),
                }
            )
        self._database.insert_new(connection, tables.texts, texts)
        self._database.insert_new(connection, tables.requests, requests)
        if answers:
            connection.execute(tables.answers.insert(), answers)
        connection.execute(tables.runs.update().where(tables.runs.c.id == self._run).values(seen_at=time.time()))
