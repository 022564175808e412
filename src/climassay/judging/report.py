"""Judging as figures and as self-contained reports."""

from collections.abc import Callable, Sequence

import numpy as np

from climassay.judging.experiment import JudgeBenchmark, JudgeResult, JudgeTask
from climassay.judging.ranking import ItemRanking
from climassay.judging.report_tables import evidence_table, judge_tables, quality_name, ranking_table, shortened
from climassay.judging.training import Picture, TrainedProbe, quality_of
from climassay.learning.evaluation import reliability_plot
from climassay.reporting import (
    Axis,
    Cloud,
    Dot,
    DotPlot,
    LinePlot,
    Point,
    Prose,
    Report,
    ScatterPlot,
    Section,
    Series,
    Table,
)
from climassay.reporting.html import Block

SHOWN_GROUPS = 5
"""Groups whose rankings a benchmark's report shows."""
MOST_POINTS = 1500
"""Points drawn in one picture; more only make the file large."""


def picture_blocks(picture: Picture, quality: str) -> tuple[Block, ...]:
    """Contrast differences on their principal components, from two sides (thesis, Figure C.1)."""
    lead = (
        "Each point is one ordered pair of training items: the difference between the model's state after the answer "
        "that names the first item and after the one that names the second, on its first principal components. Labels "
        "did not make the components; they only decide that right on component 1 speaks for the first item."
    )
    others = range(1, picture.coordinates.shape[1])
    return (Prose(lead), *(_scatter(picture, other, quality) for other in others))


def _scatter(picture: Picture, other: int, quality: str) -> ScatterPlot:
    points = picture.coordinates
    chosen = np.arange(len(points))
    if len(points) > MOST_POINTS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(points))[:MOST_POINTS])
    shown = points[chosen][:, [0, other]]
    kinds = ((1, f"first has more {quality}"), (-1, f"second has more {quality}"), (0, "equal labels"))
    clouds = [
        Cloud(name, tuple((float(x), float(y)) for x, y in shown[picture.truth[chosen] == sign].round(4)))
        for sign, name in kinds
    ]
    axes = [
        Axis.over(f"component {number + 1} ({picture.explained[number]:.0%} of the variance)", values.tolist())
        for number, values in zip((0, other), shown.T, strict=True)
    ]
    drawn = "" if len(chosen) == len(points) else f"{len(chosen)} of {len(points)} pairs, drawn at random."
    return ScatterPlot(
        f"Components 1 and {other + 1}", tuple(cloud for cloud in clouds if cloud.points), axes[0], axes[1], note=drawn
    )


def path_plot(trained: TrainedProbe) -> LinePlot:
    """Held-out loss for each regularisation; the probe must have been fitted with a choice of them."""
    assert trained.path is not None
    points = tuple(Point(c, loss) for c, loss in zip(trained.path.values, trained.path.losses, strict=True))
    decades = [c for c in trained.path.values if abs(np.log10(c) - round(np.log10(c))) < 1e-6] or trained.path.values
    reach = (min(trained.path.values), max(trained.path.values))
    x = Axis("regularisation C (larger: looser)", reach[0] / 1.5, reach[1] * 1.5, tuple(decades), logarithmic=True)
    y = Axis.over("held-out log-loss (nats)", [0.0, *(min(loss, 3.0) for loss in trained.path.losses)])
    capped = tuple(Point(p.x, min(p.y, 3.0)) for p in points)
    guess = Series("a coin", (Point(reach[0], float(np.log(2))), Point(reach[1], float(np.log(2)))), reference=True)
    note = f"Chosen: C = {trained.path.chosen:g}."
    return LinePlot("Choice of the regularisation", (Series("probe", capped), guess), x, y, note=note)


def judge_sections(results: Sequence[JudgeResult]) -> list[Section]:
    """Figures and tables of a benchmark: agreement, and where there are any, learning and reliability curves."""
    qualities: dict[str, list[JudgeResult]] = {}
    for result in results:
        qualities.setdefault(quality_name(result), []).append(result)

    def each(plot: Callable[[str, list[JudgeResult]], Block | None]) -> list[Block]:
        plots = (plot(quality, ours) for quality, ours in qualities.items())
        return [one for one in plots if one is not None]

    sections = [Section("Agreement", (*each(_agreement_plot), *judge_tables(results)))]
    if curves := (*each(_learning_plot), *each(_reliability_plot)):
        sections.append(Section("Learning and calibration", curves))
    return sections


def _agreement_plot(quality: str, results: list[JudgeResult]) -> Block | None:
    """Accuracy on differing pairs with intervals."""
    dots = [
        Dot(result.scores.method, result.scores.method, ours.value, ours.low, ours.high, longer.value)
        for result in results
        if (ours := result.scores.agreement.accuracy_differing).value is not None
        and ours.low is not None
        and ours.high is not None
        and (longer := result.scores.baselines["longer"].accuracy_differing)
    ]
    note = "Dots: accuracy on pairs that differ. Bars: 95% interval. Dashed tick: 'the longer text is better'."
    return DotPlot(quality.capitalize(), tuple(dots), note=note) if dots else None


def _learning_plot(quality: str, results: list[JudgeResult]) -> Block | None:
    """Accuracy against labelled items."""
    ours = [result for result in results if result.scores.learning_curve]
    if not ours:
        return None
    series = [
        Series(
            result.scores.method,
            tuple(
                Point(point.items, figure.value, figure.low, figure.high)
                for point in result.scores.learning_curve
                if (figure := point.accuracy_differing).value is not None
            ),
        )
        for result in ours
    ]
    x = Axis.at("labelled items", [point.x for one in series for point in one.points])
    longer = ours[0].scores.baselines["longer"].accuracy_differing.value
    if longer is not None:
        line = (Point(x.ticks[0], longer), Point(x.ticks[-1], longer))
        series.append(Series("longer text", line, reference=True))
    values = [v for one in series for p in one.points for v in (p.y, p.low, p.high) if v is not None]
    y = Axis.over("accuracy on pairs that differ", values, percent=True)
    return LinePlot(f"Learning curve, {quality}", tuple(series), x, y)


def _reliability_plot(quality: str, results: list[JudgeResult]) -> Block | None:
    curves = [
        (result.scores.method, result.scores.calibration) for result in results if result.scores.calibration is not None
    ]
    return reliability_plot(f"Reliability, {quality}", curves) if curves else None


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
    sections = judge_sections(benchmark.results)
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
    table = ranking_table(ranking.to_rows(), quality=quality, words=80, note=ranking.note)
    lead = f"{len(ranking.rows)} items, best first, as {judge} judges them."
    return Report(f"{file} by {quality}", lead, (Section("Ranking", (table,)),))


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
