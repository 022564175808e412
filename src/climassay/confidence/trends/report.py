"""The report on confidence: its tables, one page, and the same as data.

Trends as figures.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from climassay.confidence.topics.topic import OUTSIDE, report_table, topic_table
from climassay.confidence.trends.analysis import TrendAnalysis, gap_reason
from climassay.confidence.trends.scores import FEWEST_SECTIONS, TopicDeviation, TopicScore
from climassay.confidence.vocabulary import TAGS
from climassay.reporting import (
    Axis,
    Category,
    Cloud,
    Dot,
    DotPlot,
    HeatMap,
    Label,
    Prose,
    Report,
    ScatterPlot,
    Section,
    StackedBar,
    StackedBars,
    Table,
)
from climassay.reporting.tables import split_columns
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
    return DotPlot(title, tuple(dots), axis, note, Axis.over(axis, ends, max_ticks=8), together, order)


def _bare(label: str, values: list[float]) -> Axis:
    """An axis without ticks, a little longer than its values."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = 0.03 * (high - low) or 1.0
    return Axis(label, low - room, high + room, ())


def _categories() -> tuple[Category, ...]:
    return tuple(Category(tag, place) for tag, place in zip(TAGS, _TAG_PLACES, strict=True))


_MINUS = "\N{MINUS SIGN}"
_SHOWN_DEVIATIONS = 8


def score_table(analysis: TrendAnalysis) -> Table:
    """Score of every topic in every column, with intervals and numbers of statements."""
    columns, scores = analysis.cases.columns, analysis.scores
    rows = []
    for topic in analysis.model.topics:
        groups = Counter(
            one.working_group
            for one in analysis.statements
            if one.tag is not None and one.working_group and analysis.model.topic_of(one.id) == topic.number
        )
        cells = []
        for column in columns:
            score = scores.cells.get((topic.number, column))
            silent = gap_reason(column, groups, analysis.silent) if analysis.cases.kind == "cycle" else ()
            gap = f"not tagged ({', '.join(one.working_group for one in silent)})" if silent else "-"
            cells.append(gap if score is None else format_score(score))
        rows.append((topic.name, *cells, format_score(scores.by_topic[topic.number])))
    rows.append(("all topics", *map(format_score, scores.by_column), format_score(scores.overall)))
    note = (
        "Mean of \N{MINUS SIGN}2 (very low) to 2 (very high), interval of 95% over sections, number of statements. "
        f"No interval stands where fewer than {FEWEST_SECTIONS} sections speak of a topic."
    )
    if any("not tagged" in cell for row in rows for cell in row):
        note += " Not tagged: reports of that cycle on the topic do not tag their statements, so that nothing is known."
    headings = ["topic", *columns, "all"]
    return Table.of(f"Score by topic and {analysis.cases.kind}", headings, rows, note=note, strong=[len(rows) - 1])


def score_rows(analysis: TrendAnalysis) -> Table:
    """The same as numbers, a row for each topic and column, for spreadsheets; an empty column or topic means all."""
    results = (*analysis.scores.cells.values(), *analysis.scores.by_topic, *analysis.scores.by_column)
    rows = [
        (
            analysis.name(one.topic, ""),
            one.column or "",
            f"{one.value:.4f}" if one.n else "",
            f"{one.interval.low:.4f}" if one.interval else "",
            f"{one.interval.high:.4f}" if one.interval else "",
            str(one.n),
            str(one.sections),
            *map(str, one.counts),
        )
        for one in (*results, analysis.scores.overall)
    ]
    headings = ["topic", analysis.cases.kind, "score", "low", "high", "statements", "sections", *TAGS]
    return Table.of("Scores", headings, rows, left=2)


