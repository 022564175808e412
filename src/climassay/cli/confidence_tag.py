"""``climassay confidence tag``: the level of confidence that a statement would carry in an IPCC report."""

from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from climassay.cli.learning_options import FoldsOption, OutputOption, SeedOption, StatesModelOption, note
from climassay.cli.option_groups import CommandGroup, DefaultCommandGroup
from climassay.cli.output import FilesOption, JsonOption, emit, opened_session
from climassay.errors import InputError


class _TagGroup(DefaultCommandGroup):
    default, first = "apply", ("bundled",)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take ``statement`` before a text, as it was written earlier, for nothing."""
        if args[:1] == ["statement"]:
            _earlier("apply MODEL STATEMENT", "statement")
            args = args[1:]
        return super().parse_args(ctx, args)


app = CommandGroup(
    cls=_TagGroup,
    no_args_is_help=True,
    help=(
        'Tag statements: climassay confidence tag "Sea level will rise for centuries." or FILE --text COLUMN; '
        "its options: climassay confidence tag apply --help."
    ),
)

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="A tagger's file, or bundled.")]
TextArgument = Annotated[
    str, typer.Argument(metavar="STATEMENT|FILE", help="A statement in quotes, or a table of them.")
]
ContextOption = Annotated[str, typer.Option(help="The sentences around the statement.")]
ColumnOption = Annotated[
    str | None,
    typer.Option("--text", help="Column of a table that holds the statements; files of extract need none."),
]
ContextColumnOption = Annotated[str | None, typer.Option(help="Column that holds their contexts.")]
_LABELLED = "ClimateX's table (.tsv) or JSON lines of climassay confidence extract."
LabelledArgument = Annotated[Path, typer.Argument(metavar="LABELS", help=_LABELLED)]
ParagraphsOption = Annotated[
    Path | None, typer.Option(help="Paragraphs of the reports, to recover the context of ClimateX's statements.")
]
LayerOption = Annotated[int, typer.Option(help="Layer whose hidden states are read (-1: last).")]
MethodOption = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        help="Tagger to try, by name; several may be given; mean states and last states read --model.  "
        "[default: all that read no model]",
    ),
]
EarlierOption = Annotated[str | None, typer.Option("--tagger", hidden=True)]


@app.command()
def apply(
    model: ModelArgument,
    text: TextArgument,
    context: ContextOption = "",
    column: ColumnOption = None,
    context_column: ContextColumnOption = None,
    mix: Annotated[
        str,
        typer.Option(
            help="Frequencies of the levels among the statements, lowest first: natural (as in training), equal, or "
            "shares as 50,100,100,50. Answers for equal shares are always given beside."
        ),
    ] = "natural",
    output: FilesOption = None,
    tagger: EarlierOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag a statement, or every row of a table, with the confidence that the IPCC would state."""
    from climassay.api.tagging import Statements, tag_statements

    with opened_session(None, as_json=as_json) as session:
        statements = Statements(text, context, column, context_column)
        found = tag_statements(statements, tagger or model, mix=mix, workspace=session)
    emit(found, as_json, output)


@app.command()
def train(
    labels: LabelledArgument,
    output: OutputOption,
    paragraphs: ParagraphsOption = None,
    method: MethodOption = None,
    model: StatesModelOption = "local:smollm2",
    layer: LayerOption = 20,
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a tagger; what it reads is chosen by log loss in a cross-validation that shares no section."""
    from climassay.api.tagging import train_tagger

    with opened_session(None, as_json=as_json) as session:
        trained = train_tagger(
            labels,
            output,
            paragraphs=paragraphs,
            methods=method or (),
            model=model,
            layer=layer,
            folds=folds,
            seed=seed,
            workspace=session,
        )
    emit(trained, as_json)


@app.command()
def evaluate(
    model_file: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|LABELS",
            help="A tagger's file, or bundled, to be tested on the LABELS that follow; or LABELS alone, on which "
            "taggers are cross-validated.",
        ),
    ],
    labels: Annotated[Path | None, typer.Argument(metavar="LABELS", help=_LABELLED)] = None,
    paragraphs: ParagraphsOption = None,
    method: MethodOption = None,
    model: StatesModelOption = "local:smollm2",
    layer: LayerOption = 20,
    tagger: EarlierOption = None,
    split_by: Annotated[
        str,
        typer.Option("--split-by", "--apart", help="Unit that training and test do not share: statement or document."),
    ] = "statement",
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    predictions: Annotated[
        Path | None,
        typer.Option(help="Write the best tagger's held-out probabilities (.jsonl, .csv), for confidence report."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score taggers on statements with known tags: one that is trained already, or by cross-validation."""
    from climassay.api.tagging import BUNDLED, evaluate_tagger
    from climassay.reporting.results import write_rows

    if split_by not in ("statement", "document"):
        raise InputError(f"--split-by is statement or document, not {split_by!r}.")
    if tagger is not None:
        _earlier("evaluate MODEL LABELS", "--tagger")
    elif labels is None and (model_file == BUNDLED or Path(model_file).suffix == ".safetensors"):
        raise InputError(f"Name the statements with known tags behind the tagger: evaluate {model_file} LABELS.")
    file, trained = (Path(model_file), tagger) if labels is None else (labels, model_file)
    with opened_session(None, as_json=as_json) as session:
        scored = evaluate_tagger(
            file,
            trained,
            paragraphs=paragraphs,
            methods=method or (),
            model=model,
            layer=layer,
            split_by=cast("Literal['statement', 'document']", split_by),
            folds=folds,
            seed=seed,
            workspace=session,
        )
    if predictions is not None:
        write_rows(predictions, scored.rows())
    emit(scored, as_json)


@app.command()
def insert(
    text: TextArgument,
    labelled: Annotated[
        Path,
        typer.Option(help="Statements of known level: ClimateX's table (.tsv) or JSON lines of confidence extract."),
    ],
    context: ContextOption = "",
    column: ColumnOption = None,
    context_column: ContextColumnOption = None,
    paragraphs: ParagraphsOption = None,
    model: StatesModelOption = "local:smollm2",
    probe: Annotated[
        Literal["ppairs", "pointwise"],
        typer.Option(help="Contrast pairs of two statements, or each statement by itself."),
    ] = "ppairs",
    layer: LayerOption = 20,
    count: Annotated[int, typer.Option("--train-items", min=8, help="Labelled statements, drawn evenly.")] = 100,
    sentences: Annotated[int, typer.Option("--context-sentences", min=0, help="Read with each statement.")] = 0,
    seed: SeedOption = 0,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag by comparison: a probe on a model's states puts each statement among some of known level (PPairS)."""
    from climassay.api.tagging import Statements, insert_statements

    with opened_session(None, as_json=as_json) as session:
        found = insert_statements(
            Statements(text, context, column, context_column),
            labelled,
            paragraphs=paragraphs,
            model=model,
            probe=probe,
            layer=layer,
            train_items=count,
            context_sentences=sentences,
            seed=seed,
            workspace=session,
        )
    emit(found, as_json, output)


def _earlier(today: str, before: str) -> None:
    note(f"{before} is now: climassay confidence tag {today}")
