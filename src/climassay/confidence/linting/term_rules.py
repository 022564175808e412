"""Rules on the terms themselves: levels of confidence, evidence and agreement, likelihood, and how they go together."""

import re
from collections.abc import Iterator
from itertools import pairwise

from climassay.confidence.extraction.extracting import explains_terms
from climassay.confidence.linting.draft import Draft, Example, Remark, Rule, Sentence
from climassay.confidence.marks import LikelihoodTerm, TagMark, is_opinion
from climassay.confidence.vocabulary import AGREEMENT, EVIDENCE, TAGS, Tag

_DIVIDED = re.compile(
    r"[;:]|[,)]\s+(?:and|but|or|while|whereas|although|with|which)\b|\b(?:but|while|whereas|although)\b"
    r"|,\s+(?:\w+ly\s+)?(?:lead|result|caus|contribut|increas|decreas|reduc|mak|giv|worsen|compound|driv|enhanc|weaken)\w*ing\b"
)
_COMMA_OR_DIVIDED = re.compile(rf",|\b(?:except|albeit|aided)\b|{_DIVIDED.pattern}")
_CLUTTER = re.compile(r"(?:[\s,;.*_]|\{[^{}]*\})*")
_CLOSING = re.compile(
    r",?\s*\b(?:(?:though|but|albeit|although|if|however|yet|and)\s+)?(?:only\s+)?(?:with|at|of)\s+(?:only\s+)?[*_]*\Z",
    re.IGNORECASE,
)
_NEAR = 60
"""Characters before a mark in which the words that introduce it are looked for."""
_ABOUT_OTHER = re.compile(r"[\s*_]*(?:that|in|of|for|on|about|regarding)\b", re.IGNORECASE)
RANGE_BEHIND = re.compile(r"[\s*_]*(?:ranges?|intervals?|outcomes?|values?)\b")


_RELATIVE = re.compile(
    r"[\s*_]*(?:in|of|for|on|about|regarding)\b.*?\b(?=(?:that|which|who)\b)", re.IGNORECASE | re.DOTALL
)
_NAMED = re.compile(r"\b(?:the|its|their)\s+[*_]*\Z", re.IGNORECASE)
"""Before a term that names an estimate, as in: low confidence in the likely contribution."""


def divided(words: str) -> bool:
    """Whether words between two marks hold the end of a clause, so that the marks may speak about different things."""
    return _COMMA_OR_DIVIDED.search(words) is not None


def only_clutter_between(text: str, one: TagMark, other: TagMark) -> bool:
    """Whether nothing but punctuation and section marks stands between two marks."""
    return _CLUTTER.fullmatch(text[one.whole[1] : other.whole[0]]) is not None


def in_plain_words(mark: TagMark) -> str:
    """``robust evidence and high agreement``, as far as the mark says."""
    parts = [
        f"{mark.evidence} evidence" if mark.evidence else "",
        f"{mark.agreement} agreement" if mark.agreement else "",
    ]
    return " and ".join(filter(None, parts))


def likelihoods_under(sentence: Sentence, mark: TagMark) -> list[LikelihoodTerm]:
    """The terms of likelihood that a mark with a level qualifies.

    Those in its own brackets; of a mark in brackets, and of ", though with low confidence", those between the mark
    before and it; of another one in running words, those between it and the next mark or the end of its clause.
    ``likely range`` names an interval and is none.
    """
    if not sentence.likelihoods:
        return []
    others = [one for one in sentence.marks if one.whole != mark.whole and (one.levels or one.likelihood)]
    start, end = mark.whole
    if mark.in_brackets or _closes(sentence.text, mark):
        left = max((one.whole[1] for one in others if one.whole[1] <= start), default=0)
        base = max(0, start - _NEAR)
        introduction = None if mark.in_brackets else _CLOSING.search(sentence.text[base:start])
        span = (_last_clause(sentence.text, left, base + introduction.start() if introduction else start), end)
    else:
        right = min((one.whole[0] for one in others if one.whole[0] >= end), default=len(sentence.text))
        # "Low confidence in shifts to latitudes that likely were cooler" speaks about the shifts.
        relative = _RELATIVE.match(sentence.text, end, right)
        right = relative.end() if relative else right
        stop = _COMMA_OR_DIVIDED.search(sentence.text, end, right)
        span = (end, stop.start() if stop else right)
    return [
        term
        for term in sentence.likelihoods
        if span[0] <= term.start
        and term.end <= span[1]
        and not RANGE_BEHIND.match(sentence.text, term.end)
        and not _NAMED.search(sentence.text[max(0, term.start - _NEAR) : term.start])
    ]


def _closes(text: str, mark: TagMark) -> bool:
    """Whether running words such as ", though with low confidence" speak about the clause before them."""
    return (
        _CLOSING.search(text[max(0, mark.start - _NEAR) : mark.start]) is not None
        and _ABOUT_OTHER.match(text, mark.end) is None
    )


