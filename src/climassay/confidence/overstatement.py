"""Overstatements: sentences that express more certainty than their source."""

import re
from typing import NamedTuple

from climassay.confidence.tags import find_likelihoods, find_tags, is_trust_of_people
from climassay.confidence.vocabulary import LEVELS, LIKELIHOOD_RANGES, Likelihood

_NO_DOUBT = re.compile(
    r"\b(?:certainly|(?<!not )(?<!virtually )certain(?=\s+(?:that|to)\b)"
    r"|with\s+(?:absolute\s+|complete\s+|full\s+)?certainty|definite(?:ly)?|definitive(?:ly)?|undoubted(?:ly)?"
    r"|unquestionabl[ey]|indisputabl[ey]|undeniabl[ey]|inevitabl[ey]|incontrovertibl[ey]|absolutely|conclusive(?:ly)?"
    r"|(?:without|beyond)\s+(?:any\s+|a\s+|all\s+|the\s+slightest\s+|reasonable\s+)*doubt|no\s+doubt"
    r"|(?<!not )prove[ns]?|proof|guarantee[sd]?|impossible|for\s+(?:sure|certain)"
    r"|100\s*(?:%|per\s?cent)\s+(?:sure|certain)|(?:established|settled|scientific)\s+fact)\b",
    re.IGNORECASE,
)
"""Pattern of words that exclude doubt but do not belong to the calibrated vocabulary."""
_HEDGE = re.compile(
    r"\b(?:may|might|could|can|would|perhaps|possibly|probably|apparently|expected|projected|suggest(?:s|ed)?|thought"
    r"|believed|judged|assessed|estimated|considered|uncertain(?:ty)?|disputed|contested|unclear|appears?|seems?|tends?|generally|mostly)\b",
    re.IGNORECASE,
)


class StatedCertainty(NamedTuple):
    """Words of certainty in a text, with the degree of certainty that they express."""

    words: str
    certainty: float
    """Certainty from 0 to 1.

    For a likelihood term, it is the lower end of the term's range or, if the term means "unlikely", of the
    complementary range. For a level of confidence, it depends on the level's rank. For words that exclude doubt, it is
    1.
    """


def find_stated_certainty(text: str) -> StatedCertainty | None:
    """Return the words of the highest certainty in a text; None if it has no words of certainty."""
    results = [StatedCertainty(match[0], 1.0) for match in _NO_DOUBT.finditer(text)]
    for tag in find_tags(text):
        if tag.level and not is_trust_of_people(text, tag.start, tag.end):
            # very low 0.1, low 0.3, medium 0.5, high 0.7, very high 0.9
            results.append(StatedCertainty(text[tag.start : tag.end], 0.1 + 0.2 * LEVELS.index(tag.level)))
        results += [StatedCertainty(term, _compute_certainty(term)) for term in tag.likelihood]
    results += [
        StatedCertainty(text[term.start : term.end], _compute_certainty(term.term)) for term in find_likelihoods(text)
    ]
    return max(results, key=lambda result: result.certainty, default=None)


def _compute_certainty(term: Likelihood) -> float:
    low, high = LIKELIHOOD_RANGES[term]
    return max(low, 1 - high)


def describe_overstatement(sentence: str, source: str) -> str | None:
    """Return a sentence that describes how a text overstates its source; None if it does not.

    A text without words of certainty does not overstate its source, even if the source hedges.

    Example:
        >>> describe_overstatement("The ice will certainly vanish.", "The ice may vanish.")
        'Says "certainly", where the source says "may".'
    """
    text_certainty = find_stated_certainty(sentence)
    if text_certainty is None:
        return None
    source_certainty = find_stated_certainty(source)
    if source_certainty is not None:
        is_higher = text_certainty.certainty > source_certainty.certainty + 1e-9
        return (
            f'Says "{text_certainty.words}", where the source says "{source_certainty.words}".' if is_higher else None
        )
    hedge = _HEDGE.search(source)
    if hedge is not None:
        return f'Says "{text_certainty.words}", where the source says "{hedge[0]}".'
    return f'Says "{text_certainty.words}", where the source states no certainty.'