def share_table(analysis: TrendAnalysis) -> Table:
    """Share of each tag, by topic and by column."""
    scores = analysis.scores
    named = [(analysis.model.name(one.topic or 0), one) for one in scores.by_topic]
    named += [(str(one.column), one) for one in scores.by_column]
    named.append(("all", scores.overall))
    rows = [
        (name, *(f"{100 * count / one.n:.1f}" if one.n else "-" for count in one.counts), str(one.n))
        for name, one in named
    ]
    strong = range(len(scores.by_topic), len(rows))
    return Table.of("Share of each tag in per cent", ["", *TAGS, "statements"], rows, strong=list(strong))


def deviation_table(analysis: TrendAnalysis) -> Table:
    """The topics that sound most and least confident beside others of the same columns."""
    result = analysis.scores.deviations
    shown = (
        result if len(result) <= 2 * _SHOWN_DEVIATIONS else (*result[:_SHOWN_DEVIATIONS], *result[-_SHOWN_DEVIATIONS:])
    )
    rows = [
        (
            analysis.model.name(one.topic),
            signed(one.shrunken.value),
            format_interval(one.shrunken.interval, signs=True),
            signed(one.raw.value),
            format_interval(one.raw.interval, signs=True),
            format_p_value(one.p_holm),
        )
        for one in shown
    ]
    kind = analysis.cases.kind
    note = (
        f"Difference to the mean of the same {kind}s, so that a topic of a confident {kind} does not look confident "
        "for it alone. Estimates are drawn towards 0 by how little a topic's statements tell (normal empirical Bayes). "
        f"p: two-sided, corrected for the {len(result)} topics looked at (Holm). High or low says how a topic's "
        "statements compare with others of these reports, not whether their authors were right."
    )
    headings = ["topic", "difference", "95% interval", "unshrunken", "its 95% interval", "p (Holm)"]
    return Table.of("Most and least confident topics", headings, rows, note=note)


def change_table(analysis: TrendAnalysis) -> Table:
    """Topics that are stated more or less confidently in one cycle than in the one before."""
    rows = [
        (
            f"{one.before} to {one.after}",
            analysis.name(one.topic),
            f"{number(one.means[0])}, {one.statements[0]}",
            f"{number(one.means[1])}, {one.statements[1]}",
            signed(one.value),
            format_interval(one.interval, signs=True),
            format_p_value(one.p_holm),
        )
        for one in analysis.changes
    ]
    looked = sum(one.topic is not None for one in analysis.changes)
    note = (
        "Mean score with number of statements; change: later minus earlier, interval of 95% over sections. p: "
        f"two-sided, by permuting sections, corrected for the {looked} topics looked at (Holm); that of all topics is "
        "not corrected. Only topics with five sections in both. A change says that levels were given otherwise, not "
        "why: other findings are assessed, by other authors."
    )
    headings = ["columns", "topic", "earlier", "later", "change", "95% interval", "p (Holm)"]
    return Table.of(f"Changes between {analysis.cases.kind}s", headings, rows, note=note, left=2, grouped=1)


def coverage_table(analysis: TrendAnalysis) -> Table:
    """How much of each document is tagged."""
    words = {"tags": "yes", "hardly": "no", "unknown": "unknown"}
    rows = [
        (
            one.report,
            one.document,
            str(one.tagged),
            str(one.untagged) if one.untagged else "-",
            f"{100 * one.share:.1f}%" if one.share is not None else "-",
            words[one.tagging],
        )
        for one in analysis.coverage
    ]
    note = "Sentences of body text; repeated statements are counted, for the document has them."
    if not any(one.untagged for one in analysis.coverage):
        note = (
            "The file holds tagged statements only, so that the share is not known: extract with --untagged for it. "
            + note
        )
    headings = ["report", "document", "tagged", "untagged", "share tagged", "uses levels of confidence"]
    return Table.of("Tagged statements by document", headings, rows, note=note, left=2)


