"""``climassay confidence tag``: the level of confidence that a statement would carry in an IPCC report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.confidence_tag_input import (
    ColumnOption,
    ContextColumnOption,
    ContextOption,
    LabelledArgument,
    ParagraphsOption,
    TextArgument,
    open_weights,
    read_known,
    read_taggable,
)
from climassay.cli.confidence_tag_insert import insert
from climassay.cli.option_groups import WholeHelpGroup
from climassay.cli.output import JsonOption, print_json, progress_bar, stdout_console, write_text
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.confidence.tagging.labelled import LabelledTable
    from climassay.confidence.tagging.tagger import LinearTagger
    from climassay.confidence.tagging.training import TaggerSpec, Tried

_DEFAULT = "statement"


class _TagGroup(WholeHelpGroup):
    """Takes what is no command's name for a statement or a file to be tagged."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that name none."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_TagGroup,
    no_args_is_help=True,
    help=(
        'Tag statements: climassay confidence tag "Sea level will rise for centuries." or FILE --text COLUMN; '
        "its options: climassay confidence tag statement --help."
    ),
)

app.command("insert")(insert)

TaggerOption = Annotated[
    Path | None, typer.Option("--tagger", help="A tagger's file.  [default: the one that comes with climassay]")
]
MixOption = Annotated[
    str,
    typer.Option(
        help="Levels among the statements, lowest first: natural (as in training), equal, or shares as 50,100,100,50."
    ),
]
StatesModelOption = Annotated[str, typer.Option("--model", "-m", help="Local model whose states are read.")]
LayerOption = Annotated[int, typer.Option(help="Layer that is read (-1: last).")]
MethodOption = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        help="Tagger to try, by name; several may be given; mean states and last states read --model.  "
        "[default: all that read no model]",
    ),
]


