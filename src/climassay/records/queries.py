"""Queries of the records: runs, usage and cost."""

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
from climassay.records.answer_writer import OWNER, SILENCE_SECONDS, has_died
from climassay.records.database import Database, build_record

MAX_LISTED_REASONS = 3
"""Maximum number of failure reasons listed in a message."""
_VARYING_PART = re.compile(r"(?<!\w)'.*'|\".*\"|(?<!answered )\b[\w.-]*\d[\w.-]*", re.DOTALL)
"""Pattern of the parts in which reports of one error may differ: quotations, and words with digits other than HTTP
status codes."""


def describe_unknown_cost(*, local: bool) -> str:
    """Return the text shown for an unknown cost; calls to local models cost nothing."""
    return "none (local model)" if local else "unknown"


def _format_cost(cost: float | None, n_unpriced: int, *, has_answers: bool) -> str:
    if cost is None:
        return describe_unknown_cost(local=not n_unpriced) if has_answers else "none"
    return f"${cost:.4f}" + (f" + {n_unpriced:,} unpriced" if n_unpriced else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _UsageCounts:
    """Usage counts of model calls."""

    answers: int
    """Number of answers, including failed calls."""
    failed: int
    attempts: int
    """Number of HTTP requests or local calls, including retries."""
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    """Number of completion tokens used for reasoning."""
    cost: float | None
    """Total cost, in US dollars, of answers with a known price; None if there are none."""
    unpriced: int
    """Number of answers of remote models whose price is unknown."""

    @property
    def formatted_cost(self) -> str:
        """Cost as text, with the number of answers whose price is unknown."""
        return _format_cost(self.cost, self.unpriced, has_answers=self.prompt_tokens > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage(_UsageCounts):
    """Usage of one model."""

    model: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of a run."""

    id: str
    command: str
    status: str
    """Status: ``running``, ``done``, ``failed`` or ``interrupted``."""
    version: str
    started_at: str
    """Start time in ISO 8601, UTC."""
    ended_at: str | None
    sent: int
    """Number of requests sent to models, including failed ones."""
    failed: int
    """Number of failed requests."""
    served: int
    """Number of answers reused from earlier runs."""
    cost: float | None
    name: str = ""
    """Name of the run's subject from its configuration, such as an experiment, file or question; may be empty."""
    unpriced: int = 0
    """Number of answers of remote models whose price is unknown."""

    @property
    def formatted_cost(self) -> str:
        """Cost as text, with the number of answers whose price is unknown."""
        return _format_cost(self.cost, self.unpriced, has_answers=self.sent > self.failed)


@dataclass(frozen=True, slots=True)
class RunDetails:
    """Run with all its stored data."""

    summary: RunSummary
    config: dict[str, Any]
    seeds: dict[str, Any]
    error: str | None
    usage: tuple[ModelUsage, ...]
    results: dict[str, list[dict[str, Any]]]
    """Rows of results by table name."""
    calls: "tuple[ModelCalls, ...]" = ()
    """Outcomes of calls, one entry per model."""


def list_runs(database: Database, run: str | None = None) -> list[RunSummary]:
    """Return all runs, the oldest first, or only the run with the given id."""
    runs = tables.runs
    counts, reused_counts = _build_counts_query().subquery(), _build_reuse_query().subquery()
    query = (
        sa.select(
            runs,
            _build_owner_column(),
            counts.c.sent,
            counts.c.failed,
            counts.c.cost,
            counts.c.unpriced,
            reused_counts.c.served,
        )
        .outerjoin(counts, counts.c.run == runs.c.id)
        .outerjoin(reused_counts, reused_counts.c.run == runs.c.id)
        .order_by(runs.c.started_at, runs.c.id)
    )
    if run is not None:
        query = query.where(runs.c.id == run)
    return [build_summary(row, row._mapping, row.served) for row in database.rows(query)]


def usage_by_model(database: Database, run: str | None = None) -> list[ModelUsage]:
    """Return the usage of each model in all runs or in one run.

    Raises:
        RecordsError: The run does not exist.
    """
    answers, requests = tables.answers, tables.requests
    query = (
        sa.select(requests.c.model, requests.c.fingerprint, *_build_usage_columns())
        .join(requests, requests.c.key == answers.c.request)
        .group_by(requests.c.model, requests.c.fingerprint)
        .order_by(requests.c.model, requests.c.fingerprint)
    )
    if run is not None:
        require_run(database, run)
        query = query.where(answers.c.run == run)
    return [build_record(ModelUsage, row) for row in database.rows(query)]


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Outcomes of the calls to one model."""

    model: str
    sent: int
    """Number of calls, including failed ones."""
    failed: int
    served: int
    """Number of answers reused from the records."""
    reasons: Mapping[str, int]
    """Number of failed calls by reason, the most frequent reason first."""
    empty: int = 0
    """Number of calls that returned an empty answer."""

    @property
    def unanswered(self) -> bool:
        """Whether the model has given no answer, neither new nor reused."""
        return self.failed == self.sent and not self.served

    def sentences(self) -> Iterator[str]:
        """Yield sentences about the numbers of empty answers and of failed calls, with the most frequent reasons."""
        if self.empty:
            yield f"{self.model}: {self.empty:,} of {self.sent - self.failed:,} answers were empty."
        if not self.reasons:
            return
        share = f"{self.failed:,} of" if self.failed < self.sent or self.sent == 1 else "all"
        sentence = f"{self.model}: {share} {self.sent:,} calls failed"
        if len(self.reasons) == 1:
            yield f"{sentence}: {next(iter(self.reasons))}"
            return
        yield f"{sentence}:"
        for reason, count in islice(self.reasons.items(), MAX_LISTED_REASONS):
            yield f"  {'once' if count == 1 else f'{count:,} times'}: {reason}"
        if n_other := sum(islice(self.reasons.values(), MAX_LISTED_REASONS, None)):
            yield f"  {n_other:,} times: other reasons"


def calls_by_model(database: Database, runs: Sequence[str] | None = None) -> list[ModelCalls]:
    """Return the outcomes of the calls to each model in some runs, by default in all.

    Reasons that differ only in numbers or quotations are counted together, in the wording of the first one. The number
    of attempts is removed from the wording.
    """
    answers, requests, uses = tables.answers, tables.requests, tables.uses
    cache_hits, n_sent, n_empty = Counter[str](), Counter[str](), Counter[str]()
    reasons_by_model = defaultdict[str, Counter[str]](Counter)
    count = sa.func.count()
    cache_hit_query = sa.select(requests.c.model, count).select_from(uses).join(answers, answers.c.id == uses.c.answer)
    cache_hit_query = cache_hit_query.join(requests, requests.c.key == answers.c.request)
    empty_sum = sa.func.sum(sa.case((sa.func.trim(answers.c.text) == "", 1), else_=0))
    outcome_query = sa.select(
        requests.c.model, answers.c.error, count, empty_sum, sa.func.min(answers.c.id).label("first")
    )
    outcome_query = outcome_query.join(requests, requests.c.key == answers.c.request)
    if runs is not None:
        cache_hit_query, outcome_query = (
            cache_hit_query.where(uses.c.run.in_(runs)),
            outcome_query.where(answers.c.run.in_(runs)),
        )
    for model, n_calls in database.rows(cache_hit_query.group_by(requests.c.model)):
        cache_hits[model] = n_calls
    representatives: dict[tuple[str, str], str] = {}
    reason_query = outcome_query.group_by(requests.c.model, answers.c.error).order_by("first")
    for model, error, n_calls, n_empty_answers, _ in database.rows(reason_query):
        n_sent[model] += n_calls
        n_empty[model] += n_empty_answers
        if error is not None:
            reason = error.rpartition("; the last one: ")[2]
            representative = representatives.setdefault((model, _VARYING_PART.sub("#", reason)), reason)
            reasons_by_model[model][representative] += n_calls
    return [
        ModelCalls(
            name,
            n_sent[name],
            reasons_by_model[name].total(),
            cache_hits[name],
            dict(reasons_by_model[name].most_common()),
            n_empty[name],
        )
        for name in sorted({*n_sent, *cache_hits})
    ]


def seconds_per_answer(database: Database, model: str, n_runs: int = 20) -> float | None:
    """Return the mean time per answer in a model's latest runs, in seconds; None if there are no answers.

    The time from the start of each run to its last answer is divided by the number of answers. The result therefore
    depends on the number of concurrent requests and on pauses between answers.
    """
    answers, requests, runs = tables.answers, tables.requests, tables.runs
    query = (
        sa.select(sa.func.max(answers.c.answered_at) - runs.c.started_at, sa.func.count())
        .join(requests, requests.c.key == answers.c.request)
        .join(runs, runs.c.id == answers.c.run)
        .where(requests.c.model == model, answers.c.error.is_(None))
        .group_by(runs.c.id, runs.c.started_at)
        .order_by(runs.c.started_at.desc())
        .limit(n_runs)
    )
    rows = database.rows(query)
    return sum(max(0.0, seconds) for seconds, _ in rows) / sum(count for _, count in rows) if rows else None


def run_details(database: Database, run: str) -> RunDetails:
    """Return all stored data of a run.

    Raises:
        RecordsError: The run does not exist.
    """
    usage = tuple(usage_by_model(database, run))
    summary, calls = require_run(database, run), tuple(calls_by_model(database, [run]))
    return RunDetails(summary, *run_settings(database, run), usage, run_rows(database, run), calls)


def run_rows(
    database: Database, run: str, condition: sa.ColumnElement[bool] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the result rows of a run by table name; ``condition`` is a filter on the table ``results``."""
    results = tables.results
    query = sa.select(results.c.name, results.c.row).where(results.c.run == run)
    if condition is not None:
        query = query.where(condition)
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, text in database.rows(query.order_by(results.c.name, results.c.position)):
        rows.setdefault(name, []).append(json.loads(text))
    return rows


def run_settings(database: Database, run: str) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Return the configuration, seeds and error of a run; the error is None if there was none.

    Raises:
        RecordsError: The run does not exist.
    """
    require_run(database, run)
    row = database.first(sa.select(tables.runs).where(tables.runs.c.id == run))
    return json.loads(row.config), json.loads(row.seeds), row.error


def require_run(database: Database, run: str) -> RunSummary:
    """Return the summary of the run with the given id.

    Raises:
        RecordsError: The run does not exist.
    """
    runs = list_runs(database, run)
    if not runs:
        raise RecordsError(f"There is no run {run} in the records: list them with climassay records runs.")
    return runs[0]


def build_summary(row: sa.Row[Any], counts: Mapping[str, Any], served: int | None) -> RunSummary:
    """Build the summary of a run from its row in the table ``runs``.

    A run with the status ``running`` counts as interrupted if its process has ended or sends no heartbeats.

    Args:
        row: Row of ``runs``, with the process's identity as ``owner``.
        counts: Cost and numbers of requests, failures and answers without a known price, by column name.
        served: Number of answers reused from earlier runs.
    """
    is_silent = row.status == "running" and (row.seen_at < time.time() - SILENCE_SECONDS or has_died(row.owner))
    ended_at = row.seen_at if is_silent else row.ended_at
    return build_record(
        RunSummary,
        row,
        status="interrupted" if is_silent else row.status,
        started_at=format_time(row.started_at),
        ended_at=None if ended_at is None else format_time(ended_at),
        **{name: int(counts.get(name) or 0) for name in ("sent", "failed", "unpriced")},
        served=served or 0,
        cost=counts.get("cost"),
        name=_find_run_subject(json.loads(row.config)),
    )


_SUBJECTS = ("name", "recipe", "experiment", "claim", "question", "questions", "file", "statements", "collection")
"""Entries of configurations that name the subject of a run, the most informative first."""


def _find_run_subject(config: Any) -> str:
    for entry in _SUBJECTS:
        value = config.get(entry) if isinstance(config, dict) else None
        if isinstance(value, dict):
            value = value.get("name")
        if value and isinstance(value, str):
            return value
    return ""


def format_time(seconds: float) -> str:
    """Format seconds since 1970 as an ISO 8601 time in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


RunOrder = Literal["started", "command", "status", "sent", "failed", "served", "tokens", "cost"]
UsageGroup = Literal["model", "command", "day"]
SECONDS_PER_DAY = 86400


@dataclass(frozen=True, slots=True)
class RunEntry:
    """Entry in a list of runs, with the run's models and token count."""

    summary: RunSummary
    models: tuple[str, ...]
    """Names of the models whose answers the run received or reused."""
    tokens: int
    """Number of prompt and completion tokens of the answers that the run received."""


@dataclass(frozen=True, slots=True)
class RunList:
    """One page of a list of runs."""

    entries: tuple[RunEntry, ...]
    total: int
    """Number of runs that match the filters, on all pages."""
    commands: tuple[str, ...]
    """Names of the commands of all runs, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow(_UsageCounts):
    """Usage of one model, by one command, or on one day."""

    name: str
    """Name of the model or command, or the day as ``2026-01-31`` (UTC)."""
    served: int
    """Number of answers reused from earlier runs."""

    @property
    def reused_fraction(self) -> float:
        """Fraction of answers that were reused."""
        return self.served / (self.served + self.answers) if self.served + self.answers else 0.0


def list_run_page(
    database: Database,
    *,
    command: str = "",
    text: str = "",
    order: RunOrder = "started",
    descending: bool = True,
    limit: int = 50,
    offset: int = 0,
    excluded: sa.Select[tuple[str]] | None = None,
) -> RunList:
    """Return one page of the runs whose id, command or configuration contains a text, ignoring case.

    ``command`` restricts the result to runs of one command. Runs whose ids the query ``excluded`` returns are omitted.

    Raises:
        InputError: The order does not exist.
    """
    if order not in get_args(RunOrder):
        raise InputError(f"Runs are sorted by {', '.join(get_args(RunOrder))}, not by {order!r}.")
    runs = tables.runs
    conditions = _build_filter_conditions(command, text, excluded)
    column: sa.ColumnElement[Any] = runs.c[order] if order in ("command", "status") else runs.c.started_at
    query = sa.select(runs, _build_owner_column()).where(*conditions)
    if order not in ("started", "command", "status"):
        counts = _build_counts_query().subquery()
        reused_counts = _build_reuse_query().subquery()
        query = query.outerjoin(counts, counts.c.run == runs.c.id).outerjoin(
            reused_counts, reused_counts.c.run == runs.c.id
        )
        column = sa.func.coalesce({**counts.c, **reused_counts.c}[order], 0)
    direction = sa.desc if descending else sa.asc
    query = query.order_by(direction(column), direction(runs.c.started_at), runs.c.id).limit(limit).offset(offset)
    with database.read() as connection:
        total = connection.execute(sa.select(sa.func.count()).select_from(runs).where(*conditions)).scalar_one()
        commands = connection.execute(sa.select(runs.c.command).distinct().order_by(runs.c.command)).scalars().all()
        entries = _load_run_entries(connection, connection.execute(query).all())
    return RunList(entries, total, tuple(commands))


def list_run_entries(
    database: Database,
    *,
    command: str = "",
    text: str = "",
    run: str | None = None,
    after: str | None = None,
    limit: int = 50,
    excluded: sa.Select[tuple[str]] | None = None,
) -> tuple[RunEntry, ...]:
    """Return the runs that follow the run ``after`` in a list from the newest to the oldest.

    The filters are those of :func:`list_run_page`. Pagination is by id instead of an offset, so that runs started in
    the meantime do not shift the results.

    Raises:
        InputError: The run ``after`` does not exist.
    """
    runs = tables.runs
    query = sa.select(runs, _build_owner_column()).where(*_build_filter_conditions(command, text, excluded))
    if run is not None:
        query = query.where(runs.c.id == run)
    with database.read() as connection:
        if after is not None:
            started_at = connection.execute(sa.select(runs.c.started_at).where(runs.c.id == after)).scalar_one_or_none()
            if started_at is None:
                raise InputError(f"There is no run {after!r}.")
            query = query.where(sa.tuple_(-runs.c.started_at, runs.c.id) > sa.tuple_(-started_at, after))
        page_query = query.order_by(runs.c.started_at.desc(), runs.c.id).limit(limit)
        return _load_run_entries(connection, connection.execute(page_query).all())


def usage_by(database: Database, group: UsageGroup) -> list[UsageRow]:
    """Return usage by model or command, sorted by number of tokens, or by day, the newest first.

    Raises:
        InputError: The group does not exist.
    """
    if group not in get_args(UsageGroup):
        raise InputError(f"Usage is shown by {', '.join(get_args(UsageGroup))}, not by {group!r}.")
    answers, uses = tables.answers, tables.uses
    group_column: sa.ColumnElement[Any] = tables.requests.c.model if group == "model" else tables.runs.c.command
    reuse_group_column = group_column
    if group == "day":
        group_column, reuse_group_column = (
            _build_day_column(database, answers.c.answered_at),
            _build_day_column(database, tables.runs.c.started_at),
        )
    sent_query = sa.select(group_column.label("name"), *_build_usage_columns()).select_from(
        _join_requests(answers, answers.c.run)
    )
    reused_query = sa.select(reuse_group_column.label("name"), sa.func.count().label("served")).select_from(
        _join_requests(uses.join(answers, answers.c.id == uses.c.answer), uses.c.run)
    )
    with database.read() as connection:
        rows = {row["name"]: row for row in connection.execute(sent_query.group_by(group_column)).mappings()}
        n_reused_by_name = {
            row.name: row.served for row in connection.execute(reused_query.group_by(reuse_group_column))
        }
    usage_rows = []
    for name in {*rows, *n_reused_by_name}:
        counts = dict(rows.get(name, {}))
        row_name = str(name)
        if group == "day":
            row_name = datetime.fromtimestamp(int(name) * SECONDS_PER_DAY, UTC).date().isoformat()
        usage_rows.append(
            UsageRow(
                name=row_name,
                served=n_reused_by_name.get(name, 0),
                cost=counts.get("cost"),
                **_to_integer_counts(counts),
            )
        )
    if group == "day":
        return sorted(usage_rows, key=lambda row: row.name, reverse=True)
    return sorted(usage_rows, key=lambda row: (-row.prompt_tokens - row.completion_tokens, row.name))


def _build_filter_conditions(
    command: str, text: str, excluded_runs: sa.Select[tuple[str]] | None
) -> list[sa.ColumnElement[bool]]:
    runs = tables.runs
    conditions: list[sa.ColumnElement[bool]] = [runs.c.command == command] if command else []
    if excluded_runs is not None:
        conditions.append(runs.c.id.not_in(excluded_runs))
    if text:
        columns = (runs.c.id, runs.c.command, runs.c.config)
        conditions.append(
            sa.or_(*(sa.func.lower(column).contains(text.lower(), autoescape=True) for column in columns))
        )
    return conditions


def _build_counts_query() -> sa.Select[Any]:
    answers = tables.answers
    query = sa.select(
        answers.c.run,
        sa.func.count().label("sent"),
        sa.func.count(answers.c.error).label("failed"),
        sa.func.sum(answers.c.prompt_tokens + answers.c.completion_tokens).label("tokens"),
        sa.func.sum(answers.c.cost).label("cost"),
        _build_unpriced_column(),
    )
    return query.join(tables.requests, tables.requests.c.key == answers.c.request).group_by(answers.c.run)


def _build_unpriced_column() -> sa.ColumnElement[Any]:
    """Return a column that counts answers of remote models that have token counts but no known price."""
    answers, tokens = tables.answers, tables.answers.c.prompt_tokens + tables.answers.c.completion_tokens
    is_unpriced = sa.and_(answers.c.cost.is_(None), tokens > 0, tables.requests.c.model.not_like("local:%"))
    return sa.func.sum(sa.case((is_unpriced, 1), else_=0)).label("unpriced")


def _build_owner_column() -> sa.Label[str]:
    columns = tables.meta.c
    return sa.select(columns.value).where(columns.name == OWNER + tables.runs.c.id).scalar_subquery().label("owner")


def _build_reuse_query() -> sa.Select[Any]:
    uses = tables.uses
    return sa.select(uses.c.run, sa.func.count().label("served")).group_by(uses.c.run)


def _load_run_entries(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> tuple[RunEntry, ...]:
    ids = [row.id for row in rows]
    answers, uses, requests = tables.answers, tables.uses, tables.requests
    counts_by_run = {
        row.run: dict(row._mapping) for row in connection.execute(_build_counts_query().where(answers.c.run.in_(ids)))
    }
    n_reused_by_run = {
        row.run: row.served for row in connection.execute(_build_reuse_query().where(uses.c.run.in_(ids)))
    }
    received_query = (
        sa.select(answers.c.run, requests.c.model)
        .join(requests, requests.c.key == answers.c.request)
        .where(answers.c.run.in_(ids))
    )
    reused_query = (
        sa.select(uses.c.run, requests.c.model)
        .join(answers, answers.c.id == uses.c.answer)
        .join(requests, requests.c.key == answers.c.request)
        .where(uses.c.run.in_(ids))
    )
    models: dict[str, list[str]] = {}
    for run, model in sorted(tuple(row) for row in connection.execute(sa.union(received_query, reused_query))):
        models.setdefault(run, []).append(model)
    entries = []
    for row in rows:
        counts = counts_by_run.get(row.id, {})
        summary = build_summary(row, counts, n_reused_by_run.get(row.id))
        entries.append(RunEntry(summary, tuple(models.get(row.id, ())), int(counts.get("tokens") or 0)))
    return tuple(entries)


def _build_usage_columns() -> tuple[sa.ColumnElement[Any], ...]:
    answers = tables.answers
    return (
        sa.func.count().label("answers"),
        sa.func.count(answers.c.error).label("failed"),
        sa.func.sum(answers.c.attempts).label("attempts"),
        sa.func.sum(answers.c.prompt_tokens).label("prompt_tokens"),
        sa.func.sum(answers.c.completion_tokens).label("completion_tokens"),
        sa.func.sum(answers.c.reasoning_tokens).label("reasoning_tokens"),
        sa.func.sum(answers.c.cost).label("cost"),
        _build_unpriced_column(),
    )


def _to_integer_counts(row: Mapping[str, Any]) -> dict[str, int]:
    """Convert sums to int, since PostgreSQL returns decimals; sums over no answers become 0."""
    return {field.name: int(row.get(field.name, 0)) for field in fields(_UsageCounts) if field.name != "cost"}


def _join_requests(start: sa.FromClause, run: sa.ColumnElement[str]) -> sa.FromClause:
    requests, runs, answers = tables.requests, tables.runs, tables.answers
    return start.join(requests, requests.c.key == answers.c.request).join(runs, runs.c.id == run)


def _build_day_column(database: Database, time_column: sa.ColumnElement[float]) -> sa.ColumnElement[int]:
    """Return a column with days since 1970; floor is needed in PostgreSQL, where a cast rounds."""
    seconds = time_column if database.is_sqlite else sa.func.floor(time_column)
    return sa.cast(seconds, sa.BigInteger) // sa.literal_column(str(SECONDS_PER_DAY), sa.BigInteger)
