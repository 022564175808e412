"""Recorded answers with their requests."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from climassay.errors import RecordsError
from climassay.records import tables
from climassay.records.database import Database, build_record
from climassay.records.identity import Kind
from climassay.records.queries import format_time, require_run

HEX = frozenset("0123456789abcdef")
ROWS_PER_BATCH = 1000
MAX_MATCHES = 20
"""Maximum number of requests that are returned for a key prefix."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """Answer to a request, or its failure, together with the request."""

    key: str
    """Key of the request, in hexadecimal."""
    run: str
    """Id of the run that sent the request."""
    kind: Kind
    model: str
    fingerprint: str
    prompt: str
    settings: dict[str, Any]
    answered_at: str
    text: str | None
    logprobs: list[float] | None
    outcome: str
    """Finish reason, scoring method or ``error``."""
    error: str | None
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    """Number of completion tokens for reasoning."""
    attempts: int
    cost: float | None
    reasoning: str | None = None
    """Reasoning before the answer, if the server returns it."""


def find_answers(database: Database, key_prefix: str) -> list[RecordedAnswer]:
    """Return all answers to the requests whose keys begin with a prefix, the newest last.

    Raises:
        RecordsError: The prefix is invalid, or the number of matching keys is 0 or too high.
    """
    prefix = key_prefix.lower()
    if not 4 <= len(prefix) <= 64 or not set(prefix) <= HEX:
        raise RecordsError(
            f"{key_prefix!r} is neither a run (r and eight hexadecimal digits) nor the start of a request's key "
            "(at least four hexadecimal digits)."
        )
    min_key, max_key = bytes.fromhex(prefix.ljust(64, "0")), bytes.fromhex(prefix.ljust(64, "f"))
    has_prefix = tables.requests.c.key.between(min_key, max_key)
    with database.read() as connection:
        count = connection.execute(
            sa.select(sa.func.count()).select_from(tables.requests).where(has_prefix)
        ).scalar_one()
        if not 1 <= count <= MAX_MATCHES:
            advice = "give more digits" if count else "look it up with climassay records export"
            raise RecordsError(f"{count} requests have a key that begins with {prefix}: {advice}.")
        return [_build_recorded_answer(row) for row in connection.execute(_answers_query().where(has_prefix))]


def count_answers(database: Database, run: str | None = None) -> int:
    """Return the number of answers that :func:`iterate_answers` yields."""
    return int(database.scalar(sa.select(sa.func.count()).select_from(_answers_query(run).order_by(None).subquery())))


def iterate_answers(database: Database, run: str | None = None) -> Iterator[Sequence[RecordedAnswer]]:
    """Yield all answers, or those that a run received or reused, in batches, the oldest first.

    Raises:
        RecordsError: The run does not exist.
    """
    if run is not None:
        require_run(database, run)
    with database.read() as connection:
        result = connection.execution_options(yield_per=ROWS_PER_BATCH).execute(_answers_query(run))
        for rows in result.partitions():
            yield [_build_recorded_answer(row) for row in rows]


def search_answers(database: Database, run: str, text: str, limit: int, offset: int = 0) -> list[RecordedAnswer]:
    """Return a run's answers, received or reused, to prompts that contain a text, oldest first.

    The text is also found in its JSON-escaped form, as in prompts that are JSON. An empty text matches all prompts.
    """
    search_texts = (text, *(json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)))
    query = _answers_query(run, tuple(dict.fromkeys(search_texts)) if text else ())
    return [_build_recorded_answer(row) for row in database.rows(query.limit(limit).offset(offset))]


def _answers_query(run: str | None = None, texts: Sequence[str] = ()) -> sa.Select[Any]:
    answers, requests = tables.answers, tables.requests
    prompt, settings = tables.texts.alias("prompt_text"), tables.texts.alias("settings_text")
    query = (
        sa.select(
            answers,
            requests.c.kind,
            requests.c.model,
            requests.c.fingerprint,
            prompt.c.body.label("prompt"),
            settings.c.body.label("settings"),
        )
        .join(requests, requests.c.key == answers.c.request)
        .join(prompt, prompt.c.digest == requests.c.prompt)
        .join(settings, settings.c.digest == requests.c.settings)
        .order_by(answers.c.id)
    )
    if texts:
        query = query.where(sa.or_(*(prompt.c.body.contains(text, autoescape=True) for text in texts)))
    if run is None:
        return query
    reused_answers = sa.select(tables.uses.c.answer).where(tables.uses.c.run == run)
    return query.where(sa.or_(answers.c.run == run, answers.c.id.in_(reused_answers)))


def _build_recorded_answer(row: sa.Row[Any]) -> RecordedAnswer:
    return build_record(
        RecordedAnswer,
        row,
        key=bytes(row.request).hex(),
        settings=json.loads(row.settings),
        answered_at=format_time(row.answered_at),
        logprobs=None if row.logprobs is None else json.loads(row.logprobs),
    )
