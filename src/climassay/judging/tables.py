"""What a method's experiment has asked so far: every comparison is computed once, for all folds and learning curves."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from climassay.judging.items import Item
from climassay.judging.preferences import IntArray, Progress
from climassay.judging.probe import Contrast
from climassay.judging.probing import Contrasts, Harvester


class ContrastTable:
    """Contrasts of ordered pairs of some items, harvested when first wanted."""

    def __init__(self, harvester: Harvester, items: Sequence[Item], on_progress: Progress | None = None) -> None:
        self._harvester = harvester
        self._items = items
        self._on_progress = on_progress
        self._rows: dict[tuple[int, int], tuple[int, int]] = {}
        self._blocks: list[Contrasts] = []

    def take(self, pairs: IntArray, layers: Sequence[int]) -> Contrasts:
        """Contrasts of ordered pairs [pairs, 2], of some of the harvester's layers."""
        self.prepare(pairs)
        wanted = [self._rows[key] for key in map(tuple, pairs.tolist())]
        columns = self._columns(layers)
        shape = (len(pairs), len(columns))
        plus, minus = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        margins, failed = np.zeros(len(pairs)), np.zeros(len(pairs), dtype=bool)
        of_block = np.array([block for block, _ in wanted])
        rows = np.array([row for _, row in wanted])
        for number, block in enumerate(self._blocks):
            here = np.flatnonzero(of_block == number)
            margins[here], failed[here] = block.margins[rows[here]], block.failed[rows[here]]
            # A block in which every request failed has states of width 0.
            good = here[~failed[here]]
            if len(good):
                plus[good] = block.states.plus[np.ix_(rows[good], columns)]
                minus[good] = block.states.minus[np.ix_(rows[good], columns)]
        return Contrasts(Contrast(plus, minus), margins, failed)

    def prepare(self, pairs: IntArray) -> None:
        """Harvest those of the ordered pairs, shape [pairs, 2], that are not known yet, all in one go."""
        missing = [key for key in dict.fromkeys(map(tuple, pairs.tolist())) if key not in self._rows]
        if missing:
            found = self._harvester.contrasts(self._items, np.array(missing), on_progress=self._on_progress)
            self._rows.update((key, (len(self._blocks), row)) for row, key in enumerate(missing))
            self._blocks.append(found)

    def _columns(self, layers: Sequence[int]) -> IntArray:
        harvested = self._harvester.layers
        width = max((block.states.plus.shape[1] for block in self._blocks), default=0) // len(harvested)
        places = [harvested.index(layer) for layer in layers]
        return np.concatenate([np.arange(place * width, (place + 1) * width) for place in places])


class PointTable:
    """One activation an item, harvested once for all items."""

    def __init__(self, harvester: Harvester, items: Sequence[Item], on_progress: Progress | None = None) -> None:
        self._harvester = harvester
        self._items = items
        self._on_progress = on_progress
        self._states: tuple[NDArray[np.float32], NDArray[np.bool_]] | None = None

    def take(self, layers: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """States [items, layers * width] and whether each failed [items]."""
        if self._states is None:
            self._states = self._harvester.points(self._items, on_progress=self._on_progress)
        states, failed = self._states
        harvested = self._harvester.layers
        split = states.reshape(len(states), len(harvested), -1)
        return split[:, [harvested.index(layer) for layer in layers]].reshape(len(states), -1), failed
