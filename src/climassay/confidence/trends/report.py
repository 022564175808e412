"""Report on confidence by topic: its tables and figures, the page, and the data."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from climassay.confidence.topics.topic import OUTSIDE, report_table, topic_table
from climassay.confidence.trends.analysis import TrendAnalysis, find_gap_reasons
from climassay.confidence.trends.scores import MIN_SECTIONS, TopicDeviation, TopicScore
from climassay.confidence.vocabulary import LEVELS
from climassay.reporting import (
    Axis,
    Category,
    Cloud,
    Dot,
    DotPlot,
    HeatMap,
    PointLabel,
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

MAX_POINTS = 20_000
"""Maximum number of points on a map, of about 14 bytes each. If there are more statements, every k-th by id is drawn,
and a note states this."""
_SIGNIFICANCE_LEVEL = 0.05
_SIGNIFICANCE = ("clear after Holm's correction", "not clear")
_MAX_COLUMNS = 5
"""Maximum number of columns in a figure, equal to the number of colours."""
_TAG_POSITIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


def score_plot(analysis: TrendAnalysis) -> DotPlot:
    """Return a plot of the topics' scores over all columns, from the most to the least confident."""
    scores = [score for score in analysis.scores.by_topic if score.interval is not None]
    overall = analysis.scores.overall.value
    dots = [
        _make_dot(analysis.model.name(score.topic or 0), "all", score, overall)
        for score in sorted(scores, key=lambda score: -score.value)
    ]
    note = "Bars: 95% interval over sections. Dashes: mean of all statements."
    return _make_dot_plot("Score by topic", dots, note)


def column_plot(analysis: TrendAnalysis) -> DotPlot:
    """Return a plot of the topics' scores in each column, side by side."""
    cells, sizes = analysis.scores.cells, {score.column: score.n for score in analysis.scores.by_column}
    largest_columns = sorted(analysis.trend_statements.columns, key=lambda column: -sizes[column])[:_MAX_COLUMNS]
    columns = tuple(column for column in analysis.trend_statements.columns if column in largest_columns)
    order = sorted(analysis.scores.by_topic, key=lambda score: -score.value)
    dots = [
        _make_dot(analysis.model.name(score.topic or 0), column, cell)
        for score in order
        for column in columns
        if (cell := cells.get((score.topic or 0, column))) is not None and cell.interval is not None
    ]
    note = (
        f"Bars: 95% interval over sections; only {analysis.trend_statements.kind}s with enough sections on the topic."
    )
    if len(columns) < len(analysis.trend_statements.columns):
        note += f" The {_MAX_COLUMNS} {analysis.trend_statements.kind}s with most statements; the table has all."
    title = f"Score by topic and {analysis.trend_statements.kind}"
    return _make_dot_plot(title, dots, note, together=True, order=columns)


def tag_bars(analysis: TrendAnalysis) -> StackedBars:
    """Return stacked bars of the proportion of each tag, one bar per column."""
    bars = [StackedBar(str(score.column), score.counts) for score in analysis.scores.by_column]
    bars.append(StackedBar("all", analysis.scores.overall.counts))
    return StackedBars(f"Tags by {analysis.trend_statements.kind}", _make_categories(), tuple(bars))


def topic_bars(analysis: TrendAnalysis) -> StackedBars:
    """Return stacked bars of the proportion of each tag, one bar per topic, most confident topic first."""
    order = sorted(analysis.scores.by_topic, key=lambda score: -score.value)
    bars = tuple(StackedBar(analysis.model.name(score.topic or 0), score.counts) for score in order)
    return StackedBars("Tags by topic", _make_categories(), bars)


def deviation_plot(analysis: TrendAnalysis) -> DotPlot:
    """Return a dot plot of the shrunken differences between the topics' scores and the means of their columns."""
    dots = [
        _make_difference_dot(
            analysis, deviation.topic, deviation.p_holm, deviation.shrunken.value, deviation.shrunken.interval
        )
        for deviation in analysis.scores.deviations
    ]
    note = "Bars: 95% interval after shrinkage."
    return _make_dot_plot("Difference to the mean", dots, note, axis="difference in score", order=_SIGNIFICANCE)


