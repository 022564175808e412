"""Key-value caches for the two ways in which a local model is run: along a path of shared tokens, and row by row."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

_GROWTH = 256
"""Columns by which a buffer grows at least, so that it is not copied at every token."""
_ROW_GROWTH = 16


class _Buffer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer in buffers [rows, heads, columns, width] that grow by doubling."""

    is_sliding = False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Start with empty buffers of the right widths and types."""
        self.keys = key_states.new_empty((0, key_states.shape[1], 0, key_states.shape[3]))
        self.values = value_states.new_empty((0, value_states.shape[1], 0, value_states.shape[3]))
        self.is_initialized = True

    def reserve(self, rows: int, columns: int) -> None:
        """Make room for so many rows and columns; what is there stays."""
        have_rows, _, have, _ = self.keys.shape
        if rows > have_rows or columns > have:
            rows = max(rows, min(2 * have_rows, have_rows + _ROW_GROWTH)) if rows > have_rows else have_rows
            columns = max(columns, min(2 * have, have + 16 * _GROWTH), _GROWTH) if columns > have else have
            self.keys, self.values = _larger(self.keys, rows, columns), _larger(self.values, rows, columns)

    def get_max_length(self) -> int:
        """No limit."""
        return -1


class PathLayer(_Buffer):
    """One layer's keys and values of the path, and after them those of the step computed last."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = 0
        """Columns that stay; the next step is written after them."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write the step's keys and values after the path; return both together.

        Args:
            key_states: Shape [1, heads, step, head width].
            value_states: Likewise.

        Returns:
            Keys and values, shape [1, heads, kept + step, head width].
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.kept + key_states.shape[2]
        self.reserve(1, end)
        self.keys[:, :, self.kept : end] = key_states
        self.values[:, :, self.kept : end] = value_states
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Columns that a query sees, and the first of them."""
        return self.kept + query_length, 0

    def get_seq_length(self) -> int:
        """Length of the path."""
        return self.kept


class PathCache(Cache):  # type: ignore[misc]
    """Cache of one path of tokens, to which steps are added and from which they are taken away."""

    def __init__(self, layers: int) -> None:
        super().__init__(layers=[PathLayer() for _ in range(layers)])
        self.tokens: tuple[int, ...] = ()
        """Tokens whose keys and values are held, from position 0."""

    def keep(self, columns: int) -> None:
        """Forget all but the first columns."""
        self.tokens = self.tokens[:columns]
        for layer in self.layers:
            layer.kept = columns


class RowLayer(_Buffer):
    """One layer's keys and values of many sequences; each writes its next token at its own place."""

    def __init__(self) -> None:
        super().__init__()
        self.places: Tensor = torch.empty(0, dtype=torch.long)
        """Column at which each active row writes, shape [active rows]."""
        self.width = 0
        """Columns that the active rows look at."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write one token for each active row; return what they look at.

        Args:
            key_states: Shape [active rows, heads, 1, head width].
            value_states: Likewise.

        Returns:
            Keys and values, shape [active rows, heads, width, head width].
        """
        active = key_states.shape[0]
        self.reserve(active, self.width)
        index = self.places[:, None, None, None]
        keys, values = self.keys[:active], self.values[:active]
        keys.scatter_(2, index.expand_as(key_states), key_states)
        values.scatter_(2, index.expand_as(value_states), value_states)
        return keys[:, :, : self.width], values[:, :, : self.width]

    def fill(self, row: int, source: PathLayer, columns: Tensor) -> None:
        """Copy the columns of a path into a row.

        Args:
            row: Which row to overwrite from its beginning.
            source: The same layer of the path cache.
            columns: Columns of the path cache in the order of the sequence, shape [length].
        """
        if not self.is_initialized:
            self.lazy_initialization(source.keys, source.values)
        self.reserve(row + 1, len(columns))
        self.keys[row, :, : len(columns)] = source.keys[0].index_select(1, columns)
        self.values[row, :, : len(columns)] = source.values[0].index_select(1, columns)

    def move(self, source: int, target: int, columns: int) -> None:
        """Copy one row's first columns over another row."""
        self.keys[target, :, :columns] = self.keys[source, :, :columns]
        self.values[target, :, :columns] = self.values[source, :, :columns]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002
        """Columns that a query sees, and the first of them."""
        return self.width, 0

    def get_seq_length(self) -> int:
        """Tokens seen before this step by the longest row."""
        return max(self.width - 1, 0)


class RowCache(Cache):  # type: ignore[misc]
    """Cache of many sequences that are continued one token at a time."""

    def __init__(self, layers: int) -> None:
        super().__init__(layers=[RowLayer() for _ in range(layers)])

    # Buffers that grew during a forward pass can be written to in inference mode only.
    @torch.inference_mode()
    def fill(self, row: int, source: PathCache, columns: Tensor) -> None:
        """Copy columns of a path cache, shape [length], into a row, in every layer."""
        for layer, path in zip(self.layers, source.layers, strict=True):
            layer.fill(row, path, columns)

    @torch.inference_mode()
    def move(self, source: int, target: int, columns: int) -> None:
        """Copy one row's first columns over another row, in every layer."""
        for layer in self.layers:
            layer.move(source, target, columns)

    def aim(self, lengths: Sequence[int], device: torch.device) -> None:
        """Say where the next token of each active row goes: after its ``lengths`` tokens."""
        places = torch.tensor(lengths, dtype=torch.long, device=device)
        for layer in self.layers:
            layer.places, layer.width = places, max(lengths) + 1


def _larger(buffer: Tensor, rows: int, columns: int) -> Tensor:
    """A larger copy, zero where nothing was written (a masked NaN would still be a NaN)."""
    larger = buffer.new_zeros((rows, buffer.shape[1], columns, buffer.shape[3]))
    larger[: buffer.shape[0], :, : buffer.shape[2]] = buffer
    return larger
