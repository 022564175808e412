"""``climassay prompts``."""

from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.output import JsonOption, print_json, stdout_console

app = typer.Typer(no_args_is_help=True, help="See and change the prompts.")


@app.command("list")
def list_prompts(as_json: JsonOption = False) -> None:
    """Names of the built-in prompts and the hash of their text."""
    from climassay.prompts import load_prompt, prompt_names
    from climassay.reporting import Table, as_rich

    prompts = [load_prompt(name) for name in prompt_names()]
    if as_json:
        print_json([{"name": prompt.name, "sha256": prompt.sha256} for prompt in prompts])
        return
    rows = [(prompt.name, prompt.sha256[:12]) for prompt in prompts]
    stdout_console().print(as_rich(Table.of("Prompts", ["name", "sha256"], rows, left=2)))


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
    folder: Annotated[Path, typer.Argument(help="Where to; files that are there already stay as they are.")],
    as_json: JsonOption = False,
) -> None:
    """Write all prompts into a folder; change them there and give it to a command with --prompts."""
    from climassay.prompts import export_prompts

    written = export_prompts(folder)
    if as_json:
        print_json({"written": written})
    else:
        typer.echo(f"{len(written)} prompts written to {folder}.")