def change_plots(analysis: TrendAnalysis) -> list[DotPlot]:
    """Return one plot of the topics' changes for each pair of consecutive cycles."""
    pairs = dict.fromkeys((change.before, change.after) for change in analysis.changes)
    return [
        _make_dot_plot(
            f"Change from {earlier_cycle} to {later_cycle}",
            [
                _make_difference_dot(analysis, change.topic, change.p_holm, change.value, change.interval)
                for change in analysis.changes
                if (change.before, change.after) == (earlier_cycle, later_cycle) and change.topic is not None
            ],
            "Bars: 95% interval over sections, not corrected for the number of topics.",
            axis="difference in score",
            order=_SIGNIFICANCE,
        )
        for earlier_cycle, later_cycle in pairs
    ]


def statement_map(analysis: TrendAnalysis, column: str | None = None) -> ScatterPlot:
    """Return a map of all tagged statements, coloured by tag.

    Args:
        analysis: Analysis of the statements.
        column: Cycle, working group or report whose statements are shown; None for all.
    """
    tag_by_id = {
        statement.id: statement.tag
        for statement in analysis.trend_statements.tagged
        if column in (None, statement.column)
    }
    mapped_statements = [
        statement for statement in analysis.model.statements if statement.x is not None and statement.y is not None
    ]
    selected_statements = [statement for statement in mapped_statements if statement.id in tag_by_id]
    step = -(-len(selected_statements) // MAX_POINTS) or 1
    drawn_statements = selected_statements[::step]
    point_groups = tuple(
        Cloud(
            tag,
            tuple(
                (statement.x or 0.0, statement.y or 0.0)
                for statement in drawn_statements
                if tag_by_id[statement.id] == tag
            ),
            position,
        )
        for tag, position in zip(LEVELS, _TAG_POSITIONS, strict=True)
    )
    x, y = (
        [statement.x or 0.0 for statement in mapped_statements],
        [statement.y or 0.0 for statement in mapped_statements],
    )
    note = "Neighbours are about the same (UMAP of statements with context); the axes themselves have no meaning."
    points_by_topic: dict[int, list[tuple[float, float]]] = {}
    for statement in selected_statements:
        if statement.topic != OUTSIDE:
            points_by_topic.setdefault(statement.topic, []).append((statement.x or 0.0, statement.y or 0.0))
    # First phrases of topics' names at the medians of their statements, the largest topics first.
    labels = tuple(
        PointLabel(
            median(x for x, _ in points),
            median(y for _, y in points),
            re.split(r", | and ", analysis.model.name(number), maxsplit=1)[0],
        )
        for number, points in sorted(points_by_topic.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    )
    if labels:
        note += " A topic's name is at its median if there is room, the largest first."
    if step > 1:
        note += f" {len(drawn_statements)} of {len(selected_statements)} statements are drawn, evenly by their ids."
    return ScatterPlot(
        f"Statements by tag{f', {column}' if column else ''}",
        tuple(point_group for point_group in point_groups if point_group.points),
        _make_axis_without_ticks("first direction", x),
        _make_axis_without_ticks("second direction", y),
        note,
        small=True,
        wide=column is None,
        labels=labels,
    )


def report_heat(analysis: TrendAnalysis) -> HeatMap:
    """Return a heat map of the number of tagged statements by topic and report."""
    from climassay.confidence.topics.topic import count_by_report

    reports, counts = count_by_report(analysis.model, analysis.statements)
    topics = analysis.model.topics
    return HeatMap(
        "Statements by topic and report",
        tuple(topic.name for topic in topics),
        reports,
        tuple(tuple(counts[topic.number, report] for report in reports) for topic in topics),
        "topic",
        "report",
        "Shade: share of the topic's statements.",
    )


def _make_difference_dot(analysis: TrendAnalysis, topic: int, p: float, value: float, interval: Interval) -> Dot:
    return Dot(
        analysis.model.name(topic), _SIGNIFICANCE[p >= _SIGNIFICANCE_LEVEL], value, interval.low, interval.high, 0.0
    )


def _make_dot(label: str, group: str, score: TopicScore, reference: float | None = None) -> Dot:
    assert score.interval is not None
    return Dot(label, group, score.value, score.interval.low, score.interval.high, reference)


def _make_dot_plot(
    title: str, dots: list[Dot], note: str, *, together: bool = False, axis: str = "score", order: tuple[str, ...] = ()
) -> DotPlot:
    bounds = [bound for dot in dots for bound in (dot.low, dot.high)] or [-2.0, 2.0]
    bounds += [dot.reference for dot in dots if dot.reference is not None]
    return DotPlot(title, tuple(dots), axis, note, Axis.over(axis, bounds, max_ticks=8), together, order)


def _make_axis_without_ticks(label: str, values: list[float]) -> Axis:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    margin = 0.03 * (high - low) or 1.0
    return Axis(label, low - margin, high + margin, ())


def _make_categories() -> tuple[Category, ...]:
    return tuple(Category(tag, position) for tag, position in zip(LEVELS, _TAG_POSITIONS, strict=True))


_MINUS = "\N{MINUS SIGN}"
_N_SHOWN_DEVIATIONS = 8


def score_table(analysis: TrendAnalysis) -> Table:
    """Return a table of the scores of topics, with their intervals and numbers of statements.

    It has a row for each topic, and a column for each assessment cycle, working group or report.
    """
    columns, scores = analysis.trend_statements.columns, analysis.scores
    rows = []
    for topic in analysis.model.topics:
        n_by_working_group = Counter(
            statement.working_group
            for statement in analysis.statements
            if statement.tag is not None
            and statement.working_group
            and analysis.model.topic_of(statement.id) == topic.number
        )
        cells = []
        for column in columns:
            score = scores.cells.get((topic.number, column))
            untagged_reports = (
                find_gap_reasons(column, n_by_working_group, analysis.untagged_reports)
                if analysis.trend_statements.kind == "cycle"
                else ()
            )
            placeholder = (
                f"not tagged ({', '.join(report.working_group for report in untagged_reports)})"
                if untagged_reports
                else "-"
            )
            cells.append(placeholder if score is None else format_score(score))
        rows.append((topic.name, *cells, format_score(scores.by_topic[topic.number])))
    rows.append(("all topics", *map(format_score, scores.by_column), format_score(scores.overall)))
    note = (
        "Mean of \N{MINUS SIGN}2 (very low) to 2 (very high), interval of 95% over sections, number of statements. "
        f"No interval: fewer than {MIN_SECTIONS} sections have statements of the topic."
    )
    if any("not tagged" in cell for row in rows for cell in row):
        note += " Not tagged: reports of that cycle on the topic do not tag their statements."
    headings = ["topic", *columns, "all"]
    return Table.of(
        f"Score by topic and {analysis.trend_statements.kind}", headings, rows, note=note, strong=[len(rows) - 1]
    )


def score_rows(analysis: TrendAnalysis) -> Table:
    """Return the scores as numbers, one row per topic and column.

    An empty topic or column means all topics or columns.
    """
    results = (*analysis.scores.cells.values(), *analysis.scores.by_topic, *analysis.scores.by_column)
    rows = [
        (
            analysis.name(score.topic, ""),
            score.column or "",
            f"{score.value:.4f}" if score.n else "",
            f"{score.interval.low:.4f}" if score.interval else "",
            f"{score.interval.high:.4f}" if score.interval else "",
            str(score.n),
            str(score.sections),
            *map(str, score.counts),
        )
        for score in (*results, analysis.scores.overall)
    ]
    headings = ["topic", analysis.trend_statements.kind, "score", "low", "high", "statements", "sections", *LEVELS]
    return Table.of("Scores", headings, rows, left_columns=2)


def share_table(analysis: TrendAnalysis) -> Table:
    """Return the proportion of each tag, by topic and by column."""
    scores = analysis.scores
    named_scores = [(analysis.model.name(score.topic or 0), score) for score in scores.by_topic]
    named_scores += [(str(score.column), score) for score in scores.by_column]
    named_scores.append(("all", scores.overall))
    rows = [
        (name, *(f"{100 * count / score.n:.1f}" if score.n else "-" for count in score.counts), str(score.n))
        for name, score in named_scores
    ]
    strong_rows = range(len(scores.by_topic), len(rows))
    return Table.of("Share of each tag in per cent", ["", *LEVELS, "statements"], rows, strong=list(strong_rows))


def deviation_table(analysis: TrendAnalysis) -> Table:
    """Return a table of the topics that deviate most, up or down, from other statements in the same columns."""
    deviations = analysis.scores.deviations
    selected_deviations = (
        deviations
        if len(deviations) <= 2 * _N_SHOWN_DEVIATIONS
        else (*deviations[:_N_SHOWN_DEVIATIONS], *deviations[-_N_SHOWN_DEVIATIONS:])
    )
    rows = [
        (
            analysis.model.name(deviation.topic),
            format_signed(deviation.shrunken.value),
            format_interval(deviation.shrunken.interval, signs=True),
            format_signed(deviation.raw.value),
            format_interval(deviation.raw.interval, signs=True),
            format_p_value(deviation.p_holm),
        )
        for deviation in selected_deviations
    ]
    kind = analysis.trend_statements.kind
    note = (
        f"Difference to the mean of the same {kind}s, so that a topic of a confident {kind} does not look confident "
        "for that alone. Estimates are shrunken towards 0 by their imprecision (normal empirical Bayes). "
        f"p: two-sided, corrected for the {len(deviations)} compared topics (Holm). The difference compares a topic's "
        "statements with others of these reports; it does not show whether their authors were right."
    )
    headings = ["topic", "difference", "95% interval", "unshrunken", "its 95% interval", "p (Holm)"]
    return Table.of("Most and least confident topics", headings, rows, note=note)


def change_table(analysis: TrendAnalysis) -> Table:
    """Return the topics' changes in confidence between consecutive cycles."""
    rows = [
        (
            f"{change.before} to {change.after}",
            analysis.name(change.topic),
            f"{format_number(change.means[0])}, {change.statements[0]}",
            f"{format_number(change.means[1])}, {change.statements[1]}",
            format_signed(change.value),
            format_interval(change.interval, signs=True),
            format_p_value(change.p_holm),
        )
        for change in analysis.changes
    ]
    n_topics = sum(change.topic is not None for change in analysis.changes)
    note = (
        "Mean score with number of statements; change: later minus earlier, interval of 95% over sections. p: "
        f"two-sided, by permuting sections, corrected for the {n_topics} compared topics (Holm); that of all topics is "
        "not corrected. Only topics with five sections in both. A change shows that other levels were assigned, not "
        "why: other findings are assessed, by other authors."
    )
    headings = ["columns", "topic", "earlier", "later", "change", "95% interval", "p (Holm)"]
    return Table.of(
        f"Changes between {analysis.trend_statements.kind}s", headings, rows, note=note, left_columns=2, grouped=1
    )


def coverage_table(analysis: TrendAnalysis) -> Table:
    """Return the number and proportion of tagged statements in each document."""
    tag_use = {"tags": "yes", "hardly": "no", "unknown": "unknown"}
    rows = [
        (
            coverage.report,
            coverage.document,
            str(coverage.tagged),
            str(coverage.untagged) if coverage.untagged else "-",
            f"{100 * coverage.share:.1f}%" if coverage.share is not None else "-",
            tag_use[coverage.tagging],
        )
        for coverage in analysis.coverage
    ]
    note = "Sentences of body text, including repeated statements."
    if not any(coverage.untagged for coverage in analysis.coverage):
        note = (
            "The file has tagged statements only, so that the share is unknown: extract with --untagged to get it. "
            + note
        )
    headings = ["report", "document", "tagged", "untagged", "share tagged", "uses levels of confidence"]
    return Table.of("Tagged statements by document", headings, rows, note=note, left_columns=2)


def untagged_report_table(analysis: TrendAnalysis) -> Table:
    """Return the reports of the compared cycles that did not tag their statements."""
    rows = [
        (report.cycle, report.working_group, report.reason, "literature" if report.known else "these files")
        for report in analysis.untagged_reports
    ]
    note = "A gap in these reports' columns means that statements were not tagged, not that there were none."
    return Table.of(
        "Reports without tags", ["cycle", "report", "what it did", "known from"], rows, note=note, left_columns=4
    )


def accuracy_table(analysis: TrendAnalysis) -> Table:
    """Return the tagger's accuracy by topic."""
    rows = [
        (
            analysis.name(accuracy.topic, "all"),
            f"{100 * accuracy.accuracy.value:.1f}%",
            f"{100 * accuracy.accuracy.interval.low:.1f} to {100 * accuracy.accuracy.interval.high:.1f}",
            f"{100 * accuracy.constant:.1f}%",
            f"{accuracy.error:.2f}",
            str(accuracy.accuracy.n),
        )
        for accuracy in analysis.accuracies
    ]
    note = (
        "Held-out tagged statements. Constant: always the level that is most frequent over all topics; error: mean "
        "number of levels between the tagger's and the authors'."
    )
    headings = ["topic", "accuracy", "95% interval", "constant", "error", "statements"]
    return Table.of("The tagger by topic", headings, rows, note=note, strong=[0])


def untagged_table(analysis: TrendAnalysis) -> Table:
    """Return scores that include estimates for untagged statements."""
    scores = analysis.scores
    by_column = {estimate.column: estimate for estimate in scores.by_column}
    rows = []
    for estimate in analysis.untagged:
        shares = estimate.shares
        tagged_score = (
            by_column[estimate.column]
            if estimate.topic is None
            else scores.cells.get((estimate.topic, estimate.column))
        )
        rows.append(
            (
                analysis.name(estimate.topic),
                estimate.column,
                format_score(tagged_score) if tagged_score else "-",
                f"{format_number(shares.score)} "
                f"({format_number(shares.score_low)} to {format_number(shares.score_high)})",
                str(estimate.untagged),
                f"{format_number(estimate.together)} ({format_number(estimate.low)} to {format_number(estimate.high)})",
            )
        )
    overall = [estimate for estimate in analysis.untagged if estimate.topic is None]
    n_read, n_untagged = sum(estimate.shares.n for estimate in overall), sum(estimate.untagged for estimate in overall)
    sample_note = f" {n_read:,} of {n_untagged:,} were drawn at random and read." if n_read < n_untagged else ""
    note = (
        "Untagged statements by the tagger, corrected for its errors on held-out tagged statements; intervals include "
        "the sampling of sections and the uncertainty of those errors. They assume that the tagger errs alike on "
        "statements that authors chose not to tag, many of which are not findings." + sample_note
    )
    headings = ["topic", analysis.trend_statements.kind, "tagged", "untagged, estimated", "untagged", "together"]
    return Table.of("Trends with untagged statements tagged", headings, rows, note=note, left_columns=2)


def format_score(score: TopicScore) -> str:
    """Format a score with its interval and n."""
    if not score.n:
        return "-"
    interval = f" ({format_interval(score.interval)})" if score.interval else ""
    return f"{format_number(score.value)}{interval}, {score.n}"


def format_interval(interval: Interval, *, signs: bool = False) -> str:
    """Format an interval as ``low to high``; if ``signs`` is True, positive ends get a plus sign."""
    formatter = format_signed if signs else format_number
    return f"{formatter(interval.low)} to {formatter(interval.high)}"


def format_number(value: float) -> str:
    """Format a number with two decimals and a typographic minus sign, without negative zeros."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", _MINUS)


def format_signed(value: float) -> str:
    """Format a number with its sign."""
    words = format_number(value)
    return words if words.startswith(_MINUS) or words == "0.00" else f"+{words}"


def format_p_value(p: float) -> str:
    """Format a p-value; very small p-values are shown as an upper bound."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def significant_deviations(deviations: Sequence[TopicDeviation]) -> tuple[list[TopicDeviation], list[TopicDeviation]]:
    """Return the topics above and those below the mean with a corrected p-value below 0.05, most extreme first."""
    selected_deviations = [deviation for deviation in deviations if deviation.p_holm < 0.05]
    deviations_above = [deviation for deviation in selected_deviations if deviation.shrunken.value > 0]
    return deviations_above, [deviation for deviation in reversed(selected_deviations) if deviation.shrunken.value < 0]


_TABLE_COLUMNS = 3
"""Maximum number of columns for which a table of scores with intervals fits on a page."""
_MAX_MAPS = 4
"""Maximum number of columns for each of which a separate map is drawn."""


def trend_tables(analysis: TrendAnalysis) -> dict[str, Table]:
    """Return all tables that have rows, by the names used for their files."""
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
    """Return the analysis as a self-contained report.

    Args:
        analysis: Analysis to show.
        source: Name of the file of statements.
        facts: Names and values listed at the end of the page, for example the run's id.
    """
    tables = trend_tables(analysis)
    kind = analysis.trend_statements.kind
    plots = [score_plot(analysis), *([column_plot(analysis)] if len(analysis.trend_statements.columns) > 1 else [])]
    plots = [plot for plot in plots if plot.dots]
    deviations: tuple[Any, ...] = (Prose("Too few topics have statements in enough sections for a comparison."),)
    if "deviations" in tables:
        deviations = (deviation_plot(analysis), tables["deviations"])
    columns = [score.column for score in sorted(analysis.scores.by_column, key=lambda score: -score.n) if score.n]
    map_columns = sorted(columns[:_MAX_MAPS], key=analysis.trend_statements.columns.index) if len(columns) > 1 else []
    settings = analysis.model.settings
    sections = [
        Section("In short", tuple(map(Prose, summarise(analysis)))),
        Section("Tags", (tag_bars(analysis), topic_bars(analysis), tables["shares"])),
        Section(f"Scores by topic and {kind}", (*plots, *split_columns(tables["scores"], 1, _TABLE_COLUMNS))),
        Section("Most and least confident topics", deviations),
        *([Section("Changes", (*change_plots(analysis), tables["changes"]))] if "changes" in tables else []),
        Section("Map of the statements", tuple(statement_map(analysis, column) for column in (None, *map_columns))),
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


def summarise(analysis: TrendAnalysis) -> list[str]:
    """Return a summary of the results in a few sentences."""
    scores, kind = analysis.scores, analysis.trend_statements.kind
    overall = scores.overall
    shares = ", ".join(
        f"{tag} {100 * count / overall.n:.1f}%" for tag, count in zip(LEVELS, overall.counts, strict=True) if count
    )
    sentences = [
        f"The mean score is {_format_with_interval(overall)} on a scale from \N{MINUS SIGN}2 to 2. Tags: {shares}."
    ]
    if len(scores.by_column) > 1:
        by_column = "; ".join(f"{score.column} {_format_with_interval(score)}" for score in scores.by_column if score.n)
        sentences.append(f"By {kind}: {by_column}.")
    deviations_above, deviations_below = significant_deviations(scores.deviations)
    n_compared = len(scores.deviations)
    for word, deviations in (("More", deviations_above), ("Less", deviations_below)):
        if deviations:
            names = "; ".join(analysis.model.name(deviation.topic) for deviation in deviations)
            sentences.append(
                f"{word} confident than others of the same {kind}s (Holm, 0.05, {n_compared} topics): {names}."
            )
    if not n_compared:
        sentences.append(f"No topic has enough sections to be compared with others of its {kind}s.")
    elif not deviations_above and not deviations_below:
        sentences.append(f"No topic of {n_compared} differs clearly from others of its {kind}s (Holm, 0.05).")
    for overall_change in (change for change in analysis.changes if change.topic is None):
        earlier_cycle, later_cycle = overall_change.before, overall_change.after
        by_topic = [
            c for c in analysis.changes if (c.before, c.after) == (earlier_cycle, later_cycle) and c.topic is not None
        ]
        names = "; ".join(f"{analysis.name(c.topic)} ({format_signed(c.value)})" for c in by_topic if c.p_holm < 0.05)
        interval, p = format_interval(overall_change.interval, signs=True), format_p_value(overall_change.p)
        sentences.append(
            f"From {earlier_cycle} to {later_cycle} the mean score changed by {format_signed(overall_change.value)} "
            f"({interval}, p {p}). Clearly changed topics (Holm, 0.05, of {len(by_topic)}): {names or 'none'}."
        )
    if analysis.untagged_reports and kind == "cycle":
        names = ", ".join(f"{report.cycle} {report.working_group}" for report in analysis.untagged_reports)
        sentences.append(
            f"These reports did not tag their statements, so a gap in their columns does not mean silence: {names}."
        )
    documents_without_levels = [
        f"{document.report}, {document.document}" for document in analysis.coverage if document.tagging == "hardly"
    ]
    if documents_without_levels:
        sentences.append(f"Hardly a sentence has a level of confidence in: {'; '.join(documents_without_levels)}.")
    if analysis.trend_statements.unknown:
        sentences.append(
            f"{analysis.trend_statements.unknown} tagged statements are not in the file of topics, and are left out."
        )
    return sentences


def trend_data(analysis: TrendAnalysis) -> dict[str, Any]:
    """Return all results of the analysis as JSON-serialisable values."""
    scores, model = analysis.scores, analysis.model
    return {
        "by": analysis.trend_statements.kind,
        "columns": list(analysis.trend_statements.columns),
        "statements": {
            "tagged": len(analysis.trend_statements.tagged),
            "untagged": len(analysis.trend_statements.untagged),
            "without_topic": sum(statement.topic == OUTSIDE for statement in analysis.trend_statements.tagged),
            "unknown": analysis.trend_statements.unknown,
        },
        "overall": _score_data(analysis, scores.overall),
        "by_column": [_score_data(analysis, score) for score in scores.by_column],
        "by_topic": [_score_data(analysis, score) for score in scores.by_topic],
        "cells": [_score_data(analysis, score) for score in scores.cells.values()],
        "deviations": [{"name": model.name(d.topic), **asdict(d)} for d in scores.deviations],
        "changes": [
            {"name": _find_topic_name(analysis, c.topic), **asdict(c), "change": c.value} for c in analysis.changes
        ],
        "untagged_reports": [asdict(report) for report in analysis.untagged_reports],
        "coverage": [{**asdict(coverage), "share": coverage.share} for coverage in analysis.coverage],
        "tagger": [asdict(accuracy) for accuracy in analysis.accuracies],
        "untagged": [{"name": _find_topic_name(analysis, score.topic), **asdict(score)} for score in analysis.untagged],
    }


def _find_topic_name(analysis: TrendAnalysis, topic: int | None) -> str | None:
    return None if topic is None else analysis.model.name(topic)


def _format_with_interval(score: TopicScore) -> str:
    return format_number(score.value) + (f" ({format_interval(score.interval)})" if score.interval else "")


def _score_data(analysis: TrendAnalysis, score: TopicScore) -> dict[str, Any]:
    return {
        "topic": score.topic,
        "name": _find_topic_name(analysis, score.topic),
        "column": score.column,
        "score": score.value,
        "low": score.interval.low if score.interval else None,
        "high": score.interval.high if score.interval else None,
        "n": score.n,
        "sections": score.sections,
        "tags": dict(zip(LEVELS, score.counts, strict=True)),
    }
