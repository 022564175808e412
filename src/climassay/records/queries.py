"""Questions to the records: which runs there were, what a request got, what it all cost."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from climassay.errors import RecordsError
from climassay.records import tables
from climassay.records.database import Database
from climassay.records.runs import SILENCE_SECONDS

HEX = frozenset("0123456789abcdef")
ROWS_AT_ONCE = 1000
MOST_SHOWN = 20
"""Requests that a key prefix may show at once."""


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What was asked of one model."""

    model: str
    fingerprint: str
    answers: int
    """Answers and failures."""
    failed: int
    attempts: int
    """Requests sent, retries included."""
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    """Of the completion tokens, those that were thought before the answers."""
    cost: float | None
    """US dollars, of what has a price; None where nothing has."""
    unpriced: int
    """Answers with tokens but without a known price."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in the list of runs."""

    id: str
    command: str
    status: str
    """``running``, ``done``, ``failed`` or ``interrupted``."""
    version: str
    started_at: str
    """ISO 8601, UTC."""
    ended_at: str | None
    asked: int
    failed: int
    served: int
    """Answers of earlier runs that it was served from the records."""
    cost: float | None


@dataclass(frozen=True, slots=True)
class RunDetails:
    """One run with everything kept about it."""

    summary: RunSummary
    config: dict[str, Any]
    seeds: dict[str, Any]
    error: str | None
    usage: tuple[ModelUsage, ...]
    results: dict[str, list[dict[str, Any]]]
    """Rows by table."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer, or failure, with its request."""

    key: str
    """Hexadecimal."""
    run: str
    """The run that asked."""
    kind: str
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
    """Of the completion tokens, those that were thought before the answer."""
    attempts: int
    cost: float | None


def list_runs(database: Database, run: str | None = None) -> list[RunSummary]:
    """All runs, the oldest first, or the one given."""
    answers, uses, runs = tables.answers, tables.uses, tables.runs
    asked = (
        sa.select(
            answers.c.run,
            sa.func.count().label("asked"),
            sa.func.count(answers.c.error).label("failed"),
            sa.func.sum(answers.c.cost).label("cost"),
        )
        .group_by(answers.c.run)
        .subquery()
    )
    served = sa.select(uses.c.run, sa.func.count().label("served")).group_by(uses.c.run).subquery()
    query = (
        sa.select(runs, asked.c.asked, asked.c.failed, asked.c.cost, served.c.served)
        .outerjoin(asked, asked.c.run == runs.c.id)
        .outerjoin(served, served.c.run == runs.c.id)
        .order_by(runs.c.started_at, runs.c.id)
    )
    if run is not None:
        query = query.where(runs.c.id == run)
    with database.read() as connection:
        return [
            summary_of(row, row.asked or 0, row.failed or 0, row.served or 0, row.cost)
            for row in connection.execute(query)
        ]


def usage_by_model(database: Database, run: str | None = None) -> list[ModelUsage]:
    """What was asked of each model, over all runs or by one run.

    Raises:
        RecordsError: There is no such run.
    """
    answers, requests = tables.answers, tables.requests
    priceless = sa.and_(answers.c.cost.is_(None), answers.c.prompt_tokens + answers.c.completion_tokens > 0)
    query = (
        sa.select(
            requests.c.model,
            requests.c.fingerprint,
            sa.func.count(),
            sa.func.count(answers.c.error),
            sa.func.sum(answers.c.attempts),
            sa.func.sum(answers.c.prompt_tokens),
            sa.func.sum(answers.c.completion_tokens),
            sa.func.sum(answers.c.reasoning_tokens),
            sa.func.sum(answers.c.cost),
            sa.func.sum(sa.case((priceless, 1), else_=0)),
        )
        .join(requests, requests.c.key == answers.c.request)
        .group_by(requests.c.model, requests.c.fingerprint)
        .order_by(requests.c.model, requests.c.fingerprint)
    )
    if run is not None:
        require_run(database, run)
        query = query.where(answers.c.run == run)
    with database.read() as connection:
        return [
            ModelUsage(model, fingerprint, *map(int, counts), cost, int(unpriced))  # type: ignore[call-arg]
            for model, fingerprint, *counts, cost, unpriced in connection.execute(query)
        ]


def seconds_per_answer(database: Database, model: str, latest: int = 20) -> float | None:
    """Mean time in which a model's answers came in its latest runs: a run's time until its last answer, by its answers.

    What was asked side by side is in it, and so is what a run did between two answers. None where no run has an answer.

    Args:
        database: The records.
        model: Its name.
        latest: Number of runs, from the newest back.
    """
    answers, requests, runs = tables.answers, tables.requests, tables.runs
    query = (
        sa.select(sa.func.max(answers.c.answered_at) - runs.c.started_at, sa.func.count())
        .join(requests, requests.c.key == answers.c.request)
        .join(runs, runs.c.id == answers.c.run)
        .where(requests.c.model == model, answers.c.error.is_(None))
        .group_by(runs.c.id, runs.c.started_at)
        .order_by(runs.c.started_at.desc())
        .limit(latest)
    )
    with database.read() as connection:
        rows = connection.execute(query).all()
    return sum(max(0.0, elapsed) for elapsed, _ in rows) / sum(count for _, count in rows) if rows else None


def run_details(database: Database, run: str) -> RunDetails:
    """Everything kept about a run.

    Raises:
        RecordsError: There is no such run.
    """
    summary = require_run(database, run)
    config, seeds, error = run_settings(database, run)
    usage = tuple(usage_by_model(database, run))
    return RunDetails(summary, config, seeds, error, usage, run_rows(database, run))


