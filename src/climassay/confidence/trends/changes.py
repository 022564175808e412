"""Changes of topics between assessment cycles: is a topic stated more or less confidently than before?

Sections are what is exchanged: under no change it does not matter which cycle a section comes from. The difference of
means is divided by its standard error in every permutation, so that cycles of unlike spread and size may be compared.

References:
    Janssen 1997, Studentized permutation tests for non-i.i.d. hypotheses and the generalized Behrens-Fisher problem;
    Phipson and Smyth 2010 (a permutation p-value is never 0); Holm 1979.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.trends.cases import Case, Cases
from climassay.statistics import Interval, holm

FEWEST_SECTIONS = 5
"""Sections that both cycles must have on a topic."""
PERMUTATIONS = 9_999
_STREAM = 5_077
"""Keeps the permutations apart from whatever else is drawn by the same seed."""
_FIRST = 999
"""Permutations of a topic that does not look changed."""
_DULL = 0.1
"""p-value of the first permutations from which no more are drawn."""
_Z95 = 1.959963984540054
FloatArray = NDArray[np.float64]


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
    (difference,), (error,) = _differences(later[None], sums, counts)
    p = _p_value(later, sums, counts, np.random.default_rng([_STREAM, seed, 0 if topic is None else topic + 1]))
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


def _p_value(later: NDArray[np.bool_], sums: FloatArray, counts: FloatArray, generator: np.random.Generator) -> float:
    def ratios(sides: NDArray[np.bool_]) -> FloatArray:
        differences, errors = _differences(sides, sums, counts)
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


def _differences(later: NDArray[np.bool_], sums: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
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
