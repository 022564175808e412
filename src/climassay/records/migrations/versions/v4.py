"""Checks say who debated, how long and about what; what a job reported has its moment; tables without use go.

Lists of checks are filtered by these. The tables indexed questions under other names; what they held is written anew
when a run's questions are looked at.
"""

import json

import sqlalchemy as sa
from alembic import op

revision, down_revision = "4", "3"


def upgrade() -> None:
    """Add columns and tables where there are checks and jobs; who debated is read from the settings kept there."""
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
