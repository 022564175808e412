"""Records database on SQLite or PostgreSQL: transactions, schema version, and the lock of its only server."""

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from climassay.errors import InputError, LostDatabaseError, MissingExtraError, RecordsError
from climassay.records import tables
from climassay.records.migration import migrate

if TYPE_CHECKING:
    from filelock import FileLock


BUSY_SECONDS = 60
"""Seconds to wait for the transaction of another process."""
POSTGRES_SCHEMA = "climassay"
"""PostgreSQL schema of the tables, which lets them share a database with other applications."""
ADVISORY_LOCK = 0x636C696D
"""Number of the PostgreSQL lock for creating tables."""
RESTORE = "restore a backup of it with climassay records restore FILE, or move it away with its files -wal and -shm."
"""Advice that error messages give if the database file is damaged."""
_MIN_FREE_BYTES = 64 * 1024
"""Free space that SQLite needs for its write-ahead log, whose index has 32 KiB."""
MAX_ATTEMPTS = 5
"""Maximum number of attempts of a transaction that conflicts with others (deadlock, lock time-out)."""


RECONNECT_SECONDS = 20.0
"""Seconds for which a lost connection to PostgreSQL is opened again, as during a restart of its server."""
_RECONNECT_INTERVAL = 0.5


T = TypeVar("T")


def record_of(kind: Callable[..., T], row: Any, **computed: Any) -> T:
    """Return an instance of a dataclass whose fields have the values of the columns of the same name.

    Args:
        kind: Dataclass.
        row: Row of a query.
        computed: Values of fields without such a column.
    """
    record: T = _adapter(kind).validate_python({**row._mapping, **computed})
    return record


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


KEYS_PER_QUERY = 500
"""Maximum number of keys in a query; the databases limit bound parameters."""


