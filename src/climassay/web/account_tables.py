"""Tables of people, and of what lets them in; secrets are kept as hashes only."""

import sqlalchemy as sa

metadata = sa.MetaData()

users = sa.Table(
    "web_users",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("shown", sa.String(120), nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("password", sa.Text),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    comment="People with an account; who was removed stays as the author of what they said.",
)
sessions = sa.Table(
    "web_sessions",
    metadata,
    sa.Column("token", sa.LargeBinary(32), primary_key=True),
    sa.Column("user", sa.String(40), sa.ForeignKey("web_users.name"), nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Index("web_sessions_by_user", "user"),
    comment="Who is signed in: SHA-256 of the cookie.",
)
links = sa.Table(
    "web_links",
    metadata,
    sa.Column("token", sa.LargeBinary(32), primary_key=True),
    sa.Column("user", sa.String(40), sa.ForeignKey("web_users.name"), nullable=False),
    sa.Column("purpose", sa.String(12), nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Column("used_at", sa.Float),
    comment="Links that let somebody in once: the first sign-in, an invitation, a new password.",
)
api_tokens = sa.Table(
    "web_api_tokens",
    metadata,
    sa.Column("token", sa.LargeBinary(32), primary_key=True),
    sa.Column("id", sa.String(16), nullable=False, unique=True),
    sa.Column("user", sa.String(40), sa.ForeignKey("web_users.name"), nullable=False),
    sa.Column("label", sa.String(120), nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("revoked_at", sa.Float),
    comment="Tokens for programs, each of one user.",
)
failures = sa.Table(
    "web_sign_in_failures",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("subject", sa.LargeBinary(32), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Index("web_failures_by_subject", "subject", "at"),
    comment="Wrong passwords, by the hash of a name or an address, for the limit of attempts.",
)
secrets = sa.Table(
    "web_secrets",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.LargeBinary(32), nullable=False),
    comment="Random keys of this installation.",
)
