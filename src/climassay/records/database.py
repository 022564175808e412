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

from climassay.errors import FullDatabaseError, InputError, LostDatabaseError, MissingExtraError, RecordsError
from climassay.records import tables
from climassay.records.migration import migrate

if TYPE_CHECKING:
    from filelock import FileLock


BUSY_SECONDS = 60
"""Maximum time to wait for the transaction of another process, in seconds."""
POSTGRES_SCHEMA = "climassay"
"""PostgreSQL schema of the tables, so that they can share a database with other applications."""
ADVISORY_LOCK = 0x636C696D
"""Number of the PostgreSQL lock for creating tables."""
DAMAGE_ADVICE = (
    "restore a backup of it with climassay records restore FILE, or move it away with its files -wal and -shm."
)
"""Advice in error messages about a damaged database file."""
_MIN_FREE_BYTES = 64 * 1024
"""Minimum free disk space for SQLite's write-ahead log, in bytes; the index of the log has 32 KiB."""
MAX_ATTEMPTS = 5
"""Maximum number of attempts for a transaction that fails because of a deadlock or a lock time-out."""


RECONNECT_SECONDS = 20.0
"""Maximum time, in seconds, for reconnecting to PostgreSQL, for example while its server restarts. It is counted from
the first failed attempt of any thread, so that later queries do not wait for a server that stays away."""
_RECONNECT_INTERVAL = 0.5
_CONNECTION_PARAMETERS = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_count": "3"}
"""libpq parameters, unless the URL sets them, that detect a PostgreSQL server that no longer answers (in seconds)."""


T = TypeVar("T")


def build_record(kind: Callable[..., T], row: Any, **computed: Any) -> T:
    """Build a dataclass instance from a row, taking each field from the column of the same name.

    ``computed`` are the values of fields that have no column.
    """
    record: T = _adapter(kind).validate_python({**row._mapping, **computed})
    return record


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


KEYS_PER_QUERY = 500
"""Maximum number of keys per query, since databases limit the number of bound parameters."""


