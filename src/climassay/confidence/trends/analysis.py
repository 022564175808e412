"""Analyse confidence by topic, including reports that did not tag their statements.

From a tagger's predictions in a file, the tagger's accuracy by topic and estimates for untagged statements are
computed. A row has a statement's id and, in columns named after the levels, their probabilities. Rows of tagged
statements must be held out: predicted by a tagger that was not trained on them. They measure the tagger's error, which
the estimates for untagged statements include.

References:
    Mastrandrea and Mach 2011, Treatment of uncertainties in IPCC Assessment Reports: past approaches and
    considerations for the Fifth Assessment Report; Maiya 2024, section 4.3.1 (gaps that are not silence).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.statement import Statement
from climassay.confidence.tagging.quantification import Shares, estimate_shares
from climassay.confidence.topics import TopicModel
from climassay.confidence.trends.scores import (
    ColumnKind,
    TopicChange,
    TrendScores,
    TrendStatement,
    TrendStatements,
    compute_scores,
    measure_changes,
    select_statements,
)
from climassay.confidence.vocabulary import LEVELS, Level, score
from climassay.errors import InputError
from climassay.io import parse_rows, read_bytes
from climassay.statistics import Estimate, proportion

FloatArray = NDArray[np.float64]
MIN_UNTAGGED = 20
"""The score of a topic's untagged statements in a column is estimated only if there are at least this many."""
N_SAMPLES = 300
"""Number of bootstrap samples of each estimate; small because each sample requires an iterative fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """A tagger's probabilities by statement."""

    levels: tuple[Level, ...]
    """Levels, lowest first."""
    probabilities: Mapping[str, FloatArray]
    """Probabilities of the levels by statement id, shape [levels] each."""
    errors: FloatArray | None = None
    """Confusion matrix of held-out statements, true levels in rows, shape [levels, levels]; None to compute it from the
    tagged statements with predictions."""
    residuals: FloatArray | None = None
    """True proportions minus mean probabilities in held-out documents, shape [documents, levels]. If given, they are
    used instead of ``errors``, and probabilities must be for the natural class frequencies."""

    def for_statements(self, statements: Sequence[TrendStatement]) -> FloatArray:
        """Return the probabilities of statements, shape [statements, levels]."""
        return np.stack([self.probabilities[statement.id] for statement in statements])


@dataclass(frozen=True, slots=True)
class TopicAccuracy:
    """Accuracy of a tagger's most probable level on a topic."""

    topic: int | None
    """Number of the topic; None for all topics."""
    accuracy: Estimate
    """Accuracy with Wilson's interval; ``n`` is the number of statements."""
    error: float
    """Mean absolute difference between the ranks of predicted and true level."""
    constant: float
    """Accuracy of always predicting the most frequent level over all topics."""


@dataclass(frozen=True, slots=True)
class UntaggedScore:
    """Estimated mean score of a topic's untagged statements, and mean score of all its statements."""

    topic: int | None
    column: str
    shares: Shares
    """Proportions of levels among the untagged statements; the intervals account for sampling and the tagger's
    errors."""
    untagged: int
    """Number of untagged statements. If ``shares.n`` is smaller, only a random sample of them has predictions."""
    tagged: int
    """Number of tagged statements."""
    together: float
    """Mean score of tagged and untagged statements together."""
    low: float
    high: float
    """Upper end of the 95% interval of ``together``, whose standard error combines the errors for tagged and untagged
    statements in quadrature."""


