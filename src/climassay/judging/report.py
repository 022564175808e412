"""Judging in tables, figures and self-contained reports."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from climassay.judging.benchmark import JudgeBenchmark, JudgeResult, JudgeTask
from climassay.judging.ranking import truncate_words
from climassay.judging.training import TrainedProbe, projection_blocks
from climassay.learning.evaluation import reliability_plot
from climassay.reporting import Axis, Dot, DotPlot, LinePlot, Point, Report, Section, Series, Table, counted, percent
from climassay.reporting.html import Block

_NONE = "-"
MAX_SHOWN_GROUPS = 5
"""Maximum number of groups whose rankings the report of a benchmark shows."""
Rows = Sequence[Mapping[str, Any]]


def judge_tables(results: Sequence[JudgeResult]) -> list[Table]:
    """Return tables of accuracy compared with the baselines, of rank correlation, and of cost."""

    def create_table(
        title: str, headings: Sequence[str], cells: Callable[[JudgeResult], Sequence[str]], note: str
    ) -> Table:
        rows = [(quality_name(result), result.scores.method, *cells(result)) for result in results]
        return Table.of(title, ["quality", "method", *headings], rows, left_columns=2, grouped=1, note=note)

    def format_accuracies(result: JudgeResult) -> tuple[str, ...]:
        accuracy_estimate, longer = result.scores.agreement.accuracy_differing, result.scores.baselines["longer"]
        gain = result.scores.versus_longer.gain
        baseline = longer.accuracy_differing.share
        return (
            str(accuracy_estimate.n),
            accuracy_estimate.share,
            accuracy_estimate.interval,
            baseline,
            *gain,
            str(result.scores.failed),
        )

    def format_other_accuracies(result: JudgeResult) -> tuple[str, ...]:
        agreement, baselines = result.scores.agreement, result.scores.baselines
        three_way, nearly_equal = agreement.accuracy_three_way, agreement.accuracy_nearly_equal_length
        constant_share, longer_share = (baselines[name].accuracy_three_way.share for name in ("constant", "longer"))
        gain = result.scores.versus_longer_nearly_equal.gain[:2]
        return (
            str(three_way.n),
            three_way.share,
            three_way.interval,
            constant_share,
            longer_share,
            str(nearly_equal.n),
            nearly_equal.share,
            *gain,
        )

    def format_correlations(result: JudgeResult) -> tuple[str, ...]:
        agreement, longer = result.scores.agreement, result.scores.baselines["longer"]
        cells: list[str] = [str(agreement.spearman.n)]
        for correlation_estimate, baseline in (
            (agreement.spearman, longer.spearman),
            (agreement.kendall, longer.kendall),
        ):
            cells += [
                _format_number(correlation_estimate.value),
                correlation_estimate.range,
                _format_number(baseline.value),
            ]
        return tuple(cells)

    def format_cost(result: JudgeResult) -> tuple[str, ...]:
        cost = result.cost
        ratio = f"{cost.tokens_two_pass / cost.tokens_computed:.1f}" if cost.tokens_computed else _NONE
        counts = (cost.computed, cost.stored, cost.passes, cost.tokens_computed, cost.tokens_two_pass)
        return *(f"{count:,}" for count in counts), ratio

    def format_published(result: JudgeResult) -> tuple[str, ...]:
        scores = result.scores.as_published
        if scores is None:
            return (_NONE,) * 7
        counts = str(scores.accuracy.n), scores.accuracy.share, scores.accuracy.interval, percent(scores.constant)
        return *counts, str(scores.spearman.n), _format_number(scores.spearman.value), scores.spearman.range

    leaky_table = create_table(
        "Leaky, only to compare with the thesis",
        ["n", "right (%)", "95% interval", "const.", "groups", "Spearman", "95% interval"],
        format_published,
        "Ordered pairs are split at random: mirror images and other pairs of the same items are in training, so these "
        "figures are upper bounds, and random labels would look learnable, too. Ties count as not greater, as the "
        "constant answers. ppairs: last layer. Spearman: beam search over the test pairs.",
    )
    return [
        create_table(
            "Agreement with the experts on pairs of unseen items (%)",
            ["n", "right", "95% interval", "longer", "gain", "95% interval", "p", "failed"],
            format_accuracies,
            "right: of the n pairs with different labels, undecided and failed ones half; a constant answer is right "
            "on half of them. longer: 'the longer text is better' on the same pairs; gain: points above it, with the "
            "p-value of a paired bootstrap. Intervals: bootstrap over groups (over items where there is one group).",
        ),
        create_table(
            "Three ways, and where length cannot help (%)",
            ["n", "right", "95% interval", "const.", "longer", "equal\nlength", "right", "gain", "95% interval"],
            format_other_accuracies,
            "First: greater, equal or less over all n pairs, beside the best constant and length. Then: pairs that "
            "differ in quality and whose lengths are within 10%; gain: points above 'the longer text is better'.",
        ),
        create_table(
            "Rank correlation with the experts within groups",
            ["groups", "Spearman", "95% interval", "longer", "Kendall", "95% interval", "longer"],
            format_correlations,
            "Means over groups in which labels differ, after sorting by the method's preferences. longer: ranking by "
            "length. Where all items form one group, the folds' lists are ranked and the number is that of items.",
        ),
        create_table(
            "What the comparisons took",
            ["computed", "stored", "passes", "tokens", "plain tokens", "ratio"],
            format_cost,
            "computed, stored: requests computed now and served from disk. plain tokens: what a loop of whole passes "
            "computes, two for each ordered pair, one for each prompt of the others. Methods that read the same "
            "activations share one cost.",
        ),
        *([leaky_table] if any(result.scores.as_published is not None for result in results) else []),
    ]


def insertion_table(rows: Rows, *, words: int | None = 30) -> Table:
    """Return a table of new items with their labels and search paths.

    Args:
        rows: Rows of :meth:`climassay.judging.InsertionResult.labels`.
        words: Maximum number of words of a text; longer texts are truncated, unless this is None.
    """
    cells = [
        (
            str(row["item"]),
            truncate_words(row["text"], words),
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
    return Table.of(
        "Labels", ["item", "text", "label", "compared with", "comparisons"], cells, left_columns=4, note=note
    )


def quality_name(result: JudgeResult) -> str:
    """Return the name of the quality, followed by the number of its wording unless that is 1."""
    return result.scores.quality + (f", wording {result.quality.wording}" if result.quality.wording != 1 else "")


def _format_number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def judge_sections(results: Sequence[JudgeResult]) -> list[Section]:
    """Return sections with figures and tables of agreement and, if measured, of the learning curve and calibration."""
    qualities: dict[str, list[JudgeResult]] = {}
    for result in results:
        qualities.setdefault(quality_name(result), []).append(result)
    agreement_blocks: list[Block] = []
    learning_blocks: list[Block] = []
    reliability_blocks: list[Block] = []
    for quality, quality_results in qualities.items():
        dots = [
            Dot(
                result.scores.method,
                result.scores.method,
                accuracy.value,
                accuracy.low,
                accuracy.high,
                baseline_accuracy.value,
            )
            for result in quality_results
            if (accuracy := result.scores.agreement.accuracy_differing).value is not None
            and accuracy.low is not None
            and accuracy.high is not None
            and (baseline_accuracy := result.scores.baselines["longer"].accuracy_differing)
        ]
        if dots:
            note = "Dots: accuracy on pairs that differ. Bars: 95% interval. Dashed tick: 'the longer text is better'."
            agreement_blocks.append(DotPlot(quality.capitalize(), tuple(dots), note=note))
        if (plot := _make_learning_plot(quality, quality_results)) is not None:
            learning_blocks.append(plot)
        curves = [
            (result.scores.method, result.scores.calibration)
            for result in quality_results
            if result.scores.calibration is not None
        ]
        if curves:
            reliability_blocks.append(reliability_plot(f"Reliability, {quality}", curves))
    sections = [Section("Agreement", (*agreement_blocks, *judge_tables(results)))]
    if learning_blocks or reliability_blocks:
        sections.append(Section("Learning and calibration", (*learning_blocks, *reliability_blocks)))
    return sections


def _make_learning_plot(quality: str, results: list[JudgeResult]) -> Block | None:
    results_with_curve = [result for result in results if result.scores.learning_curve]
    if not results_with_curve:
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
        for result in results_with_curve
    ]
    x = Axis.logarithmic_at("labelled items", [point.x for line in series for point in line.points])
    longer_accuracy = results_with_curve[0].scores.baselines["longer"].accuracy_differing.value
    if longer_accuracy is not None:
        end_points = (Point(x.ticks[0], longer_accuracy), Point(x.ticks[-1], longer_accuracy))
        series.append(Series("longer text", end_points, reference=True))
    values = [v for line in series for p in line.points for v in (p.y, p.low, p.high) if v is not None]
    y = Axis.over("accuracy on pairs that differ", values, percent=True)
    return LinePlot(f"Learning curve, {quality}", tuple(series), x, y)


def judge_report(
    benchmark: JudgeBenchmark, tasks: Sequence[JudgeTask], file: str, trained: TrainedProbe | None = None
) -> Report:
    """Return the report of a benchmark.

    Args:
        benchmark: Results.
        tasks: Judged items, whose texts the rankings show.
        file: Name of the file of items, for the title.
        trained: Probe trained on the first quality, whose contrast differences are shown as scatter plots.
    """
    settings = benchmark.settings
    first_task = tasks[0]
    n_groups = len({item.group for item in first_task.items})
    sections = judge_sections(benchmark.results)
    if trained is not None:
        sections.append(
            Section(
                "What the probe sees",
                projection_blocks(trained.projection, trained.probe.provenance.settings["method"]),
            )
        )
    sections.append(_make_ranking_section(benchmark.results, tasks))
    return Report(
        title=f"{benchmark.model} as a judge of {file}",
        lead=f"{len(first_task.items)} items in {counted(n_groups, 'group')}; {settings.folds} folds that "
        f"share no {'group' if n_groups > 1 else 'item'}, at most {settings.train_items} labelled items to learn from "
        "in each.",
        sections=tuple(sections),
        facts=(
            ("Run", benchmark.run),
            ("Model fingerprint", benchmark.fingerprint),
            ("Number format", benchmark.dtype or "-"),
            ("Seed", str(settings.seed)),
            ("Tokens", f"{benchmark.cost.tokens_computed:,} computed, {benchmark.cost.tokens_two_pass:,} plain"),
        ),
    )


def _make_ranking_section(results: Sequence[JudgeResult], tasks: Sequence[JudgeTask]) -> Section:
    """Return a section with the rankings of the first groups by the most accurate method for the first quality."""
    quality_results = [result for result in results if result.quality == tasks[0].quality]
    best_result = max(quality_results, key=lambda result: result.scores.agreement.accuracy_differing.value or 0.0)
    items = {item.id: item for item in tasks[0].items}
    groups = list(dict.fromkeys(item.group for item in tasks[0].items))[:MAX_SHOWN_GROUPS]
    group_order = {name: number for number, name in enumerate(groups)}
    ranks = [(items[name], rank) for name, rank in best_result.scores.order if items[name].group in group_order]
    ranks.sort(key=lambda entry: (group_order[entry[0].group], entry[1]))
    rows = [
        (item.group or "-", f"{rank:g}", item.id, truncate_words(item.text, 40), f"{item.label:g}")
        for item, rank in ranks[:100]
    ]
    table = Table.of(
        f"Ranking by {tasks[0].quality.name} ({best_result.scores.method})",
        ["group", "rank", "item", "text", "label"],
        rows,
        left_columns=4,
        note=f"The first {MAX_SHOWN_GROUPS} groups, each ranked by a probe or prompt that saw none of its labels.",
    )
    return Section("Ranking", (table,))
