"""How good a tagger is: on the mix of levels it meets in reports, and on the mix of ClimateX's test set.

A score on another mix is a score with weights: an item of level t counts ``wanted share / found share`` of its level.
The mean of many draws of a mix from a large held-out set converges to the weighted score, so that no draw is needed for
the value; the spread of tests of 300 is the resampled one (:func:`small_tests`).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.statistics import Estimate, Interval

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CLIMATEX_MIX = (50, 100, 100, 50)
"""Statements of low, medium, high and very high confidence in ClimateX's test set."""
PUBLISHED: Mapping[str, float] = {
    "constant": 1 / 3,
    "people who are not experts": 0.363,
    "GPT-4, zero-shot": 0.443,
    "GPT-4, few-shot": 0.470,
}
"""Accuracy on ClimateX's 300 test statements (Lacombe et al. 2023, table 2)."""
_FLOOR = 1e-6
MEASURES = ("accuracy", "balanced_accuracy", "macro_f1", "ordinal_error", "log_loss")


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """Held-out statements with what a tagger said of them."""

    truth: IntArray
    """Place of the true level, shape [n]."""
    probabilities: FloatArray
    """Shape [n, levels]."""
    groups: IntArray
    """Sections, shape [n]: what the bootstrap draws."""

    def __post_init__(self) -> None:
        if not len(self.truth) or self.probabilities.shape[0] != len(self.truth) or len(self.groups) != len(self.truth):
            raise InputError("Truth, probabilities and groups belong to the same statements, at least one.")

    @property
    def levels(self) -> int:
        """Number of levels."""
        return int(self.probabilities.shape[1])

    def take(self, places: ArrayLike) -> "Tagged":
        """The statements at these places, shape [taken]."""
        chosen = np.asarray(places)
        return Tagged(self.truth[chosen], self.probabilities[chosen], self.groups[chosen])

    def on_mix(self, mix: Sequence[float]) -> "Tagged":
        """With probabilities as for statements of this mix of levels.

        Bayes' rule: ``p * mix / share``, normalised, where the share is that of the level among the statements; fit for
        probabilities that are calibrated on them.
        """
        return Tagged(self.truth, reweighted(self.probabilities, self.shares, mix), self.groups)

    @property
    def shares(self) -> FloatArray:
        """Share of each level in the truth, shape [levels]."""
        return np.bincount(self.truth, minlength=self.levels) / len(self.truth)

    @property
    def confusion(self) -> FloatArray:
        """Counts by true level (rows) and most probable level (columns), shape [levels, levels]."""
        return np.asarray(_tables(self, None)[1])


@dataclass(frozen=True, slots=True)
class TaggerScores:
    """Scores on one mix of levels."""

    accuracy: Estimate
    balanced_accuracy: Estimate
    """Mean share of right answers over the levels; the same on every mix."""
    macro_f1: Estimate
    ordinal_error: Estimate
    """Mean distance from the true level, in levels."""
    log_loss: Estimate
    """Mean negative log-probability of the true level, in nats."""


def reweighted(probabilities: ArrayLike, shares: ArrayLike, mix: Sequence[float]) -> FloatArray:
    """Probabilities for another mix of levels than that on which they were learned.

    Args:
        probabilities: Shape [n, levels].
        shares: Of the levels where they were learned.
        mix: Of the levels where they are used; need not sum to 1.

    Raises:
        InputError: A share is not positive.
    """
    learned, wanted = np.asarray(shares, dtype=np.float64), np.asarray(mix, dtype=np.float64)
    if (learned <= 0).any() or (wanted < 0).any() or not wanted.any():
        raise InputError("Shares of levels are positive, and those of a mix at least 0.")
    weighted = np.asarray(probabilities, dtype=np.float64) * (wanted / wanted.sum() / learned)
    return np.asarray(weighted / np.maximum(weighted.sum(axis=1, keepdims=True), 1e-300))


