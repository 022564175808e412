"""The records: runs, the requests that they are asking, and the answers and results that they store.

A run gives a sign of life every two seconds, and is taken for dead after six without one. A request that a living run
is asking is marked, so that another run waits for the answer. The mark goes in the transaction that stores the answer:
whoever waits finds the answer as soon as the mark is gone; where there is none (the request failed, or the run died),
the one who waits asks. A run whose process has died on this machine is known to be dead at once.

What takes long to compute from results is kept, too, by what it was computed from (:func:`cached`).
"""

import hashlib
import json
import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, cast
from weakref import WeakSet

import sqlalchemy as sa

from climassay import __version__
from climassay.errors import ClimassayError, RecordsError
from climassay.models.contract import (
    Completion,
    FinishReason,
    GenerationRequest,
    Message,
    OptionRequest,
    OptionScores,
    ScoringMethod,
    Usage,
)
from climassay.records import tables
from climassay.records.database import Database, chunks
from climassay.redaction import without_secrets

Kind = Literal["generate", "options"]


class Renderer(Protocol):
    """The part of a model that decides what a request is."""

    @property
    def name(self) -> str:
        """As the user wrote it; kept for the reader, not part of the key."""

    @property
    def fingerprint(self) -> str:
        """Over all that decides what the model answers."""

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the model receives it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A request as the records know it."""

    key: bytes
    """SHA-256 of the canonical JSON of ``[kind, fingerprint, prompt, settings]``."""
    kind: Kind
    model: str
    fingerprint: str
    prompt: str
    """The rendered prompt."""
    settings: str
    """Canonical JSON: schema and sampling of a generation, options of a scoring."""

    def key_under(self, fingerprint: str) -> bytes:
        """The key of the same request to a model of another fingerprint."""
        return text_digest(canonical_json([self.kind, fingerprint, self.prompt, self.settings]))


def canonical_json(value: Any) -> str:
    """JSON that is the same text for the same value: sorted keys, no spaces, ASCII, never NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def text_digest(text: str) -> bytes:
    """SHA-256 of a text; lone surrogates, which UTF-8 cannot carry, count as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def generation_identity(model: Renderer, request: GenerationRequest) -> Identity:
    """Identity of a generation: fingerprint, rendered prompt, schema and all sampling settings."""
    return _identity("generate", model, request, {"sampling": asdict(request.sampling), "schema": request.schema})


def scoring_identity(model: Renderer, request: OptionRequest) -> Identity:
    """Identity of a scoring: fingerprint, rendered prompt and the options in their order."""
    return _identity("options", model, request, {"options": list(request.options)})


def _identity(kind: Kind, model: Renderer, request: GenerationRequest | OptionRequest, settings: Any) -> Identity:
    fingerprint = model.fingerprint
    prompt, stated = model.render(request.messages, request.assistant_prefix), canonical_json(settings)
    key = text_digest(canonical_json([kind, fingerprint, prompt, stated]))
    return Identity(key, kind, model.name, fingerprint, prompt, stated)


Answer = Completion | OptionScores

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """One answer on its way into the database."""

    identity: Identity
    answer: Answer
    answered_at: float
    """Seconds since 1970, UTC."""


def storable_text(text: str) -> str:
    """The text without what databases cannot hold: NUL and lone surrogates become U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_answer(answer: Answer) -> Answer:
    """The answer in the form in which it can be stored and read back unchanged.

    A score that is not a finite number becomes a failure, since no table may carry NaN.
    """
    error = None if answer.error is None else storable_text(answer.error)
    if isinstance(answer, Completion):
        text, reasoning = storable_text(answer.text), storable_text(answer.reasoning)
        return replace(answer, text=text, error=error, reasoning=reasoning)
    if error is None and not all(map(math.isfinite, answer.logprobs)):
        return OptionScores.failed("The model returned a log-probability that is not a finite number.", answer.usage)
    return replace(answer, logprobs=tuple(map(float, answer.logprobs)), error=error)


def answer_columns(answer: Answer) -> dict[str, Any]:
    """The columns of ``answers`` that hold the answer itself."""
    columns: dict[str, Any] = {
        "text": None,
        "logprobs": None,
        "reasoning": None,
        "outcome": "error",
        "error": answer.error,
        "prompt_tokens": answer.usage.prompt_tokens,
        "completion_tokens": answer.usage.completion_tokens,
        "reasoning_tokens": answer.usage.reasoning_tokens,
        "attempts": answer.usage.requests,
        "cost": answer.usage.cost,
    }
    if answer.error is not None:
        return columns
    if isinstance(answer, Completion):
        return columns | {"text": answer.text, "reasoning": answer.reasoning or None, "outcome": answer.finish_reason}
    return columns | {"logprobs": json.dumps(answer.logprobs, allow_nan=False), "outcome": answer.method}


