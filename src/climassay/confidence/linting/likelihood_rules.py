"""Rules on terms of likelihood: beside levels of confidence, beside numbers, in italics."""

import re
from collections.abc import Iterator
from itertools import pairwise

from climassay.confidence.attitudes import is_opinion
from climassay.confidence.extraction.extracting import explains_terms
from climassay.confidence.linting.clauses import RANGE_BEHIND, divided, likelihoods_under
from climassay.confidence.linting.draft import Draft, Sentence
from climassay.confidence.linting.finding import Example, Remark, Rule
from climassay.confidence.marks import LikelihoodTerm
from climassay.confidence.vocabulary import TAGS, Tag

_BOX = "AR6 WG1, Box 1.1"
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
_NEAR = 60
"""Characters before a term in which the words that govern it are looked for."""
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
