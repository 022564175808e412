"""Rules on figures beside calibrated terms: the probability that a text gives, and what the terms stand for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from climassay.confidence.linting.draft import Example, Remark, Sentence, rule
from climassay.confidence.marks import TagMark, is_opinion
from climassay.confidence.vocabulary import LIKELIHOOD_RANGES, Tag

_BOX = "AR6 WG1, Box 1.1"
_TOLERANCE = 0.015
_NEAR = 80
"""Characters around a term in which its probability is looked for."""
_DIGITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {**{word: place for place, word in enumerate(_DIGITS, start=1)}, "hundred": 100}
_N = rf"(?:\d{{1,3}}|(?:an?\s+)?(?:{'|'.join(_COUNTS)}))"
_NUMBER = r"\d{1,3}(?:\.\d+)?"
_NOUN = r"(?:probabilit(?:y|ies)|chances?|likelihood|odds)"
_ABOVE = r"[>≥]|(?:more|greater|higher)\s+than|over|above|at\s+least|no\s+less\s+than|exceeding|upwards?\s+of"
_BELOW = r"[<≤]|(?:less|lower|fewer|smaller)\s+than|under|below|at\s+most|up\s+to|no\s+more\s+than"
_PROBABILITY = re.compile(
    rf"(?:(?:an?|the)\s+)?(?P<named>(?:{_NOUN}|\bp)\s*(?:(?:is|of|=|:|being)\s*){{0,2}})?"
    r"(?:(?:about|around|roughly|approximately|some|nearly|ca?\.|~|≈|an?)\s*)*"
    rf"(?:(?P<above>{_ABOVE})|(?P<below>{_BELOW}))?\s*(?:about\s+|an?\s+)?"
    rf"(?:(?P<low>[<>≤≥]?{_NUMBER})\s*%?\s*(?:[-–—]|to|and)\s*(?P<high>[<>≤≥]?{_NUMBER})\s*(?:%|per\s?cent)"
    rf"|(?P<value>{_NUMBER})\s*(?:%|per\s?cent)|(?P<decimal>0?\.\d+)"
    rf"|(?P<of>{_N})[\s-]+(?:in|out\s+of)[\s-]+(?P<all>{_N})|(?P<half>(?:one\s+)?half|fifty[\s-]fifty|50[:/–-]50|even(?=\s+{_NOUN})))"
    r"(?P<more>\s+or\s+(?:more|greater|higher|above|better))?(?P<less>\s+or\s+(?:less|lower|below))?"
    rf"(?P<after>\s*{_NOUN}\b(?:\s+of\s+(?:occurrence|being\s+(?:correct|right|true)))?)?",
    re.IGNORECASE,
)
_LEAD = (
    r"(?:(?:i\.\s?e\.|that\s+is(?:\s+to\s+say)?|meaning|which\s+(?:means|is|corresponds\s+to|equals|implies)|or|namely|"
    r"corresponding\s+to|correspond(?:s|ing)?\s+to|equivalent\s+to|equal\s+to|equal(?:s|ling)|defined\s+as|expressed\s+as|"
    r"translat(?:es|ing)\s+(?:in)?to|interpreted\s+as|with|having|at|=|≈)(?=[\s,:≈=<>≥≤\d]),?\s*)"
)
_BEFORE_FIGURE = re.compile(rf"\s*(?P<open>[(\[:,;–—]\s*)?(?P<lead>{_LEAD})?", re.IGNORECASE)
_RANGE_HERE = re.compile(r"\s*\branges?\b")
_CLOSE = re.compile(r"\s*(?:[)\];,.:]|$)")
_RANGE_BEHIND = re.compile(r"\s*(?:[a-z]+\s+)?ranges?\b")
_MEANS = re.compile(
    r"[^.;()]{0,60}?\b(?:means?|denotes?|stands?\s+for|implies|signif(?:y|ies)|corresponds?\s+to|(?:is|are)\s+(?:defined|"
    r"understood|interpreted|to\s+be\s+read)\s+as|translates?\s+(?:in)?to|indicates?)\b(?![^.;]{0,20}\bnot\b)[^.;]{0,80}?$",
    re.IGNORECASE,
)
_OLD_SCALE: dict[Tag, tuple[float, float]] = {
    "very low": (0.0, 0.1),
    "low": (0.05, 0.33),
    "medium": (0.33, 0.67),
    "high": (0.66, 0.95),
    "very high": (0.9, 1.0),
}
"""Chances of being right that the third and fourth assessment gave the levels; the guidance of 2010 dropped them."""


@dataclass(frozen=True, slots=True)
class StatedProbability:
    """A probability that a text gives in figures or number words: ``text[start:end]``."""

    start: int
    end: int
    low: float
    high: float
    kind: Literal["point", "bound", "range"]
    """A bound has one open end."""
    named: bool
    """Whether it is called a probability, chance, likelihood or odds: "20–30%" alone may be any quantity."""


def probability_at(text: str, place: int) -> StatedProbability | None:
    """The probability that begins at a place of a text, if one does."""
    found = _PROBABILITY.match(text, place)
    if found is None:
        return None
    named = bool(found["named"] or found["after"])
    kind: Literal["point", "bound", "range"] = "point"
    if found["low"] is not None:
        low, high = (float(found[end].lstrip("<>≤≥")) / 100 for end in ("low", "high"))
        kind = "range"
    else:
        if found["value"] is not None:
            low = float(found["value"]) / 100
        elif found["decimal"] is not None:
            low = float(found["decimal"])
        elif found["half"] is not None:
            low = 0.5
        else:
            words = (found[name].lower().split()[-1] for name in ("of", "all"))
            of, every = (int(word) if word.isdecimal() else _COUNTS[word] for word in words)
            low = of / every if every else 2.0
        high = low
        if found["above"] or found["more"]:
            kind, high = "bound", 1.0
        elif found["below"] or found["less"]:
            kind, low = "bound", 0.0
    # "more than half of the emissions" is a share.
    share = (found["of"] or found["half"]) and not named and re.match(r"\s+(?:of|the)\b", text[found.end() :])
    if not 0 <= low <= high <= 1 or share or (found["decimal"] and not named):
        return None
    return StatedProbability(found.start(), found.end(), low, high, kind, named or bool(found["of"]))


def gives_probability(text: str) -> bool:
    """Whether a text gives a probability, called so, in figures or number words."""
    return any(found["named"] or found["after"] for found in _PROBABILITY.finditer(text))


@rule(
    "likelihood-range",
    "error",
    "numbers contradict the term of likelihood",
    f"Every term of likelihood stands for one range of probability ({_BOX}, and the first footnotes of the summaries).",
    Example(
        "It is very likely (66–100%) that rain will increase.", "It is very likely (90–100%) that rain will increase."
    ),
    Example(
        "It is very likely (80%) that rain will increase.", "It is likely (80% probability) that rain will increase."
    ),
)
def _likelihood_range(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    for term in sentence.likelihoods:
        named_range = _RANGE_HERE.match(text, term.end)
        stated = _behind(text, named_range.end() if named_range else term.end, ranged=bool(named_range))
        start, end = term.start, stated.end if stated else 0
        if stated is None:
            stated = _before(text, term.start)
            start, end = (stated.start, term.end) if stated else (0, 0)
        if stated is None or is_opinion(text, term.start):
            continue
        bracket = re.match(r"\s*[)\]]", text[end:])
        end += bracket.end() if bracket else 0
        # The word "range" may come before the numbers or behind them.
        ranged = bool(named_range) or _RANGE_BEHIND.match(text, end) is not None
        low, high = LIKELIHOOD_RANGES[term.term]
        fits = _fits(stated, low, high)
        if ranged:
            # A "very likely range (5-95%)" is named by its quantiles: it holds nine tenths of the probability.
            fits = fits or stated.kind == "point" or abs(stated.high - stated.low - low) <= _TOLERANCE + 0.005
            meaning = f'A "{term.term}" range holds {round(100 * low)}% of the probability'
        else:
            share = f"{round(100 * low)} to {round(100 * high)}%"
            meaning = f'"{term.term.capitalize()}" stands for a probability of {share}'
        if not fits:
            yield Remark(*sentence.at(start, end), f"{meaning}; the numbers beside it say something else.")


def _behind(text: str, place: int, *, ranged: bool = False) -> StatedProbability | None:
    """The probability that appears directly behind a term, and not a quantity: "likely 20-30% lower" speaks of one."""
    lead = _BEFORE_FIGURE.match(text, place)
    stated = probability_at(text, lead.end()) if lead else None
    if lead is None or stated is None:
        return None
    opened = (lead["open"] or "").strip()
    ends = _CLOSE.match(text, stated.end) is not None
    if ranged:
        return stated if opened in ("(", "[", ":") and ends and stated.kind == "range" else None
    if stated.named:
        return stated if opened or lead["lead"] or stated.end > place else None
    enclosed = opened in ("(", "[", ":") and ends
    reaches = stated.kind == "range" and (stated.high >= 1 or stated.low <= 0) and ends
    return stated if enclosed or reaches else None


def _before(text: str, place: int) -> StatedProbability | None:
    """A named probability directly before a term: "a 40% chance (likely)"."""
    base = max(0, place - _NEAR)
    gap = re.search(r"\s*[(,]\s*(?:(?:i\.\s?e\.|that\s+is|hence|thus|or),?\s*)?\Z", text[base:place])
    if gap is None:
        return None
    end = base + gap.start()
    for found in _PROBABILITY.finditer(text, base, end):
        stated = probability_at(text, found.start())
        if stated is not None and stated.named and stated.end == end:
            return stated
    return None


def _fits(stated: StatedProbability, low: float, high: float) -> bool:
    """Whether a range is that of a term and of no other, or a single probability lies within it."""
    if stated.kind == "point":
        return low - _TOLERANCE <= stated.low <= high + _TOLERANCE
    if stated.kind == "range":
        return abs(stated.low - low) <= _TOLERANCE and abs(stated.high - high) <= _TOLERANCE
    if stated.high == 1.0:
        return high == 1.0 and abs(stated.low - low) <= _TOLERANCE
    return low == 0.0 and abs(stated.high - high) <= _TOLERANCE


@rule(
    "level-as-probability",
    "warning",
    "level of confidence explained as a probability",
    "Confidence is qualitative and is not to be read as a probability (Mastrandrea et al. 2010, paragraph 9; "
    f"{_BOX}); the chances that the third and fourth assessment gave the levels were dropped.",
    Example(
        "Ice melts (high confidence, about an 8 in 10 chance).",
        "Ice melts (high confidence), and yields fall by 20% (medium confidence).",
    ),
)
def _level_as_probability(sentence: Sentence) -> Iterator[Remark]:
    for mark in sentence.marks:
        if not mark.levels or mark.attributive or mark.likelihood:
            continue
        stated = _explaining(sentence.text, mark)
        if stated is not None:
            yield Remark(
                *sentence.at(mark.start, stated.end),
                f"{mark.levels[-1].capitalize()} confidence stands for no probability: it sums up evidence and "
                "agreement. Give the probability as a term of likelihood, or leave it out.",
            )


def _explaining(text: str, mark: TagMark) -> StatedProbability | None:
    """The probability by which a text explains a level."""
    low, high = _OLD_SCALE[mark.levels[-1]]
    for place in dict.fromkeys((mark.end, mark.whole[1])):
        lead = _BEFORE_FIGURE.match(text, place)
        stated = probability_at(text, lead.end()) if lead else None
        if lead is None or stated is None or not (lead["open"] or lead["lead"]):
            continue
        if _CLOSE.match(text, stated.end) is None and not (stated.named and lead["lead"]):
            continue
        # A figure that is not called a probability may be a quantity: "(high confidence; 5–10%)".
        if stated.named or (low - _TOLERANCE <= stated.low and stated.high <= high + _TOLERANCE):
            return stated
    for found in _PROBABILITY.finditer(text, mark.whole[1], min(len(text), mark.whole[1] + 2 * _NEAR)):
        stated = probability_at(text, found.start())
        if stated is not None and stated.named and _MEANS.match(text[mark.whole[1] : found.start()]):
            return stated
    return None


PROBABILITY_RULES = (_likelihood_range, _level_as_probability)
