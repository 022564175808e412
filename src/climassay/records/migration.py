"""Migration of databases of an earlier schema version: they are copied, and then revised in one transaction.

A process that is killed in the middle leaves the database unchanged, and the next one starts again.
"""

import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import sqlalchemy as sa

from climassay.errors import RecordsError
from climassay.records import tables

REVISIONS: dict[int, Sequence[str]] = {}
"""SQL statements, for SQLite and PostgreSQL, that convert tables of the preceding schema version, by schema version."""


def migrate(connection: sa.Connection, version: int, schema: str | None) -> None:
    """Back up the tables by copying them, and convert them to :data:`~climassay.records.tables.SCHEMA_VERSION`.

    Args:
        connection: Connection in a write transaction, which the caller commits.
        version: Current schema version of the database.
        schema: PostgreSQL schema of the tables; None for SQLite.

    Raises:
        RecordsError: The copy of a SQLite file cannot be written.
    """
    if schema is None:
        _copy_file(Path(str(connection.engine.url.database)), version)
    else:
        _copy_schema(connection, schema, version)
        connection.execute(sa.text(f"SET LOCAL search_path TO {schema}"))
    for later_version in range(version + 1, tables.SCHEMA_VERSION + 1):
        for statement in REVISIONS[later_version]:
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql(f"UPDATE meta SET value = '{tables.SCHEMA_VERSION}' WHERE name = 'schema_version'")


def _copy_file(file: Path, version: int) -> None:
    """Copy a SQLite database to a file such as ``records.v1.sqlite`` beside it, unless that file exists."""
    copy = file.with_name(f"{file.stem}.v{version}{file.suffix}")
    if copy.exists():
        return
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
            f"{tables.SCHEMA_VERSION}, but it cannot be copied first ({error}): free some space and run the command "
            "again."
        ) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _copy_schema(connection: sa.Connection, schema: str, version: int) -> None:
    """Copy the tables of a PostgreSQL schema to a schema such as ``climassay_v1``, unless that schema exists."""
    copy, inspector = f"{schema}_v{version}", sa.inspect(connection)
    if copy in inspector.get_schema_names():
        return
    connection.execute(sa.schema.CreateSchema(copy))
    for table in inspector.get_table_names(schema=schema):
        connection.exec_driver_sql(f'CREATE TABLE "{copy}"."{table}" AS TABLE "{schema}"."{table}"')
