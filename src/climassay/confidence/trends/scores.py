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
from math import erfc, sqrt
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
    several = len({one.cycle for one in counted if one.cycle}) > 1
    grouped = any(one.working_group for one in counted)
    kind: ColumnKind = by or ("cycle" if several else "working group" if grouped else "report")
    cases = [
        Case(
            id=one.id,
            topic=topic,
            column={"cycle": one.cycle, "working group": one.working_group, "report": one.report}[kind] or "other",
            # A numbered section or one with headings; where there is neither, the paragraph, else the statement.
            section=(one.document_id, one.group or one.paragraph_id or one.id),
            tag=one.tag,
        )
        for one in counted
        if (topic := model.topic_of(one.id)) is not None and (topic != OUTSIDE or one.tag is not None)
    ]
    tagged = tuple(case for case in cases if case.tag is not None)
    if not tagged:
        raise InputError("No tagged statement has a topic: make the topics from this file of statements.")

    def order(column: str) -> tuple[int, str]:
        """Working groups first, then the synthesis and special reports."""
        if column.startswith(("WG", "AR")):
            return 0, column
        return {"SYR": 1, "other": 3}.get(column, 2), column

    columns = tuple(sorted({case.column for case in cases}, key=order))
    untagged = tuple(case for case in cases if case.tag is None)
    return Cases(kind, columns, tagged, untagged, sum(one.tag is not None for one in counted) - len(tagged))


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
    """95% interval; None with fewer than five sections."""
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
    """Two-sided p-value of no difference."""
    p_holm: float
    """Corrected for all topics looked at (Holm)."""


@dataclass(frozen=True)
class TrendScores:
    """All scores of one report."""

    by_topic: tuple[TopicScore, ...]
    by_column: tuple[TopicScore, ...]
    cells: dict[tuple[int, str], TopicScore]
    overall: TopicScore
    deviations: tuple[TopicDeviation, ...]
    """Most confident first; of topics with enough sections."""


def trend_scores(cases: Cases, topics: int, *, resamples: int = RESAMPLES, seed: int = 0) -> TrendScores:
    """Score topics.

    Args:
        cases: The statements; those of no topic count for their column only.
        topics: Number of topics.
        resamples: Number of resamples of sections.
        seed: Seed of the resampling.
    """
    sections = _SectionSums(cases, topics, resamples, seed)
    by_topic = tuple(sections.score(topic, None) for topic in range(topics))
    by_column = tuple(sections.score(None, column) for column in cases.columns)
    cells = {
        (topic, column): result
        for topic in range(topics)
        for column in cases.columns
        if (result := sections.score(topic, column)).n
    }
    return TrendScores(by_topic, by_column, cells, sections.score(None, None), sections.deviations(by_topic))


