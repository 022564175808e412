"""Check a text of an assessment report against the IPCC's guidance on stating certainty.

``check(draft_of(text))`` finds statements without a term, words outside the calibrated vocabulary, likelihood and
confidence that do not go together, and tags that contradict themselves, each at its line and column.
"""

from climassay.confidence.linting.checking import (
    RULES as RULES,
    Checked as Checked,
    TextCoverage as TextCoverage,
    check as check,
    chosen_rules as chosen_rules,
)
from climassay.confidence.linting.draft import (
    Draft as Draft,
    Finding as Finding,
    Location as Location,
    Rule as Rule,
    Severity as Severity,
)
from climassay.confidence.linting.draft import draft_of as draft_of, read_draft as read_draft
from climassay.confidence.linting.checking import MeasuredAccuracy as MeasuredAccuracy, tagger_rule as tagger_rule
