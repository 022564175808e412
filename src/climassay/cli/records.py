"""``climassay records``: what was asked, what came back, what it cost."""

from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.option_groups import CommandGroup
from climassay.cli.output import ResultOptions, WorkspaceOptions

app = CommandGroup(no_args_is_help=True)

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--records", help="URL of a records database, instead of the workspace's.", envvar="CLIMASSAY_RECORDS"
    ),
]
RunOption = Annotated[str | None, typer.Option("--run", help="Only this run.")]


@app.command()
def runs(url: UrlOption = None, to: ResultOptions = ResultOptions()) -> None:
    """List the runs, the oldest first."""
    from climassay.api import records

    with to.session(records_url=url) as session:
        to.emit(records.list_runs(workspace=session))


@app.command()
def show(
    what: Annotated[str, typer.Argument(metavar="RUN|KEY", help="A run, or the start of a request's key.")],
    url: UrlOption = None,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Show a run with its configuration, usage and results, or a request with all its answers."""
    from climassay.api import records

    with to.session(records_url=url) as session:
        to.emit(records.show_record(what, workspace=session))


@app.command()
def usage(run: RunOption = None, url: UrlOption = None, to: ResultOptions = ResultOptions()) -> None:
    """Show tokens, cost and failures of each model; an unknown cost is shown as such."""
    from climassay.api import records

    with to.session(records_url=url) as session:
        to.emit(records.model_usage(run, workspace=session))


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="File to write; it ends in .jsonl, .csv or .parquet.")],
    run: RunOption = None,
    url: UrlOption = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Write all answers with their requests to a file."""
    from climassay.api import records

    with to.session(records_url=url) as session:
        to.emit(records.export_records(file, run, workspace=session))


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="File that records export wrote; ends in .jsonl or .parquet.")],
    url: UrlOption = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Take in the answers of an export, so that they are not asked again. What is there already stays as it is."""
    from climassay.api import records

    with to.session(records_url=url) as session:
        to.emit(records.import_records(file, workspace=session))


@app.command()
def merge(
    other: Annotated[Path, typer.Argument(help="Folder of another workspace.")],
    url: UrlOption = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Take in another workspace: answers, runs, datasets, labels, checks, collections; no accounts and no jobs."""
    from climassay.api import records

    with to.session(records_url=url) as session:
        to.emit(records.merge_records(other, workspace=session))