def split_keys(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split keys into sequences of at most :data:`KEYS_PER_QUERY`."""
    return (keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY))


class Database:
    """Connection to a records database; the initialiser checks the schema version, or creates missing tables.

    Args:
        url: SQLAlchemy URL: ``sqlite:///path`` or ``postgresql://user@host/name``.
        create_missing: Whether to create missing tables.

    Raises:
        RecordsError: The URL is invalid, the file is corrupt or not a records database, or its schema has another
            version.
        MissingExtraError: The PostgreSQL driver is not installed.
    """

    def __init__(self, url: str, *, create_missing: bool = True) -> None:
        self.url = _parse_url(url)
        # PostgreSQL's driver also accepts a password among the options.
        url_without_password = self.url.difference_update_query(["password", "sslpassword"])
        self.redacted_url = url_without_password.render_as_string(hide_password=True)
        self._engine = _make_engine(self.url)
        self._has_connected = False
        self._lost_at: float | None = None
        """Monotonic time of the first failed attempt to connect since the last successful one."""
        self._check_log()
        self._check_or_create_tables(create_missing)
        self._has_connected = True

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a SQLite file."""
        return sqlite_path(self.url) is not None

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Yield a connection in a read transaction, which sees a consistent snapshot of the database."""
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
        """Return the first row of a query; None if there is none."""
        return self._query(lambda connection: connection.execute(query).first())

    def scalar(self, query: sa.Select[Any]) -> Any:
        """Return the first value in the first row of a query; None if there is none."""
        return self._query(lambda connection: connection.execute(query).scalar())

    def _query(self, work: Callable[[sa.Connection], T]) -> T:
        """Return the result of ``work`` in a read transaction, repeating it if the connection is lost."""
        for _ in range(MAX_ATTEMPTS - 1):
            with suppress(LostDatabaseError), self.read() as connection:
                return work(connection)
        with self.read() as connection:
            return work(connection)

    def execute(self, statement: sa.Insert | sa.Update | sa.Delete, *, durable: bool = True) -> int:
        """Execute a statement in a write transaction and return the number of affected rows."""
        return self.write(lambda connection: connection.execute(statement).rowcount, durable=durable)

    def connect(self) -> sa.Connection:
        """Return a new connection outside the pool, for locks that are held as long as the connection exists."""
        connection = self._connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()
        return connection

    def write(self, work: Callable[[sa.Connection], T], *, durable: bool = True) -> T:
        """Run ``work`` in a write transaction, commit, and return its result.

        Args:
            work: Function of the connection. It is called again if the transaction conflicts with another one, or if
                the connection is lost before the commit.
            durable: Whether to wait until the data are on disk; they then survive a crash of the machine.
        """
        for attempt in range(MAX_ATTEMPTS):
            has_run_work = False
            try:
                with self._connect(climassay_write="FULL" if durable else "NORMAL") as connection, connection.begin():
                    if not durable and not self.is_sqlite:
                        connection.execute(sa.text("SET LOCAL synchronous_commit TO off"))
                    result = work(connection)
                    has_run_work = True
                return result
            except DBAPIError as error:
                # If the connection is lost during the commit, it is unknown whether the commit succeeded.
                is_lost = error.connection_invalidated and not has_run_work
                if attempt == MAX_ATTEMPTS - 1 or not (is_lost or is_write_conflict(error)):
                    raise self._describe_error(error) from None
        raise AssertionError("unreachable")

    def insert_new(
        self, connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]], *, replacing: Sequence[str] = ()
    ) -> None:
        """Insert rows whose primary key does not exist yet.

        Rows are sorted by key to prevent deadlocks between processes that insert the same rows. If ``replacing`` names
        columns, these are updated in existing rows.
        """
        if not rows:
            return
        key_columns = [column.name for column in table.primary_key.columns]
        rows_by_key = {tuple(row[name] for name in key_columns): row for row in rows}
        insert = sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)
        if replacing:
            new_values = {name: insert.excluded[name] for name in replacing}
            statement = insert.on_conflict_do_update(index_elements=key_columns, set_=new_values)
        else:
            statement = insert.on_conflict_do_nothing(index_elements=key_columns)
        connection.execute(statement, [rows_by_key[key] for key in sorted(rows_by_key)])

    def create_tables(self, metadata: sa.MetaData) -> None:
        """Create missing tables; several processes may do so at the same time."""

        def create(connection: sa.Connection) -> None:
            self.lock(connection, ADVISORY_LOCK)
            metadata.create_all(connection, checkfirst=True)

        self.write(create)

    def has_table(self, table: sa.Table) -> bool:
        """Return whether a table exists."""
        with self.read() as connection:
            return sa.inspect(connection).has_table(table.name, schema=None if self.is_sqlite else POSTGRES_SCHEMA)

    def close(self) -> None:
        """Close all connections; SQLite then merges its write-ahead log into the file."""
        self._engine.dispose()

    def _connect(self, **options: Any) -> sa.Connection:
        """Return a connection; if PostgreSQL was available before, wait for it up to :data:`RECONNECT_SECONDS`."""
        while True:
            try:
                connection = self._engine.execution_options(**options).connect()
                self._lost_at = None
                return connection
            except OperationalError as error:
                if self.is_sqlite or not self._has_connected or "does not exist" in str(error.orig):
                    raise
                now = time.monotonic()
                self._lost_at = lost_at = self._lost_at or now
                if now > lost_at + RECONNECT_SECONDS:
                    raise self._lost_error(error) from None
                time.sleep(_RECONNECT_INTERVAL)

    def _lost_error(self, error: DBAPIError) -> LostDatabaseError:
        return LostDatabaseError(f"The records database {self.redacted_url} {_describe_cause(error)}")

    def _describe_error(self, error: DBAPIError) -> RecordsError:
        if error.connection_invalidated and self._has_connected:
            return self._lost_error(error)
        if self._is_disk_full(str(error.orig).lower()):
            return FullDatabaseError(
                f"The records database {self.redacted_url} cannot grow because the disk is full: "
                "free some space and run the command again."
            )
        return RecordsError(f"The records database {self.redacted_url} {_describe_cause(error)}")

    def _is_disk_full(self, message: str) -> bool:
        if self.is_sqlite and "disk i/o" in message:
            # SQLite reports a full disk as an input or output error if its log cannot grow.
            with suppress(OSError):
                return shutil.disk_usage(Path(self.url.database or "").parent).free < _MIN_FREE_BYTES
        return "disk is full" in message or "no space" in message

    def corruption_error(self, reason: str) -> RecordsError:
        """Return an error with advice for a damaged database."""
        return RecordsError(f"The records database {self.redacted_url} is corrupt ({reason}): {DAMAGE_ADVICE}")

    def _check_integrity(self) -> None:
        """Raise an error if SQLite finds damage in the file; the file is not changed."""
        path = sqlite_path(self.url)
        if path is not None and (damage := find_damage(path)) is not None:
            raise self.corruption_error(damage)

    def _check_log(self) -> None:
        """Raise an error if there is a write-ahead log that does not belong to the file.

        Such a log may be left over from a replaced file, or be in use by another process.
        """
        path = sqlite_path(self.url)
        log = None if path is None else path.with_name(path.name + "-wal")
        with suppress(OSError):
            if log is not None and log.stat().st_size:
                self._check_integrity()

    def _check_or_create_tables(self, create_missing: bool) -> None:
        version = self.stored_version()
        if version is None and not create_missing:
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
                f"The records database {self.redacted_url} has schema version {version}, "
                f"this version of climassay reads version {tables.SCHEMA_VERSION}: {advice}."
            )

    def stored_version(self) -> int | None:
        """Return the schema version stored in the database; None if it has no tables.

        Raises:
            RecordsError: The database has tables, but not the tables of records.
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
            f"{self.redacted_url} is a database, but not one of climassay's records: choose another workspace or URL."
        )

    def _migrate(self, connection: sa.Connection) -> None:
        self.lock(connection, ADVISORY_LOCK)
        query = sa.select(tables.meta.c.value).where(tables.meta.c.name == "schema_version")
        version = int(connection.execute(query).scalar_one())
        if version < tables.SCHEMA_VERSION:  # else another process has migrated the database meanwhile
            migrate(connection, version, None if self.is_sqlite else POSTGRES_SCHEMA)

    def lock(self, connection: sa.Connection, number: int) -> None:
        """Hold a lock until the end of the transaction. SQLite needs no lock, since it allows only one writer."""
        if not self.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))

    def _create(self, connection: sa.Connection) -> None:
        self.lock(connection, ADVISORY_LOCK)
        if not self.is_sqlite:
            connection.execute(sa.schema.CreateSchema(POSTGRES_SCHEMA, if_not_exists=True))
        tables.metadata.create_all(connection, checkfirst=True)
        self.insert_new(connection, tables.meta, [{"name": "schema_version", "value": str(tables.SCHEMA_VERSION)}])


