"""Check a draft against selected rules, and explain what the result means."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from climassay.confidence.extraction.extracting import detect_language
from climassay.confidence.linting.draft import LintFinding, Manuscript, Rule
from climassay.confidence.linting.rules import GUIDANCE_RULES
from climassay.errors import InputError
from climassay.registry import Registry
from climassay.reporting import counted

MODEL_FINDING = "model-finding"
"""Name of the rule that reports the findings of a :class:`~climassay.confidence.linting.model_rule.ModelReader`."""

RECALL_NOTE = "The rules alone found 31 of 120 planted problems (26%, 95% interval 19 to 34)."
"""Sentence on the proportion of problems that the rules find; measured in docs/results/confidence.md."""

RULES: Registry[Rule] = Registry("rule", "climassay.lint_rules")
"""Registered rules, which need only the text. Other packages can add a rule by ``RULES.add(rule.name, rule)``."""
for _rule in GUIDANCE_RULES:
    RULES.add(_rule.name, _rule)


def select_rules(names: str = "") -> tuple[Rule, ...]:
    """Return the rules selected by a list such as ``repeated-tag,likelihood-range`` or ``-ambiguous-level``.

    Args:
        names: Names of rules, separated by commas; with a minus before each, all other rules are selected. An empty
            list selects all rules.

    Raises:
        InputError: A rule does not exist, or no rule is left.
    """
    listed_names = [name.strip() for name in names.split(",") if name.strip()]
    excluded_names = {name[1:] for name in listed_names if name.startswith("-")}
    included_names = {name for name in listed_names if not name.startswith("-")} or set(RULES)
    if unknown_names := sorted({*excluded_names, *included_names} - set(RULES)):
        raise InputError(f"There is no rule {unknown_names[0]!r}: the rules are {', '.join(RULES)}.")
    rules = tuple(rule for rule in RULES.values() if rule.name in included_names - excluded_names)
    if not rules:
        raise InputError("No rule is left to check: name at least one.")
    return rules


@dataclass(frozen=True)
class CheckedDraft:
    """Draft with the findings in it."""

    draft: Manuscript
    rules: tuple[Rule, ...]
    """Rules against which the draft was checked."""
    findings: tuple[LintFinding, ...]
    """Findings in the order of the text."""

    @cached_property
    def by_rule(self) -> dict[str, int]:
        """Number of findings by rule, in the order of the rules, including rules without findings."""
        counts = Counter(finding.rule for finding in self.findings)
        return {rule.name: counts[rule.name] for rule in self.rules}

    @cached_property
    def sentences_with_terms(self) -> int:
        """Number of sentences with a calibrated term for confidence, likelihood, evidence or agreement."""
        return sum(
            bool(sentence.likelihoods) or any(not tag.attributive for tag in sentence.tags)
            for sentence in self.draft.sentences
        )

    @cached_property
    def language(self) -> str | None:
        """English name of the draft's language; None if the text is too short to identify it."""
        return detect_language(sentence.text for sentence in self.draft.sentences)

    @property
    def is_read(self) -> bool:
        """Whether the rules apply: the draft's language is supported, and the draft has a calibrated term."""
        return self.language in (None, "English") and bool(self.findings or self.sentences_with_terms)

    @property
    def conclusion(self) -> str:
        """Sentence that explains what the findings, or their absence, mean for the draft."""
        summary = f"{counted(len(self.findings), 'finding')} in {counted(self.draft.words, 'word')}"
        terms = f"{self.sentences_with_terms:,} of {counted(len(self.draft.sentences), 'sentence')}"
        if self.language not in (None, "English"):
            return f"{summary}, which says nothing: the rules read English, and this seems to be {self.language}."
        if not self.is_read:
            return f"{summary}: there is nothing to check, because no sentence has a calibrated term."
        return (
            f"{summary}; {terms} have a calibrated term. Headings, figures, findings without a term and whether the "
            f"evidence supports a level are not checked. {RECALL_NOTE}"
        )


def check(draft: Manuscript, rules: Sequence[Rule] | None = None) -> CheckedDraft:
    """Check a draft against rules.

    Args:
        draft: Draft, from :func:`climassay.confidence.linting.read_draft` or
            :func:`~climassay.confidence.linting.draft_of`.
        rules: Rules from :func:`select_rules`; None for all registered rules. The rule of a
            :class:`~climassay.confidence.linting.model_rule.ModelReader` may be the last; its findings are dropped if
            another rule objects to the same words.
    """
    rules = select_rules() if rules is None else tuple(rules)
    findings: list[LintFinding] = []
    for rule in rules:
        for remark in rule.check(draft):
            if rule.name == MODEL_FINDING and any(
                finding.start < remark.end and remark.start < finding.end for finding in findings
            ):
                continue
            words = draft.text[remark.start : remark.end]
            location = draft.location(remark.start)
            findings.append(
                LintFinding(
                    rule.name,
                    rule.severity,
                    location,
                    remark.start,
                    remark.end,
                    words,
                    remark.message,
                    remark.suggestion,
                )
            )
    findings.sort(key=lambda finding: (finding.start, finding.end, finding.rule))
    return CheckedDraft(draft, rules, tuple(findings))
