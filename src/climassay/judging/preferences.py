"""Preferences between items by any method, asked for lazily."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from climassay.judging.comparisons import Comparisons
from climassay.judging.items import Item

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Progress = Callable[[int], None]

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
        """Compare items.

        Args:
            items: The items that ``pairs`` points into.
            pairs: Indices, shape [pairs, 2].
            on_progress: Called with the number of requests answered since the last call.
        """


class Preferences:
    """A lazy preference function over some items; what is known is never asked again.

    ``Preferences(method, items).ask`` is what :func:`climassay.judging.sort_items` takes.
    """

    def __init__(self, method: Method, items: Sequence[Item], *, on_progress: Progress | None = None) -> None:
        self.method = method
        self.items = items
        self._on_progress = on_progress
        self._failed: set[tuple[int, int]] = set()
        self._comparisons = Comparisons(self._compare, len(items))

    @property
    def asked(self) -> int:
        """Number of unordered pairs compared so far."""
        return self._comparisons.asked

    @property
    def failed(self) -> int:
        """Number of those that the model gave no answer to."""
        return len(self._failed)

    def ask(self, pairs: IntArray) -> FloatArray:
        """Log-odds that the first item of each pair [pairs, 2] has more of the quality; 0 where it failed."""
        return self._comparisons.look_up(pairs)

    def judge(self, pairs: IntArray) -> Judgements:
        """As :meth:`ask`, for pairs of shape [pairs, 2], with the failures marked."""
        log_odds = self.ask(pairs)
        lost = [(min(i, j), max(i, j)) in self._failed for i, j in pairs.tolist()]
        return Judgements(log_odds, np.array(lost, dtype=bool))

    def matrix(self) -> FloatArray:
        """All preferences [items, items]: P[i, j] that item i has more of the quality than j; .5 on the diagonal."""
        n = len(self.items)
        above = np.stack(np.triu_indices(n, k=1), axis=1)
        probabilities = self.judge(above).probabilities
        matrix = np.full((n, n), 0.5)
        matrix[above[:, 0], above[:, 1]] = probabilities
        matrix[above[:, 1], above[:, 0]] = 1 - probabilities
        return matrix

    def _compare(self, pairs: IntArray) -> FloatArray:
        found = self.method.compare(self.items, pairs, on_progress=self._on_progress)
        self._failed.update(map(tuple, pairs[found.failed].tolist()))
        return found.log_odds
