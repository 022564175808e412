"""``climassay confidence tag``: the level of confidence that a statement would carry in an IPCC report."""

from contextlib import closing, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.learning_options import (
    FoldsOption,
    LinesOption,
    OutputOption,
    SeedOption,
    StatesModelOption,
    activation_store,
    card,
    check_model_path,
    comparison_table,
    counting,
    load_weights,
    note,
    show,
    text_rows,
    write_lines,
)
from climassay.cli.option_groups import DefaultCommandGroup
from climassay.cli.output import JsonOption, print_json, progress_bar
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from climassay.confidence.tagging import LabelledTable, Taggable, Tagger
    from climassay.learning import ClassifierSpec, Evaluation
    from climassay.learning.text_classifier import TrainingTexts

    _Scores = list[tuple[str, dict[str, Evaluation]]]

BUNDLED = "bundled"
_TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".gz")
_MIXES = {
    "natural": "Levels as frequent as in these statements: for the text of reports, tagged as it comes",
    "equal": "All levels equally frequent: for single statements, and where rare levels have to be found",
    "climatex": "ClimateX's test mix, 50:100:100:50: for comparison with published figures",
}


class _TagGroup(DefaultCommandGroup):
    default, first = "apply", (BUNDLED,)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take ``statement`` before a text, as it was written earlier, for nothing."""
        if args[:1] == ["statement"]:
            _earlier("apply MODEL STATEMENT", "statement")
            args = args[1:]
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
            help="How frequent levels are among the statements, lowest first: natural (as in training), equal, or "
            "shares as 50,100,100,50. Answers for equal shares are always given beside."
        ),
    ] = "natural",
    output: LinesOption = None,
    tagger: EarlierOption = None,
    as_json: JsonOption = False,
) -> None:
    """How confident would the IPCC sound about this? One statement, or every row of a table."""
    from climassay.learning import reweighted
    from climassay.reporting import Table

    loaded = _loaded(tagger or model)
    asked = loaded.for_mix(_shares(mix, len(loaded.levels))) if mix != "natural" else loaded
    statements, known = _taggable(text, context, column, context_column)
    total = len(statements) * max(1, len(loaded.sources))
    with counting("Tagging", total, quiet=as_json or len(statements) < 50) as advance:
        natural = loaded.for_mix(None).predict_proba(statements, on_progress=advance)
    equal = reweighted(natural, loaded.shares)
    found = natural if asked.mix is None else reweighted(natural, loaded.shares, asked.mix)

    def answer(row: "NDArray[np.float64]") -> dict[str, Any]:
        chances = dict(zip(loaded.levels, row.tolist(), strict=True))
        return {"tag": loaded.levels[int(row.argmax())], "probabilities": chances}

    rows = [
        {**one, **answer(row), "equal_shares": answer(even)} for one, row, even in zip(known, found, equal, strict=True)
    ]
    write_lines(output, rows)
    if as_json:
        print_json({"tagger": _card(loaded), "mix": mix, "statements": rows})
        return
    shown = [
        (row["statement"], row["tag"], row["equal_shares"]["tag"], *map("{:.0%}".format, row["probabilities"].values()))
        for row in rows
    ]
    headings = ("statement", f"tag, {mix} mix", "tag, equal shares", *loaded.levels)
    figures, trust = loaded.provenance.measured, ""
    if "equal_accuracy" in figures:
        natural_range, equal_range = (
            f"{figures[name]:.0%} [{figures[f'{name}_low']:.0%}, {figures[f'{name}_high']:.0%}]"
            for name in ("accuracy", "equal_accuracy")
        )
        trust = (
            f"Measured on {figures['n']:.0f} statements not seen in training. Natural mix, right for text of reports "
            f"where most is stated with {loaded.levels[loaded.shares.index(max(loaded.shares))]} confidence: "
            f"{natural_range} of answers are the authors' (always that level: {max(loaded.shares):.0%}). Equal shares, "
            f"right for single statements and to find rare levels: {equal_range} where all levels are equally frequent "
            f"(chance: {1 / len(loaded.levels):.0%}). A hint, no assessment."
        )
    show([Table.of("", headings, shown, left=3)], trust, f"Written to {output}." if output else "")


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
    from climassay.confidence.tagging import on_mixes, train_tagger
    from climassay.learning import Provenance

    check_model_path(output)
    table, specs = _known(labels, paragraphs, as_json), _specs(method)
    data = Provenance(data=table.name, data_sha256=table.sha256, licence=table.licence)
    with _training(table, specs, as_json, model, layer) as (training, on_fit):
        trained = train_tagger(
            table.items, training, specs=specs, folds=folds, seed=seed, provenance=data, on_fit=on_fit
        )
    made, chosen = trained.classifier, trained.chosen.spec.name
    made.save(output)
    scores = [
        (one.spec.name, on_mixes(training.truth, one.probabilities, training.groups, seed=seed))
        for one in trained.tried
    ]
    if as_json:
        print_json({"tagger": output, "chosen": chosen, "card": _card(made), "tried": _as_data(scores)})
        return
    _show(scores, f"Chosen: {chosen}; written to {output}.")


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
    apart: Annotated[
        str,
        typer.Option("--split-by", "--apart", help="What training and test do not share: statement or document."),
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
    import numpy as np

    from climassay.confidence.tagging import LEVELS, on_mixes
    from climassay.learning.text_classifier import class_places, compare_classifiers

    if apart not in ("statement", "document"):
        raise InputError(f"--split-by is statement or document, not {apart!r}.")
    if tagger is not None:
        _earlier("evaluate MODEL LABELS", "--tagger")
    elif labels is None and (model_file == BUNDLED or Path(model_file).suffix == ".safetensors"):
        raise InputError(f"Name the statements with known tags behind the tagger: evaluate {model_file} LABELS.")
    file, trained = (Path(model_file), tagger) if labels is None else (labels, model_file)
    table = _known(file, paragraphs, as_json)
    items, left_out = table.items, 0
    scores: _Scores
    if trained is not None:
        loaded = _loaded(trained).for_mix(None)
        if loaded.levels != LEVELS:
            raise InputError(f"{trained} gives other levels than {', '.join(LEVELS)}.")
        items = tuple(one for one in table.items if not loaded.provenance.knows(one.item.text))
        left_out = len(table.items) - len(items)
        if not items or loaded.provenance.data_sha256 == table.sha256:
            raise InputError(f"{trained} was trained on {table.name}: test it on other statements, or leave MODEL out.")
        best = loaded.predict_proba([one.item for one in items])
        truth, sections = class_places([one.tag for one in items], LEVELS), [one.section for one in items]
        scores = [(Path(trained).name, on_mixes(truth, best, sections, shares=loaded.shares, seed=seed))]
    else:
        documents = np.unique([one.document for one in items], return_inverse=True)[1]
        specs = _specs(method)
        with _training(table, specs, as_json, model, layer) as (training, on_fit):
            tried = compare_classifiers(
                specs, training, apart=documents if apart == "document" else None, folds=folds, seed=seed, on_fit=on_fit
            )
        scores = [
            (one.spec.name, on_mixes(training.truth, one.probabilities, training.groups, seed=seed)) for one in tried
        ]
        best = min(tried, key=lambda one: one.evaluation.log_loss.value).probabilities
    rows = (
        {
            "id": one.id or str(number), "statement": one.item.text, "authors": one.tag,
            "tag": LEVELS[int(row.argmax())], "probabilities": dict(zip(LEVELS, row.tolist(), strict=True)),
        }
        for number, (one, row) in enumerate(zip(items, best, strict=True), start=1)
    )  # fmt: skip
    write_lines(predictions, rows)
    if as_json:
        data = {"file": file, "statements": len(items), "left_out": left_out, "notes": table.notes, "apart": apart}
        print_json({**data, "scores": _as_data(scores)})
        return
    _show(scores)
    note(f"{left_out} statements are left out: the tagger was trained on them." if left_out else "")


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
    from climassay.confidence.tagging.insertion import balanced_sample, train_insertion
    from climassay.reporting import Table

    statements, known = _taggable(text, context, column, context_column)
    table = _known(labelled, paragraphs, as_json)
    with closing(load_weights(model)) as loaded, progress_bar(as_json) as progress:
        comparing = progress.add_task("Comparing", total=None)
        tagger = train_insertion(
            balanced_sample(table.items, count, seed=seed),
            loaded,
            method=probe.value,
            layers=(layer,),
            context=sentences,
            store=activation_store(),
            seed=seed,
            on_progress=lambda done: progress.advance(comparing, done),
        )
        inserting = progress.add_task("Inserting", total=len(statements))
        found = tagger.predict(statements, on_progress=lambda done: progress.advance(inserting, done))
    rows = [{**one, "tag": tag} for one, tag in zip(known, found, strict=True)]
    write_lines(output, rows)
    pairs, longer = tagger.trained.accuracy, tagger.trained.longer
    if as_json:
        evidence = {
            "anchors": len(tagger.anchors), "levels": tagger.levels, "pair_accuracy": pairs,
            "longer_is_more": longer, "failed": tagger.trained.failed,
        }  # fmt: skip
        print_json({"probe": evidence, "statements": rows})
        return
    show(
        [Table.of("", ("statement", "tag"), [(row["statement"], row["tag"]) for row in rows], left=2)],
        f"Of {pairs.n} pairs of held-out statements of different levels the probe ordered {pairs.value:.0%} "
        f"[{pairs.low:.0%}, {pairs.high:.0%}] as their authors did; "
        f"that the longer one is the more confident is right for {longer.value:.0%}.",
    )


def _earlier(today: str, before: str) -> None:
    note(f"{before} is now: climassay confidence tag {today}")


def _loaded(model: str) -> "Tagger":
    from climassay.confidence.tagging import BUNDLED_TAGGER, load_tagger

    return load_tagger(BUNDLED_TAGGER if model == BUNDLED else Path(model))


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
    from climassay.confidence.statement import read_statements

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
    rows = text_rows(file, column, context_column)
    known = [{**({"id": row["id"]} if "id" in row else {}), "statement": said} for said, row in rows]
    return [(said, str(row[context_column] or "") if context_column else "") for said, row in rows], known


def _known(file: Path, paragraphs: Path | None, quiet: bool) -> "LabelledTable":
    """Statements with known tags, telling what was left out."""
    from climassay.confidence.tagging import read_labelled

    table = read_labelled(file, paragraphs)
    note(*(() if quiet else table.notes))
    return table


@contextmanager
def _training(
    table: "LabelledTable", specs: "tuple[ClassifierSpec, ...]", quiet: bool, name: str, layer: int
) -> "Iterator[tuple[TrainingTexts, Callable[[], None]]]":
    """Statements with the models that are read, and what to call after each tagger tried, under progress bars."""
    from climassay.confidence.tagging.tagger import tagging_texts
    from climassay.learning.features import FeatureModels, needs_model
    from climassay.models.encoders.loading import load_encoder

    model = load_weights(name) if any(needs_model(spec.sources) for spec in specs) else None
    with progress_bar(quiet) as progress:
        reading = progress.add_task("Reading statements", total=None)
        fitting = progress.add_task("Trying taggers", total=len(specs))
        training = tagging_texts(
            table.items, FeatureModels(load_encoder(), model, layer),
            on_progress=lambda count: progress.advance(reading, count),
        )  # fmt: skip
        yield training, lambda: progress.advance(fitting)


def _card(loaded: "Tagger") -> dict[str, Any]:
    facts = {"shares": loaded.shares, "sources": loaded.sources, "levels": loaded.levels}
    return {**card(loaded.provenance), **facts}


def _as_data(scores: "_Scores") -> list[dict[str, Any]]:
    return [{"tagger": name, **{mix: one.to_dict() for mix, one in mixes.items()}} for name, mixes in scores]


def _show(scores: "_Scores", *sentences: str) -> None:
    from climassay.confidence.tagging import LEVELS, PUBLISHED

    tables = []
    for mix, words in _MIXES.items():
        if mix in scores[0][1]:
            tables.append(comparison_table([(name, mixes[mix]) for name, mixes in scores], words))
        if mix == "climatex" and mix in scores[0][1]:
            published = tuple((f"published: {name}", f"{value:.3f}", "", "", "") for name, value in PUBLISHED.items())
            tables[-1] = replace(tables[-1], rows=tables[-1].rows + published)
    missing = "" if "equal" in scores[0][1] else f"Other mixes need statements of each level: {', '.join(LEVELS)}."
    show(tables, missing, *sentences)
