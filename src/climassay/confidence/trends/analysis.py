"""Confidence by topic, computed once for tables, figures and data, with the reports that did not tag their statements.

References:
    Mastrandrea and Mach 2011, Treatment of uncertainties in IPCC Assessment Reports: past approaches and
    considerations for the Fifth Assessment Report; Maiya 2024, section 4.3.1 (gaps that are not silence).

What a tagger says of statements, from a file; how often it is right by topic; and what that makes of the trends.

A row names a statement and gives a probability for each level, in columns named after the levels. Rows of tagged
statements must be held out: predicted by a tagger that was not trained on them. They tell how the tagger errs, and
the estimates for untagged statements carry that error.
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
    Case,
    Cases,
    ColumnKind,
    TopicChange,
    TrendScores,
    cases_of,
    topic_changes,
    trend_scores,
)
from climassay.confidence.vocabulary import TAGS, Tag, score
from climassay.errors import InputError
from climassay.io import parse_rows, read_bytes
from climassay.statistics import Estimate, proportion

FloatArray = NDArray[np.float64]
FEWEST_UNTAGGED = 20
"""Untagged statements of a topic in a column, below which nothing is estimated."""
SAMPLES = 300
"""Bootstrap samples of each estimate, which is itself fitted step by step."""


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """A tagger's probabilities by statement."""

    levels: tuple[Tag, ...]
    """Lowest first."""
    probabilities: Mapping[str, FloatArray]
    """Shape [levels] each, by the statement's id."""
    errors: FloatArray | None = None
    """Held-out statements by true (rows) and given level, shape [levels, levels], where the tagger brings them; else
    they are counted from the tagged statements with a prediction."""
    residuals: FloatArray | None = None
    """True shares less mean probabilities in documents that the tagger has not read, shape [documents, levels], where
    it brings them: the better way to know its error, and then probabilities are those of the natural mix."""

    def of(self, cases: Sequence[Case]) -> FloatArray:
        """Those of some statements, all of which have some; shape [cases, levels]."""
        return np.stack([self.probabilities[case.id] for case in cases])


@dataclass(frozen=True, slots=True)
class TopicAccuracy:
    """How often a tagger's most probable level is the authors'."""

    topic: int | None
    """None: of all topics."""
    accuracy: Estimate
    """With Wilson's interval; n counts statements."""
    error: float
    """Mean number of levels between both."""
    constant: float
    """Accuracy of always giving the level that is most frequent over all topics."""


@dataclass(frozen=True, slots=True)
class UntaggedScore:
    """What the untagged statements of a topic would score, and the trend with them."""

    topic: int | None
    column: str
    shares: Shares
    """Shares of levels among the untagged statements; intervals carry sampling and the tagger's error."""
    untagged: int
    """Untagged statements; ``shares.n`` of them, drawn at random, have predictions."""
    tagged: int
    """Tagged statements beside them."""
    together: float
    """Score of tagged and untagged statements."""
    low: float
    high: float
    """Interval of 95% of ``together``: both parts' errors, added in quadrature."""


