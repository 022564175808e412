"""Records of model calls: runs, answers, usage, export and import."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import ClimassayError, NoAnswerError
from climassay.reporting import Report, Section, counted
from climassay.reporting.results import AssembledResult, Result
from climassay.reporting.tables import Column, Table, as_markdown
from climassay.session import Place, Session

if TYPE_CHECKING:
    from rich.text import Text

    from climassay.records import Records
    from climassay.records.queries import ModelCalls, ModelUsage, RunDetails
    from climassay.records.recorded_answers import RecordedAnswer
    from climassay.records.transfer import ImportCounts

MAX_ROWS = 20
"""Maximum number of rows of a run's result table that are shown on screen."""
_RESUME_NOTE = "The next run of the command asks only for what is missing."
_NO_ANSWER_NOTE = "No model call gave a usable answer, so that there is nothing to show."


@dataclass(frozen=True, slots=True)
class WithFailedCalls(Result):
    """Result extended by a table of the model calls that failed or returned an empty answer."""

    result: Result
    failed_calls: "Sequence[ModelCalls]"
    """Calls to each model with failures, with the numbers and reasons of the failures."""

    def tables(self) -> "list[Table]":
        """Return the tables of the result, followed by the table of failed calls."""
        return [*self.result.tables(), _make_failure_table(self.failed_calls)]

    def terminal_tables(self, width: int) -> "Sequence[Table]":
        """Return the tables of the result for a terminal; failed calls are reported by the notes instead."""
        return self.result.terminal_tables(width)

    def to_dict(self) -> Any:
        """Return the result as JSON-serialisable values, with an entry ``failed_calls`` if they are a mapping."""
        data = self.result.to_dict()
        return {**data, "failed_calls": self.failed_calls} if isinstance(data, Mapping) else data

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the result."""
        return self.result.rows()

    def lines(self) -> "Iterable[str | Text]":
        """Return the lines of the result."""
        return self.result.lines()

    def notes(self) -> Iterator[str]:
        """Yield the notes of the result, then the reasons for failed calls."""
        yield from self.result.notes()
        if self.result.failure() is None:
            yield from _describe_failures(self.failed_calls)
            yield from [_RESUME_NOTE] if any(call.failed for call in self.failed_calls) else ()

    def failure(self) -> ClimassayError | None:
        """Return the error of the result, if any."""
        return self.result.failure()

    def title(self) -> str:
        """Return the title of the result."""
        return self.result.title()

    def markdown(self) -> str:
        """Return all tables as Markdown."""
        return f"{self.result.markdown()}\n{as_markdown(_make_failure_table(self.failed_calls))}"

    def report(self) -> Report:
        """Return the report with the failed calls as its first section."""
        page = self.result.report()
        return replace(page, sections=(_make_failure_section(self.failed_calls), *page.sections))

    def page(self) -> str:
        """Return the HTML page of the report, or the result's own page if it has one."""
        return Result.page(self) if type(self.result).page is Result.page else self.result.page()


def _describe_failures(failed_calls: "Sequence[ModelCalls]") -> list[str]:
    return [sentence for model_calls in failed_calls for sentence in model_calls.sentences()]


def _make_failure_section(failed_calls: "Sequence[ModelCalls]") -> Section:
    return Section("Calls without an answer", (_make_failure_table(failed_calls),))


def _make_failure_table(failed_calls: "Sequence[ModelCalls]") -> Table:
    rows = [
        (call.model, reason, str(count))
        for call in failed_calls
        for reason, count in {**call.reasons, "The answer is empty.": call.empty}.items()
        if count
    ]
    note = "; ".join(f"{call.model}: {call.failed:,} of {call.sent:,} calls failed" for call in failed_calls)
    return Table.of(
        "Calls without an answer", ("model", "reason", "calls"), rows, left_columns=2, note=f"{note}. {_RESUME_NOTE}"
    )


class FailedCalls(AssembledResult):
    """Result of a command whose model calls were all left without an answer."""

    def terminal_tables(self, width: int) -> "Sequence[Table]":  # noqa: ARG002
        """Return no tables, because the error and the notes already say what the table would show."""
        return ()


def _make_failure_result(result: Result, failed_calls: "Sequence[ModelCalls]") -> FailedCalls:
    """Return what is shown instead of a result that depends on answers, if no call was answered."""
    data, sentences = result.to_dict(), _describe_failures(failed_calls)
    run = {"run": data["run"]} if isinstance(data, Mapping) and "run" in data else {}
    reason_note = f" {sentences[0]}" if len(sentences) == 1 else ""
    section = _make_failure_section(failed_calls)
    return FailedCalls(
        {**run, "failed_calls": failed_calls},
        [_make_failure_table(failed_calls)],
        noted=sentences if len(sentences) > 1 else (),
        reported=lambda: Report(result.title(), _NO_ANSWER_NOTE, (section,)),
        failed=NoAnswerError(f"{_NO_ANSWER_NOTE}{reason_note} {_RESUME_NOTE}"),
        headline=result.title(),
    )


