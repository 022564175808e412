"""Fact-checking by debate: advocates with an authority each, a mediator, verdicts with citations (CLIMINATOR).

Leippold et al. (2024), arXiv 2401.12566. See docs/factcheck.md.
"""

from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from climassay.factcheck.configuration import CheckFilter as CheckFilter
    from climassay.factcheck.check_store import (
        CheckReview as CheckReview,
        CheckStore as CheckStore,
        CheckSummary as CheckSummary,
        StoredCheck as StoredCheck,
        check_data as check_data,
    )
    from climassay.factcheck.claims import Checkability as Checkability, assess_claims as assess_claims
    from climassay.factcheck.checking import (
        Checker as Checker,
        DebateResources as DebateResources,
        open_checker as open_checker,
    )
    from climassay.factcheck.claims import (
        ClaimColumns as ClaimColumns,
        ClaimTable as ClaimTable,
        make_claim as make_claim,
        read_claims as read_claims,
    )
    from climassay.factcheck.configuration import (
        AdvocateSettings as AdvocateSettings,
        DebateSettings as DebateSettings,
        MediatorSettings as MediatorSettings,
        advocates_from_names as advocates_from_names,
        load_settings as load_settings,
    )
    from climassay.factcheck.evidence_mode import (
        check_with_evidence as check_with_evidence,
        read_evidence_claims as read_evidence_claims,
    )
    from climassay.factcheck.fallacies import (
        FALLACIES as FALLACIES,
        FoundFallacy as FoundFallacy,
        find_fallacies as find_fallacies,
        load_fallacies as load_fallacies,
    )
    from climassay.factcheck.results.analysis import (
        RunAnalysis as RunAnalysis,
        analyse as analyse,
        stored_truths as stored_truths,
    )
    from climassay.factcheck.results.report import CheckedClaims as CheckedClaims, ScoredVerdicts as ScoredVerdicts
    from climassay.factcheck.results.page import (
        CheckedClaim as CheckedClaim,
        claim_review as claim_review,
        factcheck_page as factcheck_page,
    )
    from climassay.factcheck.check_store import PastCheck as PastCheck, find_past as find_past
    from climassay.factcheck.results.report import factcheck_report as factcheck_report
    from climassay.factcheck.results.scoring import VerdictScores as VerdictScores, score_verdicts as score_verdicts
    from climassay.factcheck.scales import SCALES as SCALES, Scale as Scale, load_scale as load_scale
    from climassay.factcheck.certainty import Levels as Levels
    from climassay.factcheck.transcript import (
        AdvocateOpinion as AdvocateOpinion,
        Claim as Claim,
        FollowUp as FollowUp,
        MediatorDecision as MediatorDecision,
        PassageCitation as PassageCitation,
        Round as Round,
        Subclaim as Subclaim,
        Transcript as Transcript,
        Verdict as Verdict,
        as_data as as_data,
        from_data as from_data,
    )

export_lazily(__name__)
