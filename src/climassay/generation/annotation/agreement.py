"""Agreement of annotators, and statistics of each annotator."""

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
    """Agreement of two annotators on the items that both labelled."""

    first: str
    second: str
    kappa: ResampledEstimate
    """Cohen's kappa; 1.0 if both annotators give the same label to all items."""
    raw: Estimate
    """Proportion of items with the same label, with Wilson's interval."""


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """Agreement of annotators on whether drafts are valid, before any adjudication.

    The 95% intervals of the coefficients are percentile bootstraps over items; a single item has no interval.
    """

    items: int
    """Number of items labelled by two annotators or more."""
    raw: Estimate | ResampledEstimate | None
    """Mean proportion of agreeing pairs of labels per item, with Wilson's interval if every item has two labels. None
    if no item has two labels; all coefficients are then None, too."""
    pairs: tuple[PairAgreement, ...]
    """Cohen's kappa by pair of annotators, the pair with the most items in common first."""
    fleiss: ResampledEstimate | None
    """Fleiss' kappa over the items with the most frequent number of labels (two or more)."""
    krippendorff: ResampledEstimate | None
    """Krippendorff's nominal alpha over all items with two labels or more."""


@dataclass(frozen=True, slots=True)
class AnnotatorStatistics:
    """Statistics of an annotator in a dataset."""

    annotator: str
    labels: int
    """Number of current labels, excluding adjudications."""
    accepted: Estimate | None
    """Proportion of labels that accept the draft, with Wilson's interval; None if there are no labels."""
    reasons: Mapping[str, int]
    """Number of labels by reason for rejection."""
    median_seconds: float | None
    """Median time per label in seconds, over the labels whose time is known; None if there are none."""
    agreement: Estimate | None
    """Proportion of the annotator's labels that an adjudication by another person confirmed, among those with such an
    adjudication; None if there are none."""
    skips: int
    edits: int
    """Number of labels that change the wording or the masked term."""
    adjudications: int


def measure_agreement(labels: Sequence[Label]) -> AnnotatorAgreement:
    """Return the annotators' agreement by their current labels.

    Adjudications are excluded, because adjudicators see the other labels.
    """
    verdicts_by_draft: dict[str, dict[str, bool]] = {}
    for label in labels:
        if not label.adjudicates:
            verdicts_by_draft.setdefault(label.draft, {})[label.annotator] = label.accepted
    items = [verdicts for verdicts in verdicts_by_draft.values() if len(verdicts) >= 2]
    if not items:
        return AnnotatorAgreement(0, None, (), None, None)
    n_valid = [sum(verdicts.values()) for verdicts in items]
    counts = np.array([[len(item) - n, n] for item, n in zip(items, n_valid, strict=True)], dtype=np.float64)
    n_labels = Counter(int(total) for total in counts.sum(1)).most_common(1)[0][0]
    counts_for_fleiss = counts[counts.sum(1) == n_labels]
    has_two_labels_each = bool((counts.sum(1) == 2).all())
    verdict_pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for verdicts in items:
        for first_annotator, second_annotator in combinations(sorted(verdicts), 2):
            verdict_pairs.setdefault((first_annotator, second_annotator), []).append(
                (verdicts[first_annotator], verdicts[second_annotator])
            )

    def estimate(data: FloatArray, statistic: Callable[[FloatArray], float]) -> ResampledEstimate:
        interval = bootstrap_interval(data, statistic, resamples=RESAMPLES, seed=0)
        return ResampledEstimate.from_resamples(statistic(data), interval, len(data))

    pairs = []
    for (first_annotator, second_annotator), common_verdicts in sorted(
        verdict_pairs.items(), key=lambda entry: (-len(entry[1]), entry[0])
    ):
        verdicts_by_item = np.array(common_verdicts, dtype=np.float64)
        n_equal = int((verdicts_by_item[:, 0] == verdicts_by_item[:, 1]).sum())
        raw_agreement = proportion(n_equal, len(common_verdicts))
        pairs.append(
            PairAgreement(first_annotator, second_annotator, estimate(verdicts_by_item, _cohen_kappa), raw_agreement)
        )
    mean_agreement: Estimate | ResampledEstimate = estimate(counts, _mean_pair_agreement)
    if has_two_labels_each:
        mean_agreement = proportion(int((counts.max(1) == 2).sum()), len(counts))
    return AnnotatorAgreement(
        len(items),
        mean_agreement,
        tuple(pairs),
        estimate(counts_for_fleiss, _fleiss_kappa),
        estimate(counts, _krippendorff_alpha),
    )