def answer_from_row(kind: Kind, row: Mapping[str, Any]) -> Answer:
    """Rebuild an answer without error from its row."""
    usage = Usage(row["prompt_tokens"], row["completion_tokens"], row["attempts"], row["cost"], row["reasoning_tokens"])
    if kind == "generate":
        return Completion(row["text"], cast(FinishReason, row["outcome"]), usage, reasoning=row["reasoning"] or "")
    return OptionScores(tuple(json.loads(row["logprobs"])), cast(ScoringMethod, row["outcome"]), usage)


HEARTBEAT_SECONDS = 2.0
"""How often a run says that it is alive."""
LEASE_SECONDS = 6.0
"""A run without a sign of life for so long holds no marks any more."""
LATELY_SECONDS = 60.0
"""Looking up what is missing and marking it is done in less."""
MARKS_LOCK = 0x636C6D72
"""Number of the PostgreSQL lock under which requests are marked; on SQLite there is one writer anyway."""
LINGER_SECONDS = 0.02
"""How long a transaction waits for company. The provider is not kept waiting, only the answer's user is."""
SILENCE_SECONDS = 90.0
"""A running run without a sign of life for so long has been killed."""


def process_identity(pid: int) -> str:
    """What tells a process from all others, before and after: boot, name space, number, time of its start.

    Empty where the process has ended, or where the system does not tell (no ``/proc``).
    """
    try:
        state, *more = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return "" if state in "ZX" else f"{boot} {Path('/proc/self/ns/pid').stat().st_ino} {pid} {more[18]}"
    except (OSError, IndexError):
        return ""


def has_died(identity: str | None) -> bool:
    """Whether a process of this machine has ended; False where that cannot be told, as of other machines."""
    if not identity:
        return False
    *where, pid, _started = identity.split()
    here = process_identity(os.getpid()).split()[:-2]
    return where == here and process_identity(int(pid)) != identity


OWNER = "owner of "
"""Before a run's id: name of the entry that says which process works on it, as long as it does."""


class InFlight:
    """The marks of one run."""

    def __init__(self, database: Database, run: str) -> None:
        self._database = database
        self._run = run

    def take(self, keys: Sequence[bytes], *, all_of_them: bool = False) -> tuple[list[bytes], bool]:
        """Mark the requests that no other living run is asking.

        Returns:
            The keys that are marked now; and whether no other run has been at work lately, which might have stored
            answers to them since they were looked up.
        """

        def work(connection: sa.Connection) -> tuple[list[bytes], bool]:
            self._database.lock(connection, MARKS_LOCK)
            lately = self._others(connection)
            others = set() if all_of_them else self._held(connection, lately)
            mine = [key for key in keys if key not in others]
            rows = [{"request": key, "run": self._run} for key in mine]
            self._database.insert_new(connection, tables.in_flight, rows, replacing=("run",))
            return mine, not lately

        return self._database.write(work, durable=False)

    def held_by_others(self) -> set[bytes]:
        """Keys of all requests that other living runs are asking."""
        with self._database.read() as connection:
            return self._held(connection, self._others(connection))

    def drop(self, keys: Collection[bytes]) -> None:
        """Take marks away from requests that will not be answered."""
        if keys:
            self._database.write(lambda connection: self.drop_in(connection, list(keys)), durable=False)

    def drop_in(self, connection: sa.Connection, keys: Sequence[bytes]) -> None:
        """Take marks away in a transaction that stores the answers."""
        marks = tables.in_flight
        for chunk in chunks(keys):
            connection.execute(marks.delete().where(marks.c.run == self._run, marks.c.request.in_(chunk)))

    def _others(self, connection: sa.Connection) -> Sequence[Sequence[Any]]:
        """Other runs that were at work lately: id, status, last sign of life, and which process works on it."""
        runs, owner = tables.runs, tables.meta.c.value
        lately = sa.and_(runs.c.id != self._run, runs.c.seen_at > time.time() - LATELY_SECONDS)
        query = sa.select(runs.c.id, runs.c.status, runs.c.seen_at, owner).where(lately)
        owners = query.outerjoin_from(runs, tables.meta, tables.meta.c.name == OWNER + runs.c.id)
        return connection.execute(owners).all()

    def _held(self, connection: sa.Connection, others: Sequence[Sequence[Any]]) -> set[bytes]:
        since = time.time() - LEASE_SECONDS
        living = [
            run for run, status, seen, owner in others if status == "running" and seen > since and not has_died(owner)
        ]
        if not living:
            return set()
        marks = tables.in_flight
        held = sa.select(marks.c.request).where(marks.c.run.in_(living))
        return set(map(bytes, connection.execute(held).scalars()))


