"""What version 1 made; nothing came before it."""

revision, down_revision = "1", None


def upgrade() -> None:
    """Nothing to do."""
