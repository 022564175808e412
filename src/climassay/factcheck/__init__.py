"""Fact-checking by debate: advocates with an authority each, a mediator, verdicts with citations (CLIMINATOR).

Leippold et al. (2024), arXiv 2401.12566. See docs/factcheck.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.factcheck.analysis import RunAnalysis, analyse, stored_truths
    from climassay.factcheck.checkability import Checkability, assess_claims
    from climassay.factcheck.checked_claims import CheckedClaim, CheckedClaims, ScoredVerdicts
    from climassay.factcheck.checking import Checker, Company, make_claim, open_checker
    from climassay.factcheck.claimreview import claim_review
    from climassay.factcheck.claims import ClaimColumns, ClaimTable, read_claims
    from climassay.factcheck.configuration import (
        AdvocateSettings,
        DebateSettings,
        MediatorSettings,
        advocates_from_names,
        load_settings,
    )
    from climassay.factcheck.evidence_mode import check_with_evidence, check_with_head, read_evidence_claims
    from climassay.factcheck.fallacies import FALLACIES, FoundFallacy, find_fallacies, load_fallacies
    from climassay.factcheck.kept_check import CheckReview, CheckSummary, KeptCheck, Wanted, check_data
    from climassay.factcheck.kept_checks import KeptChecks
    from climassay.factcheck.page import factcheck_page
    from climassay.factcheck.past_checks import PastCheck, find_past
    from climassay.factcheck.report import factcheck_report
    from climassay.factcheck.scales import SCALES, Scale, load_scale
    from climassay.factcheck.scoring import VerdictScores, score_verdicts
    from climassay.factcheck.serialisation import as_data, from_data
    from climassay.factcheck.transcript import (
        AdvocateOpinion,
        Claim,
        FollowUp,
        Levels,
        MediatorDecision,
        PassageCitation,
        Round,
        Subclaim,
        Transcript,
        Verdict,
    )
    from climassay.factcheck.verdict_head import VerdictHead

_PLACES = {
    "analysis": ("RunAnalysis", "analyse", "stored_truths"),
    "checkability": ("Checkability", "assess_claims"),
    "checked_claims": ("CheckedClaim", "CheckedClaims", "ScoredVerdicts"),
    "checking": ("Checker", "Company", "make_claim", "open_checker"),
    "claimreview": ("claim_review",),
    "claims": ("ClaimColumns", "ClaimTable", "read_claims"),
    "configuration": (
        "AdvocateSettings",
        "DebateSettings",
        "MediatorSettings",
        "advocates_from_names",
        "load_settings",
    ),
    "evidence_mode": ("check_with_evidence", "check_with_head", "read_evidence_claims"),
    "fallacies": ("FALLACIES", "FoundFallacy", "find_fallacies", "load_fallacies"),
    "kept_check": ("CheckReview", "CheckSummary", "KeptCheck", "Wanted", "check_data"),
    "kept_checks": ("KeptChecks",),
    "page": ("factcheck_page",),
    "past_checks": ("PastCheck", "find_past"),
    "report": ("factcheck_report",),
    "scales": ("SCALES", "Scale", "load_scale"),
    "scoring": ("VerdictScores", "score_verdicts"),
    "serialisation": ("as_data", "from_data"),
    "transcript": (
        "AdvocateOpinion",
        "Claim",
        "FollowUp",
        "Levels",
        "MediatorDecision",
        "PassageCitation",
        "Round",
        "Subclaim",
        "Transcript",
        "Verdict",
    ),
    "verdict_head": ("VerdictHead",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "FALLACIES",
    "SCALES",
    "AdvocateOpinion",
    "AdvocateSettings",
    "CheckReview",
    "CheckSummary",
    "Checkability",
    "CheckedClaim",
    "CheckedClaims",
    "Checker",
    "Claim",
    "ClaimColumns",
    "ClaimTable",
    "Company",
    "DebateSettings",
    "FollowUp",
    "FoundFallacy",
    "KeptCheck",
    "KeptChecks",
    "Levels",
    "MediatorDecision",
    "MediatorSettings",
    "PassageCitation",
    "PastCheck",
    "Round",
    "RunAnalysis",
    "Scale",
    "ScoredVerdicts",
    "Subclaim",
    "Transcript",
    "Verdict",
    "VerdictHead",
    "VerdictScores",
    "Wanted",
    "advocates_from_names",
    "analyse",
    "as_data",
    "assess_claims",
    "check_data",
    "check_with_evidence",
    "check_with_head",
    "claim_review",
    "factcheck_page",
    "factcheck_report",
    "find_fallacies",
    "find_past",
    "from_data",
    "load_fallacies",
    "load_scale",
    "load_settings",
    "make_claim",
    "open_checker",
    "read_claims",
    "read_evidence_claims",
    "score_verdicts",
    "stored_truths",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: most commands need few of them, and none needs all."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
