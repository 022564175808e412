"""``climassay confidence compare``: what became of the stated certainty between two texts."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import JsonOption, print_json, progress_bar, stderr_console, stdout_console

if TYPE_CHECKING:
    from climassay.confidence.comparison import Comparison

_WORDS_SHOWN = 150


class KindChoice(StrEnum):
    """What the two texts are to each other."""

    DRAFTS = "drafts"
    SUMMARY = "summary"


def compare(
    old: Annotated[
        Path,
        typer.Argument(help="Earlier draft or summary: PDF, Word, HTML, Markdown, text, or JSON lines of extract."),
    ],
    new: Annotated[Path, typer.Argument(help="Later draft, or the chapter behind the summary.")],
    kind: Annotated[
        KindChoice, typer.Option(help="Two drafts of one text, or a summary and the chapter behind it.")
    ] = KindChoice.DRAFTS,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all statements side by side (.html, .csv, .xlsx or .jsonl)."),
    ] = None,
    least_similar: Annotated[
        float | None, typer.Option(help="Similarity from which on two sentences may be the same; 0.7 if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the certainty that two texts state: levels changed, statements dropped or added, words side by side.

    Sentences are matched by their words, by meaning (the bundled encoder) and by reference: paragraph numbers such as
    A.1.3 and sections in curly brackets such as {3.2.1}.
    """
    from climassay.confidence.comparison import (
        LEAST_SIMILAR,
        change_row,
        statements_to_compare,
        write_comparison,
    )
    from climassay.confidence.comparison import compare as compare_statements
    from climassay.models.encoders.loading import load_encoder

    ours, theirs = statements_to_compare(old), statements_to_compare(new)
    with progress_bar(quiet=as_json) as progress:
        task = progress.add_task("vectors", total=None)
        comparison = compare_statements(
            ours,
            theirs,
            load_encoder(),
            kind=kind.value,
            least_similar=LEAST_SIMILAR if least_similar is None else least_similar,
            on_progress=lambda done: progress.advance(task, done),
        )
    if output is not None:
        write_comparison(comparison, output, (old.name, new.name))
    if as_json:
        print_json(
            {
                "old": str(old),
                "new": str(new),
                "kind": comparison.kind,
                "counts": comparison.counts,
                "changes": [change_row(one) for one in comparison.changes],
            }
        )
    else:
        _show(comparison, (old.name, new.name), output)


def _show(comparison: "Comparison", names: tuple[str, str], output: Path | None) -> None:
    from climassay.confidence.comparison import place_of
    from climassay.reporting.tables import Table, as_rich

    counts = [[status, str(count)] for status, count in comparison.counts.items() if count]
    stdout_console().print(as_rich(Table.of(f"{names[0]} and {names[1]}", ["statements", "number"], counts)))
    rows = []
    for change in comparison.changes:
        if change.status in ("unchanged", "reworded"):
            continue
        one = change.new or change.old
        assert one is not None
        levels = [side.tag or "none" if side else "-" for side in (change.old, change.new)]
        words = one.text if len(one.text) <= _WORDS_SHOWN else f"{one.text[: _WORDS_SHOWN - 1].rstrip()}…"
        rows.append([change.status, *levels, place_of(one), words])
    if rows:
        headings = ["what changed", "old level", "new level", "place", "statement"]
        stdout_console().print(as_rich(Table.of("Changes", headings, rows, left=5)))
    said = f"Words side by side: {output}" if output else "See the words side by side with -o comparison.html."
    stderr_console().print(said, highlight=False)
