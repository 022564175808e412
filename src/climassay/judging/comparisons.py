"""A memory of pairwise comparisons: every pair is asked about once, in whichever direction it comes."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError

Ask: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Item indices (i, j), shape [pairs, 2], to natural log-odds, shape [pairs], that i has more of the quality than j."""

LARGEST_LOG_ODDS = 1e4
"""In nats; a certain answer (infinite log-odds) is cut here so that sums of log-likelihoods stay finite."""


class Comparisons:
    """Log-odds between the items 0 to n - 1, asked for when first needed and then remembered.

    A preference is antisymmetric, log_odds(i, j) = -log_odds(j, i), so one answer serves both directions.

    Attributes:
        n: Number of items.
        batches: Calls of ``ask`` so far.
    """

    def __init__(self, ask: Ask, n: int) -> None:
        """Remember nothing yet.

        Args:
            ask: Called with the pairs that are not known, each unordered pair once in its life.
            n: Number of items, at least 0.
        """
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

    def known(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all pairs asked about, shape [asked, 2] with i < j, and their log-odds in nats, shape [asked]."""
        return self._pairs(list(self._known)), np.array(list(self._known.values()), dtype=np.float64)

    def look_up(self, pairs: ArrayLike) -> NDArray[np.float64]:
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

    def _pairs(self, keys: list[int]) -> NDArray[np.int64]:
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
