"""``climassay records``: what was asked, what came back, what it cost."""

from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.output import FilesOption, JsonOption, WorkspaceOption, emit, opened_session

app = typer.Typer(no_args_is_help=True)

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
    from climassay.api import records

    with opened_session(workspace, records_url=url) as session:
        emit(records.list_runs(workspace=session), as_json, output)


@app.command()
def show(
    what: Annotated[str, typer.Argument(metavar="RUN|KEY", help="A run, or the start of a request's key.")],
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run with its configuration, usage and results, or a request with all its answers."""
    from climassay.api import records

    with opened_session(workspace, records_url=url) as session:
        emit(records.show_record(what, workspace=session), as_json, output)


@app.command()
def usage(
    run: RunOption = None,
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show tokens, cost and failures of each model; an unknown cost is shown as such."""
    from climassay.api import records

    with opened_session(workspace, records_url=url) as session:
        emit(records.model_usage(run, workspace=session), as_json, output)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="File to write; it ends in .jsonl, .csv or .parquet.")],
    run: RunOption = None,
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all answers with their requests to a file."""
    from climassay.api import records

    with opened_session(workspace, records_url=url, as_json=as_json) as session:
        emit(records.export_records(file, run, workspace=session), as_json)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="File that records export wrote; ends in .jsonl or .parquet.")],
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in the answers of an export, so that they are not asked again. What is there already stays as it is."""
    from climassay.api import records

    with opened_session(workspace, records_url=url, as_json=as_json) as session:
        emit(records.import_records(file, workspace=session), as_json)


@app.command()
def merge(
    other: Annotated[Path, typer.Argument(help="Folder of another workspace.")],
    workspace: WorkspaceOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in another workspace: answers, runs, datasets, labels, checks, collections; no accounts and no jobs."""
    from climassay.api import records

    with opened_session(workspace, records_url=url, as_json=as_json) as session:
        emit(records.merge_records(other, workspace=session), as_json)
