"""Calibrated vocabulary of the IPCC: confidence, likelihood, evidence and agreement.

Mastrandrea et al. 2010 (Guidance Note for Lead Authors of the IPCC AR5 on Consistent Treatment of Uncertainties); the
wider likelihood terms are those that AR5 and AR6 explain in the first footnotes of their summaries.
"""

from typing import Literal, get_args

Level = Literal["very low", "low", "medium", "high", "very high"]
"""Level of confidence of a statement."""
LEVELS: tuple[Level, ...] = get_args(Level)
"""Levels from the lowest to the highest."""

Likelihood = Literal[
    "exceptionally unlikely",
    "extremely unlikely",
    "very unlikely",
    "unlikely",
    "about as likely as not",
    "more unlikely than likely",
    "more likely than not",
    "likely",
    "very likely",
    "extremely likely",
    "virtually certain",
]
LIKELIHOODS: tuple[Likelihood, ...] = get_args(Likelihood)
LIKELIHOOD_RANGES: dict[Likelihood, tuple[float, float]] = {
    "exceptionally unlikely": (0.0, 0.01),
    "extremely unlikely": (0.0, 0.05),
    "very unlikely": (0.0, 0.10),
    "unlikely": (0.0, 0.33),
    "more unlikely than likely": (0.0, 0.50),
    "about as likely as not": (0.33, 0.66),
    "more likely than not": (0.50, 1.0),
    "likely": (0.66, 1.0),
    "very likely": (0.90, 1.0),
    "extremely likely": (0.95, 1.0),
    "virtually certain": (0.99, 1.0),
}
"""Lower and upper probability of each likelihood term."""

EvidenceRating = Literal["limited", "medium", "robust"]
EVIDENCE: tuple[EvidenceRating, ...] = get_args(EvidenceRating)
Agreement = Literal["low", "medium", "high"]
AGREEMENT: tuple[Agreement, ...] = get_args(Agreement)


def score(tag: Level) -> int:
    """Return the score of a level of confidence, from -2 (very low) to 2 (very high); Maiya 2024, section 4.3.1."""
    return LEVELS.index(tag) - 2
