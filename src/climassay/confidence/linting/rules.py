"""Mechanical rules, which check the calibrated terms of one sentence.

Mastrandrea et al. 2010 is the guidance note for lead authors; AR6 WG1, Box 1.1 explains the terms that reports use.
"""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import pairwise, product

from climassay.confidence.linting.draft import ManuscriptSentence, Remark, rule
from climassay.confidence.tags import is_opinion, is_trust_of_people
from climassay.confidence.vocabulary import AGREEMENT, EVIDENCE, LEVELS, LIKELIHOOD_RANGES, LIKELIHOODS

_BOX = "AR6 WG1, Box 1.1"
_LEVEL = "|".join(sorted(LEVELS, key=len, reverse=True))
_DEGREE = (
    r"extremely|exceptionally|highly|really|overwhelmingly|very|fairly|quite|rather|relatively|reasonably|moderately|"
    r"somewhat|pretty|virtually|almost|nearly|practically|absolutely|completely|totally"
)
_AMOUNT = (
    r"strong|great|considerable|substantial|significant|solid|firm|good|full|complete|absolute|total|overwhelming|moderate|"
    r"intermediate|average|fair|reasonable|modest|weak|poor|limited|little|slight|scant|minimal|robust|high|medium|low|broad|"
    r"wide|widespread|unanimous|ample|clear|conclusive|insufficient"
)
_NONSTANDARD_AMOUNT = rf"(?!(?:high|medium|low)\b)(?:{_AMOUNT})"
_BRACKETS = re.compile(r"[(\[]([^()\[\]]{1,300})[)\]]")
_STATEMENT_ENDS = r"[*_\s]*[)\]](?=\s*(?:[.;,{]|$|and\b|but\b|while\b))"
_NONSTANDARD_LEVEL = re.compile(
    rf"(?<![\w-])(?:(?:{_DEGREE})[\s*_-]+)?(?:{_NONSTANDARD_AMOUNT}|likely|unlikely|certain)[\s*_-]+confidence\b"
    r"(?!\s+(?:intervals?|levels?|bounds?|limits?|bands?|ranges?|statements?)\b)"
    rf"|(?<![\w-])(?!very\s+(?:low|high)\b)(?:{_DEGREE})[\s*_-]+(?:{_LEVEL})[\s*_-]+confidence\b"
    r"|[(\[][*_\s]*(?!\d|very\b)[a-z]+[\s*_]+(?<!low )(?<!medium )(?<!high )(?<!all )(?<!with )confidence"
    + _STATEMENT_ENDS
    + rf"|[(\[][*_\s]*(?:{_LEVEL})[\s*_-]+confident"
    + _STATEMENT_ENDS
    + r"|\b(?:we|authors)\s+(?:are|remain)\s+(?:[\w%]+\s+)?confident(?=\s+(?:that|in)\b)"
    rf"|[(\[][*_\s]*(?:(?:{_DEGREE})\s+)?(?:{_AMOUNT}|very\s+high|very\s+low)\s+(?:certainty|reliability)"
    + _STATEMENT_ENDS
    + rf"|[(\[][*_\s]*confidence\s*(?:level)?\s*(?:[:=]|is)?\s*(?:{_LEVEL})(?:\s+confidence)?" + _STATEMENT_ENDS,
    re.IGNORECASE,
)  # fmt: skip


@rule(
    "confidence-vocabulary",
    "warning",
    "no level of confidence",
    f"A level of confidence is very low, low, medium, high or very high ({_BOX}).",
    ("Rain will increase (moderate confidence).", "Rain will increase (medium confidence)."),
    ("Rain will increase (extremely high confidence).", "Rain will increase (very high confidence)."),
    ("Rain will increase (high confident).", "Rain will increase (high confidence)."),
    ("We are very confident that rain will increase.", "Farmers report strong confidence in the forecasts."),
)
def _confidence_vocabulary(sentence: ManuscriptSentence) -> Iterator[Remark]:
    misspelling_spans = [(start, end) for start, end, _ in _find_misspellings(sentence)]
    for match in _NONSTANDARD_LEVEL.finditer(sentence.text):
        start, end = match.start(), match.end()
        if is_trust_of_people(sentence.text, start, end) or any(
            misspelling_start < end and start < misspelling_end
            for misspelling_start, misspelling_end in misspelling_spans
        ):
            continue
        yield Remark(start, end, f'"{match.group().strip("([*_ ])")}" is no level of confidence: name one of the five.')