@dataclass(frozen=True, slots=True)
class Submission:
    """An answer to store and whom to tell."""

    answered: AnsweredRequest
    confirm: Callable[[], None]
    """Called from the writer's thread after the commit."""


class AnswerWriter:
    """Stores the answers of one run from a thread of its own (group commit)."""

    def __init__(self, database: Database, run: str, in_flight: InFlight) -> None:
        self._database = database
        self._run = run
        self._in_flight = in_flight
        self._queue: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._urgent = threading.Event()
        self._waiting = 0
        self._urgency_lock = threading.Lock()
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

    def set_urgent(self, on: bool) -> None:
        """Commit at once (somebody waits, of several threads perhaps) or gather answers for a moment first."""
        with self._urgency_lock:
            self._waiting += 1 if on else -1
            if self._waiting:
                self._urgent.set()
            else:
                self._urgent.clear()

    def close(self) -> None:
        """Store what is queued, then end the thread."""
        self._urgent.set()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        last_sign = time.monotonic()
        while True:
            batch, ended = self._gather()
            beat = time.monotonic() - last_sign >= HEARTBEAT_SECONDS
            if batch or beat:
                try:
                    answered = [submission.answered for submission in batch] if self._failure is None else []
                    self._database.write(partial(self._insert, answered), durable=bool(answered))
                    last_sign = time.monotonic()
                except RecordsError as error:
                    self._failure = error
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"
                    self._failure = RecordsError(f"{len(batch)} answers could not be stored ({said}).")
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
            self._urgent.wait(LINGER_SECONDS)
        while item is not None:
            batch.append(item)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _insert(self, batch: list[AnsweredRequest], connection: sa.Connection) -> None:
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


class Run:
    """One entry of the table of runs; made by :meth:`climassay.records.Records.run` and used in a ``with``.

    The status goes from ``running`` to ``done``, ``failed`` (an exception) or ``interrupted`` (Ctrl-C). A killed run
    is shown as ``interrupted``: at once on its machine, elsewhere when it has given no sign of life for 90 seconds.

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
        status, sentence = "done", None
        if isinstance(error, KeyboardInterrupt):
            status = "interrupted"
        elif error is not None:
            status = "failed"
            said = str(error) if isinstance(error, ClimassayError) else f"{type(error).__name__}: {error}"
            sentence = without_secrets(storable_text(said))
        values = {"status": status, "error": sentence, "ended_at": time.time(), "seen_at": time.time()}

        def end(connection: sa.Connection) -> None:
            connection.execute(tables.runs.update().where(tables.runs.c.id == self.id).values(values))
            connection.execute(tables.in_flight.delete().where(tables.in_flight.c.run == self.id))
            connection.execute(tables.meta.delete().where(tables.meta.c.name == OWNER + self.id))

        self._database.write(end)

    @property
    def writer(self) -> AnswerWriter:
        """Where answers of this run are handed in.

        Raises:
            RecordsError: Outside of the ``with`` block.
        """
        if self._writer is None:
            raise RecordsError(f"The run {self.id} is not open: answers can be stored only inside its with block.")
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
        """Remember that answers of earlier runs were served to this one."""
        rows = [{"run": self.id, "answer": answer} for answer in answers]
        if rows:
            self._database.write(lambda connection: self._database.insert_new(connection, tables.uses, rows))

    def _start(self, connection: sa.Connection) -> None:
        now = time.time()
        silent = sa.and_(tables.runs.c.status == "running", tables.runs.c.seen_at < now - SILENCE_SECONDS)
        ended = {"status": "interrupted", "ended_at": tables.runs.c.seen_at}
        connection.execute(tables.runs.update().where(silent).values(ended))
        running = sa.select(tables.runs.c.id).where(tables.runs.c.status == "running")
        connection.execute(tables.in_flight.delete().where(tables.in_flight.c.run.not_in(running)))
        owners = tables.meta.c.name
        ours = connection.execute(running).scalars().all()
        gone = sa.and_(owners.startswith(OWNER), owners.not_in([OWNER + run for run in ours]))
        connection.execute(tables.meta.delete().where(gone))
        owner = {"name": OWNER + self.id, "value": process_identity(os.getpid())}
        self._database.insert_new(connection, tables.meta, [owner])
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


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer without error from the database."""

    id: int
    """Row of ``answers``."""
    answer: Answer


