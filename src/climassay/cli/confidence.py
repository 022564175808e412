"""``climassay confidence``: the certainty that assessment reports state."""

import typer

app = typer.Typer(help="Extract, group, track and tag the confidence that IPCC reports state.", no_args_is_help=True)
