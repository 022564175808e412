"""Preferences between items by any method, asked for lazily: every pair once, in whichever direction it comes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.judging.items import Item

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Progress = Callable[[int], None]
Ask: TypeAlias = Callable[[IntArray], FloatArray]
"""Item indices (i, j), shape [pairs, 2], to natural log-odds, shape [pairs], that i has more of the quality than j."""

LARGEST_LOG_ODDS = 1e4
"""In nats; a certain answer (infinite log-odds) is cut here so that sums of log-likelihoods stay finite."""

CERTAIN = 13.8
"""Log-odds of a preference that a method gives as 0 or 1: one in a million, so that sums stay finite."""


@dataclass(frozen=True, slots=True)
class Judgements:
    """What a method says of some pairs."""

    log_odds: FloatArray
    """[pairs]; natural log-odds that the first item has more of the quality; 0 where the comparison failed."""
    failed: NDArray[np.bool_]
    """[pairs]; whether the model gave no answer, in either order."""

    @property
    def probabilities(self) -> FloatArray:
        """[pairs]; that the first item has more of the quality."""
        return np.asarray(0.5 + 0.5 * np.tanh(self.log_odds / 2))


class Method(Protocol):
    """Anything that compares items: direct scoring, PairS, zero-shot contrast, a contrast or a pointwise probe."""

    @property
    def name(self) -> str:
        """Short, for tables."""

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """Compare items by pairs of their indices, shape [pairs, 2]; progress counts the requests answered."""


class Comparisons:
    """Log-odds between the items 0 to n - 1, asked for when first needed and then remembered.

    A preference is antisymmetric, log_odds(i, j) = -log_odds(j, i), so one answer serves both directions.

    Attributes:
        n: Number of items.
        batches: Calls of ``ask`` so far.
    """

    def __init__(self, ask: Ask, n: int) -> None:
        """Remember nothing yet; ``ask`` is called with pairs that are not known, each unordered pair once."""
        if n < 0:
            raise InputError(f"A number of items cannot be negative, got {n}.")
        self.n = n
        self.batches = 0
        self._ask = ask
        # By key min * n + max: memory grows with what was asked, not with n squared.
        self._known: dict[int, float] = {}

    @property
    def asked(self) -> int:
        """Distinct unordered pairs asked about so far."""
        return len(self._known)

    def known(self) -> tuple[IntArray, FloatArray]:
        """Return all pairs asked about, shape [asked, 2] with i < j, and their log-odds in nats, shape [asked]."""
        return self._pairs(list(self._known)), np.array(list(self._known.values()), dtype=np.float64)

    def look_up(self, pairs: ArrayLike) -> FloatArray:
        """Give the log-odds of pairs, asking in one batch about those that are not known in either direction.

        Args:
            pairs: Integers, shape [pairs, 2]; a pair may occur several times and in both directions.

        Returns:
            Natural log-odds that the first of each pair has more of the quality, shape [pairs].

        Raises:
            InputError: A pair is out of range or compares an item with itself, or an answer is missing or NaN.
        """
        wanted = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if not len(wanted):
            return np.empty(0)
        first, second = wanted[:, 0], wanted[:, 1]
        low, high = np.minimum(first, second), np.maximum(first, second)
        if low.min() < 0 or high.max() >= self.n:
            raise InputError(f"Comparisons are between items 0 to {self.n - 1}, got {low.min()} to {high.max()}.")
        if (low == high).any():
            raise InputError(f"Item {low[low == high][0]} cannot be compared with itself; leave that pair out.")
        keys = (low * self.n + high).tolist()
        self._learn(keys)
        values = np.array([self._known[key] for key in keys], dtype=np.float64)
        np.negative(values, where=first > second, out=values)
        return values

    def _pairs(self, keys: list[int]) -> IntArray:
        return np.stack(np.divmod(np.array(keys, dtype=np.int64), max(self.n, 1)), axis=1)

    def _learn(self, keys: list[int]) -> None:
        """Ask about those of the keys that are not known, in one batch and in the order of their first mention."""
        new = list(dict.fromkeys(key for key in keys if key not in self._known))
        if not new:
            return
        self.batches += 1
        answers = np.asarray(self._ask(self._pairs(new)), dtype=np.float64)
        if answers.shape != (len(new),):
            raise InputError(f"{len(new)} comparisons need as many log-odds, got an array of shape {answers.shape}.")
        if np.isnan(answers).any():
            raise InputError(
                f"{np.isnan(answers).sum()} of {len(new)} comparisons gave no number; "
                "use a method that answers every pair or leave the items out."
            )
        answers = np.minimum(np.maximum(answers, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS)
        self._known.update(zip(new, answers.tolist(), strict=True))


class Preferences(Comparisons):
    """A lazy preference function over some items; what is known is never asked again.

    ``Preferences(method, items).ask`` is what :func:`climassay.judging.sort_items` takes.
    """

    def __init__(self, method: Method, items: Sequence[Item], *, on_progress: Progress | None = None) -> None:
        super().__init__(self._compare, len(items))
        self._method = method
        self._items = items
        self._on_progress = on_progress
        self._lost: set[tuple[int, int]] = set()

    @property
    def failed(self) -> int:
        """Number of the unordered pairs compared so far that the model gave no answer to."""
        return len(self._lost)

    def ask(self, pairs: IntArray) -> FloatArray:
        """Log-odds that the first item of each pair [pairs, 2] has more of the quality; 0 where it failed."""
        return self.look_up(pairs)

    def judge(self, pairs: IntArray) -> Judgements:
        """As :meth:`ask`, for pairs of shape [pairs, 2], with the failures marked."""
        log_odds = self.ask(pairs)
        lost = [(min(i, j), max(i, j)) in self._lost for i, j in pairs.tolist()]
        return Judgements(log_odds, np.array(lost, dtype=bool))

    def matrix(self) -> FloatArray:
        """All preferences [items, items]: P[i, j] that item i has more of the quality than j; .5 on the diagonal."""
        above = np.stack(np.triu_indices(self.n, k=1), axis=1)
        probabilities = self.judge(above).probabilities
        matrix = np.full((self.n, self.n), 0.5)
        matrix[above[:, 0], above[:, 1]] = probabilities
        matrix[above[:, 1], above[:, 0]] = 1 - probabilities
        return matrix

    def _compare(self, pairs: IntArray) -> FloatArray:
        found = self._method.compare(self._items, pairs, on_progress=self._on_progress)
        self._lost.update(map(tuple, pairs[found.failed].tolist()))
        return found.log_odds
