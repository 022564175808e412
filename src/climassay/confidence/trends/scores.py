"""Compute scores of topics with intervals, and their changes between assessment cycles.

A score is the mean of the levels' values from -2 to 2. Statements of a section share authors, evidence and subject, so
sections are resampled together, and all scores come from the same resamples. Changes are tested by permuting sections
between cycles. The test statistic is the difference of means divided by its standard error, so that cycles may differ
in spread and size.

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
from climassay.confidence.vocabulary import LEVELS, Level, score
from climassay.errors import InputError
from climassay.statistics import Estimate, Interval, holm

ColumnKind = Literal["cycle", "working group", "report"]
"""Property that divides statements into columns to compare, with one column for each value of the property."""


@dataclass(frozen=True, slots=True)
class TrendStatement:
    """Statement with the properties that the analysis of trends needs."""

    id: str
    topic: int
    """Number of the statement's topic; -1 if it has none."""
    column: str
    """Cycle, working group or report of the statement."""
    section: tuple[str, str]
    """Document and section; statements of one section are not independent."""
    tag: Level | None

    @property
    def score(self) -> int:
        """Score of the statement's level, from -2 to 2; only defined for tagged statements."""
        assert self.tag is not None
        return score(self.tag)


@dataclass(frozen=True, slots=True)
class TrendStatements:
    """Statements to compare, with their columns."""

    kind: ColumnKind
    columns: tuple[str, ...]
    """Names of the columns, in the order in which they are shown."""
    tagged: tuple[TrendStatement, ...]
    untagged: tuple[TrendStatement, ...]
    unknown: int
    """Number of tagged statements that were omitted because the topic model does not contain them."""


def select_statements(
    statements: Sequence[Statement], model: TopicModel, by: ColumnKind | None = None
) -> TrendStatements:
    """Select the statements to compare and assign them to topics and columns.

    Args:
        statements: Statements; duplicates and those that ``model`` does not contain are omitted.
        model: Topics of the same statements.
        by: Columns to compare; by default cycles if there are several, else working groups, else reports.

    Raises:
        InputError: No tagged statement is in the model, so the files do not belong together.
    """
    unique_statements = [statement for statement in statements if statement.duplicate_of is None]
    has_cycles = len({statement.cycle for statement in unique_statements if statement.cycle}) > 1
    has_groups = any(statement.working_group for statement in unique_statements)
    column_kind: ColumnKind = by or ("cycle" if has_cycles else "working group" if has_groups else "report")
    attribute = {"cycle": "cycle", "working group": "working_group", "report": "report"}[column_kind]
    trend_statements = [
        TrendStatement(
            id=statement.id,
            topic=topic,
            column=getattr(statement, attribute) or "other",
            # The numbered section or headings; without either the paragraph, else the statement.
            section=(statement.document_id, statement.group or statement.paragraph_id or statement.id),
            tag=statement.tag,
        )
        for statement in unique_statements
        if (topic := model.topic_of(statement.id)) is not None and (topic != OUTSIDE or statement.tag is not None)
    ]
    tagged = tuple(statement for statement in trend_statements if statement.tag is not None)
    if not tagged:
        raise InputError("No tagged statement has a topic: make the topics from this file of statements.")

    def sort_key(column: str) -> tuple[int, str]:
        if column.startswith(("WG", "AR")):
            return 0, column
        return {"SYR": 1, "other": 3}.get(column, 2), column

    columns = tuple(sorted({statement.column for statement in trend_statements}, key=sort_key))
    untagged = tuple(statement for statement in trend_statements if statement.tag is None)
    n_unknown = sum(statement.tag is not None for statement in unique_statements) - len(tagged)
    return TrendStatements(column_kind, columns, tagged, untagged, n_unknown)


MIN_SECTIONS = 5
"""Minimum number of sections for a bootstrap interval."""
N_RESAMPLES = 2000
_Z95 = 1.959963984540054
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TopicScore:
    """Mean score of the tagged statements of a topic in a column."""

    topic: int | None
    """Number of the topic; None for all topics."""
    column: str | None
    """Cycle, working group or report; None for all of them."""
    value: float
    interval: Interval | None
    """95% interval; None if there are fewer than five sections."""
    sections: int
    counts: tuple[int, ...]
    """Number of statements with each tag, lowest first."""

    @property
    def n(self) -> int:
        """Number of statements."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class TopicDeviation:
    """Difference in mean score between a topic's statements and all statements of the same columns."""

    topic: int
    raw: Estimate
    """Difference before shrinkage; its ``n`` is the number of sections."""
    shrunken: Estimate
    """Difference shrunk towards 0; the greater its standard error, the greater the shrinkage."""
    p: float
    """Two-sided p-value for the null hypothesis of no difference."""
    p_holm: float
    """P-value, corrected for the number of topics compared (Holm)."""


