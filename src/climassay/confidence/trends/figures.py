"""Trends as figures."""

import re
from statistics import median

from climassay.confidence.topics import OUTSIDE
from climassay.confidence.trends.analysis import TrendAnalysis
from climassay.confidence.trends.scores import TopicScore
from climassay.confidence.vocabulary import TAGS
from climassay.reporting import (
    Axis,
    Category,
    Cloud,
    Dot,
    DotPlot,
    HeatMap,
    Label,
    ScatterPlot,
    StackedBar,
    StackedBars,
)
from climassay.statistics import Interval

MOST_POINTS = 20_000
"""On a map; some 14 bytes each. Of more, every k-th by the order of ids is drawn, and the note says so."""
_CLEAR = 0.05
_CLEARNESS = ("clear after Holm's correction", "not clear")
_MOST_COLUMNS = 5
"""As many as there are colours."""
_TAG_PLACES = (0.0, 0.25, 0.5, 0.75, 1.0)


def score_plot(analysis: TrendAnalysis) -> DotPlot:
    """Topics from the most to the least confident, over all columns."""
    scores = [one for one in analysis.scores.by_topic if one.interval is not None]
    overall = analysis.scores.overall.value
    dots = [
        _dot(analysis.model.name(one.topic or 0), "all", one, overall) for one in sorted(scores, key=lambda s: -s.value)
    ]
    note = "Bars: 95% interval over sections. Dashes: mean of all statements."
    return _plot("Score by topic", dots, note)


def column_plot(analysis: TrendAnalysis) -> DotPlot:
    """Topics in each column, side by side."""
    cells, sizes = analysis.scores.cells, {one.column: one.n for one in analysis.scores.by_column}
    largest = sorted(analysis.cases.columns, key=lambda column: -sizes[column])[:_MOST_COLUMNS]
    columns = tuple(column for column in analysis.cases.columns if column in largest)
    order = sorted(analysis.scores.by_topic, key=lambda score: -score.value)
    dots = [
        _dot(analysis.model.name(one.topic or 0), column, cell)
        for one in order
        for column in columns
        if (cell := cells.get((one.topic or 0, column))) is not None and cell.interval is not None
    ]
    note = f"Bars: 95% interval over sections; only {analysis.cases.kind}s with enough sections on the topic."
    if len(columns) < len(analysis.cases.columns):
        note += f" The {_MOST_COLUMNS} {analysis.cases.kind}s with most statements; the table has all."
    title = f"Score by topic and {analysis.cases.kind}"
    return _plot(title, dots, note, together=True, order=columns)


def tag_bars(analysis: TrendAnalysis) -> StackedBars:
    """Tags of each column."""
    bars = [StackedBar(str(one.column), one.counts) for one in analysis.scores.by_column]
    bars.append(StackedBar("all", analysis.scores.overall.counts))
    return StackedBars(f"Tags by {analysis.cases.kind}", _categories(), tuple(bars))


def topic_bars(analysis: TrendAnalysis) -> StackedBars:
    """Tags of each topic, the most confident first."""
    order = sorted(analysis.scores.by_topic, key=lambda one: -one.value)
    bars = tuple(StackedBar(analysis.model.name(one.topic or 0), one.counts) for one in order)
    return StackedBars("Tags by topic", _categories(), bars)


def deviation_plot(analysis: TrendAnalysis) -> DotPlot:
    """Differences of topics to the mean of their columns, after shrinkage."""
    dots = [
        _difference(analysis, one.topic, one.p_holm, one.shrunken.value, one.shrunken.interval)
        for one in analysis.scores.deviations
    ]
    note = "Bars: 95% interval after shrinkage."
    return _plot("Difference to the mean", dots, note, axis="difference in score", order=_CLEARNESS)


def change_plots(analysis: TrendAnalysis) -> list[DotPlot]:
    """Changes of topics, a plot for each two cycles that follow each other."""
    pairs = dict.fromkeys((one.before, one.after) for one in analysis.changes)
    return [
        _plot(
            f"Change from {before} to {after}",
            [
                _difference(analysis, one.topic, one.p_holm, one.value, one.interval)
                for one in analysis.changes
                if (one.before, one.after) == (before, after) and one.topic is not None
            ],
            "Bars: 95% interval over sections, not corrected for the number of topics.",
            axis="difference in score",
            order=_CLEARNESS,
        )
        for before, after in pairs
    ]


