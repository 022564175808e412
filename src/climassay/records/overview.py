"""The records at a glance: a page of the list of runs, and what was used by model, command and day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.records import tables
from climassay.records.database import Database
from climassay.records.queries import RunSummary, summary_of

RunOrder = Literal["started", "command", "status", "asked", "failed", "served", "tokens", "cost"]
UsageGroup = Literal["model", "command", "day"]
SECONDS_A_DAY = 86400


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in a list, with what it asked of whom."""

    summary: RunSummary
    models: tuple[str, ...]
    """Names of the models whose answers it has, asked now or served from the records."""
    tokens: int
    """Prompt and completion tokens of the answers that it asked for."""


@dataclass(frozen=True, slots=True)
class RunList:
    """Some of the runs that fit."""

    lines: tuple[RunLine, ...]
    total: int
    """Runs that fit."""
    commands: tuple[str, ...]
    """Commands of all runs, whether they fit or not, by name."""


@dataclass(frozen=True, slots=True)
class UsageLine:
    """What was used by one model, by one command or on one day."""

    name: str
    """The model, the command, or the day as ``2026-01-31`` (UTC)."""
    answers: int
    """Answers asked for, failed ones included."""
    failed: int
    served: int
    """Answers of earlier runs that were served from the records instead."""
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

    @property
    def cached(self) -> float:
        """Share of the answers that were served from the records."""
        return self.served / (self.served + self.answers) if self.served + self.answers else 0.0


def list_run_page(
    database: Database,
    *,
    command: str = "",
    text: str = "",
    order: RunOrder = "started",
    descending: bool = True,
    most: int = 50,
    skip: int = 0,
) -> RunList:
    """A page of the list of runs.

    Args:
        database: Where from.
        command: Only runs of this command.
        text: Only runs whose id, command or configuration has this text, whatever its case.
        order: What they are sorted by.
        descending: The greatest first.
        most: Runs of a page.
        skip: Runs before it.

    Raises:
        InputError: There is no such order.
    """
    if order not in get_args(RunOrder):
        raise InputError(f"Runs are sorted by {', '.join(get_args(RunOrder))}, not by {order!r}.")
    runs = tables.runs
    fits = _fitting(command, text)
    column = _order_column(order)
    query = sa.select(runs).where(*fits)
    if order not in ("started", "command", "status"):
        counts = _asked().subquery()
        served = _served().subquery()
        query = query.outerjoin(counts, counts.c.run == runs.c.id).outerjoin(served, served.c.run == runs.c.id)
        column = sa.func.coalesce({**counts.c, **served.c}[order], 0)
    direction = sa.desc if descending else sa.asc
    query = query.order_by(direction(column), direction(runs.c.started_at), runs.c.id).limit(most).offset(skip)
    with database.read() as connection:
        total = connection.execute(sa.select(sa.func.count()).select_from(runs).where(*fits)).scalar_one()
        commands = connection.execute(sa.select(runs.c.command).distinct().order_by(runs.c.command)).scalars().all()
        found = connection.execute(query).all()
        lines = _lines(connection, found)
    return RunList(lines, total, tuple(commands))


def run_lines(
    database: Database,
    *,
    command: str = "",
    text: str = "",
    run: str | None = None,
    after: str | None = None,
    most: int = 50,
) -> tuple[RunLine, ...]:
    """Runs that fit, the newest first; runs that begin meanwhile do not shift what comes behind another one.

    Args:
        database: Where from.
        command: Only runs of this command.
        text: Only runs whose id, command or configuration has this text, whatever its case.
        run: Only this run.
        after: Id of the run behind which the list begins.
        most: How many.

    Raises:
        InputError: There is no run to begin behind.
    """
    runs = tables.runs
    query = sa.select(runs).where(*_fitting(command, text))
    if run is not None:
        query = query.where(runs.c.id == run)
    with database.read() as connection:
        if after is not None:
            begun = connection.execute(sa.select(runs.c.started_at).where(runs.c.id == after)).scalar_one_or_none()
            if begun is None:
                raise InputError(f"There is no run {after!r}.")
            query = query.where(sa.tuple_(-runs.c.started_at, runs.c.id) > sa.tuple_(-begun, after))
        ordered = query.order_by(runs.c.started_at.desc(), runs.c.id).limit(most)
        return _lines(connection, connection.execute(ordered).all())


def usage_by(database: Database, group: UsageGroup) -> list[UsageLine]:
    """What was used, by model, by command or by day (the newest first); the greatest number of tokens first.

    Raises:
        InputError: There is no such group.
    """
    if group not in get_args(UsageGroup):
        raise InputError(f"Usage is shown by {', '.join(get_args(UsageGroup))}, not by {group!r}.")
    answers, uses = tables.answers, tables.uses
    asked_name, served_name = _group_columns(database, group)
    asked = sa.select(asked_name.label("name"), *_sums()).select_from(_joined(answers, answers.c.run))
    served = sa.select(served_name.label("name"), sa.func.count().label("served")).select_from(
        _joined(uses.join(answers, answers.c.id == uses.c.answer), uses.c.run)
    )
    with database.read() as connection:
        rows = {row.name: row for row in connection.execute(asked.group_by(asked_name))}
        from_records = {row.name: row.served for row in connection.execute(served.group_by(served_name))}
    lines = [_usage_line(name, rows.get(name), from_records.get(name, 0), group) for name in {*rows, *from_records}]
    if group == "day":
        return sorted(lines, key=lambda line: line.name, reverse=True)
    return sorted(lines, key=lambda line: (-line.prompt_tokens - line.completion_tokens, line.name))


