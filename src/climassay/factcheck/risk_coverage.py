"""How right the verdicts are when only the surest are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from climassay.factcheck.levels import CONFIDENCES
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Transcript, Verdict
from climassay.statistics import Estimate, constant_baseline, proportion


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """Verdicts at least so sure."""

    coverage: float
    """Share of all claims with a published verdict that have such a verdict."""
    accuracy: Estimate
    """Of these verdicts, with Wilson's interval."""


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """Accuracy of the surest verdicts against how many claims they cover.

    "Not enough information" and failed checks cover nothing, so that the curve may end before all claims are covered.
    """

    ordered_by: Literal["probability", "confidence"]
    """By the verdict's probability; where a verdict has none, all are ordered by confidence, then probability."""
    claims: int
    """Claims with a published verdict."""
    points: tuple[CoveragePoint, ...]
    """Surest first; verdicts that are equally sure make one point."""
    area: float
    """Mean accuracy over the coverages reached, equally sure verdicts in random order: 1 minus the area under the
    risk-coverage curve, per unit of coverage."""
    unordered: float
    """What that area is when the order says nothing: the accuracy of all verdicts."""
    constant: str
    """The most frequent published class."""
    constant_accuracy: float
    """Of always giving it, on all claims."""


def probability_of(verdict: Verdict, scale: Scale) -> float | None:
    """Probability of the label given; None where the model gives none, and for "not enough information"."""
    if verdict.label not in scale.labels or len(verdict.probabilities) != len(scale.labels):
        return None
    return verdict.probabilities[scale.position(verdict.label)]


def risk_coverage(
    transcripts: Sequence[Transcript], truths: Mapping[str, str], scale: Scale, classes: int
) -> RiskCoverage | None:
    """The risk-coverage curve of the mediator's verdicts.

    Args:
        transcripts: Fact-checks of claims with a published verdict.
        truths: That verdict by the claim's id.
        scale: Scale of both.
        classes: Number of classes in which a verdict has to be the published one.

    Returns:
        None where there is no verdict.

    References:
        El-Yaniv and Wiener (2010), On the Foundations of Noise-free Selective Classification, JMLR 11.
    """
    given = [transcript for transcript in transcripts if transcript.verdict.label in scale.labels]
    if not given:
        return None
    chances = [probability_of(transcript.verdict, scale) for transcript in given]
    by_probability = all(chance is not None for chance in chances)
    ranked = []
    for transcript, chance in zip(given, chances, strict=True):
        sure = ((0 if by_probability else _confidence(transcript.verdict)), chance or 0.0)
        right = scale.collapse(transcript.verdict.label or "", classes) == scale.collapse(
            truths[transcript.claim.id], classes
        )
        ranked.append((sure, right))
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    groups = [[right for _, right in group] for _, group in groupby(ranked, key=lambda pair: pair[0])]
    constant = constant_baseline([scale.collapse(truths[one.claim.id], classes) for one in transcripts])
    return RiskCoverage(
        "probability" if by_probability else "confidence",
        len(transcripts),
        _points(groups, len(transcripts)),
        _area(groups),
        sum(map(sum, groups)) / len(ranked),
        str(constant.label),
        constant.accuracy,
    )


def _confidence(verdict: Verdict) -> int:
    return -1 if verdict.levels is None else CONFIDENCES.index(verdict.levels.confidence)


def _points(groups: Sequence[Sequence[bool]], claims: int) -> tuple[CoveragePoint, ...]:
    points, covered, right = [], 0, 0
    for group in groups:
        covered += len(group)
        right += sum(group)
        points.append(CoveragePoint(covered / claims, proportion(right, covered)))
    return tuple(points)


def _area(groups: Sequence[Sequence[bool]]) -> float:
    """Mean over k of the accuracy of the k surest; within a group the expectation over its orders."""
    total, covered, right = 0.0, 0, 0.0
    for group in groups:
        share = sum(group) / len(group)
        total += sum((right + share * place) / (covered + place) for place in range(1, len(group) + 1))
        covered += len(group)
        right += sum(group)
    return total / covered