def read_predictions(path: Path) -> Predictions:
    """Read predictions from a CSV or JSON-lines file.

    Raises:
        InputError: The file cannot be read, has no columns of levels, or the probabilities of a row do not sum to 1.
    """
    # Files of tag apply have a field "probabilities", in CSV a prefix of each level's column.
    rows = []
    for row in parse_rows(path, read_bytes(path)):
        cells = {name.removeprefix("probabilities."): cell for name, cell in row.items()}
        rows.append({**cells, **cells["probabilities"]} if isinstance(cells.get("probabilities"), dict) else cells)
    levels = tuple(tag for tag in LEVELS if rows and tag in rows[0])
    if len(levels) < 2:
        raise InputError(
            f"{path} needs columns id and a probability for each level, for example {', '.join(LEVELS[1:])}."
        )
    results: dict[str, FloatArray] = {}
    for number, row in enumerate(rows, start=1):
        try:
            values = np.array([float(row[level]) for level in levels])
            name = str(row["id"])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{path}, row {number}: an id and a number for each of {', '.join(levels)} are needed."
            ) from None
        if not np.isfinite(values).all() or (values < 0).any() or abs(values.sum() - 1) > 0.02:
            raise InputError(f"{path}, row {number}: the probabilities of {name} must be positive and sum to 1.")
        results[name] = values / values.sum()
    return Predictions(levels, results)


def select_held_out(statements: TrendStatements, predictions: Predictions) -> list[TrendStatement]:
    """Return the tagged statements with a prediction and with one of the tagger's levels as their tag."""
    return [
        statement
        for statement in statements.tagged
        if statement.tag in predictions.levels and statement.id in predictions.probabilities
    ]


def compute_confusion(statements: Sequence[TrendStatement], predictions: Predictions) -> FloatArray:
    """Return the confusion matrix of held-out statements, true levels in rows, shape [levels, levels]."""
    matrix = np.zeros((len(predictions.levels),) * 2)
    for statement, predicted_index in zip(
        statements, predictions.for_statements(statements).argmax(axis=1), strict=True
    ):
        assert statement.tag is not None
        matrix[predictions.levels.index(statement.tag), predicted_index] += 1
    return matrix


def measure_topic_accuracies(
    statements: Sequence[TrendStatement], predictions: Predictions, n_topics: int
) -> list[TopicAccuracy]:
    """Return the accuracy on all held-out statements, followed by the accuracy for each topic with such statements."""
    if not statements:
        return []
    majority_level = Counter(statement.tag for statement in statements).most_common(1)[0][0]
    results = []
    for topic in (None, *range(n_topics)):
        topic_statements = [statement for statement in statements if topic in (None, statement.topic)]
        if topic_statements:
            predicted_indices = predictions.for_statements(topic_statements).argmax(axis=1)
            truth = np.array(
                [predictions.levels.index(statement.tag) for statement in topic_statements if statement.tag is not None]
            )
            accuracy = proportion(int((predicted_indices == truth).sum()), len(topic_statements))
            constant = sum(statement.tag == majority_level for statement in topic_statements) / len(topic_statements)
            results.append(TopicAccuracy(topic, accuracy, float(np.abs(predicted_indices - truth).mean()), constant))
    return results


def estimate_untagged_scores(
    statements: TrendStatements, predictions: Predictions, n_topics: int, *, samples: int = N_SAMPLES, seed: int = 0
) -> list[UntaggedScore]:
    """Estimate the scores of untagged statements in each column, for all topics and for each topic with enough of them.

    Raises:
        InputError: The tagger's error is unknown, and there are no held-out statements to measure it.
    """
    errors = predictions.errors
    if errors is None and predictions.residuals is None:
        test_statements = select_held_out(statements, predictions)
        if not test_statements:
            raise InputError("The predictions have no tagged statements, so the tagger's error is unknown.")
        errors = compute_confusion(test_statements, predictions)
    scores = [float(score(level)) for level in predictions.levels]
    results = []
    for topic in (None, *range(n_topics)):
        for column in statements.columns:
            untagged, tagged = (
                [
                    statement
                    for statement in candidates
                    if topic in (None, statement.topic) and statement.column == column
                ]
                for candidates in (statements.untagged, statements.tagged)
            )
            predicted_statements = [statement for statement in untagged if statement.id in predictions.probabilities]
            if len(predicted_statements) < MIN_UNTAGGED:
                continue
            shares = estimate_shares(
                predictions.for_statements(predicted_statements), errors, residuals=predictions.residuals,
                scores=scores, groups=[statement.section for statement in predicted_statements], samples=samples,
                seed=seed,
            )  # fmt: skip
            mean, error = _compute_section_mean(tagged)
            untagged_share = len(untagged) / (len(untagged) + len(tagged))
            joint_score = untagged_share * shares.score + (1 - untagged_share) * mean
            low = joint_score - float(
                np.hypot(untagged_share * (shares.score - shares.score_low), (1 - untagged_share) * 1.96 * error)
            )
            high = joint_score + float(
                np.hypot(untagged_share * (shares.score_high - shares.score), (1 - untagged_share) * 1.96 * error)
            )
            results.append(UntaggedScore(topic, column, shares, len(untagged), len(tagged), joint_score, low, high))
    return results


