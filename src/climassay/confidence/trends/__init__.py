"""Trends of confidence by topic and by cycle, working group or report, with estimates for untagged statements."""

from climassay.confidence.trends.analysis import (
    DocumentCoverage as DocumentCoverage,
    TrendAnalysis as TrendAnalysis,
    UntaggedReport as UntaggedReport,
    analyse_trends as analyse_trends,
    count_coverage as count_coverage,
    find_gap_reasons as find_gap_reasons,
    find_untagged_reports as find_untagged_reports,
)
from climassay.confidence.trends.analysis import (
    Predictions as Predictions,
    TopicAccuracy as TopicAccuracy,
    UntaggedScore as UntaggedScore,
    read_predictions as read_predictions,
    measure_topic_accuracies as measure_topic_accuracies,
    estimate_untagged_scores as estimate_untagged_scores,
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
    select_statements as select_statements,
    shrink as shrink,
    measure_changes as measure_changes,
    compute_scores as compute_scores,
)
