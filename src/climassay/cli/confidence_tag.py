"""``climassay confidence tag``: the level of confidence that a statement would carry in an IPCC report."""

import json
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.learning_options import (
    FoldsOption,
    OutputOption,
    SeedOption,
    check_model_path,
    comparison_table,
)
from climassay.cli.option_groups import WholeHelpGroup
from climassay.cli.output import JsonOption, print_json, progress_bar, stderr_console, stdout_console, write_text
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from climassay.confidence.tagging import LabelledTable, Taggable, Tagger
    from climassay.learning import ClassifierSpec, Evaluation
    from climassay.learning.text_classifier import TrainingTexts, TriedClassifier
    from climassay.models.contract import Generator
    from climassay.reporting import Table

    _Scores = list[tuple[str, dict[str, Evaluation]]]

BUNDLED = "bundled"
_TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".gz")
_MIXES = {
    "natural": "Levels as frequent as in these statements: for the text of reports, tagged as it comes",
    "equal": "All levels equally frequent: for single statements, and where rare levels have to be found",
    "climatex": "ClimateX's test mix, 50:100:100:50: for comparison with published figures",
}


class _TagGroup(WholeHelpGroup):
    """Takes what is no command's name for a statement or a file to be tagged by the bundled tagger."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``apply bundled`` before arguments that name no command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            if args[0] == "statement":
                _hint("apply MODEL STATEMENT", "statement")
                args = args[1:]
            model, rest = BUNDLED, list(args)
            for at, one in enumerate(args):
                if one == "--tagger" and at + 1 < len(args):
                    model, rest = args[at + 1], [*args[:at], *args[at + 2 :]]
                elif one.startswith("--tagger="):
                    model, rest = one.removeprefix("--tagger="), [*args[:at], *args[at + 1 :]]
            args = ["apply", model, *rest]
        return super().parse_args(ctx, args)


app = typer.Typer(
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
LabelledArgument = Annotated[
    Path,
    typer.Argument(metavar="LABELS", help="ClimateX's table (.tsv) or JSON lines of climassay confidence extract."),
]
ParagraphsOption = Annotated[
    Path | None, typer.Option(help="Paragraphs of the reports, to recover the context of ClimateX's statements.")
]
StatesModelOption = Annotated[str, typer.Option("--model", "-m", help="Local model whose states are read.")]
LayerOption = Annotated[int, typer.Option(help="Layer whose hidden states are read (-1: last).")]
MethodOption = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        help="Tagger to try, by name; several may be given; mean states and last states read --model.  "
        "[default: all that read no model]",
    ),
]
LinesOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write what was tagged as JSON lines.")]


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
            help="How frequent levels are among the statements, lowest first: natural (as in training), equal, or "
            "shares as 50,100,100,50. Answers for equal shares are always given beside."
        ),
    ] = "natural",
    output: LinesOption = None,
    as_json: JsonOption = False,
) -> None:
    """How confident would the IPCC sound about this? One statement, or every row of a table."""
    from climassay.learning import reweighted

    loaded = _loaded(model)
    asked = loaded.for_mix(_shares(mix, len(loaded.levels))) if mix != "natural" else loaded
    statements, known = _taggable(text, context, column, context_column)
    with progress_bar(as_json or len(statements) < 50) as progress:
        task = progress.add_task("Tagging", total=len(statements) * max(1, len(loaded.sources)))
        natural = loaded.for_mix(None).predict_proba(
            statements, on_progress=lambda count: progress.advance(task, count)
        )
    equal = reweighted(natural, loaded.shares)
    found = natural if asked.mix is None else reweighted(natural, loaded.shares, asked.mix)
    rows = [
        {**one, **_answer(loaded, row), "equal_shares": _answer(loaded, even)}
        for one, row, even in zip(known, found, equal, strict=True)
    ]
    if output is not None:
        _write_lines(output, rows)
    if as_json:
        print_json({"tagger": _card(loaded), "mix": mix, "statements": rows})
        return
    from climassay.reporting import Table, as_rich

    console = stdout_console()
    shown = [
        (row["statement"], row["tag"], row["equal_shares"]["tag"], *map("{:.0%}".format, row["probabilities"].values()))
        for row in rows
    ]
    headings = ("statement", f"tag, {mix} mix", "tag, equal shares", *loaded.levels)
    console.print(as_rich(Table.of("", headings, shown, left=3)))
    figures = loaded.provenance.measured
    if "equal_accuracy" in figures:
        natural_range, equal_range = (
            f"{figures[name]:.0%} [{figures[f'{name}_low']:.0%}, {figures[f'{name}_high']:.0%}]"
            for name in ("accuracy", "equal_accuracy")
        )
        console.print(
            f"Measured on {figures['n']:.0f} statements not seen in training. Natural mix, right for text of reports "
            f"where most is stated with {loaded.levels[loaded.shares.index(max(loaded.shares))]} confidence: "
            f"{natural_range} of answers are the authors' (always that level: {max(loaded.shares):.0%}). Equal shares, "
            f"right for single statements and to find rare levels: {equal_range} where all levels are equally frequent "
            f"(chance: {1 / len(loaded.levels):.0%}). A hint, no assessment.",
            highlight=False,
        )
    if output is not None:
        console.print(f"Written to {output}.", highlight=False)


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
    from climassay.confidence.tagging import train_tagger
    from climassay.learning import Provenance

    check_model_path(output)
    table, specs = _known(labels, paragraphs, as_json), _specs(method)
    data = Provenance(data=table.name, data_sha256=table.sha256, licence=table.licence)
    with _training(table, specs, as_json, model, layer) as (training, on_fit):
        trained = train_tagger(
            table.items, training, specs=specs, folds=folds, seed=seed, provenance=data, on_fit=on_fit
        )
    made, chosen, tried = trained.tagger, trained.chosen, trained.tried
    made.save(output)
    scores = _scores(training, tried, seed)
    if as_json:
        print_json({"tagger": output, "chosen": chosen.spec.name, "card": _card(made), "tried": _as_data(scores)})
        return
    _show(scores)
    stdout_console().print(f"Chosen: {chosen.spec.name}; written to {output}.", highlight=False)


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
    labels: Annotated[
        Path | None,
        typer.Argument(metavar="LABELS", help="ClimateX's table (.tsv) or JSON lines of climassay confidence extract."),
    ] = None,
    paragraphs: ParagraphsOption = None,
    method: MethodOption = None,
    model: StatesModelOption = "local:smollm2",
    layer: LayerOption = 20,
    tagger: Annotated[str | None, typer.Option(hidden=True)] = None,
    apart: Annotated[
        str, typer.Option(help="What training and test do not share: statement or document.")
    ] = "statement",
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    predictions: Annotated[
        Path | None,
        typer.Option(help="Write the best tagger's held-out probabilities as JSON lines, for confidence report."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score taggers on statements with known tags: one that is trained already, or by cross-validation."""
    import numpy as np

    from climassay.learning.text_classifier import compare_classifiers

    if apart not in ("statement", "document"):
        raise InputError(f"--apart is statement or document, not {apart!r}.")
    if tagger is not None:
        _hint("evaluate MODEL LABELS", "--tagger")
    elif labels is None and (model_file == BUNDLED or Path(model_file).suffix == ".safetensors"):
        raise InputError(f"Name the statements with known tags behind the tagger: evaluate {model_file} LABELS.")
    file, trained = (Path(model_file), tagger) if labels is None else (labels, model_file)
    table = _known(file, paragraphs, as_json)
    if trained is not None:
        scores, best = _tested(trained, table, seed)
    else:
        documents = np.unique([one.document for one in table.items], return_inverse=True)[1]
        specs = _specs(method)
        with _training(table, specs, as_json, model, layer) as (training, on_fit):
            tried = compare_classifiers(
                specs, training, apart=documents if apart == "document" else None, folds=folds, seed=seed, on_fit=on_fit
            )
        scores = _scores(training, tried, seed)
        best = min(tried, key=lambda one: one.evaluation.log_loss.value).probabilities
    if predictions is not None:
        from climassay.confidence.tagging import LEVELS

        rows = (
            {
                "id": one.id or str(number), "statement": one.item.text, "authors": one.tag,
                "tag": LEVELS[int(row.argmax())], "probabilities": dict(zip(LEVELS, row.tolist(), strict=True)),
            }
            for number, (one, row) in enumerate(zip(table.items, best, strict=True), start=1)
        )  # fmt: skip
        _write_lines(predictions, rows)
    if as_json:
        print_json({"file": file, "statements": len(table.items), "notes": table.notes, "apart": apart,
                    "scores": _as_data(scores)})  # fmt: skip
        return
    _show(scores)


