"""The tables of fact-checks that were asked for, and of what people say about them."""

import sqlalchemy as sa

metadata = sa.MetaData()

checks = sa.Table(
    "checks",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("claim_id", sa.String(12), nullable=False),
    sa.Column("claim", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("date", sa.Text, nullable=False),
    sa.Column("by", sa.String(120)),
    sa.Column("asked_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("set_up", sa.String(120), nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("job", sa.String(40)),
    sa.Column("run", sa.String(16)),
    sa.Column("outcome", sa.String(24)),
    sa.Column("label", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("transcript", sa.Text),
    sa.CheckConstraint("state IN ('waiting', 'done', 'failed', 'stopped')", name="known_check_state"),
    sa.Index("checks_by_time", "asked_at"),
    sa.Index("checks_by_claim", "claim_id"),
    sa.Index("checks_by_run", "run"),
    comment="One claim that somebody asked to have checked, with the debate once it has ended.",
)
check_reviews = sa.Table(
    "check_reviews",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("check", sa.String(16), sa.ForeignKey("checks.id"), nullable=False),
    sa.Column("by", sa.String(120), nullable=False),
    sa.Column("opinion", sa.String(12), nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.CheckConstraint("opinion IN ('agree', 'disagree', 'undecided')", name="known_check_opinion"),
    sa.Index("reviews_by_check", "check", "by", "number"),
    comment="What a person said about a finished check; the last word of each stands.",
)


def current_reviews() -> sa.Select[tuple[str, int, int, int]]:
    """How many people hold what of each check that was reviewed; only the last word of each counts."""
    numbers = sa.select(sa.func.max(check_reviews.c.number)).group_by(check_reviews.c.check, check_reviews.c.by)
    counts = [
        sa.func.sum(sa.case((check_reviews.c.opinion == opinion, 1), else_=0)).label(opinion)
        for opinion in ("agree", "disagree", "undecided")
    ]
    current = check_reviews.c.number.in_(numbers)
    return sa.select(check_reviews.c.check, *counts).where(current).group_by(check_reviews.c.check)
