"""Which tokens to compute together, so that what sequences share is computed once, and the caches that keep it.

The sequences are put into a radix tree: a :class:`Segment` is a run of tokens that the same set of sequences has in
common. The tree is cut into steps. A :class:`Step` either makes the current path longer (a long shared beginning,
kept in the key-value cache) or computes many small branches side by side, as one packed row of tokens in which each
token sees only its own ancestors. Nothing is padded.

Keys and values are kept in two ways: along a path of shared tokens (:class:`PathCache`), and row by row
(:class:`RowCache`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of tokens computed once for all sequences that contain it."""

    tokens: tuple[int, ...]
    start: int
    """Position of the first token in its sequences, from 0."""
    parent: int | None
    """Index, in the same step, of the segment that comes before; None when that is the path."""
    sequences: tuple[int, ...]
    """Indices of the sequences that contain the segment."""

    @property
    def end(self) -> int:
        """Position after the last token."""
        return self.start + len(self.tokens)


@dataclass(frozen=True, slots=True)
class Step:
    """Segments computed in one forward pass."""

    kept: int
    """Number of tokens of the path that come before all of them; what the path holds beyond is forgotten."""
    segments: tuple[Segment, ...]
    """Parents before their children. A segment that is alone becomes part of the path."""

    @property
    def size(self) -> int:
        """Number of tokens to compute."""
        return sum(len(segment.tokens) for segment in self.segments)


@dataclass(slots=True)
class _Node:
    start: int
    end: int
    first: int
    """Place, in sorted order, of the first sequence that contains the node."""
    last: int = -1
    """Place of the last one."""
    children: list["_Node"] = field(default_factory=list)
    size: int = 0
    """Tokens in the node and in all below it."""


class PrefixTree:
    """The radix tree of some token sequences.

    Args:
        sequences: Token ids; none empty; equal ones are computed once.
        held: Tokens of a path that the cache holds already; what *all* sequences share with it is left out.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], *, held: Sequence[int] = ()) -> None:
        self._order = sorted(range(len(sequences)), key=lambda index: tuple(sequences[index]))
        self._rows = [tuple(sequences[index]) for index in self._order]
        common = self._rows[0][: common_length(self._rows[0], self._rows[-1])] if self._rows else ()
        self.held = common_length(held, common)
        """Number of tokens left out because the cache holds them."""
        self._root = self._build()

    def steps(self, *, pack: int, longest: int) -> Iterator[Step]:
        """Cut the work into steps, in the order in which they must be computed.

        Args:
            pack: Branches that have up to this many tokens together are computed side by side in one step.
            longest: A longer run of tokens is cut into several steps.

        Yields:
            Every position of every sequence, except those held, in exactly one segment of one step.
        """
        yield from self._packs(self._root, pack)
        waiting = _large(self._root, pack)
        while waiting:
            node = waiting.pop()
            for start in range(node.start, node.end, longest):
                yield Step(start, (self._segment(node, start, min(start + longest, node.end), None),))
            yield from self._packs(node, pack)
            waiting.extend(_large(node, pack))

    def shared(self, saving: int) -> list[Segment]:
        """Runs of tokens that are worth being kept once for the sequences that begin with them.

        Args:
            saving: Fewest tokens that a run must save: its length times the number of its sequences but one.

        Returns:
            Segments, parents before children; ``parent`` is an index into the list.
        """
        results: list[Segment] = []
        waiting: list[tuple[_Node, int, int | None]] = [(self._root, self.held, None)]
        while waiting:
            node, start, parent = waiting.pop()
            if (node.last - node.first) * (node.end - start) >= saving:
                results.append(self._segment(node, start, node.end, parent))
                start, parent = node.end, len(results) - 1
            waiting.extend((child, start, parent) for child in node.children)
        return results

    def _build(self) -> _Node:
        """Insert the sorted rows one by one; ``spine`` holds the nodes on the way to the row inserted last."""
        root = _Node(self.held, self.held, 0)
        spine = [root]
        for place, row in enumerate(self._rows):
            shared = common_length(self._rows[place - 1], row) if place else self.held
            cut = None
            while spine[-1].end > shared:
                cut = spine.pop()
                cut.last = place - 1
            if cut is not None and spine[-1].end < shared:
                # The upper part takes the place of the parent's youngest child.
                upper = _Node(cut.start, shared, cut.first, children=[cut])
                cut.start = shared
                spine[-1].children[-1] = upper
                spine.append(upper)
            if shared < len(row):
                leaf = _Node(shared, len(row), place)
                spine[-1].children.append(leaf)
                spine.append(leaf)
        for node in spine:
            node.last = len(self._rows) - 1
        # Children before parents, without recursion: a path may be thousands of nodes long.
        nodes = [root]
        for node in nodes:
            nodes.extend(node.children)
        for node in reversed(nodes):
            node.size = node.end - node.start + sum(child.size for child in node.children)
        return root

    def _packs(self, parent: _Node, pack: int) -> Iterator[Step]:
        """Steps for the small branches below a node that is the end of the path."""
        group: list[_Node] = []
        for node in parent.children:
            if node.size > pack:
                continue
            if group and sum(member.size for member in group) + node.size > pack:
                yield self._packed(parent.end, group)
                group = []
            group.append(node)
        if group:
            yield self._packed(parent.end, group)

    def _packed(self, kept: int, nodes: Iterable[_Node]) -> Step:
        segments: list[Segment] = []
        waiting: list[tuple[_Node, int | None]] = [(node, None) for node in nodes]
        while waiting:
            node, parent = waiting.pop()
            waiting.extend((child, len(segments)) for child in node.children)
            segments.append(self._segment(node, node.start, node.end, parent))
        return Step(kept, tuple(segments))

    def _segment(self, node: _Node, start: int, end: int, parent: int | None) -> Segment:
        sequences = tuple(self._order[node.first : node.last + 1])
        return Segment(self._rows[node.first][start:end], start, parent, sequences)


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Number of tokens, or characters, that two sequences share at their beginning."""
    limit = min(len(first), len(second))
    if first[:limit] == second[:limit]:
        return limit
    return next((place for place in range(limit) if first[place] != second[place]), limit)