def failed_calls(records: "Records", runs: Sequence[str] = (), *, besides: str = "") -> list[str]:
    """Return sentences on the failed calls to each model, by default in the latest runs of this session.

    A model is skipped if ``besides``, a text that was already printed, contains a reason for its failures.
    """
    calls = _load_calls(records, runs)
    return [
        sentence
        for model_calls in calls
        if not any(reason in besides for reason in model_calls.reasons)
        for sentence in model_calls.sentences()
    ]


def none_answered(records: "Records") -> bool:
    """Return whether the latest runs of this session called models without getting a single answer."""
    calls = _load_calls(records, ())
    return bool(calls) and all(call.unanswered for call in calls)


def with_failed_calls(result: Result, records: "Records", runs: Sequence[str] = ()) -> Result:
    """Return a result extended by the failed model calls of runs, or the result itself if no call failed.

    If no call was answered, and the result depends on answers, only the failed calls are shown.
    """
    calls = _load_calls(records, runs)
    failed_calls = [call for call in calls if call.failed or call.empty]
    if not failed_calls:
        return result
    if result.rests_on_calls and result.failure() is None and all(call.unanswered for call in calls):
        return _make_failure_result(result, failed_calls)
    return WithFailedCalls(result, failed_calls)


def _load_calls(records: "Records", runs: Sequence[str]) -> "list[ModelCalls]":
    from climassay.records.queries import calls_by_model

    return calls_by_model(records.database, runs or tuple(records.latest_runs))


def list_runs(*, workspace: Place = None) -> AssembledResult:
    """List the recorded runs, oldest first."""
    from climassay.records import queries

    with Session.opened(workspace) as session:
        runs, database_name = queries.list_runs(session.records.database), session.records.database.redacted_url
    columns = ("run", "command", "status", "started (UTC)", "asked", "failed", "from records", "cost")
    rows = [
        (run.id, run.command, run.status, run.started_at[:19], run.sent, run.failed, run.served, run.formatted_cost)
        for run in runs
    ]
    notes = () if runs else (f"No runs yet in {database_name}.",)
    return AssembledResult(
        runs, (_make_table(columns, rows),) if runs else (), [asdict(run) for run in runs], noted=notes
    )


def show_record(what: str, *, workspace: Place = None) -> AssembledResult:
    """Show a run with its configuration, usage and results, or a request with its recorded answers.

    Args:
        what: Id of a run, or the beginning of a request's key.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The run or request does not exist.
    """
    from climassay.records.queries import run_details
    from climassay.records.recorded_answers import find_answers

    with Session.opened(workspace) as session:
        if what.startswith("r"):
            return _show_run(run_details(session.records.database, what))
        answers = find_answers(session.records.database, what)
        return AssembledResult(
            answers, (), [asdict(answer) for answer in answers], printed_lines=tuple(_format_answers(answers))
        )


def model_usage(run: str | None = None, *, workspace: Place = None) -> AssembledResult:
    """Show the tokens, cost and failed calls of each model; unknown costs are marked.

    Args:
        run: Id of the run; by default all runs are included.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
    """
    from climassay.records.queries import calls_by_model, usage_by_model

    with Session.opened(workspace) as session:
        database = session.records.database
        usages, calls = usage_by_model(database, run), calls_by_model(database, None if run is None else [run])
    sentences = [sentence for call in calls for sentence in call.sentences()]
    notes = sentences if usages else (f"Nothing has been asked yet in {database.redacted_url}.",)
    return AssembledResult(
        usages, (_make_usage_table(usages),) if usages else (), [asdict(usage) for usage in usages], noted=notes
    )


def export_records(file: Path | str, run: str | None = None, *, workspace: Place = None) -> AssembledResult:
    """Write recorded answers with their requests to a file.

    Args:
        file: File to write: .jsonl, .csv or .parquet.
        run: Id of the run; by default all runs are included.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be written.
    """
    from climassay.records.recorded_answers import count_answers
    from climassay.records.transfer import export_answers

    file = Path(file)
    with Session.opened(workspace) as session:
        database = session.records.database
        with session.progress.task("answers", total=count_answers(database, run)) as task:
            n_written = export_answers(database, file, run, task.advance)
    return AssembledResult(
        {"file": file, "answers": n_written}, noted=(f"{counted(n_written, 'answer')} written to {file}.",)
    )


def import_records(file: Path | str, *, workspace: Place = None) -> AssembledResult:
    """Import exported answers, so that their requests are not sent again; existing answers are kept.

    Args:
        file: File written by ``climassay records export`` (.jsonl or .parquet).
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read.
    """
    from climassay.records.transfer import import_answers

    file = Path(file)
    with Session.opened(workspace) as session, session.progress.task("answers") as task:
        import_counts = import_answers(session.records.database, file, task.advance)
    return AssembledResult(import_counts, noted=(_import_sentence(import_counts),))


