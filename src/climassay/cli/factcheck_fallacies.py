"""``climassay factcheck fallacies``: how texts mislead, and what is learned to tell it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from climassay.api import fallacies as api
from climassay.cli.learning_options import EncoderOption, FoldsOption, LimitOption, OutputOption, SeedOption
from climassay.cli.option_groups import CommandGroup, DefaultCommandGroup
from climassay.cli.output import FilesOption, JsonOption
from climassay.cli.verbs import verb


class _FallaciesGroup(DefaultCommandGroup):
    default = "find"


app = CommandGroup(
    cls=_FallaciesGroup,
    no_args_is_help=True,
    help=(
        'Name the fallacies of texts, or their contrarian claims: climassay factcheck fallacies "TEXT" or FILE --text '
        "COLUMN; its options: climassay factcheck fallacies find --help."
    ),
)

SubjectOption = Annotated[
    Literal["fallacies", "claims"],
    typer.Option("--subject", help="Twelve fallacies, or seventeen contrarian claims (CARDS)."),
]
TextOption = Annotated[str, typer.Option(help="Column of the texts.")]
TruthOption = Annotated[
    str | None, typer.Option(help="Column of the labels.  [default: fallacy or cards_claim, as in FLICC]")
]
LabelsArgument = Annotated[Path, typer.Argument(metavar="LABELS", help="Table of texts and labels.")]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="File of train; or fallacies, claims (bundled).")]


@app.command(_FallaciesGroup.default)
@verb(api.name_fallacies)
def find(
    given: Annotated[str, typer.Argument(metavar="TEXT|FILE", help="A text in quotes, or a table of them.")],
    column: Annotated[str | None, typer.Option("--text", help="Column of a table that holds the texts.")] = None,
    truth: Annotated[str | None, typer.Option(help="Column of known labels, to score what was found.")] = None,
    classifier: SubjectOption = "fallacies",
    seed: SeedOption = 0,
    files: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the most probable fallacy of a text, or of every text of a table, by the bundled classifier."""


@app.command()
@verb(api.name_fallacies)
def apply(
    classifier: ModelArgument,
    given: Annotated[Path, typer.Argument(metavar="ITEMS", help="Table of texts.")],
    column: Annotated[str, typer.Option("--text", help="Column of the texts.")] = "text",
    files: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the most probable fallacy of every text of a table, by a classifier of your own."""


@app.command()
@verb(api.evaluate_fallacies)
def evaluate(
    classifier: ModelArgument,
    labels: LabelsArgument,
    text: TextOption = "text",
    truth: TruthOption = None,
    apart: Annotated[
        list[Path] | None,
        typer.Option(
            "--exclude",
            help="Table whose texts, and what nearly equals them, are left out (the training data); repeat.",
        ),
    ] = None,
    encoder: EncoderOption = "local:minilm",
    seed: SeedOption = 0,
    files: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a classifier on labelled texts that it was not trained on."""


@app.command()
@verb(api.train_fallacies)
def train(
    labels: LabelsArgument,
    output: OutputOption,
    subject: SubjectOption = "fallacies",
    text: TextOption = "text",
    truth: TruthOption = None,
    encoder: EncoderOption = "local:minilm",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Local model whose hidden states are tried, too.")
    ] = None,
    layers: Annotated[
        list[int] | None, typer.Option("--layer", help="Layer of it; several may be given.  [default: 24]")
    ] = None,
    folds: FoldsOption = 5,
    precision: Annotated[
        float, typer.Option(min=0.01, max=1, help="Share of right answers from the threshold on.")
    ] = 0.8,
    limit: LimitOption = None,
    licence: Annotated[str, typer.Option(help="Licence of the data, to be kept with the classifier.")] = "",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a classifier; what it reads is chosen by log loss on folds that share no near copies."""
