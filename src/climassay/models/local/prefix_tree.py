"""Plan which tokens to compute together so that shared prefixes are computed once, and cache their keys and values.

The sequences form a radix tree: a :class:`Segment` contains tokens that the same set of sequences shares. The tree
is divided into steps. A :class:`ForwardStep` either extends the current path (a long shared prefix, stored in the
key-value cache) or computes many small branches as one packed row of tokens, in which each token attends only to its
ancestors. Nothing is padded.

There are two caches: :class:`PathCache` for the path of shared tokens, and :class:`RowCache` for rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive tokens computed once for all sequences that contain them."""

    tokens: tuple[int, ...]
    start: int
    """Position of the first token in its sequences, from 0."""
    parent: int | None
    """Index of the preceding segment in the same step; None if the segment directly follows the cached path."""
    sequences: tuple[int, ...]
    """Indices of the sequences that contain the segment."""

    @property
    def end(self) -> int:
        """Position after the last token."""
        return self.start + len(self.tokens)


@dataclass(frozen=True, slots=True)
class ForwardStep:
    """Segments computed in one forward pass."""

    n_cached: int
    """Number of cached path tokens that precede all segments; later path tokens are discarded."""
    segments: tuple[Segment, ...]
    """Segments, parents before children. A single segment extends the path."""

    @property
    def size(self) -> int:
        """Number of tokens to compute."""
        return sum(len(segment.tokens) for segment in self.segments)


@dataclass(slots=True)
class _Node:
    start: int
    end: int
    first: int
    """Index, in sorted order, of the first sequence that contains the node."""
    last: int = -1
    """Index, in sorted order, of the last sequence that contains the node."""
    children: list["_Node"] = field(default_factory=list)
    size: int = 0
    """Number of tokens in the node and its descendants."""


