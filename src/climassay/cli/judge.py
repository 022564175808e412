"""``climassay judge``: compare texts by a quality, rank them, and measure who judges well."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from climassay.cli.judge_benchmark import benchmark, check_sort
from climassay.cli.judge_options import (
    JudgeOptions,
    ModelSetup,
    QualityOptions,
    TableOptions,
    opened,
    tell_skipped,
)
from climassay.cli.judge_probe import ablate, train
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError, ModelError

if TYPE_CHECKING:
    from climassay.judging.insertion import InsertMode
    from climassay.judging.ranking import Inserted, ItemRanking
    from climassay.judging.sorting import SortMethod

app = typer.Typer(no_args_is_help=True, help="Compare texts by a quality, rank them, and measure who judges well.")


@app.callback()
def group() -> None:
    """Compare texts by a quality, rank them, and measure who judges well."""


app.command()(benchmark)
app.command()(train)


@app.command()
@grouped
def compare(
    first: Annotated[str, typer.Argument(metavar="TEXT_A", help="A text, in quotes.")],
    second: Annotated[str, typer.Argument(metavar="TEXT_B", help="Another one.")],
    asked: QualityOptions,
    who: JudgeOptions,
    context: Annotated[str, typer.Option(help="Source that both texts were written from.")] = "",
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Which of two texts has more of a quality, and with what probability; asked in both orders."""
    import numpy as np

    from climassay.judging.asking import Questions
    from climassay.judging.items import Item, clean_text

    probe = who.load()
    quality = who.quality(probe, asked)
    texts = [clean_text(text) for text in (first, second)]
    if not all(texts):
        raise InputError("One of the two texts is empty: there is nothing to compare.")
    items = [Item(name, text, clean_text(context)) for name, text in zip("AB", texts, strict=True)]
    questions = Questions(quality, setup.prompts)
    config = {"texts": texts, "quality": quality.name, "model": setup.model, "probe": who.probe, "method": who.method}
    with (
        opened(setup, quiet=as_json, dtype=probe.provenance.dtype if probe is not None else None) as bench,
        bench.records.run(command="judge compare", config=config) as run,
    ):
        judge = who.judge(bench, run, questions, probe)
        found = judge.compare(items, np.array([[0, 1]]))
        if found.failed[0]:
            raise ModelError("The model gave no answer to the comparison.")
        odds, probability = float(found.log_odds[0]), float(found.probabilities[0])
        even = abs(odds) <= (probe.tie_band if probe is not None else 0.0)
        data = {
            "run": run.id,
            "quality": quality.name,
            "method": judge.name,
            "model": setup.model,
            "better": "equal" if even else "A" if odds > 0 else "B",
            "probability_a": probability,
            "log_odds": odds,
        }
        run.save_results("comparison", [data])
    if as_json:
        print_json(data)
        return
    verdict = "Both have about as much of it" if even else f"{data['better']} has more of it"
    stdout_console().print(f"{quality.name}: {verdict} (P(A) = {probability:.3f}, {judge.name}).", highlight=False)


