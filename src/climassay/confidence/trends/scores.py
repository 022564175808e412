"""Scores of topics with intervals: means of -2 to 2, resampled by section.

Statements of a section share authors, evidence and subject; resampling statements by themselves would make intervals
too narrow. All scores come from the same resamples of sections.

References:
    Maiya 2024, section 4.3.1 (score of a topic); Cameron, Gelbach and Miller 2008 (bootstrap by group); DerSimonian
    and Laird 1986 (variance between groups); Efron and Morris 1975 (shrinkage); Holm 1979.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.topics import OUTSIDE
from climassay.confidence.trends.cases import Case, Cases
from climassay.confidence.vocabulary import TAGS
from climassay.statistics import Estimate, Interval, holm

FEWEST_SECTIONS = 5
"""Below, a bootstrap interval means nothing, and none is given."""
RESAMPLES = 2000
_Z95 = 1.959963984540054
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TopicScore:
    """Mean score of the tagged statements of a topic in a column."""

    topic: int | None
    """None: of all topics."""
    column: str | None
    """None: of all columns."""
    value: float
    interval: Interval | None
    """Of 95 %; None with fewer than five sections."""
    sections: int
    counts: tuple[int, ...]
    """Statements with each tag, lowest first."""

    @property
    def n(self) -> int:
        """Statements."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class TopicDeviation:
    """How much more or less confident a topic sounds than statements of the same columns do."""

    topic: int
    raw: Estimate
    """Mean difference of its statements to the mean of their column; n counts sections."""
    shrunken: Estimate
    """Drawn towards no difference, the more so the less the topic's statements tell."""
    p: float
    """Of no difference, two-sided."""
    p_holm: float
    """Corrected for all topics looked at (Holm)."""


@dataclass(frozen=True)
class TrendScores:
    """All scores of one report."""

    by_topic: tuple[TopicScore, ...]
    """Of each topic over all columns."""
    by_column: tuple[TopicScore, ...]
    """Of each column over all topics."""
    cells: dict[tuple[int, str], TopicScore]
    """Of each topic in each column that it has statements in."""
    overall: TopicScore
    deviations: tuple[TopicDeviation, ...]
    """Most confident first; of topics with enough sections."""


def trend_scores(cases: Cases, topics: int, *, resamples: int = RESAMPLES, seed: int = 0) -> TrendScores:
    """Score topics.

    Args:
        cases: The statements; those of no topic count for their column only.
        topics: Number of topics.
        resamples: Of sections.
        seed: Of the resampling.
    """
    tables = _Tables.of(cases, topics)
    weights = _resamples(len(tables.sums), resamples, seed)
    score = _Scorer(cases.tagged, tables, weights)
    by_topic = tuple(score.of(topic, None) for topic in range(topics))
    by_column = tuple(score.of(None, column) for column in cases.columns)
    cells = {
        (topic, column): found
        for topic in range(topics)
        for column in cases.columns
        if (found := score.of(topic, column)).n
    }
    return TrendScores(by_topic, by_column, cells, score.of(None, None), _deviations(tables, weights, by_topic))


@dataclass(frozen=True, slots=True)
class _Tables:
    """Sums by section; topic number ``topics`` stands for none."""

    sums: FloatArray
    """Of scores, shape [sections, topics + 1, columns]."""
    counts: FloatArray
    """Of statements, the same shape."""
    columns: tuple[str, ...]

    @classmethod
    def of(cls, cases: Cases, topics: int) -> "_Tables":
        sections = {name: place for place, name in enumerate(sorted({case.section for case in cases.tagged}))}
        columns = {name: place for place, name in enumerate(cases.columns)}
        shape = (len(sections), topics + 1, len(columns))
        at = (
            np.array([sections[case.section] for case in cases.tagged]),
            np.array([topics if case.topic == OUTSIDE else case.topic for case in cases.tagged]),
            np.array([columns[case.column] for case in cases.tagged]),
        )
        sums, counts = np.zeros(shape), np.zeros(shape)
        np.add.at(sums, at, [float(case.score) for case in cases.tagged])
        np.add.at(counts, at, 1.0)
        return cls(sums, counts, cases.columns)


