"""``climassay judge``: compare texts by a quality, rank them, and measure who judges well."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from climassay.cli.judge_benchmark import benchmark
from climassay.cli.judge_options import (
    LABELLED,
    JudgeOptions,
    ModelSetup,
    PairsOption,
    QualityOptions,
    SortOption,
    TableOptions,
    checked_sort,
    label_column,
    running_judge,
    tell_skipped,
)
from climassay.cli.judge_probe import ablate, train
from climassay.cli.learning_options import (
    HtmlOption,
    IncludeTrainedOption,
    LinesOption,
    SeedOption,
    counting,
    note,
    show,
    write_lines,
)
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, print_json, write_text
from climassay.errors import InputError, ModelError

if TYPE_CHECKING:
    from climassay.judging.anchor_labelling import InsertMode
    from climassay.judging.ranking import ItemRanking

app = typer.Typer(no_args_is_help=True, help="Compare texts by a quality, rank them, and measure who judges well.")

JudgeArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="A probe's file, or zero-shot, pairs, direct, direct-expected.")
]
ItemsArgument = Annotated[Path, typer.Argument(help="Items: CSV, TSV, JSON, JSONL or Parquet, also .gz.")]
CsvOption = Annotated[Path | None, typer.Option("--csv", help="Write the table as CSV, with whole texts.")]


@app.callback()
def group() -> None:
    """Compare texts by a quality, rank them, and measure who judges well."""


app.command()(benchmark)
app.command()(train)


@app.command()
@grouped
def evaluate(
    who: JudgeArgument,
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help=LABELLED)],
    table: TableOptions,
    asked: QualityOptions,
    include_trained: IncludeTrainedOption = False,
    pairs_per_item: PairsOption = None,
    seed: SeedOption = 0,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Score a judge on labelled items that it was not trained on, beside the constant and "longer is better"."""
    from dataclasses import replace

    from climassay.judging.benchmark import JudgeResult, evaluate_judge, result_row
    from climassay.judging.report import judge_tables

    named, config = JudgeOptions.named(who), {"file": str(labels)}
    read = table.read(labels, label=label_column(table, asked, named.resolve(asked)[1].name))
    with (
        running_judge("judge evaluate", named, asked, setup, config, seeds={"seed": seed}, quiet=as_json) as judge,
        counting(f"Comparing with {setup.model}", quiet=as_json) as advance,
    ):
        known = None if judge.probe is None or include_trained else judge.probe.provenance
        fresh = replace(read, items=tuple(one for one in read.items if known is None or not known.knows(one.text)))
        if not fresh.items:
            raise InputError(f"{who} was trained on every item of {labels}: give others, or --include-trained.")
        scores = evaluate_judge(
            fresh.items,
            judge.method,
            quality=judge.quality.name,
            band=0.0 if judge.probe is None else judge.probe.tie_band,
            pairs_per_item=pairs_per_item,
            seed=seed,
            on_progress=advance,
        )
        result = JudgeResult(judge.quality, scores, judge.cost, read.skipped)
        left_out = len(read.items) - len(fresh.items)
        data = {"run": judge.run.id, "file": str(labels), "model": setup.model, "left_out": left_out}
        judge.run.save_results("judges", [result_row(result)])
    if as_json:
        print_json({**data, **result_row(result)})
        return
    show(judge_tables([result]))
    tell_skipped(read)
    note(f"{left_out} items are left out: the probe was trained on them." if left_out else "")


