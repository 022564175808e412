"""Sequences that are continued side by side, one token at a time.

Rows are not padded on the left: each keeps its own length, writes its next token after its own last one, and is shown
only its own columns. So a row can leave and another take its place at any time, and what a row computes does not
depend on its neighbours.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from climassay.models.local.caches import RowCache
from climassay.models.local.network import Network
from climassay.models.local.reading import Place, Reader, Reading, columns


class Admitted(NamedTuple):
    """A prompt that became the last row."""

    prompt: int
    """Its index among those offered."""
    logits: Tensor
    """Of the token after it, float32 [vocabulary]."""


class Rows(Protocol):
    """Rows numbered from 0 without gaps."""

    def admit(self, prompts: Sequence[Sequence[int]]) -> Iterator[Admitted]:
        """Compute prompts and append a row for each, in the order in which they come out."""

    def advance(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits of the next, float32 [rows, vocabulary]."""

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its number."""


class SharedRows:
    """Rows in one batch, for models whose layers are all attention."""

    def __init__(self, network: Network, reader: Reader) -> None:
        self._network, self._reader = network, reader
        self._cache = RowCache(network.layers)
        self._lengths: list[int] = []

    def admit(self, prompts: Sequence[Sequence[int]]) -> Iterator[Admitted]:
        """Compute prompts, what they share once, and copy each one's keys and values into a row of its own."""
        for reading in self._reader.read(prompts, [[len(prompt) - 1] for prompt in prompts]):
            for place in reading.places:
                self._cache.fill(len(self._lengths), self._reader.cache, self._columns(reading, place))
                self._lengths.append(len(prompts[place.sequence]))
                yield Admitted(place.sequence, reading.logits[place.row])

    def advance(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits of the next, float32 [rows, vocabulary]."""
        self._cache.aim(self._lengths, self._network.device)
        logits = self._network.continue_rows(tokens, self._lengths, self._cache)
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        last = len(self._lengths) - 1
        if row != last:
            self._cache.move(last, row, self._lengths[last])
            self._lengths[row] = self._lengths[last]
        self._lengths.pop()
        if not self._lengths:
            self._cache = RowCache(self._network.layers)

    def _columns(self, reading: Reading, place: Place) -> Tensor:
        assert reading.step is not None
        segment = next(
            segment
            for segment in reading.step.segments
            if place.sequence in segment.sequences and segment.start <= place.position < segment.end
        )
        return torch.tensor(columns(reading.step, segment), dtype=torch.long, device=self._network.device)


class PlainRows:
    """Rows computed one after the other, for every other kind of model.

    With transformers' own cache for the kind of model, or all from the beginning where the model takes no cache.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._rows: list[_PlainRow] = []

    def admit(self, prompts: Sequence[Sequence[int]]) -> Iterator[Admitted]:
        """Compute prompts one by one."""
        from transformers import DynamicCache

        for index, prompt in enumerate(prompts):
            cache = DynamicCache(config=self._network.model.config) if self._network.can_continue else None
            row = _PlainRow([], cache)
            self._rows.append(row)
            yield Admitted(index, self._add(row, prompt)[0])

    def advance(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits of the next, float32 [rows, vocabulary]."""
        return torch.cat([self._add(row, [token]) for row, token in zip(self._rows, tokens, strict=True)])

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        self._rows[row] = self._rows[-1]
        self._rows.pop()

    def _add(self, row: "_PlainRow", tokens: Sequence[int]) -> Tensor:
        row.tokens.extend(tokens)
        if row.cache is None:
            return self._network.whole(row.tokens, [len(row.tokens) - 1]).logits
        return self._network.continue_plainly(tokens, row.cache)


class _PlainRow(NamedTuple):
    tokens: list[int]
    cache: Any


def rows_for(network: Network, reader: Reader) -> Rows:
    """The rows that suit a model."""
    return SharedRows(network, reader) if reader.shares else PlainRows(network)