def chunks(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split keys into parts that fit in one query."""
    return (keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY))


class Database:
    """Engine of a records database whose schema has been created or checked.

    Args:
        url: SQLAlchemy URL, ``sqlite:///path`` or ``postgresql://user@host/name``.
        make: Create missing tables.

    Raises:
        RecordsError: The URL is invalid, the file is corrupt or not a records database, or its schema has another
            version.
        MissingExtraError: The driver of PostgreSQL is not installed.
    """

    def __init__(self, url: str, *, make: bool = True) -> None:
        self.url = _parse_url(url)
        # PostgreSQL's driver also accepts a password among the options.
        url_without_password = self.url.difference_update_query(["password", "sslpassword"])
        self.shown_url = url_without_password.render_as_string(hide_password=True)
        self._engine = _make_engine(self.url)
        self._was_reached = False
        self._check_left_log()
        self._check_or_create(make)
        self._was_reached = True

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a SQLite file."""
        return sqlite_path(self.url) is not None

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Yield a connection in a read transaction, with a consistent snapshot of the database."""
        try:
            with self._connect() as connection:
                yield connection
        except DBAPIError as error:
            raise self._describe_error(error) from None
        except UnicodeDecodeError as error:
            # SQLite's message on damage quotes the damaged bytes, which Python cannot decode.
            raise self.corruption_error(f"text that is not UTF-8, byte 0x{error.object[error.start]:02x}") from None

    def rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        """Return all rows of a query."""
        return self._query(lambda connection: connection.execute(query).all())

    def first(self, query: sa.Select[Any]) -> Any:
        """Return the first row of a query, or None."""
        return self._query(lambda connection: connection.execute(query).first())

    def scalar(self, query: sa.Select[Any]) -> Any:
        """Return the first value of the first row of a query, or None."""
        return self._query(lambda connection: connection.execute(query).scalar())

    def _query(self, work: Callable[[sa.Connection], T]) -> T:
        """Return the result of ``work`` in a read transaction, which is repeated if the connection is lost."""
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                with self.read() as connection:
                    return work(connection)
            except LostDatabaseError:
                if time.monotonic() > deadline:
                    raise

    def execute(self, statement: sa.Insert | sa.Update | sa.Delete, *, durable: bool = True) -> int:
        """Execute a statement in a write transaction and return the number of affected rows."""
        return self.write(lambda connection: connection.execute(statement).rowcount, durable=durable)

    def connect(self) -> sa.Connection:
        """Return a new connection outside the pool, for locks that last as long as the connection."""
        connection = self._connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()
        return connection

    def write(self, work: Callable[[sa.Connection], T], *, durable: bool = True) -> T:
        """Run ``work`` in a write transaction, commit, and return its result.

        Args:
            work: Function of the connection; called again if the transaction conflicts with another one, or if the
                connection is lost before the commit.
            durable: Wait until the data are on the disk, so that they survive a crash of the machine.
        """
        for attempt in range(MAX_ATTEMPTS):
            is_committing = False
            try:
                with self._connect(climassay_write="FULL" if durable else "NORMAL") as connection, connection.begin():
                    if not durable and not self.is_sqlite:
                        connection.execute(sa.text("SET LOCAL synchronous_commit TO off"))
                    result = work(connection)
                    is_committing = True
                return result
            except DBAPIError as error:
                # Whether a commit was done before the connection was lost is not known.
                is_lost = error.connection_invalidated and not is_committing
                if attempt == MAX_ATTEMPTS - 1 or not (is_lost or is_write_conflict(error)):
                    raise self._describe_error(error) from None
        raise AssertionError("unreachable")

    def insert_new(
        self, connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]], *, replacing: Sequence[str] = ()
    ) -> None:
        """Insert rows whose primary key does not exist yet.

        Rows are sorted by key to prevent deadlocks between processes that insert the same rows. Existing rows are
        updated in the columns named in ``replacing``.
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
        """Create missing tables; safe if several processes do so at once."""

        def work(connection: sa.Connection) -> None:
            self.lock(connection, ADVISORY_LOCK)
            metadata.create_all(connection, checkfirst=True)

        self.write(work)

    def has_table(self, table: sa.Table) -> bool:
        """Return whether a table exists."""
        with self.read() as connection:
            return sa.inspect(connection).has_table(table.name, schema=None if self.is_sqlite else POSTGRES_SCHEMA)

    def close(self) -> None:
        """Close all connections; SQLite then merges its write-ahead log into the file."""
        self._engine.dispose()

    def _connect(self, **options: Any) -> sa.Connection:
        """Return a connection; if PostgreSQL was reached before, wait for it up to :data:`RECONNECT_SECONDS`."""
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                return self._engine.execution_options(**options).connect()
            except OperationalError as error:
                if self.is_sqlite or not self._was_reached or "does not exist" in str(error.orig):
                    raise
                if time.monotonic() > deadline:
                    raise self._lost_error(error) from None
                time.sleep(_RECONNECT_INTERVAL)

    def _lost_error(self, error: DBAPIError) -> LostDatabaseError:
        return LostDatabaseError(f"The records database {self.shown_url} {_error_with_advice(error, is_full=False)}")

    def _describe_error(self, error: DBAPIError) -> RecordsError:
        if error.connection_invalidated and self._was_reached:
            return self._lost_error(error)
        is_full = False
        if self.is_sqlite:
            # SQLite reports a full disk as an input or output error if its log cannot grow.
            with suppress(OSError):
                is_full = shutil.disk_usage(Path(self.url.database or "").parent).free < _MIN_FREE_BYTES
        return RecordsError(f"The records database {self.shown_url} {_error_with_advice(error, is_full)}")

    def corruption_error(self, reason: str) -> RecordsError:
        """Return the error for damage of the database, with advice."""
        return RecordsError(f"The records database {self.shown_url} is corrupt ({reason}): {RESTORE}")

    def _check_integrity(self) -> None:
        """Raise an error if SQLite finds damage in the file, which is not changed."""
        path = sqlite_path(self.url)
        if path is not None and (damage := find_damage(path)) is not None:
            raise self.corruption_error(damage)

    def _check_left_log(self) -> None:
        """Raise an error if a write-ahead log that another process has left or uses does not belong to the file."""
        path = sqlite_path(self.url)
        log = None if path is None else path.with_name(path.name + "-wal")
        with suppress(OSError):
            if log is not None and log.stat().st_size:
                self._check_integrity()

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
            self._check_integrity()
            is_newer = version is not None and version > tables.SCHEMA_VERSION
            advice = "update climassay" if is_newer else "use another workspace"
            raise RecordsError(
                f"The records database {self.shown_url} has schema version {version}, "
                f"this version of climassay reads version {tables.SCHEMA_VERSION}: {advice}."
            )

    def stored_version(self) -> int | None:
        """Return the schema version of the database; None if it has no tables.

        Raises:
            RecordsError: The database has other tables than those of records.
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
        self._check_integrity()
        if len(names & tables.metadata.tables.keys()) > 1:
            raise self.corruption_error("only some of its tables can be found")
        raise RecordsError(
            f"{self.shown_url} is a database, but not one of climassay's records: choose another workspace or URL."
        )

    def _migrate(self, connection: sa.Connection) -> None:
        self.lock(connection, ADVISORY_LOCK)
        query = sa.select(tables.meta.c.value).where(tables.meta.c.name == "schema_version")
        version = int(connection.execute(query).scalar_one())
        if version < tables.SCHEMA_VERSION:  # else another process has migrated the database meanwhile
            migrate(connection, version, None if self.is_sqlite else POSTGRES_SCHEMA)

    def lock(self, connection: sa.Connection, number: int) -> None:
        """Take a lock until the end of the transaction; SQLite allows only one writer anyway."""
        if not self.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))

    def _create(self, connection: sa.Connection) -> None:
        self.lock(connection, ADVISORY_LOCK)
        if not self.is_sqlite:
            connection.execute(sa.schema.CreateSchema(POSTGRES_SCHEMA, if_not_exists=True))
        tables.metadata.create_all(connection, checkfirst=True)
        self.insert_new(connection, tables.meta, [{"name": "schema_version", "value": str(tables.SCHEMA_VERSION)}])


def sqlite_path(url: sa.URL) -> Path | None:
    """Return the file of a SQLite database; None for PostgreSQL."""
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def open_read_only(file: Path) -> sqlite3.Connection:
    """Return a connection that changes neither a SQLite file nor the files beside it."""
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)


def find_damage(file: Path) -> str | None:
    """Return the first damage that SQLite finds in a file and its log; None if there is none or it cannot be opened."""
    try:
        with closing(open_read_only(file)) as connection:
            result = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        is_unavailable = any(words in str(error) for words in ("unable to open", "locked"))
        return None if is_unavailable else str(error)
    except UnicodeDecodeError:
        return "a text in it is not UTF-8"
    return None if result == "ok" else result.strip().splitlines()[-1]


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
    """Replace NUL characters, which PostgreSQL cannot store, by U+FFFD in all parameters."""

    def replace_nul(row: Any) -> Any:
        if not isinstance(row, dict) or not any(isinstance(value, str) and "\x00" in value for value in row.values()):
            return row
        return {key: value.replace("\x00", "\ufffd") if isinstance(value, str) else value for key, value in row.items()}

    return statement, [replace_nul(row) for row in parameters] if many else replace_nul(parameters)


def _prepare_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    """Configure a new connection: write-ahead log, durable commits, explicit transactions."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    deadline = time.monotonic() + BUSY_SECONDS
    while True:  # busy_timeout does not apply to the change of the journal mode
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
    # A deferred transaction fails when it starts to write after another process has written; an immediate one waits.
    writes = connection.get_execution_options().get("climassay_write")
    if writes:
        connection.exec_driver_sql(f"PRAGMA synchronous = {writes}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def is_write_conflict(error: DBAPIError) -> bool:
    """Return whether a transaction failed only because of a conflict with another one."""
    text = str(error.orig).lower()
    return any(word in text for word in ("database is locked", "deadlock detected", "could not serialize"))


def _error_with_advice(error: DBAPIError, is_full: bool) -> str:
    """Return cause and advice, to follow the name of the database."""
    reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    text = reason.lower()
    if "not a database" in text or "malformed" in text:
        return f"is corrupt ({reason}): {RESTORE}"
    if "could not decode to utf-8" in text:
        return f"is corrupt (a text in it is not UTF-8): {RESTORE}"
    if "unable to open" in text:
        return "cannot be opened: check that its folder can be read and written."
    if "readonly" in text or "read-only" in text:
        return "cannot be written: check its permissions."
    if "disk is full" in text or "no space" in text or (is_full and "disk i/o" in text):
        return "cannot grow because the disk is full: free some space and run the command again."
    if "disk i/o" in text or "file too large" in text:
        advice = "see whether the disk is full or damaged; or restore a backup with climassay records restore FILE."
        return f"cannot be read or written ({reason}): {advice}"
    if is_write_conflict(error):
        return f"stayed locked by another process for {BUSY_SECONDS} s: wait for it or stop it, then try again."
    return f"does not work ({reason})."


WAIT_SECONDS = 15.0
"""Seconds that a starting server waits for another one to end, as during a restart."""
_POLL_SECONDS = 0.1
SERVER_LOCK = 0x636C6D73
"""Number of the lock in PostgreSQL; the lock of a SQLite file is a file."""
_ADDRESS = "server"
"""Name of the entry of ``meta`` with the server's address."""


def server_lock(path: Path) -> "FileLock":
    """Return the lock, not yet acquired, of the only server of a SQLite file."""
    from filelock import FileLock

    return FileLock(path.with_name(f".{path.name}.server"), timeout=0, mode=0o600)


class ServerLock:
    """Lock that a web server holds so that no second one uses the same records database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._database: Database | None = None
        self._file: FileLock | None = None
        self._connection: sa.Connection | None = None

    def acquire(self, on_wait: Callable[[str], None] = lambda _address: None) -> None:
        """Acquire the lock; further calls do nothing.

        Args:
            on_wait: Called once with the address of another server before waiting for its end.

        Raises:
            InputError: Another server has not ended within :data:`WAIT_SECONDS`.
        """
        if self._database is not None:
            return
        database = Database(self._url)
        deadline: float | None = None
        while not self._try_acquire(database):
            address = announced_address(database) or "an unknown address"
            if deadline is None:
                deadline = time.monotonic() + WAIT_SECONDS
                on_wait(address)
            if time.monotonic() > deadline:
                database.close()
                raise InputError(
                    f"This workspace is already served at {address}: open that address, or stop that server first."
                )
            time.sleep(_POLL_SECONDS)
        self._database = database

    def announce(self, address: str) -> None:
        """Store the address of the server for other processes."""
        assert self._database is not None
        database, row = self._database, {"name": _ADDRESS, "value": address}
        database.write(lambda connection: database.insert_new(connection, tables.meta, [row], replacing=("value",)))

    def close(self) -> None:
        """Release the lock."""
        if self._connection is not None:
            self._connection.close()
        if self._database is not None:
            self._database.close()
        if self._file is not None:
            self._file.release()
        self._database = self._file = self._connection = None

    def _try_acquire(self, database: Database) -> bool:
        if database.is_sqlite:
            from filelock import Timeout

            file = server_lock(Path(str(database.url.database)))
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
    """Return the address of the current or latest server of a records database, or None."""
    result: str | None = database.scalar(sa.select(tables.meta.c.value).where(tables.meta.c.name == _ADDRESS))
    return result
