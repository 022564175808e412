"""Tables of long work: jobs and what they report while they run."""

import sqlalchemy as sa

metadata = sa.MetaData()

jobs = sa.Table(
    "web_jobs",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("lane", sa.String(16), nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("done", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("result", sa.Text),
    sa.Column("by", sa.String(40)),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("owner", sa.String(16)),
    sa.Column("seen_at", sa.Float),
    sa.Index("web_jobs_by_state", "state", "made_at"),
    comment="Long work that people asked for in the browser.",
)
job_events = sa.Table(
    "web_job_events",
    metadata,
    sa.Column("job", sa.String(16), sa.ForeignKey("web_jobs.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    comment="What a job told while it ran, numbered from 1.",
)
