"""Find the places of a text that hold given words, so that a page can mark them.

Words are compared as the full-text index of a collection compares them (English stems by Porter's second algorithm, no
case, accents folded), so that what is marked in a passage is what BM25 found it by.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_](?:[^\W_]|[\u0300-\u036f])*")
"""A number with its decimals, or a word that begins with a letter. Hyphens divide words."""

_LISTED = """
a about an and any are as at be been but by can could did do does for from had has have how if in into is it its
may might more most much no nor not of on or our should so some such than that the their them then there these they
this those to very was we were what when where which while who whose why will with would you your
"""
STOP_WORDS = frozenset(_LISTED.split())
"""Words that are found everywhere and tell nothing; the index of a collection leaves out most of them as well."""

LONGEST_JOINED_GAP = 1
"""Marked words with no more than so many characters between them, all white space or hyphens, become one mark."""

Piece = tuple[str, bool]
"""A part of a text, and whether it is marked."""


def marked(text: str, words: Collection[str]) -> tuple[Piece, ...]:
    """A text in pieces, those marked that hold one of the words in any of its forms.

    Args:
        text: What is shown.
        words: What to look for: words, or whole phrases, whose words are looked for one by one. Stop words are left
            out. A number is found only as the same number: ``1.5`` does not mark ``15`` nor the ``1`` of ``1.2``.

    Returns:
        Pieces whose texts, one after the other, are the text again, none of them empty and marked and unmarked ones
        in turn; no piece for an empty text.

    Examples:
        >>> marked("Aerosols cool.", ["aerosol"])
        (('Aerosols', True), (' cool.', False))
    """
    phrases = (words,) if isinstance(words, str) else words
    wanted = {stem for phrase in phrases for stem in stems(phrase)}
    return tuple(_pieces(text, _spans(text, wanted)))


def mark_spans(text: str, spans: Iterable[tuple[int, int]]) -> tuple[Piece, ...]:
    """As :func:`marked`, for given beginnings and ends, which may overlap and come in any order."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(_pieces(text, joined))


def letters(text: str) -> tuple[str, tuple[int, ...]]:
    r"""The letters and digits of a text, and the place of each in it.

    They are in lower case, without accents, ligatures taken apart, so that what was broken at the end of a line, set
    with ligatures, or cleaned of odd signs is the same.

    Examples:
        >>> letters("De-\nfi ne")[0]
        'define'
    """
    found: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        plain = character.lower() if character.isascii() else unicodedata.normalize("NFKD", character).casefold()
        for one in plain:
            if one.isalnum():
                found.append(one)
                places.append(place)
    return "".join(found), tuple(places)


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """The stems of a text's words and its numbers, in order, stop words left out."""
    found = (_plain(match.group()) for match in _WORD.finditer(text))
    return tuple(_stem(word) for word in found if word not in STOP_WORDS)


def _pieces(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Piece]:
    done = 0
    for start, end in spans:
        if start > done:
            yield text[done:start], False
        yield text[start:end], True
        done = end
    if done < len(text):
        yield text[done:], False


def _spans(text: str, wanted: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where the wanted words stand; neighbours with a space or a hyphen between them are one span."""
    start = end = 0
    for match in _WORD.finditer(text) if wanted else ():
        word = _plain(match.group())
        if word in STOP_WORDS or _stem(word) not in wanted:
            continue
        gap = text[end : match.start()]
        if end and len(gap) <= LONGEST_JOINED_GAP and not gap.strip(" -\u2010\u2011\n"):
            end = match.end()
            continue
        if end:
            yield start, end
        start, end = match.span()
    if end:
        yield start, end


def _plain(word: str) -> str:
    """A word in lower case, without accents."""
    lowered = word.lower()
    if lowered.isascii():
        return lowered
    decomposed = unicodedata.normalize("NFD", lowered)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if word[0].isdigit():
        return word
    stem: str = _stemmer().stem(word)
    return stem


@cache
def _stemmer() -> Any:
    from nltk.stem.snowball import EnglishStemmer

    return EnglishStemmer()