class ProbeChoice(StrEnum):
    """What compares two statements."""

    ppairs = "ppairs"
    pointwise = "pointwise"


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
        ProbeChoice, typer.Option(help="Contrast pairs of two statements, or each statement by itself.")
    ] = ProbeChoice.ppairs,
    layer: LayerOption = 20,
    count: Annotated[int, typer.Option("--train-items", min=8, help="Labelled statements, drawn evenly.")] = 100,
    sentences: Annotated[int, typer.Option("--context-sentences", min=0, help="Read with each statement.")] = 0,
    seed: SeedOption = 0,
    output: LinesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag by comparison: a probe on a model's states puts each statement among some of known level (PPairS)."""
    from contextlib import closing

    from climassay.confidence.tagging.insertion import balanced_sample, train_insertion
    from climassay.learning import ActivationStore
    from climassay.models import OpenWeights
    from climassay.reporting import Table, as_rich
    from climassay.workspace import cache_folder

    statements, known = _taggable(text, context, column, context_column)
    table = _known(labelled, paragraphs, as_json)
    with closing(_model(model)) as loaded, progress_bar(as_json) as progress:
        assert isinstance(loaded, OpenWeights)
        comparing = progress.add_task("Comparing", total=None)
        tagger = train_insertion(
            balanced_sample(table.items, count, seed=seed),
            loaded,
            method=probe.value,
            layers=(layer,),
            context=sentences,
            store=ActivationStore(cache_folder() / "activations"),
            seed=seed,
            on_progress=lambda done: progress.advance(comparing, done),
        )
        inserting = progress.add_task("Inserting", total=len(statements))
        found = tagger.predict(statements, on_progress=lambda done: progress.advance(inserting, done))
    rows = [{**one, "tag": tag} for one, tag in zip(known, found, strict=True)]
    if output is not None:
        _write_lines(output, rows)
    pairs, longer = tagger.trained.accuracy, tagger.trained.longer
    if as_json:
        evidence = {
            "anchors": len(tagger.anchors), "levels": tagger.levels, "pair_accuracy": pairs,
            "longer_is_more": longer, "failed": tagger.trained.failed,
        }  # fmt: skip
        print_json({"probe": evidence, "statements": rows})
        return
    console = stdout_console()
    console.print(as_rich(Table.of("", ("statement", "tag"), [(row["statement"], row["tag"]) for row in rows], left=2)))
    console.print(
        f"Of {pairs.n} pairs of held-out statements of different levels the probe ordered {pairs.value:.0%} "
        f"[{pairs.low:.0%}, {pairs.high:.0%}] as their authors did; "
        f"that the longer one is the more confident is right for {longer.value:.0%}.",
        highlight=False,
    )


