"""``climassay judge benchmark``."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from climassay.cli.judge_options import (
    LABELLED,
    EvaluationResources,
    ModelSetup,
    PairsOption,
    QualityOptions,
    RegularisationOption,
    TableOptions,
    TiesOption,
    checked_sort,
    label_column,
    opened,
    probe_settings,
)
from climassay.cli.learning_options import HtmlOption, LayerOption, SeedOption, note, numbers, show, write_lines
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, print_json, progress_bar, write_text
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.judging.benchmark import BenchmarkSettings, JudgeBenchmark, JudgeTask
    from climassay.judging.candidates import MethodName
    from climassay.judging.training import TrainedProbe

FIGURES = ("accuracy_differing", "accuracy_three_way", "spearman", "kendall")


@grouped
def benchmark(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help=LABELLED)],
    table: TableOptions,
    asked: QualityOptions,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="direct, direct-expected, pairs, zero-shot, ppairs, ppairs-length, principal, pointwise, "
            "pointwise-length or all; repeat.  [default: ppairs]"
        ),
    ] = None,
    train_items: Annotated[int, typer.Option(min=2, help="Labelled items to learn from in each fold.")] = 100,
    folds: Annotated[int, typer.Option(min=2, help="Folds; they share no group.")] = 3,
    seed: SeedOption = 0,
    layer: LayerOption = None,
    pairs_per_item: PairsOption = None,
    ties: TiesOption = "drop",
    regularisation: RegularisationOption = None,
    sort: Annotated[
        str | None,
        typer.Option(help="strengths, fitted, exact, beam, greedy or all-pairs.  [default: strengths, or fitted]"),
    ] = None,
    learning_curve: Annotated[
        str | None, typer.Option(metavar="SIZES", help="Numbers of labelled items, e.g. 10,20,50,100,200.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the accuracy table as CSV.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write all tables as Markdown.")] = None,
    html: HtmlOption = None,
    predictions: Annotated[Path | None, typer.Option(help="Write every item's place (.jsonl, .csv, .xlsx).")] = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Agreement of judges with experts on unseen groups, beside the constant and "longer is better" baselines.

    Without --layer, probes choose among four layers of the upper half.
    """
    from climassay.judging.benchmark import BenchmarkSettings, JudgeTask, benchmark_judges
    from climassay.judging.candidates import METHODS, NEEDS_WEIGHTS
    from climassay.judging.judges import layer_choices
    from climassay.judging.report import judge_report, judge_tables
    from climassay.models import OpenWeights
    from climassay.reporting import as_markdown
    from climassay.reporting.results import write_table

    # With some of the pairs only, the list is long, and strengths would ask for all of them.
    chosen = checked_sort(sort or ("strengths" if pairs_per_item is None else "fitted"))
    sizes = () if learning_curve is None else tuple(sorted(numbers(learning_curve, "--learning-curve")))
    if sizes and not 2 <= sizes[0] <= sizes[-1] <= train_items:
        raise InputError(f"--learning-curve takes sizes from 2 to --train-items ({train_items}).")
    probes = probe_settings(layer, ties, regularisation, seed)
    settings = BenchmarkSettings(train_items, folds, seed, pairs_per_item, sizes, chosen, probes)
    tasks, read = [], {}
    for quality in asked.all():
        column = label_column(table, asked, quality.name)
        if column not in read:
            read[column] = table.read(labels, label=column)
        tasks.append(JudgeTask(quality, read[column].items, read[column].skipped))
    trained = None
    with opened(setup, quiet=as_json) as resources, progress_bar(as_json) as progress:

        def stage(what: str, steps: int) -> Any:
            task = progress.add_task(what, total=steps)
            return lambda done: progress.advance(task, done)

        weights = isinstance(resources.model, OpenWeights)
        names = list(dict.fromkeys(method or ["ppairs"]))
        if "all" in names:
            names = [name for name in METHODS if weights or name not in NEEDS_WEIGHTS]
        settings = replace(settings, probe=replace(probes, layers=layer_choices(resources.model, probes.layers)))
        done = benchmark_judges(
            tasks,
            cast("list[MethodName]", names),
            resources.model,
            resources.records,
            resources.activations,
            settings=settings,
            prompts=setup.prompts,
            token_budget=setup.token_budget,
            use_cache=not setup.no_cache,
            config={"file": str(labels)},
            stage=stage,
        )
        if html:
            trained = _evidence(resources, tasks[0], done, settings)
    tables = judge_tables(done.results)
    if csv_file:
        write_table(csv_file, tables[0])
    if markdown:
        write_text(markdown, "\n".join(map(as_markdown, tables)))
    if html:
        write_text(html, judge_report(done, tasks, labels.name, trained).to_html())
    places = (
        {
            "quality": result.scores.quality,
            "wording": result.quality.wording,
            "method": result.scores.method,
            "item": item,
            "place": int(place),
        }
        for result in done.results
        for item, place in result.scores.order
    )
    write_lines(predictions, places)
    if as_json:
        print_json(_as_data(done, labels))
        return
    show(tables)
    for one in tasks:
        if one.skipped:
            note(f"{one.quality.name}: {len(one.skipped)} rows left out, the first: {one.skipped[0]}.")
    cost = done.cost
    note(
        f"Run {done.run}: {cost.stored} requests from disk, {cost.computed} computed in {cost.passes} passes; "
        f"{cost.tokens_computed} tokens where plain passes take {cost.tokens_two_pass}."
    )


