"""Check a draft of an assessment report mechanically against the IPCC's guidance on stating certainty.

``check(draft_of(text))`` finds unknown and misspelt levels, words of other scales, likelihood beside a probability
outside its range, and levels that are ambiguous, each at its paragraph.
"""

from climassay.confidence.linting.checking import (
    RULES as RULES,
    CheckedDraft as CheckedDraft,
    check as check,
    select_rules as select_rules,
)
from climassay.confidence.linting.draft import (
    Manuscript as Manuscript,
    LintFinding as LintFinding,
    Rule as Rule,
    draft_of as draft_of,
    read_draft as read_draft,
)