def run_rows(
    database: Database, run: str, which: sa.ColumnElement[bool] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Rows that a run stored, by table and in their order.

    Args:
        database: Of the records.
        run: Id of the run.
        which: Only rows of ``results`` of which this holds; by default all.
    """
    results = tables.results
    kept = sa.select(results.c.name, results.c.row).where(results.c.run == run)
    rows: dict[str, list[dict[str, Any]]] = {}
    with database.read() as connection:
        chosen = kept if which is None else kept.where(which)
        for name, text in connection.execute(chosen.order_by(results.c.name, results.c.position)):
            rows.setdefault(name, []).append(json.loads(text))
    return rows


def run_settings(database: Database, run: str) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Configuration, seeds and error of a run, without its results.

    Raises:
        RecordsError: There is no such run.
    """
    require_run(database, run)
    with database.read() as connection:
        row = connection.execute(sa.select(tables.runs).where(tables.runs.c.id == run)).one()
    return json.loads(row.config), json.loads(row.seeds), row.error


def require_run(database: Database, run: str) -> RunSummary:
    """The run of that name.

    Raises:
        RecordsError: There is none.
    """
    found = list_runs(database, run)
    if not found:
        raise RecordsError(f"There is no run {run} in the records: list them with climassay records runs.")
    return found[0]


def answers_to(database: Database, key_prefix: str) -> list[RecordedAnswer]:
    """All answers to the requests whose key begins so, newest last.

    Args:
        database: Where from.
        key_prefix: Hexadecimal digits, at least four.

    Raises:
        RecordsError: The prefix is none, no key begins so, or too many do.
    """
    prefix = key_prefix.lower()
    if not 4 <= len(prefix) <= 64 or not set(prefix) <= HEX:
        raise RecordsError(
            f"{key_prefix!r} is neither a run (r and eight hexadecimal digits) nor the start of a request's key "
            "(at least four hexadecimal digits)."
        )
    low, high = bytes.fromhex(prefix.ljust(64, "0")), bytes.fromhex(prefix.ljust(64, "f"))
    within = tables.requests.c.key.between(low, high)
    with database.read() as connection:
        count = connection.execute(sa.select(sa.func.count()).select_from(tables.requests).where(within)).scalar_one()
        if not 1 <= count <= MOST_SHOWN:
            advice = "give more digits" if count else "look it up with climassay records export"
            raise RecordsError(f"{count} requests have a key that begins with {prefix}: {advice}.")
        return [_recorded(row) for row in connection.execute(_all_answers().where(within))]


def count_answers(database: Database, run: str | None = None) -> int:
    """How many answers :func:`iterate_answers` gives."""
    with database.read() as connection:
        inner = _all_answers(run).order_by(None).subquery()
        return connection.execute(sa.select(sa.func.count()).select_from(inner)).scalar_one()


def iterate_answers(database: Database, run: str | None = None) -> Iterator[Sequence[RecordedAnswer]]:
    """All answers, in bundles, in the order in which they were stored; constant memory.

    Args:
        database: Where from.
        run: Only what this run asked or was served.

    Raises:
        RecordsError: There is no such run.
    """
    if run is not None:
        require_run(database, run)
    with database.read() as connection:
        streamed = connection.execution_options(yield_per=ROWS_AT_ONCE).execute(_all_answers(run))
        for rows in streamed.partitions():
            yield [_recorded(row) for row in rows]


def answers_about(database: Database, run: str, words: str, most: int) -> list[RecordedAnswer]:
    """Answers to prompts in which some words stand, the oldest first.

    Args:
        database: Where from.
        run: Asked for by this run or served to it.
        words: As the prompt has them; prompts that are JSON are searched for the escaped words, too.
        most: Answers given back at most.
    """
    forms = (words, *(json.dumps(words, ensure_ascii=escaped)[1:-1] for escaped in (True, False)))
    with database.read() as connection:
        return [
            _recorded(row) for row in connection.execute(_all_answers(run, tuple(dict.fromkeys(forms))).limit(most))
        ]


def _all_answers(run: str | None = None, words: Sequence[str] = ()) -> sa.Select[Any]:
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
    if words:
        query = query.where(sa.or_(*(prompt.c.body.contains(one, autoescape=True) for one in words)))
    if run is None:
        return query
    served = sa.select(tables.uses.c.answer).where(tables.uses.c.run == run)
    return query.where(sa.or_(answers.c.run == run, answers.c.id.in_(served)))


def _recorded(row: sa.Row[Any]) -> RecordedAnswer:
    return RecordedAnswer(
        key=bytes(row.request).hex(),
        run=row.run,
        kind=row.kind,
        model=row.model,
        fingerprint=row.fingerprint,
        prompt=row.prompt,
        settings=json.loads(row.settings),
        answered_at=iso_time(row.answered_at),
        text=row.text,
        logprobs=None if row.logprobs is None else json.loads(row.logprobs),
        outcome=row.outcome,
        error=row.error,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        reasoning_tokens=row.reasoning_tokens,
        attempts=row.attempts,
        cost=row.cost,
    )


def summary_of(row: sa.Row[Any], asked: int, failed: int, served: int, cost: float | None) -> RunSummary:
    """A row of the table of runs with its counts; one without a sign of life for too long was interrupted."""
    silent = row.status == "running" and row.seen_at < time.time() - SILENCE_SECONDS
    ended = row.seen_at if silent else row.ended_at
    return RunSummary(
        id=row.id,
        command=row.command,
        status="interrupted" if silent else row.status,
        version=row.version,
        started_at=iso_time(row.started_at),
        ended_at=None if ended is None else iso_time(ended),
        asked=asked,
        failed=failed,
        served=served,
        cost=cost,
    )


def iso_time(seconds: float) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
