"""Where a sentence is surer than its source: calibrated terms above the source's, and words that allow no doubt."""

import re
from typing import NamedTuple

from climassay.confidence.marks import find_likelihoods, find_tags, is_held_by_people
from climassay.confidence.vocabulary import LIKELIHOOD_RANGES, TAGS, Likelihood

_NO_DOUBT = re.compile(
    r"\b(?:certainly|(?<!not )(?<!virtually )certain(?=\s+(?:that|to)\b)"
    r"|with\s+(?:absolute\s+|complete\s+|full\s+)?certainty|definite(?:ly)?|definitive(?:ly)?|undoubted(?:ly)?"
    r"|unquestionabl[ey]|indisputabl[ey]|undeniabl[ey]|inevitabl[ey]|incontrovertibl[ey]|absolutely|conclusive(?:ly)?"
    r"|(?:without|beyond)\s+(?:any\s+|a\s+|all\s+|the\s+slightest\s+|reasonable\s+)*doubt|no\s+doubt"
    r"|(?<!not )prove[ns]?|proof|guarantee[sd]?|impossible|for\s+(?:sure|certain)"
    r"|100\s*(?:%|per\s?cent)\s+(?:sure|certain)|(?:established|settled|scientific)\s+fact)\b",
    re.IGNORECASE,
)
"""Everyday words that allow no doubt; the calibrated vocabulary has none of them."""
_HEDGE = re.compile(
    r"\b(?:may|might|could|can|would|perhaps|possibly|probably|apparently|expected|projected|suggest(?:s|ed)?|thought"
    r"|believed|judged|assessed|estimated|considered|uncertain(?:ty)?|disputed|contested|unclear|appears?|seems?|tends?|generally|mostly)\b",
    re.IGNORECASE,
)


class Stated(NamedTuple):
    """The words by which a text says how sure it is, and how sure that is."""

    words: str
    certainty: float
    """0 to 1: the lower end of a likelihood's range, that of its contrary where the term says unlikely; a level of
    confidence by its place on the scale; 1 for words that allow no doubt."""


def stated_certainty(text: str) -> Stated | None:
    """The surest words of a text; None where it says nothing of how sure it is."""
    results = [Stated(match[0], 1.0) for match in _NO_DOUBT.finditer(text)]
    for mark in find_tags(text):
        if mark.tag and not is_held_by_people(text, mark.start, mark.end):
            # very low 0.1, low 0.3, medium 0.5, high 0.7, very high 0.9
            results.append(Stated(text[mark.start : mark.end], 0.1 + 0.2 * TAGS.index(mark.tag)))
        results += [Stated(term, _certainty(term)) for term in mark.likelihood]
    results += [Stated(text[one.start : one.end], _certainty(one.term)) for one in find_likelihoods(text)]
    return max(results, key=lambda one: one.certainty, default=None)


def _certainty(term: Likelihood) -> float:
    low, high = LIKELIHOOD_RANGES[term]
    return max(low, 1 - high)


def overstatement(sentence: str, source: str) -> str | None:
    """How a sentence is surer than its source, in words; None where it is not.

    A sentence that says nothing of how sure it is overstates nothing, although its source may hedge.

    Example:
        >>> overstatement("The ice will certainly vanish.", "The ice may vanish.")
        'Says "certainly", where the source says "may".'
    """
    said = stated_certainty(sentence)
    if said is None:
        return None
    there = stated_certainty(source)
    if there is not None:
        higher = said.certainty > there.certainty + 1e-9
        return f'Says "{said.words}", where the source says "{there.words}".' if higher else None
    hedge = _HEDGE.search(source)
    if hedge is not None:
        return f'Says "{said.words}", where the source says "{hedge[0]}".'
    return f'Says "{said.words}", where the source states no certainty.'
