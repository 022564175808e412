"""Screening: named, optional checks that mark faulty drafts as rejected (ClimaQA, section 4.2, appendix A.4.1).

Modules whose names end in ``checks`` contain checks of single drafts, which ``catalogue`` runs and counts. Other
modules find unsuitable seed passages and near-duplicates.
"""

from climassay.generation.draft import question_draft
from climassay.generation.screening.answer_checks import REPLACED_CHECKS, Verification
from climassay.generation.screening.catalogue import (
    CHECKS,
    CheckCount,
    check_counts,
    check_names,
    screen,
    screening_table,
)
from climassay.generation.screening.check import Check
from climassay.generation.screening.statement_checks import TERM_CHECKS
from climassay.generation.screening.near_duplicates import DuplicateFinder
from climassay.generation.screening.passages import find_passage_fault
from climassay.generation.screening.support_checks import MODEL_CHECKS
from climassay.generation.screening.question_checks import detect_other_language

__all__ = [
    "CHECKS", "MODEL_CHECKS", "REPLACED_CHECKS", "TERM_CHECKS", "Check", "CheckCount", "DuplicateFinder",
    "Verification", "check_counts", "check_names", "detect_other_language", "find_passage_fault", "question_draft",
    "screen", "screening_table",
]  # fmt: skip