def untagged_report_table(analysis: TrendAnalysis) -> Table:
    """Reports of the cycles at hand that did not tag their statements."""
    rows = [
        (one.cycle, one.working_group, one.reason, "literature" if one.known else "these files")
        for one in analysis.silent
    ]
    note = "An empty place in these reports' columns says that statements were not tagged, not that nothing was said."
    return Table.of("Reports without tags", ["cycle", "report", "what it did", "known from"], rows, note=note, left=4)


def accuracy_table(analysis: TrendAnalysis) -> Table:
    """How often the tagger is right, by topic."""
    rows = [
        (
            analysis.name(one.topic, "all"),
            f"{100 * one.accuracy.value:.1f}%",
            f"{100 * one.accuracy.interval.low:.1f} to {100 * one.accuracy.interval.high:.1f}",
            f"{100 * one.constant:.1f}%",
            f"{one.error:.2f}",
            str(one.accuracy.n),
        )
        for one in analysis.accuracies
    ]
    note = (
        "Held-out tagged statements. Constant: always the level that is most frequent over all topics; error: mean "
        "number of levels between the tagger's and the authors'."
    )
    headings = ["topic", "accuracy", "95% interval", "constant", "error", "statements"]
    return Table.of("The tagger by topic", headings, rows, note=note, strong=[0])


def untagged_table(analysis: TrendAnalysis) -> Table:
    """Scores with untagged statements tagged."""
    scores = analysis.scores
    by_column = {one.column: one for one in scores.by_column}
    rows = []
    for one in analysis.untagged:
        known = by_column[one.column] if one.topic is None else scores.cells.get((one.topic, one.column))
        rows.append(
            (
                analysis.name(one.topic),
                one.column,
                format_score(known) if known else "-",
                f"{number(one.shares.score)} ({number(one.shares.score_low)} to {number(one.shares.score_high)})",
                str(one.untagged),
                f"{number(one.together)} ({number(one.low)} to {number(one.high)})",
            )
        )
    overall = [one for one in analysis.untagged if one.topic is None]
    read, every = sum(one.shares.n for one in overall), sum(one.untagged for one in overall)
    drawn = f" {read:,} of {every:,} were drawn at random and read." if read < every else ""
    note = (
        "Untagged statements by the tagger, corrected for its errors on held-out tagged statements; intervals carry "
        "the drawing of sections and the uncertainty of those errors. They do not carry what cannot be known: whether "
        "the tagger errs alike on statements that authors chose not to tag, many of which are not findings." + drawn
    )
    headings = ["topic", analysis.cases.kind, "tagged", "untagged, estimated", "untagged", "together"]
    return Table.of("Trends with untagged statements tagged", headings, rows, note=note, left=2)


def format_score(score: TopicScore) -> str:
    """A score with its interval and n, for a cell."""
    if not score.n:
        return "-"
    interval = f" ({format_interval(score.interval)})" if score.interval else ""
    return f"{number(score.value)}{interval}, {score.n}"


def format_interval(interval: Interval, *, signs: bool = False) -> str:
    """``low to high``, with plus signs where differences are shown."""
    shown = signed if signs else number
    return f"{shown(interval.low)} to {shown(interval.high)}"


def number(value: float) -> str:
    """With two decimals and a minus sign that can be seen; never a negative zero."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", _MINUS)


def signed(value: float) -> str:
    """With its sign, whichever it is."""
    words = number(value)
    return words if words.startswith(_MINUS) or words == "0.00" else f"+{words}"


def format_p_value(p: float) -> str:
    """A p-value; very small ones as a bound."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def significant_deviations(found: Sequence[TopicDeviation]) -> tuple[list[TopicDeviation], list[TopicDeviation]]:
    """Those above and below the mean whose corrected p is below 0.05, the furthest first."""
    clear = [one for one in found if one.p_holm < 0.05]
    above = [one for one in clear if one.shrunken.value > 0]
    return above, [one for one in reversed(clear) if one.shrunken.value < 0]


_COLUMNS = 3
"""Columns of scores with intervals that fit on a page side by side."""
_MAPS = 4
"""Maximum number of columns that have a map of their own."""


