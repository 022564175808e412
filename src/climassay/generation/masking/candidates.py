"""The words of a cloze statement that could be masked at all."""

import re
from collections import Counter
from dataclasses import dataclass

from climassay.generation.masking.word_lists import FUNCTION_WORDS, NUMBER_WORDS, UNITS

_WORD = re.compile(r"(?<!\w)[^\W_]+(?:[-‐‑’'][^\W_]+)*(?!\w)")
_LETTER = re.compile(r"[^\W\d_]")
_SHORTEST = 3
"""Letters: shorter words are units, symbols of variables and little words."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word that could be masked."""

    term: str
    """As it stands in the statement."""
    start: int
    """Place of its first letter in the statement."""
    number: int
    """Place among the statement's words, counted from 0."""

    @property
    def end(self) -> int:
        """Place behind its last letter."""
        return self.start + len(self.term)


def words(statement: str) -> list[Candidate]:
    """Every word of a statement; parts joined by hyphens or apostrophes are one word."""
    return [Candidate(found[0], found.start(), number) for number, found in enumerate(_WORD.finditer(statement))]


def candidates(statement: str) -> list[Candidate]:
    """Words that could be masked, in the statement's order.

    A candidate stands in the statement exactly once (in any spelling of its letters' case, parts of hyphenated words
    included, so that the gap cannot be filled by looking), has three letters or more, and is neither a function word
    nor a number nor a unit.
    """
    own = words(statement)
    uses = Counter(part for word in own for part in _parts(word.term))
    return [word for word in own if _fit(word.term) and uses[word.term.casefold()] == 1]


def _parts(term: str) -> set[str]:
    """The word and, of a hyphenated one, its parts."""
    lowered = term.casefold()
    return {lowered, *re.split(r"[-‐‑’']", lowered)}


def _fit(term: str) -> bool:
    lowered = term.casefold()
    letters = len(_LETTER.findall(term))
    symbol = letters >= 2 and any(sign.isdigit() for sign in term) and term[0].isupper()
    plain = letters >= _SHORTEST and not term[0].isdigit()
    return (plain or symbol) and lowered not in FUNCTION_WORDS | UNITS | NUMBER_WORDS
