"""``climassay corpus``."""

import typer

app = typer.Typer(no_args_is_help=True, help="corpus")