class PrefixTree:
    """Radix tree of token sequences.

    Args:
        sequences: Token ids; no sequence is empty; equal ones are computed once.
        cached: Tokens of the path in the cache; a prefix that all sequences share with it is not computed again.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], *, cached: Sequence[int] = ()) -> None:
        self._order = sorted(range(len(sequences)), key=lambda index: tuple(sequences[index]))
        self._rows = [tuple(sequences[index]) for index in self._order]
        common_prefix = self._rows[0][: common_length(self._rows[0], self._rows[-1])] if self._rows else ()
        self.n_cached_tokens = common_length(cached, common_prefix)
        """Number of prefix tokens omitted because they are cached."""
        self._root = self._build()

    def steps(self, *, max_packed: int, max_segment: int) -> Iterator[ForwardStep]:
        """Yield the forward passes that compute all sequences, in order.

        Args:
            max_packed: Maximum total number of tokens of branches computed in one step.
            max_segment: Maximum number of tokens of a segment on the path; longer segments take several steps.

        Yields:
            Steps in which every position that is not cached is in exactly one segment.
        """
        yield from self._pack_branches(self._root, max_packed)
        nodes_to_visit = _find_large_children(self._root, max_packed)
        while nodes_to_visit:
            node = nodes_to_visit.pop()
            for start in range(node.start, node.end, max_segment):
                yield ForwardStep(start, (self._create_segment(node, start, min(start + max_segment, node.end), None),))
            yield from self._pack_branches(node, max_packed)
            nodes_to_visit.extend(_find_large_children(node, max_packed))

    def shared_segments(self, min_saving: int) -> list[Segment]:
        """Return segments that are worth storing once for the sequences that contain them.

        Args:
            min_saving: Minimum number of tokens that storing a segment once saves: its length times the number of its
                sequences minus one.

        Returns:
            Segments, parents before children; ``parent`` is an index into the list.
        """
        results: list[Segment] = []
        nodes_to_visit: list[tuple[_Node, int, int | None]] = [(self._root, self.n_cached_tokens, None)]
        while nodes_to_visit:
            node, start, parent = nodes_to_visit.pop()
            if (node.last - node.first) * (node.end - start) >= min_saving:
                results.append(self._create_segment(node, start, node.end, parent))
                start, parent = node.end, len(results) - 1
            nodes_to_visit.extend((child, start, parent) for child in node.children)
        return results

    def _build(self) -> _Node:
        """Build the tree by inserting the sorted rows one by one; ``rightmost_path`` leads to the last inserted row."""
        root = _Node(self.n_cached_tokens, self.n_cached_tokens, 0)
        rightmost_path = [root]
        for index, row in enumerate(self._rows):
            n_shared = common_length(self._rows[index - 1], row) if index else self.n_cached_tokens
            divided_node = None
            while rightmost_path[-1].end > n_shared:
                divided_node = rightmost_path.pop()
                divided_node.last = index - 1
            if divided_node is not None and rightmost_path[-1].end < n_shared:
                # The upper part replaces the last child of its parent.
                upper_node = _Node(divided_node.start, n_shared, divided_node.first, children=[divided_node])
                divided_node.start = n_shared
                rightmost_path[-1].children[-1] = upper_node
                rightmost_path.append(upper_node)
            if n_shared < len(row):
                leaf = _Node(n_shared, len(row), index)
                rightmost_path[-1].children.append(leaf)
                rightmost_path.append(leaf)
        for node in rightmost_path:
            node.last = len(self._rows) - 1
        # Children before parents, without recursion: a path may be thousands of nodes long.
        nodes = [root]
        for node in nodes:
            nodes.extend(node.children)
        for node in reversed(nodes):
            node.size = node.end - node.start + sum(child.size for child in node.children)
        return root

    def _pack_branches(self, parent: _Node, max_packed: int) -> Iterator[ForwardStep]:
        """Yield steps that compute the small branches below the node where the cached path ends."""
        group: list[_Node] = []
        for node in parent.children:
            if node.size > max_packed:
                continue
            if group and sum(member.size for member in group) + node.size > max_packed:
                yield self._create_packed_step(parent.end, group)
                group = []
            group.append(node)
        if group:
            yield self._create_packed_step(parent.end, group)

    def _create_packed_step(self, n_cached: int, nodes: Iterable[_Node]) -> ForwardStep:
        segments: list[Segment] = []
        nodes_to_visit: list[tuple[_Node, int | None]] = [(node, None) for node in nodes]
        while nodes_to_visit:
            node, parent = nodes_to_visit.pop()
            nodes_to_visit.extend((child, len(segments)) for child in node.children)
            segments.append(self._create_segment(node, node.start, node.end, parent))
        return ForwardStep(n_cached, tuple(segments))

    def _create_segment(self, node: _Node, start: int, end: int, parent: int | None) -> Segment:
        sequences = tuple(self._order[node.first : node.last + 1])
        return Segment(self._rows[node.first][start:end], start, parent, sequences)


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    limit = min(len(first), len(second))
    if first[:limit] == second[:limit]:
        return limit
    return next((index for index in range(limit) if first[index] != second[index]), limit)


def _find_large_children(parent: _Node, max_packed: int) -> list[_Node]:
    return [node for node in reversed(parent.children) if node.size > max_packed]


_MIN_PATH_COLUMNS = 256
"""Minimum number of columns of the buffer of a path."""
_ROW_COLUMN_MULTIPLE = 64
"""Multiple to which the width of the row buffers is rounded up, so that they are rarely copied."""
_MASKED_POSITION = 2**31
"""Position of a column that a row must not attend to, greater than the position of any token."""


class _Layer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer in buffers [rows, heads, columns, width]."""

    is_sliding = False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Create empty buffers of the right widths and types."""
        self.keys = key_states.new_empty((0, key_states.shape[1], 0, key_states.shape[3]))
        self.values = value_states.new_empty((0, value_states.shape[1], 0, value_states.shape[3]))
        self.is_initialized = True

    def resize(self, rows: int, columns: int, n_rows_to_copy: int) -> None:
        """Resize the buffers to a number of rows and columns, copying the first rows as far as they fit.

        Other entries are zero, since a masked NaN would remain NaN.
        """
        for name in ("keys", "values"):
            buffer: Tensor = getattr(self, name)
            new_buffer = buffer.new_zeros((rows, buffer.shape[1], columns, buffer.shape[3]))
            n_shared_columns = min(columns, buffer.shape[2])
            new_buffer[:n_rows_to_copy, :, :n_shared_columns] = buffer[:n_rows_to_copy, :, :n_shared_columns]
            setattr(self, name, new_buffer)

    def get_max_length(self) -> int:
        """Return -1, which means that there is no limit."""
        return -1


class PathLayer(_Layer):
    """One layer's keys and values of the path, followed by the keys and values of the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.n_cached = 0
        """Number of path columns; the next step is written after them."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write a step's keys and values, shape [1, heads, step, head width], after the path, and return all."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.n_cached + key_states.shape[2]
        n_columns = self.keys.shape[2]
        if end > n_columns:
            self.resize(1, max(end, n_columns + n_columns // 4, _MIN_PATH_COLUMNS), min(1, self.keys.shape[0]))
        self.keys[:, :, self.n_cached : end] = key_states
        self.values[:, :, self.n_cached : end] = value_states
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the length of the key-value cache that the mask covers, and the offset of its first position."""
        return self.n_cached + query_length, 0

    def get_seq_length(self) -> int:
        """Return the length of the path."""
        return self.n_cached