def trend_tables(analysis: TrendAnalysis) -> dict[str, Table]:
    """All tables by their names in files; those without content are left out."""
    tables = {
        "scores": score_table(analysis),
        "shares": share_table(analysis),
        "deviations": deviation_table(analysis),
        "changes": change_table(analysis),
        "topics": topic_table(analysis.model),
        "reports": report_table(analysis.model, analysis.statements),
        "untagged_reports": untagged_report_table(analysis),
        "coverage": coverage_table(analysis),
        "tagger": accuracy_table(analysis),
        "untagged": untagged_table(analysis),
    }
    return {name: table for name, table in tables.items() if any(map(any, table.rows))}


def trend_report(analysis: TrendAnalysis, *, source: str, facts: Sequence[tuple[str, str]] = ()) -> Report:
    """The whole analysis as a self-contained report.

    Args:
        analysis: What is shown.
        source: Name of the file of statements.
        facts: Shown small at the end, for example the run's id.
    """
    tables = trend_tables(analysis)
    kind = analysis.cases.kind
    plots = [score_plot(analysis), *([column_plot(analysis)] if len(analysis.cases.columns) > 1 else [])]
    plots = [plot for plot in plots if plot.dots]
    deviations: tuple[Any, ...] = (Prose("Too few topics have statements in enough sections for a comparison."),)
    if "deviations" in tables:
        deviations = (deviation_plot(analysis), tables["deviations"])
    columns = [one.column for one in sorted(analysis.scores.by_column, key=lambda one: -one.n) if one.n]
    mapped = sorted(columns[:_MAPS], key=analysis.cases.columns.index) if len(columns) > 1 else []
    settings = analysis.model.settings
    sections = [
        Section("In short", tuple(map(Prose, summary(analysis)))),
        Section("Tags", (tag_bars(analysis), topic_bars(analysis), tables["shares"])),
        Section(f"Scores by topic and {kind}", (*plots, *split_columns(tables["scores"], 1, _COLUMNS))),
        Section("Most and least confident topics", deviations),
        *([Section("Changes", (*change_plots(analysis), tables["changes"]))] if "changes" in tables else []),
        Section("Map of the statements", tuple(statement_map(analysis, column) for column in (None, *mapped))),
        Section("Topics", (tables["topics"], report_heat(analysis))),
        Section(
            "Gaps: reports that did not tag their statements",
            tuple(tables[n] for n in ("untagged_reports", "coverage") if n in tables),
        ),
    ]
    if "untagged" in tables:
        sections.append(Section("With untagged statements tagged", (tables["untagged"],)))
    if "tagger" in tables:
        sections.append(Section("Accuracy of the tagger by topic", (tables["tagger"],)))
    return Report(
        f"Confidence by topic and {kind}",
        f"{analysis.scores.overall.n} tagged statements of {source} in {len(analysis.model.topics)} topics.",
        tuple(sections),
        (
            *facts,
            ("topics", f"seed {settings.seed}, {analysis.model.clusters} clusters joined by {settings.reduction}"),
            ("encoder", analysis.model.encoder[:16]),
            ("intervals", f"95%, sections resampled, seed {analysis.seed}"),
        ),
    )


