"""``climassay records``: what was asked, what came back, what it cost."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.output import FilesOption, JsonOption, WorkspaceOption, done, emit, opened_session

if TYPE_CHECKING:
    from climassay.records.queries import ModelUsage, RecordedAnswer, RunDetails
    from climassay.records.transfer import MergedAnswers
    from climassay.reporting.tables import Table

MOST_ROWS = 20
"""Rows of a result table shown on screen."""

app = typer.Typer(no_args_is_help=True, help="Look at what was asked of models, what came back, what it cost.")

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--records", help="URL of a records database, instead of the workspace's.", envvar="CLIMASSAY_RECORDS"
    ),
]
RunOption = Annotated[str | None, typer.Option("--run", help="Only this run.")]


@app.command()
def runs(
    workspace: WorkspaceOption = None, url: UrlOption = None, output: FilesOption = None, as_json: JsonOption = False
) -> None:
    """List the runs, the oldest first."""
    from climassay.records.queries import list_runs
    from climassay.reporting.results import Shown

    with opened_session(workspace, records_url=url) as session:
        found, place = list_runs(session.records.database), session.records.database.shown_url
    columns = ("run", "command", "status", "started (UTC)", "asked", "failed", "from records", "cost")
    rows = [
        (run.id, run.command, run.status, run.started_at[:19], run.asked, run.failed, run.served, _cost(run.cost))
        for run in found
    ]
    none = () if found else (f"No runs yet in {place}.",)
    tables = (_table(columns, rows),) if found else ()
    emit(Shown(found, tables, [asdict(run) for run in found], noted=none), as_json, output)


@app.command()
def show(
    what: Annotated[str, typer.Argument(metavar="RUN|KEY", help="A run, or the start of a request's key.")],
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run with its configuration, usage and results, or a request with all its answers."""
    from climassay.records.queries import answers_to, run_details
    from climassay.reporting.results import Shown

    with opened_session(workspace, records_url=url) as session:
        if what.startswith("r"):
            details = run_details(session.records.database, what)
            shown = Shown(details, _run_tables(details), said=tuple(_run_lines(details)))
        else:
            answers = answers_to(session.records.database, what)
            shown = Shown(answers, (), [asdict(one) for one in answers], said=tuple(_answer_lines(answers)))
    emit(shown, as_json, output)


@app.command()
def usage(
    run: RunOption = None,
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show tokens, cost and failures of each model; an unknown cost is shown as such."""
    from climassay.records.queries import usage_by_model
    from climassay.reporting.results import Shown

    with opened_session(workspace, records_url=url) as session:
        found, place = usage_by_model(session.records.database, run), session.records.database.shown_url
    none = () if found else (f"Nothing has been asked yet in {place}.",)
    tables = (_usage_table(found),) if found else ()
    emit(Shown(found, tables, [asdict(one) for one in found], noted=none), as_json, output)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="File to write; it ends in .jsonl, .csv or .parquet.")],
    run: RunOption = None,
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all answers with their requests to a file."""
    from climassay.records.queries import count_answers
    from climassay.records.transfer import export_answers

    with opened_session(workspace, records_url=url, as_json=as_json) as session:
        database = session.records.database
        with session.progress.task("answers", total=count_answers(database, run)) as task:
            written = export_answers(database, file, run, task.advance)
    done({"file": file, "answers": written}, notes=[f"{written} answers written to {file}."], as_json=as_json)


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> "Table":
    from climassay.reporting.tables import Column, Table

    headed = tuple(
        Column(column, "left" if not rows or isinstance(rows[0][number], str) else "right")
        for number, column in enumerate(columns)
    )
    return Table(title, headed, tuple(tuple(map(str, row)) for row in rows))


def _usage_table(found: "Sequence[ModelUsage]") -> "Table":
    counted = ("answers", "failed", "sent", "prompt tokens", "completion tokens", "thought")
    rows = []
    for one in found:
        cost = _cost(one.cost)
        if one.cost is not None and one.unpriced:
            cost += f" + {one.unpriced} unpriced"
        tokens = (one.prompt_tokens, one.completion_tokens, one.reasoning_tokens)
        rows.append((one.model, one.fingerprint[:12], one.answers, one.failed, one.attempts, *tokens, cost))
    return _table(("model", "fingerprint", *counted, "cost"), rows)


def _run_lines(details: "RunDetails") -> Iterator[str]:
    summary = details.summary
    yield f"run {summary.id}: {summary.command}, {summary.status}, climassay {summary.version}"
    yield f"from {summary.started_at} to {summary.ended_at or 'now'}"
    if details.error:
        yield f"error: {details.error}"
    yield f"asked {summary.asked} ({summary.failed} failed), {summary.served} from the records"
    yield f"configuration: {json.dumps(details.config, ensure_ascii=False)}"
    yield f"seeds: {json.dumps(details.seeds, ensure_ascii=False)}"


def _run_tables(details: "RunDetails") -> "list[Table]":
    tables = [_usage_table(details.usage)] if details.usage else []
    for name, rows in details.results.items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        table = _table(columns, [[row.get(column, "") for column in columns] for row in rows[:MOST_ROWS]], name)
        more = f"... and {len(rows) - MOST_ROWS} more rows (all with --json)" if len(rows) > MOST_ROWS else ""
        tables.append(replace(table, note=more))
    return tables


def _answer_lines(answers: "Sequence[RecordedAnswer]") -> Iterator[str]:
    for answer in answers:
        yield f"key {answer.key}, {answer.kind}, {answer.model} ({answer.fingerprint[:12]})"
        yield f"asked by run {answer.run}, {answer.answered_at}, {answer.attempts} attempts"
        yield f"settings: {json.dumps(answer.settings, ensure_ascii=False)}"
        yield f"prompt:\n{answer.prompt}"
        if answer.error is not None:
            yield f"failed: {answer.error}\n"
        else:
            said = answer.text if answer.logprobs is None else json.dumps(answer.logprobs)
            yield f"answer ({answer.outcome}):\n{said}\n"


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What records export wrote; ends in .jsonl or .parquet.")],
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in the answers of an export, so that they are not asked again. What is there already stays as it is."""
    from climassay.records.transfer import import_answers

    with (
        opened_session(workspace, records_url=url, as_json=as_json) as session,
        session.progress.task("answers", total=None) as task,
    ):
        found = import_answers(session.records.database, file, task.advance)
    done(found, notes=[_said(found)], as_json=as_json)


@app.command()
def merge(
    other: Annotated[Path, typer.Argument(help="Folder of another workspace.")],
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in another workspace: answers, runs, datasets, labels, checks, collections; no accounts and no jobs."""
    from climassay.merging import merge_workspace

    with (
        opened_session(workspace, records_url=url, as_json=as_json) as session,
        session.progress.task("answers", total=None) as task,
    ):
        found = merge_workspace(session.records, session.workspace, other, task.advance)
    counts = {name: getattr(found, name) for name in ("runs", "datasets", "drafts", "labels", "checks")}
    new = ", ".join(f"{count} {name}" for name, count in [*counts.items(), ("collections", len(found.collections))])
    notes = [_said(found.answers), f"New: {new}.", *(f"Conflict: {conflict}" for conflict in found.conflicts)]
    done(found, notes=notes, as_json=as_json)


def _said(found: "MergedAnswers") -> str:
    said = f"{found.added} answers taken in, {found.known} were there already."
    if found.conflicts:
        said += f" {found.conflicts} requests had another answer here, which is still served."
    if found.damaged:
        said += f" {found.damaged} answers are left out: their keys are not those of their requests."
    return said
