"""``climassay factcheck fallacies``: how texts mislead, and what is learned to tell it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.learning_options import EncoderOption, FoldsOption, LimitOption, OutputOption, SeedOption
from climassay.cli.option_groups import CommandGroup, DefaultCommandGroup
from climassay.cli.output import FilesOption, JsonOption, emit, opened_session
from climassay.errors import InputError


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


class SubjectChoice(StrEnum):
    """What is classified of a text."""

    fallacies = "fallacies"
    claims = "claims"


SubjectOption = Annotated[SubjectChoice, typer.Option(help="Twelve fallacies, or seventeen contrarian claims (CARDS).")]
TextOption = Annotated[str, typer.Option(help="Column of the texts.")]
TruthOption = Annotated[
    str | None, typer.Option(help="Column of the labels.  [default: fallacy or cards_claim, as in FLICC]")
]
LabelsArgument = Annotated[Path, typer.Argument(metavar="LABELS", help="Table of texts and labels.")]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="File of train; or fallacies, claims (bundled).")]


@app.command(_FallaciesGroup.default)
def find(
    text: Annotated[str, typer.Argument(metavar="TEXT|FILE", help="A text in quotes, or a table of them.")],
    column: Annotated[str | None, typer.Option("--text", help="Column of a table that holds the texts.")] = None,
    truth: Annotated[str | None, typer.Option(help="Column of known labels, to score what was found.")] = None,
    subject: SubjectOption = SubjectChoice.fallacies,
    seed: SeedOption = 0,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the most probable fallacy of a text, or of every text of a table, by the bundled classifier."""
    from climassay.api.fallacies import name_fallacies, read_labelled_texts

    single = column is None and truth is None and not Path(text).is_file()
    if single and Path(text).suffix in (".csv", ".tsv", ".jsonl", ".json", ".parquet") and " " not in text:
        raise InputError(f"There is no file {text}.")
    if column is None and not single:
        raise InputError(f"{text} is a table: name the column of its texts with --text COLUMN.")
    given = text if column is None else read_labelled_texts(Path(text), column, truth)
    with opened_session(None, as_json=as_json) as session:
        found = name_fallacies(given, subject.value, seed=seed, workspace=session)
    emit(found, as_json, output)


@app.command()
def apply(
    model: ModelArgument,
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="Table of texts.")],
    column: Annotated[str, typer.Option("--text", help="Column of the texts.")] = "text",
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the most probable fallacy of every text of a table, by a classifier of your own."""
    from climassay.api.fallacies import name_fallacies, read_labelled_texts

    with opened_session(None, as_json=as_json) as session:
        found = name_fallacies(read_labelled_texts(items, column, None), model, workspace=session)
    emit(found, as_json, output)


@app.command()
def evaluate(
    model: ModelArgument,
    labels: LabelsArgument,
    text: TextOption = "text",
    truth: TruthOption = None,
    apart: Annotated[
        list[Path] | None,
        typer.Option(
            "--exclude",
            "--apart",
            help="Table whose texts, and what nearly equals them, are left out (the training data); repeat.",
        ),
    ] = None,
    encoder: EncoderOption = "local:minilm",
    seed: SeedOption = 0,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a classifier on labelled texts that it was not trained on."""
    from climassay.api.fallacies import evaluate_fallacies

    with opened_session(None, as_json=as_json) as session:
        scored = evaluate_fallacies(
            model,
            labels,
            text=text,
            truth=truth,
            apart=apart or (),
            encoder=None if encoder == "none" else encoder,
            seed=seed,
            workspace=session,
        )
    emit(scored, as_json, output)


@app.command()
def train(
    labels: LabelsArgument,
    output: OutputOption,
    subject: SubjectOption = SubjectChoice.fallacies,
    text: TextOption = "text",
    truth: TruthOption = None,
    encoder: EncoderOption = "local:minilm",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Local model whose hidden states are tried, too.")
    ] = None,
    layer: Annotated[list[int] | None, typer.Option(help="Layer of it; several may be given.  [default: 24]")] = None,
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
    from climassay.api.fallacies import train_fallacies

    with opened_session(None, as_json=as_json) as session:
        trained = train_fallacies(
            labels,
            output,
            subject=subject.value,
            text=text,
            truth=truth,
            encoder=encoder,
            model=model,
            layers=layer or (24,),
            folds=folds,
            precision=precision,
            limit=limit,
            licence=licence,
            seed=seed,
            workspace=session,
        )
    emit(trained, as_json)
