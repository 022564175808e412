"""How right the verdicts are when only the surest are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from climassay.factcheck.levels import CONFIDENCES
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Transcript, Verdict
from climassay.statistics import CoveragePoint, constant_baseline, selective_curve

__all__ = ["CoveragePoint", "RiskCoverage", "probability_of", "risk_coverage"]


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
    curve = selective_curve([sure for sure, _ in ranked], [right for _, right in ranked], items=len(transcripts))
    constant = constant_baseline([scale.collapse(truths[one.claim.id], classes) for one in transcripts])
    return RiskCoverage(
        "probability" if by_probability else "confidence",
        len(transcripts),
        curve.points,
        curve.area,
        curve.unordered,
        str(constant.label),
        constant.accuracy,
    )


def _confidence(verdict: Verdict) -> int:
    return -1 if verdict.levels is None else CONFIDENCES.index(verdict.levels.confidence)
