"""``climassay confidence tag insert``: the level at which a statement stands among statements of known level."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.confidence_tag_input import (
    ColumnOption,
    ContextColumnOption,
    ContextOption,
    ParagraphsOption,
    TextArgument,
    open_weights,
    read_known,
    read_taggable,
)
from climassay.cli.output import JsonOption, print_json, progress_bar, stdout_console, write_text

if TYPE_CHECKING:
    from climassay.confidence.tagging.pairwise import InsertionTagger


class ProbeChoice(StrEnum):
    """What compares two statements."""

    ppairs = "ppairs"
    pointwise = "pointwise"


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
    model: Annotated[str, typer.Option("--model", "-m", help="Local model whose states are read.")] = "local:smollm2",
    probe: Annotated[
        ProbeChoice, typer.Option(help="Contrast pairs of two statements, or each statement by itself.")
    ] = ProbeChoice.ppairs,
    layer: Annotated[int, typer.Option(help="Layer that is read (-1: last).")] = 20,
    count: Annotated[int, typer.Option("--train-items", min=8, help="Labelled statements, drawn evenly.")] = 100,
    sentences: Annotated[int, typer.Option("--context-sentences", min=0, help="Read with each statement.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw, the pairs and the anchors.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write what was tagged as JSON lines.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tag by comparison: a probe on a model's states puts each statement among some of known level (PPairS)."""
    import json
    from contextlib import closing

    from climassay.confidence.tagging.pairwise import balanced_sample, train_insertion
    from climassay.learning import ActivationStore
    from climassay.workspace import cache_folder

    statements, known = read_taggable(text, context, column, context_column)
    table = read_known(labelled, paragraphs, as_json)
    with closing(open_weights(model)) as loaded, progress_bar(as_json) as progress:
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
        found = tagger.probabilities(statements, on_progress=lambda done: progress.advance(inserting, done))
    rows = [{**one, "tag": tagger.levels[int(row.argmax())]} for one, row in zip(known, found, strict=True)]
    if output is not None:
        write_text(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    if as_json:
        print_json({"probe": _evidence(tagger), "statements": rows})
        return
    _show(rows, tagger)


def _evidence(tagger: "InsertionTagger") -> dict[str, Any]:
    trained = tagger.trained
    return {
        "anchors": len(tagger.anchors),
        "levels": tagger.levels,
        "pair_accuracy": trained.accuracy,
        "longer_is_more": trained.longer,
        "failed": trained.failed,
    }


def _show(rows: list[dict[str, Any]], tagger: "InsertionTagger") -> None:
    from climassay.reporting import Table, as_rich

    console = stdout_console()
    shown = [(row["statement"], row["tag"]) for row in rows]
    console.print(as_rich(Table.of("", ("statement", "tag"), shown, left=2)))
    pairs, longer = tagger.trained.accuracy, tagger.trained.longer
    console.print(
        f"Of {pairs.n} pairs of held-out statements of different levels the probe ordered {pairs.value:.0%} "
        f"[{pairs.low:.0%}, {pairs.high:.0%}] as their authors did; "
        f"that the longer one is the more confident is right for {longer.value:.0%}.",
        highlight=False,
    )