class _Scorer:
    """Makes scores from tables and resamples that they share."""

    def __init__(self, tagged: Sequence[Case], tables: _Tables, weights: FloatArray) -> None:
        self._tables = tables
        self._weights = weights
        self._tags = Counter((case.topic, case.column, case.tag) for case in tagged)

    def of(self, topic: int | None, column: str | None) -> TopicScore:
        """Score of a topic in a column; None for all of them."""
        places = [n for n, name in enumerate(self._tables.columns) if column in (None, name)]
        topics = slice(None) if topic is None else slice(topic, topic + 1)
        sums = self._tables.sums[:, topics][:, :, places].sum(axis=(1, 2))
        counts = self._tables.counts[:, topics][:, :, places].sum(axis=(1, 2))
        tags = tuple(
            sum(n for (t, c, tag), n in self._tags.items() if topic in (None, t) and column in (None, c) and tag == one)
            for one in TAGS
        )
        sections, total = int((counts > 0).sum()), counts.sum()
        value = float(sums.sum() / total) if total else 0.0
        return TopicScore(topic, column, value, _interval(self._weights, sums, counts), sections, tags)


def _interval(weights: FloatArray, sums: FloatArray, counts: FloatArray) -> Interval | None:
    """Percentile interval of a ratio of sums over resampled sections; weights of shape [resamples, sections]."""
    used = counts > 0
    if used.sum() < FEWEST_SECTIONS:
        return None
    drawn, size = weights[:, used] @ sums[used], weights[:, used] @ counts[used]
    means = drawn[size > 0] / size[size > 0]
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(low), float(high))


def _resamples(sections: int, resamples: int, seed: int) -> FloatArray:
    """How often each section is drawn, shape [resamples, sections]."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(sections, np.full(sections, 1 / sections), size=resamples).astype(np.float64)


def _deviations(tables: _Tables, weights: FloatArray, by_topic: Sequence[TopicScore]) -> tuple[TopicDeviation, ...]:
    """Differences of topics to what their mix of columns would make expect, shrunken, most confident first."""
    sums, counts = tables.sums, tables.counts
    looked = [score.topic for score in by_topic if score.topic is not None and score.sections >= FEWEST_SECTIONS]
    if len(looked) < 2:
        return ()
    values = _differences(sums.sum(axis=0)[None], counts.sum(axis=0)[None])[0, looked]
    flat = (len(weights), *sums.shape[1:])
    drawn = _differences(
        (weights @ sums.reshape(len(sums), -1)).reshape(flat), (weights @ counts.reshape(len(sums), -1)).reshape(flat)
    )[:, looked]
    errors = np.nanstd(drawn, axis=0, ddof=1)
    ends = np.nanquantile(drawn, [0.025, 0.975], axis=0)
    kept, middle = shrink(values, errors)
    sections = [by_topic[topic].sections for topic in looked]
    p_values = [_p_value(value / error) if error else 1.0 for value, error in zip(values, errors, strict=True)]
    found = []
    for place, (topic, corrected) in enumerate(zip(looked, holm(p_values), strict=True)):
        half = _Z95 * float(np.sqrt(kept[place])) * float(errors[place])
        centre = float(middle[place])
        raw = Estimate(float(values[place]), Interval(float(ends[0, place]), float(ends[1, place])), sections[place])
        shrunken = Estimate(centre, Interval(centre - half, centre + half), sections[place])
        found.append(TopicDeviation(topic, raw, shrunken, p_values[place], corrected))
    return tuple(sorted(found, key=lambda one: -one.shrunken.value))


def shrink(values: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Differences drawn towards 0 by how little they tell beside their spread (normal empirical Bayes).

    Args:
        values: Differences, shape [k].
        errors: Their standard errors, shape [k].

    Returns:
        Share of each difference that is kept, ``t² / (t² + error²)`` with the variance t² between topics by
        DerSimonian and Laird's moments about 0; and what is left of the differences.
    """
    precisions = 1 / np.maximum(errors, 1e-9) ** 2
    spread = float((precisions * values**2).sum()) - len(values)
    between = max(0.0, spread / float(precisions.sum()))
    kept = between / (between + np.maximum(errors, 1e-9) ** 2)
    return np.asarray(kept), np.asarray(kept * values)


def _differences(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Mean score of each topic minus the one that its mix of columns makes expect.

    Args:
        sums: Of scores, shape [samples, topics + 1, columns]; the last topic stands for none.
        counts: Of statements, the same shape.

    Returns:
        Shape [samples, topics]; NaN where a topic has no statements in a sample.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums.sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
        expected = np.nansum(counts * means, axis=2)
        return np.asarray(((sums.sum(axis=2) - expected) / counts.sum(axis=2))[:, :-1])


def _p_value(z: float) -> float:
    from math import erfc, sqrt

    return erfc(abs(z) / sqrt(2))
