"""Backup and restoration of a records database in SQLite.

A copy of the file alone is not a backup: the latest transactions are in the write-ahead log beside it, and an older
file beside a newer log is corrupt.
"""

import errno
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.io.writing import atomic_path
from climassay.records import tables
from climassay.records.database import Database, find_damage, open_read_only, server_lock, sqlite_path

SIDE_FILES = ("-wal", "-shm")
"""Suffixes of the files that SQLite keeps beside a database: its write-ahead log and the index of the log."""
_FIRST_BYTES = b"SQLite format 3\x00"


def back_up(database: Database, file: Path) -> None:
    """Write a consistent copy of a records database to one file. Other processes may write to the database meanwhile.

    Raises:
        InputError: The database is not in SQLite, or the file is the database itself or cannot be written.
        RecordsError: The database is corrupt.
    """
    path = _require_sqlite(database.url)
    _require_other_file(file, path)
    with atomic_path(file) as temporary_file:
        try:
            _copy(path, temporary_file)
        except sqlite3.OperationalError as error:
            is_full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
            raise OSError(errno.ENOSPC if is_full else None, str(error)) from None
        except sqlite3.DatabaseError as error:
            raise database.corruption_error(str(error)) from None
        if (damage := find_damage(temporary_file)) is not None:
            raise database.corruption_error(damage)


def restore(url: str, file: Path) -> list[Path]:
    """Replace a records database by a backup, keeping the replaced files beside it under other names.

    The database may be corrupt. If the process is killed, repeating the call completes the restoration.

    Returns:
        New paths of the replaced files.

    Raises:
        InputError: The file is not an intact backup, or the database is in use or not in SQLite.
    """
    path = _require_sqlite(sa.make_url(url))
    _require_other_file(file, path)
    _require_backup(file)
    with _server_stopped(path), atomic_path(path) as temporary_file:
        _require_unused(path)
        _copy(file, temporary_file)
        suffix = time.strftime(".replaced-%Y%m%d-%H%M%S")
        replaced_files = []
        for database_file in (path, *(path.with_name(path.name + ending) for ending in SIDE_FILES)):
            if database_file.exists():
                # "-wal" stays at the end, so that SQLite finds the log of the replaced file.
                ending = database_file.name.removeprefix(path.name)
                replaced_files.append(database_file.rename(path.with_name(path.name + suffix + ending)))
    return replaced_files


def _copy(source_file: Path, target_file: Path) -> None:
    with closing(open_read_only(source_file)) as source, closing(sqlite3.connect(target_file)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")


def _require_sqlite(url: sa.URL) -> Path:
    path = sqlite_path(url)
    if path is None:
        raise InputError("The records are in PostgreSQL: back them up with pg_dump and restore them with pg_restore.")
    return path


def _require_other_file(file: Path, path: Path) -> None:
    if file.resolve() == path.resolve():
        raise InputError(f"{file} is the records database itself: name another file.")


def _require_backup(file: Path) -> None:
    """Raise an error unless a file is an intact records database that this version of climassay can read."""
    try:
        if not file.is_file() and file.exists():
            raise InputError(f"{file} is not a file: name a backup.")
        with file.open("rb") as content:
            is_sqlite = content.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror or error}): name a backup.") from None
    damage = find_damage(file) if is_sqlite else "it is not a SQLite database"
    if damage is not None:
        raise InputError(f"{file} is not an intact backup ({damage}): name another one. Nothing was changed.")
    query = f"SELECT value FROM {tables.meta.name} WHERE name = 'schema_version'"
    with closing(open_read_only(file)) as connection:
        try:
            row = connection.execute(query).fetchone()
        except sqlite3.OperationalError:
            row = None
    if row is None:
        raise InputError(f"{file} is not a backup of climassay's records: name another file. Nothing was changed.")
    if not str(row[0]).isdigit() or int(row[0]) > tables.SCHEMA_VERSION:
        raise InputError(f"{file} has schema version {row[0]}: update climassay to restore it. Nothing was changed.")


@contextmanager
def _server_stopped(path: Path) -> Iterator[None]:
    from filelock import Timeout

    try:
        with server_lock(path):
            yield
    except Timeout:
        raise InputError(f"A server uses {path}: stop it, then try again.") from None


def _require_unused(path: Path) -> None:
    """Raise an error if another process has the database open."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            if "locked" in str(error):
                raise InputError(f"{path} is in use: stop the commands that use it, then try again.") from None
