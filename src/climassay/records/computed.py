"""What was computed from stored results and takes long: kept by what it was computed from, so that it is done once."""

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa

from climassay import __version__
from climassay.records.database import Database

MOST_KEPT = 2000
"""Entries; the oldest go first."""
_prepared: WeakSet[Database] = WeakSet()
"""Databases that are known to have the table."""
metadata = sa.MetaData()
computed = sa.Table(
    "computed",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("version", sa.String(40), nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    comment="What takes long to compute from results of runs, by a hash of what it was computed from; may be deleted.",
)


def kept(database: Database, parts: tuple[object, ...], make: Callable[[], Any] | None = None) -> Any:
    """Something that was computed before, or that is computed now and kept.

    The parts, texts and numbers, say what it is and what it is computed from, for example ids of runs that have ended;
    ``make`` computes what ``json.dumps`` takes.

    Returns:
        The value as JSON reads it; None where it is not kept and ``make`` is not given. Values that another version of
        climassay computed count as not kept.
    """
    if database not in _prepared:
        database.create_tables(metadata)
        _prepared.add(database)
    key = hashlib.sha256(json.dumps([__version__, *parts]).encode()).hexdigest()
    text = database.scalar(sa.select(computed.c.value).where(computed.c.key == key))
    if text is None and make is not None:
        text = json.dumps(make(), ensure_ascii=False)
        row = {"key": key, "version": __version__, "made_at": time.time(), "value": text}
        oldest = sa.select(computed.c.made_at).order_by(computed.c.made_at.desc()).offset(MOST_KEPT).limit(1)
        old = sa.or_(computed.c.version != __version__, computed.c.made_at <= oldest.scalar_subquery())

        def work(connection: sa.Connection) -> None:
            connection.execute(computed.delete().where(old))
            database.insert_new(connection, computed, [row], replacing=("value", "made_at"))

        database.write(work, durable=False)
    return None if text is None else json.loads(text)
