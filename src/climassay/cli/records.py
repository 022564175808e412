"""``climassay records``: what was asked, what came back, what it cost."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.api import records
from climassay.cli import CommandGroup
from climassay.cli.options import FilesOption, WorkspaceOptions

if TYPE_CHECKING:
    from climassay.session import ModelOptions, Session

app = CommandGroup(no_args_is_help=True)


@dataclass(frozen=True)
class RecordsOptions(WorkspaceOptions):
    """The records of a command, and how its result is told."""

    records: Annotated[
        str | None,
        typer.Option(help="URL of a records database, instead of the workspace's.", envvar="CLIMASSAY_RECORDS"),
    ] = None

    def session(self, options: "ModelOptions | None" = None, **more: Any) -> "AbstractContextManager[Session]":
        """The session of the command, over these records."""
        return super().session(options, records_url=self.records, **more)


@dataclass(frozen=True)
class RecordsResultOptions(RecordsOptions):
    """The same, and where the result is saved too."""

    output: FilesOption = None


_ONLY_RUN = {"run": typer.Option("--run")}
app.add_verb("runs", records.list_runs, to=RecordsResultOptions)
app.add_verb("show", records.show_record, to=RecordsResultOptions, what=typer.Argument(metavar="RUN|KEY"))
app.add_verb("usage", records.model_usage, to=RecordsResultOptions, **_ONLY_RUN)
app.add_verb("export", records.export_records, to=RecordsOptions, **_ONLY_RUN)
app.add_verb("import", records.import_records, to=RecordsOptions)
app.add_verb("merge", records.merge_records, to=RecordsOptions)