def _hint(today: str, before: str) -> None:
    stderr_console().print(f"{before} is now: climassay confidence tag {today}", highlight=False)


def _loaded(model: str) -> "Tagger":
    from climassay.confidence.tagging import BUNDLED_TAGGER, load_tagger

    return load_tagger(BUNDLED_TAGGER if model == BUNDLED else Path(model))


def _model(name: str) -> "Generator":
    """A model whose hidden states can be read.

    Raises:
        InputError: It shows none.
        ModelError: It cannot be loaded.
    """
    from climassay.models import OpenWeights, load_model

    model = load_model(name)
    if not isinstance(model, OpenWeights):
        model.close()
        raise InputError(f"The states of {name} cannot be read: give a local: model.")
    return model


def _shares(mix: str, levels: int) -> tuple[float, ...]:
    try:
        return (1.0,) * levels if mix == "equal" else tuple(float(part) for part in mix.split(","))
    except ValueError:
        raise InputError(f"--mix is natural, equal or shares as 50,100,100,50; got {mix!r}.") from None


def _specs(names: list[str] | None) -> "tuple[ClassifierSpec, ...]":
    from climassay.confidence.tagging import SPECS, STATES

    known = {spec.name: spec for spec in (*SPECS, *STATES)}
    unknown = next((name for name in names or () if name not in known), None)
    if unknown is not None:
        raise InputError(f"There is no tagger {unknown!r} to try: there are {'; '.join(known)}.")
    return tuple(known[name] for name in names) if names else SPECS


def _taggable(
    text: str, context: str, column: str | None, context_column: str | None
) -> "tuple[list[Taggable], list[dict[str, Any]]]":
    """Statements, and what each is known by in an answer.

    Raises:
        InputError: There is none, or a file cannot be read.
    """
    from climassay.confidence.statement_files import read_statements
    from climassay.questions.rows import parse_rows, read_bytes

    file = Path(text)
    if column is None and context_column is None:
        if not file.is_file():
            if not text.strip():
                raise InputError("There is nothing to tag: give a statement in quotes, or a file and --text COLUMN.")
            if file.suffix in _TABLES and " " not in text:
                raise InputError(f"There is no file {text}.")
            return [(text, context)], [{"statement": text}]
        if file.suffix == ".jsonl":
            try:
                read = read_statements(file)
            except InputError as error:
                raise InputError(
                    f"{error} Of other tables, name the column of the statements with --text COLUMN."
                ) from None
            if not read:
                raise InputError(f"{file} has no statements.")
            return list(read), [{"id": one.id, "statement": one.text, "authors": one.tag} for one in read]
    if column is None:
        raise InputError(f"{file} is a file: name the column of its statements with --text COLUMN.")
    statements: list[Taggable] = []
    known: list[dict[str, Any]] = []
    for number, values in enumerate(parse_rows(file, read_bytes(file)), start=1):
        missing = next((name for name in (column, context_column) if name is not None and name not in values), None)
        if missing is not None:
            raise InputError(f"Row {number} of {file} has no column {missing!r}.")
        said = str(values[column] or "")
        if not any(map(str.isalpha, said)):
            raise InputError(f"Row {number} of {file} has no statement in the column {column!r}.")
        statements.append((said, str(values[context_column] or "") if context_column else ""))
        known.append({"id": values["id"], "statement": said} if "id" in values else {"statement": said})
    if not statements:
        raise InputError(f"{file} has no rows.")
    return statements, known


