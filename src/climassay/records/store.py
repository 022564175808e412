"""Runs with their answers and results in the records database, and a cache of computed values."""

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast
from weakref import WeakSet

import sqlalchemy as sa

from climassay import __version__
from climassay.errors import ClimassayError, RecordsError
from climassay.records import tables
from climassay.records.answer_writer import OWNER, SILENCE_SECONDS, AnswerWriter, InFlight, process_identity
from climassay.records.database import Database, split_keys
from climassay.records.identity import Answer, Kind, build_answer, make_storable_text
from climassay.redaction import without_secrets


class Run:
    """Run of a command, created by :meth:`climassay.records.Records.run` and used as a context manager.

    The status changes from ``running`` to ``done``, ``failed`` (after an exception) or ``interrupted`` (after Ctrl-C).
    If its process is killed, a run counts as ``interrupted``: at once on the same machine, on other machines after 90
    seconds without a heartbeat.

    Attributes:
        id: ``r`` and eight hexadecimal digits, unlike the key of any request.
        in_flight: Marks on the requests that the run has in flight.
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
        self._database.write(self._register)
        self._writer = AnswerWriter(self._database, self.id, self.in_flight)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()
        self._writer = None
        status, error_message = "done", None
        if isinstance(error, KeyboardInterrupt):
            status = "interrupted"
        elif error is not None:
            status = "failed"
            message = str(error) if isinstance(error, ClimassayError) else f"{type(error).__name__}: {error}"
            error_message = without_secrets(make_storable_text(message))
        values = {"status": status, "error": error_message, "ended_at": time.time(), "seen_at": time.time()}

        def end_run(connection: sa.Connection) -> None:
            connection.execute(tables.runs.update().where(tables.runs.c.id == self.id).values(values))
            connection.execute(tables.in_flight.delete().where(tables.in_flight.c.run == self.id))
            connection.execute(tables.meta.delete().where(tables.meta.c.name == OWNER + self.id))

        self._database.write(end_run)

    @property
    def writer(self) -> AnswerWriter:
        """Writer that stores the run's answers.

        Raises:
            RecordsError: The run is not open.
        """
        if self._writer is None:
            raise RecordsError(f"The run {self.id} is not open: answers can be stored only inside its with block.")
        return self._writer

    def save_results(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store computed rows with the run, replacing any earlier table of the same name.

        Args:
            table: Name of the table, at most 80 characters.
            rows: JSON-serialisable rows, which may contain numpy numbers.

        Raises:
            RecordsError: A row contains NaN, infinity or a value that JSON cannot represent.
        """
        entries = [
            {"run": self.id, "name": table, "position": position, "row": _to_json(row, f"row {position} of {table}")}
            for position, row in enumerate(rows)
        ]
        is_in_table = sa.and_(tables.results.c.run == self.id, tables.results.c.name == table)

        def replace_rows(connection: sa.Connection) -> None:
            connection.execute(tables.results.delete().where(is_in_table))
            if entries:
                connection.execute(tables.results.insert(), entries)

        self._database.write(replace_rows)

    def record_reuse(self, answers: Iterable[int]) -> None:
        """Record that this run has reused answers of earlier runs; ``answers`` are their ids."""
        rows = [{"run": self.id, "answer": answer} for answer in answers]
        if rows:
            self._database.write(lambda connection: self._database.insert_new(connection, tables.uses, rows))

    def _register(self, connection: sa.Connection) -> None:
        current_time = time.time()
        is_silent = sa.and_(tables.runs.c.status == "running", tables.runs.c.seen_at < current_time - SILENCE_SECONDS)
        interrupted_values = {"status": "interrupted", "ended_at": tables.runs.c.seen_at}
        connection.execute(tables.runs.update().where(is_silent).values(interrupted_values))
        running_ids_query = sa.select(tables.runs.c.id).where(tables.runs.c.status == "running")
        connection.execute(tables.in_flight.delete().where(tables.in_flight.c.run.not_in(running_ids_query)))
        name = tables.meta.c.name
        running_ids = connection.execute(running_ids_query).scalars().all()
        is_obsolete = sa.and_(name.startswith(OWNER), name.not_in([OWNER + run for run in running_ids]))
        connection.execute(tables.meta.delete().where(is_obsolete))
        owner_row = {"name": OWNER + self.id, "value": process_identity(os.getpid())}
        self._database.insert_new(connection, tables.meta, [owner_row])
        connection.execute(
            tables.runs.insert().values(
                id=self.id,
                command=self._command,
                status="running",
                version=__version__,
                config=self._config,
                seeds=self._seeds,
                started_at=current_time,
                seen_at=current_time,
            )
        )


