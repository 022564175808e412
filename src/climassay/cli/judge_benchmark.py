"""``climassay judge benchmark``."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from climassay.cli.judge_options import (
    Bench,
    KindChoice,
    ModelSetup,
    QualityOptions,
    TableOptions,
    numbers,
    opened,
)
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.judging.candidates import MethodName, ProbeSettings
    from climassay.judging.experiment import BenchmarkSettings, JudgeBenchmark, JudgeTask
    from climassay.judging.training import TrainedProbe
    from climassay.models.contract import Generator

FIGURES = ("accuracy_differing", "accuracy_three_way", "spearman", "kendall")


@grouped
def benchmark(
    file: Annotated[
        Path, typer.Argument(help="Labelled items: CSV, TSV, JSON, JSONL or Parquet, also .gz; or primer:claims.")
    ],
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
    seed: Annotated[int, typer.Option(min=0, help="Of folds, draws and bootstrap.")] = 0,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            help="Layer that probes read (-1: last), several side by side as 16,-1; repeat to have the best of several "
            "chosen on training items.  [default: four of the upper half]"
        ),
    ] = None,
    pairs_per_item: Annotated[
        int | None, typer.Option(min=1, help="Compare each item with so many others instead of all of its group.")
    ] = None,
    ties: Annotated[str, typer.Option(help="Training pairs of equal labels: drop, keep or three-way.")] = "drop",
    regularisation: Annotated[
        float | None, typer.Option(help="Inverse penalty C of probes; by default chosen by cross-validation.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(help="strengths, fitted, exact, beam, greedy or all-pairs.  [default: strengths, or fitted]"),
    ] = None,
    learning_curve: Annotated[
        str | None, typer.Option(metavar="SIZES", help="Numbers of labelled items, e.g. 10,20,50,100,200.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the accuracy table as CSV.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write all tables as Markdown.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="Write every item's place as JSONL.")] = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Agreement of judges with experts on unseen groups, beside the constant and "longer is better" baselines."""
    from dataclasses import replace

    from climassay.judging.experiment import benchmark_judges
    from climassay.models import OpenWeights

    settings = _settings(train_items, folds, seed, pairs_per_item, learning_curve, sort, layer, ties, regularisation)
    tasks = _tasks(file, table, asked)
    trained = None
    with opened(setup, quiet=as_json) as bench, progress_bar(as_json) as progress:

        def stage(what: str, steps: int) -> Any:
            task = progress.add_task(what, total=steps)
            return lambda done: progress.advance(task, done)

        settings = replace(settings, probe=with_layers(settings.probe, bench.model))
        done = benchmark_judges(
            tasks,
            _methods(method, isinstance(bench.model, OpenWeights)),
            bench.model,
            bench.records,
            bench.activations,
            settings=settings,
            prompts=setup.prompts,
            token_budget=setup.token_budget,
            use_cache=not setup.no_cache,
            config={"file": str(file)},
            stage=stage,
        )
        if html:
            trained = _evidence(bench, tasks[0], done, settings)
    _write_files(done, tasks, file, trained, csv_file, markdown, html, predictions)
    if as_json:
        print_json(_as_data(done, file))
    else:
        _show(done, tasks)


def probe_settings(layer: list[str] | None, ties: str, regularisation: float | None, seed: int) -> "ProbeSettings":
    """How probes are fitted, from the options.

    Raises:
        InputError: An option is out of its range.
    """
    from climassay.judging.candidates import ProbeSettings

    if ties not in ("drop", "keep", "three-way"):
        raise InputError(f"--ties is drop, keep or three-way, not {ties!r}.")
    if regularisation is not None and not (regularisation > 0 and math.isfinite(regularisation)):
        raise InputError(f"--regularisation is a positive number, not {regularisation}.")
    sets = tuple(numbers(text, "--layer") for text in dict.fromkeys(layer or []))
    return ProbeSettings(sets, regularisation, ties, seed)  # type: ignore[arg-type]


def with_layers(settings: "ProbeSettings", model: "Generator") -> "ProbeSettings":
    """The settings with the layers to choose among, where the user named none."""
    from dataclasses import replace

    from climassay.judging.judges import layer_choices

    return replace(settings, layers=layer_choices(model, settings.layers))


def _settings(
    train_items: int,
    folds: int,
    seed: int,
    pairs_per_item: int | None,
    sizes: str | None,
    sort: str | None,
    layer: list[str] | None,
    ties: str,
    regularisation: float | None,
) -> "BenchmarkSettings":
    from climassay.judging.experiment import BenchmarkSettings

    # With some of the pairs only, the list is long, and strengths would ask for all of them.
    chosen = sort or ("strengths" if pairs_per_item is None else "fitted")
    check_sort(chosen)
    wanted = tuple(sorted(numbers(sizes, "--learning-curve"))) if sizes is not None else ()
    if wanted and not 2 <= wanted[0] <= wanted[-1] <= train_items:
        raise InputError(f"--learning-curve takes sizes from 2 to --train-items ({train_items}).")
    probe = probe_settings(layer, ties, regularisation, seed)
    return BenchmarkSettings(train_items, folds, seed, pairs_per_item, wanted, chosen, probe)  # type: ignore[arg-type]


