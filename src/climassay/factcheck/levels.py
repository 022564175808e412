"""Evidence, agreement and the confidence that they allow, after the IPCC's guidance on uncertainty.

References:
    Mastrandrea et al. (2010), Guidance Note for Lead Authors of the IPCC Fifth Assessment Report on Consistent
    Treatment of Uncertainties, figure 1: confidence increases with both, and a given pair allows more than one level.
"""

from typing import get_args

from climassay.factcheck.transcript import AgreementLevel, Confidence, EvidenceLevel, Levels, Likelihood

EVIDENCE: tuple[EvidenceLevel, ...] = get_args(EvidenceLevel)
AGREEMENT: tuple[AgreementLevel, ...] = get_args(AgreementLevel)
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
LIKELIHOODS: tuple[Likelihood, ...] = get_args(Likelihood)
QUANTIFIABLE: frozenset[Confidence] = frozenset({"high", "very high"})
"""Confidence from which a likelihood may be given."""
UNCERTAIN: frozenset[Confidence] = frozenset({"very low", "low"})
"""Confidence at which the mediator holds another round."""


def allowed_confidences(evidence: EvidenceLevel, agreement: AgreementLevel) -> tuple[Confidence, ...]:
    """Levels of confidence that go with a pair of evidence and agreement: the one in the middle and its neighbours.

    Limited evidence with low agreement allows very low and low, robust with high allows high and very high.
    """
    middle = EVIDENCE.index(evidence) + AGREEMENT.index(agreement)
    return CONFIDENCES[max(middle - 1, 0) : middle + 2]


def coherent(evidence: EvidenceLevel, agreement: AgreementLevel, confidence: Confidence) -> Confidence:
    """The allowed confidence that is nearest to the one given."""
    allowed = allowed_confidences(evidence, agreement)
    place = CONFIDENCES.index(confidence)
    return min(allowed, key=lambda level: abs(CONFIDENCES.index(level) - place))


def takes_side(likelihood: Likelihood, right: bool) -> bool:
    """Whether a likelihood that a claim is true goes with a verdict on the right or the wrong side of a scale."""
    return likelihood == "about as likely as not" or right != ("unlikely" in likelihood)


ALL_LEVELS: tuple[Levels, ...] = tuple(
    Levels(evidence, agreement, confidence)
    for evidence in EVIDENCE
    for agreement in AGREEMENT
    for confidence in allowed_confidences(evidence, agreement)
)
"""Every coherent assessment, without likelihood."""


def weakest(levels: list[Levels]) -> Levels:
    """What holds for several statements at once: the lowest of each level; a likelihood does not carry over."""
    evidence = min((one.evidence for one in levels), key=EVIDENCE.index)
    agreement = min((one.agreement for one in levels), key=AGREEMENT.index)
    confidence = min((one.confidence for one in levels), key=CONFIDENCES.index)
    return Levels(evidence, agreement, coherent(evidence, agreement, confidence))
