"""What an encoder sees of a word: its vector in the statement, and how the statement changes without it."""

from collections.abc import Sequence
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from climassay.generation.masking.candidates import Candidate
from climassay.metrics.token_encoder import TokenVectors, token_encoder
from climassay.models.encoder import BUNDLED_ENCODER


class ReadsWords(Protocol):
    """An encoder of tokens, as :class:`~climassay.metrics.token_encoder.TokenEncoder`."""

    @property
    def name(self) -> str:
        """As it was asked for."""

    def encode(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Vectors of the tokens of each text."""


@cache
def bundled_reader() -> ReadsWords:
    """The bundled encoder's tokens, loaded when they are first asked for."""
    return token_encoder(BUNDLED_ENCODER)


def context_features(
    statements: Sequence[str], found: Sequence[Sequence[Candidate]], reader: ReadsWords
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Impact and vectors of the candidates of statements.

    The impact of a word is 1 less the cosine between the statement and the statement without the word, each the mean of
    its tokens' vectors: the paper asks for the word "that has a significant impact if removed" (ClimaQA, A.5.3). The
    vector is the mean over the word's tokens less the mean over the statement's, so that what is learned is about words
    and not about the topics of the statements.

    Args:
        statements: Any number.
        found: The candidates of each.
        reader: The encoder.

    Returns:
        For each statement impacts, shape [candidates, 1], and vectors, shape [candidates, width]. A word behind the end
        of what the encoder reads has the vector 0.
    """
    whole = reader.encode(statements)
    cut = [_without(statement, word) for statement, own in zip(statements, found, strict=True) for word in own]
    terms = [word.term for own in found for word in own]
    left, spelled = iter(reader.encode(cut)), iter(reader.encode(terms))
    features = []
    for statement, text, own in zip(statements, whole, found, strict=True):
        middle = _mean(text)
        impacts = [[1.0 - _cosine(middle, _mean(next(left)))] for _ in own]
        vectors = [_vector(text, next(spelled), word.start / len(statement), middle) for word in own]
        features.append((np.array(impacts).reshape(len(own), 1), np.array(vectors).reshape(len(own), len(middle))))
    return features


def _without(statement: str, word: Candidate) -> str:
    return " ".join((statement[: word.start] + statement[word.end :]).split())


def _mean(text: TokenVectors) -> NDArray[np.float64]:
    kept = text.vectors if text.empty else text.vectors[~text.special]
    return np.asarray(kept.mean(axis=0), dtype=np.float64)


def _cosine(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    size = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / size if size else 0.0


def _vector(
    text: TokenVectors, spelled: TokenVectors, share: float, middle: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean vector of a word's tokens in its statement: a candidate stands there once, so that its tokens tell where."""
    own = [token for token, special in zip(spelled.ids, spelled.special, strict=True) if not special]
    places = [
        start
        for start in range(len(text.ids) - len(own) + 1)
        if own and list(text.ids[start : start + len(own)]) == own
    ]
    if not places:
        return np.zeros(len(middle))
    # Where the tokens of a short word also begin a longer one, take the place nearest to the word's own in the text.
    best = min(places, key=lambda start: abs(start / len(text.ids) - share))
    return np.asarray(text.vectors[best : best + len(own)].mean(axis=0), dtype=np.float64) - middle
