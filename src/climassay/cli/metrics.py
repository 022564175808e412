"""``climassay metrics``: score answers against references, and check the metrics themselves."""

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from climassay.api import scores
from climassay.cli import CommandGroup, WholeHelpGroup
from climassay.cli.options import LABELS, OUTPUT, LoadingOptions, ReachOptions


class _MetricsGroup(WholeHelpGroup):
    old_names: ClassVar = {"validate-entailment": "entailment evaluate", "train-entailment": "entailment train"}


app = CommandGroup(cls=_MetricsGroup, no_args_is_help=True)
entailment = CommandGroup(no_args_is_help=True, help="Train, evaluate and apply entailment scorers.")

app.add_verb(
    "score",
    scores.score_answers,
    reach=LoadingOptions,
    file=Annotated[Path, typer.Argument()],
    metrics=typer.Option("--metric", "-m"),
    window=Annotated[int, typer.Option(min=0)],
    judge=Annotated[str | None, typer.Option()],
)


app.add_verb("calibrate-window", scores.calibrate_window, file=typer.Argument(), floor=typer.Option(min=-1, max=1))
app.add_verb("faithfulness", scores.measure_faithfulness, file=LABELS, truth=typer.Option())
entailment.add_verb("train", scores.train_entailment, output=OUTPUT, hold_out=typer.Option(min=0))
entailment.add_verb("evaluate", scores.evaluate_entailment, reach=ReachOptions)
entailment.add_verb("apply", scores.apply_entailment, reach=ReachOptions)
app.add_typer(entailment, name="entailment", cls=WholeHelpGroup)
