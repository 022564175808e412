"""``climassay metrics``: score answers against references, and check the metrics themselves."""

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from climassay.api import entailment as api
from climassay.api import scores
from climassay.cli.learning_options import EncoderOption as VectorsOption
from climassay.cli.learning_options import (
    FoldsOption,
    HoldOutOption,
    IncludeTrainedOption,
    LimitOption,
    OutputOption,
    SeedOption,
)
from climassay.cli.model_options import LoadingOptions, ReachOptions
from climassay.cli.option_groups import CommandGroup, WholeHelpGroup
from climassay.cli.output import FilesOption, JsonOption, ResultOptions
from climassay.cli.verbs import add_verb, verb


class _MetricsGroup(WholeHelpGroup):
    old_names: ClassVar = {"validate-entailment": "entailment evaluate", "train-entailment": "entailment train"}


app = CommandGroup(cls=_MetricsGroup, no_args_is_help=True)
entailment = CommandGroup(
    no_args_is_help=True, help="Train, evaluate and apply scorers of what a passage does to a statement."
)

EncoderOption = Annotated[
    str, typer.Option(help="local:minilm (bundled), or local: and a folder or hub id of an encoder.")
]


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


@app.command(name="calibrate-window")
@verb(scores.calibrate_window)
def calibrate_window(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Table of labelled answers with the columns statement, reference, answer and correct (true or false); "
            "without one, 40 answers to statements of the primer."
        ),
    ] = None,
    encoder: EncoderOption = "local:minilm",
    floor: Annotated[
        float, typer.Option(min=-1, max=1, help="Least mean cosine of right answers for a window to be chosen.")
    ] = 0.75,
    seed: Annotated[int, typer.Option(help="Seed of resampling.")] = 0,
    files: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the window of phrase similarity that tells right cloze answers from wrong ones best (ClimaQA, Figure 4)."""


@app.command()
@verb(scores.measure_faithfulness)
def faithfulness(
    file: Annotated[Path, typer.Argument(metavar="LABELS", help="JSON lines of answers with passages and labels.")],
    truth: Annotated[str, typer.Option(help="Column that is 1 where the answer is faithful, 0 where not.")],
    group: Annotated[str, typer.Option(help="Column of what is never split between folds.")] = "report",
    answer: Annotated[str, typer.Option(help="Column of the answers.")] = "answer",
    passages: Annotated[str, typer.Option(help="Column of the passages: a list, or a table by number.")] = "cited",
    seed: SeedOption = 0,
    files: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well a learned head and baselines tell unfaithful answers: AUROC, each group by the others."""


LabelsArgument = Annotated[
    Path,
    typer.Argument(help="Labelled pairs: Climate-FEVER's JSONL, or a table with premise, statement and label."),
]
ScorerArgument = Annotated[
    str,
    typer.Argument(help="bundled, prompted:MODEL, supports:MODEL (the paper's judge), nli:MODEL, or a head's file."),
]


@entailment.command("train")
@verb(api.train_entailment)
def train_entailment(
    labels: LabelsArgument,
    output: OutputOption,
    hold_out: HoldOutOption = 0,
    encoder: VectorsOption = "local:minilm",
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Train an entailment head on labelled pairs; its file is a scorer's name."""


@entailment.command("evaluate")
@verb(api.evaluate_entailment)
def evaluate_entailment(
    scorer: ScorerArgument,
    labels: LabelsArgument,
    beside: Annotated[list[str] | None, typer.Option(help="A further scorer of the same pairs; repeat.")] = None,
    include_trained: IncludeTrainedOption = False,
    limit: LimitOption = None,
    seed: SeedOption = 0,
    reach: ReachOptions = ReachOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Score scorers on labelled pairs that none of them was trained on, beside the constant."""


@entailment.command("apply")
@verb(api.apply_entailment)
def apply_entailment(
    scorer: ScorerArgument,
    items: Annotated[Path, typer.Argument(help="Pairs: a table with premise and statement, or claim and evidences.")],
    reach: ReachOptions = ReachOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Tell what each passage does to its statement: confirm it, contradict it, or leave it open."""


app.add_typer(entailment, name="entailment", cls=WholeHelpGroup)
