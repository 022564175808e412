"""Confidence by topic, computed once for tables, figures and data, with the reports that did not tag their statements.

References:
    Mastrandrea and Mach 2011, Treatment of uncertainties in IPCC Assessment Reports: past approaches and
    considerations for the Fifth Assessment Report; Maiya 2024, section 4.3.1 (gaps that are not silence).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from climassay.confidence.statement import Statement
from climassay.confidence.topics import TopicModel
from climassay.confidence.trends.predictions import (
    Predictions,
    TopicAccuracy,
    UntaggedScore,
    held_out,
    topic_accuracies,
    untagged_scores,
)
from climassay.confidence.trends.scores import (
    Cases,
    ColumnKind,
    TopicChange,
    TrendScores,
    cases_of,
    topic_changes,
    trend_scores,
)

Tagging = Literal["tags", "hardly", "unknown"]
"""``tags``: uses levels of confidence. ``hardly``: almost none of its sentences has one. ``unknown``: the file holds
tagged statements only, so that nobody can tell."""
HARDLY = 0.01
"""Share of tagged sentences below which a document uses no levels of confidence; the median of AR6's chapters and
summaries is 12 %, and six chapters of its WG3 lie below 1 %."""
_ENOUGH = 50
"""Sentences below which a document is too short to tell."""
UNTAGGED_REPORTS: Mapping[tuple[str, str], str] = {
    ("AR3", "WG1"): "stated likelihood instead of confidence",
    ("AR3", "WG3"): "did not use calibrated language",
    ("AR4", "WG1"): "stated likelihood first, and confidence in few places",
    ("AR4", "WG3"): "stated agreement and evidence instead of confidence",
}
"""Working groups that are known not to have tagged their statements, and what they did instead."""


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """How much of a document is tagged."""

    report: str
    document: str
    tagged: int
    untagged: int
    tagging: Tagging

    @property
    def share(self) -> float | None:
        """Share of its statements that are tagged; None where only tagged ones are at hand."""
        return self.tagged / (self.tagged + self.untagged) if self.untagged else None


@dataclass(frozen=True, slots=True)
class UntaggedReport:
    """A report of a cycle that did not tag its statements."""

    cycle: str
    working_group: str
    reason: str
    """What it did instead, or how many of its sentences are tagged."""
    known: bool
    """Known from the literature; else found in the data."""


def document_coverage(statements: Sequence[Statement]) -> list[DocumentCoverage]:
    """Coverage of every document, by report and document; duplicates count, for the document has them."""
    tagged: Counter[tuple[str, str]] = Counter()
    untagged: Counter[tuple[str, str]] = Counter()
    for one in statements:
        title, chapter = one.document, one.chapter
        # Of a document that is stored chapter by chapter, the chapter.
        title = f"{chapter}: {title}" if chapter and chapter.casefold() not in title.casefold() else title
        (untagged if one.tag is None else tagged)[one.report, title] += 1
    found = []
    for report, document in sorted({*tagged, *untagged}):
        n, rest = tagged[report, document], untagged[report, document]
        tagging: Tagging = "unknown" if not rest or n + rest < _ENOUGH else "tags"
        if tagging == "tags" and n / (n + rest) < HARDLY:
            tagging = "hardly"
        found.append(DocumentCoverage(report, document, n, rest, tagging))
    return found


def untagged_reports(statements: Sequence[Statement]) -> list[UntaggedReport]:
    """Reports of the cycles at hand that did not tag their statements: the known ones, and those found in the data."""
    cycles = {one.cycle for one in statements if one.cycle}
    found = [UntaggedReport(*key, reason, True) for key, reason in UNTAGGED_REPORTS.items() if key[0] in cycles]
    tagged: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for one in statements:
        if one.cycle and one.working_group:
            total[one.cycle, one.working_group] += 1
            tagged[one.cycle, one.working_group] += one.tag is not None
    known = {(one.cycle, one.working_group) for one in found}
    for key, count in sorted(total.items()):
        if key not in known and count >= _ENOUGH and tagged[key] / count < HARDLY:
            reason = f"{tagged[key]} of its {count} sentences carry a level of confidence"
            found.append(UntaggedReport(*key, reason, False))
    return sorted(found, key=lambda one: (one.cycle, one.working_group))


def gap_reason(cycle: str, groups: Mapping[str, int], silent: Sequence[UntaggedReport]) -> tuple[UntaggedReport, ...]:
    """Reports that a topic's gap in a cycle may come from.

    Args:
        cycle: In which the topic has no tagged statement.
        groups: Tagged statements of the topic by working group, in all cycles.
        silent: Reports that did not tag.

    Returns:
        Those of the cycle by working groups that have statements of the topic in other cycles: where there are any,
        the gap says nothing about how much the topic was discussed.
    """
    return tuple(one for one in silent if one.cycle == cycle and groups.get(one.working_group))


@dataclass(frozen=True)
class TrendAnalysis:
    """Confidence by topic and by cycle, working group or report."""

    statements: tuple[Statement, ...]
    model: TopicModel
    cases: Cases
    scores: TrendScores
    coverage: tuple[DocumentCoverage, ...]
    silent: tuple[UntaggedReport, ...]
    accuracies: tuple[TopicAccuracy, ...] = ()
    """How right a tagger is by topic; empty without its predictions for tagged statements."""
    untagged: tuple[UntaggedScore, ...] = ()
    """Estimates for untagged statements; empty without predictions for them."""
    changes: tuple[TopicChange, ...] = ()
    """Between cycles that follow each other; empty where there is one."""
    seed: int = 0

    def name(self, topic: int | None, whole: str = "all topics") -> str:
        """A topic's name; ``whole`` for all of them."""
        return whole if topic is None else self.model.name(topic)


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
        statements: Statements of reports; untagged ones too where they are at hand.
        model: Topics of the same statements.
        by: What to compare; see :func:`~climassay.confidence.trends.scores.cases_of`.
        predictions: A tagger's predictions, held out for tagged statements.
        seed: Seed of every resampling.

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
        tuple(untagged_reports(statements)),
        tuple(accuracies),
        tuple(untagged),
        topic_changes(cases, topics, seed=seed),
        seed,
    )
