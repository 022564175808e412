"""Rules on terms of likelihood: beside levels of confidence, beside numbers, in italics."""

import re
from collections.abc import Iterator

from climassay.confidence.linting.clauses import likelihoods_under
from climassay.confidence.linting.draft import Draft, Sentence
from climassay.confidence.linting.finding import Example, Remark, Rule
from climassay.confidence.marks import LikelihoodTerm
from climassay.confidence.vocabulary import LIKELIHOOD_RANGES, TAGS, Likelihood, Tag

_BOX = "AR6 WG1, Box 1.1"
_LOW = TAGS.index("low")
_HIGH = TAGS.index("high")
_NUMBER = r"\d{1,3}(?:\.\d+)?"
_BOUNDS = re.compile(
    rf"(?P<range>\s*\branges?\b)?\s*(?P<open>[(\[:,]\s*)?(?:(?P<low>[<>≤≥]?{_NUMBER})\s*%?\s*(?:[-–—]|to)\s*(?P<high>[<>≤≥]?{_NUMBER})\s*%"
    rf"|(?P<sign>[<>≤≥])\s*(?P<bound>{_NUMBER})\s*%)(?P<after>\s*(?:probability|chance|likelihood)?)(?P<close>\s*(?:[)\];,.]|$))?"
)
_RANGE_BEHIND = re.compile(r"\s*(?:[a-z]+\s+)?ranges?\b")
_TOLERANCE = 0.015
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


def _stated_range(draft: Draft) -> Iterator[Remark]:
    for sentence in draft.sentences:
        for term in sentence.likelihoods:
            found = _BOUNDS.match(sentence.text, term.end)
            if found is None or not _is_probability(found):
                continue
            # The word may stand before the numbers or behind them.
            said = found["range"] is not None or _RANGE_BEHIND.match(sentence.text, found.end()) is not None
            fits = _fits_interval(term.term, found) if said else _fits(term.term, found)
            if not fits:
                yield Remark(*sentence.at(term.start, found.end()), _meaning(term.term, interval=said))


def _is_probability(found: re.Match[str]) -> bool:
    """Numbers that are a probability, and not a quantity: "likely 20-30% lower" speaks of a quantity."""
    named = bool(found["after"].strip())
    enclosed = bool(found["open"]) and found["open"].strip() in ("(", "[", ":") and bool(found["close"])
    if found["range"]:
        return enclosed and found["low"] is not None
    reaches = found["low"] is not None and (_value(found["high"]) >= 1 or _value(found["low"]) <= 0)
    return named or enclosed or (reaches and bool(found["close"]))


def _value(number: str) -> float:
    return float(number.lstrip("<>≤≥")) / 100


def _fits(term: Likelihood, found: re.Match[str]) -> bool:
    low, high = LIKELIHOOD_RANGES[term]
    if found["low"] is not None:
        return abs(_value(found["low"]) - low) <= _TOLERANCE and abs(_value(found["high"]) - high) <= _TOLERANCE
    above = found["sign"] in ">≥"
    stands, open_end = (low, high == 1.0) if above else (high, low == 0.0)
    return open_end and abs(_value(found["bound"]) - stands) <= _TOLERANCE


def _fits_interval(term: Likelihood, found: re.Match[str]) -> bool:
    """A "very likely range (5-95%)" is named by its quantiles: it holds nine tenths of the probability."""
    if found["low"] is None:
        return _fits(term, found)
    width = _value(found["high"]) - _value(found["low"])
    return abs(width - LIKELIHOOD_RANGES[term][0]) <= _TOLERANCE + 0.005 or _fits(term, found)


def _meaning(term: Likelihood, *, interval: bool) -> str:
    low, high = (round(100 * bound) for bound in LIKELIHOOD_RANGES[term])
    if interval:
        return f'A "{term}" range holds {low}% of the probability; the numbers beside it say something else.'
    return (
        f'"{term.capitalize()}" stands for a probability of {low} to {high}%; the numbers beside it say something else.'
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
LIKELIHOOD_RANGE = Rule(
    "likelihood-range",
    "error",
    "numbers contradict the term of likelihood",
    f"Every term of likelihood stands for one range of probability ({_BOX}, and the first footnotes of the summaries).",
    (
        Example(
            "It is very likely (66–100%) that rain will increase.",
            "It is very likely (90–100%) that rain will increase.",
        ),
    ),
    _stated_range,
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
LIKELIHOOD_RULES = (LIKELIHOOD_LOW_CONFIDENCE, LIKELIHOOD_AND_CONFIDENCE, LIKELIHOOD_RANGE, UNMARKED_TERM)
