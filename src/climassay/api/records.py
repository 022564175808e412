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

MOST_ROWS = 20
"""Maximum number of rows of a result table shown on screen."""
_AGAIN = "The next run of the command asks only for what is missing."
_NOTHING = "No model call gave a usable answer, so that there is nothing to show."


@dataclass(frozen=True, slots=True)
class WithFailedCalls(Result):
    """Result with the model calls that failed or returned nothing, listed after its tables.

    If no call was answered, the failures replace a result that depends on answers.
    """

    result: Result
    calls: "Sequence[ModelCalls]"
    """Calls of every model, with their failures."""

    @property
    def alone(self) -> bool:
        """True if every call failed, so that only the failures are shown."""
        rests = self.result.rests_on_calls and self.result.failure() is None
        return rests and all(call.unanswered for call in self.calls)

    def _failed(self) -> "list[ModelCalls]":
        return [call for call in self.calls if call.failed or call.empty]

    def _failure_sentences(self) -> list[str]:
        return [sentence for model_calls in self._failed() for sentence in model_calls.sentences()]

    def _table(self) -> "Table":
        reasons = [
            (model_calls.model, {**model_calls.reasons, "The answer is empty.": model_calls.empty})
            for model_calls in self._failed()
        ]
        rows = [(model, why, str(count)) for model, whys in reasons for why, count in whys.items() if count]
        note = "; ".join(
            f"{model_calls.model}: {model_calls.failed:,} of {model_calls.sent:,} calls failed"
            for model_calls in self._failed()
        )
        return Table.of("Calls without an answer", ("model", "reason", "calls"), rows, left=2, note=f"{note}. {_AGAIN}")

    def tables(self) -> "list[Table]":
        """Return the tables of the result, followed by the table of failures."""
        return [*(() if self.alone else self.result.tables()), self._table()]

    def terminal_tables(self, width: int) -> "Sequence[Table]":
        """Return the tables of the result for a terminal; the notes report the failures."""
        return () if self.alone else self.result.terminal_tables(width)

    def to_dict(self) -> Any:
        """Return the data of the result, with ``failed_calls`` added if the data are a mapping."""
        data = self.result.to_dict()
        if not isinstance(data, Mapping):
            return {"failed_calls": self._failed()} if self.alone else data
        remaining = {name: value for name, value in data.items() if not self.alone or name == "run"}
        return {**remaining, "failed_calls": self._failed()}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the result, or of the failures if there is no answer."""
        return Result.rows(self) if self.alone else self.result.rows()

    def lines(self) -> "Iterable[str | Text]":
        """Return the lines of the result; none if there is no answer."""
        return () if self.alone else self.result.lines()

    def notes(self) -> Iterator[str]:
        """Yield the notes of the result and the reasons for failed calls."""
        sentences = self._failure_sentences()
        if not self.alone:
            yield from self.result.notes()
            if self.result.failure() is None:
                yield from sentences
                yield from [_AGAIN] if any(call.failed for call in self.calls) else ()
        elif len(sentences) > 1:
            yield from sentences

    def failure(self) -> ClimassayError | None:
        """Return an error if no call was answered, otherwise the error of the result."""
        if not self.alone:
            return self.result.failure()
        sentences = self._failure_sentences()
        why = f" {sentences[0]}" if len(sentences) == 1 else ""
        return NoAnswerError(f"{_NOTHING}{why} {_AGAIN}")

    def title(self) -> str:
        """Return the title of the result."""
        return self.result.title()

    def markdown(self) -> str:
        """Return all tables as Markdown."""
        return Result.markdown(self) if self.alone else f"{self.result.markdown()}\n{as_markdown(self._table())}"

    def report(self) -> Report:
        """Return the report with the failed calls as its first section."""
        section = Section("Calls without an answer", (self._table(),))
        if self.alone:
            return Report(self.title(), _NOTHING, (section,))
        page = self.result.report()
        return replace(page, sections=(section, *page.sections))

    def page(self) -> str:
        """Return the HTML page of the report, or the result's own page if it has one."""
        own = type(self.result).page is not Result.page and not self.alone
        return self.result.page() if own else Result.page(self)


