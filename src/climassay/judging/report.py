"""Judging in tables, figures and self-contained reports."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from climassay.judging.benchmark import JudgeBenchmark, JudgeResult, JudgeTask
from climassay.judging.ranking import shortened
from climassay.judging.training import TrainedProbe, picture_blocks
from climassay.learning.evaluation import reliability_plot
from climassay.reporting import (
    Axis,
    Dot,
    DotPlot,
    LinePlot,
    Point,
    Report,
    Section,
    Series,
    Table,
    counted,
)
from climassay.reporting.html import Block

_NONE = "-"
SHOWN_GROUPS = 5
"""Groups whose rankings a benchmark's report shows."""
Rows = Sequence[Mapping[str, Any]]


def judge_tables(results: Sequence[JudgeResult]) -> list[Table]:
    """Accuracy beside the baselines, rank correlation, and cost."""

    def table(title: str, headings: Sequence[str], cells: Callable[[JudgeResult], Sequence[str]], note: str) -> Table:
        rows = [(quality_name(one), one.scores.method, *cells(one)) for one in results]
        return Table.of(title, ["quality", "method", *headings], rows, left=2, grouped=1, note=note)

    def accuracy(result: JudgeResult) -> tuple[str, ...]:
        ours, longer = result.scores.agreement.accuracy_differing, result.scores.baselines["longer"]
        gain = result.scores.versus_longer.gain
        beside = longer.accuracy_differing.share
        return str(ours.n), ours.share, ours.interval, beside, *gain, str(result.scores.failed)

    def other_accuracies(result: JudgeResult) -> tuple[str, ...]:
        ours, beside = result.scores.agreement, result.scores.baselines
        three, near = ours.accuracy_three_way, ours.accuracy_nearly_equal_length
        constant, longer = (beside[name].accuracy_three_way.share for name in ("constant", "longer"))
        gain = result.scores.versus_longer_nearly_equal.gain[:2]
        return str(three.n), three.share, three.interval, constant, longer, str(near.n), near.share, *gain

    def correlation(result: JudgeResult) -> tuple[str, ...]:
        agreement, longer = result.scores.agreement, result.scores.baselines["longer"]
        cells: list[str] = [str(agreement.spearman.n)]
        for ours, theirs in ((agreement.spearman, longer.spearman), (agreement.kendall, longer.kendall)):
            cells += [_number(ours.value), ours.range, _number(theirs.value)]
        return tuple(cells)

    def cost(result: JudgeResult) -> tuple[str, ...]:
        one = result.cost
        ratio = f"{one.tokens_two_pass / one.tokens_computed:.1f}" if one.tokens_computed else _NONE
        counts = (one.computed, one.stored, one.passes, one.tokens_computed, one.tokens_two_pass)
        return *(f"{count:,}" for count in counts), ratio

    return [
        table(
            "Agreement with the experts on pairs of unseen items (%)",
            ["n", "right", "95% interval", "longer", "gain", "95% interval", "p", "failed"],
            accuracy,
            "right: of the n pairs with different labels, undecided and failed ones half; a constant answer is right "
            "on half of them. longer: 'the longer text is better' on the same pairs; gain: points above it, with the "
            "p-value of a paired bootstrap. Intervals: bootstrap over groups (over items where there is one group).",
        ),
        table(
            "Three ways, and where length cannot help (%)",
            ["n", "right", "95% interval", "const.", "longer", "equal\nlength", "right", "gain", "95% interval"],
            other_accuracies,
            "First: greater, equal or less over all n pairs, beside the best constant and length. Then: pairs that "
            "differ in quality and whose lengths are within 10%; gain: points above 'the longer text is better'.",
        ),
        table(
            "Rank correlation with the experts within groups",
            ["groups", "Spearman", "95% interval", "longer", "Kendall", "95% interval", "longer"],
            correlation,
            "Means over groups in which labels differ, after sorting by the method's preferences. longer: ranking by "
            "length. Where all items form one group, the folds' lists are ranked and the number is that of items.",
        ),
        table(
            "What the comparisons took",
            ["computed", "stored", "passes", "tokens", "plain tokens", "ratio"],
            cost,
            "computed, stored: requests computed now and served from disk. plain tokens: what a loop of whole passes "
            "computes, two for each ordered pair, one for each prompt of the others. Methods that read the same "
            "activations share one cost.",
        ),
    ]


def insertion_table(rows: Rows, *, words: int | None = 30) -> Table:
    """New items with the labels given to them and the way there.

    Args:
        rows: From :meth:`climassay.judging.Inserted.rows`.
        words: Maximum number of words of a text that are shown; None: all.
    """
    cells = [
        (
            str(row["item"]),
            shortened(row["text"], words),
            row["label"],
            ", ".join(f"{step['label']} {step['preference']:.2f}" for step in row["path"]),
            str(row["comparisons"]),
        )
        for row in rows
    ]
    note = (
        "compared with: labels in the order of the search, with the mean probability of having more of the quality "
        "than their anchors."
    )
    return Table.of("Labels", ["item", "text", "label", "compared with", "comparisons"], cells, left=4, note=note)


def quality_name(result: JudgeResult) -> str:
    """The quality, with its wording where that is not the first."""
    return result.scores.quality + (f", wording {result.quality.wording}" if result.quality.wording != 1 else "")


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def judge_sections(results: Sequence[JudgeResult]) -> list[Section]:
    """Figures and tables of a benchmark: agreement, and where there are any, learning and reliability curves."""
    qualities: dict[str, list[JudgeResult]] = {}
    for result in results:
        qualities.setdefault(quality_name(result), []).append(result)
    agreement: list[Block] = []
    learning: list[Block] = []
    reliability: list[Block] = []
    for quality, ours in qualities.items():
        dots = [
            Dot(result.scores.method, result.scores.method, right.value, right.low, right.high, longer.value)
            for result in ours
            if (right := result.scores.agreement.accuracy_differing).value is not None
            and right.low is not None
            and right.high is not None
            and (longer := result.scores.baselines["longer"].accuracy_differing)
        ]
        if dots:
            note = "Dots: accuracy on pairs that differ. Bars: 95% interval. Dashed tick: 'the longer text is better'."
            agreement.append(DotPlot(quality.capitalize(), tuple(dots), note=note))
        if (plot := _learning_plot(quality, ours)) is not None:
            learning.append(plot)
        curves = [(one.scores.method, one.scores.calibration) for one in ours if one.scores.calibration is not None]
        if curves:
            reliability.append(reliability_plot(f"Reliability, {quality}", curves))
    sections = [Section("Agreement", (*agreement, *judge_tables(results)))]
    if learning or reliability:
        sections.append(Section("Learning and calibration", (*learning, *reliability)))
    return sections


def _learning_plot(quality: str, results: list[JudgeResult]) -> Block | None:
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
        sections.append(Section("What the probe sees", picture_blocks(trained.picture)))
    sections.append(_orders(benchmark.results, tasks))
    return Report(
        title=f"{benchmark.model} as a judge of {file}",
        lead=f"{len(first.items)} items in {counted(groups, 'group')}; {settings.folds} folds that "
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
