"""Tables of the records database, the same on SQLite and PostgreSQL.

Keys are SHA-256 digests of the content, so that processes that write the same content write the same row. Times are
seconds since 1970-01-01 UTC, digests are 32 bytes, and JSON is stored as text. Other packages create their own tables
when they first need them. Any change of a table increments :data:`SCHEMA_VERSION`.
"""

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

SCHEMA_VERSION = 1
"""Version of all tables, including the tables of other packages. Older databases are migrated, newer ones rejected."""

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
    comment="Schema version, address of the server, and process of each running run.",
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
    comment="Command with its full configuration, without data on the machine.",
)

texts = Table(
    "texts",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("body", Text, nullable=False),
    comment="Rendered prompts and request settings, each stored once.",
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
    comment="Requests to models.",
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
    Column("reasoning", Text),
    Column("attempts", Integer, nullable=False),
    Column("cost", Float),
    Index("answers_by_request", "request"),
    Index("answers_by_run", "run"),
    comment="Answers, or errors of failed requests. The successful answer with the highest id is reused: the newest "
    "one, and imported ones, which have ids below 0, last.",
)

uses = Table(
    "uses",
    metadata,
    Column("run", String(16), ForeignKey("runs.id"), primary_key=True),
    Column("answer", Integer, ForeignKey("answers.id"), primary_key=True),
    comment="Answers of earlier runs that a run has reused.",
)

in_flight = Table(
    "in_flight",
    metadata,
    Column("request", LargeBinary(32), primary_key=True),
    Column("run", String(16), nullable=False),
    comment="Keys of requests that a run has in flight, for whose answers other runs wait.",
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
    comment="Results that a run computed, as JSON rows of named tables.",
)
