from .certainty import Levels as Levels
from .check_store import CheckStore as CheckStore
from .check_records import (
    CheckReview as CheckReview,
    CheckSummary as CheckSummary,
    StoredCheck as StoredCheck,
    check_data as check_data,
)
from .checking import Checker as Checker, DebateResources as DebateResources, open_checker as open_checker
from .claims import (
    Checkability as Checkability,
    ClaimColumns as ClaimColumns,
    ClaimTable as ClaimTable,
    assess_claims as assess_claims,
    make_claim as make_claim,
    read_claims as read_claims,
)
from .configuration import (
    AdvocateSettings as AdvocateSettings,
    CheckFilter as CheckFilter,
    DebateSettings as DebateSettings,
    MediatorSettings as MediatorSettings,
    advocates_from_names as advocates_from_names,
    load_settings as load_settings,
)
from .evidence_mode import check_with_evidence as check_with_evidence, read_evidence_claims as read_evidence_claims
from .fallacies import (
    FALLACIES as FALLACIES,
    FoundFallacy as FoundFallacy,
    find_fallacies as find_fallacies,
    load_fallacy_classifier as load_fallacy_classifier,
)
from .past_checks import PastCheck as PastCheck, find_past_checks as find_past_checks
from .results.analysis import RunAnalysis as RunAnalysis, analyse as analyse, read_truths as read_truths
from .results.page import factcheck_page as factcheck_page
from .results.checked_claim import CheckedClaim as CheckedClaim
from .results.claim_review import claim_review as claim_review
from .results.report import factcheck_report as factcheck_report
from .results.checked_claims import (
    CheckedClaims as CheckedClaims,
    ScoredVerdicts as ScoredVerdicts,
)
from .results.scoring import VerdictScores as VerdictScores, score_verdicts as score_verdicts
from .scales import SCALES as SCALES, Scale as Scale, load_scale as load_scale
from .transcript import (
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
