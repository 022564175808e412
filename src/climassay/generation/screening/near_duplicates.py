"""Questions that repeat an earlier one, found among a million without comparing them all.

Question and answer are taken as sets of pairs of neighbouring words. Two sets with a Jaccard similarity of at least t
share one of their first ``n - ceil(t n) + 1`` elements, in any one order of all elements; so only these few are
indexed, and what shares none of them is never looked at. Long pairs of words come first in the order, since they are
rare, and their lists in the index short.

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
_FIRST_ROOM = 256


class DuplicateFinder:
    """Finds for each draft the first earlier one that it repeats.

    The order of adding decides which of two is kept, and the same drafts in the same order give the same answer in
    every process. Options are not compared, so that their order and the distractors do not matter; but what has other
    numbers than the earlier one asks something else, and so has what is of another kind.
    """

    def __init__(self, encoder: Encoder | None = None, *, jaccard: float = 0.8, cosine: float = 0.92) -> None:
        """Start empty.

        An encoder finds repetitions in other words too; every vector is kept and compared with (384 numbers a question
        for the bundled encoder), so that adding takes time in proportion to what is there. Repetitions have at least
        this Jaccard similarity of their words, above 0 up to 1, or this cosine of their vectors.

        Raises:
            InputError: A threshold is out of its range.
        """
        if not 0 < jaccard <= 1 or not -1 <= cosine <= 1:
            raise InputError(f"Similarities are at most 1, the Jaccard similarity above 0: not {jaccard} and {cosine}.")
        self._encoder = encoder
        self._jaccard = jaccard
        self._cosine = cosine
        self._ids: list[str] = []
        self._shingles: list[Shingles] = []
        self._numbers: list[tuple[str, ...]] = []
        self._index: dict[int, list[int]] = {}
        self._vectors = np.zeros((0, 0), dtype=np.float32)

    def __len__(self) -> int:
        """Drafts that are kept."""
        return len(self._ids)

    def add(self, draft: Draft) -> str | None:
        """Keep a draft unless it repeats one that is kept.

        Returns:
            The id of the earlier draft; None where there is none, and this one is kept.
        """
        vector = None if self._encoder is None else self._encoder.encode([_text(draft)])[0]
        ordered, numbers = _ordered_shingles(draft), _numbers(draft)
        result = self._by_words(ordered, numbers)
        if result is None and vector is not None and self._ids:
            near = map(int, np.flatnonzero(self._vectors[: len(self._ids)] @ vector >= self._cosine))
            result = next((place for place in near if self._numbers[place] == numbers), None)
        if result is not None:
            return self._ids[result]
        self._keep(draft, ordered, vector)
        return None

    def refill(self, drafts: Iterable[Draft]) -> None:
        """Keep drafts that were found to repeat none when they were added, for example those of a stopped run."""
        kept = list(drafts)
        vectors = None if self._encoder is None or not kept else self._encoder.encode([_text(one) for one in kept])
        for place, draft in enumerate(kept):
            self._keep(draft, _ordered_shingles(draft), None if vectors is None else vectors[place])

    def _prefix(self, ordered: Sequence[int]) -> Sequence[int]:
        # The small amount keeps 0.8 * 5 from being a little more than 4.
        return ordered[: len(ordered) - math.ceil(self._jaccard * len(ordered) - 1e-9) + 1]

    def _by_words(self, ordered: Sequence[int], numbers: tuple[str, ...]) -> int | None:
        """The first kept draft whose words are similar enough."""
        places = {place for shingle in self._prefix(ordered) for place in self._index.get(shingle, ())}
        wanted = np.sort(np.array(ordered, dtype=np.uint64))
        for place in sorted(places):
            other = self._shingles[place]
            shorter, longer = sorted((len(wanted), len(other)))
            if shorter < self._jaccard * longer - 1e-9 or self._numbers[place] != numbers:
                continue
            shared = len(np.intersect1d(wanted, other, assume_unique=True))
            if shared >= self._jaccard * (len(wanted) + len(other) - shared) - 1e-9:
                return place
        return None

    def _keep(self, draft: Draft, ordered: Sequence[int], vector: NDArray[np.float32] | None) -> None:
        place = len(self._ids)
        self._ids.append(draft.id)
        self._shingles.append(np.sort(np.array(ordered, dtype=np.uint64)))
        self._numbers.append(_numbers(draft))
        for shingle in self._prefix(ordered):
            self._index.setdefault(shingle, []).append(place)
        if vector is not None:
            if place >= len(self._vectors):
                grown = np.zeros((max(_FIRST_ROOM, 2 * place), len(vector)), dtype=np.float32)
                grown[:place] = self._vectors[:place].reshape(place, len(vector))
                self._vectors = grown
            self._vectors[place] = vector


def _text(draft: Draft) -> str:
    # A cloze statement has its answer in it, and may be masked later.
    return draft.wording.question if draft.type.is_statement else f"{draft.wording.question} {right_answer(draft)}"


def _ordered_shingles(draft: Draft) -> list[int]:
    """Pairs of neighbouring stems as 64-bit numbers, longest pair first."""
    results = [draft.kind, *map(stem, words(_text(draft))), "."]
    pairs = {f"{first} {second}" for first, second in pairwise(results)}
    ordered = sorted(pairs, key=lambda pair: (-len(pair), pair))
    return [int.from_bytes(blake2b(pair.encode(), digest_size=8).digest(), "little") for pair in ordered]


def _numbers(draft: Draft) -> tuple[str, ...]:
    """The kind and every number of question and answer: where these differ, nothing is repeated."""
    return (draft.kind, *sorted(word for word in words(_text(draft)) if word[0].isdigit()))
