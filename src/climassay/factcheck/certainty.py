"""Certainty of an assessment in the terms of the IPCC: evidence, agreement, confidence and likelihood.

Reference:
    Mastrandrea et al. (2010), Guidance Note for Lead Authors of the IPCC Fifth Assessment Report on Consistent
    Treatment of Uncertainties.
"""

from dataclasses import dataclass
from typing import Literal, get_args

EvidenceLevel = Literal["limited", "medium", "robust"]
"""Level of evidence, judged by its type, amount, quality and consistency."""
AgreementLevel = Literal["low", "medium", "high"]
"""Degree to which the pieces of evidence agree."""
Confidence = Literal["very low", "low", "medium", "high", "very high"]
"""Level of confidence, a qualitative synthesis of evidence and agreement."""
Likelihood = Literal[
    "exceptionally unlikely",
    "extremely unlikely",
    "very unlikely",
    "unlikely",
    "about as likely as not",
    "more likely than not",
    "likely",
    "very likely",
    "extremely likely",
    "virtually certain",
]
"""Likelihood terms of AR6.

Their probabilities in per cent are 0-1, 0-5, 0-10, 0-33, 33-66, 50-100, 66-100, 90-100, 95-100 and 99-100.
"""

EVIDENCE: tuple[EvidenceLevel, ...] = get_args(EvidenceLevel)
AGREEMENT: tuple[AgreementLevel, ...] = get_args(AgreementLevel)
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
LIKELIHOODS: tuple[Likelihood, ...] = get_args(Likelihood)
QUANTIFIABLE: frozenset[Confidence] = frozenset({"high", "very high"})
"""Confidence levels for which a likelihood may be given."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Certainty of one assessment, in the four terms of the IPCC."""

    evidence: EvidenceLevel
    agreement: AgreementLevel
    confidence: Confidence
    likelihood: Likelihood | None = None
    """Likelihood that the claim is true; only given with high or very high confidence."""


def allowed_confidences(evidence: EvidenceLevel, agreement: AgreementLevel) -> tuple[Confidence, ...]:
    """Return the levels of confidence that a level of evidence and a level of agreement allow.

    Limited evidence with low agreement allows very low and low confidence; robust evidence with high agreement allows
    high and very high confidence.
    """
    sum_of_ranks = EVIDENCE.index(evidence) + AGREEMENT.index(agreement)
    return CONFIDENCES[max(sum_of_ranks - 1, 0) : sum_of_ranks + 2]


def nearest_confidence(evidence: EvidenceLevel, agreement: AgreementLevel, confidence: Confidence) -> Confidence:
    """Return the level of confidence nearest to ``confidence`` that is consistent with evidence and agreement."""
    index = CONFIDENCES.index(confidence)
    return min(allowed_confidences(evidence, agreement), key=lambda level: abs(CONFIDENCES.index(level) - index))


def fits_verdict(likelihood: Likelihood, is_correct: bool) -> bool:
    """Return whether a likelihood that a claim is true fits a verdict.

    Likely terms fit the verdict "correct" and unlikely terms the verdict "incorrect"; "about as likely as not" fits
    both.
    """
    return likelihood == "about as likely as not" or is_correct != ("unlikely" in likelihood)
