"""Highlight searched words in a text.

Words are compared as in the full-text index of a collection: by English stems (Porter's second algorithm), ignoring
case and accents. The highlighted words of a passage are therefore the words by which BM25 found it.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_](?:[^\W_]|[\u0300-\u036f])*")
"""Regular expression for a number with its decimals, or a word that begins with a letter; hyphens separate words."""

_STOP_WORD_LIST = """
a about an and any are as at be been but by can could did do does for from had has have how if in into is it its
may might more most much no nor not of on or our should so some such than that the their them then there these they
this those to very was we were what when where which while who whose why will with would you your
aren couldn d didn doesn don hasn haven isn ll s shouldn t ve wasn weren won wouldn
"""
STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
"""Function words and the parts of words such as "don't" and "ocean's", which are never highlighted; the full-text index
of a collection ignores most of them, too."""

MAX_JOINED_GAP = 1
"""Two matching words are highlighted as one piece if at most this number of spaces or hyphens is between them."""

Piece = tuple[str, bool]
"""Part of a text, and whether it is highlighted."""


def highlight_words(text: str, words: Collection[str]) -> tuple[Piece, ...]:
    """Split a text into highlighted and other pieces; words that share a stem with a searched word are highlighted.

    Args:
        text: Text to split.
        words: Searched words or phrases; each word of a phrase is searched separately. Stop words are ignored. A
            number matches only the same number: ``1.5`` matches neither ``15`` nor the ``1`` of ``1.2``.

    Returns:
        Non-empty pieces, of which every second one is highlighted; their texts join to ``text``. () for an empty text.

    Examples:
        >>> highlight_words("Aerosols cool.", ["aerosol"])
        (('Aerosols', True), (' cool.', False))
    """
    phrases = (words,) if isinstance(words, str) else words
    searched_stems = {stem for phrase in phrases for stem in stems(phrase)}
    return tuple(_split_at_spans(text, _find_spans(text, searched_stems)))


def highlight_spans(text: str, spans: Iterable[tuple[int, int]]) -> tuple[Piece, ...]:
    """Split a text into highlighted and other pieces.

    ``spans`` are the (start, end) of the highlighted parts and may overlap.
    """
    merged_spans: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged_spans and start <= merged_spans[-1][1]:
            merged_spans[-1] = (merged_spans[-1][0], max(end, merged_spans[-1][1]))
        else:
            merged_spans.append((start, end))
    return tuple(_split_at_spans(text, merged_spans))


def letters(text: str) -> tuple[str, tuple[int, ...]]:
    r"""Return the letters and digits of a text in normalised form, and the position of each in the text.

    Letters are in lower case, without accents and with ligatures expanded. Texts that differ only in hyphenation,
    spacing, ligatures or symbols therefore have the same letters.

    Examples:
        >>> letters("De-\nfi ne")[0]
        'define'
    """
    alphanumerics: list[str] = []
    indices: list[int] = []
    for index, character in enumerate(text):
        folded_character = (
            character.lower() if character.isascii() else unicodedata.normalize("NFKD", character).casefold()
        )
        for letter in folded_character:
            if letter.isalnum():
                alphanumerics.append(letter)
                indices.append(index)
    return "".join(alphanumerics), tuple(indices)


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text's words, and its numbers, in order and without stop words."""
    words = (_fold(match.group()) for match in _WORD.finditer(text))
    return tuple(_stem(word) for word in words if word not in STOP_WORDS)


def _split_at_spans(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Piece]:
    last_end = 0
    for start, end in spans:
        if start > last_end:
            yield text[last_end:start], False
        yield text[start:end], True
        last_end = end
    if last_end < len(text):
        yield text[last_end:], False


def _find_spans(text: str, searched_stems: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans (start, end) of words whose stem is searched for; adjacent matching words form one span."""
    start = end = 0
    for match in _WORD.finditer(text) if searched_stems else ():
        word = _fold(match.group())
        if word in STOP_WORDS or _stem(word) not in searched_stems:
            continue
        gap = text[end : match.start()]
        if end and len(gap) <= MAX_JOINED_GAP and not gap.strip(" -\u2010\u2011\n"):
            end = match.end()
            continue
        if end:
            yield start, end
        start, end = match.span()
    if end:
        yield start, end


def _fold(word: str) -> str:
    """Return a word in lower case, without accents, with plain digits for superscripts and subscripts (CO₂: co2)."""
    lower_case = word.lower()
    if lower_case.isascii():
        return lower_case
    decomposed_word = unicodedata.normalize("NFKD", lower_case)
    return "".join(char for char in decomposed_word if not unicodedata.combining(char))


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
