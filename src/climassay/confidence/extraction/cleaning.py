"""The plain words of a sentence: no marks of certainty, no references, no section marks, no numbers of footnotes."""

import re
from collections.abc import Sequence

from climassay.confidence.extraction.clutter import clutter_spans
from climassay.confidence.marks import find_tags

_MARK = "\ue000"
"""Stands for a mark in running words while the words around it are mended."""
_ADVERBS = (
    r"(?:\s*\b(?:still|also|now|only|generally|currently|overall|relatively|thus|therefore|at\s+least|an?|the|both)\b)*"
)
_THERE = (
    r"\b(?:there|it)\s+(?:is|was|are|were|remains?|exists?|has\s+been|had\s+been|continues\s+to\s+be|would\s+be)"
    rf"{_ADVERBS}\s*"
)
_ABOUT = r"(?:in|of|for|on|about|regarding|concerning|around|with\s+regard\s+to|as\s+to)"
_LEADS_TO = r"(?:(?:leads?|leading|led|gives?|giving|provides?|providing|results?|resulting)\s+(?:to\s+|in\s+)?)?"
_LEVELS_WORD = r"(?:\s+(?:levels?|statements?|assessments?|ratings?))?"
# In this order; what a mark is taken out of must read on, and must not tell the level.
_MENDING = (
    (rf"{_THERE}{_MARK}{_LEVELS_WORD}\s*,?\s+that\s+", ""),
    (rf"{_THERE}{_MARK}{_LEVELS_WORD}\s+{_ABOUT}\s+", ""),
    (rf"^\s*{_ADVERBS}\s*{_MARK}{_LEVELS_WORD}\s*[:–—-]\s*", ""),
    (
        rf"(?:^\s*{_LEADS_TO}|(?<=[,;:]\s))(?:and\s+|but\s+|with\s+)?{_ADVERBS}\s*{_MARK}{_LEVELS_WORD}\s+(?:that|{_ABOUT})\s+",
        "",
    ),
    (rf",?\s*\b(?:avec|con)(?:\s+(?:une?|una))?\s*{_MARK}(?=\W|$)", ""),
    (rf"\bwith{_ADVERBS}\s*{_MARK}{_LEVELS_WORD}\s+(?:in|of|about|regarding)\s+", "for "),
    (rf",?\s*\b(?:with|at|by){_ADVERBS}\s*{_MARK}{_LEVELS_WORD}(?=\W|$)", ""),
    (
        rf"\s*\b(?:has|have|had|is\s+of|are\s+of|is\s+given|are\s+given){_ADVERBS}\s*{_MARK}{_LEVELS_WORD}(?=\s*[,;.]|\s*$)",
        "",
    ),
    (rf"{_ADVERBS}\s*{_MARK}{_LEVELS_WORD}\s+that\s+", " the assessment that "),
    (rf"{_ADVERBS}\s*{_MARK}{_LEVELS_WORD}\s+{_ABOUT}\s+", " the assessment of "),
    (rf"\s*{_MARK}{_LEVELS_WORD}(?:\s+or\s+(?:higher|lower|more))?", ""),
)
_MENDING_RULES = tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in _MENDING)
_SPACE_BEFORE = re.compile(r"\s+(?=[,;:.!?)\]])")
_SPACE_AFTER = re.compile(r"(?<=[(\[])\s+")
_EMPTY_BRACKETS = re.compile(r"\(\s*[,;:.\s]*\)|\[\s*[,;:.\s]*\]")
_EDGE_OF_BRACKETS = re.compile(r"(?<=[(\[])[\s,;:]+|[\s,;:]+(?=[)\]])")
_DOUBLED = re.compile(r"([,;:])(?:\s*[,;:])+|,\s*(?=\.)|(?<!\.)\.(?:\s*\.)+(?!\.)|;\s*(?=\.)")
_ITALICS = re.compile(r"(?<![\w*_])[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?![\w*_])")
_LEADING = re.compile(r"^(?:[\s,;:.)\]–—]|-\s)+")
_TRAILING = re.compile(r"[\s,;:(\[–—-]+$")
_WORD = re.compile(r"[^\W\d_]")
_ROUNDS = 12


def clean_sentence(text: str) -> str:
    """The plain words of a sentence or clause, beginning with a capital and ending with a full stop.

    Marks of confidence go, and words that only hold them ("there is high confidence that"); references, section marks
    and numbers of footnotes go. Cleaning what is clean changes nothing.

    Returns:
        One line; empty where no word is left.
    """
    for _ in range(_ROUNDS):
        cleaned = _once(text)
        if cleaned == text:
            return text
        text = cleaned
    return text if not find_tags(text) else _bare(text)


def plain_words(text: str) -> str:
    """Like :func:`clean_sentence`, for words that are to be put together with others: no capital, no full stop."""
    cleaned = clean_sentence(text)
    if not cleaned:
        return ""
    raw = _ITALICS.sub("", without_marks(_without(text, clutter_spans(text))))
    first = _WORD.search(raw)
    if first and cleaned[:1] == first.group().upper() and first.group().islower():
        cleaned = first.group() + cleaned[1:]
    opening = re.match(r"\s*[,;:–—]", raw)
    return (opening.group().strip() + " " if opening else "") + cleaned.removesuffix(".")


def _once(text: str) -> str:
    text = without_marks(_without(text, clutter_spans(text)))
    return finished(_ITALICS.sub("", text))


def _bare(text: str) -> str:
    """The last resort for text that keeps making new marks: their words go, nothing is mended."""
    while marks := find_tags(text):
        text = _without(text, [mark.whole for mark in marks])
    return " ".join(text.split())


def without_marks(text: str) -> str:
    """A text without marks of confidence, evidence and agreement, the sentence around each mended."""
    marks = find_tags(text)
    if not marks:
        return text
    whole = sorted({mark.whole for mark in marks if mark.in_brackets})
    running = [(mark.start, mark.end) for mark in marks if not mark.in_brackets]
    pieces, last = [], 0
    for start, end in sorted([*whole, *running]):
        if start < last:
            continue
        pieces.append(text[last:start])
        pieces.append(_MARK if (start, end) in running else " ")
        last = end
    text = "".join([*pieces, text[last:]])
    if not running:
        return text
    for pattern, words in _MENDING_RULES:
        text = pattern.sub(words, text)
    return text


def finished(text: str) -> str:
    """One line that begins with a capital and ends with a full stop; spaces and punctuation in order."""
    text = _EMPTY_BRACKETS.sub(" ", _EDGE_OF_BRACKETS.sub("", text))
    text = _SPACE_AFTER.sub("", _SPACE_BEFORE.sub("", " ".join(text.split())))
    text = _DOUBLED.sub(lambda match: match[1] or ("." if match.group().startswith(".") else ""), text)
    text = _TRAILING.sub("", _LEADING.sub("", text))
    if not _WORD.search(text):
        return ""
    first = text.split(maxsplit=1)[0]
    if first.islower() and re.fullmatch(r"[^\W\d_]{2,}(?:-[^\W\d_]+)*[,;:.]?|a", first):
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?…" or text[-2:] in (".”", ".’", '."') else f"{text}."


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    pieces, last = [], 0
    for start, end in sorted(spans):
        if start < last:
            continue
        pieces.append(text[last:start])
        last = end
    return "".join([*pieces, text[last:]])
