"""How far annotators agree, and what each of them did."""

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from climassay.generation.annotation.labels import Label
from climassay.statistics import Estimate, ResampledEstimate, bootstrap_interval, proportion

FloatArray = NDArray[np.float64]
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two annotators on the items that both labelled."""

    first: str
    second: str
    kappa: ResampledEstimate
    """Cohen's; 1.0 where both use one and the same label throughout."""
    raw: Estimate
    """Share of items with the same label, with Wilson's interval."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on valid or invalid, before any adjudication.

    Intervals of the coefficients are percentile bootstraps over items, at 95%; a single item has none.
    """

    items: int
    """Labelled by two annotators or more."""
    raw: Estimate | ResampledEstimate | None
    """Share of agreeing pairs of labels, averaged over items; with Wilson's interval where every item has two labels.
    None where no item has two labels, as all below."""
    pairs: tuple[PairAgreement, ...]
    """Cohen's kappa by pair of annotators, those with the most items in common first."""
    fleiss: ResampledEstimate | None
    """Fleiss' kappa over the items that have the most frequent number of labels (of two or more)."""
    krippendorff: ResampledEstimate | None
    """Nominal alpha over all items with two labels or more."""


@dataclass(frozen=True, slots=True)
class AnnotatorStatistics:
    """What one annotator did in a dataset."""

    annotator: str
    labels: int
    """Current ones, adjudications not counted."""
    accepted: Estimate | None
    """Share of the labels that accept, with Wilson's interval; None without labels."""
    reasons: Mapping[str, int]
    """Reason for rejection -> labels that name it."""
    median_seconds: float | None
    """Median over the labels that say how long they took."""
    agreement: Estimate | None
    """Share of labels that the adjudication confirms, among items that somebody else adjudicated; None without any.

    Where nobody adjudicated, the outcome is what all labels say, and confirms every one of them."""
    skips: int
    edits: int
    """Labels that change the words or choose another term."""
    adjudications: int


def agreement_of(labels: Sequence[Label]) -> Agreement:
    """Agreement of current labels; adjudications are left out, since they are made in sight of the others."""
    said: dict[str, dict[str, bool]] = {}
    for label in labels:
        if not label.adjudicates:
            said.setdefault(label.draft, {})[label.annotator] = label.accepted
    several = [one for one in said.values() if len(one) >= 2]
    if not several:
        return Agreement(0, None, (), None, None)
    counts = np.array([[len(one) - sum(one.values()), sum(one.values())] for one in several], dtype=np.float64)
    number = Counter(int(total) for total in counts.sum(1)).most_common(1)[0][0]
    alike = counts[counts.sum(1) == number]
    both_said = bool((counts.sum(1) == 2).all())
    common: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for one in several:
        for first, second in combinations(sorted(one), 2):
            common.setdefault((first, second), []).append((one[first], one[second]))

    def estimate(rows: FloatArray, statistic: Callable[[FloatArray], float]) -> ResampledEstimate:
        drawn = bootstrap_interval(rows, statistic, resamples=RESAMPLES, seed=0)
        return ResampledEstimate.of(statistic(rows), drawn, len(rows))

    pairs = []
    for (first, second), both in sorted(common.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        rows = np.array(both, dtype=np.float64)
        same = proportion(int((rows[:, 0] == rows[:, 1]).sum()), len(rows))
        pairs.append(PairAgreement(first, second, estimate(rows, _cohen), same))
    fleiss, alpha = estimate(alike, _fleiss), estimate(counts, _alpha)
    alike_pairs = proportion(int((counts.max(1) == 2).sum()), len(counts)) if both_said else estimate(counts, _raw)
    return Agreement(len(several), alike_pairs, tuple(pairs), fleiss, alpha)


def _raw(counts: FloatArray) -> float:
    """Mean over items of the share of pairs of labels that agree; counts has shape [items, 2]."""
    totals = counts.sum(1)
    return float(((counts * (counts - 1)).sum(1) / (totals * (totals - 1))).mean())


def _fleiss(counts: FloatArray) -> float:
    """Fleiss' kappa, as :func:`climassay.statistics.fleiss_kappa` on two labels, quick enough to be resampled."""
    shares = counts.sum(0) / counts.sum()
    return _chance_corrected(_raw(counts), float((shares**2).sum()))


def _cohen(rows: FloatArray) -> float:
    """Cohen's kappa of two labels, shape [items, 2] of 0 and 1; see :func:`climassay.statistics.cohen_kappa`."""
    first, second = rows.mean(0)
    observed = float((rows[:, 0] == rows[:, 1]).mean())
    return _chance_corrected(observed, float(first * second + (1 - first) * (1 - second)))


def _alpha(counts: FloatArray) -> float:
    """Krippendorff's nominal alpha on two labels; see :func:`climassay.statistics.krippendorff_alpha`."""
    totals = counts.sum(1)
    apart = float((2 * counts[:, 0] * counts[:, 1] / (totals - 1)).sum())
    invalid, valid = counts.sum(0)
    expected = 2 * float(invalid * valid) / (float(totals.sum()) - 1)
    return 1.0 if expected == 0 else 1.0 - apart / expected


def _chance_corrected(observed: float, chance: float) -> float:
    return 1.0 if chance >= 1 - 1e-12 else (observed - chance) / (1 - chance)


def statistics_of(labels: Sequence[Label], skipped: Sequence[str]) -> list[AnnotatorStatistics]:
    """What each annotator did, the busiest first.

    Args:
        labels: Current ones in the order in which they were made: of several adjudications of an item the last counts.
        skipped: Annotator of each skip.
    """
    outcomes = {label.draft: label for label in labels if label.adjudicates}
    names = {label.annotator for label in labels} | set(skipped)
    results = []
    for name in names:
        own = [label for label in labels if label.annotator == name]
        said = [label for label in own if not label.adjudicates]
        judged = [label for label in said if label.draft in outcomes and outcomes[label.draft].annotator != name]
        confirmed = sum(label.accepted == outcomes[label.draft].accepted for label in judged)
        spent = [label.seconds for label in said if label.seconds is not None]
        results.append(
            AnnotatorStatistics(
                annotator=name,
                labels=len(said),
                accepted=proportion(sum(label.accepted for label in said), len(said)) if said else None,
                reasons=dict(Counter(reason for label in said for reason in label.reasons).most_common()),
                median_seconds=statistics.median(spent) if spent else None,
                agreement=proportion(confirmed, len(judged)) if judged else None,
                skips=sum(one == name for one in skipped),
                edits=sum(label.wording is not None for label in said),
                adjudications=len(own) - len(said),
            )
        )
    return sorted(results, key=lambda one: (-one.labels, one.annotator))
