"""Check a text of an assessment report against the IPCC's guidance on stating certainty.

``check(draft_of(text))`` finds statements without a term, words outside the calibrated vocabulary, likelihood and
confidence that do not go together, and tags that contradict themselves, each at its line and column.
"""

from climassay.confidence.linting.checking import RULES, Checked, Examined, check, chosen_rules
from climassay.confidence.linting.draft import Draft, Finding, Location, Rule, Severity
from climassay.confidence.linting.reading import draft_of, read_draft
from climassay.confidence.linting.tagger_rule import MeasuredAccuracy, tagger_rule

__all__ = [
    "RULES",
    "Checked",
    "Draft",
    "Examined",
    "Finding",
    "Location",
    "MeasuredAccuracy",
    "Rule",
    "Severity",
    "check",
    "chosen_rules",
    "draft_of",
    "read_draft",
    "tagger_rule",
]
