"""Read logits and hidden states at chosen places of many sequences; what they share is computed once.

Everything that a local model does with given text stands on :meth:`Reader.read`: scoring options, harvesting hidden
states, and computing the prompts of a generation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from climassay.models.contract import Work
from climassay.models.local.caches import PathCache
from climassay.models.local.network import Network, StatesWanted
from climassay.models.local.prefix_tree import PrefixTree, Segment, Step

_LONGEST_RUN = 4096
_PACK_ON_CPU = 384
_PACK_ON_GPU = 4096
"""Tokens packed into one step: enough to keep the machine busy, while attention between strangers is wasted work."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a sequence that was read, and the row of the reading in which its result stands."""

    sequence: int
    position: int
    row: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Results of one step."""

    places: tuple[Place, ...]
    """Where logits were read. Several places share a row when their sequences are the same up to there."""
    logits: Tensor
    """float32 [rows, vocabulary]: of the token after the place."""
    state_places: tuple[Place, ...]
    """Where hidden states were read; their rows are those of ``states``."""
    states: Tensor | None
    """float32 [rows, layers, width]; None when none were asked for."""
    step: Step | None
    """None when the model was computed without sharing."""


class Reader:
    """Computes token sequences on a network.

    A model whose layers are all (full or sliding) attention is computed with shared beginnings, after a check on a
    few tokens that this gives what the plain computation gives; every other model one sequence at a time.
    """

    def __init__(self, network: Network, *, pack: int | None = None) -> None:
        self.network = network
        self.pack = pack or (_PACK_ON_CPU if network.device.type == "cpu" else _PACK_ON_GPU)
        self.work = Work(0, 0)
        """Forward passes and tokens computed so far."""
        self.cache = PathCache(network.layers)
        """Keys and values of the path and of the last step."""
        self._shares: bool | None = None

    @property
    def shares(self) -> bool:
        """Whether beginnings are shared; found out at first use."""
        if self._shares is None:
            self._shares = self.network.attention is not None and _agrees(self.network)
        return self._shares

    def release(self) -> None:
        """Give back the memory of the cache; it is made anew when needed."""
        self.cache = PathCache(self.network.layers)

    def read(
        self,
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[Sequence[int]],
        *,
        states: Sequence[Sequence[int]] | None = None,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
    ) -> Iterator[Reading]:
        """Compute sequences and give the results at the wanted places.

        Args:
            sequences: Token ids, none empty.
            wanted: For each sequence the positions at which logits are wanted, from 0; at least one for each.
            states: For each sequence the positions at which hidden states are wanted; None for none at all.
            layers: Which hidden states, numbered as transformers does.
            token_budget: Maximum number of tokens in one forward pass; by default what suits the device. A model that
                cannot share beginnings computes each sequence whole, whatever the budget.

        Yields:
            A reading for each step, before the next one is computed. Every wanted place is in exactly one of them.
        """
        if not sequences:
            return
        if not self.shares:
            yield from self._read_plainly(sequences, wanted, states, layers)
            return
        first = min(min(positions) for positions in (*wanted, *(states or ())) if positions)
        tree = PrefixTree(sequences, held=self.cache.tokens[:first])
        wanted_logits = [frozenset(positions) for positions in wanted]
        wanted_states = None if states is None else [frozenset(positions) for positions in states]
        pack, longest = token_budget or self.pack, min(token_budget or _LONGEST_RUN, _LONGEST_RUN)
        for step in tree.steps(pack=pack, longest=longest):
            indices, places = _places(step, wanted_logits)
            state_indices, state_places = ([], []) if wanted_states is None else _places(step, wanted_states)
            self.cache.keep(step.kept)
            states_wanted = StatesWanted(state_indices, layers) if state_places else None
            output = self.network.step(step, self.cache, indices, states_wanted)
            self._count(step.size)
            if len(step.segments) == 1:
                self.cache.tokens += step.segments[0].tokens
            if places or state_places:
                yield Reading(tuple(places), output.logits, tuple(state_places), output.states, step)

    def _read_plainly(
        self,
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[Sequence[int]],
        states: Sequence[Sequence[int]] | None,
        layers: Sequence[int],
    ) -> Iterator[Reading]:
        for index, (tokens, positions) in enumerate(zip(sequences, wanted, strict=True)):
            at = () if states is None else states[index]
            output = self.network.whole(tokens, positions, StatesWanted(at, layers) if at else None)
            self._count(len(tokens))
            places, state_places = (
                tuple(Place(index, position, row) for row, position in enumerate(some)) for some in (positions, at)
            )
            yield Reading(places, output.logits, state_places, output.states, None)

    def _count(self, tokens: int) -> None:
        self.work = Work(self.work.passes + 1, self.work.tokens + tokens)


def columns(step: Step, segment: Segment) -> list[int]:
    """Columns of the path cache, after a step, that hold a segment and all that comes before it, in order."""
    starts = [step.kept]
    for other in step.segments:
        starts.append(starts[-1] + len(other.tokens))
    runs: list[range] = []
    index: int | None = step.segments.index(segment)
    while index is not None:
        runs.append(range(starts[index], starts[index + 1]))
        index = step.segments[index].parent
    return [*range(step.kept), *(column for run in reversed(runs) for column in run)]


def _places(step: Step, wanted: Sequence[frozenset[int]]) -> tuple[list[int], list[Place]]:
    """Packed indices to read in a step, each once, and the places that they answer."""
    indices: list[int] = []
    places: list[Place] = []
    offset = 0
    for segment in step.segments:
        rows: dict[int, int] = {}
        for sequence in segment.sequences:
            for position in wanted[sequence]:
                if segment.start <= position < segment.end:
                    if position not in rows:
                        rows[position] = len(indices)
                        indices.append(offset + position - segment.start)
                    places.append(Place(sequence, position, rows[position]))
        offset += len(segment.tokens)
    return indices, places


def _agrees(network: Network) -> bool:
    """Compare shared with plain computation on a few short sequences; an architecture may do more than attend."""
    ids = [(7919 * number + 13) % network.vocabulary for number in range(24)]
    sequences = [ids[:12], [*ids[:12], *ids[20:24]], [*ids[:8], *ids[14:20]], [*ids[:8], *ids[14:17], *ids[2:5]]]
    reader = Reader(network, pack=8)
    reader._shares = True
    try:
        shared = torch.empty(len(sequences), network.vocabulary)
        for reading in reader.read(sequences, [[len(tokens) - 1] for tokens in sequences]):
            for place in reading.places:
                shared[place.sequence] = reading.logits[place.row].cpu()
        plain = torch.cat([network.whole(tokens, [len(tokens) - 1]).logits.cpu() for tokens in sequences])
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
        return False
    return same_distributions(shared, plain, network.dtype)


def same_distributions(first: Tensor, second: Tensor, dtype: torch.dtype) -> bool:
    """Whether logits [rows, vocabulary] of two ways of computing differ by the rounding of a type only."""
    difference = (first.softmax(-1) - second.softmax(-1)).abs().max()
    return bool(difference < (1e-4 if dtype == torch.float32 else 0.1))
