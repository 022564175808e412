"""Rules on levels of confidence, and on evidence and agreement beside them."""

import re
from collections.abc import Iterator
from itertools import pairwise

from climassay.confidence.linting.clauses import divided, in_plain_words, only_clutter_between
from climassay.confidence.linting.draft import Draft, Sentence
from climassay.confidence.linting.finding import Example, Remark, Rule
from climassay.confidence.marks import TagMark
from climassay.confidence.vocabulary import AGREEMENT, EVIDENCE, TAGS

_FAR = 2
"""Levels that lie so far apart do not fit."""
_NEAR = 25
"""Characters before brackets in which the other half of a pair is looked for."""
_BOX = "AR6 WG1, Box 1.1"


def _marks(draft: Draft) -> Iterator[tuple[Sentence, TagMark]]:
    for sentence in draft.sentences:
        for mark in sentence.marks:
            yield sentence, mark


def _at(sentence: Sentence, mark: TagMark) -> tuple[int, int]:
    return sentence.at(mark.start, mark.end)


def _wide_range(draft: Draft) -> Iterator[Remark]:
    for sentence, mark in _marks(draft):
        if len(mark.levels) == 2 and _apart(mark) >= _FAR:
            low, high = mark.levels
            yield Remark(
                *_at(sentence, mark), f"A range from {low} to {high} confidence says next to nothing about the finding."
            )


def _apart(mark: TagMark) -> int:
    return TAGS.index(mark.levels[-1]) - TAGS.index(mark.levels[0])


def _ambiguous_level(draft: Draft) -> Iterator[Remark]:
    for sentence, mark in _marks(draft):
        if len(mark.levels) == 2 and _apart(mark) < _FAR and not _explained(sentence, mark):
            low, high = mark.levels
            yield Remark(
                *_at(sentence, mark),
                f"Two levels are given: choose one, or say to what {low} and to what {high} confidence belongs.",
                f"{low} confidence",
            )
    for sentence in draft.sentences:
        for one, other in pairwise(sentence.marks):
            same = one.bracket is not None and one.bracket == other.bracket
            if same and one.levels and other.levels and one.levels != other.levels and not (one.scope or other.scope):
                yield Remark(
                    *sentence.at(one.start, other.end),
                    "The brackets give two levels and do not say what each is about.",
                )


def _explained(sentence: Sentence, mark: TagMark) -> bool:
    """Brackets that say what each end is about, and words such as "with high or medium confidence": two classes."""
    words = sentence.text[mark.start : mark.end].lower()
    return bool(mark.scope) or (not mark.in_brackets and (" or " in words or words.count("confidence") > 1))


def _mismatched_evidence(draft: Draft) -> Iterator[Remark]:
    for sentence, mark in _marks(draft):
        if not mark.levels or not (mark.evidence or mark.agreement):
            continue
        low = (EVIDENCE.index(mark.evidence) if mark.evidence else 0) + (
            AGREEMENT.index(mark.agreement) if mark.agreement else 0
        )
        high = low + (0 if mark.evidence else 2) + (0 if mark.agreement else 2)
        level = TAGS.index(mark.levels[-1])
        if level >= high + _FAR or TAGS.index(mark.levels[0]) <= low - _FAR:
            basis = in_plain_words(mark)
            fitting = " or ".join(TAGS[place] for place in range(max(low - 1, 0), min(high + 1, 4) + 1))
            yield Remark(
                *_at(sentence, mark),
                f"{mark.levels[-1].capitalize()} confidence does not fit {basis}: that goes with {fitting} confidence.",
            )


def _incomplete_pair(draft: Draft) -> Iterator[Remark]:
    for sentence, mark in _marks(draft):
        if mark.levels or not mark.in_brackets or (mark.evidence is None) == (mark.agreement is None):
            continue
        have, lack = ("evidence", "agreement") if mark.evidence else ("agreement", "evidence")
        start, end = mark.whole
        # "There is robust evidence (medium agreement)", "low confidence (limited evidence)", "(limited evidence, weak
        # agreement)": the other half is there, or a level is what counts.
        before = sentence.text[max(0, start - _NEAR) : end]
        # Of "(high confidence) (medium evidence)" the second pair of brackets rates the statement anew, by half.
        beside = re.search(r"confidence\s*[)\]]\s*\Z", sentence.text[:start])
        if re.search(rf"\b{lack}\b", before) or (re.search(r"\bconfidence\b", before) and not beside):
            continue
        yield Remark(*_at(sentence, mark), f"The brackets rate the {have} but not the {lack}.")


