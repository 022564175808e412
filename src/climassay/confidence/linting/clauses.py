"""How far a mark reaches in its sentence."""

import re

from climassay.confidence.linting.draft import Sentence
from climassay.confidence.marks import LikelihoodTerm, TagMark

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