def _large(parent: _Node, pack: int) -> list[_Node]:
    return [node for node in reversed(parent.children) if node.size > pack]


_GROWTH = 256
"""Columns by which the buffer of a path grows at least."""
_ROW_GROWTH = 64
"""Columns by which the buffer of rows grows, so that it is not copied at every token."""
_UNSEEN = 2**31
"""Position given to a column that a row must not look at: later than every token."""


class _Layer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer in buffers [rows, heads, columns, width]."""

    is_sliding = False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Start with empty buffers of the right widths and types."""
        self.keys = key_states.new_empty((0, key_states.shape[1], 0, key_states.shape[3]))
        self.values = value_states.new_empty((0, value_states.shape[1], 0, value_states.shape[3]))
        self.is_initialized = True

    def resize(self, rows: int, columns: int, keep: int) -> None:
        """Replace the buffers by others of so many rows and columns; of the first ``keep`` rows stays what fits.

        They are zero where nothing was written: a masked NaN would still be a NaN.
        """
        for name in ("keys", "values"):
            buffer: Tensor = getattr(self, name)
            resized = buffer.new_zeros((rows, buffer.shape[1], columns, buffer.shape[3]))
            both = min(columns, buffer.shape[2])
            resized[:keep, :, :both] = buffer[:keep, :, :both]
            setattr(self, name, resized)

    def get_max_length(self) -> int:
        """No limit."""
        return -1