def _last_clause(text: str, left: int, right: int) -> int:
    """Where the clause that ends at ``right`` begins: behind the last semicolon, or ``but`` and the like."""
    cuts = [match.end() for match in _DIVIDED.finditer(text, left, right)]
    return max(cuts, default=left)


_FAR = 2
"""Levels that lie so far apart do not fit."""
_NEAR_BRACKETS = 25
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
        before = sentence.text[max(0, start - _NEAR_BRACKETS) : end]
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


_LOW = TAGS.index("low")
_HIGH = TAGS.index("high")
_HEDGE = re.compile(
    r"(?P<hedge>\b(?:may|might|could)\b(?:[\s,*_]+(?:have|been|(?P<be>be)|also|well|even|now|then|still|already|therefore|thus|"
    r"become|indeed|again))*|\b(?:[Pp]ossibly|[Pp]erhaps|[Mm]aybe|[Pp]otentially|[Cc]onceivably|[Pp]resumably|[Aa]rguably|"
    r"[Ss]upposedly|[Ss]eemingly|[Aa]pparently))[\s,*_]+\Z"
)
"""May with a small letter: "in May likely" is a month."""
_PREDICATE = re.compile(r"[\s*_]*(?:(?:to|that|if|when|in|under|for|at|by|with|and|but)\b|[,.;:()]|$)")
_NOT = re.compile(
    r"(?<!\bor )(?<!\bif )(?<!\bbut )\b(?P<no>not)\s+(?:(?:at\s+all|necessarily|yet)\s+)?[*_]*\Z", re.IGNORECASE
)
_IT_IS = re.compile(r"\bit\s+(?:is|was|remains|becomes|has\s+been)\s+(?:\w+\s+)?[*_]*\Z", re.IGNORECASE)
_SAME_CLAUSE = re.compile(
    r"[*_]*\s+that\b(?:(?!\b(?:that|which|who|whose|where|if|when|as|than|it)\b).)*"
    r"(?:\b(?:will|would|is|are|was|were|has|have|be|to)\s+(?:\w+\s+)?[*_]*|[(\[])",
    re.DOTALL,
)
_SIDE_BY_SIDE = re.compile(r"[*_]*,?\s*[(\[]?[*_]*")
_MOST_TERMS = 3
"""More terms in a sentence explain them or list classes."""
_FEWEST_IN_ITALICS = 3
"""Terms in italics from which on a file is taken to set its terms so."""


def _low_confidence(draft: Draft) -> Iterator[Remark]:
    for sentence, term, level in _pairs(draft):
        if TAGS.index(level) <= _LOW:
            yield Remark(
                *sentence.at(term.start, term.end),
                f'"{term.term.capitalize()}" states a probability, and {level} confidence does not bear one: '
                "give the level alone.",
            )


def _both(draft: Draft) -> Iterator[Remark]:
    for sentence, term, level in _pairs(draft):
        if TAGS.index(level) >= _HIGH:
            yield Remark(
                *sentence.at(term.start, term.end),
                f'"{term.term.capitalize()}" already implies high confidence: {level} confidence need not be added.',
            )


def _pairs(draft: Draft) -> Iterator[tuple[Sentence, LikelihoodTerm, Tag]]:
    for sentence in draft.sentences:
        for mark in sentence.marks:
            if mark.levels and not mark.attributive:
                for term in likelihoods_under(sentence, mark):
                    yield sentence, term, mark.levels[-1]


def _hedged(draft: Draft) -> Iterator[Remark]:
    for sentence in draft.sentences:
        for term in sentence.likelihoods:
            base = max(0, term.start - _NEAR)
            hedge = _HEDGE.search(sentence.text[base : term.start])
            if hedge is None or is_opinion(sentence.text, term.start):
                continue
            if hedge["be"] and not _PREDICATE.match(sentence.text, term.end):
                continue  # "could be likely candidates"
            yield Remark(
                *sentence.at(base + hedge.start("hedge"), term.end),
                f'"{term.term.capitalize()}" is a probability already, and "{hedge["hedge"]}" takes it back: keep the '
                "term alone.",
                sentence.text[term.start : term.end],
            )


def _negated(draft: Draft) -> Iterator[Remark]:
    for sentence in draft.sentences:
        for term in sentence.likelihoods:
            base = max(0, term.start - _NEAR)
            no = _NOT.search(sentence.text[base : term.start])
            if no is None or is_opinion(sentence.text, term.start):
                continue
            yield Remark(
                *sentence.at(base + no.start("no"), term.end),
                f'"Not {term.term}" leaves open which probability is meant: use the term for it.',
            )