def failed_calls(records: "Records", runs: Sequence[str] = (), *, besides: str = "") -> list[str]:
    """Return sentences on the failed calls of each model, by default in the latest runs of this session.

    A model is skipped if ``besides``, a text already printed, contains one of its reasons.
    """
    calls = _calls(records, runs)
    return [
        sentence for part in calls if not any(why in besides for why in part.reasons) for sentence in part.sentences()
    ]


def none_answered(records: "Records") -> bool:
    """Return whether the latest runs of this session called models and got no answer at all."""
    calls = _calls(records, ())
    return bool(calls) and all(call.unanswered for call in calls)


def with_failed_calls(result: Result, records: "Records", runs: Sequence[str] = ()) -> Result:
    """Return a result together with the failed model calls of some runs, or unchanged if no call failed."""
    calls = _calls(records, runs)
    return WithFailedCalls(result, calls) if any(call.failed or call.empty for call in calls) else result


def _calls(records: "Records", runs: Sequence[str]) -> "list[ModelCalls]":
    from climassay.records.queries import calls_by_model

    return calls_by_model(records.database, runs or tuple(records.latest_runs))


def list_runs(*, workspace: Place = None) -> Shown:
    """List the runs, oldest first."""
    from climassay.records import queries

    with Session.opened(workspace) as session:
        result, database_name = queries.list_runs(session.records.database), session.records.database.shown_url
    columns = ("run", "command", "status", "started (UTC)", "asked", "failed", "from records", "cost")
    rows = [
        (run.id, run.command, run.status, run.started_at[:19], run.sent, run.failed, run.served, run.formatted_cost)
        for run in result
    ]
    none = () if result else (f"No runs yet in {database_name}.",)
    return Shown(result, (_table(columns, rows),) if result else (), [asdict(run) for run in result], noted=none)


def show_record(what: str, *, workspace: Place = None) -> Shown:
    """Show a run with its configuration, usage and results, or a request with all its answers.

    Args:
        what: Id of a run, or the start of a request's key.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The run or request does not exist.
    """
    from climassay.records.queries import run_details
    from climassay.records.recorded_answers import find_answers

    with Session.opened(workspace) as session:
        if what.startswith("r"):
            return _run(run_details(session.records.database, what))
        answers = find_answers(session.records.database, what)
        return Shown(answers, (), [asdict(answer) for answer in answers], printed_lines=tuple(_answer_lines(answers)))


def model_usage(run: str | None = None, *, workspace: Place = None) -> Shown:
    """Show tokens, cost and failures of each model, with the reasons; unknown costs are marked.

    Args:
        run: Id of the only run to include.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
    """
    from climassay.records.queries import calls_by_model, usage_by_model

    with Session.opened(workspace) as session:
        database = session.records.database
        result, calls = usage_by_model(database, run), calls_by_model(database, None if run is None else [run])
    sentences = [sentence for call in calls for sentence in call.sentences()]
    notes = sentences if result else (f"Nothing has been asked yet in {database.shown_url}.",)
    return Shown(result, (_usage_table(result),) if result else (), [asdict(usage) for usage in result], noted=notes)