_NONSTANDARD_LIKELIHOOD = re.compile(
    rf"(?<![\w-])(?:{_DEGREE})[\s*_-]+(?:(?:un)?likely|(?:im)?probabl[ey]|certain(?:ly|(?=\s+(?:that|to)\b|\s*[,.;)])))\b"
    rf"|[(\[][*_\s]*(?:(?:im)?probable|possible|plausible)" + _STATEMENT_ENDS
    + rf"|[(\[][*_\s]*(?:very\s+)?(?:{_AMOUNT})\s+(?:likelihood|probability|chance)" + _STATEMENT_ENDS,
    re.IGNORECASE,
)  # fmt: skip


@rule(
    "likelihood-vocabulary",
    "warning",
    "no term of likelihood",
    f"Terms of likelihood stand for ranges of probability ({_BOX}); everybody reads other words differently.",
    ("Rain will fairly likely increase.", "Rain will very likely increase."),
    ("Rain will increase (high likelihood).", "Plans consider low-likelihood, high-impact outcomes."),
)
def _likelihood_vocabulary(sentence: ManuscriptSentence) -> Iterator[Remark]:
    for match in _NONSTANDARD_LIKELIHOOD.finditer(sentence.text):
        words = " ".join(re.split(r"[\s*_-]+", match.group().lower()))
        if words not in LIKELIHOODS and not is_opinion(sentence.text, match.start()):
            quoted_words = match.group().strip("([*_ ])")
            yield Remark(*match.span(), f'"{quoted_words}" is no term of likelihood: name one of the scale.')


_RATING = re.compile(
    rf"(?P<word>(?:(?:{_DEGREE})\s+)?(?:{_AMOUNT}))[\s*_-]+(?P<noun>evidence|agreement)\b", re.IGNORECASE
)


@rule(
    "evidence-vocabulary",
    "warning",
    "no rating of evidence or agreement",
    f"Evidence is limited, medium or robust, agreement low, medium or high ({_BOX}). Checked in brackets.",
    ("Yields fall (strong evidence, high agreement).", "Yields fall (robust evidence, high agreement)."),
)
def _evidence_vocabulary(sentence: ManuscriptSentence) -> Iterator[Remark]:
    for bracket in _BRACKETS.finditer(sentence.text):
        for match in _RATING.finditer(sentence.text, bracket.start(), bracket.end()):
            noun = match["noun"].lower()
            scale = EVIDENCE if noun == "evidence" else AGREEMENT
            if match["word"].lower() not in scale:
                yield Remark(*match.span(), f'"{match.group()}" does not rate {noun}: say {", ".join(scale)}.')


_TERMS = (
    (("low", "medium", "high"), ("confidence", "agreement")),
    (("limited", "medium", "robust"), ("evidence",)),
    (("very", "extremely"), ("likely", "unlikely")),
    (("virtually",), ("certain",)),
    (("exceptionally",), ("unlikely",)),
)
_CORRECT_WORDS = frozenset(
    {
        *("argument", "arguments", "agreements", "certainly", "conference", "conferences", "confidences", "confidant"),
        *(
            "confident",
            "confidently",
            "confluence",
            "contain",
            "captain",
            "curtain",
            "eminence",
            "evident",
            "evidently",
        ),
        *("higher", "highest", "highs", "law", "likelier", "likeliest", "lively", "lower", "lowest", "media", "median"),
        *("certainty", "robustly", "uncertain", "vary", "verb", "virtual"),
    }
)
"""English words that differ by one or two letters from a word in a calibrated term, and are therefore not misspellings.
"""
_MIN_RATIO, _MIN_RATIO_SHORT, _MAX_SHORT_LENGTH = 0.75, 0.66, 4
_WORD = re.compile(r"[^\W\d_]+")