class PathCache(Cache):  # type: ignore[misc]
    """Cache of one path of tokens, which is extended and truncated by steps."""

    def __init__(self, layers: int) -> None:
        super().__init__(layers=[PathLayer() for _ in range(layers)])
        self.tokens: tuple[int, ...] = ()
        """Tokens in the cache, from position 0."""

    def truncate(self, columns: int) -> None:
        """Discard all but the first ``columns`` tokens of the path."""
        self.tokens = self.tokens[:columns]
        for layer in self.layers:
            layer.n_cached = columns


@dataclass(eq=False, slots=True)
class SharedPrefix:
    """Tokens that several rows share at their beginning or after ``parent``; their keys and values are stored once."""

    tokens: tuple[int, ...]
    start: int
    """Position of the first token in its rows."""
    parent: "SharedPrefix | None"
    """Shared prefix that directly precedes this one in all its rows; None if the rows begin with this one."""
    rows: int = 0
    """Number of rows that contain this prefix."""
    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Keys and values [heads, length, width] of each layer; empty until they are computed."""

    @property
    def end(self) -> int:
        """Position after the last token."""
        return self.start + len(self.tokens)


class SharedStates(NamedTuple):
    """Keys, or values, of a layer for rows with shared prefixes; input of :func:`shared_attention`."""

    shared: tuple[tuple[Tensor | slice, Tensor], ...]
    """Row indices and tensor [heads, length, width] of each shared prefix."""
    row_states: Tensor
    """States at the positions after each row's shared prefixes, [rows, heads, columns, width]."""