def sqlite_path(url: sa.URL) -> Path | None:
    """Return the path of a SQLite database; None for PostgreSQL."""
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def open_read_only(file: Path) -> sqlite3.Connection:
    """Open a SQLite file without changing it or the files beside it."""
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)


def find_damage(file: Path) -> str | None:
    """Return the first error that SQLite finds in a database file or its log; None if it finds none.

    Also returns None if the file is locked or cannot be opened.
    """
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
        parameters = {name: value for name, value in _CONNECTION_PARAMETERS.items() if name not in url.query}
        engine = sa.create_engine(url, pool_pre_ping=True, connect_args=parameters)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise MissingExtraError(
            "Records in PostgreSQL need its driver: install it with pip install 'climassay[postgres]'."
        ) from None
    sa.event.listen(engine, "before_cursor_execute", _replace_nul, retval=True)
    return engine.execution_options(schema_translate_map={None: POSTGRES_SCHEMA})


def _replace_nul(
    _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, is_batch: bool
) -> tuple[str, Any]:
    """Replace NUL characters in all parameters by U+FFFD, since PostgreSQL cannot store them."""

    def replace_nul(row: Any) -> Any:
        if not isinstance(row, dict) or not any(isinstance(value, str) and "\x00" in value for value in row.values()):
            return row
        return {key: value.replace("\x00", "\ufffd") if isinstance(value, str) else value for key, value in row.items()}

    return statement, [replace_nul(row) for row in parameters] if is_batch else replace_nul(parameters)


