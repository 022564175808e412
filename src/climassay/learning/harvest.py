"""Harvest hidden states at scale: what is stored is not computed again, what is shared is computed once.

Requests are put into the order of their prompts, so that those with a common beginning come together, and are computed
in contiguous pieces of that order. Each piece is stored as soon as it is complete: a process killed at any moment
loses one piece, and the same call again computes only what is missing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.learning.activation_store import ActivationStore, Rows, Section, Setting, request_key
from climassay.models.contract import OpenWeights, OptionRequest, Spread

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
    kept: Section | _Memory = _Memory() if store is None else store.section(setting)
    before = model.work
    prompts: dict[int, str] = {}
    keys: dict[int, bytes] = {}
    same: dict[bytes, list[int]] = {}
    failed: dict[int, str] = {}
    failed_tokens = 0
    for index, request in enumerate(requests):
        try:
            prompts[index] = model.render(request.messages, request.assistant_prefix)
        except ModelError as error:
            failed[index] = str(error)
            continue
        keys[index] = request_key(prompts[index], request.options)
        same.setdefault(keys[index], []).append(index)
    progress = on_progress or (lambda _: None)
    served = sum(key in kept for key in keys.values())
    progress(served + len(failed))
    missing = sorted((indices[0] for key, indices in same.items() if key not in kept), key=prompts.__getitem__)
    for piece in _pieces(missing, prompts, max(shard, model.wave) if isinstance(model, Spread) else shard):
        counts = [len(same[keys[index]]) for index in piece]
        found = model.harvest(
            [requests[index] for index in piece],
            layers=tuple(layers),
            token_budget=token_budget,
            on_result=lambda place, _, counts=counts: progress(counts[place]),  # type: ignore[misc]
        )
        good = [(keys[index], one) for index, one in zip(piece, found, strict=True) if one.error is None]
        for index, one in zip(piece, found, strict=True):
            if one.error is not None:
                failed |= dict.fromkeys(same[keys[index]], one.error)
                failed_tokens += one.tokens * len(same[keys[index]])
        if good:
            rows = Rows(
                np.stack([one.states for _, one in good]),
                np.array([one.logprobs for _, one in good], dtype=np.float64),
                np.array([one.tokens for _, one in good], dtype=np.int64),
            )
            kept.write([key for key, _ in good], rows)

    logprobs, two_pass = np.zeros((len(requests), max(options, default=0))), failed_tokens
    shape: tuple[int, ...] = (max(options, default=0), len(layers), 0)
    succeeded = [index for index in range(len(requests)) if index not in failed]
    if succeeded:
        logprobs[succeeded], tokens = kept.scores([keys[index] for index in succeeded])
        two_pass += int(tokens.sum())
        shape = kept.states([keys[succeeded[0]]]).shape[1:]

    def read(indices: NDArray[np.int64]) -> NDArray[np.float32]:
        states = np.zeros((len(indices), *shape), dtype=np.float32)
        places = [place for place, index in enumerate(indices) if int(index) not in failed]
        if places:
            states[places] = kept.states([keys[int(indices[place])] for place in places])
        return states

    cost = model.work - before
    return Harvest(logprobs, failed, served, len(succeeded) - served, cost.passes, cost.tokens, two_pass, read)


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
