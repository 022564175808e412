"""Confidence by topic and by cycle, working group or report, with intervals, gaps explained and untagged statements."""

from climassay.confidence.trends.analysis import (
    DocumentCoverage,
    TrendAnalysis,
    UntaggedReport,
    analyse_trends,
    document_coverage,
    gap_reason,
    untagged_reports,
)
from climassay.confidence.trends.predictions import (
    Predictions,
    TopicAccuracy,
    UntaggedScore,
    read_predictions,
    topic_accuracies,
    untagged_scores,
)
from climassay.confidence.trends.report import trend_data, trend_report, trend_tables
from climassay.confidence.trends.scores import (
    Case,
    Cases,
    ColumnKind,
    TopicChange,
    TopicDeviation,
    TopicScore,
    TrendScores,
    cases_of,
    shrink,
    topic_changes,
    trend_scores,
)

__all__ = [
    "Case",
    "Cases",
    "ColumnKind",
    "DocumentCoverage",
    "Predictions",
    "TopicAccuracy",
    "TopicChange",
    "TopicDeviation",
    "TopicScore",
    "TrendAnalysis",
    "TrendScores",
    "UntaggedReport",
    "UntaggedScore",
    "analyse_trends",
    "cases_of",
    "document_coverage",
    "gap_reason",
    "read_predictions",
    "shrink",
    "topic_accuracies",
    "topic_changes",
    "trend_data",
    "trend_report",
    "trend_scores",
    "trend_tables",
    "untagged_reports",
    "untagged_scores",
]