def _prepare_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    """Configure a new SQLite connection: write-ahead log, durable commits, explicit transactions."""
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


def _describe_cause(error: DBAPIError) -> str:
    """Return the cause of an error with advice, worded to follow the name of the database."""
    reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    text = reason.lower()
    if "not a database" in text or "malformed" in text:
        return f"is corrupt ({reason}): {DAMAGE_ADVICE}"
    if "could not decode to utf-8" in text:
        return f"is corrupt (a text in it is not UTF-8): {DAMAGE_ADVICE}"
    if "unable to open" in text:
        return "cannot be opened: check that its folder can be read and written."
    if "readonly" in text or "read-only" in text:
        return "cannot be written: check its permissions."
    if "disk i/o" in text or "file too large" in text:
        advice = "see whether the disk is full or damaged; or restore a backup with climassay records restore FILE."
        return f"cannot be read or written ({reason}): {advice}"
    if is_write_conflict(error):
        return f"stayed locked by another process for {BUSY_SECONDS} s: wait for it or stop it, then try again."
    return f"does not work ({reason})."


WAIT_SECONDS = 15.0
"""Maximum time, in seconds, that a starting server waits for an old server to stop, as during a restart."""
_POLL_SECONDS = 0.1
SERVER_LOCK = 0x636C6D73
"""Number of the PostgreSQL lock that a server holds. For SQLite, the lock is a file."""
_ADDRESS_ENTRY = "server"
"""Name of the entry in ``meta`` that holds the server's address."""


def server_lock(path: Path) -> "FileLock":
    """Return the file lock that only one server of a SQLite file can hold. It is not acquired yet."""
    from filelock import FileLock

    return FileLock(path.with_name(f".{path.name}.server"), timeout=0, mode=0o600)


class ServerLock:
    """Lock of a web server that prevents a second server from using the same records database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._database: Database | None = None
        self._file: FileLock | None = None
        self._connection: sa.Connection | None = None

    def acquire(self, on_wait: Callable[[str], None] = lambda _address: None) -> None:
        """Acquire the lock; does nothing if it is already held.

        Args:
            on_wait: Function called once with the address of the other server, before waiting for that server to stop.

        Raises:
            InputError: Another server has not stopped within :data:`WAIT_SECONDS`.
        """
        if self._database is not None:
            return
        database = Database(self._url)
        deadline: float | None = None
        while not self._try_acquire(database):
            address = read_server_address(database) or "an unknown address"
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
        """Store the address of this server, so that other processes can find it."""
        assert self._database is not None
        database, entry = self._database, {"name": _ADDRESS_ENTRY, "value": address}
        database.write(lambda connection: database.insert_new(connection, tables.meta, [entry], replacing=("value",)))

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


def read_server_address(database: Database) -> str | None:
    """Return the address of the current or last server of a records database; None if there was none."""
    result: str | None = database.scalar(sa.select(tables.meta.c.value).where(tables.meta.c.name == _ADDRESS_ENTRY))
    return result
