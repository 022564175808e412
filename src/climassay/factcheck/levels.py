"""Evidence, agreement and the confidence that they allow, after the IPCC's guidance on uncertainty.

References:
    Mastrandrea et al. (2010), Guidance Note for Lead Authors of the IPCC Fifth Assessment Report on Consistent
    Treatment of Uncertainties, figure 1: confidence increases with both, and a given pair allows more than one level.
"""

from typing import get_args

from climassay.factcheck.transcript import AgreementLevel, Confidence, EvidenceLevel, Levels, Likelihood

LEVELS: tuple[EvidenceLevel, ...] = get_args(EvidenceLevel)
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
LIKELIHOODS: tuple[Likelihood, ...] = get_args(Likelihood)
QUANTIFIABLE: frozenset[Confidence] = frozenset({"high", "very high"})
"""Confidence from which a likelihood may be given."""
UNCERTAIN: frozenset[Confidence] = frozenset({"very low", "low"})
"""Confidence at which the mediator holds another round."""


def allowed_confidences(evidence: EvidenceLevel, agreement: AgreementLevel) -> tuple[Confidence, ...]:
    """Levels of confidence that go with a pair of evidence and agreement: the one in the middle and its neighbours.

    Low evidence with low agreement allows very low and low, high with high allows high and very high.
    """
    middle = LEVELS.index(evidence) + LEVELS.index(agreement)
    return CONFIDENCES[max(middle - 1, 0) : middle + 2]


def coherent(evidence: EvidenceLevel, agreement: AgreementLevel, confidence: Confidence) -> Confidence:
    """The allowed confidence that is nearest to the one given."""
    allowed = allowed_confidences(evidence, agreement)
    place = CONFIDENCES.index(confidence)
    return min(allowed, key=lambda level: abs(CONFIDENCES.index(level) - place))


ALL_LEVELS: tuple[Levels, ...] = tuple(
    Levels(evidence, agreement, confidence)
    for evidence in LEVELS
    for agreement in LEVELS
    for confidence in allowed_confidences(evidence, agreement)
)
"""Every coherent assessment, without likelihood."""


def weakest(levels: list[Levels]) -> Levels:
    """What holds for several statements at once: the lowest of each level; a likelihood does not carry over."""
    evidence = min((one.evidence for one in levels), key=LEVELS.index)
    agreement = min((one.agreement for one in levels), key=LEVELS.index)
    confidence = min((one.confidence for one in levels), key=CONFIDENCES.index)
    return Levels(evidence, agreement, coherent(evidence, agreement, confidence))
