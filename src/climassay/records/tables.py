"""The tables of the records database, the same on SQLite and PostgreSQL.

What identifies something is the SHA-256 of its content, so that two processes that write the same thing at once write
the same row. Times are seconds since 1970-01-01 UTC; digests are 32 raw bytes; JSON is kept as text.

Whoever changes a table, here or in a room above, raises :data:`SCHEMA_VERSION` and adds a function to
:data:`REVISIONS` that changes the tables of the version before. Tables of higher rooms are made when they are first
needed and may be missing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

if TYPE_CHECKING:
    from alembic.operations import Operations

SCHEMA_VERSION = 1
"""Version of these tables and those of higher packages; :func:`migrate` brings older databases to it."""

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
    comment="What the database says about itself: its schema version, its server, who works on the runs that go on.",
)

runs = Table(
    "runs",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("command", Text, nullable=False),
    Column("status", String(12), nullable=False),
    Column("version", String(40), nullable=False),
    Column("config", Text, nullable=False),
    Column("seeds", Text, nullable=False),
    Column("error", Text),
    Column("started_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
    Column("ended_at", Float),
    CheckConstraint("status IN ('running', 'done', 'failed', 'interrupted')", name="known_status"),
    comment="One command with its full configuration; nothing about the machine.",
)

texts = Table(
    "texts",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("body", Text, nullable=False),
    comment="Rendered prompts and request settings, each kept once.",
)

requests = Table(
    "requests",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("kind", String(8), nullable=False),
    Column("model", Text, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("prompt", LargeBinary(32), ForeignKey("texts.digest"), nullable=False),
    Column("settings", LargeBinary(32), ForeignKey("texts.digest"), nullable=False),
    comment="What was asked of which model.",
)

answers = Table(
    "answers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("request", LargeBinary(32), ForeignKey("requests.key"), nullable=False),
    Column("run", String(16), ForeignKey("runs.id"), nullable=False),
    Column("answered_at", Float, nullable=False),
    Column("text", Text),
    Column("logprobs", Text),
    Column("outcome", String(16), nullable=False),
    Column("error", Text),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False, server_default="0"),
    Column("reasoning", Text),
    Column("attempts", Integer, nullable=False),
    Column("cost", Float),
    Index("answers_by_request", "request"),
    Index("answers_by_run", "run"),
    comment="What came back: an answer, or the error of a failed request. Of those without error the one of the "
    "highest id is served: the newest, and one's own before those of imported ones, which have ids below 0.",
)

uses = Table(
    "uses",
    metadata,
    Column("run", String(16), ForeignKey("runs.id"), primary_key=True),
    Column("answer", Integer, ForeignKey("answers.id"), primary_key=True),
    comment="Answers of earlier runs that a run was served from the records.",
)

in_flight = Table(
    "in_flight",
    metadata,
    Column("request", LargeBinary(32), primary_key=True),
    Column("run", String(16), nullable=False),
    comment="Keys of requests that a run is asking, so that another one waits for the answer.",
)

results = Table(
    "results",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", String(16), ForeignKey("runs.id"), nullable=False),
    Column("name", String(80), nullable=False),
    Column("position", Integer, nullable=False),
    Column("row", Text, nullable=False),
    UniqueConstraint("run", "name", "position", name="one_row_a_place"),
    comment="What a run computed from the answers, as JSON rows of named tables.",
)


REVISIONS: dict[int, "Callable[[Operations], None]"] = {}
"""For each version after 1, the function that changes the tables of the version before."""


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring the tables from a version to :data:`SCHEMA_VERSION`, within the connection's transaction."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    operations = Operations(MigrationContext.configure(connection))
    for newer in range(version + 1, SCHEMA_VERSION + 1):
        REVISIONS[newer](operations)
    connection.execute(
        sa.text("UPDATE meta SET value = :value WHERE name = 'schema_version'"), {"value": str(SCHEMA_VERSION)}
    )