def _two_likelihoods(draft: Draft) -> Iterator[Remark]:
    for sentence in draft.sentences:
        terms = [term for term in sentence.likelihoods if not RANGE_BEHIND.match(sentence.text, term.end)]
        if explains_terms(sentence.text) or len(terms) > _MOST_TERMS:
            continue
        for one, other in pairwise(terms):
            between = sentence.text[one.end : other.start]
            framed = _IT_IS.search(sentence.text[max(0, one.start - _NEAR) : one.start]) and _SAME_CLAUSE.fullmatch(
                between
            )
            if (framed and not divided(between)) or _SIDE_BY_SIDE.fullmatch(between):
                yield Remark(
                    *sentence.at(one.start, other.end),
                    f'One outcome has one probability, and here it is "{one.term}" and "{other.term}": choose one.',
                )


def _unmarked(draft: Draft) -> Iterator[Remark]:
    places = list(_terms(draft))
    marked = [draft.is_italic(start, end) for _, start, end in places]
    if sum(marked) < _FEWEST_IN_ITALICS or 2 * sum(marked) < len(marked):
        return
    for (words, start, end), is_marked in zip(places, marked, strict=True):
        if not is_marked:
            yield Remark(
                start,
                end,
                f'"{words}" is not in italics, as the other terms are: set it so, or use another word.',
                f"*{words}*",
            )


def _terms(draft: Draft) -> Iterator[tuple[str, int, int]]:
    """Terms of likelihood and levels of confidence, each once, with their places in the text."""
    if draft.italics is None:
        return
    for sentence in draft.sentences:
        if sentence.block.kind == "heading":
            continue
        spans = {(term.start, term.end) for term in sentence.likelihoods}
        spans |= {(mark.start, mark.end) for mark in sentence.marks if mark.levels and not mark.attributive}
        for start, end in sorted(spans):
            if not any(one <= start and end <= other and (one, other) != (start, end) for one, other in spans):
                yield sentence.text[start:end], *sentence.at(start, end)


LIKELIHOOD_LOW_CONFIDENCE = Rule(
    "likelihood-low-confidence",
    "warning",
    "likelihood with low confidence",
    f"A likelihood is stated where confidence and probabilistic evidence suffice ({_BOX}, steps 5 and 6); with low "
    "confidence there is no basis for a probability.",
    (Example("Rainfall will very likely double (low confidence).", "Rainfall will possibly double (low confidence)."),),
    _low_confidence,
)
LIKELIHOOD_AND_CONFIDENCE = Rule(
    "likelihood-and-confidence",
    "note",
    "likelihood and high confidence together",
    f"Unless otherwise indicated, likelihood is stated where confidence is high or very high ({_BOX}): the level says "
    "nothing new. Some reports give both on purpose, therefore this rule is off unless it is asked for.",
    (
        Example(
            "Rainfall will very likely increase (high confidence).",
            "Rainfall will very likely increase. Floods will rise (high confidence).",
        ),
    ),
    _both,
    default=False,
)
HEDGED_LIKELIHOOD = Rule(
    "hedged-likelihood",
    "warning",
    "likelihood taken back by another hedge",
    f"A term of likelihood says how probable an outcome is ({_BOX}); with may, could or possibly before it, "
    "nobody can say which probability is left.",
    (
        Example("Rain may very likely increase.", "Rain will very likely increase."),
        Example("It is possibly unlikely that rain increases.", "Rain may increase but will very likely fall later."),
    ),
    _hedged,
)
NEGATED_LIKELIHOOD = Rule(
    "negated-likelihood",
    "note",
    "negated term of likelihood",
    f"Each term stands for a range of probability ({_BOX}); what is left when it is denied is not on the scale.",
    (
        Example("It is not unlikely that rain will increase.", "It is more likely than not that rain will increase."),
        Example("It is not virtually certain.", "It is likely, if not very likely, that rain increases."),
    ),
    _negated,
)
TWO_LIKELIHOODS = Rule(
    "two-likelihoods",
    "warning",
    "two terms of likelihood for one outcome",
    f"One outcome has one probability, and one term stands for it ({_BOX}).",
    (
        Example(
            "It is likely that rain will very likely increase.",
            "It is likely that rain increases, and it is very likely that floods do.",
        ),
        Example(
            "Rain is likely, virtually certain, to increase.", "It is unlikely that the very likely range is right."
        ),
    ),
    _two_likelihoods,
)
UNMARKED_TERM = Rule(
    "unmarked-term",
    "note",
    "term not in italics",
    f"Italics tell a calibrated term from the everyday word ({_BOX}). Checked in Markdown and HTML files whose terms "
    f"stand in italics for the greater part, {_FEWEST_IN_ITALICS} at least.",
    (
        Example(
            "It is *likely* (*high confidence*, *medium confidence* in the south). Rain is likely.",
            "It is *likely* (*high confidence*, *medium confidence* in the south). Rain is *likely*.",
        ),
    ),
    _unmarked,
)
LIKELIHOOD_RULES = (
    LIKELIHOOD_LOW_CONFIDENCE,
    LIKELIHOOD_AND_CONFIDENCE,
    HEDGED_LIKELIHOOD,
    NEGATED_LIKELIHOOD,
    TWO_LIKELIHOODS,
    UNMARKED_TERM,
)
