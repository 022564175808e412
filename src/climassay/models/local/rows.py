"""Sequences that are continued side by side, one token at a time.

Rows are not padded on the left: each keeps its own length, writes its next token after its own last one, and is shown
only its own columns. So a row can leave and another take its place at any time, and what a row computes does not
depend on its neighbours.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from climassay.models.local.caches import RowCache, SharedRun
from climassay.models.local.forest import Forest
from climassay.models.local.network import Network
from climassay.models.local.reading import Place, Reader, Reading, columns, same_distributions

_WORTH_SHARING = 256
"""Tokens that a shared run must save: reading it apart costs a few small operations a layer at every step."""


class Admitted(NamedTuple):
    """A prompt that became the last row."""

    prompt: int
    """Its index among those offered."""
    logits: Tensor
    """Of the token after it, float32 [vocabulary]."""


class Rows(Protocol):
    """Rows numbered from 0 without gaps."""

    def tokens(self, prompts: Sequence[Sequence[int]] = (), room: int = 1) -> int:
        """Tokens whose keys and values are held when these prompts are rows too, and each row has room for more."""

    def admit(self, prompts: Sequence[Sequence[int]]) -> Iterator[Admitted]:
        """Compute prompts and append a row for each, in the order in which they come out."""

    def advance(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits of the next, float32 [rows, vocabulary]."""

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its number."""


class SharedRows:
    """Rows in one batch, for models whose layers are all attention; long beginnings that rows share are kept once."""

    def __init__(self, network: Network, reader: Reader, *, saving: int | None = _WORTH_SHARING) -> None:
        """Start without rows.

        Args:
            network: The model.
            reader: Computes the prompts.
            saving: Tokens that a shared run must save; None keeps every row for itself.
        """
        self._network, self._reader, self._saving = network, reader, saving
        self._cache = RowCache(network.layers)
        self._lengths: list[int] = []
        self._runs: list[SharedRun | None] = []
        """The last shared run that each row begins with."""

    def tokens(self, prompts: Sequence[Sequence[int]] = (), room: int = 1) -> int:
        """Tokens whose keys and values are held when these prompts are rows too, and each row has room for more."""
        runs = self._plan(prompts)
        new = {run for last in runs for run in _chain(last) if not run.layers}
        own = [*self._own(), *map(_own_length, map(len, prompts), runs)]
        return len(own) * self._cache.columns(max(own, default=0) + room) + sum(
            len(run.tokens) for run in (*self._cache.runs, *new)
        )

    def admit(self, prompts: Sequence[Sequence[int]]) -> Iterator[Admitted]:
        """Compute prompts, what they share once, and copy each one's keys and values into a row of its own."""
        runs = self._plan(prompts)
        longest = max(*map(_own_length, map(len, prompts), runs), 0, *self._own())
        rows = len(self._lengths) + len(prompts)
        for reading in self._reader.read(prompts, [[len(prompt) - 1] for prompt in prompts]):
            for place in reading.places:
                row, last, cache = len(self._lengths), runs[place.sequence], self._reader.cache
                self._cache.reserve(cache, rows, longest, row)
                columns = self._columns(reading, place)
                for run in _chain(last):
                    if not run.layers:
                        self._cache.share(run, cache, columns[run.start : run.end])
                        self._cache.runs.append(run)
                    run.rows += 1
                self._cache.fill(row, cache, columns[0 if last is None else last.end :])
                self._lengths.append(len(prompts[place.sequence]))
                self._runs.append(last)
                yield Admitted(place.sequence, reading.logits[place.row])

    def advance(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits of the next, float32 [rows, vocabulary]."""
        self._cache.aim(self._own(), self._runs, self._network.device)
        logits = self._network.continue_rows(tokens, self._lengths, self._cache)
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        for run in _chain(self._runs[row]):
            run.rows -= 1
            if not run.rows:
                self._cache.runs.remove(run)
        last = len(self._lengths) - 1
        if row != last:
            self._cache.move(last, row, self._own()[last])
            self._lengths[row], self._runs[row] = self._lengths[last], self._runs[last]
        self._lengths.pop()
        self._runs.pop()
        if not self._lengths:
            self._cache = RowCache(self._network.layers)

    def _own(self) -> list[int]:
        """Tokens that each row holds alone."""
        return list(map(_own_length, self._lengths, self._runs))

    def _plan(self, prompts: Sequence[Sequence[int]]) -> list[SharedRun | None]:
        """The last shared run of each prompt: runs that rows hold already, and new ones that several prompts share."""
        found = [self._held(tuple(prompt)) for prompt in prompts]
        if self._saving is None:
            return found
        groups: dict[SharedRun | None, list[int]] = {}
        for index, run in enumerate(found):
            if len(prompts[index]) > (run.end if run else 0):
                groups.setdefault(run, []).append(index)
        for base, indices in groups.items():
            start = base.end if base else 0
            new: list[SharedRun] = []
            for segment in Forest([prompts[index][start:] for index in indices]).shared(self._saving):
                parent = base if segment.parent is None else new[segment.parent]
                new.append(SharedRun(segment.tokens, start + segment.start, parent))
                for sequence in segment.sequences:
                    found[indices[sequence]] = new[-1]
        return found

    def _held(self, prompt: tuple[int, ...]) -> SharedRun | None:
        """The last of the runs in use, one behind the other, that a prompt begins with."""
        best: SharedRun | None = None
        for run in self._cache.runs:  # parents come first
            if run.parent is best and prompt[run.start : run.end] == run.tokens:
                best = run
        return best

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

    def tokens(self, prompts: Sequence[Sequence[int]] = (), room: int = 1) -> int:
        """Tokens whose keys and values are held when these prompts are rows too, and each row has room for more."""
        return sum(len(tokens) + room for tokens in (*(row.tokens for row in self._rows), *prompts))

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
    """The rows that suit a model; found out on a few tokens at first use."""
    if not reader.shares:
        return PlainRows(network)
    if network.shares_rows is None:
        network.shares_rows = _agrees(network)
    return SharedRows(network, reader, saving=_WORTH_SHARING if network.shares_rows else None)


def _agrees(network: Network) -> bool:
    """Compare rows with shared beginnings with plain computation; an architecture may do more than attend."""
    ids = [(7919 * number + 13) % network.vocabulary for number in range(24)]
    prompts = [ids[:9], [*ids[:8], *ids[12:16]], [*ids[:8], *ids[12:15]], ids[16:20]]
    rows = SharedRows(network, Reader(network), saving=1)
    try:
        order = [admitted.prompt for admitted in rows.admit(prompts)]
        logits = rows.advance(ids[20:24])
        whole = [
            network.whole([*prompts[prompt], token], [len(prompts[prompt])]).logits
            for prompt, token in zip(order, ids[20:24], strict=True)
        ]
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
        return False
    return same_distributions(logits, torch.cat(whole), network.dtype)


def _chain(run: SharedRun | None) -> list[SharedRun]:
    """A run and all that come before it, the first one first."""
    chain = []
    while run is not None:
        chain.append(run)
        run = run.parent
    return chain[::-1]


def _own_length(length: int, run: SharedRun | None) -> int:
    return length - (run.end if run else 0)
