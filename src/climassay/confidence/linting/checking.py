"""Check a text against rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from climassay.confidence.extraction.languages import language_of
from climassay.confidence.linting.catalogue import RULES, chosen_rules
from climassay.confidence.linting.draft import Draft, one_line
from climassay.confidence.linting.finding import Finding, Remark, Rule, Severity
from climassay.confidence.linting.finding_rules import states_finding
from climassay.confidence.linting.ignoring import UNKNOWN_IGNORE, silences
from climassay.confidence.linting.tagger_rule import TAGGER_DIFFERS

_PASSED_OVER = {"heading": "headings", "row": "cells of tables", "note": "footnotes and captions"}
"""Of all rules that a comment may silence."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What of a text the rules could read, and what they could not: without it, "nothing found" comforts falsely."""

    sentences: int
    with_terms: int
    """Sentences with a calibrated term: confidence, likelihood, or evidence and agreement."""
    stating_findings: int
    """Other sentences that state a finding, as far as their words tell."""
    language: str | None
    """An English name; None where there is too little text to tell."""
    rules_off: tuple[str, ...]
    """Rules that were not asked."""
    kinds_passed_over: tuple[str, ...]
    """Kinds of blocks, for example headings, in which findings without a term are not looked for."""

    @property
    def is_english(self) -> bool:
        """Whether the rules can read it; True where there is too little text to tell."""
        return self.language in (None, "English")

    @property
    def holds_assessment(self) -> bool:
        """Whether there is anything that the rules are about."""
        return self.with_terms + self.stating_findings > 0

    @property
    def looked_at(self) -> str:
        """One sentence."""
        return (
            f"Looked at: {_number(self.sentences, 'sentence')}, {self.with_terms:,} with a calibrated term, and "
            f"{self.stating_findings:,} that state a finding without one."
        )

    @property
    def not_looked_at(self) -> tuple[str, ...]:
        """What was not looked at, each in a few words."""
        limits = ["whether the evidence bears the level", "figures, images, code, link targets and citations"]
        if self.kinds_passed_over:
            limits.append(f"findings without a term in {', '.join(self.kinds_passed_over)}")
        if self.rules_off:
            limits.append(f"rules that are off ({', '.join(self.rules_off)})")
        return tuple(limits)


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

    @cached_property
    def examined(self) -> Examined:
        """What was looked at."""
        sentences = self.draft.sentences
        termed = [any(not mark.attributive for mark in one.marks) or bool(one.likelihoods) for one in sentences]
        asked = {rule.name for rule in self.rules}
        kinds = {one.block.kind for one in sentences}
        return Examined(
            len(sentences),
            sum(termed),
            sum(states_finding(one) for one, has_term in zip(sentences, termed, strict=True) if not has_term),
            language_of(one.text for one in sentences),
            tuple(name for name in RULES if name not in asked),
            tuple(words for kind, words in _PASSED_OVER.items() if kind in kinds),
        )

    @property
    def conclusion(self) -> str:
        """What the findings, or that there are none, say about the text: one or two sentences."""
        examined, found = self.examined, len(self.findings)
        if not examined.is_english:
            return (
                f"The rules read English, and this text seems to be in {examined.language}: that "
                f"{_number(found, 'finding')} came out says nothing about it."
            )
        if found:
            return f"{_number(found, 'finding')} in {_number(self.draft.words, 'word')}."
        if not examined.holds_assessment:
            return (
                "There is nothing to check: the text has no calibrated term, and no sentence that states a finding. "
                "This says nothing about how it states certainty."
            )
        return (
            f"No rule complains of the {_number(examined.with_terms, 'sentence')} with a calibrated term"
            + (f", nor of {examined.stating_findings:,} without one" if examined.stating_findings else "")
            + "; whether the evidence bears the terms was not looked at."
        )

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
    silent, complaints = silences(draft, frozenset((*RULES, TAGGER_DIFFERS)))
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


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


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
