"""Harvest hidden states at scale: what is stored is not computed again, what is shared is computed once.

Requests are put into the order of their prompts, so that those with a common beginning come together, and are computed
in contiguous pieces of that order. Each piece is stored as soon as it is complete: a process killed at any moment
loses one piece, and the same call again computes only what is missing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.learning.activation_store import ActivationStore, Rows, Setting, request_key
from climassay.models.contract import Activations, OpenWeights, OptionRequest, Spread, Work

DEFAULT_SHARD = 256
Progress = Callable[[int], None]
"""Called with the number of requests done (served, computed or failed) since the last call."""


@dataclass(frozen=True, slots=True, eq=False)
class Harvest:
    """Hidden states of many requests, and what they cost.

    ``stored + computed + len(failed)`` is the number of requests.
    """

    logprobs: NDArray[np.float64]
    """[requests, options]: log P(option | prompt); 0 where the request failed, see :attr:`succeeded`."""
    failed: dict[int, str]
    """Why a request has no states, by its index."""
    stored: int
    """Requests served from disk."""
    computed: int
    """Requests computed now (one that was asked for twice is computed once and counts twice)."""
    passes: int
    """Forward passes made now."""
    tokens_computed: int
    """Tokens computed now."""
    tokens_two_pass: int
    """Tokens that a plain pass for each option of each request would compute, those served from disk included."""
    read: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    """States of some requests, by their indices, float32 [indices, options, layers, width]: from disk where there is
    a store, so that a large harvest need not fit into memory. Those of failed requests are 0."""

    @property
    def states(self) -> NDArray[np.float32]:
        """All states, float32 [requests, options, layers, width]; 0 where the request failed."""
        return self.read(np.arange(len(self.logprobs)))

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Which requests have states, [requests]."""
        good = np.ones(len(self.logprobs), dtype=np.bool_)
        good[list(self.failed)] = False
        return good


def harvest(
    model: object,
    requests: Sequence[OptionRequest],
    *,
    layers: Sequence[int] = (-1,),
    store: ActivationStore | None = None,
    token_budget: int | None = None,
    shard: int = DEFAULT_SHARD,
    on_progress: Progress | None = None,
) -> Harvest:
    """Hidden states at the last token of every option of every request.

    Args:
        model: An :class:`~climassay.models.contract.OpenWeights` model.
        requests: Any number, all with the same number of options.
        layers: Numbered as transformers does: 0 are the embeddings, -1 the last layer after the final norm.
        store: Where states are kept and looked up; without it they are kept in memory.
        token_budget: Most tokens of one forward pass, by default what suits the device.
        shard: Most requests in one piece of work, which is also what a killed process can lose; more where the model is
            spread over several places and needs more to keep them busy.
        on_progress: Called with the number of requests done since the last call.

    Raises:
        InputError: The model does not show its states, or an argument cannot be used.
        ModelError: The model has no such layer.
    """
    if not isinstance(model, OpenWeights):
        raise InputError(
            f"The hidden states of {getattr(model, 'name', 'this model')} cannot be read: give a model whose weights "
            "are at hand, itself and not wrapped, for example local:smollm2."
        )
    if shard < 1:
        raise InputError(f"The shard size is {shard}: give a positive number of requests, for example {DEFAULT_SHARD}.")
    options = {len(request.options) for request in requests}
    if len(options) > 1:
        raise InputError(f"The requests have {sorted(options)} options: harvest those with equal numbers together.")
    budget = model.token_budget if token_budget is None else token_budget
    setting = Setting(model.fingerprint, model.dtype, tuple(layers), budget)
    shelf: _Shelf = _Memory() if store is None else store.section(setting)
    work = _Work(model, requests, tuple(layers), token_budget)
    before = model.work
    served = [index for index, key in work.keys.items() if key in shelf]
    shard = max(shard, model.wave) if isinstance(model, Spread) else shard
    work.run(shelf, shard, on_progress or (lambda _: None), done=len(served) + len(work.failed))
    return _harvest(shelf, work, len(served), max(options, default=0), model.work - before)


class _Shelf(Protocol):
    """Where activations are kept: in memory, or a section of a store."""

    def __contains__(self, key: bytes) -> bool: ...

    def write(self, keys: Sequence[bytes], rows: Rows) -> None: ...

    def states(self, keys: Sequence[bytes]) -> NDArray[np.float32]: ...

    def scores(self, keys: Sequence[bytes]) -> tuple[NDArray[np.float64], NDArray[np.int64]]: ...


