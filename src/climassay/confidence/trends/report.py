"""The report on confidence: one page, and the same as data."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from climassay.confidence.topics.tables import report_table, topic_table
from climassay.confidence.topics.topic import OUTSIDE
from climassay.confidence.trends.analysis import TrendAnalysis
from climassay.confidence.trends.figures import (
    change_plots,
    column_plot,
    deviation_plot,
    report_heat,
    score_plot,
    statement_map,
    tag_bars,
    topic_bars,
)
from climassay.confidence.trends.scores import TopicScore
from climassay.confidence.trends.tables import (
    accuracy_table,
    change_table,
    coverage_table,
    deviation_table,
    interval_words,
    number,
    p_words,
    score_table,
    share_table,
    signed,
    silence_table,
    telling,
    untagged_table,
)
from climassay.confidence.vocabulary import TAGS
from climassay.reporting import Prose, Report, Section, Table
from climassay.reporting.tables import split_columns

_COLUMNS = 3
"""Of scores with intervals that fit on a page side by side."""
_MAPS = 4
"""Columns that have a map of their own at most."""


def trend_tables(analysis: TrendAnalysis) -> dict[str, Table]:
    """All tables by their names in files; those without content are left out."""
    tables = {
        "scores": score_table(analysis),
        "shares": share_table(analysis),
        "deviations": deviation_table(analysis),
        "changes": change_table(analysis),
        "topics": topic_table(analysis.model),
        "reports": report_table(analysis.model, analysis.statements),
        "silent_reports": silence_table(analysis),
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
    sections = [
        Section("In short", tuple(map(Prose, summary(analysis)))),
        Section("Tags", (tag_bars(analysis), topic_bars(analysis), tables["shares"])),
        Section(f"Scores by topic and {kind}", _scores(analysis, tables)),
        Section("Most and least confident topics", _deviations(analysis, tables)),
        *([Section("Changes", (*change_plots(analysis), tables["changes"]))] if "changes" in tables else []),
        Section("Map of the statements", _maps(analysis)),
        Section("Topics", (tables["topics"], report_heat(analysis))),
        Section("Where a gap is no silence", tuple(tables[n] for n in ("silent_reports", "coverage") if n in tables)),
    ]
    if "untagged" in tables:
        sections.append(Section("With untagged statements tagged", (tables["untagged"],)))
    if "tagger" in tables:
        sections.append(Section("Accuracy of the tagger by topic", (tables["tagger"],)))
    return Report(
        f"Confidence by topic and {kind}",
        f"{analysis.scores.overall.n} tagged statements of {source} in {len(analysis.model.topics)} topics.",
        tuple(sections),
        (*facts, *_facts(analysis)),
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
    above, below = telling(scores.deviations)
    said.append(_telling_words(analysis, above, below))
    said += _change_words(analysis)
    if analysis.silent and kind == "cycle":
        named = ", ".join(f"{one.cycle} {one.working_group}" for one in analysis.silent)
        said.append(f"These reports did not tag their statements, so that their gaps are no silence: {named}.")
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
        "silent_reports": [asdict(one) for one in analysis.silent],
        "coverage": [{**asdict(one), "share": one.share} for one in analysis.coverage],
        "tagger": [asdict(one) for one in analysis.accuracies],
        "untagged": [
            {"name": None if one.topic is None else model.name(one.topic), **asdict(one)} for one in analysis.untagged
        ],
    }


def _scores(analysis: TrendAnalysis, tables: dict[str, Table]) -> tuple[Any, ...]:
    plots = [score_plot(analysis)]
    if len(analysis.cases.columns) > 1:
        plots.append(column_plot(analysis))
    shown = split_columns(tables["scores"], 1, _COLUMNS)
    return (*(plot for plot in plots if plot.dots), *shown)


def _deviations(analysis: TrendAnalysis, tables: dict[str, Table]) -> tuple[Any, ...]:
    if "deviations" not in tables:
        return (Prose("Too few topics have statements in enough sections for a comparison."),)
    return deviation_plot(analysis), tables["deviations"]


def _maps(analysis: TrendAnalysis) -> tuple[Any, ...]:
    columns = [one.column for one in sorted(analysis.scores.by_column, key=lambda one: -one.n) if one.n]
    own = sorted(columns[:_MAPS], key=analysis.cases.columns.index) if len(columns) > 1 else []
    return statement_map(analysis), *(statement_map(analysis, column) for column in own)


def _telling_words(analysis: TrendAnalysis, above: Sequence[Any], below: Sequence[Any]) -> str:
    looked = len(analysis.scores.deviations)
    if not above and not below:
        return f"No topic of {looked} differs clearly from others of its {analysis.cases.kind}s (Holm, 0.05)."
    what = f"others of the same {analysis.cases.kind}s (Holm, 0.05, {looked} topics)"
    parts = [
        f"{word} confident than {what}: " + "; ".join(analysis.model.name(one.topic) for one in found) + "."
        for word, found in (("More", above), ("Less", below))
        if found
    ]
    return " ".join(parts)


def _change_words(analysis: TrendAnalysis) -> list[str]:
    """A sentence for each two columns compared."""
    found = []
    for whole in (one for one in analysis.changes if one.topic is None):
        pair = [one for one in analysis.changes if (one.before, one.after) == (whole.before, whole.after)]
        clear = [one for one in pair if one.topic is not None and one.p_holm < 0.05]
        named = "; ".join(f"{analysis.model.name(one.topic or 0)} ({signed(one.value)})" for one in clear)
        overall = f"{signed(whole.value)} ({interval_words(whole.interval, signs=True)}, p {p_words(whole.p)})"
        found.append(
            f"From {whole.before} to {whole.after} the mean score changed by {overall}. Clearly changed topics "
            f"(Holm, 0.05, of {len(pair) - 1}): {named or 'none'}."
        )
    return found


def _with_interval(score: TopicScore) -> str:
    return number(score.value) + (f" ({interval_words(score.interval)})" if score.interval else "")


def _facts(analysis: TrendAnalysis) -> tuple[tuple[str, str], ...]:
    settings = analysis.model.settings
    return (
        ("topics", f"seed {settings.seed}, {analysis.model.clusters} clusters joined by {settings.reduction}"),
        ("encoder", analysis.model.encoder[:16]),
        ("intervals", f"95 %, sections resampled, seed {analysis.seed}"),
    )


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