@app.command()
@grouped
def rank(
    file: Annotated[Path, typer.Argument(help="Items: CSV, TSV, JSON, JSONL or Parquet, also .gz.")],
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    sort: Annotated[str, typer.Option(help="exact, beam, greedy, fitted, strengths or all-pairs.")] = "fitted",
    seed: Annotated[int, typer.Option(min=0, help="Shuffles the items before sorting.")] = 0,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the ranking as CSV, with whole texts.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Order the items of each group, best first, comparing only what the sort needs."""
    from climassay.judging.asking import Questions
    from climassay.judging.ranking import rank_items
    from climassay.judging.report import ranking_report, ranking_table
    from climassay.reporting import as_csv, as_rich

    check_sort(sort)
    probe = who.load()
    quality = who.quality(probe, asked)
    read = table.read(file, label=table.label, label_optional=True)
    questions = Questions(quality, setup.prompts)
    config = {
        "file": str(file),
        "quality": quality.name,
        "model": setup.model,
        "probe": who.probe,
        "method": who.method,
    }
    with (
        opened(setup, quiet=as_json, dtype=probe.provenance.dtype if probe is not None else None) as bench,
        bench.records.run(command="judge rank", config=config, seeds={"sort": seed}) as run,
        progress_bar(as_json) as progress,
    ):
        judge = who.judge(bench, run, questions, probe)
        task = progress.add_task(f"Comparing with {setup.model}", total=None)
        ranking = rank_items(
            read.items,
            judge,
            sort=cast("SortMethod", sort),
            seed=seed,
            on_progress=lambda done: progress.advance(task, done),
        )
        rows = _ranking_rows(ranking)
        run.save_results("ranking", rows)
    if csv_file:
        write_text(csv_file, as_csv(ranking_table(ranking, quality=quality.name, words=10**6)))
    if html:
        write_text(html, ranking_report(ranking, quality=quality.name, judge=judge.name, file=file.name).to_html())
    if as_json:
        counts = {"comparisons": ranking.comparisons, "possible": ranking.possible, "failed": ranking.failed}
        print_json({"run": run.id, "quality": quality.name, "method": judge.name, **counts, "items": rows})
        return
    tell_skipped(read)
    stdout_console().print(as_rich(ranking_table(ranking, quality=quality.name)))


def _ranking_rows(ranking: "ItemRanking") -> list[dict[str, Any]]:
    return [
        {
            "group": row.group,
            "place": row.place,
            "item": row.item.id,
            "text": row.item.text,
            "label": row.item.label,
            "strength": row.strength,
        }
        for row in ranking.rows
    ]


@app.command()
@grouped
def insert(
    file: Annotated[Path, typer.Argument(help="New items: CSV, TSV, JSON, JSONL or Parquet, also .gz.")],
    anchors: Annotated[Path, typer.Option(help="Labelled items, in a table with the same columns and --label.")],
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    samples: Annotated[int, typer.Option(min=1, help="Anchors of a label that an item is compared with.")] = 10,
    mode: Annotated[str, typer.Option(help="What counts as equal: band or three-way.")] = "band",
    truth: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of FILE with the true labels, to score the result.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the anchors drawn.")] = 0,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the labels as CSV, with whole texts.")] = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Give new items a label on an ordered scale, by comparing them with labelled anchors."""
    from climassay.judging.asking import Questions
    from climassay.judging.insertion import TIE_BAND
    from climassay.judging.ranking import insert_items
    from climassay.judging.report import insertion_table
    from climassay.reporting import as_csv, as_rich

    if table.label is None or table.levels is None:
        raise InputError(
            "Name the column of the anchors' labels with --label, and the labels with --levels low,...,high."
        )
    if mode not in ("band", "three-way"):
        raise InputError(f"--mode is band or three-way, not {mode!r}.")
    probe = who.load()
    quality = who.quality(probe, asked)
    labelled = table.read(anchors, label=table.label)
    read = table.read(file, label=truth, label_optional=True)
    questions = Questions(quality, setup.prompts)
    config = {
        "file": str(file),
        "anchors": str(anchors),
        "quality": quality.name,
        "model": setup.model,
        "probe": who.probe,
        "method": who.method,
        "mode": mode,
        "samples": samples,
    }
    with (
        opened(setup, quiet=as_json, dtype=probe.provenance.dtype if probe is not None else None) as bench,
        bench.records.run(command="judge insert", config=config, seeds={"anchors": seed}) as run,
        progress_bar(as_json) as progress,
    ):
        judge = who.judge(bench, run, questions, probe)
        task = progress.add_task(f"Comparing with {setup.model}", total=None)
        found = insert_items(
            read.items,
            labelled.items,
            labelled.levels,
            judge,
            samples=samples,
            mode=cast("InsertMode", mode),
            tie_band=probe.tie_band if probe is not None and probe.tie_band > 0 else TIE_BAND,
            seed=seed,
            on_progress=lambda done: progress.advance(task, done),
        )
        rows = _inserted_rows(found)
        run.save_results("labels", rows)
    if csv_file:
        write_text(csv_file, as_csv(insertion_table(found, words=10**6)))
    if as_json:
        print_json(
            {
                "run": run.id,
                "quality": quality.name,
                "method": judge.name,
                "levels": list(labelled.levels),
                "comparisons": found.comparisons,
                "failed": found.failed,
                "scores": found.scores,
                "items": rows,
            }
        )
        return
    tell_skipped(labelled)
    tell_skipped(read)
    stdout_console().print(as_rich(insertion_table(found)))
    _show_scores(found)


def _inserted_rows(found: "Inserted") -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [
        {"item": item.id, "text": item.text, **asdict(insertion)}
        for item, insertion in zip(found.items, found.insertions, strict=True)
    ]


def _show_scores(found: "Inserted") -> None:
    scores = found.scores
    if scores is not None:
        stdout_console().print(
            f"Right: {100 * scores.accuracy.value:.1f}% of {scores.accuracy.n} "
            f"({100 * scores.accuracy.interval.low:.1f}-{100 * scores.accuracy.interval.high:.1f}), always "
            f"{scores.baseline.label}: {100 * scores.baseline.accuracy:.1f}%, macro-F1 {scores.macro_f1:.3f}, balanced "
            f"accuracy {scores.balanced_accuracy:.3f}.",
            highlight=False,
        )
    stderr_console().print(f"{found.comparisons} comparisons, {found.failed} without an answer.", highlight=False)


app.command()(ablate)
