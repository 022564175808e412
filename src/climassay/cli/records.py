"""``climassay records``: what was asked, what came back, what it cost."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.api import records
from climassay.cli.options import CommandGroup, FilesOption, WorkspaceOptions, add_verb

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
add_verb(app, "runs", records.list_runs, to=RecordsResultOptions)
add_verb(app, "show", records.show_record, to=RecordsResultOptions, what=typer.Argument(metavar="RUN|KEY"))
add_verb(app, "usage", records.model_usage, to=RecordsResultOptions, **_ONLY_RUN)
add_verb(app, "export", records.export_records, to=RecordsOptions, **_ONLY_RUN)
add_verb(app, "import", records.import_records, to=RecordsOptions)
add_verb(app, "merge", records.merge_records, to=RecordsOptions)
