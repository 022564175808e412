"""Scores of topics with intervals, and their changes between assessment cycles.

Scores are means of -2 to 2. Statements of a section share authors, evidence and subject, so sections are resampled
together, and all scores come from the same resamples. Changes are tested by permuting sections: under no change it does
not matter which cycle a section comes from. The difference of means is divided by its standard error in every
permutation, so that cycles of unlike spread and size may be compared.

References:
    Maiya 2024, section 4.3.1 (score of a topic); Cameron, Gelbach and Miller 2008 (bootstrap by group); DerSimonian
    and Laird 1986 (variance between groups); Efron and Morris 1975 (shrinkage); Holm 1979; Janssen 1997, Studentized
    permutation tests for non-i.i.d. hypotheses and the generalized Behrens-Fisher problem; Phipson and Smyth 2010 (a
    permutation p-value is never 0).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.statement import Statement
from climassay.confidence.topics import OUTSIDE, TopicModel
from climassay.confidence.vocabulary import TAGS, Tag, score
from climassay.errors import InputError
from climassay.statistics import Estimate, Interval, holm

ColumnKind = Literal["cycle", "working group", "report"]
"""What scores are compared between."""


@dataclass(frozen=True, slots=True)
class Case:
    """A statement with all that trends ask of it."""

    id: str
    topic: int
    """Number of its topic; -1 for none."""
    column: str
    """Its cycle, or its working group."""
    section: tuple[str, str]
    """Document and section: statements of one section are not independent of each other."""
    tag: Tag | None
    report: str

    @property
    def score(self) -> int:
        """-2 to 2; of tagged statements only."""
        assert self.tag is not None
        return score(self.tag)


@dataclass(frozen=True, slots=True)
class Cases:
    """What is compared, and the statements for it."""

    kind: ColumnKind
    columns: tuple[str, ...]
    """In order."""
    tagged: tuple[Case, ...]
    untagged: tuple[Case, ...]
    unknown: int
    """Tagged statements that the topics do not know, and that are left out."""


def cases_of(statements: Sequence[Statement], model: TopicModel, by: ColumnKind | None = None) -> Cases:
    """Statements for trends.

    Args:
        statements: Any; duplicates and those without topic in ``model`` are left out.
        model: Topics of the same statements.
        by: What to compare; by default cycles where there are several, else working groups, else reports.

    Raises:
        InputError: No tagged statement has a topic: the files do not belong together.
    """
    counted = [one for one in statements if one.duplicate_of is None]
    kind = by or _kind(counted)
    known = [(one, topic) for one in counted if (topic := model.topic_of(one.id)) is not None]
    cases = [
        Case(one.id, topic, _column(one, kind), _section(one), one.tag, one.report)
        for one, topic in known
        if topic != OUTSIDE or one.tag is not None
    ]
    tagged = tuple(case for case in cases if case.tag is not None)
    if not tagged:
        raise InputError("No tagged statement has a topic: make the topics from this file of statements.")
    columns = tuple(sorted({case.column for case in cases}, key=_order))
    untagged = tuple(case for case in cases if case.tag is None)
    return Cases(kind, columns, tagged, untagged, sum(one.tag is not None for one in counted) - len(tagged))


def _kind(statements: Sequence[Statement]) -> ColumnKind:
    if len({one.cycle for one in statements if one.cycle}) > 1:
        return "cycle"
    return "working group" if any(one.working_group for one in statements) else "report"


def _column(statement: Statement, kind: ColumnKind) -> str:
    named = {"cycle": statement.cycle, "working group": statement.working_group, "report": statement.report}
    return named[kind] or "other"


def _section(statement: Statement) -> tuple[str, str]:
    """A numbered section or one with headings; where there is neither, the paragraph, else the statement by itself."""
    return statement.document_id, statement.group or statement.paragraph_id or statement.id


def _order(column: str) -> tuple[int, str]:
    """Working groups first, then the synthesis and special reports."""
    return (0 if column.startswith(("WG", "AR")) else 1 if column == "SYR" else 3 if column == "other" else 2, column)


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


PERMUTATIONS = 9_999
_STREAM = 5_077
"""Keeps the permutations apart from whatever else is drawn by the same seed."""
_FIRST = 999
"""Permutations of a topic that does not look changed."""
_DULL = 0.1
"""p-value of the first permutations from which no more are drawn."""


@dataclass(frozen=True, slots=True)
class TopicChange:
    """How much more confidently a topic is stated in one column than in another."""

    topic: int | None
    """None: all topics together."""
    before: str
    after: str
    """Columns, in order."""
    means: tuple[float, float]
    statements: tuple[int, int]
    sections: tuple[int, int]
    interval: Interval
    """Of 95 %, of the difference, from the standard errors over sections."""
    p: float
    """Of no difference, two-sided, by permutation."""
    p_holm: float
    """Corrected for all topics looked at between the two columns; of all topics together it is ``p``."""

    @property
    def value(self) -> float:
        """Difference of the means, later minus earlier."""
        return self.means[1] - self.means[0]


def topic_changes(cases: Cases, topics: int, *, seed: int = 0) -> tuple[TopicChange, ...]:
    """Changes between cycles that follow each other, or between two reports.

    Args:
        cases: The statements.
        topics: Number of topics.
        seed: Of the permutations.

    Returns:
        Per pair of columns all topics together, then each topic with at least five sections in both, by size of change.
    """
    if cases.kind != "cycle" and (cases.kind != "report" or len(cases.columns) != 2):
        return ()
    found: list[TopicChange] = []
    for before, after in pairwise(cases.columns):
        pair = [case for case in cases.tagged if case.column in (before, after)]
        whole = _change(None, pair, before, after, seed)
        if whole is None:
            continue
        by_topic: dict[int, list[Case]] = {}
        for case in pair:
            by_topic.setdefault(case.topic, []).append(case)
        named = (_change(number, by_topic.get(number, ()), before, after, seed) for number in range(topics))
        changes = [one for one in named if one is not None]
        corrected = holm([one.p for one in changes]) if changes else []
        changes = [replace(one, p_holm=p) for one, p in zip(changes, corrected, strict=True)]
        found += [whole, *sorted(changes, key=lambda one: -one.value)]
    return tuple(found)


def _change(topic: int | None, cases: Sequence[Case], before: str, after: str, seed: int) -> TopicChange | None:
    """The change of one topic; None with too few sections on either side."""
    sections: dict[tuple[str, tuple[str, str]], list[int]] = {}
    for case in cases:
        sections.setdefault((case.column, case.section), []).append(case.score)
    names = sorted(sections)
    later = np.array([column == after for column, _ in names], dtype=bool)
    sizes = (int((~later).sum()), int(later.sum()))
    if min(sizes) < FEWEST_SECTIONS:
        return None
    sums = np.array([float(sum(sections[name])) for name in names])
    counts = np.array([float(len(sections[name])) for name in names])
    (difference,), (error,) = _mean_differences(later[None], sums, counts)
    p = _permutation_p(later, sums, counts, np.random.default_rng([_STREAM, seed, 0 if topic is None else topic + 1]))
    sides = [(sums[side].sum(), counts[side].sum()) for side in (~later, later)]
    return TopicChange(
        topic,
        before,
        after,
        (float(sides[0][0] / sides[0][1]), float(sides[1][0] / sides[1][1])),
        (int(sides[0][1]), int(sides[1][1])),
        sizes,
        Interval(float(difference - _Z95 * error), float(difference + _Z95 * error)),
        p,
        p,
    )


def _permutation_p(
    later: NDArray[np.bool_], sums: FloatArray, counts: FloatArray, generator: np.random.Generator
) -> float:
    def ratios(sides: NDArray[np.bool_]) -> FloatArray:
        differences, errors = _mean_differences(sides, sums, counts)
        return np.abs(differences) / np.maximum(errors, 1e-9)

    (seen,) = ratios(later[None])
    beyond, drawn = 0, 0
    for count in (_FIRST, PERMUTATIONS - _FIRST):
        sides = generator.permuted(np.broadcast_to(later, (count, len(later))), axis=1)
        beyond += int((ratios(sides) >= seen - 1e-9).sum())
        drawn += count
        if (beyond + 1) / (drawn + 1) > _DULL:
            break
    return (beyond + 1) / (drawn + 1)


def _mean_differences(later: NDArray[np.bool_], sums: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Difference of the means of statements and its standard error over sections, by linearisation of the ratio.

    Args:
        later: Which sections are taken for the later column's, shape [permutations, sections].
        sums: Scores of each section's statements, shape [sections].
        counts: Statements of each section, shape [sections].

    Returns:
        Both of shape [permutations].
    """
    means, variances = [], []
    moments = np.stack([sums, counts, sums * sums, sums * counts, counts * counts], axis=1)
    for side in (~later, later):
        size = side.sum(axis=1)
        total, n, squares, products, n_squares = (side.astype(np.float64) @ moments).T
        mean = total / n
        spread = np.clip(squares - 2 * mean * products + mean * mean * n_squares, 0, None)
        means.append(mean)
        variances.append(size / (size - 1) * spread / n**2)
    return means[1] - means[0], np.sqrt(variances[0] + variances[1])