def _mean_pair_agreement(counts: FloatArray) -> float:
    """Return the mean proportion of agreeing pairs of labels per item.

    ``counts`` has the numbers of labels invalid and valid, shape [items, 2].
    """
    totals = counts.sum(1)
    return float(((counts * (counts - 1)).sum(1) / (totals * (totals - 1))).mean())


def _fleiss_kappa(counts: FloatArray) -> float:
    """Return Fleiss' kappa of two classes, vectorised for resampling; see :func:`climassay.statistics.fleiss_kappa`."""
    proportions = counts.sum(0) / counts.sum()
    return _correct_for_chance(_mean_pair_agreement(counts), float((proportions**2).sum()))


def _cohen_kappa(labels: FloatArray) -> float:
    """Return Cohen's kappa of two annotators' labels, 0 or 1; ``labels`` has the shape [items, 2]."""
    first_rate, second_rate = labels.mean(0)
    agreement = float((labels[:, 0] == labels[:, 1]).mean())
    return _correct_for_chance(agreement, float(first_rate * second_rate + (1 - first_rate) * (1 - second_rate)))


def _krippendorff_alpha(counts: FloatArray) -> float:
    """Return Krippendorff's nominal alpha of two classes; ``counts`` as for :func:`_mean_pair_agreement`."""
    totals = counts.sum(1)
    disagreement = float((2 * counts[:, 0] * counts[:, 1] / (totals - 1)).sum())
    invalid, valid = counts.sum(0)
    expected_disagreement = 2 * float(invalid * valid) / (float(totals.sum()) - 1)
    return 1.0 if expected_disagreement == 0 else 1.0 - disagreement / expected_disagreement


def _correct_for_chance(agreement: float, chance_agreement: float) -> float:
    return 1.0 if chance_agreement >= 1 - 1e-12 else (agreement - chance_agreement) / (1 - chance_agreement)


def summarise_annotators(labels: Sequence[Label], skipped_by: Sequence[str]) -> list[AnnotatorStatistics]:
    """Return the statistics of each annotator, the one with the most labels first.

    Args:
        labels: Current labels, oldest first; of several adjudications of an item the last one counts.
        skipped_by: Name of the annotator for each skip.
    """
    adjudications = {label.draft: label for label in labels if label.adjudicates}
    results = []
    for name in {label.annotator for label in labels} | set(skipped_by):
        all_labels = [label for label in labels if label.annotator == name]
        first_labels = [label for label in all_labels if not label.adjudicates]
        adjudicated_labels = [
            label
            for label in first_labels
            if label.draft in adjudications and adjudications[label.draft].annotator != name
        ]
        n_confirmed = sum(label.accepted == adjudications[label.draft].accepted for label in adjudicated_labels)
        seconds = [label.seconds for label in first_labels if label.seconds is not None]
        results.append(
            AnnotatorStatistics(
                annotator=name,
                labels=len(first_labels),
                accepted=proportion(sum(label.accepted for label in first_labels), len(first_labels))
                if first_labels
                else None,
                reasons=dict(Counter(reason for label in first_labels for reason in label.reasons).most_common()),
                median_seconds=statistics.median(seconds) if seconds else None,
                agreement=proportion(n_confirmed, len(adjudicated_labels)) if adjudicated_labels else None,
                skips=sum(annotator == name for annotator in skipped_by),
                edits=sum(label.wording is not None for label in first_labels),
                adjudications=len(all_labels) - len(first_labels),
            )
        )
    return sorted(results, key=lambda result: (-result.labels, result.annotator))
