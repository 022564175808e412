"""How the tables of a records database, of this room and of those above it, came from one version to the next.

Whoever changes a table raises ``SCHEMA_VERSION`` (:mod:`climassay.records.tables`) and adds a function to
:data:`REVISIONS` that changes the tables of the version before. Tables of higher rooms are made when they are first
needed and may be missing.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations


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
