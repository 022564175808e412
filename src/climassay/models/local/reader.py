"""Read logits and hidden states of many sequences, computing shared prefixes once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from climassay.models.contract import Work
from climassay.models.local.network import Network, StateRequest
from climassay.models.local.prefix_tree import ForwardStep, PathCache, PrefixTree, Segment

_MAX_SEGMENT = 4096
_MAX_PACKED_ON_CPU = 384
_MAX_PACKED_ON_GPU = 4096
"""Number of tokens packed into one step on a GPU. A larger number would use the GPU better, but compute attention
between unrelated branches."""


@dataclass(frozen=True, slots=True)
class TokenPosition:
    """Position in a sequence, and the row of a :class:`StepReading` that holds its result."""

    sequence: int
    position: int
    row: int


@dataclass(frozen=True, slots=True)
class StepReading:
    """Logits and hidden states that one step computed."""

    positions: tuple[TokenPosition, ...]
    """Positions of the logits. Several share a row if their sequences are equal up to that position."""
    logits: Tensor
    """Logits of the next token, float32 [rows, vocabulary]."""
    state_positions: tuple[TokenPosition, ...]
    """Positions of the hidden states, each with its row in ``states``."""
    states: Tensor | None
    """Hidden states, float32 [rows, layers, width]; None if none were requested."""
    step: ForwardStep | None
    """Step that was computed; None if prefixes are not shared."""


class SequenceReader:
    """Reader of logits and hidden states of token sequences.

    Common prefixes are computed once if all layers are full or sliding attention and a test gives the same results as
    plain computation. Other models compute one sequence at a time.
    """

    def __init__(self, network: Network, *, max_packed: int | None = None) -> None:
        self.network = network
        self.max_packed = max_packed or (_MAX_PACKED_ON_CPU if network.device.type == "cpu" else _MAX_PACKED_ON_GPU)
        self.work = Work(0, 0)
        """Forward passes and tokens computed so far."""
        self.cache = PathCache(network.layers)
        """Keys and values of the path and of the last step."""
        self._shares_prefixes: bool | None = None

    @property
    def shares_prefixes(self) -> bool:
        """True if prefixes are shared; tested on first use."""
        if self._shares_prefixes is None:
            self._shares_prefixes = self.network.attention is not None and _is_sharing_exact(self.network)
        return self._shares_prefixes

    def release(self) -> None:
        """Free the memory of the cache."""
        self.cache = PathCache(self.network.layers)

    def read(
        self,
        sequences: Sequence[Sequence[int]],
        logit_positions: Sequence[Sequence[int]],
        *,
        states: Sequence[Sequence[int]] | None = None,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
    ) -> Iterator[StepReading]:
        """Compute sequences and yield the results at the requested positions.

        Args:
            sequences: Token ids; no sequence is empty.
            logit_positions: Positions of the logits to compute, for each sequence, from 0; at least one each.
            states: Positions of the hidden states to read, for each sequence; None for none.
            layers: Layer numbers of the hidden states, as in transformers.
            token_budget: Maximum number of tokens per forward pass; by default chosen by device. A model that cannot
                share prefixes ignores it and computes each sequence in one pass.

        Yields:
            A reading per step, before the next step is computed; every requested position is in exactly one reading.
        """
        if not sequences:
            return
        if not self.shares_prefixes:
            yield from self._read_separately(sequences, logit_positions, states, layers)
            return
        first_position = min(min(positions) for positions in (*logit_positions, *(states or ())) if positions)
        tree = PrefixTree(sequences, cached=self.cache.tokens[:first_position])
        logits_by_sequence = [frozenset(positions) for positions in logit_positions]
        states_by_sequence = None if states is None else [frozenset(positions) for positions in states]
        max_packed, max_segment = token_budget or self.max_packed, min(token_budget or _MAX_SEGMENT, _MAX_SEGMENT)
        for step in tree.steps(max_packed=max_packed, max_segment=max_segment):
            indices, token_positions = _positions_in_step(step, logits_by_sequence)
            state_indices, state_token_positions = (
                ([], []) if states_by_sequence is None else _positions_in_step(step, states_by_sequence)
            )
            self.cache.truncate(step.n_cached)
            state_request = StateRequest(state_indices, layers) if state_token_positions else None
            output = self.network.compute_step(step, self.cache, indices, state_request)
            self._add_work(step.size)
            if len(step.segments) == 1:
                self.cache.tokens += step.segments[0].tokens
            if token_positions or state_token_positions:
                yield StepReading(
                    tuple(token_positions), output.logits, tuple(state_token_positions), output.states, step
                )

    def _read_separately(
        self,
        sequences: Sequence[Sequence[int]],
        logit_positions: Sequence[Sequence[int]],
        states: Sequence[Sequence[int]] | None,
        layers: Sequence[int],
    ) -> Iterator[StepReading]:
        for index, (tokens, positions) in enumerate(zip(sequences, logit_positions, strict=True)):
            state_positions = () if states is None else states[index]
            output = self.network.compute_sequence(
                tokens, positions, StateRequest(state_positions, layers) if state_positions else None
            )
            self._add_work(len(tokens))
            token_positions, state_token_positions = (
                tuple(TokenPosition(index, position, row) for row, position in enumerate(requested_positions))
                for requested_positions in (positions, state_positions)
            )
            yield StepReading(token_positions, output.logits, state_token_positions, output.states, None)

    def _add_work(self, tokens: int) -> None:
        self.work = Work(self.work.passes + 1, self.work.tokens + tokens)


def _positions_in_step(
    step: ForwardStep, positions_by_sequence: Sequence[frozenset[int]]
) -> tuple[list[int], list[TokenPosition]]:
    """Return the distinct indices of packed tokens to read in a step, and the result row of each requested position."""
    indices: list[int] = []
    token_positions: list[TokenPosition] = []
    offset = 0
    for segment in step.segments:
        rows: dict[int, int] = {}
        for sequence in segment.sequences:
            for position in positions_by_sequence[sequence]:
                if segment.start <= position < segment.end:
                    if position not in rows:
                        rows[position] = len(indices)
                        indices.append(offset + position - segment.start)
                    token_positions.append(TokenPosition(sequence, position, rows[position]))
        offset += len(segment.tokens)
    return indices, token_positions


def _is_sharing_exact(network: Network) -> bool:
    """Return whether computation with shared prefixes equals plain computation on short sequences, up to rounding."""
    ids = [(7919 * number + 13) % network.vocabulary for number in range(24)]
    sequences = [ids[:12], [*ids[:12], *ids[20:24]], [*ids[:8], *ids[14:20]], [*ids[:8], *ids[14:17], *ids[2:5]]]
    reader = SequenceReader(network, max_packed=8)
    reader._shares_prefixes = True
    try:
        shared_logits = torch.empty(len(sequences), network.vocabulary)
        for reading in reader.read(sequences, [[len(tokens) - 1] for tokens in sequences]):
            for token_position in reading.positions:
                shared_logits[token_position.sequence] = reading.logits[token_position.row].cpu()
        plain_logits = torch.cat(
            [network.compute_sequence(tokens, [len(tokens) - 1]).logits.cpu() for tokens in sequences]
        )
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
        return False
    return same_distributions(shared_logits, plain_logits, network.dtype)


def same_distributions(first: Tensor, second: Tensor, dtype: torch.dtype) -> bool:
    """Return whether logits [rows, vocabulary] of two computations differ only by rounding."""
    difference = (first.softmax(-1) - second.softmax(-1)).abs().max()
    return bool(difference < (1e-4 if dtype == torch.float32 else 0.1))


def cache_columns(step: ForwardStep, segment: Segment) -> list[int]:
    """Return the columns of the path cache that hold a segment and its ancestors after a step, in order."""
    starts = [step.n_cached]
    for step_segment in step.segments:
        starts.append(starts[-1] + len(step_segment.tokens))
    ranges: list[range] = []
    index: int | None = step.segments.index(segment)
    while index is not None:
        ranges.append(range(starts[index], starts[index + 1]))
        index = step.segments[index].parent
    return [*range(step.n_cached), *(column for columns in reversed(ranges) for column in columns)]
