"""``climassay reproduce``: the tables of the papers behind climassay, with your models beside the published rows."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from climassay.cli.commands import add_command
from climassay.cli.options import LoadingOptions, ModelsOption
from climassay.reproduction.papers import reproduce_climaqa, reproduce_climinator, reproduce_ppairs

app = App(name="reproduce", help="Run the tables of a paper with your models, beside the published rows.")
TablesOption = Annotated[
    list[str] | None, Parameter(name=("--table", "-t"), help="Number of a table; repeat. By default all of them.")
]

add_command(
    app,
    "climaqa",
    reproduce_climaqa,
    model_options=LoadingOptions,
    tables=TablesOption,
    models=ModelsOption,
    scoring=Annotated[Literal["likelihood", "letter"], Parameter(name="--scoring")],
)
add_command(
    app,
    "climinator",
    reproduce_climinator,
    model_options=LoadingOptions,
    ray=True,
    tables=TablesOption,
    models=ModelsOption,
    settings=None,
)
add_command(
    app,
    "ppairs",
    reproduce_ppairs,
    model_options=LoadingOptions,
    tables=TablesOption,
    models=ModelsOption,
)