@dataclass(frozen=True)
class TrendScores:
    """Scores by topic, by column, and by pair of topic and column (``cells``)."""

    by_topic: tuple[TopicScore, ...]
    by_column: tuple[TopicScore, ...]
    cells: dict[tuple[int, str], TopicScore]
    overall: TopicScore
    deviations: tuple[TopicDeviation, ...]
    """Deviations of the topics with enough sections, most confident topic first."""


def compute_scores(
    statements: TrendStatements, n_topics: int, *, resamples: int = N_RESAMPLES, seed: int = 0
) -> TrendScores:
    """Compute the mean confidence score of each topic, each column, and each topic in each column.

    A column has the statements of one report, working group or assessment cycle, see :data:`ColumnKind`.

    Args:
        statements: Statements; tagged ones without a topic count only in the scores of columns and overall.
        n_topics: Number of topics.
        resamples: Number of bootstrap samples of sections.
        seed: Seed of the bootstrap.
    """
    sections = _SectionSums(statements, n_topics, resamples, seed)
    by_topic = tuple(sections.score(topic, None) for topic in range(n_topics))
    by_column = tuple(sections.score(None, column) for column in statements.columns)
    cells = {
        (topic, column): result
        for topic in range(n_topics)
        for column in statements.columns
        if (result := sections.score(topic, column)).n
    }
    return TrendScores(by_topic, by_column, cells, sections.score(None, None), sections.deviations(by_topic))


class _SectionSums:
    """Sums of scores and counts by section, topic and column, with the weights of sections in bootstrap samples."""

    def __init__(self, statements: TrendStatements, n_topics: int, resamples: int, seed: int) -> None:
        sections = {
            name: index for index, name in enumerate(sorted({statement.section for statement in statements.tagged}))
        }
        self.columns = list(statements.columns)
        indices = (
            np.array([sections[statement.section] for statement in statements.tagged]),
            np.array([n_topics if statement.topic == OUTSIDE else statement.topic for statement in statements.tagged]),
            np.array([self.columns.index(statement.column) for statement in statements.tagged]),
        )
        shape = (len(sections), n_topics + 1, len(self.columns))
        self.sums, self.counts = np.zeros(shape), np.zeros(shape)
        """Shape [sections, topics + 1, columns]; the last topic is for statements without one."""
        np.add.at(self.sums, indices, [float(statement.score) for statement in statements.tagged])
        np.add.at(self.counts, indices, 1.0)
        self.tag_counts = Counter((statement.topic, statement.column, statement.tag) for statement in statements.tagged)
        generator, size = np.random.default_rng(seed), len(sections)
        self.weights = generator.multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
        """Shape [resamples, sections]."""

    def score(self, topic: int | None, column: str | None) -> TopicScore:
        """Return the score of a topic (None: all) in a column (None: all), with a percentile bootstrap interval."""
        column_indices = [index for index, name in enumerate(self.columns) if column in (None, name)]
        topics = slice(None) if topic is None else slice(topic, topic + 1)
        sums, counts = (table[:, topics][:, :, column_indices].sum(axis=(1, 2)) for table in (self.sums, self.counts))
        level_counts = tuple(
            sum(
                n
                for (tag_topic, tag_column, tag), n in self.tag_counts.items()
                if topic in (None, tag_topic) and column in (None, tag_column) and tag == level
            )
            for level in LEVELS
        )
        has_statements, total, interval = counts > 0, counts.sum(), None
        if has_statements.sum() >= MIN_SECTIONS:
            resampled_sums, resampled_counts = (
                self.weights[:, has_statements] @ sums[has_statements],
                self.weights[:, has_statements] @ counts[has_statements],
            )
            low, high = np.quantile(
                resampled_sums[resampled_counts > 0] / resampled_counts[resampled_counts > 0], [0.025, 0.975]
            )
            interval = Interval(float(low), float(high))
        return TopicScore(
            topic,
            column,
            float(sums.sum() / total) if total else 0.0,
            interval,
            int(has_statements.sum()),
            level_counts,
        )

    def deviations(self, by_topic: Sequence[TopicScore]) -> tuple[TopicDeviation, ...]:
        """Return the topics' differences from the scores expected for their columns, most confident topic first."""
        compared_topics = [s.topic for s in by_topic if s.topic is not None and s.sections >= MIN_SECTIONS]
        if len(compared_topics) < 2:
            return ()
        values = _compute_differences(self.sums.sum(axis=0)[None], self.counts.sum(axis=0)[None])[0, compared_topics]
        resampled_differences = _compute_differences(
            *(np.tensordot(self.weights, array, axes=1) for array in (self.sums, self.counts))
        )
        resampled_differences = resampled_differences[:, compared_topics]
        errors = np.nanstd(resampled_differences, axis=0, ddof=1)
        bounds = np.nanquantile(resampled_differences, [0.025, 0.975], axis=0)
        factors, shrunken_values = shrink(values, errors)
        p_values = [
            erfc(abs(value / error) / sqrt(2)) if error else 1.0 for value, error in zip(values, errors, strict=True)
        ]
        deviations = []
        for index, (topic, corrected_p) in enumerate(zip(compared_topics, holm(p_values), strict=True)):
            sections = by_topic[topic].sections
            half_width = _Z95 * float(np.sqrt(factors[index])) * float(errors[index])
            centre = float(shrunken_values[index])
            raw_estimate = Estimate(
                float(values[index]), Interval(float(bounds[0, index]), float(bounds[1, index])), sections
            )
            shrunken_estimate = Estimate(centre, Interval(centre - half_width, centre + half_width), sections)
            deviations.append(TopicDeviation(topic, raw_estimate, shrunken_estimate, p_values[index], corrected_p))
        return tuple(sorted(deviations, key=lambda deviation: -deviation.shrunken.value))


