"""Confidence by topic and by cycle, working group or report, with intervals, gaps explained and untagged statements."""

from climassay.confidence.trends.analysis import (
    DocumentCoverage as DocumentCoverage,
    TrendAnalysis as TrendAnalysis,
    UntaggedReport as UntaggedReport,
    analyse_trends as analyse_trends,
    document_coverage as document_coverage,
    gap_reason as gap_reason,
    untagged_reports as untagged_reports,
)
from climassay.confidence.trends.analysis import (
    Predictions as Predictions,
    TopicAccuracy as TopicAccuracy,
    UntaggedScore as UntaggedScore,
    read_predictions as read_predictions,
    topic_accuracies as topic_accuracies,
    untagged_scores as untagged_scores,
)
from climassay.confidence.trends.report import (
    trend_data as trend_data,
    trend_report as trend_report,
    trend_tables as trend_tables,
)
from climassay.confidence.trends.scores import (
    TrendStatement as TrendStatement,
    TrendStatements as TrendStatements,
    ColumnKind as ColumnKind,
    TopicChange as TopicChange,
    TopicDeviation as TopicDeviation,
    TopicScore as TopicScore,
    TrendScores as TrendScores,
    cases_of as cases_of,
    shrink as shrink,
    topic_changes as topic_changes,
    trend_scores as trend_scores,
)