def _compute_section_mean(statements: Sequence[TrendStatement]) -> tuple[float, float]:
    """Return the mean score over sections and its standard error (linearised ratio); 0 without statements."""
    if not statements:
        return 0.0, 0.0
    mean = sum(statement.score for statement in statements) / len(statements)
    residuals: dict[tuple[str, str], float] = defaultdict(float)
    for statement in statements:
        residuals[statement.section] += statement.score - mean
    count = len(residuals)
    if count < 2:
        return mean, 2.0  # a single section has no standard error: half the width of the scale
    return mean, float(np.sqrt(count / (count - 1) * sum(r * r for r in residuals.values())) / len(statements))


TagUse = Literal["tags", "hardly", "unknown"]
"""Extent to which a document uses levels of confidence. ``tags``: sentences have levels. ``hardly``: almost no sentence
has one. ``unknown``: the data has tagged statements only, or too few sentences."""
MIN_TAGGED_SHARE = 0.01
"""A document counts as using levels of confidence if at least this proportion of its sentences is tagged.

The median of AR6's chapters and summaries is 12%, and six chapters of its WG3 have less than 1%.
"""
_MIN_SENTENCES = 50
"""A document's use of levels is judged only if the document has at least this number of sentences."""
UNTAGGED_REPORTS: Mapping[tuple[str, str], str] = {
    ("AR3", "WG1"): "stated likelihood instead of confidence",
    ("AR3", "WG3"): "did not use calibrated language",
    ("AR4", "WG1"): "stated likelihood first, and confidence in few places",
    ("AR4", "WG3"): "stated agreement and evidence instead of confidence",
}
"""Practice of reports that are known not to tag their statements, by cycle and working group."""


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """Numbers of tagged and untagged statements in a document."""

    report: str
    document: str
    tagged: int
    untagged: int
    tagging: TagUse

    @property
    def share(self) -> float | None:
        """Proportion of tagged statements; None if the data has tagged statements only."""
        return self.tagged / (self.tagged + self.untagged) if self.untagged else None


@dataclass(frozen=True, slots=True)
class UntaggedReport:
    """Report of a cycle that did not tag its statements."""

    cycle: str
    working_group: str
    reason: str
    """Practice of the report, or the number of its tagged sentences."""
    known: bool
    """Whether the lack of tags is known from the literature; otherwise it was found in the data."""


def count_coverage(statements: Sequence[Statement]) -> list[DocumentCoverage]:
    """Count the tagged and untagged statements of every document, including duplicates; sort by report and document."""
    tagged_counts: Counter[tuple[str, str]] = Counter()
    untagged_counts: Counter[tuple[str, str]] = Counter()
    for statement in statements:
        title, chapter = statement.document, statement.chapter
        # Documents stored chapter by chapter are counted by chapter.
        title = f"{chapter}: {title}" if chapter and chapter.casefold() not in title.casefold() else title
        (untagged_counts if statement.tag is None else tagged_counts)[statement.report, title] += 1
    results = []
    for report, document in sorted({*tagged_counts, *untagged_counts}):
        n_tagged, n_untagged = tagged_counts[report, document], untagged_counts[report, document]
        tag_use: TagUse = "unknown" if not n_untagged or n_tagged + n_untagged < _MIN_SENTENCES else "tags"
        if tag_use == "tags" and n_tagged / (n_tagged + n_untagged) < MIN_TAGGED_SHARE:
            tag_use = "hardly"
        results.append(DocumentCoverage(report, document, n_tagged, n_untagged, tag_use))
    return results


