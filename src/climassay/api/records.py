"""Records of model calls: runs, answers, usage, export and import."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import ClimassayError, NoAnswerError
from climassay.reporting import Report, Section, counted
from climassay.reporting.results import Result, Shown
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
    """Result extended by a table of the model calls that failed or returned an empty answer.

    If no call was answered, and the result depends on answers, only the failed calls are shown.
    """

    result: Result
    calls: "Sequence[ModelCalls]"
    """Calls to each model, with the numbers and reasons of failures."""

    @property
    def shows_only_failures(self) -> bool:
        """Whether no call was answered; only the failed calls are then shown."""
        rests = self.result.rests_on_calls and self.result.failure() is None
        return rests and all(call.unanswered for call in self.calls)

    def _select_failed_calls(self) -> "list[ModelCalls]":
        return [call for call in self.calls if call.failed or call.empty]

    def _describe_failures(self) -> list[str]:
        return [sentence for model_calls in self._select_failed_calls() for sentence in model_calls.sentences()]

    def _make_failure_table(self) -> "Table":
        reasons = [
            (model_calls.model, {**model_calls.reasons, "The answer is empty.": model_calls.empty})
            for model_calls in self._select_failed_calls()
        ]
        rows = [(model, reason, str(count)) for model, counts in reasons for reason, count in counts.items() if count]
        note = "; ".join(
            f"{model_calls.model}: {model_calls.failed:,} of {model_calls.sent:,} calls failed"
            for model_calls in self._select_failed_calls()
        )
        return Table.of(
            "Calls without an answer", ("model", "reason", "calls"), rows, left=2, note=f"{note}. {_RESUME_NOTE}"
        )

    def tables(self) -> "list[Table]":
        """Return the tables of the result, followed by the table of failed calls."""
        return [*(() if self.shows_only_failures else self.result.tables()), self._make_failure_table()]

    def terminal_tables(self, width: int) -> "Sequence[Table]":
        """Return the tables of the result for a terminal; failed calls are reported by the notes instead."""
        return () if self.shows_only_failures else self.result.terminal_tables(width)

    def to_dict(self) -> Any:
        """Return the result as JSON-serialisable values, with an entry ``failed_calls`` if they are a mapping."""
        data = self.result.to_dict()
        if not isinstance(data, Mapping):
            return {"failed_calls": self._select_failed_calls()} if self.shows_only_failures else data
        fields = {name: value for name, value in data.items() if not self.shows_only_failures or name == "run"}
        return {**fields, "failed_calls": self._select_failed_calls()}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the result, or of the failed calls if there is no answer."""
        return Result.rows(self) if self.shows_only_failures else self.result.rows()

    def lines(self) -> "Iterable[str | Text]":
        """Return the lines of the result; none if there is no answer."""
        return () if self.shows_only_failures else self.result.lines()

    def notes(self) -> Iterator[str]:
        """Yield the notes of the result, then the reasons for failed calls."""
        sentences = self._describe_failures()
        if not self.shows_only_failures:
            yield from self.result.notes()
            if self.result.failure() is None:
                yield from sentences
                yield from [_RESUME_NOTE] if any(call.failed for call in self.calls) else ()
        elif len(sentences) > 1:
            yield from sentences

    def failure(self) -> ClimassayError | None:
        """Return an error if no call was answered, otherwise the error of the result, if any."""
        if not self.shows_only_failures:
            return self.result.failure()
        sentences = self._describe_failures()
        reason_note = f" {sentences[0]}" if len(sentences) == 1 else ""
        return NoAnswerError(f"{_NO_ANSWER_NOTE}{reason_note} {_RESUME_NOTE}")

    def title(self) -> str:
        """Return the title of the result."""
        return self.result.title()

    def markdown(self) -> str:
        """Return all tables as Markdown."""
        return (
            Result.markdown(self)
            if self.shows_only_failures
            else f"{self.result.markdown()}\n{as_markdown(self._make_failure_table())}"
        )

    def report(self) -> Report:
        """Return the report with the failed calls as its first section."""
        section = Section("Calls without an answer", (self._make_failure_table(),))
        if self.shows_only_failures:
            return Report(self.title(), _NO_ANSWER_NOTE, (section,))
        page = self.result.report()
        return replace(page, sections=(section, *page.sections))

    def page(self) -> str:
        """Return the HTML page of the report, or the result's own page if it has one."""
        has_own_page = type(self.result).page is not Result.page and not self.shows_only_failures
        return self.result.page() if has_own_page else Result.page(self)


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
    """Return a result extended by the failed model calls of runs, or the result itself if no call failed."""
    calls = _load_calls(records, runs)
    return WithFailedCalls(result, calls) if any(call.failed or call.empty for call in calls) else result


def _load_calls(records: "Records", runs: Sequence[str]) -> "list[ModelCalls]":
    from climassay.records.queries import calls_by_model

    return calls_by_model(records.database, runs or tuple(records.latest_runs))


def list_runs(*, workspace: Place = None) -> Shown:
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
    return Shown(runs, (_make_table(columns, rows),) if runs else (), [asdict(run) for run in runs], noted=notes)


def show_record(what: str, *, workspace: Place = None) -> Shown:
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
        return Shown(answers, (), [asdict(answer) for answer in answers], printed_lines=tuple(_format_answers(answers)))


def model_usage(run: str | None = None, *, workspace: Place = None) -> Shown:
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
    return Shown(
        usages, (_make_usage_table(usages),) if usages else (), [asdict(usage) for usage in usages], noted=notes
    )


def export_records(file: Path | str, run: str | None = None, *, workspace: Place = None) -> Shown:
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
    return Shown({"file": file, "answers": n_written}, noted=(f"{counted(n_written, 'answer')} written to {file}.",))


def import_records(file: Path | str, *, workspace: Place = None) -> Shown:
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
    return Shown(import_counts, noted=(_import_sentence(import_counts),))


def back_up_records(file: Path | str, *, workspace: Place = None) -> Shown:
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
    return Shown({"file": file, "bytes": size}, noted=(f"Records copied to {file} ({size / 1e6:,.1f} MB).",))


def restore_records(file: Path | str, *, workspace: Place = None) -> Shown:
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
    return Shown({"file": file, "replaced": replaced_files}, noted=tuple(sentences))


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


def _show_run(details: "RunDetails") -> Shown:
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
    return Shown(details, tables, printed_lines=lines)


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