def _known(file: Path, paragraphs: Path | None, quiet: bool) -> "LabelledTable":
    """Statements with known tags, telling what was left out."""
    from climassay.confidence.tagging import read_labelled

    table = read_labelled(file, paragraphs)
    if not quiet:
        for note in table.notes:
            stderr_console().print(note, highlight=False)
    return table


@contextmanager
def _training(
    table: "LabelledTable", specs: "tuple[ClassifierSpec, ...]", quiet: bool, name: str, layer: int
) -> "Iterator[tuple[TrainingTexts, Callable[[], None]]]":
    """Statements with the models that are read, and what to call after each tagger tried, under progress bars."""
    from climassay.confidence.tagging.tagger import tagging_texts
    from climassay.learning.features import FeatureModels, needs_model
    from climassay.models.encoder import load_encoder

    model = _model(name) if any(needs_model(spec.sources) for spec in specs) else None
    with progress_bar(quiet) as progress:
        reading = progress.add_task("Reading statements", total=None)
        fitting = progress.add_task("Trying taggers", total=len(specs))
        training = tagging_texts(
            table.items, FeatureModels(load_encoder(), model, layer),
            on_progress=lambda count: progress.advance(reading, count),
        )  # fmt: skip
        yield training, lambda: progress.advance(fitting)


def _scores(training: "TrainingTexts", tried: "Sequence[TriedClassifier]", seed: int) -> "_Scores":
    """Figures of each tagger by mix."""
    from climassay.confidence.tagging import on_mixes

    return [
        (one.spec.name, on_mixes(training.truth, one.probabilities, training.groups, seed=seed)) for one in tried
    ]  # fmt: skip


def _tested(model: str, table: "LabelledTable", seed: int) -> "tuple[_Scores, NDArray[np.float64]]":
    """Figures by mix of a trained tagger, and what it gives for levels as frequent as in its training."""
    from climassay.confidence.tagging import LEVELS, on_mixes
    from climassay.learning.text_classifier import class_places

    loaded = _loaded(model).for_mix(None)
    if loaded.levels != LEVELS:
        raise InputError(f"{model} gives other levels than {', '.join(LEVELS)}.")
    if loaded.provenance.data_sha256 == table.sha256:
        raise InputError(f"{model} was trained on {table.name}: test it on other statements, or leave MODEL out.")
    found = loaded.predict_proba([one.item for one in table.items])
    truth = class_places([one.tag for one in table.items], LEVELS)
    sections = [one.section for one in table.items]
    return [(Path(model).name, on_mixes(truth, found, sections, shares=loaded.shares, seed=seed))], found


def _answer(loaded: "Tagger", row: "NDArray[np.float64]") -> dict[str, Any]:
    return {
        "tag": loaded.levels[int(row.argmax())],
        "probabilities": dict(zip(loaded.levels, row.tolist(), strict=True)),
    }


def _write_lines(path: Path, rows: "Iterable[dict[str, Any]]") -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _card(loaded: "Tagger") -> dict[str, Any]:
    return {
        **loaded.provenance.facts(),
        "shares": loaded.shares,
        "sources": loaded.sources,
        "levels": loaded.levels,
    }


def _as_data(scores: "_Scores") -> list[dict[str, Any]]:
    return [{"tagger": name, **{mix: one.to_dict() for mix, one in mixes.items()}} for name, mixes in scores]


def _show(scores: "_Scores") -> None:
    from dataclasses import replace

    from climassay.confidence.tagging import LEVELS, PUBLISHED
    from climassay.reporting import as_rich

    console = stdout_console()
    for mix, words in _MIXES.items():
        if mix not in scores[0][1]:
            continue
        table: Table = comparison_table([(name, mixes[mix]) for name, mixes in scores], words)
        if mix == "climatex":
            published = tuple((f"published: {name}", f"{value:.3f}", "", "", "") for name, value in PUBLISHED.items())
            table = replace(table, rows=table.rows + published)
        console.print(as_rich(table))
    if "equal" not in scores[0][1]:
        console.print(f"Other mixes need statements of each level: {', '.join(LEVELS)}.", highlight=False)