class PathLayer(_Layer):
    """One layer's keys and values of the path, and after them those of the step computed last."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = 0
        """Columns that stay; the next step is written after them."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write the step's keys and values, shape [1, heads, step, head width], after the path; return all of both."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.kept + key_states.shape[2]
        have = self.keys.shape[2]
        if end > have:
            self.resize(1, max(end, have + have // 4, _GROWTH), min(1, self.keys.shape[0]))
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


@dataclass(eq=False, slots=True)
class SharedRun:
    """A run of tokens at the beginning of several rows, whose keys and values are kept once."""

    tokens: tuple[int, ...]
    start: int
    """Position of the first token in its rows."""
    parent: "SharedRun | None"
    """What comes before it in all of its rows."""
    rows: int = 0
    """Rows that begin with it."""
    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Keys and values [heads, length, width] of each layer; empty until they are computed."""

    @property
    def end(self) -> int:
        """Position after the last token."""
        return self.start + len(self.tokens)


class Stored(NamedTuple):
    """Keys, or values, of a layer as rows with shared beginnings hold them; :func:`shared_attention` reads them."""

    shared: tuple[tuple[Tensor | slice, Tensor], ...]
    """For each shared run the rows that begin with it, and its tensor [heads, length, width]."""
    own: Tensor
    """What each row holds alone, [rows, heads, columns, width]."""


class RowLayer(_Layer):
    """One layer's keys and values of many sequences; each writes its next token at its own place."""

    def __init__(self) -> None:
        super().__init__()
        self.places: Tensor = torch.empty(0, dtype=torch.long)
        """Column at which each active row writes, shape [active rows]."""
        self.width = 0
        """Columns of the buffers that the active rows look at."""
        self.shared: tuple[tuple[Tensor | slice, tuple[Tensor, Tensor]], ...] = ()
        """Which active rows begin with which shared keys and values."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Write one token for each active row, shape [active rows, heads, 1, head width]; return what they look at.

        Returns:
            Keys and values: tensors of shape [active rows, heads, width, head width], or :class:`Stored` where some
            rows share their beginnings.
        """
        active = key_states.shape[0]
        # Indexed, not scattered: scatter_ copies the buffer where bfloat16 is concerned.
        rows = torch.arange(active, device=self.places.device)
        self.keys[rows, :, self.places] = key_states[:, :, 0]
        self.values[rows, :, self.places] = value_states[:, :, 0]
        keys, values = self.keys[:active, :, : self.width], self.values[:active, :, : self.width]
        if not self.shared:
            return keys, values
        return (
            Stored(tuple((rows, held[0]) for rows, held in self.shared), keys),
            Stored(tuple((rows, held[1]) for rows, held in self.shared), values),
        )

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002
        """Columns that a query sees, and the first of them."""
        return self.width, 0

    def get_seq_length(self) -> int:
        """Tokens seen before this step by the longest row."""
        return max(self.width - 1, 0)


class RowCache(Cache):  # type: ignore[misc]
    """Cache of many sequences that are continued one token at a time.

    A row consists of the shared runs that it begins with and of what it holds alone, in a buffer that is as long as the
    longest row needs.
    """

    def __init__(self, layers: int) -> None:
        super().__init__(layers=[RowLayer() for _ in range(layers)])
        self.runs: list[SharedRun] = []
        """Shared runs in use, parents before their children."""
        self.positions: Tensor = torch.empty(0)
        """Position of each column that the next step looks at, shared runs first, int64 [active rows, columns]; behind
        all tokens where a row must not look."""

    def columns(self, longest: int) -> int:
        """Columns of a buffer whose longest row holds so many tokens of its own."""
        return -(-longest // _ROW_GROWTH) * _ROW_GROWTH

    # Buffers that grew during a forward pass can be written to in inference mode only.
    @torch.inference_mode()
    def reserve(self, source: PathCache, rows: int, longest: int, keep: int) -> None:
        """Make room for rows, the longest of which holds so many tokens of its own; the first ``keep`` rows stay."""
        for layer, path in zip(self.layers, source.layers, strict=True):
            if not layer.is_initialized:
                layer.lazy_initialization(path.keys, path.values)
            if rows > layer.keys.shape[0] or longest >= layer.keys.shape[2]:
                layer.resize(rows, self.columns(longest + 1), keep)

    @torch.inference_mode()
    def fill(self, row: int, source: PathCache, columns: Tensor) -> None:
        """Copy columns of a path cache, shape [length], into a row, in every layer."""
        for layer, path in zip(self.layers, source.layers, strict=True):
            layer.keys[row, :, : len(columns)] = path.keys[0].index_select(1, columns)
            layer.values[row, :, : len(columns)] = path.values[0].index_select(1, columns)

    @torch.inference_mode()
    def share(self, run: SharedRun, source: PathCache, columns: Tensor) -> None:
        """Copy columns of a path cache, shape [length], into a shared run, in every layer."""
        run.layers = [
            (path.keys[0].index_select(1, columns), path.values[0].index_select(1, columns)) for path in source.layers
        ]

    @torch.inference_mode()
    def move(self, source: int, target: int, columns: int) -> None:
        """Copy one row's first columns over another row, in every layer."""
        for layer in self.layers:
            layer.keys[target, :, :columns] = layer.keys[source, :, :columns]
            layer.values[target, :, :columns] = layer.values[source, :, :columns]

    @torch.inference_mode()
    def aim(self, own: Sequence[int], last: Sequence[SharedRun | None], device: torch.device) -> None:
        """Say where the next token of each active row goes, and what it looks at.

        Args:
            own: Tokens that each row holds in the buffers.
            last: The last shared run that each row begins with.
            device: Device of the network.
        """
        rows, longest = len(own), max(own)
        if longest >= self.layers[0].keys.shape[2]:
            for layer in self.layers:
                layer.resize(rows, self.columns(longest + 1), rows)
        places = torch.tensor(own, dtype=torch.long, device=device)
        starts = torch.tensor([0 if run is None else run.end for run in last], dtype=torch.long, device=device)
        members: dict[SharedRun, list[int]] = {run: [] for run in self.runs}
        for row, run in enumerate(last):
            while run is not None:
                members[run].append(row)
                run = run.parent
        width = sum(len(run.tokens) for run in self.runs)
        positions = torch.full((rows, width + longest + 1), _UNSEEN, dtype=torch.long, device=device)
        positions[:, width:] = starts[:, None] + torch.arange(longest + 1, device=device)
        shared: list[tuple[Tensor | slice, SharedRun]] = []
        column = 0
        for run, chosen in members.items():
            where = slice(None) if len(chosen) == rows else torch.tensor(chosen, dtype=torch.long, device=device)
            positions[where, column : column + len(run.tokens)] = torch.arange(run.start, run.end, device=device)
            shared.append((where, run))
            column += len(run.tokens)
        self.positions = positions
        for number, layer in enumerate(self.layers):
            layer.places, layer.width = places, longest + 1
            layer.shared = tuple((where, run.layers[number]) for where, run in shared)


def shared_attention(
    module: torch.nn.Module,  # noqa: ARG001
    query: Tensor,
    key: Stored,
    value: Stored,
    attention_mask: Tensor,
    scaling: float,
    dropout: float = 0.0,  # noqa: ARG001
    **others: Any,
) -> tuple[Tensor, None]:
    """Attention of one token per row over shared runs, each read once for all its rows, and over the row's own columns.

    Computed in float32, whatever the type of keys and values.

    Args:
        module: The layer; not used.
        query: Shape [rows, query heads, 1, width].
        key: Keys, with fewer heads than the query has where several query heads share one.
        value: Values, likewise.
        attention_mask: What is added to the scores, [rows, 1, 1, columns], shared runs first.
        scaling: Factor of the scores.
        dropout: Not used: nothing is trained here.
        others: Further arguments of transformers, none of which may change the attention.

    Returns:
        Attended values [rows, 1, query heads, width], and None for the weights.

    Raises:
        ValueError: The model wants capped scores or attention sinks.
    """
    if others.get("softcap") is not None or others.get("s_aux") is not None:
        raise ValueError("capped scores and attention sinks are not computed over shared runs")
    rows, heads = len(query), key.own.shape[1]
    asked = (query.float() * scaling).view(rows, heads, -1, query.shape[-1])
    group = asked.shape[2]
    scores = attention_mask.float().expand(rows, heads, group, -1).clone()
    column = 0
    for where, keys in key.shared:
        some = asked[where].transpose(0, 1).flatten(1, 2) @ keys.float().transpose(1, 2)
        scores[where, :, :, column : column + keys.shape[1]] += some.view(heads, -1, group, some.shape[-1]).transpose(
            0, 1
        )
        column += keys.shape[1]
    scores[..., column:] += asked @ key.own.float().transpose(2, 3)
    weights = scores.softmax(dim=-1)
    attended = weights[..., column:] @ value.own.float()
    column = 0
    for where, values in value.shared:
        some = weights[where, :, :, column : column + values.shape[1]].transpose(0, 1).flatten(1, 2) @ values.float()
        attended[where] += some.view(heads, -1, group, values.shape[2]).transpose(0, 1)
        column += values.shape[1]
    return attended.flatten(1, 2)[:, None].to(query.dtype), None
