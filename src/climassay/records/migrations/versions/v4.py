"""Indexed questions have other tables by now; those under their first names go."""

from alembic import op

revision, down_revision = "4", "3"


def upgrade() -> None:
    """Drop them where they are; what they held is written anew when a run's questions are looked at."""
    for table in ("web_question_indexes", "web_questions", "web_question_answers"):
        op.drop_table(table, if_exists=True)