class _Memory:
    """Activations kept in this process only."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[NDArray[np.float32], NDArray[np.float64], int]] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._kept

    def write(self, keys: Sequence[bytes], rows: Rows) -> None:
        for key, states, logprobs, tokens in zip(keys, *rows, strict=True):
            self._kept[key] = (states, logprobs, int(tokens))

    def states(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        return np.stack([self._kept[key][0] for key in keys])

    def scores(self, keys: Sequence[bytes]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        kept = [self._kept[key] for key in keys]
        return np.stack([logprobs for _, logprobs, _ in kept]), np.array([tokens for _, _, tokens in kept])


class _Work:
    """The requests of one harvest under their keys, and what became of them."""

    def __init__(
        self, model: OpenWeights, requests: Sequence[OptionRequest], layers: tuple[int, ...], token_budget: int | None
    ) -> None:
        self._model, self._requests, self._layers, self._token_budget = model, requests, layers, token_budget
        self.layers = len(layers)
        self.keys: dict[int, bytes] = {}
        """Of every request whose prompt can be rendered."""
        self.failed: dict[int, str] = {}
        self.failed_tokens = 0
        self._prompts: dict[int, str] = {}
        self._same: dict[bytes, list[int]] = {}
        for index, request in enumerate(requests):
            self._name(index, request)

    def run(self, shelf: _Shelf, shard: int, on_progress: Progress, *, done: int) -> None:
        """Compute what the shelf does not hold, piece by piece; ``done`` requests need no computing."""
        missing = [indices[0] for key, indices in self._same.items() if key not in shelf]
        missing.sort(key=self._prompts.__getitem__)
        on_progress(done)
        for piece in _pieces(missing, self._prompts, shard):
            self._compute(piece, shelf, on_progress)

    def _name(self, index: int, request: OptionRequest) -> None:
        try:
            prompt = self._model.render(request.messages, request.assistant_prefix)
        except ModelError as error:
            self.failed[index] = str(error)
            return
        self._prompts[index] = prompt
        self.keys[index] = request_key(prompt, request.options)
        self._same.setdefault(self.keys[index], []).append(index)

    def _compute(self, piece: Sequence[int], shelf: _Shelf, on_progress: Progress) -> None:
        found = self._model.harvest(
            [self._requests[index] for index in piece],
            layers=self._layers,
            token_budget=self._token_budget,
            on_result=lambda place, _: on_progress(len(self._same[self.keys[piece[place]]])),
        )
        good: list[tuple[bytes, Activations]] = []
        for index, activations in zip(piece, found, strict=True):
            if activations.error is None:
                good.append((self.keys[index], activations))
                continue
            for same in self._same[self.keys[index]]:
                self.failed[same] = activations.error
                self.failed_tokens += activations.tokens
        if good:
            rows = Rows(
                np.stack([one.states for _, one in good]),
                np.array([one.logprobs for _, one in good], dtype=np.float64),
                np.array([one.tokens for _, one in good], dtype=np.int64),
            )
            shelf.write([key for key, _ in good], rows)


def _harvest(shelf: _Shelf, work: _Work, served: int, options: int, cost: Work) -> Harvest:
    count = len(work.keys.keys() | work.failed.keys())
    good = [index for index in range(count) if index not in work.failed]
    logprobs, two_pass = np.zeros((count, options)), work.failed_tokens
    shape: tuple[int, ...] = (options, work.layers, 0)
    if good:
        logprobs[good], tokens = shelf.scores([work.keys[index] for index in good])
        two_pass += int(tokens.sum())
        shape = shelf.states([work.keys[good[0]]]).shape[1:]

    def read(indices: NDArray[np.int64]) -> NDArray[np.float32]:
        states = np.zeros((len(indices), *shape), dtype=np.float32)
        kept = [place for place, index in enumerate(indices) if int(index) not in work.failed]
        if kept:
            states[kept] = shelf.states([work.keys[int(indices[place])] for place in kept])
        return states

    return Harvest(logprobs, work.failed, served, len(good) - served, cost.passes, cost.tokens, two_pass, read)


def _pieces(order: Sequence[int], prompts: dict[int, str], size: int) -> list[list[int]]:
    """Cut an order into pieces of at most ``size``, where neighbours have least in common, but not below half of it."""
    pieces = []
    start = 0
    while start < len(order):
        end = min(start + size, len(order))
        if end < len(order):
            places = range(start + max(1, (size + 1) // 2), end + 1)
            end = min(places, key=lambda at: (_shared(prompts[order[at - 1]], prompts[order[at]]), -at))
        pieces.append(list(order[start:end]))
        start = end
    return pieces


def _shared(first: str, second: str) -> int:
    """Characters that two texts share at their beginning."""
    limit = min(len(first), len(second))
    if first[:limit] == second[:limit]:
        return limit
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low
