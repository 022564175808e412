"""How well judgements agree with the experts: accuracy on pairs and rank correlation, with intervals.

What is resampled are the independent units: groups (articles) where there are several, else items. Pairs are never
resampled by themselves, for pairs of one article, or of one item, go right and wrong together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.judging.preferences import FloatArray, IntArray
from climassay.learning.evaluation import Calibration, calibration
from climassay.statistics import percentile_interval
from climassay.statistics.agreement import kendall_of_resamples, spearman_of_resamples

RESAMPLES = 2000
LIST_RESAMPLES = 500
NO_ANSWER = 2
"""In place of a three-way prediction where a comparison failed: right for no pair."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval."""

    value: float | None
    """None where nothing could be measured, for example no pairs of nearly equal length."""
    low: float | None
    high: float | None
    n: int
    """Pairs, or groups, behind the value."""


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """Unordered pairs of test items, gathered over all folds."""

    pairs: IntArray
    """[pairs, 2]; indices of items."""
    truth: FloatArray
    """[pairs]; label of the first item minus label of the second."""
    log_odds: FloatArray
    """[pairs]; 0 where a comparison failed, which counts as undecided and therefore as half right."""
    predicted: IntArray
    """[pairs]; 1, 0 or -1, by the tie band of the fold; :data:`NO_ANSWER` where a comparison failed."""

    def take(self, chosen: NDArray[np.bool_]) -> "JudgedPairs":
        """Some of the pairs, by a mask of shape [pairs]."""
        return JudgedPairs(self.pairs[chosen], self.truth[chosen], self.log_odds[chosen], self.predicted[chosen])


@dataclass(frozen=True)
class Units:
    """The independent units of a data set, and their bootstrap resamples."""

    of_item: IntArray
    """[items]; number of the unit to which each item belongs: its group, or itself where all items form one group."""
    counts: FloatArray
    """[resamples, units]; how often each unit appears in each resample."""

    @classmethod
    def of(cls, groups: Sequence[str], *, resamples: int = RESAMPLES, seed: int = 0) -> "Units":
        """Units of items by their groups."""
        names = sorted(set(groups))
        place = {name: number for number, name in enumerate(names)}
        of_item = np.array([place[name] for name in groups]) if len(names) > 1 else np.arange(len(groups))
        units = int(of_item.max()) + 1
        draws = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), size=resamples)
        return cls(of_item, draws.astype(np.float64))

    def pair_weights(self, pairs: IntArray) -> FloatArray:
        """Weight of each pair in each resample, [resamples, pairs]."""
        first, second = self.of_item[pairs[:, 0]], self.of_item[pairs[:, 1]]
        same = first == second
        return np.asarray(self.counts[:, first] * np.where(same, 1.0, self.counts[:, second]))

    def mean(self, values: FloatArray, pairs: IntArray) -> Figure:
        """Mean of one value per pair [pairs], for example whether it was judged rightly; ``pairs`` [pairs, 2]."""
        return self._mean(values, self.pair_weights(pairs))[0]

    def difference(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> "PairedFigure":
        """Mean of ``second - first``, both [pairs], on the same ``pairs`` [pairs, 2], with its bootstrap p-value."""
        figure, samples = self._mean(second - first, self.pair_weights(pairs))
        if not figure.n:
            return PairedFigure(figure, None)
        tail = min(np.mean(samples <= 0), np.mean(samples >= 0))
        return PairedFigure(figure, min(1.0, 2 * float(tail) + 2 / (len(samples) + 1)))

    def group_mean(self, values: FloatArray, units: IntArray) -> Figure:
        """Mean of one value per group, for example a rank correlation; values and numbers of the groups, [groups]."""
        return self._mean(values, self.counts[:, units])[0]

    def _mean(self, values: FloatArray, weights: FloatArray) -> tuple[Figure, FloatArray]:
        """Mean of values [n] and its resamples, by their weights in each of them [resamples, n]."""
        if len(values) == 0:
            return Figure(None, None, None, 0), np.zeros(0)
        total = weights.sum(axis=1)
        kept = total > 0
        samples: FloatArray = (weights[kept] @ values) / total[kept]
        return self.figure(float(values.mean()), samples, len(values)), samples

    @staticmethod
    def figure(value: float, samples: FloatArray, n: int) -> Figure:
        """A value with the 95% interval of its resamples, shape [resamples]."""
        return Figure(value, *percentile_interval(samples), n)


@dataclass(frozen=True, slots=True)
class PairedFigure:
    """A difference between two methods on the same pairs."""

    difference: Figure
    p_value: float | None
    """Two-sided, from the bootstrap distribution; never 0."""


def correctness(test: JudgedPairs) -> FloatArray:
    """1 where the order of two items that differ is judged rightly, 0 where wrongly, 0.5 where undecided. [pairs]."""
    return np.where(test.log_odds == 0, 0.5, np.sign(test.log_odds) == np.sign(test.truth)).astype(np.float64)


def three_way_correctness(test: JudgedPairs) -> FloatArray:
    """1 where greater, equal or less is judged rightly, else 0. [pairs]."""
    return np.asarray(test.predicted == np.sign(test.truth), dtype=np.float64)


def pair_calibration(test: JudgedPairs) -> Calibration | None:
    """Calibration on the pairs that differ, each in both orders, so that base rate and curve are symmetric."""
    differ = test.take(test.truth != 0)
    if not len(differ.truth):
        return None
    odds = np.concatenate([differ.log_odds, -differ.log_odds])
    outcomes = np.concatenate([differ.truth > 0, differ.truth < 0]).astype(np.float64)
    return calibration(0.5 + 0.5 * np.tanh(odds / 2), outcomes)


def correlations(
    units: Units, rankings: Sequence[tuple[IntArray, FloatArray]], labels: FloatArray
) -> dict[str, Figure]:
    """Spearman's rho and Kendall's tau-b between ranking and labels [items], averaged over groups.

    ``rankings`` gives for each ranked list its item indices and their scores, both [members], more being better; a list
    is a group of the test folds, or all test items of a fold where all items form one group. Lists with equal labels
    throughout have no correlation and are left out; ``n`` is the number of lists, or of items where all form one group.
    """
    used = [(members, scores) for members, scores in rankings if np.ptp(labels[members]) > 0 and len(members) > 1]
    grouped = all(len(set(units.of_item[members].tolist())) == 1 for members, _ in used)
    result = {}
    for name, measure in (("spearman", spearman_of_resamples), ("kendall", kendall_of_resamples)):
        once = [measure(scores, labels[members], np.arange(len(members))[None])[0] for members, scores in used]
        # A ranking that puts all items on one place goes with nothing: 0, as for a judge who says nothing.
        values = np.nan_to_num(np.array(once))
        if grouped:
            result[name] = units.group_mean(values, np.array([units.of_item[members[0]] for members, _ in used], int))
            continue
        # Mean over the folds' lists, with items resampled within each of them.
        draw = np.random.default_rng(0)
        drawn = [[draw.integers(0, len(members), len(members)) for members, _ in used] for _ in range(LIST_RESAMPLES)]
        found = []
        for (members, scores), places in zip(used, zip(*drawn, strict=True), strict=True):
            chosen, truth = np.array(places), labels[members]
            differ = np.ptp(truth[chosen], axis=1) > 0
            found.append(np.where(differ, np.nan_to_num(measure(scores, truth, chosen)), np.nan))
        table = np.array(found)
        means = np.nanmean(table[:, ~np.isnan(table).all(axis=0)], axis=0)
        result[name] = Units.figure(float(values.mean()), means, sum(len(members) for members, _ in used))
    return result
