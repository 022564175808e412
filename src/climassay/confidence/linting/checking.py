"""Check a text against rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from climassay.confidence.linting.catalogue import RULES, chosen_rules
from climassay.confidence.linting.draft import Draft, one_line
from climassay.confidence.linting.finding import Finding, Remark, Rule, Severity
from climassay.confidence.linting.ignoring import UNKNOWN_IGNORE, silences
from climassay.confidence.linting.tagger_rule import TAGGER_DIFFERS

NAMES = frozenset((*RULES, TAGGER_DIFFERS))
"""Of all rules that a comment may silence."""


@dataclass(frozen=True)
class Checked:
    """A text and what was found in it."""

    draft: Draft
    rules: tuple[Rule, ...]
    """Those that it was checked against."""
    findings: tuple[Finding, ...]
    """In the order of the text."""
    silenced: int = 0
    """Findings that comments in the text silenced."""

    @cached_property
    def by_rule(self) -> dict[str, int]:
        """How many findings each rule has, zeros included, in the order of the rules."""
        counts = Counter(finding.rule for finding in self.findings)
        names = [rule.name for rule in self.rules]
        return {name: counts[name] for name in (*names, *sorted(set(counts) - set(names)))}

    @property
    def per_thousand_words(self) -> float:
        """Findings per 1,000 words of prose; 0 for an empty text."""
        return 1000 * len(self.findings) / self.draft.words if self.draft.words else 0.0


def check(draft: Draft, rules: Sequence[Rule] | None = None) -> Checked:
    """Check a text.

    Args:
        draft: From :func:`climassay.confidence.linting.read_draft` or :func:`~climassay.confidence.linting.draft_of`.
        rules: From :func:`chosen_rules`, perhaps with :func:`~climassay.confidence.linting.tagger_rule.tagger_rule`;
            None takes the default ones.
    """
    rules = chosen_rules() if rules is None else tuple(rules)
    silent, complaints = silences(draft, NAMES)
    found = [_finding(draft, UNKNOWN_IGNORE, "warning", remark) for remark in complaints]
    hidden = 0
    for rule in rules:
        for remark in rule.check(draft):
            if any(one.covers(rule.name, remark.start) for one in silent):
                hidden += 1
            else:
                found.append(_finding(draft, rule.name, rule.severity, remark))
    found.sort(key=lambda finding: (finding.start_offset, finding.end_offset, finding.rule))
    return Checked(draft, tuple(rules), tuple(found), hidden)


def _finding(draft: Draft, rule: str, severity: Severity, remark: Remark) -> Finding:
    return Finding(
        rule,
        severity,
        draft.location(remark.start),
        draft.location(remark.end - 1),
        remark.start,
        remark.end,
        one_line(draft.mask, remark.start, remark.end)[0] or draft.text[remark.start : remark.end],
        remark.message,
        remark.suggestion,
    )