def _evidence(
    resources: EvaluationResources, task: "JudgeTask", done: "JudgeBenchmark", settings: "BenchmarkSettings"
) -> "TrainedProbe | None":
    """A probe of the first fold, for the picture; its activations are on disk."""
    from climassay.judging.candidates import PROBE_METHODS, make_folds
    from climassay.judging.judges import layers_of
    from climassay.judging.prompts import Questions
    from climassay.judging.training import train_probe

    method = next((name for name in PROBE_METHODS if any(r.scores.method == name for r in done.results)), None)
    layers = layers_of(settings.probe.layers)
    harvester = resources.harvester(Questions(task.quality, resources.setup.prompts), layers)
    if method is None or harvester is None:
        return None
    fold = make_folds(
        task.items,
        train_items=settings.train_items,
        folds=settings.folds,
        pairs_per_item=settings.pairs_per_item,
        seed=settings.seed,
    )[0]
    return train_probe(task.items, harvester, method=method, settings=settings.probe, pairs=fold.train_pairs)


def _as_data(done: "JudgeBenchmark", file: Path) -> dict[str, Any]:
    """One result flat, several as a list."""
    from climassay.judging.benchmark import result_row

    settings = done.settings
    head = {
        "run": done.run,
        "file": str(file),
        "model": done.model,
        "fingerprint": done.fingerprint,
        "dtype": done.dtype,
        "seed": settings.seed,
        "train_items": settings.train_items,
        "folds": settings.folds,
    }
    rows = [result_row(result) for result in done.results]
    if len(rows) == 1:
        return {**rows[0], **head}
    spread = _spread(rows)
    return {**head, **asdict(done.cost), "results": rows, **({"spread_over_wordings": spread} if spread else {})}


def _spread(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How far the figures move when only the wording of the prompts changes."""
    found = []
    for quality, method in dict.fromkeys((row["quality"], row["method"]) for row in rows):
        ours = [row for row in rows if (row["quality"], row["method"]) == (quality, method)]
        if len(ours) < 2:
            continue
        entry: dict[str, Any] = {"quality": quality, "method": method, "wordings": [row["wording"] for row in ours]}
        for name in FIGURES:
            values = [row[name]["value"] for row in ours if row[name]["value"] is not None]
            if values:
                entry[name] = {"mean": sum(values) / len(values), "lowest": min(values), "highest": max(values)}
        found.append(entry)
    return found
