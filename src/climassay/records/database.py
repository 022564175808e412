"""The records database, on SQLite or PostgreSQL: its transactions, its versions, and the lock of its one server.

A database of an earlier version becomes one of this version: a copy first, then revisions in one transaction. A process
that is killed in the middle leaves the database as it was, and the next one begins again.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from climassay.errors import InputError, MissingExtraError, RecordsError
from climassay.records import tables
from climassay.records.tables import migrate

if TYPE_CHECKING:
    from filelock import FileLock


def keep_copy(file: Path, version: int) -> Path:
    """Copy a SQLite database beside itself before it is changed, as ``records.v1.sqlite``; an earlier copy stays.

    Raises:
        RecordsError: There is no room for it.
    """
    copy = file.with_name(f"{file.stem}.v{version}{file.suffix}")
    if copy.exists():
        return copy
    partial = copy.with_name(f".{copy.name}.{os.getpid()}.new")
    try:
        partial.touch(mode=0o600)
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(partial)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
        shutil.copymode(file, partial)
        partial.replace(copy)
    except (OSError, sqlite3.Error) as error:
        raise RecordsError(
            f"The records database {file} has version {version} and must be migrated to version "
            f"{tables.SCHEMA_VERSION}, but no backup copy can be made first ({error}): free some space and "
            "run the command again."
        ) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return copy


def keep_schema_copy(connection: sa.Connection, schema: str, version: int) -> None:
    """Copy the tables of a PostgreSQL schema into one beside it, as ``climassay_v1``; an earlier copy stays."""
    copy, inspector = f"{schema}_v{version}", sa.inspect(connection)
    if copy in inspector.get_schema_names():
        return
    connection.execute(sa.schema.CreateSchema(copy))
    for table in inspector.get_table_names(schema=schema):
        connection.exec_driver_sql(f'CREATE TABLE "{copy}"."{table}" AS TABLE "{schema}"."{table}"')


BUSY_SECONDS = 60
"""How long one process waits for another's transaction."""
POSTGRES_SCHEMA = "climassay"
"""PostgreSQL schema of the tables, so that they may share a database with others."""
ADVISORY_LOCK = 0x636C696D
"""Number of the PostgreSQL lock under which the tables are made."""
RESTORE = "restore it from a copy or move it away."
"""What to do about a damaged file."""
_LOG_PAGES = 64 * 1024
"""Bytes that SQLite needs beside a database to write to it: the index of its log has 32 KiB."""
ATTEMPTS = 5
"""How often a transaction is tried that lost against another one (deadlock, lock time-out)."""


T = TypeVar("T")


def record_of(kind: type[T], row: Any, **computed: Any) -> T:
    """A record from a row of a table.

    Args:
        kind: A dataclass; each field is taken from the column of its name.
        row: What a query gave.
        computed: Fields whose value is not that of a column.
    """
    names = [one.name for one in fields(kind) if one.name not in computed]  # type: ignore[arg-type]
    return kind(**{name: getattr(row, name) for name in names}, **computed)


KEYS_PER_QUERY = 500
"""Below the smallest limit of bound parameters of either database."""


