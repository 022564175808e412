"""Check a text against the rules that are wanted, but for those that its comments silence.

The rule on tags that a trained tagger would not have given, and the tagger with its measured accuracy.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.confidence.extraction.cleaning import clean_sentence
from climassay.confidence.extraction.extracting import language_of
from climassay.confidence.linting.draft import Draft, Finding, Remark, Rule, Sentence, Severity, one_line
from climassay.confidence.linting.term_rules import FINDING_RULES, TERM_RULES, states_finding
from climassay.confidence.linting.usage_rules import USAGE_RULES
from climassay.confidence.linting.vocabulary_rules import PROBABILITY_RULES, VOCABULARY_RULES
from climassay.confidence.vocabulary import TAGS, Tag
from climassay.errors import InputError
from climassay.registry import Registry
from climassay.reporting import counted

if TYPE_CHECKING:
    from climassay.confidence.tagging.tagger import Tagger
    from climassay.models.contract import Encoder

MODEL_FINDING = "model-finding"
"""Rule of :class:`~climassay.confidence.linting.model_rule.ModelReader`."""
TAGGER_DIFFERS = "tagger-differs"
CERTAINTY = 0.7
"""Probability of another level from which on a difference is reported."""
_SURROUNDING = 5
"""Sentences each side that the tagger is shown."""


@dataclass(frozen=True, slots=True)
class MeasuredAccuracy:
    """How often a tagger was right on statements that it had not seen."""

    value: float
    low: float
    high: float
    """Ends of the 95% interval."""
    items: int
    on: str
    """What it was measured on, in words."""

    def __str__(self) -> str:
        return f"{self.value:.0%} [{self.low:.0%} to {self.high:.0%}] of {self.items:,} statements ({self.on})"


def tagger_rule(tagger: "Tagger", accuracy: MeasuredAccuracy | None, certainty: float = CERTAINTY) -> Rule:
    """A rule that names tags which differ from a tagger's.

    Only sentences with one tag are looked at: of others it is not clear which words the tag speaks about.

    Args:
        tagger: Trained on reports.
        accuracy: As it was measured; appears in every finding. None is reported as not measured.
        certainty: Minimum probability of the tagger's level.

    Raises:
        InputError: The certainty is not a probability above one half.
    """
    if not 0.5 < certainty < 1:
        raise InputError(f"A certainty is a probability above 0.5 and below 1, not {certainty:g}.")
    known = str(accuracy) if accuracy else "not measured"

    def check(draft: Draft) -> Iterator[Remark]:
        asked = list(tagged_sentences(draft))
        if not asked:
            return
        levels = list(tagger.levels)
        table = tagger.predict_proba([(sentence.text, context) for sentence, _, context in asked])
        for (sentence, tag, _), row in zip(asked, table, strict=True):
            best = max(range(len(levels)), key=lambda place: float(row[place]))
            if tag in levels and levels[best] != tag and float(row[best]) >= certainty:
                mark = next(mark for mark in sentence.marks if mark.levels)
                yield Remark(
                    *sentence.at(mark.start, mark.end),
                    f"The tagger gives {levels[best]} confidence a probability of {float(row[best]):.0%} and {tag} "
                    f"confidence {float(row[levels.index(tag)]):.0%} (its accuracy: {known}).",
                )

    return Rule(
        TAGGER_DIFFERS,
        "note",
        "tag that the tagger would not give",
        "A tagger that was trained on IPCC reports gives another level with a probability of at least "
        f"{certainty:.0%}. It reads words, not evidence; its accuracy: {known}.",
        (),
        check,
    )


def tagged_sentences(draft: Draft) -> Iterator[tuple[Sentence, Tag, str]]:
    """Sentences with exactly one level, the level, and the sentences of their block around them as one text."""
    for place, sentence in enumerate(draft.sentences):
        levels = [mark for mark in sentence.marks if mark.levels and not mark.attributive]
        if len(levels) != 1 or len(levels[0].levels) != 1 or sentence.block.kind == "heading":
            continue
        # A bracket that was cut off from its sentence says nothing that could be tagged.
        if not any(map(str.isalpha, clean_sentence(sentence.text))):
            continue
        near = draft.sentences[max(0, place - _SURROUNDING) : place + _SURROUNDING + 1]
        context = " ".join(one.text for one in near if one.block == sentence.block)
        yield sentence, levels[0].levels[0], context


def levels_of(row: Sequence[float], levels: Sequence[Tag]) -> list[tuple[Tag, float]]:
    """The probability of each level, highest level first, for showing."""
    pairs = [(level, float(row[place])) for place, level in enumerate(levels)]
    return sorted(pairs, key=lambda pair: -TAGS.index(pair[0]))


@dataclass(frozen=True, slots=True)
class OpenedTagger:
    """A tagger, ready to be asked."""

    tagger: "Tagger"
    accuracy: MeasuredAccuracy | None
    """As it was measured before the tagger was saved; None where its file does not tell."""
    equal_accuracy: MeasuredAccuracy | None = None
    """The same where all levels are equally frequent, of answers for that."""
    shares: Sequence[float] | None = None
    """Shares of the levels among what it was trained on, for which its probabilities are."""


def open_tagger(path: Path | None = None, encoder: "Callable[[str], Encoder] | None" = None) -> OpenedTagger:
    """Open a tagger.

    Args:
        path: A file of ``climassay confidence tag train``; None takes the bundled one.
        encoder: Gives the encoder of a name, where it may be loaded already; by default it is loaded when needed.

    Raises:
        InputError: The file is missing or is not a tagger.
        ModelError: A model that the tagger reads is not there.
    """
    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger

    tagger = load_tagger(BUNDLED_TAGGER if path is None else path)
    reads = tagger.provenance
    if encoder is not None and reads.encoder and not reads.model:
        tagger = tagger.with_models(encoder(reads.encoder))
    share, level = max(zip(tagger.shares, tagger.levels, strict=True))
    on = f"{reads.data}, sections it was not trained on"

    def accuracy(measure: str, on: str) -> MeasuredAccuracy | None:
        wanted = [reads.measured.get(name) for name in (measure, f"{measure}_low", f"{measure}_high", "n")]
        known = [value for value in wanted if value is not None and not math.isnan(value)]
        return MeasuredAccuracy(known[0], known[1], known[2], round(known[3]), on) if len(known) == 4 else None

    return OpenedTagger(
        tagger,
        accuracy("accuracy", f"{on}; always to say {level} is right for {share:.0%}"),
        accuracy("equal_accuracy", f"{on}; chance is {1 / len(tagger.levels):.0%}"),
        tagger.shares,
    )


_COMMENT = re.compile(r"<!--\s*climassay:\s*(?P<what>ignore-file|ignore)\b(?P<rules>[^<>]{0,500}?)\s*-->")
UNKNOWN_IGNORE = "unknown-ignore"
"""Rule of a comment that names a rule which does not exist: it would silence nothing, without a word."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """A part of a text where rules are silent."""

    start: int
    end: int
    rules: frozenset[str]
    """Empty for all of them."""

    def covers(self, rule: str, offset: int) -> bool:
        """Whether a finding of a rule at a place is not wanted."""
        return self.start <= offset < self.end and (not self.rules or rule in self.rules)


def suppressions(draft: Draft, known: Collection[str]) -> tuple[list[Suppression], list[Remark]]:
    """What the comments of a text silence.

    A comment speaks about the paragraph, item or cell that it appears in; one on a line of its own about the next.
    ``ignore-file`` speaks about the whole file.

    Returns:
        The silent parts, and a remark on each comment that names an unknown rule.
    """
    results: list[Suppression] = []
    remarks: list[Remark] = []
    for match in _COMMENT.finditer(draft.text) if not draft.paged else ():
        names = [name for name in re.split(r"[\s,]+", match["rules"]) if name]
        wrong = [name for name in names if name not in known]
        if wrong:
            remarks.append(
                Remark(*match.span(), f"There is no rule {wrong[0]!r}, so that this comment does not silence it.")
            )
        rules = frozenset(name for name in names if name in known)
        if names and not rules:
            continue
        if match["what"] == "ignore-file":
            results.append(Suppression(0, len(draft.text), rules))
            continue
        start, end = match.span()
        for block in draft.blocks:
            # A block in which a comment is all there is has no prose.
            has_prose = draft.mask[block.start : block.end].strip("\x00 \t\r\n")
            if has_prose and (block.start >= end or (block.start <= start and end <= block.end)):
                results.append(Suppression(block.start, block.end, rules))
                break
    return results, remarks


RULES: Registry[Rule] = Registry("rule", "climassay.lint_rules")
"""All that need nothing but the text; a package adds another by ``RULES.add(rule.name, rule)``."""
for _rule in (*FINDING_RULES, *VOCABULARY_RULES, *TERM_RULES, *USAGE_RULES, *PROBABILITY_RULES):
    RULES.add(_rule.name, _rule)


def chosen_rules(wanted: str = "") -> tuple[Rule, ...]:
    """The rules of a list such as ``wide-range,repeated-tag`` or ``-ambiguous-level``.

    Args:
        wanted: Names divided by commas. Those alone; with only names that begin with ``-``, the default ones without
            them; ``all`` stands for every rule. Empty: the default ones.

    Raises:
        InputError: There is no such rule, or none is left.
    """
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    without = {name[1:] for name in names if name.startswith("-")}
    only = [name for name in names if not name.startswith("-")]
    unknown = sorted({*without, *only} - {*RULES, "all"})
    if unknown:
        raise InputError(f"There is no rule {unknown[0]!r}: the rules are {', '.join(RULES)}.")
    if not only:
        taken = {rule.name for rule in RULES.values() if rule.default}
    else:
        taken = set(RULES) if "all" in only else set(only)
    results = tuple(rule for rule in RULES.values() if rule.name in taken - without)
    if not results:
        raise InputError("No rule is left to check: name at least one.")
    return results


_PASSED_OVER = {"heading": "headings", "row": "cells of tables", "note": "footnotes and captions"}
"""Kinds of blocks in which findings without a term are not looked for."""


@dataclass(frozen=True, slots=True)
class TextCoverage:
    """What of a text the rules could read, and what they could not: without it, "nothing found" comforts falsely."""

    sentences: int
    with_terms: int
    """Sentences with a calibrated term: confidence, likelihood, or evidence and agreement."""
    stating_findings: int
    """Other sentences that state a finding, as far as their words tell."""
    language: str | None
    """An English name; None where there is too little text to tell."""
    rules_off: tuple[str, ...]
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
            f"Looked at: {counted(self.sentences, 'sentence')}, {self.with_terms:,} with a calibrated term, and "
            f"{self.stating_findings:,} that state{'s' if self.stating_findings == 1 else ''} a finding without one."
        )

    @property
    def not_looked_at(self) -> tuple[str, ...]:
        """What was not looked at, each in a few words."""
        limits = ["whether the evidence supports the level", "figures, images, code, link targets and citations"]
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

    @cached_property
    def by_rule(self) -> dict[str, int]:
        """How many findings each rule has, zeros included, in the order of the rules."""
        counts = Counter(finding.rule for finding in self.findings)
        names = [rule.name for rule in self.rules]
        return {name: counts[name] for name in (*names, *sorted(set(counts) - set(names)))}

    @cached_property
    def examined(self) -> TextCoverage:
        """What was looked at."""
        sentences = self.draft.sentences
        termed = [any(not mark.attributive for mark in one.marks) or bool(one.likelihoods) for one in sentences]
        asked = {rule.name for rule in self.rules}
        kinds = {one.block.kind for one in sentences}
        return TextCoverage(
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
        examined, result = self.examined, len(self.findings)
        if not examined.is_english:
            return (
                f"The rules read English, and this text seems to be in {examined.language}: that "
                f"{counted(result, 'finding')} came out says nothing about it."
            )
        if result:
            return f"{counted(result, 'finding')} in {counted(self.draft.words, 'word')}."
        if not examined.holds_assessment:
            return (
                "There is nothing to check: the text has no calibrated term, and no sentence that states a finding. "
                "This says nothing about how it states certainty."
            )
        return (
            f"No rule complains of the {counted(examined.with_terms, 'sentence')} with a calibrated term"
            + (f", nor of {examined.stating_findings:,} without one" if examined.stating_findings else "")
            + "; whether the evidence supports the terms was not checked."
        )

    @property
    def per_thousand_words(self) -> float:
        """Findings per 1,000 words of prose; 0 for an empty text."""
        return 1000 * len(self.findings) / self.draft.words if self.draft.words else 0.0


def check(draft: Draft, rules: Sequence[Rule] | None = None) -> Checked:
    """Check a text.

    Args:
        draft: From :func:`climassay.confidence.linting.read_draft` or :func:`~climassay.confidence.linting.draft_of`.
        rules: From :func:`chosen_rules`, perhaps with :func:`~climassay.confidence.linting.checking.tagger_rule` and,
            last, a :class:`~climassay.confidence.linting.model_rule.ModelReader`'s, whose findings are left out where
            another rule complains of the same words; None takes the default ones.
    """
    rules = chosen_rules() if rules is None else tuple(rules)
    suppressed, complaints = suppressions(draft, frozenset((*RULES, TAGGER_DIFFERS, MODEL_FINDING)))
    results = [_finding(draft, UNKNOWN_IGNORE, "warning", remark) for remark in complaints]
    hidden = 0
    for rule in rules:
        for remark in rule.check(draft):
            if any(one.covers(rule.name, remark.start) for one in suppressed):
                hidden += 1
            elif rule.name != MODEL_FINDING or not any(
                one.start_offset < remark.end and remark.start < one.end_offset for one in results
            ):
                results.append(_finding(draft, rule.name, rule.severity, remark))
    results.sort(key=lambda finding: (finding.start_offset, finding.end_offset, finding.rule))
    return Checked(draft, tuple(rules), tuple(results), hidden)


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