def read_predictions(path: Path) -> Predictions:
    """Read a CSV or JSON-lines file of predictions.

    Raises:
        InputError: It cannot be read, names no levels, or a row has no probabilities that sum to 1.
    """
    # A tagger's own answers keep their probabilities in a field of their own, which CSV names in front of each.
    rows = []
    for row in parse_rows(path, read_bytes(path)):
        own = {name.removeprefix("probabilities."): cell for name, cell in row.items()}
        rows.append({**own, **own["probabilities"]} if isinstance(own.get("probabilities"), dict) else own)
    levels = tuple(tag for tag in TAGS if rows and tag in rows[0])
    if len(levels) < 2:
        raise InputError(
            f"{path} needs columns id and a probability for each level, for example {', '.join(TAGS[1:])}."
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


def held_out(cases: Cases, predictions: Predictions) -> list[Case]:
    """Tagged statements with a prediction, whose tag is one of the tagger's levels."""
    return [one for one in cases.tagged if one.tag in predictions.levels and one.id in predictions.probabilities]


def confusion(cases: Sequence[Case], predictions: Predictions) -> FloatArray:
    """Counts by true level (rows) and most probable level (columns), of statements that :func:`held_out` gave.

    Returns:
        Shape [levels, levels].
    """
    table = np.zeros((len(predictions.levels),) * 2)
    for case, given in zip(cases, predictions.of(cases).argmax(axis=1), strict=True):
        assert case.tag is not None
        table[predictions.levels.index(case.tag), given] += 1
    return table


def topic_accuracies(cases: Sequence[Case], predictions: Predictions, topics: int) -> list[TopicAccuracy]:
    """Accuracy over all held-out statements, then by topic; topics without any are left out."""
    if not cases:
        return []
    usual = Counter(case.tag for case in cases).most_common(1)[0][0]
    results = []
    for topic in (None, *range(topics)):
        own = [case for case in cases if topic in (None, case.topic)]
        if own:
            given = predictions.of(own).argmax(axis=1)
            truth = np.array([predictions.levels.index(case.tag) for case in own if case.tag is not None])
            accuracy = proportion(int((given == truth).sum()), len(own))
            constant = sum(case.tag == usual for case in own) / len(own)
            results.append(TopicAccuracy(topic, accuracy, float(np.abs(given - truth).mean()), constant))
    return results


def untagged_scores(
    cases: Cases, predictions: Predictions, topics: int, *, samples: int = SAMPLES, seed: int = 0
) -> list[UntaggedScore]:
    """Scores of untagged statements by column over all topics, then by topic and column, where there are enough.

    Raises:
        InputError: The tagger's error is not known for every level: no held-out statements have it.
    """
    table = predictions.errors
    if table is None and predictions.residuals is None:
        known = held_out(cases, predictions)
        if not known:
            raise InputError("The predictions have no tagged statements, so the tagger's error is unknown.")
        table = confusion(known, predictions)
    scores = [float(score(level)) for level in predictions.levels]
    results = []
    for topic in (None, *range(topics)):
        for column in cases.columns:
            here = [one for one in cases.untagged if topic in (None, one.topic) and one.column == column]
            own = [one for one in here if one.id in predictions.probabilities]
            if len(own) < FEWEST_UNTAGGED:
                continue
            shares = estimate_shares(
                predictions.of(own), table, residuals=predictions.residuals, scores=scores,
                groups=[case.section for case in own], samples=samples, seed=seed,
            )  # fmt: skip
            tagged = [one for one in cases.tagged if topic in (None, one.topic) and one.column == column]
            mean, error = _mean_by_section(tagged)
            part = len(here) / (len(here) + len(tagged))
            together = part * shares.score + (1 - part) * mean
            low = together - float(np.hypot(part * (shares.score - shares.score_low), (1 - part) * 1.96 * error))
            high = together + float(np.hypot(part * (shares.score_high - shares.score), (1 - part) * 1.96 * error))
            results.append(UntaggedScore(topic, column, shares, len(here), len(tagged), together, low, high))
    return results


def _mean_by_section(cases: Sequence[Case]) -> tuple[float, float]:
    """Mean score, and its standard error with sections as the units (linearised ratio); 0, 0 for no statements."""
    if not cases:
        return 0.0, 0.0
    mean = sum(case.score for case in cases) / len(cases)
    residuals: dict[tuple[str, str], float] = defaultdict(float)
    for case in cases:
        residuals[case.section] += case.score - mean
    count = len(residuals)
    if count < 2:
        return mean, 2.0  # one section says nothing about others: as unsure as the scale is wide
    return mean, float(np.sqrt(count / (count - 1) * sum(r * r for r in residuals.values())) / len(cases))


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
    results = []
    for report, document in sorted({*tagged, *untagged}):
        n, rest = tagged[report, document], untagged[report, document]
        tagging: Tagging = "unknown" if not rest or n + rest < _ENOUGH else "tags"
        if tagging == "tags" and n / (n + rest) < HARDLY:
            tagging = "hardly"
        results.append(DocumentCoverage(report, document, n, rest, tagging))
    return results


def untagged_reports(statements: Sequence[Statement]) -> list[UntaggedReport]:
    """Reports of the cycles at hand that did not tag their statements: the known ones, and those found in the data."""
    cycles = {one.cycle for one in statements if one.cycle}
    results = [UntaggedReport(*key, reason, True) for key, reason in UNTAGGED_REPORTS.items() if key[0] in cycles]
    tagged: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for one in statements:
        if one.cycle and one.working_group:
            total[one.cycle, one.working_group] += 1
            tagged[one.cycle, one.working_group] += one.tag is not None
    known = {(one.cycle, one.working_group) for one in results}
    for key, count in sorted(total.items()):
        if key not in known and count >= _ENOUGH and tagged[key] / count < HARDLY:
            reason = f"{tagged[key]} of its {count} sentences carry a level of confidence"
            results.append(UntaggedReport(*key, reason, False))
    return sorted(results, key=lambda one: (one.cycle, one.working_group))


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