def _repeated_tag(draft: Draft) -> Iterator[Remark]:
    for sentence in draft.sentences:
        levelled = [mark for mark in sentence.marks if mark.levels and not mark.attributive]
        for one, other in pairwise(levelled):
            if one.bracket is not None and one.bracket == other.bracket:
                continue
            beside = one.in_brackets and other.in_brackets and only_clutter_between(sentence.text, one, other)
            around = (
                not one.in_brackets
                and other.in_brackets
                and not (one.scope or other.scope)
                and not divided(sentence.text[one.whole[1] : other.whole[0]])
            )
            if beside or around:
                yield Remark(*_at(sentence, other), _doubled(one, other))


def _doubled(one: TagMark, other: TagMark) -> str:
    if one.levels == other.levels:
        return f"The same statement is tagged twice with {other.levels[-1]} confidence."
    return f"The same statement is tagged with {one.levels[-1]} and with {other.levels[-1]} confidence."


def _tag_in_heading(draft: Draft) -> Iterator[Remark]:
    for sentence, mark in _marks(draft):
        if sentence.block.kind == "heading" and mark.in_brackets:
            yield Remark(
                *sentence.at(*mark.whole), "A heading is no finding: tag the sentence below it that states the finding."
            )


WIDE_RANGE = Rule(
    "wide-range",
    "warning",
    "range of levels too wide",
    f"Five qualifiers express a level of confidence ({_BOX}); a range over three says nothing.",
    (
        Example(
            "Storm tracks will move north (low to high confidence).",
            "Storm tracks will move north (medium confidence).",
        ),
    ),
    _wide_range,
)
AMBIGUOUS_LEVEL = Rule(
    "ambiguous-level",
    "note",
    "two levels for one statement",
    f"A finding carries one of five qualifiers ({_BOX}); two leave open which part of it is the surer one.",
    (
        Example(
            "Droughts last longer (medium to high confidence).",
            "Droughts last longer (medium confidence) and begin earlier (high confidence).",
        ),
        Example("Droughts last longer (high confidence, low confidence).", "Droughts last longer (high confidence)."),
    ),
    _ambiguous_level,
)
MISMATCHED_EVIDENCE = Rule(
    "mismatched-evidence",
    "warning",
    "evidence and agreement do not fit the level",
    "More evidence and more agreement go with more confidence (Mastrandrea et al. 2010, Figure 1; "
    f"{_BOX}). The relation is flexible: only pairs two steps or more from the level are named.",
    (
        Example(
            "Yields fall (limited evidence, low agreement; high confidence).",
            "Yields fall (robust evidence, medium agreement; high confidence).",
        ),
    ),
    _mismatched_evidence,
)
INCOMPLETE_PAIR = Rule(
    "incomplete-pair",
    "note",
    "evidence without agreement, or agreement without evidence",
    f"The summary terms are a pair: limited, medium or robust evidence, and low, medium or high agreement ({_BOX}).",
    (
        Example("Yields fall (limited evidence).", "Yields fall (limited evidence, medium agreement)."),
        Example("Yields fall (high confidence) (medium evidence).", "Yields fall (low confidence: limited evidence)."),
    ),
    _incomplete_pair,
)
REPEATED_TAG = Rule(
    "repeated-tag",
    "warning",
    "statement tagged twice",
    "One statement has one level of confidence; the second tag contradicts the first or says nothing new.",
    (
        Example(
            "There is high confidence that glaciers lose mass (medium confidence).",
            "Glaciers lose mass (high confidence).",
        ),
        Example("Glaciers lose mass (high confidence) (high confidence).", "Glaciers lose mass (high confidence)."),
    ),
    _repeated_tag,
)
TAG_IN_HEADING = Rule(
    "tag-in-heading",
    "warning",
    "tag in a heading",
    "Levels of confidence qualify findings, which are sentences; a heading is quoted and listed without its context.",
    (Example("# Glaciers lose mass (high confidence)", "# Glaciers\n\nGlaciers lose mass (high confidence)."),),
    _tag_in_heading,
)
LEVEL_RULES = (WIDE_RANGE, AMBIGUOUS_LEVEL, MISMATCHED_EVIDENCE, INCOMPLETE_PAIR, REPEATED_TAG, TAG_IN_HEADING)