class RowLayer(_Layer):
    """Keys and values of one layer for many sequences. Each sequence is a row with its own write position."""

    def __init__(self) -> None:
        super().__init__()
        self.write_columns: Tensor = torch.empty(0, dtype=torch.long)
        """Column at which each active row writes, shape [active rows]."""
        self.width = 0
        """Number of buffer columns that the active rows attend to."""
        self.shared: tuple[tuple[Tensor | slice, tuple[Tensor, Tensor]], ...] = ()
        """Row indices of each shared prefix, with its keys and values."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Write one token per active row, shape [active rows, heads, 1, head width]; return the states to attend to.

        Returns:
            Keys and values: tensors of shape [active rows, heads, columns, head width], or :class:`SharedStates` if
            rows share prefixes.
        """
        n_active_rows = key_states.shape[0]
        # Indexed, not scattered, since scatter_ copies a bfloat16 buffer.
        rows = torch.arange(n_active_rows, device=self.write_columns.device)
        self.keys[rows, :, self.write_columns] = key_states[:, :, 0]
        self.values[rows, :, self.write_columns] = value_states[:, :, 0]
        keys, values = self.keys[:n_active_rows, :, : self.width], self.values[:n_active_rows, :, : self.width]
        if not self.shared:
            return keys, values
        return (
            SharedStates(tuple((row_indices, tensors[0]) for row_indices, tensors in self.shared), keys),
            SharedStates(tuple((row_indices, tensors[1]) for row_indices, tensors in self.shared), values),
        )

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the length of the key-value cache that the mask covers, and the offset of its first position."""
        return self.width, 0

    def get_seq_length(self) -> int:
        """Return the number of earlier tokens of the longest row."""
        return max(self.width - 1, 0)


class RowCache(Cache):  # type: ignore[misc]
    """Cache of many sequences that are continued one token at a time.

    Each row consists of prefixes shared with other rows, followed by tokens of its own. The buffers of own
    tokens have the length of the longest row.
    """

    def __init__(self, layers: int) -> None:
        super().__init__(layers=[RowLayer() for _ in range(layers)])
        self.shared_prefixes: list[SharedPrefix] = []
        """Prefixes in use, parents before children."""
        self.positions: Tensor = torch.empty(0)
        """Position of each column for the next step, shared prefixes first, int64 [active rows, columns]; greater
        than the position of any token for columns that the row must not attend to."""

    def columns(self, max_length: int) -> int:
        """Return the number of buffer columns for a maximum row length."""
        return -(-max_length // _ROW_COLUMN_MULTIPLE) * _ROW_COLUMN_MULTIPLE

    # Buffers that grew during a forward pass can be written to in inference mode only.
    @torch.inference_mode()
    def reserve(self, source: PathCache, rows: int, max_length: int, n_rows_to_copy: int) -> None:
        """Enlarge the buffers to ``rows`` rows of ``max_length`` tokens if necessary, copying the first rows.

        New buffers get the types of ``source``.
        """
        for layer, path in zip(self.layers, source.layers, strict=True):
            if not layer.is_initialized:
                layer.lazy_initialization(path.keys, path.values)
            if rows > layer.keys.shape[0] or max_length >= layer.keys.shape[2]:
                layer.resize(rows, self.columns(max_length + 1), n_rows_to_copy)

    @torch.inference_mode()
    def fill(self, row: int, source: PathCache, columns: Tensor) -> None:
        """Copy columns of a path cache, shape [length], into a row, in every layer."""
        for layer, path in zip(self.layers, source.layers, strict=True):
            layer.keys[row, :, : len(columns)] = path.keys[0].index_select(1, columns)
            layer.values[row, :, : len(columns)] = path.values[0].index_select(1, columns)

    @torch.inference_mode()
    def share(self, prefix: SharedPrefix, source: PathCache, columns: Tensor) -> None:
        """Copy columns of a path cache, shape [length], into a shared prefix, in every layer."""
        prefix.layers = [
            (path.keys[0].index_select(1, columns), path.values[0].index_select(1, columns)) for path in source.layers
        ]

    @torch.inference_mode()
    def move(self, source: int, target: int, columns: int) -> None:
        """Copy the first columns of a row over another row, in every layer."""
        for layer in self.layers:
            layer.keys[target, :, :columns] = layer.keys[source, :, :columns]
            layer.values[target, :, :columns] = layer.values[source, :, :columns]

    @torch.inference_mode()
    def prepare_step(
        self, unshared_lengths: Sequence[int], last_prefixes: Sequence[SharedPrefix | None], device: torch.device
    ) -> None:
        """Set the write column and the columns to which each active row attends for the next token.

        Args:
            unshared_lengths: Number of tokens of each row in the buffers.
            last_prefixes: Last shared prefix of each row; None if a row shares none.
            device: Device of the network.
        """
        rows, max_length = len(unshared_lengths), max(unshared_lengths)
        if max_length >= self.layers[0].keys.shape[2]:
            for layer in self.layers:
                layer.resize(rows, self.columns(max_length + 1), rows)
        write_columns = torch.tensor(unshared_lengths, dtype=torch.long, device=device)
        starts = torch.tensor(
            [0 if prefix is None else prefix.end for prefix in last_prefixes], dtype=torch.long, device=device
        )
        rows_by_prefix: dict[SharedPrefix, list[int]] = {prefix: [] for prefix in self.shared_prefixes}
        for row, prefix in enumerate(last_prefixes):
            while prefix is not None:
                rows_by_prefix[prefix].append(row)
                prefix = prefix.parent
        n_shared_columns = sum(len(prefix.tokens) for prefix in self.shared_prefixes)
        positions = torch.full(
            (rows, n_shared_columns + max_length + 1), _MASKED_POSITION, dtype=torch.long, device=device
        )
        positions[:, n_shared_columns:] = starts[:, None] + torch.arange(max_length + 1, device=device)
        rows_and_prefixes: list[tuple[Tensor | slice, SharedPrefix]] = []
        column = 0
        for prefix, rows_of_prefix in rows_by_prefix.items():
            row_indices = (
                slice(None)
                if len(rows_of_prefix) == rows
                else torch.tensor(rows_of_prefix, dtype=torch.long, device=device)
            )
            positions[row_indices, column : column + len(prefix.tokens)] = torch.arange(
                prefix.start, prefix.end, device=device
            )
            rows_and_prefixes.append((row_indices, prefix))
            column += len(prefix.tokens)
        self.positions = positions
        for layer_index, layer in enumerate(self.layers):
            layer.write_columns, layer.width = write_columns, max_length + 1
            layer.shared = tuple((row_indices, prefix.layers[layer_index]) for row_indices, prefix in rows_and_prefixes)


def shared_attention(
    module: torch.nn.Module,  # noqa: ARG001
    query: Tensor,
    key: SharedStates,
    value: SharedStates,
    attention_mask: Tensor,
    scaling: float,
    dropout: float = 0.0,  # noqa: ARG001
    **arguments: Any,
) -> tuple[Tensor, None]:
    """Compute attention of one token per row over shared prefixes, each read once, and over the row's own columns.

    The computation is in float32.

    Args:
        module: The layer; not used.
        query: Shape [rows, query heads, 1, width].
        key: Keys, with fewer heads than the query if query heads share keys.
        value: Values, with as many heads as the keys.
        attention_mask: Additive mask, [rows, 1, 1, columns], shared prefixes first.
        scaling: Factor by which the scores are multiplied.
        dropout: Not used.
        arguments: Further arguments of transformers, none of which may change the attention.

    Returns:
        Attended values [rows, 1, query heads, width], and None for the weights.

    Raises:
        ValueError: The model uses capped scores or attention sinks.
    """
    if arguments.get("softcap") is not None or arguments.get("s_aux") is not None:
        raise ValueError("capped scores and attention sinks are not supported with shared prefixes")
    rows, heads = len(query), key.row_states.shape[1]
    scaled_queries = (query.float() * scaling).view(rows, heads, -1, query.shape[-1])
    group_size = scaled_queries.shape[2]
    scores = attention_mask.float().expand(rows, heads, group_size, -1).clone()
    column = 0
    for row_indices, keys in key.shared:
        shared_products = scaled_queries[row_indices].transpose(0, 1).flatten(1, 2) @ keys.float().transpose(1, 2)
        scores[row_indices, :, :, column : column + keys.shape[1]] += shared_products.view(
            heads, -1, group_size, shared_products.shape[-1]
        ).transpose(0, 1)
        column += keys.shape[1]
    scores[..., column:] += scaled_queries @ key.row_states.float().transpose(2, 3)
    weights = scores.softmax(dim=-1)
    attention_output = weights[..., column:] @ value.row_states.float()
    column = 0
    for row_indices, values in value.shared:
        shared_products = (
            weights[row_indices, :, :, column : column + values.shape[1]].transpose(0, 1).flatten(1, 2) @ values.float()
        )
        attention_output[row_indices] += shared_products.view(heads, -1, group_size, values.shape[2]).transpose(0, 1)
        column += values.shape[1]
    return attention_output.flatten(1, 2)[:, None].to(query.dtype), None
