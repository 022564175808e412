"""Everything that a report on confidence says, computed once: tables, figures and data are made from it."""

from collections.abc import Sequence
from dataclasses import dataclass

from climassay.confidence.statement import Statement
from climassay.confidence.topics import TopicModel
from climassay.confidence.trends.cases import Cases, ColumnKind, cases_of
from climassay.confidence.trends.changes import TopicChange, topic_changes
from climassay.confidence.trends.coverage import DocumentCoverage, SilentReport, document_coverage, silent_reports
from climassay.confidence.trends.predictions import (
    Predictions,
    TopicAccuracy,
    UntaggedScore,
    held_out,
    topic_accuracies,
    untagged_scores,
)
from climassay.confidence.trends.scores import TrendScores, trend_scores


@dataclass(frozen=True)
class TrendAnalysis:
    """Confidence by topic and by cycle, working group or report."""

    statements: tuple[Statement, ...]
    model: TopicModel
    cases: Cases
    scores: TrendScores
    coverage: tuple[DocumentCoverage, ...]
    silent: tuple[SilentReport, ...]
    accuracies: tuple[TopicAccuracy, ...] = ()
    """Of a tagger; empty without its predictions for tagged statements."""
    untagged: tuple[UntaggedScore, ...] = ()
    """Estimates for untagged statements; empty without predictions for them."""
    changes: tuple[TopicChange, ...] = ()
    """Between cycles that follow each other; empty where there is one."""
    seed: int = 0


def analyse_trends(
    statements: Sequence[Statement],
    model: TopicModel,
    *,
    by: ColumnKind | None = None,
    predictions: Predictions | None = None,
    seed: int = 0,
) -> TrendAnalysis:
    """Analyse confidence by topic.

    Args:
        statements: Of reports; untagged ones too where they are at hand.
        model: Topics of the same statements.
        by: What to compare; see :func:`~climassay.confidence.trends.cases.cases_of`.
        predictions: Of a tagger, held out for tagged statements.
        seed: Of every resampling.

    Raises:
        InputError: The topics are of other statements, or predictions lack tagged statements.
    """
    cases = cases_of(statements, model, by)
    topics = len(model.topics)
    accuracies: list[TopicAccuracy] = []
    untagged: list[UntaggedScore] = []
    if predictions is not None:
        accuracies = topic_accuracies(held_out(cases, predictions), predictions, topics)
        if any(case.id in predictions.probabilities for case in cases.untagged):
            untagged = untagged_scores(cases, predictions, topics, seed=seed)
    return TrendAnalysis(
        tuple(statements),
        model,
        cases,
        trend_scores(cases, topics, seed=seed),
        tuple(document_coverage(statements)),
        tuple(silent_reports(statements)),
        tuple(accuracies),
        tuple(untagged),
        topic_changes(cases, topics, seed=seed),
        seed,
    )
