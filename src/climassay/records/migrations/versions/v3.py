"""Requests that a run is asking are marked, and jobs say which server does them."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "3", "2"


def upgrade() -> None:
    """Add the marks, and to jobs (where there are any) their owner and its last sign of life."""
    op.create_table(
        "in_flight",
        sa.Column("request", sa.LargeBinary(32), primary_key=True),
        sa.Column("run", sa.String(16), nullable=False),
    )
    if sa.inspect(op.get_bind()).has_table("web_jobs"):
        op.add_column("web_jobs", sa.Column("owner", sa.String(16)))
        op.add_column("web_jobs", sa.Column("seen_at", sa.Float))