def statement_map(analysis: TrendAnalysis, column: str | None = None) -> ScatterPlot:
    """All tagged statements on a plane, coloured by tag.

    Args:
        analysis: Analysis of the statements.
        column: Only those of a column; None for all.
    """
    shown = {case.id: case.tag for case in analysis.cases.tagged if column in (None, case.column)}
    placed = [one for one in analysis.model.statements if one.x is not None and one.y is not None]
    mine = [one for one in placed if one.id in shown]
    step = -(-len(mine) // MOST_POINTS) or 1
    drawn = mine[::step]
    clouds = tuple(
        Cloud(tag, tuple((one.x or 0.0, one.y or 0.0) for one in drawn if shown[one.id] == tag), place)
        for tag, place in zip(TAGS, _TAG_PLACES, strict=True)
    )
    x, y = ([getattr(one, name) or 0.0 for one in placed] for name in ("x", "y"))
    note = "Neighbours are about the same (UMAP of statements with context); the axes themselves have no meaning."
    places: dict[int, list[tuple[float, float]]] = {}
    for one in mine:
        if one.topic != OUTSIDE:
            places.setdefault(one.topic, []).append((one.x or 0.0, one.y or 0.0))
    # First phrases of topics' names in the middle (medians) of their statements, the largest topics first.
    labels = tuple(
        Label(
            median(x for x, _ in points),
            median(y for _, y in points),
            re.split(r", | and ", analysis.model.name(number), maxsplit=1)[0],
        )
        for number, points in sorted(places.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    )
    if labels:
        note += " A topic's name stands in its middle where there is room, the largest first."
    if step > 1:
        note += f" {len(drawn)} of {len(mine)} statements are drawn, evenly by their ids."
    return ScatterPlot(
        f"Statements by tag{f', {column}' if column else ''}",
        tuple(cloud for cloud in clouds if cloud.points),
        _bare("first direction", x),
        _bare("second direction", y),
        note,
        small=True,
        wide=column is None,
        labels=labels,
    )


def report_heat(analysis: TrendAnalysis) -> HeatMap:
    """Tagged statements by topic and report."""
    from climassay.confidence.topics.topic import counts_by_report

    reports, counts = counts_by_report(analysis.model, analysis.statements)
    topics = analysis.model.topics
    return HeatMap(
        "Statements by topic and report",
        tuple(topic.name for topic in topics),
        reports,
        tuple(tuple(counts[topic.number, one] for one in reports) for topic in topics),
        "topic",
        "report",
        "Shade: share of the topic's statements.",
    )


def _difference(analysis: TrendAnalysis, topic: int, p: float, value: float, interval: Interval) -> Dot:
    return Dot(analysis.model.name(topic), _CLEARNESS[p >= _CLEAR], value, interval.low, interval.high, 0.0)


def _dot(label: str, group: str, score: TopicScore, reference: float | None = None) -> Dot:
    assert score.interval is not None
    return Dot(label, group, score.value, score.interval.low, score.interval.high, reference)


def _plot(
    title: str,
    dots: list[Dot],
    note: str,
    *,
    together: bool = False,
    axis: str = "score",
    order: tuple[str, ...] = (),
) -> DotPlot:
    ends = [end for dot in dots for end in (dot.low, dot.high)] or [-2.0, 2.0]
    ends += [dot.reference for dot in dots if dot.reference is not None]
    return DotPlot(title, tuple(dots), axis, note, Axis.over(axis, ends, at_most=8), together, order)


def _bare(label: str, values: list[float]) -> Axis:
    """An axis without ticks, a little longer than its values."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = 0.03 * (high - low) or 1.0
    return Axis(label, low - room, high + room, ())


def _categories() -> tuple[Category, ...]:
    return tuple(Category(tag, place) for tag, place in zip(TAGS, _TAG_PLACES, strict=True))