def export_records(file: Path | str, run: str | None = None, *, workspace: Place = None) -> Shown:
    """Write all answers with their requests to a file.

    Args:
        file: File to write: .jsonl, .csv or .parquet.
        run: Id of the only run to include.
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
            written = export_answers(database, file, run, task.advance)
    return Shown({"file": file, "answers": written}, noted=(f"{counted(written, 'answer')} written to {file}.",))


def import_records(file: Path | str, *, workspace: Place = None) -> Shown:
    """Import the answers of an export, so that they are not asked again. Existing answers stay as they are.

    Args:
        file: File written by records export: .jsonl or .parquet.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read.
    """
    from climassay.records.transfer import import_answers

    file = Path(file)
    with Session.opened(workspace) as session, session.progress.task("answers") as task:
        result = import_answers(session.records.database, file, task.advance)
    return Shown(result, noted=(_import_sentence(result),))


def back_up_records(file: Path | str, *, workspace: Place = None) -> Shown:
    """Copy the records database to one file, also while other commands or a server write to it.

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
    """Replace the records database by a backup. The replaced files are kept under other names.

    Args:
        file: File written by records backup.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file is not an intact backup, or the records are in PostgreSQL or in use.
    """
    from climassay.records.backup import restore

    file = Path(file)
    with Session.opened(workspace) as session, session.progress.status("Restoring the records ..."):
        replaced = restore(session.records_url, file)
    sentences = [f"Records restored from {file}."]
    if replaced:
        sentences.append(f"The former ones are kept: {', '.join(map(str, replaced))}.")
    return Shown({"file": file, "replaced": replaced}, noted=tuple(sentences))


def _import_sentence(merged: "ImportCounts") -> str:
    sentence = f"{counted(merged.added, 'answer')} imported, {merged.known:,} there already."
    if merged.conflicts:
        sentence += f" {counted(merged.conflicts, 'request')} had another answer here, which is still served."
    if merged.damaged:
        sentence += f" {counted(merged.damaged, 'answer')} left out because of a key other than that of the request."
    return sentence


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> "Table":
    headed = tuple(
        Column(column, "left" if not rows or isinstance(rows[0][number], str) else "right")
        for number, column in enumerate(columns)
    )
    return Table(title, headed, tuple(tuple(map(str, row)) for row in rows))


def _usage_table(usages: "Sequence[ModelUsage]") -> "Table":
    counted = ("answers", "failed", "sent", "prompt tokens", "completion tokens", "thought")
    rows = []
    for evidence_check in usages:
        tokens = (evidence_check.prompt_tokens, evidence_check.completion_tokens, evidence_check.reasoning_tokens)
        rows.append(
            (
                evidence_check.model,
                evidence_check.fingerprint[:12],
                evidence_check.answers,
                evidence_check.failed,
                evidence_check.attempts,
                *tokens,
                evidence_check.formatted_cost,
            )
        )
    return _table(("model", "fingerprint", *counted, "cost"), rows)


def _run(details: "RunDetails") -> Shown:
    summary = details.summary
    lines = [
        f"run {summary.id}: {summary.command}, {summary.status}, climassay {summary.version}",
        f"from {summary.started_at} to {summary.ended_at or 'now'}",
        *([f"error: {details.error}"] if details.error else []),
        f"asked {summary.sent} ({summary.failed} failed), {summary.served} from the records",
        *(sentence for call in details.calls for sentence in call.sentences()),
        *_entries({"configuration": details.config, "seeds": details.seeds}),
    ]
    tables = [_usage_table(details.usage)] if details.usage else []
    for name, rows in details.results.items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        table = _table(columns, [[row.get(column, "") for column in columns] for row in rows[:MOST_ROWS]], name)
        more = f"... and {len(rows) - MOST_ROWS} more rows (all with --json)" if len(rows) > MOST_ROWS else ""
        tables.append(replace(table, note=more))
    return Shown(details, tables, printed_lines=lines)


def _entries(data: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the lines of a mapping: one per entry, nested mappings indented."""
    parts: list[tuple[str, Any]] = []
    for name, value in data.items():
        several = isinstance(value, list) and any(isinstance(item, dict) for item in value)
        parts += [(f"{name} {number}", item) for number, item in enumerate(value, 1)] if several else [(name, value)]
    width = max((len(name) for name, value in parts if not isinstance(value, dict)), default=0)
    for name, value in parts:
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _entries(value, f"{indent}  ")
        else:
            listed = value if isinstance(value, list) else [] if value in (None, {}) else [value]
            words = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in listed]
            joined = ", ".join(words) or "none"
            yield f"{indent}{f'{name}:':{width + 1}} " + joined.replace("\n", f"\n{indent}{' ' * (width + 2)}")


def _answer_lines(answers: "Sequence[RecordedAnswer]") -> Iterator[str]:
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
