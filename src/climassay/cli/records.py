"""``climassay records``: what was asked, what came back, what it cost."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.output import JsonOption, WorkspaceOption, print_json, progress_bar, stdout_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.records import Records
    from climassay.records.queries import ModelUsage, RecordedAnswer, RunDetails, RunSummary

MOST_ROWS = 20
"""Rows of a result table shown on screen."""

app = typer.Typer(no_args_is_help=True, help="What was asked of models, what came back, what it cost.")

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--records", help="URL of a records database, instead of the workspace's.", envvar="CLIMASSAY_RECORDS"
    ),
]
RunOption = Annotated[str | None, typer.Option("--run", help="Only this run.")]


@app.command()
def runs(workspace: WorkspaceOption = None, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """List the runs, the oldest first."""
    from climassay.records.queries import list_runs

    with _open(workspace, url) as store:
        found = list_runs(store.database)
    if as_json:
        print_json(found)
    elif not found:
        typer.echo(f"No runs yet in {store.database.shown_url}.", err=True)
    else:
        _print_runs(found)


@app.command()
def show(
    what: Annotated[str, typer.Argument(metavar="RUN|KEY", help="A run, or the start of a request's key.")],
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run with its configuration, usage and results, or a request with all its answers."""
    from climassay.records.queries import answers_to, run_details

    with _open(workspace, url) as store:
        if what.startswith("r"):
            details = run_details(store.database, what)
            print_json(details) if as_json else _print_run(details)
        else:
            answers = answers_to(store.database, what)
            print_json(answers) if as_json else _print_answers(answers)


@app.command()
def usage(
    run: RunOption = None, workspace: WorkspaceOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """Tokens, cost and failures of each model. An unknown cost is shown as such."""
    from climassay.records.queries import usage_by_model

    with _open(workspace, url) as store:
        found = usage_by_model(store.database, run)
    if as_json:
        print_json(found)
    elif not found:
        typer.echo(f"Nothing has been asked yet in {store.database.shown_url}.", err=True)
    else:
        _print_usage(found)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="Ends in .jsonl, .csv or .parquet.")],
    run: RunOption = None,
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all answers with their requests to a file."""
    from climassay.records.export import export_answers
    from climassay.records.queries import count_answers

    with _open(workspace, url) as store, progress_bar(quiet=as_json) as progress:
        task = progress.add_task("answers", total=count_answers(store.database, run))
        written = export_answers(store.database, file, run, lambda count: progress.advance(task, count))
    if as_json:
        print_json({"file": file, "answers": written})
    else:
        typer.echo(f"{written} answers written to {file}.", err=True)


@contextmanager
def _open(workspace: Path | None, url: str | None) -> "Iterator[Records]":
    from climassay.records import Records
    from climassay.workspace import Workspace

    with Records(url or Workspace.open(workspace).records_url) as store:
        yield store


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}"


def _print_table(columns: "Sequence[str]", rows: "Sequence[Sequence[Any]]", title: str = "") -> None:
    from climassay.reporting import Table, as_rich
    from climassay.reporting.tables import Column

    headed = tuple(
        Column(column, "left" if not rows or isinstance(rows[0][number], str) else "right")
        for number, column in enumerate(columns)
    )
    stdout_console().print(as_rich(Table(title, headed, tuple(tuple(map(str, row)) for row in rows))))


def _print_runs(found: "Sequence[RunSummary]") -> None:
    columns = ("run", "command", "status", "started (UTC)", "asked", "failed", "from records", "cost")
    rows = [
        (run.id, run.command, run.status, run.started_at[:19], run.asked, run.failed, run.served, _cost(run.cost))
        for run in found
    ]
    _print_table(columns, rows)


def _print_usage(found: "Sequence[ModelUsage]") -> None:
    columns = (
        "model",
        "fingerprint",
        "answers",
        "failed",
        "sent",
        "prompt tokens",
        "completion tokens",
        "thought",
        "cost",
    )
    rows = []
    for one in found:
        cost = _cost(one.cost)
        if one.cost is not None and one.unpriced:
            cost += f" + {one.unpriced} unpriced"
        tokens = (one.prompt_tokens, one.completion_tokens, one.reasoning_tokens)
        rows.append((one.model, one.fingerprint[:12], one.answers, one.failed, one.attempts, *tokens, cost))
    _print_table(columns, rows)


def _print_run(details: "RunDetails") -> None:
    import json

    summary = details.summary
    typer.echo(f"run {summary.id}: {summary.command}, {summary.status}, climassay {summary.version}")
    typer.echo(f"from {summary.started_at} to {summary.ended_at or 'now'}")
    if details.error:
        typer.echo(f"error: {details.error}")
    typer.echo(f"asked {summary.asked} ({summary.failed} failed), {summary.served} from the records")
    typer.echo(f"configuration: {json.dumps(details.config, ensure_ascii=False)}")
    typer.echo(f"seeds: {json.dumps(details.seeds, ensure_ascii=False)}")
    if details.usage:
        _print_usage(details.usage)
    for name, rows in details.results.items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        shown = [[row.get(column, "") for column in columns] for row in rows[:MOST_ROWS]]
        _print_table(columns, shown, title=name)
        if len(rows) > MOST_ROWS:
            typer.echo(f"... and {len(rows) - MOST_ROWS} more rows (all with --json)")


def _print_answers(answers: "Sequence[RecordedAnswer]") -> None:
    import json

    for answer in answers:
        typer.echo(f"key {answer.key}, {answer.kind}, {answer.model} ({answer.fingerprint[:12]})")
        typer.echo(f"asked by run {answer.run}, {answer.answered_at}, {answer.attempts} attempts")
        typer.echo(f"settings: {json.dumps(answer.settings, ensure_ascii=False)}")
        typer.echo(f"prompt:\n{answer.prompt}")
        if answer.error is not None:
            typer.echo(f"failed: {answer.error}\n")
        else:
            said = answer.text if answer.logprobs is None else json.dumps(answer.logprobs)
            typer.echo(f"answer ({answer.outcome}):\n{said}\n")
