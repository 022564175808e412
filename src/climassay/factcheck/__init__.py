"""Fact-checking by debate: advocates with an authority each, a mediator, verdicts with citations (CLIMINATOR).

Leippold et al. (2024), arXiv 2401.12566. See docs/factcheck.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.factcheck.check_store import (
        CheckFilter,
        CheckReview,
        CheckStore,
        CheckSummary,
        StoredCheck,
        check_data,
    )
    from climassay.factcheck.checkability import Checkability, assess_claims
    from climassay.factcheck.checking import Checker, DebateResources, open_checker
    from climassay.factcheck.claims import ClaimColumns, ClaimTable, make_claim, read_claims
    from climassay.factcheck.configuration import (
        AdvocateSettings,
        DebateSettings,
        MediatorSettings,
        advocates_from_names,
        load_settings,
    )
    from climassay.factcheck.evidence_mode import check_with_evidence, check_with_head, read_evidence_claims
    from climassay.factcheck.fallacies import FALLACIES, FoundFallacy, find_fallacies, load_fallacies
    from climassay.factcheck.results.analysis import RunAnalysis, analyse, stored_truths
    from climassay.factcheck.results.checked_claims import CheckedClaim, CheckedClaims, ScoredVerdicts
    from climassay.factcheck.results.claimreview import claim_review
    from climassay.factcheck.results.page import factcheck_page
    from climassay.factcheck.results.past_checks import PastCheck, find_past
    from climassay.factcheck.results.report import factcheck_report
    from climassay.factcheck.results.scoring import VerdictScores, score_verdicts
    from climassay.factcheck.scales import SCALES, Scale, load_scale
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
        as_data,
        from_data,
    )
    from climassay.factcheck.verdict_head import VerdictHead

_PLACES = {
    "check_store": ("CheckFilter", "CheckReview", "CheckStore", "CheckSummary", "StoredCheck", "check_data"),
    "checkability": ("Checkability", "assess_claims"),
    "checking": ("Checker", "DebateResources", "open_checker"),
    "claims": ("ClaimColumns", "ClaimTable", "make_claim", "read_claims"),
    "configuration": (
        "AdvocateSettings",
        "DebateSettings",
        "MediatorSettings",
        "advocates_from_names",
        "load_settings",
    ),
    "evidence_mode": ("check_with_evidence", "check_with_head", "read_evidence_claims"),
    "fallacies": ("FALLACIES", "FoundFallacy", "find_fallacies", "load_fallacies"),
    "results.analysis": ("RunAnalysis", "analyse", "stored_truths"),
    "results.checked_claims": ("CheckedClaim", "CheckedClaims", "ScoredVerdicts"),
    "results.claimreview": ("claim_review",),
    "results.page": ("factcheck_page",),
    "results.past_checks": ("PastCheck", "find_past"),
    "results.report": ("factcheck_report",),
    "results.scoring": ("VerdictScores", "score_verdicts"),
    "scales": ("SCALES", "Scale", "load_scale"),
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
        "as_data",
        "from_data",
    ),
    "verdict_head": ("VerdictHead",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}
_EARLIER_NAMES = {
    "Company": "DebateResources",
    "KeptCheck": "StoredCheck",
    "KeptChecks": "CheckStore",
    "Wanted": "CheckFilter",
}
"""What was called otherwise one version ago."""

__all__ = [
    "FALLACIES",
    "SCALES",
    "AdvocateOpinion",
    "AdvocateSettings",
    "CheckFilter",
    "CheckReview",
    "CheckStore",
    "CheckSummary",
    "Checkability",
    "CheckedClaim",
    "CheckedClaims",
    "Checker",
    "Claim",
    "ClaimColumns",
    "ClaimTable",
    "DebateResources",
    "DebateSettings",
    "FollowUp",
    "FoundFallacy",
    "Levels",
    "MediatorDecision",
    "MediatorSettings",
    "PassageCitation",
    "PastCheck",
    "Round",
    "RunAnalysis",
    "Scale",
    "ScoredVerdicts",
    "StoredCheck",
    "Subclaim",
    "Transcript",
    "Verdict",
    "VerdictHead",
    "VerdictScores",
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
    name = _EARLIER_NAMES.get(name, name)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