def find_untagged_reports(statements: Sequence[Statement]) -> list[UntaggedReport]:
    """Return the reports that are known, or found in the data, not to have tagged their statements, of all cycles."""
    cycles = {statement.cycle for statement in statements if statement.cycle}
    reports = {
        key: UntaggedReport(*key, practice, True) for key, practice in UNTAGGED_REPORTS.items() if key[0] in cycles
    }
    tagged_counts: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for statement in statements:
        if statement.cycle and statement.working_group:
            total[statement.cycle, statement.working_group] += 1
            tagged_counts[statement.cycle, statement.working_group] += statement.tag is not None
    for key, count in total.items():
        if key not in reports and count >= _MIN_SENTENCES and tagged_counts[key] / count < MIN_TAGGED_SHARE:
            reason = f"{tagged_counts[key]} of its {count} sentences have a level of confidence"
            reports[key] = UntaggedReport(*key, reason, False)
    return [reports[key] for key in sorted(reports)]


def find_gap_reasons(
    cycle: str, groups: Mapping[str, int], untagged: Sequence[UntaggedReport]
) -> tuple[UntaggedReport, ...]:
    """Return the reports that may explain why a topic has no tagged statements in a cycle.

    Args:
        cycle: Cycle in which the topic has no tagged statement.
        groups: Number of the topic's tagged statements by working group, in all cycles.
        untagged: Reports that did not tag their statements.

    Returns:
        Untagged reports of the cycle whose working groups have statements on the topic in other cycles. If there are
        any, the lack of tagged statements does not mean that the topic was not discussed.
    """
    return tuple(report for report in untagged if report.cycle == cycle and groups.get(report.working_group))


@dataclass(frozen=True)
class TrendAnalysis:
    """Confidence by topic and by cycle, working group or report."""

    statements: tuple[Statement, ...]
    model: TopicModel
    trend_statements: TrendStatements
    scores: TrendScores
    coverage: tuple[DocumentCoverage, ...]
    untagged_reports: tuple[UntaggedReport, ...]
    accuracies: tuple[TopicAccuracy, ...] = ()
    """Accuracy of a tagger by topic; empty without predictions for tagged statements."""
    untagged: tuple[UntaggedScore, ...] = ()
    """Estimates for untagged statements; empty without predictions for them."""
    changes: tuple[TopicChange, ...] = ()
    """Changes between successive cycles; empty for a single cycle."""
    seed: int = 0

    def name(self, topic: int | None, all_topics: str = "all topics") -> str:
        """Return a topic's name; if ``topic`` is None, return ``all_topics``."""
        return all_topics if topic is None else self.model.name(topic)


def analyse_trends(
    statements: Sequence[Statement],
    model: TopicModel,
    *,
    by: ColumnKind | None = None,
    predictions: Predictions | None = None,
    seed: int = 0,
) -> TrendAnalysis:
    """Analyse levels of confidence by topic, and by cycle, working group or report.

    Args:
        statements: Statements of reports, including untagged ones if there are any.
        model: Topics of the same statements.
        by: Kind of columns to compare; see :func:`~climassay.confidence.trends.scores.select_statements`.
        predictions: Predictions of a tagger; those for tagged statements must be held-out predictions.
        seed: Seed of every bootstrap.

    Raises:
        InputError: The topics belong to other statements, or the predictions lack tagged statements.
    """
    trend_statements = select_statements(statements, model, by)
    n_topics = len(model.topics)
    accuracies: list[TopicAccuracy] = []
    untagged_scores: list[UntaggedScore] = []
    if predictions is not None:
        accuracies = measure_topic_accuracies(select_held_out(trend_statements, predictions), predictions, n_topics)
        if any(statement.id in predictions.probabilities for statement in trend_statements.untagged):
            untagged_scores = estimate_untagged_scores(trend_statements, predictions, n_topics, seed=seed)
    return TrendAnalysis(
        tuple(statements),
        model,
        trend_statements,
        compute_scores(trend_statements, n_topics, seed=seed),
        tuple(count_coverage(statements)),
        tuple(find_untagged_reports(statements)),
        tuple(accuracies),
        tuple(untagged_scores),
        measure_changes(trend_statements, n_topics, seed=seed),
        seed,
    )
