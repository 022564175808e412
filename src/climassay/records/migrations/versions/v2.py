"""Answers say how many of their tokens were thought before them."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "2", "1"


def upgrade() -> None:
    """Add the column; answers of before have thought nothing."""
    op.add_column("answers", sa.Column("reasoning_tokens", sa.BigInteger, nullable=False, server_default="0"))