def _to_json(value: Any, noun: str) -> str:
    def default(item: Any) -> Any:
        if hasattr(item, "tolist"):
            return item.tolist()
        if isinstance(item, os.PathLike):
            return os.fspath(item)
        raise TypeError(f"it holds a {type(item).__name__}")

    try:
        text = json.dumps(value, default=default, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RecordsError(f"The {noun} cannot be stored as JSON: {error}.") from None
    return make_storable_text(text)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """Successful answer in the database."""

    id: int
    """Id of the row in ``answers``."""
    answer: Answer


class Records:
    """Records of a workspace, to be used as a context manager or closed at the end of the process.

    Args:
        url: SQLAlchemy URL: ``sqlite:///path`` (a file with a write-ahead log) or ``postgresql://user@host/name``.

    Raises:
        RecordsError: The database cannot be opened, is corrupt, or has another schema version.

    Example:
        >>> with Records("sqlite:///records.sqlite") as store:
        ...     with store.run("evaluate mcq", config={"file": "questions.csv"}, seeds={"permutations": 0}) as run:
        ...         model = RecordedModel(load_model("local:smollm2"), store, run)
        ...         completions = model.generate(requests)
        ...         run.save_results("scores", [{"accuracy": 0.5, "n": 2}])
    """

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.latest_runs: deque[str] = deque(maxlen=100)
        """Ids of the latest runs that this object created."""

    def __enter__(self) -> "Records":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, command: str, config: Mapping[str, Any], seeds: Mapping[str, Any] | None = None) -> Run:
        """Create a run, to be used as a context manager."""
        run = Run(self.database, command, config, seeds)
        self.latest_runs.append(run.id)
        return run

    def look_up(self, keys: Sequence[bytes], model: str | None = None) -> dict[bytes, StoredAnswer]:
        """Return the newest successful answer to each request, by the request's key.

        Args:
            keys: Keys of requests.
            model: Name of a model; answers that other models gave to requests with the same key are ignored. None
                accepts all.
        """
        stored_answers: dict[bytes, StoredAnswer] = {}
        answers, requests = tables.answers, tables.requests
        columns = (answers, requests.c.key, requests.c.kind)
        with self.database.read() as connection:
            for chunk in split_keys(keys):
                query = (
                    sa.select(*columns)
                    .join(requests, requests.c.key == answers.c.request)
                    .where(answers.c.request.in_(chunk), answers.c.error.is_(None))
                    .order_by(answers.c.id)
                )
                if model is not None:
                    query = query.where(requests.c.model == model)
                for row in connection.execute(query).mappings():
                    answer = build_answer(cast(Kind, row["kind"]), cast(Mapping[str, Any], row))
                    stored_answers[bytes(row["key"])] = StoredAnswer(row["id"], answer)
        return stored_answers

    def forget(self, run: str) -> None:
        """Delete the results and configuration of a run, and all requests and answers that no other run uses.

        Answers that another run has reused become answers of that run, so that they are deleted with it. The run itself
        remains, with its command and times.
        """
        runs, answers, uses, requests, texts = (
            tables.runs, tables.answers, tables.uses, tables.requests, tables.texts,
        )  # fmt: skip
        next_run = sa.select(sa.func.min(uses.c.run)).where(uses.c.answer == answers.c.id, uses.c.run != run)
        is_reused = sa.exists().where(uses.c.answer == answers.c.id, uses.c.run != run)
        is_own_answer = sa.exists().where(answers.c.id == uses.c.answer, answers.c.run == uses.c.run)

        def delete_rows(connection: sa.Connection) -> None:
            connection.execute(
                answers.update().where(answers.c.run == run, is_reused).values(run=next_run.scalar_subquery())
            )
            connection.execute(uses.delete().where(sa.or_(uses.c.run == run, is_own_answer)))
            rows = connection.execute(sa.select(answers.c.id, answers.c.request).where(answers.c.run == run)).all()
            connection.execute(tables.results.delete().where(tables.results.c.run == run))
            connection.execute(runs.update().where(runs.c.id == run).values(config="{}", error=None))
            for chunk in split_keys(rows):
                connection.execute(answers.delete().where(answers.c.id.in_([row.id for row in chunk])))
                has_answer = sa.exists().where(answers.c.request == requests.c.key)
                is_unanswered = sa.and_(requests.c.key.in_({row.request for row in chunk}), ~has_answer)
                digests = connection.execute(
                    sa.select(requests.c.prompt, requests.c.settings).where(is_unanswered)
                ).all()
                connection.execute(requests.delete().where(is_unanswered))
                is_unused = sa.and_(
                    texts.c.digest.in_({digest for row in digests for digest in row}),
                    ~sa.exists().where(
                        sa.or_(requests.c.prompt == texts.c.digest, requests.c.settings == texts.c.digest)
                    ),
                )
                connection.execute(texts.delete().where(is_unused))

        self.database.write(delete_rows)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()


