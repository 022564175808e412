"""Find near-duplicate questions by an index instead of comparing all pairs.

Question and answer are sets of pairs of neighbouring words. Two sets with a Jaccard similarity of at least t share one
of their first ``n - ceil(t n) + 1`` elements, in any common order of all elements. Only these elements are indexed, and
sets that share none of them are not compared. Elements are ordered by decreasing length of the word pair, since long
pairs are rare.

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
from climassay.generation.screening.check import correct_answer, stem, words
from climassay.models.contract import Encoder

Shingles = NDArray[np.uint64]
_INITIAL_CAPACITY = 256


class DuplicateFinder:
    """Index that finds, for each new draft, the first earlier draft that it repeats.

    Questions and correct answers are compared, but not the other options or their order. Drafts with different numbers
    or of different kinds are never duplicates. Results depend only on the drafts and their order.
    """

    def __init__(self, encoder: Encoder | None = None, *, jaccard: float = 0.8, cosine: float = 0.92) -> None:
        """Create an empty finder.

        Args:
            encoder: Encoder for finding paraphrases; None compares only words.
            jaccard: Minimum Jaccard similarity of the word pairs of two duplicates, in (0, 1].
            cosine: Minimum cosine similarity of the embeddings of two duplicates.

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
            Id of the stored draft that the new draft repeats; None if there is none and the draft was stored.
        """
        vector = None if self._encoder is None else self._encoder.encode([_question_and_answer(draft)])[0]
        shingles, kind_and_numbers = _ordered_shingles(draft), _kind_and_numbers(draft)
        index = self._find_by_words(shingles, kind_and_numbers)
        if index is None and vector is not None and self._ids:
            similar_indices = map(int, np.flatnonzero(self._vectors[: len(self._ids)] @ vector >= self._cosine))
            index = next(
                (index for index in similar_indices if self._kind_and_numbers[index] == kind_and_numbers), None
            )
        if index is not None:
            return self._ids[index]
        self._store(draft, shingles, vector)
        return None

    def add_unchecked(self, drafts: Iterable[Draft]) -> None:
        """Store drafts without comparing them, for example the accepted drafts of an earlier run."""
        drafts = list(drafts)
        vectors = None
        if self._encoder is not None and drafts:
            vectors = self._encoder.encode([_question_and_answer(draft) for draft in drafts])
        for index, draft in enumerate(drafts):
            self._store(draft, _ordered_shingles(draft), None if vectors is None else vectors[index])

    def _indexed_prefix(self, shingles: Sequence[int]) -> Sequence[int]:
        # 1e-9 compensates the rounding of products such as 0.8 * 5.
        return shingles[: len(shingles) - math.ceil(self._jaccard * len(shingles) - 1e-9) + 1]

    def _find_by_words(self, shingles: Sequence[int], kind_and_numbers: tuple[str, ...]) -> int | None:
        """Return the index of the first stored draft with similar words; None if there is none."""
        candidates = {index for shingle in self._indexed_prefix(shingles) for index in self._index.get(shingle, ())}
        sorted_shingles = np.sort(np.array(shingles, dtype=np.uint64))
        for index in sorted(candidates):
            candidate_shingles = self._shingles[index]
            min_length, max_length = sorted((len(shingles), len(candidate_shingles)))
            if min_length < self._jaccard * max_length - 1e-9 or self._kind_and_numbers[index] != kind_and_numbers:
                continue
            n_shared = len(np.intersect1d(sorted_shingles, candidate_shingles, assume_unique=True))
            if n_shared >= self._jaccard * (len(shingles) + len(candidate_shingles) - n_shared) - 1e-9:
                return index
        return None

    def _store(self, draft: Draft, shingles: Sequence[int], vector: NDArray[np.float32] | None) -> None:
        index = len(self._ids)
        self._ids.append(draft.id)
        self._shingles.append(np.sort(np.array(shingles, dtype=np.uint64)))
        self._kind_and_numbers.append(_kind_and_numbers(draft))
        for shingle in self._indexed_prefix(shingles):
            self._index.setdefault(shingle, []).append(index)
        if vector is not None:
            if index >= len(self._vectors):
                vectors = np.zeros((max(_INITIAL_CAPACITY, 2 * index), len(vector)), dtype=np.float32)
                vectors[:index] = self._vectors[:index].reshape(index, len(vector))
                self._vectors = vectors
            self._vectors[index] = vector


def _question_and_answer(draft: Draft) -> str:
    # A cloze statement contains its answer, and may be masked later.
    return draft.wording.question if draft.type.is_statement else f"{draft.wording.question} {correct_answer(draft)}"


def _ordered_shingles(draft: Draft) -> list[int]:
    """Return the 64-bit hashes of all pairs of adjacent stems in question and answer, the longest pair first."""
    stems = [draft.kind, *map(stem, words(_question_and_answer(draft))), "."]
    pairs = sorted({f"{first} {second}" for first, second in pairwise(stems)}, key=lambda pair: (-len(pair), pair))
    return [int.from_bytes(blake2b(pair.encode(), digest_size=8).digest(), "little") for pair in pairs]


def _kind_and_numbers(draft: Draft) -> tuple[str, ...]:
    """Return the kind of a draft and the sorted numbers in its question and answer, which are equal for duplicates."""
    return (draft.kind, *sorted(word for word in words(_question_and_answer(draft)) if word[0].isdigit()))