def _is_misspelling(word: str, term: str) -> bool:
    """Return whether ``word`` misspells ``term``: it is no English word, but has most letters of ``term`` in order."""
    min_ratio = _MIN_RATIO_SHORT if len(term) <= _MAX_SHORT_LENGTH else _MIN_RATIO
    is_similar = (
        word[0] == term[0]
        and abs(len(word) - len(term)) <= 2
        and SequenceMatcher(None, word, term).ratio() >= min_ratio
    )
    return is_similar and word not in (term, *_CORRECT_WORDS)


def _find_misspellings(sentence: ManuscriptSentence) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and intended term of each misspelt term of two words."""
    for left_match, right_match in pairwise(_WORD.finditer(sentence.text)):
        first_word, second_word = left_match.group().lower(), right_match.group().lower()
        if second_word[0] not in "caelu" or not re.fullmatch(
            r"[\s*_-]{1,4}", sentence.text[left_match.end() : right_match.start()]
        ):
            continue
        for first_terms, second_terms in _TERMS:
            for first_term, second_term in product(first_terms, second_terms):
                are_misspelt = _is_misspelling(first_word, first_term), _is_misspelling(second_word, second_term)
                if (
                    not any(are_misspelt)
                    or not (are_misspelt[0] or first_word == first_term)
                    or not (are_misspelt[1] or second_word == second_term)
                ):
                    continue
                # PDF files may split a word: "high confidenc e".
                joined_words = sentence.text[left_match.start() : right_match.end() + len(second_term)]
                if not joined_words.replace(" ", "").lower().startswith(first_term + second_term):
                    yield left_match.start(), right_match.end(), f"{first_term} {second_term}"


@rule(
    "misspelt-term",
    "warning",
    "term misspelt",
    "Readers and programs look for the exact terms: a finding whose term is misspelt is not found by it.",
    ("Rain will increase (hgh confidence).", "Rain will increase (high confidence)."),
    ("It is virtualy certain.", "The high-level conference was very lively."),
)
def _misspelt_term(sentence: ManuscriptSentence) -> Iterator[Remark]:
    for start, end, term in _find_misspellings(sentence):
        yield Remark(start, end, f'"{sentence.text[start:end]}" is misspelt: a search does not find it.', term)


_TOLERANCE = 0.015
_NUMBER = r"\d{1,3}(?:\.\d+)?"
_NOUN = r"(?:probability|chance|likelihood|odds)"
_PROBABILITY = (
    rf"(?:an?\s+)?(?P<named>{_NOUN}\s*(?:of|is|=|:)?\s*)?(?:(?:about|around|an?)\s+|~\s*)*"
    r"(?:(?P<above>[>≥]|(?:more|greater)\s+than|over|at\s+least)|(?P<below>[<≤]|less\s+than|under|below|at\s+most))?\s*"
    rf"(?:(?P<low>{_NUMBER})\s*%?\s*(?:[-–—]|to)\s*(?P<high>{_NUMBER})\s*(?:%|per\s?cent)"
    rf"|(?P<value>{_NUMBER})\s*(?:%|per\s?cent)|(?P<decimal>0?\.\d+)|(?P<of>\d+)\s+(?:in|out\s+of)\s+(?P<all>\d+))"
    rf"(?P<after>\s*{_NOUN})?"
)
_INTRODUCTION = r"(?:i\.\s?e\.,?|that\s+is,?|meaning|or|=|≈|with|corresponding\s+to)\s*"
_PROBABILITY_AFTER = re.compile(
    rf"[\s*_]*(?P<range>ranges?\b)?\s*(?P<open>[(\[,:;]\s*)?(?P<lead>{_INTRODUCTION})?{_PROBABILITY}(?P<close>\s*[)\];,.]|\s*$)",
    re.IGNORECASE,
)
_PROBABILITY_BEFORE = re.compile(rf"\b{_PROBABILITY}\s*[(\[][*_\s]*\Z", re.IGNORECASE)
_MAX_BEFORE = 120
"""Number of characters before a term within which probabilities are searched for."""
_RANGE_WORD = re.compile(r"\s*(?:\w+\s+)?ranges?\b")


def _parse_interval(match: re.Match[str]) -> tuple[float, float] | None:
    """Return the lower and upper probability that a match states, from 0 to 1; None if its numbers are none."""
    if match["low"]:
        low, high = float(match["low"]) / 100, float(match["high"]) / 100
    elif match["of"]:
        low = high = int(match["of"]) / max(int(match["all"]), 1)
    else:
        low = high = float(match["decimal"] or float(match["value"]) / 100)
    low, high = (0.0 if match["below"] else low), (1.0 if match["above"] else high)
    return (low, high) if 0 <= low <= high <= 1 else None


def _is_probability(match: re.Match[str]) -> bool:
    """Return whether a matched number is called a probability, or is written in the form ``N in M``."""
    return bool(match["named"] or match["after"] or match["of"]) and not (match["decimal"] and not match["named"])


@rule(
    "likelihood-range",
    "error",
    "figures contradict the term of likelihood",
    f"Every term of likelihood stands for one range of probability ({_BOX}).",
    ("It is very likely (66–100%) that rain rises.", "It is very likely (90–100%) that rain rises."),
    ("It is very likely (80%) that rain rises.", "It is likely (80% probability) that rain rises."),
)
def _likelihood_range(sentence: ManuscriptSentence) -> Iterator[Remark]:
    for term in sentence.likelihoods:
        match = _PROBABILITY_AFTER.match(sentence.text, term.end)
        match = match or _PROBABILITY_BEFORE.search(sentence.text, max(0, term.start - _MAX_BEFORE), term.start)
        interval = _parse_interval(match) if match else None
        if match is None or interval is None:
            continue
        is_after_term = match.start() >= term.end
        is_enclosed = (
            is_after_term and match["open"] and match["open"][0] in "([" and match["close"].strip() in (")", "]")
        )
        if not (_is_probability(match) or (is_enclosed and not match["decimal"])):
            continue
        low, high = LIKELIHOOD_RANGES[term.term]
        if is_after_term and (match["range"] or _RANGE_WORD.match(sentence.text, match.end())):
            # A very likely range is named by its quantiles, 5 to 95%, with nine tenths of the probability between.
            is_consistent = match["low"] is None or abs(interval[1] - interval[0] - low) <= 2 * _TOLERANCE
        elif match["low"] or match["above"] or match["below"]:
            is_consistent = abs(interval[0] - low) <= _TOLERANCE and abs(interval[1] - high) <= _TOLERANCE
        else:
            is_consistent = low - _TOLERANCE <= interval[0] <= high + _TOLERANCE
        if not is_consistent:
            start, end = (term.start, match.end()) if is_after_term else (match.start(), term.end)
            meaning = f'"{term.term}" stands for a probability of {100 * low:.0f} to {100 * high:.0f}%'
            yield Remark(start, end, f"{meaning}; the figures beside it say something else.")


_PERCENT_CONFIDENT = re.compile(r"\b(?:with|at|there\s+is)\s+\d{1,3}\s?%\s+confidence(?=\s+that\b)", re.IGNORECASE)


@rule(
    "level-as-probability",
    "warning",
    "level of confidence explained as a probability",
    f"Confidence is qualitative and no probability (Mastrandrea et al. 2010, paragraph 9; {_BOX}).",
    ("Ice melts (high confidence, about an 8 in 10 chance).", "Ice melts (high confidence; 5–10%)."),
    ("There is 90% confidence that ice melts.", "The 90% confidence interval is 5 to 10."),
)
def _level_as_probability(sentence: ManuscriptSentence) -> Iterator[Remark]:
    spans = [match.span() for match in _PERCENT_CONFIDENT.finditer(sentence.text)]
    for tag in sentence.tags:
        match = _PROBABILITY_AFTER.match(sentence.text, tag.end) if tag.levels else None
        if match and _parse_interval(match) and (_is_probability(match) or match["lead"]):
            spans.append((tag.start, match.end()))
    for start, end in spans:
        message = "A level of confidence stands for no probability: give one as a term of likelihood, or leave it out."
        yield Remark(start, end, message)


_CLAUSE_ENDS = re.compile(r",|[;:]|\b(?:but|while|whereas|although|except|with)\b|[)\]]\s+(?:and|or)\b")
_NO_WORDS = re.compile(r"(?:[\s,;.*_]|\{[^{}]*\})*")


@rule(
    "ambiguous-level",
    "note",
    "two levels for one statement",
    f"A finding carries one of five levels ({_BOX}); two leave open which part of it is the surer one.",
    ("Droughts last longer (medium to high confidence).", "Droughts last longer (high confidence)."),
    ("Ice melts (high confidence, low confidence).", "Ice melts (NES: high confidence; WAF: low confidence)."),
)
def _ambiguous_level(sentence: ManuscriptSentence) -> Iterator[Remark]:
    has_explanation = re.search(r"\brespectively\b|\bdepending\s+(?:up)?on\b", sentence.text)
    for tag in sentence.tags:
        if len(tag.levels) == 2 and tag.in_brackets and not tag.scope and not has_explanation:
            message = "Two levels are given: choose one, or say to which part of the statement each belongs."
            yield Remark(tag.start, tag.end, message)
    for left_tag, right_tag in pairwise(sentence.tags):
        is_same_bracket = left_tag.bracket is not None and left_tag.bracket == right_tag.bracket
        if (
            is_same_bracket
            and left_tag.levels
            and right_tag.levels
            and left_tag.levels != right_tag.levels
            and not (left_tag.scope or right_tag.scope)
        ):
            yield Remark(
                left_tag.start, right_tag.end, "The brackets give two levels and do not say what each is about."
            )
        elif (
            not is_same_bracket
            and left_tag.levels
            and right_tag.levels
            and right_tag.in_brackets
            and not (left_tag.scope or right_tag.scope)
        ):
            text_between = sentence.text[left_tag.span_with_brackets[1] : right_tag.span_with_brackets[0]]
            if _NO_WORDS.fullmatch(text_between) if left_tag.in_brackets else not _CLAUSE_ENDS.search(text_between):
                yield Remark(right_tag.start, right_tag.end, "The same statement has a level already.")


@rule(
    "mismatched-evidence",
    "warning",
    "evidence and agreement do not fit the level",
    "More evidence and agreement go with more confidence (Mastrandrea et al. 2010, Figure 1). Only levels two steps or "
    "more away are named, because the relation is flexible.",
    (
        "Yields fall (limited evidence, low agreement; high confidence).",
        "Yields fall (limited evidence; low confidence).",
    ),
)
def _mismatched_evidence(sentence: ManuscriptSentence) -> Iterator[Remark]:
    for tag in sentence.tags:
        if tag.levels and tag.evidence and tag.agreement:
            support = EVIDENCE.index(tag.evidence) + AGREEMENT.index(tag.agreement)
            if abs(LEVELS.index(tag.levels[-1]) - support) >= 2:
                message = f"{tag.evidence} evidence and {tag.agreement} agreement do not fit this level."
                yield Remark(tag.start, tag.end, message.capitalize())


@rule(
    "likelihood-low-confidence",
    "warning",
    "likelihood with low confidence",
    "A likelihood is assigned if confidence is sufficient (Mastrandrea et al. 2010, paragraph 10).",
    ("Rain will likely increase (low confidence).", "Rain will likely increase (medium confidence)."),
)
def _likelihood_low_confidence(sentence: ManuscriptSentence) -> Iterator[Remark]:
    previous_end = 0
    for tag in sentence.tags:
        if tag.in_brackets and tag.levels and LEVELS.index(tag.levels[-1]) <= LEVELS.index("low"):
            preceding_text = sentence.text[previous_end : tag.span_with_brackets[0]]
            clause_start = (
                max((match.end() for match in _CLAUSE_ENDS.finditer(preceding_text)), default=0) + previous_end
            )
            for term in sentence.likelihoods:
                value_noun = re.match(r"[\s*_]*(?:ranges?|intervals?|values?)\b", sentence.text[term.end :])
                if clause_start <= term.start < tag.span_with_brackets[1] and not value_noun:
                    message = f'"{term.term}" has a level of {tag.levels[-1]} confidence: give the level alone.'
                    yield Remark(min(term.start, tag.start), max(term.end, tag.end), message)
                    break
        previous_end = tag.span_with_brackets[1]


GUIDANCE_RULES = (
    _confidence_vocabulary,
    _likelihood_vocabulary,
    _evidence_vocabulary,
    _misspelt_term,
    _likelihood_range,
    _level_as_probability,
    _ambiguous_level,
    _mismatched_evidence,
    _likelihood_low_confidence,
)