def _fitting(command: str, text: str) -> list[sa.ColumnElement[bool]]:
    runs = tables.runs
    fits: list[sa.ColumnElement[bool]] = [runs.c.command == command] if command else []
    if text:
        columns = (runs.c.id, runs.c.command, runs.c.config)
        fits.append(sa.or_(*(sa.func.lower(one).contains(text.lower(), autoescape=True) for one in columns)))
    return fits


def _order_column(order: RunOrder) -> sa.ColumnElement[Any]:
    return tables.runs.c[order] if order in ("command", "status") else tables.runs.c.started_at


def _asked() -> sa.Select[Any]:
    answers = tables.answers
    return sa.select(
        answers.c.run,
        sa.func.count().label("asked"),
        sa.func.count(answers.c.error).label("failed"),
        sa.func.sum(answers.c.prompt_tokens + answers.c.completion_tokens).label("tokens"),
        sa.func.sum(answers.c.cost).label("cost"),
    ).group_by(answers.c.run)


def _served() -> sa.Select[Any]:
    uses = tables.uses
    return sa.select(uses.c.run, sa.func.count().label("served")).group_by(uses.c.run)


def _lines(connection: sa.Connection, found: Sequence[sa.Row[Any]]) -> tuple[RunLine, ...]:
    ids = [row.id for row in found]
    answers, uses, requests = tables.answers, tables.uses, tables.requests
    asked = {row.run: dict(row._mapping) for row in connection.execute(_asked().where(answers.c.run.in_(ids)))}
    served = {row.run: row.served for row in connection.execute(_served().where(uses.c.run.in_(ids)))}
    own = (
        sa.select(answers.c.run, requests.c.model)
        .join(requests, requests.c.key == answers.c.request)
        .where(answers.c.run.in_(ids))
    )
    lent = (
        sa.select(uses.c.run, requests.c.model)
        .join(answers, answers.c.id == uses.c.answer)
        .join(requests, requests.c.key == answers.c.request)
        .where(uses.c.run.in_(ids))
    )
    models: dict[str, list[str]] = {}
    for run, model in sorted(tuple(row) for row in connection.execute(sa.union(own, lent))):
        models.setdefault(run, []).append(model)
    return tuple(_line(row, asked.get(row.id, {}), served.get(row.id, 0), models.get(row.id, ())) for row in found)


def _line(row: sa.Row[Any], asked: Mapping[str, Any], served: int, models: Sequence[str]) -> RunLine:
    summary = summary_of(row, asked.get("asked", 0), asked.get("failed", 0), served, asked.get("cost"))
    return RunLine(summary, tuple(models), int(asked.get("tokens") or 0))


def _sums() -> tuple[sa.ColumnElement[Any], ...]:
    answers = tables.answers
    priceless = sa.and_(answers.c.cost.is_(None), answers.c.prompt_tokens + answers.c.completion_tokens > 0)
    return (
        sa.func.count().label("answers"),
        sa.func.count(answers.c.error).label("failed"),
        sa.func.sum(answers.c.attempts).label("attempts"),
        sa.func.sum(answers.c.prompt_tokens).label("prompt_tokens"),
        sa.func.sum(answers.c.completion_tokens).label("completion_tokens"),
        sa.func.sum(answers.c.reasoning_tokens).label("reasoning_tokens"),
        sa.func.sum(answers.c.cost).label("cost"),
        sa.func.sum(sa.case((priceless, 1), else_=0)).label("unpriced"),
    )


def _joined(start: sa.FromClause, run: sa.ColumnElement[str]) -> sa.FromClause:
    requests, runs, answers = tables.requests, tables.runs, tables.answers
    return start.join(requests, requests.c.key == answers.c.request).join(runs, runs.c.id == run)


def _group_columns(database: Database, group: UsageGroup) -> tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]:
    """What answers that were asked for, and those that were served, are grouped by."""
    if group == "model":
        return tables.requests.c.model, tables.requests.c.model
    if group == "command":
        return tables.runs.c.command, tables.runs.c.command
    return _day(database, tables.answers.c.answered_at), _day(database, tables.runs.c.started_at)


def _day(database: Database, moment: sa.ColumnElement[float]) -> sa.ColumnElement[int]:
    """Days since 1970; SQLite cuts off what a whole number cannot hold, PostgreSQL would round it."""
    seconds = moment if database.is_sqlite else sa.func.floor(moment)
    return sa.cast(seconds, sa.BigInteger) // sa.literal_column(str(SECONDS_A_DAY), sa.BigInteger)


def _usage_line(name: str | int, row: sa.Row[Any] | None, served: int, group: UsageGroup) -> UsageLine:
    shown = datetime.fromtimestamp(int(name) * SECONDS_A_DAY, UTC).date().isoformat() if group == "day" else str(name)
    if row is None:
        return UsageLine(shown, 0, 0, served, 0, 0, 0, 0, None, 0)
    return UsageLine(
        shown,
        row.answers,
        row.failed,
        served,
        int(row.attempts),
        int(row.prompt_tokens),
        int(row.completion_tokens),
        int(row.reasoning_tokens),
        row.cost,
        int(row.unpriced),
    )
