"""What can be told of a word of a statement without a model: how rare it is, how it is built, where it stands."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.generation.masking.candidates import Candidate, words
from climassay.generation.masking.word_lists import FUNCTION_WORDS, PLACES
from climassay.given_files import read_text, reason

FEATURES = (
    "rarity",
    "keyness",
    "glossary",
    "length",
    "position",
    "named",
    "noun",
    "verbal",
    "eponym",
    "place",
    "symbol",
    "compound",
    "repeated",
)
"""Columns of :func:`word_features`."""

_MOST_FREQUENT = 8.0
"""Zipf value that no English word reaches: 10 ** 8 times in a billion words would be one word in ten."""
_UNSEEN = 1.0
"""Zipf value that a word unknown to the list counts as: the list's large edition ends near it."""
_KEYNESS = (-1.0, 4.0)
_LONG = 14
_NAMING = frozenset({"called", "named", "termed", "known", "defined", "denoted", "dubbed", "coined", "referred"})
_NAMING_REACH = 4
"""Words before a candidate in which a naming word tells that the candidate is what is named."""
_NOUN = re.compile(
    r"(?:tion|sion|ity|ties|ance|ence|ency|ment|ness|ism|sis|ium|ide|ate|ite|oxide|sphere|cline|pause|meter|gen|ol|sol"
    r"|ture|phy|gy|graphy|metry|fer|lysis|ane|ene|yl)s?$"
)
_VERBAL = re.compile(r"(?:ly|ing|ed|ise|ize|ises|izes|ify|ifies|able|ible)$")
_STEM = 5
"""Letters by which two words count as forms of one."""


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """How often words occur in a collection, and which ones a glossary lists."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Of lower-case words in the passages."""
    glossary: frozenset[str] = frozenset()
    """Lower-case words."""

    @property
    def total(self) -> int:
        """Words of the passages."""
        return sum(self.counts.values())


def count_words(passages: Iterable[str] = (), glossary: Iterable[str] = ()) -> WordStatistics:
    """Count a collection's words; of a glossary's terms of several words each word counts that is no function word."""
    counts = Counter(word.term.casefold() for passage in passages for word in words(passage))
    listed = {part.term.casefold() for term in glossary for part in words(term)}
    return WordStatistics(dict(counts), frozenset(listed - FUNCTION_WORDS))


def read_glossary(path: Path) -> tuple[str, ...]:
    """Terms of a glossary file, one a line; empty lines and lines that begin with ``#`` are left out.

    Raises:
        InputError: The file cannot be read or lists nothing.
    """
    try:
        lines = [line.strip() for line in read_text(path, "utf-8-sig").split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The glossary {path} cannot be read: {reason(error)}.") from None
    terms = tuple(line for line in lines if line and not line.startswith("#"))
    if not terms:
        raise InputError(f"The glossary {path} lists no term: write one a line.")
    return terms


def zipf(term: str) -> float:
    """How frequent a word is in general English: log10 of its uses in a billion words; 7.7 for "the".

    Of a compound the rarest part counts. Words that the list does not know get the list's lower end.

    References:
        Speer (2022), wordfreq 3.0; the scale is van Heuven et al. (2014).
    """
    from wordfreq import zipf_frequency

    known = min(zipf_frequency(part, "en", wordlist="large") for part in re.split(r"[-‐‑’']", term) if part)
    return max(float(known), _UNSEEN)


def word_features(
    statement: str, found: Sequence[Candidate], statistics: WordStatistics | None = None
) -> NDArray[np.float64]:
    """Features of a statement's candidates, shape [candidates, features], in the order of :data:`FEATURES`.

    ``rarity`` is 8 less the Zipf value (0 to 7), ``keyness`` log10 of how much more frequent the word is in the
    collection than in general English (-1 to 4; 0 without a collection), ``length`` and ``position`` are shares, the
    others are 0 or 1.
    """
    own = [word.term.casefold() for word in words(statement)]
    background = statistics or WordStatistics()
    total = background.total
    rows = [_features(statement, word, own, background, total) for word in found]
    return np.array(rows, dtype=np.float64).reshape(len(found), len(FEATURES))


def _features(
    statement: str, word: Candidate, own: Sequence[str], background: WordStatistics, total: int
) -> list[float]:
    lowered = word.term.casefold()
    frequency = zipf(word.term)
    before = own[max(0, word.number - _NAMING_REACH) : word.number]
    capital = word.term[0].isupper() and word.number > 0
    symbol = any(sign.isdigit() for sign in word.term) or (len(word.term) > 1 and word.term.isupper())
    place = lowered in PLACES
    return [
        _MOST_FREQUENT - frequency,
        _keyness(lowered, frequency, background.counts, total),
        float(lowered in background.glossary or lowered.removesuffix("s") in background.glossary),
        min(len(word.term), _LONG) / _LONG,
        word.end / len(statement),
        float(not _NAMING.isdisjoint(before)),
        float(_NOUN.search(lowered) is not None),
        float(_VERBAL.search(lowered) is not None),
        float(capital and not place and not symbol),
        float(place),
        float(symbol),
        float(not word.term.isalnum()),
        float(sum(one[:_STEM] == lowered[:_STEM] for one in own) > 1),
    ]


def _keyness(lowered: str, frequency: float, counts: Mapping[str, int], total: int) -> float:
    if not total:
        return 0.0
    here = math.log10((counts.get(lowered, 0) + 0.5) / total * 1e9)
    return float(np.clip(here - frequency, *_KEYNESS))
