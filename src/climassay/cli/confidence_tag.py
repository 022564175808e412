"""``climassay confidence tag``: the level of confidence that a statement would carry in an IPCC report."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import typer

from climassay.api import tagging as api
from climassay.cli.learning_options import FoldsOption, OutputOption, SeedOption, StatesModelOption
from climassay.cli.option_groups import CommandGroup, DefaultCommandGroup
from climassay.cli.output import FilesOption, JsonOption, emit, opened_session
from climassay.cli.verbs import verb
from climassay.errors import InputError


class _TagGroup(DefaultCommandGroup):
    default, first = "apply", ("bundled",)
    old_names: ClassVar = {"statement": "apply bundled"}


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


@app.command()
@verb(api.tag_statements)
def apply(
    tagger: ModelArgument,
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
    files: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag a statement, or every row of a table, with the confidence that the IPCC would state."""


@app.command()
@verb(api.train_tagger)
def train(
    labels: LabelledArgument,
    output: OutputOption,
    paragraphs: ParagraphsOption = None,
    methods: MethodOption = None,
    model: StatesModelOption = "local:smollm2",
    layer: LayerOption = 20,
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a tagger; what it reads is chosen by log loss in a cross-validation that shares no section."""


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
    split_by: Annotated[
        Literal["statement", "document"],
        typer.Option("--split-by", "--apart", help="Unit that training and test do not share."),
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
    from climassay.reporting.results import write_rows

    if labels is None and (model_file == api.BUNDLED or Path(model_file).suffix == ".safetensors"):
        raise InputError(f"Name the statements with known tags behind the tagger: evaluate {model_file} LABELS.")
    file, trained = (Path(model_file), None) if labels is None else (labels, model_file)
    with opened_session(None, as_json=as_json) as session:
        scored = api.evaluate_tagger(
            file,
            trained,
            paragraphs=paragraphs,
            methods=method or (),
            model=model,
            layer=layer,
            split_by=split_by,
            folds=folds,
            seed=seed,
            workspace=session,
        )
    if predictions is not None:
        write_rows(predictions, scored.rows())
    emit(scored, as_json)


@app.command()
@verb(api.insert_statements)
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
    train_items: Annotated[int, typer.Option(min=8, help="Labelled statements, drawn evenly.")] = 100,
    context_sentences: Annotated[int, typer.Option(min=0, help="Sentences read with each statement.")] = 0,
    seed: SeedOption = 0,
    files: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag by comparison: a probe on a model's states puts each statement among some of known level (PPairS)."""