class Records:
    """The durable store of a workspace; open it once a process, close it at the end (or use it in a ``with``).

    Args:
        url: SQLAlchemy URL: ``sqlite:///path`` (a file; write-ahead log) or ``postgresql://user@host/name``.

    Raises:
        RecordsError: The database cannot be opened, is corrupt, or is of a newer climassay.

    Example:
        >>> with Records("sqlite:///records.sqlite") as store:
        ...     with store.run("evaluate mcq", config={"file": "questions.csv"}, seeds={"permutations": 0}) as run:
        ...         model = RecordedModel(load_model("local:smollm2"), store, run)
        ...         completions = model.generate(requests)
        ...         run.save_results("scores", [{"accuracy": 0.5, "n": 2}])
    """

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.begun: deque[str] = deque(maxlen=100)
        """Ids of the latest runs that were begun here."""

    def __enter__(self) -> "Records":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, command: str, config: Mapping[str, Any], seeds: Mapping[str, Any] | None = None) -> Run:
        """A new run, to be used in a ``with``.

        Args:
            command: As the user knows it, for example ``evaluate mcq``.
            config: Everything that decides the outcome; API keys found in it are blanked.
            seeds: Every seed by what it is for.
        """
        run = Run(self.database, command, config, seeds)
        self.begun.append(run.id)
        return run

    def look_up(self, keys: Sequence[bytes], model: str | None = None) -> dict[bytes, StoredAnswer]:
        """The newest answer without error to each request that has one."""
        results: dict[bytes, StoredAnswer] = {}
        answers, requests = tables.answers, tables.requests
        columns = (answers, requests.c.key, requests.c.kind)
        with self.database.read() as connection:
            for chunk in chunks(keys):
                query = (
                    sa.select(*columns)
                    .join(requests, requests.c.key == answers.c.request)
                    .where(answers.c.request.in_(chunk), answers.c.error.is_(None))
                    .order_by(answers.c.id)
                )
                if model is not None:
                    query = query.where(requests.c.model == model)
                for row in connection.execute(query).mappings():
                    answer = answer_from_row(cast(Kind, row["kind"]), cast(Mapping[str, Any], row))
                    results[bytes(row["key"])] = StoredAnswer(row["id"], answer)
        return results

    def close(self) -> None:
        """Give back the connections."""
        self.database.close()


MOST_KEPT = 2000
"""Entries; the oldest go first."""
_prepared: WeakSet[Database] = WeakSet()
"""Databases that are known to have the table."""
computed = sa.Table(
    "computed",
    sa.MetaData(),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("version", sa.String(40), nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    comment="What takes long to compute from results of runs, by a hash of what it was computed from; may be deleted.",
)


def cached(database: Database, parts: tuple[object, ...], make: Callable[[], Any] | None = None) -> Any:
    """Something that was computed before, or that is computed now and kept.

    The parts, texts and numbers, say what it is and what it is computed from, for example ids of runs that have ended;
    ``make`` computes what ``json.dumps`` takes.

    Returns:
        The value as JSON reads it; None where it is not kept and ``make`` is not given. Values that another version of
        climassay computed count as not kept.
    """
    if database not in _prepared:
        database.create_tables(computed.metadata)
        _prepared.add(database)
    key = hashlib.sha256(json.dumps([__version__, *parts]).encode()).hexdigest()
    text = database.scalar(sa.select(computed.c.value).where(computed.c.key == key))
    if text is None and make is not None:
        text = json.dumps(make(), ensure_ascii=False)
        row = {"key": key, "version": __version__, "made_at": time.time(), "value": text}
        oldest = sa.select(computed.c.made_at).order_by(computed.c.made_at.desc()).offset(MOST_KEPT).limit(1)
        old = sa.or_(computed.c.version != __version__, computed.c.made_at <= oldest.scalar_subquery())

        def work(connection: sa.Connection) -> None:
            connection.execute(computed.delete().where(old))
            database.insert_new(connection, computed, [row], replacing=("value", "made_at"))

        database.write(work, durable=False)
    return None if text is None else json.loads(text)