def chunks(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Keys in parts that one query can take."""
    return (keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY))


class Database:
    """One records database: an engine whose schema has been made or checked.

    Args:
        url: SQLAlchemy URL, ``sqlite:///path`` or ``postgresql://user@host/name``.
        make: Make the tables where there are none yet; else an empty database stays empty.

    Raises:
        RecordsError: The URL names no such database, the file is corrupt or not a records database, or it was written
            by a newer climassay.
        MissingExtraError: PostgreSQL without its driver.
    """

    def __init__(self, url: str, *, make: bool = True) -> None:
        self.url = _parse_url(url)
        # PostgreSQL's driver takes a password among the options, too.
        shown = self.url.difference_update_query(["password", "sslpassword"])
        self.shown_url = shown.render_as_string(hide_password=True)
        self._engine = _make_engine(self.url)
        self._check_or_create(make)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file of this machine."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection in one read transaction: everything seen belongs to one moment."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise self._in_words(error) from None
        except UnicodeDecodeError as error:
            # SQLite's own words about damage quote the damaged bytes, which Python then cannot read.
            raise self._corrupt(f"text that is not UTF-8, byte 0x{error.object[error.start]:02x}") from None

    def rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        """All rows of a query."""
        with self.read() as connection:
            return connection.execute(query).all()

    def first(self, query: sa.Select[Any]) -> Any:
        """The first row of a query; None where it finds nothing."""
        with self.read() as connection:
            return connection.execute(query).first()

    def scalar(self, query: sa.Select[Any]) -> Any:
        """The first value of the first row of a query; None where it finds nothing."""
        with self.read() as connection:
            return connection.execute(query).scalar()

    def execute(self, statement: sa.Insert | sa.Update | sa.Delete, *, durable: bool = True) -> int:
        """Write something in a transaction of its own, see :meth:`write`; gives how many rows it concerned."""
        return self.write(lambda connection: connection.execute(statement).rowcount, durable=durable)

    def connect(self) -> sa.Connection:
        """A connection of its own, for locks that are held as long as it is open."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()
        return connection

    def write(self, work: Callable[[sa.Connection], T], *, durable: bool = True) -> T:
        """Do ``work`` in one write transaction and commit it; on SQLite there is no other writer until then.

        A transaction that loses against another process's is done again, so ``work`` must bear being called twice. What
        need not outlive a crash of the machine is not ``durable``, and not waited for.
        """
        writer = self._engine.execution_options(climassay_write="FULL" if durable else "NORMAL")
        for attempt in range(ATTEMPTS):
            try:
                with writer.begin() as connection:
                    if not durable and not self.is_sqlite:
                        connection.execute(sa.text("SET LOCAL synchronous_commit TO off"))
                    return work(connection)
            except DBAPIError as error:
                if attempt == ATTEMPTS - 1 or not is_write_conflict(error):
                    raise self._in_words(error) from None
        raise AssertionError("unreachable")

    def insert_new(
        self, connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]], *, replacing: Sequence[str] = ()
    ) -> None:
        """Insert those rows whose primary key is not there yet.

        Rows are sorted by key, so that two processes that insert the same rows wait for each other in one order. A row
        that is there already takes over the columns named in ``replacing``.
        """
        if not rows:
            return
        columns = [column.name for column in table.primary_key.columns]
        unique = {tuple(row[name] for name in columns): row for row in rows}
        insert = sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)
        if replacing:
            new = {name: insert.excluded[name] for name in replacing}
            statement = insert.on_conflict_do_update(index_elements=columns, set_=new)
        else:
            statement = insert.on_conflict_do_nothing(index_elements=columns)
        connection.execute(statement, [unique[key] for key in sorted(unique)])

    def create_tables(self, metadata: sa.MetaData) -> None:
        """Make further tables where they are not there yet; several processes may do so at once."""

        def work(connection: sa.Connection) -> None:
            self.lock(connection, ADVISORY_LOCK)
            metadata.create_all(connection, checkfirst=True)

        self.write(work)

    def has_table(self, table: sa.Table) -> bool:
        """Whether a table of a room above this one has been made."""
        with self.read() as connection:
            return sa.inspect(connection).has_table(table.name, schema=None if self.is_sqlite else POSTGRES_SCHEMA)

    def close(self) -> None:
        """Give back all connections; SQLite then folds its write-ahead log into the file."""
        self._engine.dispose()

    def _in_words(self, error: DBAPIError) -> RecordsError:
        full = False
        if self.is_sqlite:
            # Whether there is no room for another page of SQLite's log, which it tells as an error of input or output.
            with suppress(OSError):
                full = shutil.disk_usage(Path(self.url.database or "").parent).free < _LOG_PAGES
        return RecordsError(f"The records database {self.shown_url} {_explain(error, full)}")

    def _corrupt(self, reason: str) -> RecordsError:
        return RecordsError(f"The records database {self.shown_url} is corrupt ({reason}): {RESTORE}")

    def _refuse_damage(self) -> None:
        """Let SQLite look through the whole file, where what it says is not to be believed without."""
        if not self.is_sqlite:
            return
        with self.read() as connection:
            result = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one_or_none()
        if result != "ok":
            raise self._corrupt(str(result).strip().splitlines()[-1] if result else "it cannot be checked")

    def _check_or_create(self, make: bool) -> None:
        version = self.stored_version()
        if version is None and not make:
            return
        if version is None:
            self.write(self._create)
            version = self.stored_version()
        if version is not None and 1 <= version < tables.SCHEMA_VERSION:
            self.write(self._migrate)
            version = self.stored_version()
        if version != tables.SCHEMA_VERSION:
            self._refuse_damage()
            newer = version is not None and version > tables.SCHEMA_VERSION
            advice = "update climassay" if newer else "use another workspace"
            raise RecordsError(
                f"The records database {self.shown_url} has schema version {version}, "
                f"this version of climassay reads version {tables.SCHEMA_VERSION}: {advice}."
            )

    def stored_version(self) -> int | None:
        """The database's schema version; None where there are no tables at all yet.

        Raises:
            RecordsError: The database holds tables, but not those of records.
        """
        with self.read() as connection:
            inspector = sa.inspect(connection)
            names = set(inspector.get_table_names(schema=None if self.is_sqlite else POSTGRES_SCHEMA))
            if not names:
                return None
            if tables.meta.name in names:
                query = sa.select(tables.meta.c.value).where(tables.meta.c.name == "schema_version")
                value = connection.execute(query).scalar_one_or_none()
                if value is not None and value.isdigit():
                    return int(value)
        self._refuse_damage()
        if len(names & tables.metadata.tables.keys()) > 1:
            raise self._corrupt("only some of its tables can be found")
        raise RecordsError(
            f"{self.shown_url} is a database, but not one of climassay's records: choose another workspace or URL."
        )

    def _migrate(self, connection: sa.Connection) -> None:
        """Bring the tables of an earlier version to this one; another process may have done so meanwhile."""
        self.lock(connection, ADVISORY_LOCK)
        kept = sa.select(tables.meta.c.value).where(tables.meta.c.name == "schema_version")
        version = int(connection.execute(kept).scalar_one())
        if version >= tables.SCHEMA_VERSION:
            return
        if self.is_sqlite:
            keep_copy(Path(str(self.url.database)), version)
        else:
            keep_schema_copy(connection, POSTGRES_SCHEMA, version)
            # Revisions name tables without a schema, which they then find in ours.
            connection = connection.execution_options(schema_translate_map=None)
            connection.execute(sa.text(f"SET LOCAL search_path TO {POSTGRES_SCHEMA}"))
        migrate(connection, version)

    def lock(self, connection: sa.Connection, number: int) -> None:
        """Let no other process into the transactions that take this number; on SQLite there is one writer anyway."""
        if not self.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))

    def _create(self, connection: sa.Connection) -> None:
        self.lock(connection, ADVISORY_LOCK)
        if not self.is_sqlite:
            connection.execute(sa.schema.CreateSchema(POSTGRES_SCHEMA, if_not_exists=True))
        tables.metadata.create_all(connection, checkfirst=True)
        self.insert_new(connection, tables.meta, [{"name": "schema_version", "value": str(tables.SCHEMA_VERSION)}])