def back_up_records(file: Path | str, *, workspace: Place = None) -> AssembledResult:
    """Copy the records database to a single file, even while other commands or a server write to it.

    Args:
        file: File to write.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The records are in PostgreSQL, or the file cannot be written.
    """
    from climassay.records.backup import back_up

    file = Path(file)
    with Session.opened(workspace) as session, session.progress.status("Copying the records ..."):
        back_up(session.records.database, file)
    size = file.stat().st_size
    return AssembledResult({"file": file, "bytes": size}, noted=(f"Records copied to {file} ({size / 1e6:,.1f} MB).",))


def restore_records(file: Path | str, *, workspace: Place = None) -> AssembledResult:
    """Replace the records database with a backup; the replaced files are kept under other names.

    Args:
        file: File written by ``climassay records backup``.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file is not an intact backup, or the records are in PostgreSQL or in use.
    """
    from climassay.records.backup import restore

    file = Path(file)
    with Session.opened(workspace) as session, session.progress.status("Restoring the records ..."):
        replaced_files = restore(session.records_url, file)
    sentences = [f"Records restored from {file}."]
    if replaced_files:
        sentences.append(f"The former ones are kept: {', '.join(map(str, replaced_files))}.")
    return AssembledResult({"file": file, "replaced": replaced_files}, noted=tuple(sentences))


def _import_sentence(counts: "ImportCounts") -> str:
    sentence = f"{counted(counts.added, 'answer')} imported, {counts.known:,} there already."
    if counts.conflicts:
        sentence += f" {counted(counts.conflicts, 'request')} had another answer here, which is still served."
    if counts.damaged:
        sentence += f" {counted(counts.damaged, 'answer')} left out because of a key other than that of the request."
    return sentence


def _make_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> "Table":
    column_headings = tuple(
        Column(column, "left" if not rows or isinstance(rows[0][index], str) else "right")
        for index, column in enumerate(columns)
    )
    return Table(title, column_headings, tuple(tuple(map(str, row)) for row in rows))


def _make_usage_table(usages: "Sequence[ModelUsage]") -> "Table":
    count_columns = ("answers", "failed", "sent", "prompt tokens", "completion tokens", "thought")
    rows = []
    for usage in usages:
        tokens = (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens)
        rows.append(
            (
                usage.model,
                usage.fingerprint[:12],
                usage.answers,
                usage.failed,
                usage.attempts,
                *tokens,
                usage.formatted_cost,
            )
        )
    return _make_table(("model", "fingerprint", *count_columns, "cost"), rows)


def _show_run(details: "RunDetails") -> AssembledResult:
    summary = details.summary
    lines = [
        f"run {summary.id}: {summary.command}, {summary.status}, climassay {summary.version}",
        f"from {summary.started_at} to {summary.ended_at or 'now'}",
        *([f"error: {details.error}"] if details.error else []),
        f"asked {summary.sent} ({summary.failed} failed), {summary.served} from the records",
        *(sentence for call in details.calls for sentence in call.sentences()),
        *_format_entries({"configuration": details.config, "seeds": details.seeds}),
    ]
    tables = [_make_usage_table(details.usage)] if details.usage else []
    for name, rows in details.results.items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        table = _make_table(columns, [[row.get(column, "") for column in columns] for row in rows[:MAX_ROWS]], name)
        omission_note = f"... and {len(rows) - MAX_ROWS} more rows (all with --json)" if len(rows) > MAX_ROWS else ""
        tables.append(replace(table, note=omission_note))
    return AssembledResult(details, tables, printed_lines=lines)


def _format_entries(data: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield a line for each entry of a mapping; the entries of nested mappings are indented."""
    entries: list[tuple[str, Any]] = []
    for name, value in data.items():
        has_mappings = isinstance(value, list) and any(isinstance(item, dict) for item in value)
        entries += (
            [(f"{name} {number}", item) for number, item in enumerate(value, 1)] if has_mappings else [(name, value)]
        )
    width = max((len(name) for name, value in entries if not isinstance(value, dict)), default=0)
    for name, value in entries:
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _format_entries(value, f"{indent}  ")
        else:
            items = value if isinstance(value, list) else [] if value in (None, {}) else [value]
            formatted_items = [
                item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items
            ]
            text = ", ".join(formatted_items) or "none"
            yield f"{indent}{f'{name}:':{width + 1}} " + text.replace("\n", f"\n{indent}{' ' * (width + 2)}")


def _format_answers(answers: "Sequence[RecordedAnswer]") -> Iterator[str]:
    for answer in answers:
        yield f"key {answer.key}, {answer.kind}, {answer.model} ({answer.fingerprint[:12]})"
        yield f"asked by run {answer.run}, {answer.answered_at}, {answer.attempts} attempts"
        yield f"settings: {json.dumps(answer.settings, ensure_ascii=False)}"
        yield f"prompt:\n{answer.prompt}"
        if answer.error is not None:
            yield f"failed: {answer.error}\n"
        else:
            answer_text = answer.text if answer.logprobs is None else json.dumps(answer.logprobs)
            yield f"answer ({answer.outcome}):\n{answer_text}\n"
