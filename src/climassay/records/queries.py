"""Questions to the records: which runs there were, what a request got, what it all cost."""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, get_args

import sqlalchemy as sa

from climassay.errors import InputError, RecordsError
from climassay.records import tables
from climassay.records.database import Database, record_of
from climassay.records.store import OWNER, SILENCE_SECONDS, has_died

HEX = frozenset("0123456789abcdef")
ROWS_AT_ONCE = 1000
MOST_REASONS = 3
"""Reasons of failures that sentences tell."""
_PARTICULAR = re.compile(r"(?<!\w)'.*'|\".*\"|(?<!answered )\b[\w.-]*\d[\w.-]*", re.DOTALL)
"""What is quoted, and words with digits, a server's status excepted."""
MOST_SHOWN = 20
"""Requests that a key prefix may show at once."""


def without_price(*, local: bool) -> str:
    """What stands for a cost that is not known: nobody is paid where all models run on one's own machine."""
    return "none (local model)" if local else "unknown"


def _shown_cost(cost: float | None, unpriced: int, *, asked: bool) -> str:
    if cost is None:
        return without_price(local=not unpriced) if asked else "none"
    return f"${cost:.4f}" + (f" + {unpriced:,} unpriced" if unpriced else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usage:
    """What was asked."""

    answers: int
    """Answers asked for, failed ones included."""
    failed: int
    attempts: int
    """Requests sent, retries included."""
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    """Completion tokens that were thought before the answers."""
    cost: float | None
    """US dollars, of what has a price; None where nothing has."""
    unpriced: int
    """Answers of servers' models with tokens but without a known price."""

    @property
    def shown_cost(self) -> str:
        """The cost in words, with the number of answers that have no price."""
        return _shown_cost(self.cost, self.unpriced, asked=self.prompt_tokens > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage(_Usage):
    """What was asked of one model."""

    model: str
    fingerprint: str


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
    name: str = ""
    """What it was about, as its configuration says: an experiment's name, a file, a question; may be empty."""
    unpriced: int = 0
    """Answers of servers' models with tokens but without a known price."""

    @property
    def shown_cost(self) -> str:
        """The cost in words, with the number of answers that have no price."""
        return _shown_cost(self.cost, self.unpriced, asked=self.asked > self.failed)


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
    calls: "tuple[ModelCalls, ...]" = ()
    """What became of the calls of each model."""


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
    """Completion tokens that were thought before the answer."""
    attempts: int
    cost: float | None
    reasoning: str | None = None
    """What the model thought before the answer, as far as the server sends it."""


def list_runs(database: Database, run: str | None = None) -> list[RunSummary]:
    """All runs, the oldest first, or the one given."""
    runs = tables.runs
    asked, served = _asked().subquery(), _served().subquery()
    query = (
        sa.select(runs, _owner(), asked.c.asked, asked.c.failed, asked.c.cost, asked.c.unpriced, served.c.served)
        .outerjoin(asked, asked.c.run == runs.c.id)
        .outerjoin(served, served.c.run == runs.c.id)
        .order_by(runs.c.started_at, runs.c.id)
    )
    if run is not None:
        query = query.where(runs.c.id == run)
    return [summary_of(row, row._mapping, row.served) for row in database.rows(query)]


def usage_by_model(database: Database, run: str | None = None) -> list[ModelUsage]:
    """What was asked of each model, over all runs or by one run.

    Raises:
        RecordsError: There is no such run.
    """
    answers, requests = tables.answers, tables.requests
    query = (
        sa.select(requests.c.model, requests.c.fingerprint, *_sums())
        .join(requests, requests.c.key == answers.c.request)
        .group_by(requests.c.model, requests.c.fingerprint)
        .order_by(requests.c.model, requests.c.fingerprint)
    )
    if run is not None:
        require_run(database, run)
        query = query.where(answers.c.run == run)
    return [
        ModelUsage(model=row.model, fingerprint=row.fingerprint, cost=row.cost, **_counts(row._mapping))
        for row in database.rows(query)
    ]


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """What became of the calls of one model in some runs."""

    model: str
    asked: int
    """Calls made, failed ones included."""
    failed: int
    served: int
    """Answers that came from the records instead."""
    reasons: Mapping[str, int]
    """Number of failed calls by reason, the commonest first."""
    empty: int = 0
    """Calls that were answered with nothing."""

    @property
    def unanswered(self) -> bool:
        """Whether there is no answer, neither a new one nor one of the records."""
        return self.failed == self.asked and not self.served

    def sentences(self) -> Iterator[str]:
        """How many answers are empty; how many calls failed, with the commonest reasons. None where all went well."""
        if self.empty:
            yield f"{self.model}: {self.empty:,} of {self.asked - self.failed:,} answers were empty."
        if not self.reasons:
            return
        share = f"{self.failed:,} of" if self.failed < self.asked or self.asked == 1 else "all"
        failed = f"{self.model}: {share} {self.asked:,} calls failed"
        (first, _), *others = self.reasons.items()
        if not others:
            yield f"{failed}: {first}"
            return
        yield f"{failed}:"
        for reason, count in islice(self.reasons.items(), MOST_REASONS):
            yield f"  {'once' if count == 1 else f'{count:,} times'}: {reason}"
        if rest := sum(islice(self.reasons.values(), MOST_REASONS, None)):
            yield f"  {rest:,} times: other reasons"


def calls_by_model(database: Database, runs: Sequence[str] | None = None) -> list[ModelCalls]:
    """What became of every model's calls in some runs, by default in all.

    Reasons that differ only in numbers (of requests, of seconds) or in what they quote are one, told by the first of
    them; that there were several attempts is left out.
    """
    answers, requests, uses = tables.answers, tables.requests, tables.uses
    served, asked, empty = Counter[str](), Counter[str](), Counter[str]()
    reasons = defaultdict[str, Counter[str]](Counter)
    count = sa.func.count()
    used = sa.select(requests.c.model, count).select_from(uses).join(answers, answers.c.id == uses.c.answer)
    used = used.join(requests, requests.c.key == answers.c.request)
    nothing = sa.func.sum(sa.case((sa.func.trim(answers.c.text) == "", 1), else_=0))
    put = sa.select(requests.c.model, answers.c.error, count, nothing, sa.func.min(answers.c.id).label("first"))
    put = put.join(requests, requests.c.key == answers.c.request)
    if runs is not None:
        used, put = used.where(uses.c.run.in_(runs)), put.where(answers.c.run.in_(runs))
    for model, number in database.rows(used.group_by(requests.c.model)):
        served[model] = number
    first: dict[tuple[str, str], str] = {}
    by_reason = put.group_by(requests.c.model, answers.c.error).order_by("first")
    for model, error, number, without_words, _ in database.rows(by_reason):
        asked[model] += number
        empty[model] += without_words
        if error is not None:
            reason = error.rpartition("; the last one: ")[2]
            told = first.setdefault((model, _PARTICULAR.sub("#", reason)), reason)
            reasons[model][told] += number
    return [
        ModelCalls(name, asked[name], why.total(), served[name], dict(why.most_common()), empty[name])
        for name in sorted({*asked, *served})
        for why in [reasons[name]]
    ]


def seconds_per_answer(database: Database, model: str, latest: int = 20) -> float | None:
    """Mean time of a model's answers in its latest runs: a run's time until its last answer, by its answers.

    What was asked side by side is in it, and so is what a run did between two answers. None where no run has an answer.
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
    rows = database.rows(query)
    return sum(max(0.0, elapsed) for elapsed, _ in rows) / sum(count for _, count in rows) if rows else None


def run_details(database: Database, run: str) -> RunDetails:
    """Everything kept about a run.

    Raises:
        RecordsError: There is no such run.
    """
    usage = tuple(usage_by_model(database, run))
    summary, calls = require_run(database, run), tuple(calls_by_model(database, [run]))
    return RunDetails(summary, *run_settings(database, run), usage, run_rows(database, run), calls)


def run_rows(
    database: Database, run: str, which: sa.ColumnElement[bool] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Rows that a run stored, by table and in their order; ``which`` chooses among the rows of ``results``."""
    results = tables.results
    kept = sa.select(results.c.name, results.c.row).where(results.c.run == run)
    rows: dict[str, list[dict[str, Any]]] = {}
    chosen = kept if which is None else kept.where(which)
    for name, text in database.rows(chosen.order_by(results.c.name, results.c.position)):
        rows.setdefault(name, []).append(json.loads(text))
    return rows


def run_settings(database: Database, run: str) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Configuration, seeds and error of a run, without its results.

    Raises:
        RecordsError: There is no such run.
    """
    require_run(database, run)
    row = database.first(sa.select(tables.runs).where(tables.runs.c.id == run))
    return json.loads(row.config), json.loads(row.seeds), row.error


def require_run(database: Database, run: str) -> RunSummary:
    """The run of that name.

    Raises:
        RecordsError: There is none.
    """
    result = list_runs(database, run)
    if not result:
        raise RecordsError(f"There is no run {run} in the records: list them with climassay records runs.")
    return result[0]


def answers_to(database: Database, key_prefix: str) -> list[RecordedAnswer]:
    """All answers to the requests whose key begins so, newest last.

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
    return int(database.scalar(sa.select(sa.func.count()).select_from(_all_answers(run).order_by(None).subquery())))


def iterate_answers(database: Database, run: str | None = None) -> Iterator[Sequence[RecordedAnswer]]:
    """All answers, or those that a run asked or was served, in bundles, oldest first; constant memory.

    Raises:
        RecordsError: There is no such run.
    """
    if run is not None:
        require_run(database, run)
    with database.read() as connection:
        streamed = connection.execution_options(yield_per=ROWS_AT_ONCE).execute(_all_answers(run))
        for rows in streamed.partitions():
            yield [_recorded(row) for row in rows]


def answers_about(database: Database, run: str, words: str, most: int, skip: int = 0) -> list[RecordedAnswer]:
    """At most so many answers, asked by a run or served to it, to prompts in which some words stand; the oldest first.

    Prompts that are JSON are searched for the escaped words, too; empty words appear in every prompt.
    """
    forms = (words, *(json.dumps(words, ensure_ascii=escaped)[1:-1] for escaped in (True, False)))
    query = _all_answers(run, tuple(dict.fromkeys(forms)) if words else ())
    return [_recorded(row) for row in database.rows(query.limit(most).offset(skip))]


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
    return record_of(
        RecordedAnswer,
        row,
        key=bytes(row.request).hex(),
        settings=json.loads(row.settings),
        answered_at=iso_time(row.answered_at),
        logprobs=None if row.logprobs is None else json.loads(row.logprobs),
    )


def summary_of(row: sa.Row[Any], counts: Mapping[str, Any], served: int | None) -> RunSummary:
    """A row of the table of runs with what it asked; one whose process has ended or is long silent was interrupted."""
    silent = row.status == "running" and (row.seen_at < time.time() - SILENCE_SECONDS or has_died(row.owner))
    ended = row.seen_at if silent else row.ended_at
    return record_of(
        RunSummary,
        row,
        status="interrupted" if silent else row.status,
        started_at=iso_time(row.started_at),
        ended_at=None if ended is None else iso_time(ended),
        **{name: int(counts.get(name) or 0) for name in ("asked", "failed", "unpriced")},
        served=served or 0,
        cost=counts.get("cost"),
        name=_name(json.loads(row.config)),
    )


_NAMES = ("name", "recipe", "experiment", "claim", "question", "questions", "file", "statements", "collection")
"""Entries of configurations that say what a run is about, the one that says most first."""


def _name(config: Any) -> str:
    for entry in _NAMES:
        value = config.get(entry) if isinstance(config, dict) else None
        if isinstance(value, dict):
            value = value.get("name")
        if value and isinstance(value, str):
            return value
    return ""


def iso_time(seconds: float) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


RunOrder = Literal["started", "command", "status", "asked", "failed", "served", "tokens", "cost"]
UsageGroup = Literal["model", "command", "day"]
SECONDS_A_DAY = 86400


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run in a list, with what it asked of whom."""

    summary: RunSummary
    models: tuple[str, ...]
    """Names of the models whose answers it has, asked now or served from the records."""
    tokens: int
    """Prompt and completion tokens of the answers that it asked for."""


@dataclass(frozen=True, slots=True)
class RunList:
    """Some of the runs that fit."""

    lines: tuple[RunEntry, ...]
    total: int
    """Runs that fit."""
    commands: tuple[str, ...]
    """Commands of all runs, whether they fit or not, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow(_Usage):
    """What was used by one model, by one command or on one day."""

    name: str
    """The model, the command, or the day as ``2026-01-31`` (UTC)."""
    served: int
    """Answers of earlier runs that were served from the records instead."""

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
    """A page of the list of runs of a command whose id, command or configuration has a text, whatever its case.

    Raises:
        InputError: There is no such order.
    """
    if order not in get_args(RunOrder):
        raise InputError(f"Runs are sorted by {', '.join(get_args(RunOrder))}, not by {order!r}.")
    runs = tables.runs
    fits = _fitting(command, text)
    column: sa.ColumnElement[Any] = runs.c[order] if order in ("command", "status") else runs.c.started_at
    query = sa.select(runs, _owner()).where(*fits)
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
        result = connection.execute(query).all()
        lines = _lines(connection, result)
    return RunList(lines, total, tuple(commands))


def run_lines(
    database: Database,
    *,
    command: str = "",
    text: str = "",
    run: str | None = None,
    after: str | None = None,
    most: int = 50,
) -> tuple[RunEntry, ...]:
    """Runs that fit as for :func:`list_run_page`, the newest first, from behind the run ``after``.

    Runs that begin meanwhile do not shift what comes behind another one.

    Raises:
        InputError: There is no run to begin behind.
    """
    runs = tables.runs
    query = sa.select(runs, _owner()).where(*_fitting(command, text))
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


def usage_by(database: Database, group: UsageGroup) -> list[UsageRow]:
    """What was used, by model, by command or by day (the newest first); the greatest number of tokens first.

    Raises:
        InputError: There is no such group.
    """
    if group not in get_args(UsageGroup):
        raise InputError(f"Usage is shown by {', '.join(get_args(UsageGroup))}, not by {group!r}.")
    answers, uses = tables.answers, tables.uses
    asked_name: sa.ColumnElement[Any] = tables.requests.c.model if group == "model" else tables.runs.c.command
    served_name = asked_name
    if group == "day":
        asked_name, served_name = _day(database, answers.c.answered_at), _day(database, tables.runs.c.started_at)
    asked = sa.select(asked_name.label("name"), *_sums()).select_from(_joined(answers, answers.c.run))
    served = sa.select(served_name.label("name"), sa.func.count().label("served")).select_from(
        _joined(uses.join(answers, answers.c.id == uses.c.answer), uses.c.run)
    )
    with database.read() as connection:
        rows = {row["name"]: row for row in connection.execute(asked.group_by(asked_name)).mappings()}
        from_records = {row.name: row.served for row in connection.execute(served.group_by(served_name))}
    lines = []
    for name in {*rows, *from_records}:
        counts = dict(rows.get(name, {}))
        shown = str(name)
        if group == "day":
            shown = datetime.fromtimestamp(int(name) * SECONDS_A_DAY, UTC).date().isoformat()
        lines.append(UsageRow(name=shown, served=from_records.get(name, 0), cost=counts.get("cost"), **_counts(counts)))
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


def _asked() -> sa.Select[Any]:
    answers = tables.answers
    query = sa.select(
        answers.c.run,
        sa.func.count().label("asked"),
        sa.func.count(answers.c.error).label("failed"),
        sa.func.sum(answers.c.prompt_tokens + answers.c.completion_tokens).label("tokens"),
        sa.func.sum(answers.c.cost).label("cost"),
        _unpriced(),
    )
    return query.join(tables.requests, tables.requests.c.key == answers.c.request).group_by(answers.c.run)


def _unpriced() -> sa.ColumnElement[Any]:
    """Number of answers of servers' models that have tokens but no price."""
    answers, tokens = tables.answers, tables.answers.c.prompt_tokens + tables.answers.c.completion_tokens
    priceless = sa.and_(answers.c.cost.is_(None), tokens > 0, tables.requests.c.model.not_like("local:%"))
    return sa.func.sum(sa.case((priceless, 1), else_=0)).label("unpriced")


def _owner() -> sa.Label[str]:
    """The process that works on a run of this query, as long as it does."""
    owners = tables.meta.c
    return sa.select(owners.value).where(owners.name == OWNER + tables.runs.c.id).scalar_subquery().label("owner")


def _served() -> sa.Select[Any]:
    uses = tables.uses
    return sa.select(uses.c.run, sa.func.count().label("served")).group_by(uses.c.run)


def _lines(connection: sa.Connection, found: Sequence[sa.Row[Any]]) -> tuple[RunEntry, ...]:
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
    lines = []
    for row in found:
        counts = asked.get(row.id, {})
        summary = summary_of(row, counts, served.get(row.id))
        lines.append(RunEntry(summary, tuple(models.get(row.id, ())), int(counts.get("tokens") or 0)))
    return tuple(lines)


def _sums() -> tuple[sa.ColumnElement[Any], ...]:
    answers = tables.answers
    return (
        sa.func.count().label("answers"),
        sa.func.count(answers.c.error).label("failed"),
        sa.func.sum(answers.c.attempts).label("attempts"),
        sa.func.sum(answers.c.prompt_tokens).label("prompt_tokens"),
        sa.func.sum(answers.c.completion_tokens).label("completion_tokens"),
        sa.func.sum(answers.c.reasoning_tokens).label("reasoning_tokens"),
        sa.func.sum(answers.c.cost).label("cost"),
        _unpriced(),
    )


def _counts(row: Mapping[str, Any]) -> dict[str, int]:
    """Sums as whole numbers, which databases give as decimals; 0 where nothing was asked."""
    return {one.name: int(row.get(one.name, 0)) for one in fields(_Usage) if one.name != "cost"}


def _joined(start: sa.FromClause, run: sa.ColumnElement[str]) -> sa.FromClause:
    requests, runs, answers = tables.requests, tables.runs, tables.answers
    return start.join(requests, requests.c.key == answers.c.request).join(runs, runs.c.id == run)


def _day(database: Database, moment: sa.ColumnElement[float]) -> sa.ColumnElement[int]:
    """Days since 1970; SQLite cuts off what a whole number cannot hold, PostgreSQL would round it."""
    seconds = moment if database.is_sqlite else sa.func.floor(moment)
    return sa.cast(seconds, sa.BigInteger) // sa.literal_column(str(SECONDS_A_DAY), sa.BigInteger)