@app.command()
@grouped
def apply(
    who: JudgeArgument,
    items: ItemsArgument,
    table: TableOptions,
    asked: QualityOptions,
    output: LinesOption = None,
    sort: SortOption = "fitted",
    seed: SeedOption = 0,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Order the items of each group, best first, by a probe or a method."""
    ranking, _, _ = _ranked("judge apply", items, table, asked, JudgeOptions.named(who), sort, seed, setup, as_json)
    write_lines(output, ranking.rows())


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

    from climassay.judging.items import Item, clean_text

    texts = [clean_text(text) for text in (first, second)]
    if not all(texts):
        raise InputError("One of the two texts is empty: there is nothing to compare.")
    items = [Item(name, text, clean_text(context)) for name, text in zip("AB", texts, strict=True)]
    with running_judge("judge compare", who, asked, setup, {"texts": texts}, quiet=as_json) as judge:
        found = judge.method.compare(items, np.array([[0, 1]]))
        if found.failed[0]:
            raise ModelError("The model gave no answer to the comparison.")
        odds, probability = float(found.log_odds[0]), float(found.probabilities[0])
        even = abs(odds) <= (judge.probe.tie_band if judge.probe is not None else 0.0)
        data = {
            "run": judge.run.id,
            "quality": judge.quality.name,
            "method": judge.method.name,
            "model": setup.model,
            "better": "equal" if even else "A" if odds > 0 else "B",
            "probability_a": probability,
            "log_odds": odds,
        }
        judge.run.save_results("comparison", [data])
    if as_json:
        print_json(data)
        return
    verdict = "Both have about as much of it" if even else f"{data['better']} has more of it"
    show((), f"{data['quality']}: {verdict} (P(A) = {probability:.3f}, {data['method']}).")


@app.command()
@grouped
def rank(
    file: ItemsArgument,
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    sort: SortOption = "fitted",
    seed: SeedOption = 0,
    csv_file: CsvOption = None,
    html: HtmlOption = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Order the items of each group, best first, comparing only what the sort needs."""
    from climassay.judging.report import ranking_report, ranking_table
    from climassay.reporting.results import write_table

    ranking, quality, judge = _ranked("judge rank", file, table, asked, who, sort, seed, setup, as_json)
    if csv_file:
        write_table(csv_file, ranking_table(ranking.rows(), quality=quality, words=None))
    if html:
        write_text(html, ranking_report(ranking, quality=quality, judge=judge, file=file.name).to_html())


def _ranked(
    command: str,
    file: Path,
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    sort: str,
    seed: int,
    setup: ModelSetup,
    as_json: bool,
) -> "tuple[ItemRanking, str, str]":
    """Rank items and print them; the ranking, its quality and who judged."""
    from climassay.judging.ranking import rank_items
    from climassay.judging.report import ranking_table

    chosen, read = checked_sort(sort), table.read(file, label=table.label, label_optional=True)
    with (
        running_judge(command, who, asked, setup, {"file": str(file)}, seeds={"sort": seed}, quiet=as_json) as judge,
        counting(f"Comparing with {setup.model}", quiet=as_json) as advance,
    ):
        ranking = rank_items(read.items, judge.method, sort=chosen, seed=seed, on_progress=advance)
        rows, quality, name = ranking.rows(), judge.quality.name, judge.method.name
        judge.run.save_results("ranking", rows)
    if as_json:
        counts = {"comparisons": ranking.comparisons, "possible": ranking.possible, "failed": ranking.failed}
        print_json({"run": judge.run.id, "quality": quality, "method": name, **counts, "items": rows})
    else:
        tell_skipped(read)
        show([ranking_table(rows, quality=quality, note=ranking.note)])
    return ranking, quality, name


@app.command()
@grouped
def insert(
    file: ItemsArgument,
    anchors: Annotated[Path, typer.Option(help="Labelled items, in a table with the same columns and --label.")],
    table: TableOptions,
    asked: QualityOptions,
    who: JudgeOptions,
    samples: Annotated[int, typer.Option(min=1, help="Anchors of a label that an item is compared with.")] = 10,
    mode: Annotated[str, typer.Option(help="What counts as equal: band or three-way.")] = "band",
    truth: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of FILE with the true labels, to score the result.")
    ] = None,
    seed: SeedOption = 0,
    csv_file: CsvOption = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Give new items a label on an ordered scale, by comparing them with labelled anchors."""
    from climassay.judging.anchor_labelling import TIE_BAND, insert_items
    from climassay.judging.report import insertion_table
    from climassay.reporting.results import write_table

    if table.label is None or table.levels is None:
        raise InputError(
            "Name the column of the anchors' labels with --label, and the labels with --levels low,...,high."
        )
    if mode not in ("band", "three-way"):
        raise InputError(f"--mode is band or three-way, not {mode!r}.")
    labelled = table.read(anchors, label=table.label)
    read = table.read(file, label=truth, label_optional=True)
    config = {"file": str(file), "anchors": str(anchors), "mode": mode, "samples": samples}
    with (
        running_judge("judge insert", who, asked, setup, config, seeds={"anchors": seed}, quiet=as_json) as judge,
        counting(f"Comparing with {setup.model}", quiet=as_json) as advance,
    ):
        found = insert_items(
            read.items,
            labelled.items,
            labelled.levels,
            judge.method,
            samples=samples,
            mode=cast("InsertMode", mode),
            tie_band=(judge.probe.tie_band if judge.probe is not None else 0.0) or TIE_BAND,
            seed=seed,
            on_progress=advance,
        )
        rows = found.rows()
        judge.run.save_results("labels", rows)
    if csv_file:
        write_table(csv_file, insertion_table(rows, words=None))
    if as_json:
        print_json(
            {
                "run": judge.run.id,
                "quality": judge.quality.name,
                "method": judge.method.name,
                "levels": list(labelled.levels),
                "comparisons": found.comparisons,
                "failed": found.failed,
                "scores": None if found.scores is None else found.scores.to_dict(),
                "items": rows,
            }
        )
        return
    tell_skipped(labelled, read)
    show([insertion_table(rows), *(() if found.scores is None else found.scores.tables())])
    note(f"{found.comparisons} comparisons, {found.failed} without an answer.")


app.command()(ablate)