def score_tagger(
    tagged: Tagged, mix: Sequence[float] | None = None, *, resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> TaggerScores:
    """Scores with percentile bootstrap intervals over sections.

    Args:
        tagged: Held-out statements; their probabilities are taken as they are.
        mix: Of the levels on which to score; None: as they come.
        resamples: Bootstrap samples.
        seed: Of the resampling.
        level: Of the intervals.

    Raises:
        InputError: A level of the mix does not occur.
    """
    weights = None if mix is None else np.asarray(mix, dtype=np.float64)
    if weights is not None and (weights.shape != (tagged.levels,) or (tagged.shares[weights > 0] == 0).any()):
        raise InputError("The mix names levels of which there are no held-out statements.")
    sections, tables, losses = _by_section(tagged)
    point = _measures(tables.sum(axis=0), losses.sum(axis=0), weights)
    generator = np.random.default_rng(seed)
    drawn = np.stack([
        _measures(tables[chosen].sum(axis=0), losses[chosen].sum(axis=0), weights)
        for chosen in (generator.integers(0, sections, sections) for _ in range(resamples))
    ])  # fmt: skip
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    found = {
        name: Estimate(float(point[at]), Interval(float(low[at]), float(high[at])), len(tagged.truth), level)
        for at, name in enumerate(MEASURES)
    }
    return TaggerScores(**found)


def small_tests(
    tagged: Tagged, counts: Sequence[int] = CLIMATEX_MIX, *, draws: int = 2000, seed: int = 0
) -> FloatArray:
    """Accuracy in many tests of this many statements a level, drawn without replacement; shape [draws].

    Raises:
        InputError: There are fewer statements of a level than wanted.
    """
    right = tagged.probabilities.argmax(axis=1) == tagged.truth
    places = [np.flatnonzero(tagged.truth == place) for place in range(tagged.levels)]
    if len(counts) != len(places) or any(len(of) < count for of, count in zip(places, counts, strict=True)):
        raise InputError(f"A test of {counts} statements a level needs at least as many held-out ones of each.")
    generator = np.random.default_rng(seed)
    found = np.empty(draws)
    for draw in range(draws):
        taken = [generator.choice(of, count, replace=False) for of, count in zip(places, counts, strict=True)]
        found[draw] = right[np.concatenate(taken)].mean()
    return found


def by_group(
    tagged: Tagged, groups: Sequence[Hashable], *, smallest: int = 20, resamples: int = 500, seed: int = 0
) -> dict[Any, TaggerScores]:
    """Scores of the statements of each group, for example of each topic.

    Args:
        tagged: Held-out statements.
        groups: One a statement, in the same order.
        smallest: Groups of fewer statements are left out.
        resamples: Bootstrap samples.
        seed: Of the resampling.

    Returns:
        By group, in the order in which they first come.

    Raises:
        InputError: There are not as many groups as statements.
    """
    if len(groups) != len(tagged.truth):
        raise InputError(f"{len(tagged.truth)} statements have {len(groups)} groups.")
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    return {
        group: score_tagger(tagged.take(places), resamples=resamples, seed=seed)
        for group, places in members.items()
        if len(places) >= smallest
    }


def _tables(tagged: Tagged, sections: IntArray | None) -> tuple[int, FloatArray, FloatArray]:
    """Number of sections; counts by truth and answer, and summed losses by truth, of each section or of all."""
    place = np.zeros(len(tagged.truth), dtype=np.int64) if sections is None else sections
    count, k = int(place.max()) + 1, tagged.levels
    table, losses = np.zeros((count, k, k)), np.zeros((count, k))
    np.add.at(table, (place, tagged.truth, tagged.probabilities.argmax(axis=1)), 1.0)
    given = tagged.probabilities[np.arange(len(place)), tagged.truth]
    np.add.at(losses, (place, tagged.truth), -np.log(np.maximum(given, _FLOOR)))
    return (count, table, losses) if sections is not None else (count, table[0], losses[0])


def _by_section(tagged: Tagged) -> tuple[int, FloatArray, FloatArray]:
    return _tables(tagged, np.unique(tagged.groups, return_inverse=True)[1].astype(np.int64))


def _measures(table: FloatArray, losses: FloatArray, mix: FloatArray | None) -> FloatArray:
    """The measures, in the order of :data:`MEASURES`, of a table of counts and losses summed by true level."""
    counts = table.sum(axis=1)
    present = counts > 0
    weights = np.ones(len(counts))
    if mix is not None:
        weights = np.divide(mix, counts, out=np.zeros(len(counts)), where=present)
    weighted = table * weights[:, None]
    total = weighted.sum()
    right = np.diag(weighted)
    answered, true = weighted.sum(axis=0), weighted.sum(axis=1)
    f1 = np.divide(2 * right, answered + true, out=np.zeros(len(counts)), where=answered + true > 0)
    places = np.arange(len(counts))
    distance = np.abs(places[:, None] - places[None, :])
    return np.array([
        right.sum() / total,
        (np.diag(table)[present] / counts[present]).mean(),
        f1[(answered + true) > 0].mean(),
        (weighted * distance).sum() / total,
        (losses * weights).sum() / total,
    ])  # fmt: skip