MAX_CACHED_VALUES = 2000
"""Maximum number of cached values; the oldest are deleted first."""
_databases_with_cache: WeakSet[Database] = WeakSet()
"""Databases in which the table ``computed_values`` exists."""
computed_values = sa.Table(
    "computed",
    sa.MetaData(),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("version", sa.String(40), nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    comment="Cache of values computed from results of runs, by a hash of their inputs; may be deleted.",
)


def cached_value(database: Database, key_parts: tuple[object, ...], compute: Callable[[], Any] | None = None) -> Any:
    """Return a cached value; if there is none, compute and cache it.

    Args:
        database: Records database.
        key_parts: Texts and numbers that identify the value and its inputs, for example ids of completed runs.
        compute: Function that returns the value, which must be JSON-serialisable.

    Returns:
        The value as parsed from JSON; None if it is not cached and ``compute`` is None. Values cached by another
            version of climassay are ignored.
    """
    if database not in _databases_with_cache:
        database.create_tables(computed_values.metadata)
        _databases_with_cache.add(database)
    key = hashlib.sha256(json.dumps([__version__, *key_parts]).encode()).hexdigest()
    text = database.scalar(sa.select(computed_values.c.value).where(computed_values.c.key == key))
    if text is None and compute is not None:
        text = json.dumps(compute(), ensure_ascii=False)
        row = {"key": key, "version": __version__, "made_at": time.time(), "value": text}
        cutoff_time = (
            sa.select(computed_values.c.made_at)
            .order_by(computed_values.c.made_at.desc())
            .offset(MAX_CACHED_VALUES)
            .limit(1)
        )
        is_outdated = sa.or_(
            computed_values.c.version != __version__, computed_values.c.made_at <= cutoff_time.scalar_subquery()
        )

        def replace_value(connection: sa.Connection) -> None:
            connection.execute(computed_values.delete().where(is_outdated))
            database.insert_new(connection, computed_values, [row], replacing=("value", "made_at"))

        database.write(replace_value, durable=False)
    return None if text is None else json.loads(text)