def shrink(values: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shrink differences [k] towards 0 according to their standard errors [k] (normal empirical Bayes).

    Returns:
        The shrinkage factors ``t² / (t² + error²)`` and the shrunk differences, shape [k] each. The variance t² between
        topics is DerSimonian and Laird's moment estimate about 0.
    """
    precisions = 1 / np.maximum(errors, 1e-9) ** 2
    spread = float((precisions * values**2).sum()) - len(values)
    variance = max(0.0, spread / float(precisions.sum()))
    factors = variance / (variance + np.maximum(errors, 1e-9) ** 2)
    return np.asarray(factors), np.asarray(factors * values)


def _compute_differences(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Return each topic's mean score minus the mean expected from its statements' columns, shape [samples, topics].

    ``sums`` and ``counts`` have the shape [samples, topics + 1, columns]. A value is NaN if a topic has no statements
    in a sample.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums.sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
        expected_sums = np.nansum(counts * means, axis=2)
        return np.asarray(((sums.sum(axis=2) - expected_sums) / counts.sum(axis=2))[:, :-1])


N_PERMUTATIONS = 9_999
_PERMUTATION_STREAM = 5_077
"""Key of the random stream for permutations; it makes them independent of other draws with the same seed."""
_N_FIRST_PERMUTATIONS = 999
"""Number of first permutations; if the p-value then exceeds :data:`_MAX_FIRST_P`, the test stops."""
_MAX_FIRST_P = 0.1
"""Maximum p-value, after the first permutations, at which further permutations are drawn."""


@dataclass(frozen=True, slots=True)
class TopicChange:
    """Change of a topic's mean score from one cycle or report to the next."""

    topic: int | None
    """Number of the topic; None for all topics together."""
    before: str
    after: str
    """Later of the two cycles or reports."""
    means: tuple[float, float]
    statements: tuple[int, int]
    sections: tuple[int, int]
    interval: Interval
    """95% interval of the difference, from standard errors over sections and Welch's t distribution."""
    p: float
    """Two-sided p-value of a permutation test for no difference."""
    p_holm: float
    """P-value, corrected for the number of topics compared between the columns; equal to ``p`` for all topics
    together."""

    @property
    def value(self) -> float:
        """Difference of the means, later minus earlier."""
        return self.means[1] - self.means[0]


def measure_changes(statements: TrendStatements, n_topics: int, *, seed: int = 0) -> tuple[TopicChange, ...]:
    """Return the changes between consecutive cycles, or between two reports.

    Returns:
        Changes by pair of columns. For each pair, the change of all topics together comes first. Topics with at least
        five sections in both columns follow, from the greatest increase to the greatest decrease.
    """
    if statements.kind != "cycle" and (statements.kind != "report" or len(statements.columns) != 2):
        return ()
    results: list[TopicChange] = []
    for earlier_column, later_column in pairwise(statements.columns):
        pair_statements = [
            statement for statement in statements.tagged if statement.column in (earlier_column, later_column)
        ]
        overall_change = _measure_change(None, pair_statements, earlier_column, later_column, seed)
        if overall_change is None:
            continue
        by_topic: dict[int, list[TrendStatement]] = {}
        for statement in pair_statements:
            by_topic.setdefault(statement.topic, []).append(statement)
        candidates = (
            _measure_change(number, by_topic.get(number, ()), earlier_column, later_column, seed)
            for number in range(n_topics)
        )
        changes = [change for change in candidates if change is not None]
        corrected_p_values = holm([change.p for change in changes]) if changes else []
        changes = [replace(change, p_holm=p) for change, p in zip(changes, corrected_p_values, strict=True)]
        results += [overall_change, *sorted(changes, key=lambda change: -change.value)]
    return tuple(results)


def _measure_change(
    topic: int | None, statements: Sequence[TrendStatement], earlier_column: str, later_column: str, seed: int
) -> TopicChange | None:
    """Return the change of one topic; None if either column has too few sections."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import.

    sections: dict[tuple[str, tuple[str, str]], list[int]] = {}
    for statement in statements:
        sections.setdefault((statement.column, statement.section), []).append(statement.score)
    names = sorted(sections)
    is_later = np.array([column == later_column for column, _ in names], dtype=bool)
    sizes = (int((~is_later).sum()), int(is_later.sum()))
    if min(sizes) < MIN_SECTIONS:
        return None
    sums = np.array([float(sum(sections[name])) for name in names])
    counts = np.array([float(len(sections[name])) for name in names])
    (difference,), (error,), (degrees_of_freedom,) = _compute_mean_differences(is_later[None], sums, counts)
    p = _compute_permutation_p(
        is_later, sums, counts, np.random.default_rng([_PERMUTATION_STREAM, seed, 0 if topic is None else topic + 1])
    )
    side_totals = [(sums[side].sum(), counts[side].sum()) for side in (~is_later, is_later)]
    t_quantile = float(stdtrit(degrees_of_freedom, 0.975))
    return TopicChange(
        topic,
        earlier_column,
        later_column,
        (float(side_totals[0][0] / side_totals[0][1]), float(side_totals[1][0] / side_totals[1][1])),
        (int(side_totals[0][1]), int(side_totals[1][1])),
        sizes,
        Interval(float(difference - t_quantile * error), float(difference + t_quantile * error)),
        p,
        p,
    )


def _compute_permutation_p(
    is_later: NDArray[np.bool_], sums: FloatArray, counts: FloatArray, generator: np.random.Generator
) -> float:
    def compute_ratios(later_masks: NDArray[np.bool_]) -> FloatArray:
        differences, errors, _ = _compute_mean_differences(later_masks, sums, counts)
        return np.abs(differences) / np.maximum(errors, 1e-9)

    (observed_ratio,) = compute_ratios(is_later[None])
    n_beyond, n_drawn = 0, 0
    for count in (_N_FIRST_PERMUTATIONS, N_PERMUTATIONS - _N_FIRST_PERMUTATIONS):
        later_masks = generator.permuted(np.broadcast_to(is_later, (count, len(is_later))), axis=1)
        n_beyond += int((compute_ratios(later_masks) >= observed_ratio - 1e-9).sum())
        n_drawn += count
        if (n_beyond + 1) / (n_drawn + 1) > _MAX_FIRST_P:
            break
    return (n_beyond + 1) / (n_drawn + 1)


def _compute_mean_differences(
    is_later: NDArray[np.bool_], sums: FloatArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return differences of mean scores, their standard errors over sections, and the errors' degrees of freedom.

    Args:
        is_later: Mask of the sections assigned to the later column, shape [permutations, sections].
        sums: Sum of scores by section, shape [sections].
        counts: Number of statements by section, shape [sections].

    Returns:
        Three arrays of shape [permutations]. Standard errors are from linearised ratios; degrees of freedom are Welch
        and Satterthwaite's.
    """
    means, variances, freedom_terms = [], [], []
    moments = np.stack([sums, counts, sums * sums, sums * counts, counts * counts], axis=1)
    for side in (~is_later, is_later):
        size = side.sum(axis=1)
        total, n, squares, products, n_squares = (side.astype(np.float64) @ moments).T
        mean = total / n
        spread = np.clip(squares - 2 * mean * products + mean * mean * n_squares, 0, None)
        means.append(mean)
        variances.append(size / (size - 1) * spread / n**2)
        freedom_terms.append(variances[-1] ** 2 / (size - 1))
    variance = variances[0] + variances[1]
    # Without any spread the degrees of freedom are arbitrary.
    degrees_of_freedom = np.divide(
        variance**2, freedom_terms[0] + freedom_terms[1], out=np.ones_like(variance), where=variance > 0
    )
    return means[1] - means[0], np.sqrt(variance), degrees_of_freedom
