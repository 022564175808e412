"""Near-duplicates of questions, found by an index instead of comparing all pairs.

Question and answer are sets of pairs of neighbouring words. Two sets with a Jaccard similarity of at least t share one
of their first ``n - ceil(t n) + 1`` elements, in any common order of all elements. Only these elements are indexed, and
sets that share none of them are never compared. Long pairs of words come first, since they are rare and their index
entries short.

References:
    Bayardo, Ma and Srikant (2007), Scaling Up All Pairs Similarity Search, WWW (prefix filtering).
    Broder (1997), On the resemblance and containment of documents (shingles).
"""

import math
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.generation.draft import Draft
from climassay.generation.screening.check import right_answer, stem, words
from climassay.models.contract import Encoder

Shingles = NDArray[np.uint64]
_INITIAL_CAPACITY = 256


class DuplicateFinder:
    """Finds the first earlier draft that a draft repeats.

    The first of two duplicates is kept, and the same drafts in the same order give the same results in every process.
    Options are not compared, so their order and the distractors do not matter. Drafts with different numbers or of
    different kinds are never duplicates.
    """

    def __init__(self, encoder: Encoder | None = None, *, jaccard: float = 0.8, cosine: float = 0.92) -> None:
        """Create an empty finder.

        Args:
            encoder: Encoder that also finds paraphrases; a new vector is compared with all stored vectors.
            jaccard: Minimum Jaccard similarity of duplicates' word pairs, in (0, 1].
            cosine: Minimum cosine of duplicates' vectors.

        Raises:
            InputError: A threshold is out of range.
        """
        if not 0 < jaccard <= 1 or not -1 <= cosine <= 1:
            raise InputError(f"Similarities are at most 1, the Jaccard similarity above 0: not {jaccard} and {cosine}.")
        self._encoder = encoder
        self._jaccard = jaccard
        self._cosine = cosine
        self._ids: list[str] = []
        self._shingles: list[Shingles] = []
        self._kind_and_numbers: list[tuple[str, ...]] = []
        self._index: dict[int, list[int]] = {}
        self._vectors = np.zeros((0, 0), dtype=np.float32)

    def __len__(self) -> int:
        """Return the number of stored drafts."""
        return len(self._ids)

    def add(self, draft: Draft) -> str | None:
        """Store a draft unless it repeats a stored one.

        Returns:
            Id of the earlier draft; None if there is none and the draft was stored.
        """
        vector = None if self._encoder is None else self._encoder.encode([_question_and_answer(draft)])[0]
        ordered, numbers = _ordered_shingles(draft), _kind_and_numbers(draft)
        duplicate = self._find_by_words(ordered, numbers)
        if duplicate is None and vector is not None and self._ids:
            similar = map(int, np.flatnonzero(self._vectors[: len(self._ids)] @ vector >= self._cosine))
            duplicate = next((index for index in similar if self._kind_and_numbers[index] == numbers), None)
        if duplicate is not None:
            return self._ids[duplicate]
        self._store(draft, ordered, vector)
        return None

    def refill(self, drafts: Iterable[Draft]) -> None:
        """Store drafts without comparing them, for example the accepted drafts of an earlier run."""
        drafts = list(drafts)
        vectors = None
        if self._encoder is not None and drafts:
            vectors = self._encoder.encode([_question_and_answer(draft) for draft in drafts])
        for index, draft in enumerate(drafts):
            self._store(draft, _ordered_shingles(draft), None if vectors is None else vectors[index])

    def _indexed_prefix(self, ordered: Sequence[int]) -> Sequence[int]:
        # 1e-9 compensates the rounding of products such as 0.8 * 5.
        return ordered[: len(ordered) - math.ceil(self._jaccard * len(ordered) - 1e-9) + 1]

    def _find_by_words(self, ordered: Sequence[int], numbers: tuple[str, ...]) -> int | None:
        """Return the index of the first stored draft with similar words, or None."""
        candidates = {index for shingle in self._indexed_prefix(ordered) for index in self._index.get(shingle, ())}
        shingles = np.sort(np.array(ordered, dtype=np.uint64))
        for index in sorted(candidates):
            other = self._shingles[index]
            shorter, longer = sorted((len(shingles), len(other)))
            if shorter < self._jaccard * longer - 1e-9 or self._kind_and_numbers[index] != numbers:
                continue
            n_shared = len(np.intersect1d(shingles, other, assume_unique=True))
            if n_shared >= self._jaccard * (len(shingles) + len(other) - n_shared) - 1e-9:
                return index
        return None

    def _store(self, draft: Draft, ordered: Sequence[int], vector: NDArray[np.float32] | None) -> None:
        index = len(self._ids)
        self._ids.append(draft.id)
        self._shingles.append(np.sort(np.array(ordered, dtype=np.uint64)))
        self._kind_and_numbers.append(_kind_and_numbers(draft))
        for shingle in self._indexed_prefix(ordered):
            self._index.setdefault(shingle, []).append(index)
        if vector is not None:
            if index >= len(self._vectors):
                grown = np.zeros((max(_INITIAL_CAPACITY, 2 * index), len(vector)), dtype=np.float32)
                grown[:index] = self._vectors[:index].reshape(index, len(vector))
                self._vectors = grown
            self._vectors[index] = vector


def _question_and_answer(draft: Draft) -> str:
    # A cloze statement contains its answer, and may be masked later.
    return draft.wording.question if draft.type.is_statement else f"{draft.wording.question} {right_answer(draft)}"


def _ordered_shingles(draft: Draft) -> list[int]:
    """Return pairs of neighbouring stems as 64-bit hashes, the longest pair first."""
    stems = [draft.kind, *map(stem, words(_question_and_answer(draft))), "."]
    pairs = {f"{first} {second}" for first, second in pairwise(stems)}
    ordered = sorted(pairs, key=lambda pair: (-len(pair), pair))
    return [int.from_bytes(blake2b(pair.encode(), digest_size=8).digest(), "little") for pair in ordered]


def _kind_and_numbers(draft: Draft) -> tuple[str, ...]:
    """Return the kind and all numbers of question and answer, which are equal for duplicates."""
    return (draft.kind, *sorted(word for word in words(_question_and_answer(draft)) if word[0].isdigit()))
