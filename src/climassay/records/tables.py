"""The tables of the records database, the same on SQLite and PostgreSQL.

What identifies something is the SHA-256 of its content, so that two processes that write the same thing at once write
the same row. Times are seconds since 1970-01-01 UTC; digests are 32 raw bytes; JSON is kept as text.

Whoever changes a table, here or in a room above, raises :data:`SCHEMA_VERSION` and adds a function to
:data:`REVISIONS` that changes the tables of the version before. Tables of higher rooms are made when they are first
needed and may be missing.
"""

import json
from collections.abc import Callable, Mapping
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

SCHEMA_VERSION = 4
"""Raised with every change of these tables or of a higher room's; a database says which version it has, and those of
earlier ones are brought forward by :func:`migrate`."""

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


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring the tables from a version to the newest, within the connection's transaction."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    operations = Operations(MigrationContext.configure(connection))
    for newer in range(version + 1, max(REVISIONS) + 1):
        REVISIONS[newer](operations)
    meta = sa.table("meta", sa.column("name"), sa.column("value"))
    stored = sa.update(meta).where(meta.c.name == "schema_version")
    connection.execute(stored.values(value=str(max(REVISIONS))))


def _tokens_thought(op: "Operations") -> None:
    """Answers say how many of their tokens were thought before them; those until now have thought nothing."""
    op.add_column("answers", sa.Column("reasoning_tokens", sa.BigInteger, nullable=False, server_default="0"))


def _requests_in_flight(op: "Operations") -> None:
    """Requests that a run is asking are marked; jobs (where there are any) say which server does them."""
    op.create_table(
        "in_flight",
        sa.Column("request", sa.LargeBinary(32), primary_key=True),
        sa.Column("run", sa.String(16), nullable=False),
    )
    if sa.inspect(op.get_bind()).has_table("web_jobs"):
        op.add_column("web_jobs", sa.Column("owner", sa.String(16)))
        op.add_column("web_jobs", sa.Column("seen_at", sa.Float))


def _checks_described(op: "Operations") -> None:
    """Checks say who debated, how long and about what, and are filtered by it; what a job reported has its moment.

    Who debated is read from the settings kept there. The tables that go indexed questions under other names; what they
    held is written anew when a run's questions are looked at.
    """
    for table in ("web_question_indexes", "web_questions", "web_question_answers"):
        op.drop_table(table, if_exists=True)
    connection = op.get_bind()
    inspector = sa.inspect(connection)
    if inspector.has_table("web_job_events"):
        op.add_column("web_job_events", sa.Column("told_at", sa.Float))
    if not inspector.has_table("checks"):
        return
    for column in (
        sa.Column("model", sa.Text),
        sa.Column("advocates", sa.Integer),
        sa.Column("topic", sa.String(8)),
        sa.Column("seconds", sa.Float),
    ):
        op.add_column("checks", column)
    op.drop_index("checks_by_time", "checks")
    op.create_index("checks_by_time", "checks", ["asked_at", "id"])
    op.create_index("checks_by_end", "checks", ["label", "outcome", "asked_at"])
    op.create_index("checks_by_topic", "checks", ["topic", "asked_at"])
    collections = op.create_table(
        "check_collections",
        sa.Column("check", sa.String(16), sa.ForeignKey("checks.id"), primary_key=True),
        sa.Column("collection", sa.Text, primary_key=True),
    )
    op.create_index("check_collections_by_name", "check_collections", ["collection"])
    checks = sa.table("checks", *map(sa.column, ("id", "settings", "model", "advocates")))
    for check, text in connection.execute(sa.select(checks.c.id, checks.c.settings)).all():
        settings = json.loads(text)
        advocates = settings.get("advocate", [])
        values = {"model": settings.get("model"), "advocates": len(advocates)}
        connection.execute(checks.update().where(checks.c.id == check).values(values))
        names = {name for advocate in advocates for name in advocate.get("collections", ())}
        rows = [{"check": check, "collection": name} for name in sorted(names)]
        if rows:
            connection.execute(collections.insert(), rows)


REVISIONS: Mapping[int, "Callable[[Operations], None]"] = {
    2: _tokens_thought,
    3: _requests_in_flight,
    4: _checks_described,
}
"""What brings the tables of the version before to each version."""