@app.command(_DEFAULT)
def tag(
    text: TextArgument,
    context: ContextOption = "",
    column: ColumnOption = None,
    context_column: ContextColumnOption = None,
    tagger: TaggerOption = None,
    mix: MixOption = "natural",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write what was tagged as JSON lines.")] = None,
    as_json: JsonOption = False,
) -> None:
    """How confident would the IPCC sound about this? One statement, or every row of a table."""
    loaded = _loaded(tagger, mix)
    statements, known = read_taggable(text, context, column, context_column)
    with progress_bar(as_json or len(statements) < 50) as progress:
        task = progress.add_task("Tagging", total=len(statements) * max(1, len(loaded.sources)))
        found = loaded.probabilities(statements, on_progress=lambda count: progress.advance(task, count))
    rows = [
        {
            **one,
            "tag": loaded.levels[int(row.argmax())],
            "probabilities": dict(zip(loaded.levels, row.tolist(), strict=True)),
        }
        for one, row in zip(known, found, strict=True)
    ]
    if output is not None:
        import json

        write_text(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    if as_json:
        print_json({"tagger": _card(loaded), "mix": mix, "statements": rows})
    else:
        _show_tags(rows, loaded, output)


@app.command()
def train(
    file: LabelledArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The tagger's file, for example t.safetensors.")],
    paragraphs: ParagraphsOption = None,
    method: MethodOption = None,
    model: StatesModelOption = "local:smollm2",
    layer: LayerOption = 20,
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of folds and bootstrap.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a tagger; what it reads is chosen by log loss in a cross-validation that shares no section."""
    from climassay.cli.learning_options import check_model_path
    from climassay.confidence.tagging.tagger import save_tagger
    from climassay.confidence.tagging.training import best_of, compare, finish

    check_model_path(output)
    table = read_known(file, paragraphs, as_json)
    lesson, tried = _tried(table, _specs(method), "statement", folds, seed, as_json, (model, layer))
    chosen = best_of(tried)
    chapters = None
    if len({one.document for one in table.items}) > 1:
        chapters = compare([chosen.spec], lesson, apart="document", count=folds, resamples=1, seed=seed)[0]
    made = finish(
        chosen,
        lesson,
        data=table.name,
        data_sha256=table.sha256,
        licence=table.licence,
        by_document=chapters,
        seed=seed,
    )
    save_tagger(made, output)
    if as_json:
        print_json({"tagger": output, "chosen": chosen.spec.name, "card": _card(made), "tried": _rows(tried)})
        return
    _show_tried(tried)
    stdout_console().print(f"Chosen: {chosen.spec.name}; written to {output}.", highlight=False)


@app.command()
def evaluate(
    file: LabelledArgument,
    paragraphs: ParagraphsOption = None,
    method: MethodOption = None,
    model: StatesModelOption = "local:smollm2",
    layer: LayerOption = 20,
    tagger: Annotated[
        Path | None, typer.Option(help="Test this tagger instead, on statements that it was not trained on.")
    ] = None,
    apart: Annotated[
        str, typer.Option(help="What training and test do not share: statement or document.")
    ] = "statement",
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of folds and bootstrap.")] = 0,
    predictions: Annotated[
        Path | None,
        typer.Option(help="Write the best tagger's held-out probabilities as JSON lines, for confidence report."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score taggers on statements with known tags: by cross-validation, or one that is trained already."""
    if apart not in ("statement", "document"):
        raise InputError(f"--apart is statement or document, not {apart!r}.")
    table = read_known(file, paragraphs, as_json)
    if tagger is not None:
        tried = [_tested(tagger, table, seed)]
    else:
        _, tried = _tried(table, _specs(method), apart, folds, seed, as_json, (model, layer))
    if predictions is not None:
        _write_predictions(predictions, table, tried)
    if as_json:
        print_json({"file": file, "statements": len(table.items), "notes": table.notes, "apart": apart,
                    "scores": _rows(tried)})  # fmt: skip
        return
    _show_tried(tried)


def _write_predictions(path: Path, table: "LabelledTable", tried: "list[Tried]") -> None:
    """Held-out answers of the tagger with the lowest log loss, one line a statement."""
    import json

    from climassay.confidence.tagging.items import LEVELS

    best = min(tried, key=lambda one: one.natural.log_loss.value).tagged
    if len(best.truth) != len(table.items):
        raise InputError("Not every statement was held out once: use fewer --folds.")
    rows = (
        {
            "id": one.id or str(number),
            "statement": one.item.text,
            "authors": one.tag,
            "tag": LEVELS[int(row.argmax())],
            "probabilities": dict(zip(LEVELS, row.tolist(), strict=True)),
        }
        for number, (one, row) in enumerate(zip(table.items, best.probabilities, strict=True), start=1)
    )
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _loaded(path: Path | None, mix: str) -> "LinearTagger":
    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger

    loaded = load_tagger(path or BUNDLED_TAGGER)
    if mix == "natural":
        return loaded
    if mix == "equal":
        return loaded.for_mix((1.0,) * len(loaded.levels))
    try:
        shares = tuple(float(part) for part in mix.split(","))
    except ValueError:
        raise InputError(f"--mix is natural, equal or shares as 50,100,100,50; got {mix!r}.") from None
    return loaded.for_mix(shares)


def _specs(names: list[str] | None) -> "tuple[TaggerSpec, ...]":
    from climassay.confidence.tagging.training import SPECS, STATES

    if not names:
        return SPECS
    known = {spec.name: spec for spec in (*SPECS, *STATES)}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise InputError(f"There is no tagger {unknown!r} to try: there are {'; '.join(known)}.")
    return tuple(known[name] for name in names)


def _tried(
    table: "LabelledTable",
    specs: "tuple[TaggerSpec, ...]",
    apart: str,
    folds: int,
    seed: int,
    quiet: bool,
    states: tuple[str, int],
) -> "tuple[Any, list[Tried]]":
    from climassay.confidence.tagging.reading import Readers, needs_model
    from climassay.confidence.tagging.training import Lesson, compare
    from climassay.models.encoder import load_encoder

    name, layer = states
    model = open_weights(name) if any(needs_model(spec.sources) for spec in specs) else None
    readers = Readers(load_encoder(), model, layer)
    with progress_bar(quiet) as progress:
        reading = progress.add_task("Reading statements", total=None)
        fitting = progress.add_task("Trying taggers", total=len(specs))
        lesson = Lesson(table.items, readers, lambda count: progress.advance(reading, count))
        tried = compare(
            specs, lesson, apart="document" if apart == "document" else "statement", count=folds, seed=seed,
            on_fit=lambda: progress.advance(fitting),
        )  # fmt: skip
    return lesson, tried


def _tested(path: Path, table: "LabelledTable", seed: int) -> "Tried":
    import numpy as np

    from climassay.confidence.tagging.items import LEVELS, level_places
    from climassay.confidence.tagging.measures import Tagged
    from climassay.confidence.tagging.splits import units
    from climassay.confidence.tagging.tagger import load_tagger
    from climassay.confidence.tagging.training import TaggerSpec, measured

    loaded = load_tagger(path)
    if loaded.levels != LEVELS:
        raise InputError(f"{path} gives other levels than {', '.join(LEVELS)}.")
    if loaded.card.data_sha256 == table.sha256:
        raise InputError(f"{path} was trained on {table.name}: test it on other statements, or leave --tagger out.")
    found = loaded.probabilities([one.item for one in table.items])
    truth = np.array(level_places(table.items), dtype=np.int64)
    return measured(TaggerSpec(path.name, ()), Tagged(truth, found, units(table.items, "statement")), seed=seed)


def _card(loaded: "LinearTagger") -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(loaded.card), "measured": loaded.card.figures, "sources": loaded.sources, "levels": loaded.levels}


def _show_tags(rows: list[dict[str, Any]], loaded: "LinearTagger", output: Path | None) -> None:
    from climassay.reporting import Table, as_rich

    console = stdout_console()
    shown = [
        (row["statement"], row["tag"], *(f"{value:.0%}" for value in row["probabilities"].values())) for row in rows
    ]
    console.print(as_rich(Table.of("", ("statement", "tag", *loaded.levels), shown, left=2)))
    figures = loaded.card.figures
    if "balanced_accuracy" in figures:
        console.print(
            f"Right for {figures['accuracy']:.0%} [{figures['accuracy_low']:.0%}, {figures['accuracy_high']:.0%}] of "
            f"{figures['n']:.0f} statements that it had not seen (the most frequent level: "
            f"{max(loaded.card.shares):.0%}), for {figures['balanced_accuracy']:.0%} where all levels are equally "
            "frequent (chance: 25%): a hint, no assessment.",
            highlight=False,
        )
    if output is not None:
        console.print(f"Written to {output}.", highlight=False)


def _rows(tried: "Sequence[Tried]") -> list[dict[str, Any]]:
    return [
        {"tagger": one.spec.name, "natural": one.natural, "climatex_mix": one.mixed, "balanced": one.balanced,
         "confusion": one.tagged.confusion}
        for one in tried
    ]  # fmt: skip


def _show_tried(tried: "Sequence[Tried]") -> None:
    from climassay.confidence.tagging.measures import PUBLISHED
    from climassay.reporting import Table, as_rich

    headings = ("tagger", "accuracy", "macro-F1", "log loss", "accuracy, ClimateX mix", "levels off", "balanced")
    rows = []
    for one in tried:
        mixed, balanced = one.mixed.accuracy, one.balanced.accuracy
        figures = (
            f"{one.natural.accuracy.value:.3f}",
            f"{one.natural.macro_f1.value:.3f}",
            f"{one.natural.log_loss.value:.3f}",
            f"{mixed.value:.3f} [{mixed.interval.low:.3f}, {mixed.interval.high:.3f}]",
            f"{one.mixed.ordinal_error.value:.2f}",
            f"{balanced.value:.3f} [{balanced.interval.low:.3f}, {balanced.interval.high:.3f}]",
        )
        rows.append((one.spec.name, *figures))
    rows += [(f"published: {name}", "", "", "", f"{accuracy:.3f}", "", "") for name, accuracy in PUBLISHED.items()]
    stdout_console().print(as_rich(Table.of("", headings, rows)))