def check_sort(sort: str) -> None:
    """See that there is such a way of sorting.

    Raises:
        InputError: There is not.
    """
    from typing import get_args

    from climassay.judging.sorting import SortMethod

    if sort not in get_args(SortMethod):
        raise InputError(f"--sort is one of {', '.join(get_args(SortMethod))}, not {sort!r}.")


def _tasks(file: Path, table: TableOptions, asked: QualityOptions) -> "list[JudgeTask]":
    from climassay.judging.experiment import JudgeTask

    read = {}
    tasks = []
    for quality in asked.all():
        column = label_column(table, asked, quality.name)
        if column not in read:
            read[column] = table.read(file, label=column)
        tasks.append(JudgeTask(quality, read[column].items, read[column].skipped))
    return tasks


def label_column(table: TableOptions, asked: QualityOptions, aspect: str) -> str:
    """Column of the experts' labels: the one named, else the one that has the aspect's name.

    Raises:
        InputError: None is named, or one for several aspects.
    """
    if table.label is not None:
        if len(asked.aspect or ()) > 1:
            raise InputError("--label is one column, and several aspects are named: leave it out, or take one aspect.")
        return table.label
    if asked.quality is not None or asked.kind not in (None, KindChoice.text):
        raise InputError("Name the column of the experts' labels with --label.")
    return aspect


def _methods(wanted: list[str] | None, weights: bool) -> "list[MethodName]":
    from climassay.judging.candidates import METHODS, NEEDS_WEIGHTS

    names = list(dict.fromkeys(wanted or ["ppairs"]))
    if "all" in names:
        return [name for name in METHODS if weights or name not in NEEDS_WEIGHTS]
    return cast("list[MethodName]", names)


def _evidence(
    bench: Bench, task: "JudgeTask", done: "JudgeBenchmark", settings: "BenchmarkSettings"
) -> "TrainedProbe | None":
    """A probe of the first fold, for the picture; its activations are on disk."""
    from climassay.judging.asking import Questions
    from climassay.judging.folds import make_folds
    from climassay.judging.judges import layers_of
    from climassay.judging.training import PROBE_METHODS, train_probe

    method = next((name for name in PROBE_METHODS if any(r.scores.method == name for r in done.results)), None)
    layers = layers_of(settings.probe.layers)
    harvester = bench.harvester(Questions(task.quality, bench.setup.prompts), layers)
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
    from dataclasses import asdict

    from climassay.judging.experiment import result_row

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


def _show(done: "JudgeBenchmark", tasks: "list[JudgeTask]") -> None:
    from climassay.judging.report import judge_tables
    from climassay.reporting import as_rich

    console, note = stdout_console(), stderr_console()
    for table in judge_tables(done.results):
        console.print(as_rich(table))
    for task in tasks:
        if task.skipped:
            note.print(
                f"{task.quality.name}: {len(task.skipped)} rows left out, the first: {task.skipped[0]}.",
                highlight=False,
            )
    cost = done.cost
    note.print(
        f"Run {done.run}: {cost.stored} requests from disk, {cost.computed} computed in {cost.passes} passes; "
        f"{cost.tokens_computed} tokens where plain passes take {cost.tokens_two_pass}.",
        highlight=False,
    )


def _write_files(
    done: "JudgeBenchmark",
    tasks: "list[JudgeTask]",
    file: Path,
    trained: "TrainedProbe | None",
    csv_file: Path | None,
    markdown: Path | None,
    html: Path | None,
    predictions: Path | None,
) -> None:
    import json

    from climassay.judging.report import judge_report, judge_tables
    from climassay.reporting import as_csv, as_markdown

    tables = judge_tables(done.results)
    if csv_file:
        write_text(csv_file, as_csv(tables[0]))
    if markdown:
        write_text(markdown, "\n".join(as_markdown(table) for table in tables))
    if html:
        write_text(html, judge_report(done, tasks, file.name, trained).to_html())
    if predictions:
        lines = [
            json.dumps(
                {
                    "quality": result.scores.quality,
                    "wording": result.quality.wording,
                    "method": result.scores.method,
                    "item": item,
                    "place": int(place),
                },
                ensure_ascii=False,
            )
            for result in done.results
            for item, place in result.scores.order
        ]
        write_text(predictions, "".join(line + "\n" for line in lines))