def summary(analysis: TrendAnalysis) -> list[str]:
    """What the numbers say, in a few sentences."""
    scores, kind = analysis.scores, analysis.cases.kind
    overall = scores.overall
    shares = ", ".join(
        f"{tag} {100 * count / overall.n:.1f}%" for tag, count in zip(TAGS, overall.counts, strict=True) if count
    )
    said = [f"The mean score is {_with_interval(overall)} on a scale from \N{MINUS SIGN}2 to 2. Tags: {shares}."]
    if len(scores.by_column) > 1:
        by_column = "; ".join(f"{one.column} {_with_interval(one)}" for one in scores.by_column if one.n)
        said.append(f"By {kind}: {by_column}.")
    above, below = significant_deviations(scores.deviations)
    looked = len(scores.deviations)
    if above or below:
        what = f"others of the same {kind}s (Holm, 0.05, {looked} topics)"
        said.append(
            " ".join(
                f"{word} confident than {what}: " + "; ".join(analysis.model.name(one.topic) for one in result) + "."
                for word, result in (("More", above), ("Less", below))
                if result
            )
        )
    elif looked:
        said.append(f"No topic of {looked} differs clearly from others of its {kind}s (Holm, 0.05).")
    else:
        said.append(f"No topic has enough sections to be compared with others of its {kind}s.")
    for whole in (one for one in analysis.changes if one.topic is None):
        pair = [one for one in analysis.changes if (one.before, one.after) == (whole.before, whole.after)]
        clear = [one for one in pair if one.topic is not None and one.p_holm < 0.05]
        named = "; ".join(f"{analysis.name(one.topic)} ({signed(one.value)})" for one in clear)
        change = f"{signed(whole.value)} ({format_interval(whole.interval, signs=True)}, p {format_p_value(whole.p)})"
        said.append(
            f"From {whole.before} to {whole.after} the mean score changed by {change}. Clearly changed topics "
            f"(Holm, 0.05, of {len(pair) - 1}): {named or 'none'}."
        )
    if analysis.silent and kind == "cycle":
        named = ", ".join(f"{one.cycle} {one.working_group}" for one in analysis.silent)
        said.append(
            f"These reports did not tag their statements, so a gap in their columns does not mean silence: {named}."
        )
    hardly = [f"{one.report}, {one.document}" for one in analysis.coverage if one.tagging == "hardly"]
    if hardly:
        said.append(f"Hardly a sentence has a level of confidence in: {'; '.join(hardly)}.")
    if analysis.cases.unknown:
        said.append(f"{analysis.cases.unknown} tagged statements are not in the file of topics, and are left out.")
    return said


def trend_data(analysis: TrendAnalysis) -> dict[str, Any]:
    """All numbers, for JSON."""
    scores, model = analysis.scores, analysis.model
    return {
        "by": analysis.cases.kind,
        "columns": list(analysis.cases.columns),
        "statements": {
            "tagged": len(analysis.cases.tagged),
            "untagged": len(analysis.cases.untagged),
            "without_topic": sum(case.topic == OUTSIDE for case in analysis.cases.tagged),
            "unknown": analysis.cases.unknown,
        },
        "overall": _score_data(analysis, scores.overall),
        "by_column": [_score_data(analysis, one) for one in scores.by_column],
        "by_topic": [_score_data(analysis, one) for one in scores.by_topic],
        "cells": [_score_data(analysis, one) for one in scores.cells.values()],
        "deviations": [{"name": model.name(one.topic), **asdict(one)} for one in scores.deviations],
        "changes": [
            {"name": None if one.topic is None else model.name(one.topic), **asdict(one), "change": one.value}
            for one in analysis.changes
        ],
        "untagged_reports": [asdict(one) for one in analysis.silent],
        "coverage": [{**asdict(one), "share": one.share} for one in analysis.coverage],
        "tagger": [asdict(one) for one in analysis.accuracies],
        "untagged": [
            {"name": None if one.topic is None else model.name(one.topic), **asdict(one)} for one in analysis.untagged
        ],
    }


def _with_interval(score: TopicScore) -> str:
    return number(score.value) + (f" ({format_interval(score.interval)})" if score.interval else "")


def _score_data(analysis: TrendAnalysis, score: TopicScore) -> dict[str, Any]:
    return {
        "topic": score.topic,
        "name": None if score.topic is None else analysis.model.name(score.topic),
        "column": score.column,
        "score": score.value,
        "low": score.interval.low if score.interval else None,
        "high": score.interval.high if score.interval else None,
        "n": score.n,
        "sections": score.sections,
        "tags": dict(zip(TAGS, score.counts, strict=True)),
    }
