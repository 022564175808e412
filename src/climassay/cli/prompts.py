"""``climassay prompts``."""

from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.output import FilesOption, JsonOption, done, emit, print_json

app = typer.Typer(no_args_is_help=True, help="See and change the prompts.")


@app.command("list")
def list_prompts(output: FilesOption = None, as_json: JsonOption = False) -> None:
    """List the built-in prompts and the hashes of their texts."""
    from climassay.prompts import load_prompt, prompt_names
    from climassay.reporting.results import listing

    records = [{"name": one.name, "sha256": one.sha256} for one in map(load_prompt, prompt_names())]
    emit(listing("Prompts", records, {"name": "name", "sha256": "sha256"}, left=2), as_json, output)


@app.command()
def show(name: Annotated[str, typer.Argument(help="Name of a prompt.")], as_json: JsonOption = False) -> None:
    """Print a prompt's template."""
    from climassay.prompts import load_prompt

    prompt = load_prompt(name)
    if as_json:
        print_json({"name": prompt.name, "sha256": prompt.sha256, "template": prompt.source})
    else:
        typer.echo(prompt.source, nl=False)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="Folder to write into; files that are there already stay.")],
    as_json: JsonOption = False,
) -> None:
    """Write all prompts into a folder; change them there and give it to a command with --prompts."""
    from climassay.prompts import export_prompts

    written = export_prompts(folder)
    done({"written": written}, f"{len(written)} prompts written to {folder}.", as_json=as_json)
