"""A run: one command with its configuration, from start to end, and the results it computed."""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from climassay import __version__
from climassay.errors import ClimassayError, RecordsError
from climassay.records import tables
from climassay.records.answers import storable_text
from climassay.records.database import Database
from climassay.records.in_flight import InFlight
from climassay.records.writer import AnswerWriter
from climassay.redaction import without_secrets

SILENCE_SECONDS = 90.0
"""A running run without a sign of life for so long has been killed."""


class Run:
    """One entry of the table of runs; made by :meth:`climassay.records.Records.run` and used in a ``with``.

    The status goes from ``running`` to ``done``, ``failed`` (an exception) or ``interrupted`` (Ctrl-C). A killed run
    is shown as ``interrupted`` once it has given no sign of life for 90 seconds.

    Attributes:
        id: ``r`` and eight hexadecimal digits; cannot be mistaken for the key of a request.
        in_flight: Its marks on the requests that it is asking.
    """

    def __init__(
        self, database: Database, command: str, config: Mapping[str, Any], seeds: Mapping[str, Any] | None = None
    ) -> None:
        self.id = "r" + os.urandom(4).hex()
        self.in_flight = InFlight(database, self.id)
        self._database = database
        self._command = command
        self._config = _to_json(config, "configuration")
        self._seeds = _to_json(seeds or {}, "seeds")
        self._writer: AnswerWriter | None = None

    def __enter__(self) -> "Run":
        self._database.write(self._start)
        self._writer = AnswerWriter(self._database, self.id, self.in_flight)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()
        self._writer = None
        status, sentence = _status_of(error)
        values = {"status": status, "error": sentence, "ended_at": time.time(), "seen_at": time.time()}

        def end(connection: sa.Connection) -> None:
            connection.execute(self._row().values(values))
            connection.execute(tables.in_flight.delete().where(tables.in_flight.c.run == self.id))

        self._database.write(end)

    @property
    def writer(self) -> AnswerWriter:
        """Where answers of this run are handed in.

        Raises:
            RecordsError: Outside of the ``with`` block.
        """
        if self._writer is None:
            raise RecordsError(f"The run {self.id} is not open: answers are stored inside its with block only.")
        return self._writer

    def save_results(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep computed rows with the run; saving a table again replaces it.

        Args:
            table: Name of the table, at most 80 characters.
            rows: What json can write, numpy numbers included.

        Raises:
            RecordsError: A row holds NaN, infinity or something that JSON has no word for.
        """
        entries = [
            {"run": self.id, "name": table, "position": position, "row": _to_json(row, f"row {position} of {table}")}
            for position, row in enumerate(rows)
        ]
        ours = sa.and_(tables.results.c.run == self.id, tables.results.c.name == table)

        def work(connection: sa.Connection) -> None:
            connection.execute(tables.results.delete().where(ours))
            if entries:
                connection.execute(tables.results.insert(), entries)

        self._database.write(work)

    def note_uses(self, answers: Iterable[int]) -> None:
        """Remember that answers of earlier runs were served to this one.

        Args:
            answers: Identifiers of rows of ``answers``.
        """
        rows = [{"run": self.id, "answer": answer} for answer in answers]
        if rows:
            self._database.write(lambda connection: self._database.insert_new(connection, tables.uses, rows))

    def _row(self) -> sa.Update:
        return tables.runs.update().where(tables.runs.c.id == self.id)

    def _start(self, connection: sa.Connection) -> None:
        now = time.time()
        silent = sa.and_(tables.runs.c.status == "running", tables.runs.c.seen_at < now - SILENCE_SECONDS)
        ended = {"status": "interrupted", "ended_at": tables.runs.c.seen_at}
        connection.execute(tables.runs.update().where(silent).values(ended))
        running = sa.select(tables.runs.c.id).where(tables.runs.c.status == "running")
        connection.execute(tables.in_flight.delete().where(tables.in_flight.c.run.not_in(running)))
        connection.execute(
            tables.runs.insert().values(
                id=self.id,
                command=self._command,
                status="running",
                version=__version__,
                config=self._config,
                seeds=self._seeds,
                started_at=now,
                seen_at=now,
            )
        )


def _status_of(error: BaseException | None) -> tuple[str, str | None]:
    if error is None:
        return "done", None
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", None
    sentence = str(error) if isinstance(error, ClimassayError) else f"{type(error).__name__}: {error}"
    return "failed", without_secrets(storable_text(sentence))


def _to_json(value: Any, what: str) -> str:
    def default(item: Any) -> Any:
        if hasattr(item, "tolist"):
            return item.tolist()
        if isinstance(item, os.PathLike):
            return os.fspath(item)
        raise TypeError(f"it holds a {type(item).__name__}")

    try:
        text = json.dumps(value, default=default, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RecordsError(f"The {what} cannot be stored as JSON: {error}.") from None
    return storable_text(text)
