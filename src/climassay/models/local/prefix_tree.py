"""Which tokens to compute together, so that what sequences share at their beginning is computed once.

The sequences are put into a radix tree: a :class:`Segment` is a run of tokens that the same set of sequences has in
common. The tree is cut into steps. A :class:`Step` either makes the current path longer (a long shared beginning,
kept in the key-value cache) or computes many small branches side by side, as one packed row of tokens in which each
token sees only its own ancestors. Nothing is padded.

This module plans; it knows nothing of tensors.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


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
        found: list[Segment] = []
        waiting: list[tuple[_Node, int, int | None]] = [(self._root, self.held, None)]
        while waiting:
            node, start, parent = waiting.pop()
            if (node.last - node.first) * (node.end - start) >= saving:
                found.append(self._segment(node, start, node.end, parent))
                start, parent = node.end, len(found) - 1
            waiting.extend((child, start, parent) for child in node.children)
        return found

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
