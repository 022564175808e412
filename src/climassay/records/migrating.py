"""A database of an earlier version becomes one of this version: a copy first, then revisions in one transaction.

A process that is killed in the middle leaves the database as it was, and the next one begins again.
"""

import os
import shutil
import sqlite3
import threading
from contextlib import closing, suppress
from importlib.resources import files
from pathlib import Path

import sqlalchemy as sa

from climassay.errors import RecordsError
from climassay.records import tables

OLDEST = 1
"""The earliest version that can be brought forward."""
_ALEMBIC = threading.Lock()
"""Alembic knows one migration at a time in a process."""


def keep_copy(file: Path, version: int) -> Path:
    """Copy a SQLite database beside itself before it is changed, as ``records.v2.sqlite``; an earlier copy stays.

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
            f"The records database {file} is of version {version} and has to be brought to version "
            f"{tables.SCHEMA_VERSION}, but it cannot be copied first ({error}): make room and run the command again."
        ) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return copy


def keep_schema_copy(connection: sa.Connection, schema: str, version: int) -> None:
    """Copy the tables of a PostgreSQL schema into one beside it, as ``climassay_v2``; an earlier copy stays."""
    copy, inspector = f"{schema}_v{version}", sa.inspect(connection)
    if copy in inspector.get_schema_names():
        return
    connection.execute(sa.schema.CreateSchema(copy))
    for table in inspector.get_table_names(schema=schema):
        connection.exec_driver_sql(f'CREATE TABLE "{copy}"."{table}" AS TABLE "{schema}"."{table}"')


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring the tables from a version to this one, within the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(files("climassay.records") / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    with _ALEMBIC:
        command.stamp(config, str(version), purge=True)
        command.upgrade(config, str(tables.SCHEMA_VERSION))
    stored = sa.update(tables.meta).where(tables.meta.c.name == "schema_version")
    connection.execute(stored.values(value=str(tables.SCHEMA_VERSION)))
