"""Judging as self-contained reports."""

from collections.abc import Sequence

from climassay.judging.experiment import JudgeBenchmark, JudgeResult, JudgeTask
from climassay.judging.ranking import ItemRanking
from climassay.judging.report_plots import (
    agreement_plots,
    learning_plots,
    path_plot,
    picture_blocks,
    reliability_plot,
    reliability_plots,
)
from climassay.judging.report_tables import (
    ablation_table,
    evidence_table,
    insertion_table,
    judge_tables,
    ranking_table,
    shortened,
)
from climassay.judging.training import TrainedProbe, quality_of
from climassay.reporting import Report, Section, Table
from climassay.reporting.html import Block

SHOWN_GROUPS = 5
"""Groups whose rankings a benchmark's report shows."""

__all__ = [
    "ablation_table",
    "evidence_table",
    "insertion_table",
    "judge_report",
    "judge_tables",
    "ranking_report",
    "ranking_table",
    "training_report",
]


def judge_report(
    benchmark: JudgeBenchmark, tasks: Sequence[JudgeTask], file: str, trained: TrainedProbe | None = None
) -> Report:
    """A benchmark as a report.

    Args:
        benchmark: Its results.
        tasks: What was judged, for the texts of the rankings.
        file: Name of the data, for the title.
        trained: A probe trained on the first quality, for the picture of its contrast differences.
    """
    settings = benchmark.settings
    first = tasks[0]
    groups = len({item.group for item in first.items})
    sections = [
        Section("Agreement", (*agreement_plots(benchmark.results), *judge_tables(benchmark.results))),
    ]
    curves = [*learning_plots(benchmark.results), *reliability_plots(benchmark.results)]
    if curves:
        sections.append(Section("Learning and calibration", tuple(curves)))
    if trained is not None:
        sections.append(Section("What the probe sees", picture_blocks(trained.picture, first.quality.name)))
    sections.append(_orders(benchmark.results, tasks))
    return Report(
        title=f"{benchmark.model} as a judge of {file}",
        lead=f"{len(first.items)} items in {groups} group{'s' if groups != 1 else ''}; {settings.folds} folds that "
        f"share no {'group' if groups > 1 else 'item'}, at most {settings.train_items} labelled items to learn from in "
        "each.",
        sections=tuple(sections),
        facts=(
            ("Run", benchmark.run),
            ("Model fingerprint", benchmark.fingerprint),
            ("Number format", benchmark.dtype or "-"),
            ("Seed", str(settings.seed)),
            ("Tokens", f"{benchmark.cost.tokens_computed:,} computed, {benchmark.cost.tokens_two_pass:,} plain"),
        ),
    )


def training_report(trained: TrainedProbe, items_from: str) -> Report:
    """A trained probe and its evidence as a report."""
    source = trained.probe.provenance
    quality = quality_of(source).name
    blocks: list[Block] = [evidence_table(trained)]
    if trained.calibration is not None:
        blocks.append(reliability_plot("Reliability on held-out pairs", (("probe", trained.calibration),)))
    if trained.path is not None:
        blocks.append(path_plot(trained))
    return Report(
        title=f"A probe for {quality}",
        lead=f"Trained on {trained.n_items} labelled items in {trained.n_groups} "
        f"group{'s' if trained.n_groups != 1 else ''} of {items_from} ({trained.n_pairs} pairs), on {source.model}.",
        sections=(
            Section("Held-out evidence", tuple(blocks)),
            Section("What the probe sees", picture_blocks(trained.picture, quality)),
        ),
        facts=(
            ("Method", source.method),
            ("Layers", ", ".join(map(str, source.layers))),
            ("Regularisation C", "-" if source.regularisation is None else f"{source.regularisation:g}"),
            ("Template", f"{source.template} {source.template_sha256}"),
            ("Model fingerprint", source.fingerprint),
            ("Number format", source.dtype or "-"),
            ("Failed requests", str(trained.failed)),
        ),
    )


def ranking_report(ranking: ItemRanking, *, quality: str, judge: str, file: str) -> Report:
    """A ranking as a report."""
    return Report(
        title=f"{file} by {quality}",
        lead=f"{len(ranking.rows)} items, best first, as {judge} judges them.",
        sections=(Section("Ranking", (ranking_table(ranking, quality=quality, words=80),)),),
    )


def _orders(results: Sequence[JudgeResult], tasks: Sequence[JudgeTask]) -> Section:
    """The first groups as the best-agreeing method of the first quality ranks them."""
    ours = [result for result in results if result.quality == tasks[0].quality]
    best = max(ours, key=lambda result: result.scores.agreement.accuracy_differing.value or 0.0)
    items = {item.id: item for item in tasks[0].items}
    groups = list(dict.fromkeys(item.group for item in tasks[0].items))[:SHOWN_GROUPS]
    order = {name: number for number, name in enumerate(groups)}
    shown = [(items[name], place) for name, place in best.scores.order if items[name].group in order]
    shown.sort(key=lambda entry: (order[entry[0].group], entry[1]))
    rows = [
        (item.group or "-", f"{place:g}", item.id, shortened(item.text, 40), f"{item.label:g}")
        for item, place in shown[:100]
    ]
    table = Table.of(
        f"Ranking by {tasks[0].quality.name} ({best.scores.method})",
        ["group", "place", "item", "text", "label"],
        rows,
        left=4,
        note=f"The first {SHOWN_GROUPS} groups, each ranked by a probe or prompt that saw none of its labels.",
    )
    return Section("Ranking", (table,))
