"""A masker that needs no labels: rare words of general English that are common in the collection."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from climassay.generation.masking.candidates import candidates
from climassay.generation.masking.choosing import Choice
from climassay.generation.masking.word_features import FEATURES, count_words, word_features
from climassay.generation.masking.word_lists import GENERIC

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "rarity": 1.0,
        "keyness": 0.25,
        "glossary": 2.0,
        "length": 0.0,
        "position": 0.5,
        "named": 1.0,
        "noun": 0.5,
        "verbal": -1.5,
        "eponym": 0.0,
        "place": -2.0,
        "symbol": -1.0,
        "compound": -1.5,
        "repeated": -1.0,
    }
)
"""Set by hand, in units of one power of ten of rarity; not fitted to any labels."""

_GENERAL = 10.0
"""Taken off the score of a word that reports of any science have: such words come last, whatever their features."""


class StatisticsMasker:
    """TF-IDF's thought with general English as the other documents, and rules on how and where a term stands.

    The score of a word is a weighted sum of its features (:data:`WEIGHTS`); the softmax over the statement's words
    makes them shares.
    """

    name = "statistics"

    def __init__(
        self,
        passages: Iterable[str] = (),
        glossary: Iterable[str] = (),
        *,
        weights: Mapping[str, float] = WEIGHTS,
    ) -> None:
        """Count the collection's words.

        Args:
            passages: Texts of the collection; without any, only general English counts.
            glossary: Terms of the field, preferred wherever they occur.
            weights: Of the features; one left out counts nothing.
        """
        self._statistics = count_words(passages, glossary)
        self._weights = np.array([weights.get(name, 0.0) for name in FEATURES])

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """The term of each statement, in order; None where no word can be masked."""
        return [self._choose(statement) for statement in statements]

    def _choose(self, statement: str) -> Choice | None:
        found = candidates(statement)
        if not found:
            return None
        general = np.array([word.term.casefold() in GENERIC for word in found])
        scores = word_features(statement, found, self._statistics) @ self._weights - _GENERAL * general
        return Choice.of([(word.term, share) for word, share in zip(found, shares(scores), strict=True)])


def shares(scores: Sequence[float] | np.ndarray) -> list[float]:
    """Softmax of scores, shape [n]: one share each, in the same order, summing to 1."""
    powers = np.exp(np.asarray(scores, dtype=np.float64) - np.max(scores))
    return [float(power) for power in powers / powers.sum()]
