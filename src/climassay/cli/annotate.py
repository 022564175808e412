"""``climassay annotate``: what experts say about generated questions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from climassay.cli.learning_options import EncoderOption, FoldsOption, SeedOption
from climassay.cli.option_groups import CommandGroup, given, with_flags
from climassay.cli.output import ResultOptions, WorkspaceOptions
from climassay.generation.annotation.labels import AnnotationSettings

app = CommandGroup(no_args_is_help=True)

DatasetArgument = Annotated[str, typer.Argument(help="Name of the dataset, see climassay generate list.")]
FormatOption = Annotated[
    Literal["jsonl", "csv", "label-studio", "argilla"] | None,
    typer.Option("--format", help="Format of the labels; by default by the ending."),
]
UsersOption = Annotated[
    Path | None, typer.Option(help="JSON object for argilla, from annotators to the ids of users there.")
]


@dataclass(frozen=True)
@with_flags(AnnotationSettings, defaults=False)
class QueueOptions:
    """How a dataset is annotated."""

    lease_minutes: Annotated[float | None, typer.Option(help="Minutes that an item is kept for an annotator.")] = None


@app.command(name="open")
def open_queue(
    dataset: DatasetArgument,
    queue: QueueOptions = QueueOptions(),
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Open a dataset to annotators, or change how it is annotated; what is not given stays as it is."""
    from climassay.api.annotation import open_dataset

    with to.session() as session:
        minutes = queue.lease_minutes
        lease = None if minutes is None else 60 * minutes
        opened = open_dataset(dataset, workspace=session, lease_seconds=lease, **given(queue, AnnotationSettings))
    to.emit(opened)


@app.command()
def rubrics(
    questions: Annotated[
        str, typer.Argument(help="Long-form questions (JSONL, CSV, .txt ...), with or without rubrics to begin with.")
    ],
    dataset: Annotated[str, typer.Option(help="Name of a new dataset, in whose queue the questions wait.")],
    overlap: Annotated[int, typer.Option(min=1, max=20, help="Rubrics for each question, by different people.")] = 2,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Have people write the rubrics of long-form questions in the browser; export --format rubrics writes them."""
    from climassay.api.annotation import collect_rubrics

    with to.session() as session:
        to.emit(collect_rubrics(questions, dataset, overlap=overlap, workspace=session))


@app.command()
def status(
    dataset: DatasetArgument,
    annotator: Annotated[str | None, typer.Option(help="Say too how far this annotator has come.")] = None,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Show how far a dataset has come, and what each annotator did."""
    from climassay.api.annotation import annotation_status

    with to.session() as session:
        to.emit(annotation_status(dataset, annotator, workspace=session))


@app.command()
def agreement(dataset: DatasetArgument, to: ResultOptions = ResultOptions()) -> None:
    """Measure how far annotators agree on what is valid (Cohen's and Fleiss' kappa, alpha), on ratings or rubrics."""
    from climassay.api.annotation import annotator_agreement

    with to.session() as session:
        to.emit(annotator_agreement(dataset, workspace=session))


@app.command()
def export(
    dataset: DatasetArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File (jsonl, csv, xlsx), or folder of other tools.")],
    kind: Annotated[
        Literal["jsonl", "csv", "label-studio", "argilla", "rubrics"] | None,
        typer.Option("--format", help="Format of the labels, by default by the ending; or rubrics, as questions."),
    ] = None,
    users: UsersOption = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Write what experts said: everything (jsonl), current labels for a spreadsheet or another tool, or rubrics."""
    from climassay.api.annotation import export_labels

    with to.session() as session:
        to.emit(export_labels(dataset, output, kind, users=users, workspace=session))


@app.command(name="import")
def import_labels(
    dataset: DatasetArgument,
    file: Annotated[Path, typer.Argument(help="File that export wrote, or a tool's own export (JSON).")],
    kind: FormatOption = None,
    users: UsersOption = None,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Take in labels from a file; taking them in again changes nothing."""
    from climassay.api import annotation

    with to.session() as session:
        to.emit(annotation.import_labels(dataset, file, kind, users=users, workspace=session))


@app.command()
def retrain(
    dataset: DatasetArgument,
    method: Annotated[
        Literal["features", "probe"], typer.Option(help="Kind of validator, by what it reads.")
    ] = "features",
    model: Annotated[str, typer.Option("--model", "-m", help="Local model of a probe.")] = "local:smollm2",
    encoder: EncoderOption = "local:minilm",
    precision: Annotated[
        float | None, typer.Option(help="Wanted share of valid questions among those kept, for example 0.95.")
    ] = None,
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Train a validator on the settled labels, judge what waits, and put the least certain items first."""
    from climassay.api.annotation import retrain_validator

    with to.session() as session:
        trained = retrain_validator(
            dataset,
            method=method,
            model=model,
            encoder=encoder,
            precision=precision,
            folds=folds,
            seed=seed,
            workspace=session,
        )
    to.emit(trained)