def _parse_url(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        raise RecordsError(
            "The records URL is not valid: it should look like sqlite:///path or postgresql://user@host/name."
        ) from None
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise RecordsError(f"Records are kept in SQLite or PostgreSQL, not in {backend}: give such a URL.")
    if url.database in (None, "", ":memory:"):
        raise RecordsError("Records in memory would be lost: give a file, for example sqlite:///records.sqlite.")
    return url


def _make_engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        folder = Path(str(url.database)).parent
        if not folder.is_dir():
            raise RecordsError(f"The folder {folder} of the records database does not exist: create it first.")
        engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        engine = sa.create_engine(url, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise MissingExtraError(
            "Records in PostgreSQL need its driver: install it with pip install 'climassay[postgres]'."
        ) from None
    sa.event.listen(engine, "before_cursor_execute", _replace_nul, retval=True)
    return engine.execution_options(schema_translate_map={None: POSTGRES_SCHEMA})


def _replace_nul(
    _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool
) -> tuple[str, Any]:
    """Texts of PostgreSQL cannot hold the character 0: a replacement stands for it, as in stored answers."""

    def replaced(row: Any) -> Any:
        if not isinstance(row, dict) or not any(isinstance(value, str) and "\x00" in value for value in row.values()):
            return row
        return {key: value.replace("\x00", "\ufffd") if isinstance(value, str) else value for key, value in row.items()}

    return statement, [replaced(row) for row in parameters] if many else replaced(parameters)


def _prepare_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    """Set up a fresh connection: write-ahead log, every commit on the disk, transactions begun by us."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    deadline = time.monotonic() + BUSY_SECONDS
    while True:  # SQLite's own waiting does not cover switching a new file to the write-ahead log.
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # A deferred transaction that turns into a writer fails at once when another process wrote in between;
    # an immediate one waits for its turn.
    writes = connection.get_execution_options().get("climassay_write")
    if writes:
        connection.exec_driver_sql(f"PRAGMA synchronous = {writes}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def is_write_conflict(error: DBAPIError) -> bool:
    """Whether the transaction merely lost against another one."""
    text = str(error.orig).lower()
    return any(word in text for word in ("database is locked", "deadlock detected", "could not serialize"))


def _explain(error: DBAPIError, full: bool) -> str:
    """Why the database does not work and what to do, as the end of a sentence that begins with its name."""
    reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    text = reason.lower()
    if "not a database" in text or "malformed" in text:
        return f"is corrupt ({reason}): {RESTORE}"
    if "could not decode to utf-8" in text:  # what follows there is the text itself
        return f"is corrupt (a text in it is not UTF-8): {RESTORE}"
    if "unable to open" in text:
        return "cannot be opened: check that its folder can be read and written."
    if "readonly" in text or "read-only" in text:
        return "cannot be written: check its permissions."
    if "disk is full" in text or "no space" in text or (full and "disk i/o" in text):
        return "cannot grow because the disk is full: free some space and run the command again."
    if "disk i/o" in text or "file too large" in text:
        advice = "see whether the disk is full or damaged; restore a file that was cut off from a copy."
        return f"cannot be read or written ({reason}): {advice}"
    if is_write_conflict(error):
        return f"stayed locked by another process for {BUSY_SECONDS} s: wait for it or stop it, then try again."
    return f"does not work ({reason})."


WAIT_SECONDS = 15.0
"""So long a server that starts waits for another one to end: the time that a restart overlaps."""
LOOK_SECONDS = 0.1
SERVER_LOCK = 0x636C6D73
"""Number of the lock in PostgreSQL; beside a SQLite file it is a file."""
_ADDRESS = "server"
"""Name of the entry of ``meta`` that says where the server is."""


class ServerLock:
    """Held by the server of a records database as long as it runs."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._database: Database | None = None
        self._file: FileLock | None = None
        self._connection: sa.Connection | None = None

    def take(self, on_wait: Callable[[str], None] = lambda _address: None) -> None:
        """Hold the lock from now on; the holder's second call does nothing.

        ``on_wait`` is called once, with the address of the other server, before that is waited for.

        Raises:
            InputError: Another server has not ended within :data:`WAIT_SECONDS`.
        """
        if self._database is not None:
            return
        database = Database(self._url)
        until: float | None = None
        while not self._try(database):
            address = announced_address(database) or "an address that it has not told yet"
            if until is None:
                until = time.monotonic() + WAIT_SECONDS
                on_wait(address)
            if time.monotonic() > until:
                database.close()
                raise InputError(
                    f"This workspace is already served at {address}: open that address, or stop that server first."
                )
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


def announced_address(database: Database) -> str | None:
    """Where people reach the server of a records database, or its last one; None where there was none yet."""
    result: str | None = database.scalar(sa.select(tables.meta.c.value).where(tables.meta.c.name == _ADDRESS))
    return result
