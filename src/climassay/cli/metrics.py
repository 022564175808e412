"""``climassay metrics``: score answers against references, and check the metrics themselves."""

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from climassay.api import scores
from climassay.cli import CommandGroup, WholeHelpGroup
from climassay.cli.options import LABELS, OUTPUT, LoadingOptions, ReachOptions, add_verb


class _MetricsGroup(WholeHelpGroup):
    old_names: ClassVar = {"validate-entailment": "entailment evaluate", "train-entailment": "entailment train"}


app = CommandGroup(cls=_MetricsGroup, no_args_is_help=True)
entailment = CommandGroup(no_args_is_help=True, help="Train, evaluate and apply entailment scorers.")

add_verb(
    app,
    "score",
    scores.score_answers,
    reach=LoadingOptions,
    file=Annotated[Path, typer.Argument()],
    metrics=typer.Option("--metric", "-m"),
    window=Annotated[int, typer.Option(min=0)],
    judge=Annotated[str | None, typer.Option()],
)


add_verb(app, "calibrate-window", scores.calibrate_window, file=typer.Argument(), floor=typer.Option(min=-1, max=1))
add_verb(app, "faithfulness", scores.measure_faithfulness, file=LABELS, truth=typer.Option())
add_verb(entailment, "train", scores.train_entailment, output=OUTPUT, hold_out=typer.Option(min=0))
add_verb(entailment, "evaluate", scores.evaluate_entailment, reach=ReachOptions)
add_verb(entailment, "apply", scores.apply_entailment, reach=ReachOptions)
app.add_typer(entailment, name="entailment", cls=WholeHelpGroup)