class _SectionSums:
    """Scores and numbers of statements by section, topic and column, and how often each resample draws a section."""

    def __init__(self, cases: Cases, topics: int, resamples: int, seed: int) -> None:
        sections = {name: place for place, name in enumerate(sorted({case.section for case in cases.tagged}))}
        self.columns = list(cases.columns)
        at = (
            np.array([sections[case.section] for case in cases.tagged]),
            np.array([topics if case.topic == OUTSIDE else case.topic for case in cases.tagged]),
            np.array([self.columns.index(case.column) for case in cases.tagged]),
        )
        shape = (len(sections), topics + 1, len(self.columns))
        self.sums, self.counts = np.zeros(shape), np.zeros(shape)
        """Shape [sections, topics + 1, columns]; the last topic stands for none."""
        np.add.at(self.sums, at, [float(case.score) for case in cases.tagged])
        np.add.at(self.counts, at, 1.0)
        self.tags = Counter((case.topic, case.column, case.tag) for case in cases.tagged)
        generator, size = np.random.default_rng(seed), len(sections)
        self.weights = generator.multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
        """Shape [resamples, sections]."""

    def score(self, topic: int | None, column: str | None) -> TopicScore:
        """Score of a topic in a column, with the percentile interval of resampled sections; None for all of them."""
        places = [place for place, name in enumerate(self.columns) if column in (None, name)]
        topics = slice(None) if topic is None else slice(topic, topic + 1)
        sums, counts = (table[:, topics][:, :, places].sum(axis=(1, 2)) for table in (self.sums, self.counts))
        tags = tuple(
            sum(n for (t, c, tag), n in self.tags.items() if topic in (None, t) and column in (None, c) and tag == one)
            for one in TAGS
        )
        used, total, interval = counts > 0, counts.sum(), None
        if used.sum() >= FEWEST_SECTIONS:
            drawn, size = self.weights[:, used] @ sums[used], self.weights[:, used] @ counts[used]
            low, high = np.quantile(drawn[size > 0] / size[size > 0], [0.025, 0.975])
            interval = Interval(float(low), float(high))
        return TopicScore(topic, column, float(sums.sum() / total) if total else 0.0, interval, int(used.sum()), tags)

    def deviations(self, by_topic: Sequence[TopicScore]) -> tuple[TopicDeviation, ...]:
        """Differences of topics to what their mix of columns would make expect, shrunken, most confident first."""
        looked = [one.topic for one in by_topic if one.topic is not None and one.sections >= FEWEST_SECTIONS]
        if len(looked) < 2:
            return ()
        values = _differences(self.sums.sum(axis=0)[None], self.counts.sum(axis=0)[None])[0, looked]
        drawn = _differences(*(np.tensordot(self.weights, table, axes=1) for table in (self.sums, self.counts)))
        drawn = drawn[:, looked]
        errors = np.nanstd(drawn, axis=0, ddof=1)
        ends = np.nanquantile(drawn, [0.025, 0.975], axis=0)
        kept, middle = shrink(values, errors)
        p_values = [
            erfc(abs(value / error) / sqrt(2)) if error else 1.0 for value, error in zip(values, errors, strict=True)
        ]
        results = []
        for place, (topic, corrected) in enumerate(zip(looked, holm(p_values), strict=True)):
            sections = by_topic[topic].sections
            half = _Z95 * float(np.sqrt(kept[place])) * float(errors[place])
            centre = float(middle[place])
            raw = Estimate(float(values[place]), Interval(float(ends[0, place]), float(ends[1, place])), sections)
            shrunken = Estimate(centre, Interval(centre - half, centre + half), sections)
            results.append(TopicDeviation(topic, raw, shrunken, p_values[place], corrected))
        return tuple(sorted(results, key=lambda one: -one.shrunken.value))


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

    From shapes [samples, topics + 1, columns] to [samples, topics]; NaN where a topic has no statements in a sample.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums.sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
        expected = np.nansum(counts * means, axis=2)
        return np.asarray(((sums.sum(axis=2) - expected) / counts.sum(axis=2))[:, :-1])


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
    """95% interval of the difference, from the standard errors over sections and Welch's t distribution."""
    p: float
    """Two-sided p-value of no difference, by permutation."""
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
        seed: Seed of the permutations.

    Returns:
        Per pair of columns all topics together, then each topic with at least five sections in both, by size of change.
    """
    if cases.kind != "cycle" and (cases.kind != "report" or len(cases.columns) != 2):
        return ()
    results: list[TopicChange] = []
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
        results += [whole, *sorted(changes, key=lambda one: -one.value)]
    return tuple(results)


def _change(topic: int | None, cases: Sequence[Case], before: str, after: str, seed: int) -> TopicChange | None:
    """The change of one topic; None with too few sections on either side."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import.

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
    (difference,), (error,), (freedom,) = _mean_differences(later[None], sums, counts)
    p = _permutation_p(later, sums, counts, np.random.default_rng([_STREAM, seed, 0 if topic is None else topic + 1]))
    sides = [(sums[side].sum(), counts[side].sum()) for side in (~later, later)]
    reach = float(stdtrit(freedom, 0.975))
    return TopicChange(
        topic,
        before,
        after,
        (float(sides[0][0] / sides[0][1]), float(sides[1][0] / sides[1][1])),
        (int(sides[0][1]), int(sides[1][1])),
        sizes,
        Interval(float(difference - reach * error), float(difference + reach * error)),
        p,
        p,
    )


def _permutation_p(
    later: NDArray[np.bool_], sums: FloatArray, counts: FloatArray, generator: np.random.Generator
) -> float:
    def ratios(sides: NDArray[np.bool_]) -> FloatArray:
        differences, errors, _ = _mean_differences(sides, sums, counts)
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


def _mean_differences(
    later: NDArray[np.bool_], sums: FloatArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Difference of the means of statements, its standard error over sections, and that error's degrees of freedom.

    The error is by linearisation of the ratio, its degrees of freedom are Welch and Satterthwaite's. ``later``
    [permutations, sections] says which sections are taken for the later column's; sums and counts have shape
    [sections], the results [permutations].
    """
    means, variances, shares = [], [], []
    moments = np.stack([sums, counts, sums * sums, sums * counts, counts * counts], axis=1)
    for side in (~later, later):
        size = side.sum(axis=1)
        total, n, squares, products, n_squares = (side.astype(np.float64) @ moments).T
        mean = total / n
        spread = np.clip(squares - 2 * mean * products + mean * mean * n_squares, 0, None)
        means.append(mean)
        variances.append(size / (size - 1) * spread / n**2)
        shares.append(variances[-1] ** 2 / (size - 1))
    variance = variances[0] + variances[1]
    # Sections that are all alike have no error, and any number of degrees of freedom.
    freedom = np.divide(variance**2, shares[0] + shares[1], out=np.ones_like(variance), where=variance > 0)
    return means[1] - means[0], np.sqrt(variance), freedom
