"""``climassay annotate``: what experts say about generated questions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.learning_options import EncoderOption, FoldsOption, SeedOption
from climassay.cli.output import FilesOption, JsonOption, WorkspaceOption, done, emit, opened_session
from climassay.cli.validator import open_reader
from climassay.errors import InputError
from climassay.io import parse_json, read_text

if TYPE_CHECKING:
    from climassay.generation.annotation import Agreement, AnnotationFile, AnnotationStore
    from climassay.reporting import Table
    from climassay.session import Session
    from climassay.statistics import Estimate

app = typer.Typer(no_args_is_help=True, help="Collect what experts say about generated questions.")


class Format(StrEnum):
    """How labels are written down."""

    jsonl = "jsonl"
    csv = "csv"
    label_studio = "label-studio"
    argilla = "argilla"


class Order(StrEnum):
    """Which items come first."""

    margin = "margin"
    paper = "paper"
    random = "random"


class Method(StrEnum):
    """What a validator reads."""

    features = "features"
    probe = "probe"


DatasetArgument = Annotated[str, typer.Argument(help="Name of the dataset, see climassay generate list.")]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Format of the labels; by default by the ending.")
]
UsersOption = Annotated[
    Path | None, typer.Option(help="JSON object for argilla, from annotators to the ids of users there.")
]


@contextmanager
def _opened(workspace: Path | None, as_json: bool = False) -> "Iterator[tuple[Session, AnnotationStore]]":
    from climassay.generation.annotation import AnnotationStore

    with opened_session(workspace, as_json=as_json) as session:
        yield session, AnnotationStore(session.records)


@app.command(name="open")
def open_queue(
    dataset: DatasetArgument,
    overlap: Annotated[int | None, typer.Option(help="Labels that an item needs, by different people.")] = None,
    order: Annotated[Order | None, typer.Option(help="Items that come first.")] = None,
    include_rejected: Annotated[
        bool | None,
        typer.Option(
            "--include-rejected/--usable-only", help="Ask too about what only screening or the validator rejected."
        ),
    ] = None,
    hide_confidence: Annotated[
        bool | None,
        typer.Option("--hide-confidence/--show-confidence", help="Hide the validator's confidence from annotators."),
    ] = None,
    lease_minutes: Annotated[float | None, typer.Option(help="Minutes that an item is kept for an annotator.")] = None,
    retrain_every: Annotated[int | None, typer.Option(help="Settled items after which training is offered.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the order.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open a dataset to annotators, or change how it is annotated; what is not given stays as it is."""
    given = {
        "overlap": overlap,
        "order": None if order is None else order.value,
        "include_rejected": include_rejected,
        "hide_confidence": hide_confidence,
        "lease_seconds": None if lease_minutes is None else 60 * lease_minutes,
        "retrain_every": retrain_every,
        "seed": seed,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with _opened(workspace) as (_, store):
        settings = replace(store.settings(dataset), **changes)
        store.configure(dataset, settings)
        progress = store.progress(dataset)
    data = {"dataset": dataset, "settings": settings, "items": progress.items, "open": progress.left_for_me}
    text = f"{dataset}: {progress.left_for_me} of {progress.items} items wait for {settings.overlap} label(s) each."
    done(data, text, notes=["Annotate in the browser: climassay serve"], as_json=as_json)


@app.command()
def status(
    dataset: DatasetArgument,
    annotator: Annotated[str | None, typer.Option(help="Say too how far this annotator has come.")] = None,
    workspace: WorkspaceOption = None,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how far a dataset has come, and what each annotator did."""
    from climassay.reporting import Table
    from climassay.reporting.results import Shown

    with _opened(workspace) as (_, store):
        progress, people = store.progress(dataset, annotator), store.annotators(dataset)
        new, validator = store.new_labels(dataset), store.validator(dataset)
    rows = [
        ("items", str(progress.items)),
        ("settled", str(progress.settled)),
        ("conflicts", str(progress.conflicts)),
        ("settled since the last training", str(new)),
        ("validator", validator or "none yet"),
    ]
    if annotator is not None:
        rows += [
            (f"labels of {annotator}", str(progress.mine)),
            (f"skipped by {annotator}", str(progress.skipped)),
            (f"left for {annotator}", str(progress.left_for_me)),
        ]
    tables = [Table.of(dataset, ("", ""), rows, left=2)]
    columns = ("annotator", "labels", "accepted", "confirmed", "median seconds", "edits", "skips", "adjudications")
    cells = [
        (
            one.annotator,
            str(one.labels),
            _shown(one.accepted),
            _shown(one.agreement),
            "-" if one.median_seconds is None else f"{one.median_seconds:.0f}",
            *(str(count) for count in (one.edits, one.skips, one.adjudications)),
        )
        for one in people
    ]
    if cells:
        tables.append(Table.of("Annotators", columns, cells))
    facts = {**asdict(progress), "new_labels": new, "validator": validator, "annotators": people}
    emit(Shown({"dataset": dataset, **facts}, tables, [asdict(one) for one in people]), as_json, output)


def _shown(estimate: "Estimate | None") -> str:
    if estimate is None:
        return "-"
    low, high = estimate.interval
    return f"{estimate.value:.2f} ({low:.2f} to {high:.2f}), n = {estimate.n}"


@app.command()
def agreement(
    dataset: DatasetArgument,
    workspace: WorkspaceOption = None,
    output: FilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how far annotators agree on what is valid: Cohen's and Fleiss' kappa, Krippendorff's alpha."""
    from climassay.reporting.results import Shown

    with _opened(workspace) as (_, store):
        store.progress(dataset)
        found = store.agreement(dataset)
    none = () if found.items else ("No item has labels of two annotators yet.",)
    shown = Shown({"dataset": dataset, **asdict(found)}, (_agreement_table(found),), noted=none)
    emit(shown, as_json, output)


def _agreement_table(found: "Agreement") -> "Table":
    from climassay.reporting import Table

    rows = [
        ("raw agreement", _shown(found.raw)),
        ("Fleiss' kappa", _shown(found.fleiss)),
        ("Krippendorff's alpha", _shown(found.krippendorff)),
        *((f"Cohen's kappa, {one.first} and {one.second}", _shown(one.kappa)) for one in found.pairs),
    ]
    return Table.of(f"Agreement on {found.items} items", ("", "value (95% interval)"), rows, left=2)


@app.command()
def export(
    dataset: DatasetArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File (jsonl, csv, xlsx), or folder of other tools.")],
    kind: FormatOption = None,
    users: UsersOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write what experts said: everything (jsonl), or current labels for a spreadsheet, Label Studio or Argilla."""
    chosen = kind or (Format.csv if output.suffix.lower() == ".xlsx" else _told(output))
    with _opened(workspace) as (_, store):
        store.progress(dataset)
        count = _write(store, dataset, output, chosen, _users(users))
    data = {"dataset": dataset, "output": output, "format": chosen.value, "labels": count}
    done(data, f"Wrote {count} labels to {output}", as_json=as_json)


def _write(store: "AnnotationStore", dataset: str, output: Path, kind: Format, users: dict[str, str]) -> int:
    from climassay.generation import annotation

    settings = store.settings(dataset)
    if kind is Format.jsonl:
        labels = store.labels(dataset, current=False)
        return annotation.write_annotations(output, dataset, settings, labels, store.skipped(dataset))
    if kind is Format.csv:
        return annotation.write_table(output, store.items(dataset))
    if kind is Format.label_studio:
        from climassay.integrations.label_studio import write_label_studio

        write_label_studio(output, store.items(dataset), confidence=not settings.hide_confidence)
        return len(store.labels(dataset))
    from climassay.integrations.argilla import write_argilla

    _, written = write_argilla(output, dataset, store.items(dataset), overlap=settings.overlap, users=users)
    return written


@app.command(name="import")
def import_labels(
    dataset: DatasetArgument,
    file: Annotated[Path, typer.Argument(help="File that export wrote, or a tool's own export (JSON).")],
    kind: FormatOption = None,
    users: UsersOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in labels from a file; taking them in again changes nothing."""
    chosen = kind or _told(file)
    with _opened(workspace) as (_, store):
        store.progress(dataset)
        found = _read(store, dataset, file, chosen, _users(users))
        taken = store.add_all(dataset, found.labels, found.skips)
    refused = [*found.unreadable, *taken.refused]
    counts = {"stored": taken.stored, "known": taken.known, "withdrawn": taken.withdrawn}
    words = f"{taken.stored} labels stored, {taken.known} known before, {taken.withdrawn} withdrawn."
    data = {"dataset": dataset, "format": chosen.value, **counts, "refused": refused}
    done(data, words, notes=refused, as_json=as_json)


def _read(store: "AnnotationStore", dataset: str, file: Path, kind: Format, users: dict[str, str]) -> "AnnotationFile":
    from climassay.generation import annotation

    if kind is Format.jsonl:
        return annotation.read_annotations(file)
    drafts = {item.draft.id: item.draft for item in store.items(dataset)}
    if kind is Format.csv:
        return annotation.read_table(file, drafts)
    if kind is Format.label_studio:
        from climassay.integrations.label_studio import read_label_studio

        return read_label_studio(file, drafts)
    from climassay.integrations.argilla import read_argilla

    return read_argilla(file, drafts, users)


def _told(file: Path) -> Format:
    """The format of a file by its ending."""
    if file.suffix.lower() in (".jsonl", ".csv"):
        return Format(file.suffix.lower()[1:])
    raise InputError(f"{file} does not tell its format: add --format jsonl, csv, label-studio or argilla.")


def _users(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        found = parse_json(read_text(file))
        if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
            raise ValueError('it should look like {"anna": "6b1b3e0c-..."}')
    except (OSError, ValueError) as error:
        raise InputError(f"{file} gives no users of Argilla: {error}.") from None
    return found


@app.command()
def retrain(
    dataset: DatasetArgument,
    method: Annotated[Method, typer.Option(help="Kind of validator, by what it reads.")] = Method.features,
    model: Annotated[str, typer.Option("--model", "-m", help="Local model of a probe.")] = "local:smollm2",
    encoder: EncoderOption = "local:minilm",
    precision: Annotated[
        float | None, typer.Option(help="Wanted share of valid questions among those kept, for example 0.95.")
    ] = None,
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a validator on the settled labels, judge what waits, and put the least certain items first."""
    from climassay.generation import annotation

    with _opened(workspace, as_json) as (session, _), session.progress.task("Reading labels") as task:

        def tell(finished: int, total: int, message: str) -> None:
            task.update(completed=finished, total=total, description=message)

        options: dict[str, Any] = {"precision": precision, "folds": folds, "seed": seed, "progress": tell}
        reader = open_reader(method.value, model=model, encoder=encoder)
        found = annotation.retrain(session.records, session.workspace, dataset, reader=reader, **options)
    figures = found.cross_validated
    words = (
        f"{found.validator}: {found.labels} labels, {found.invalid} invalid; AUROC {figures['auroc']:.3f} "
        f"({figures['auroc_low']:.3f} to {figures['auroc_high']:.3f}). {found.judged} items judged and put in order."
    )
    done({"dataset": dataset, **asdict(found)}, words, as_json=as_json)
