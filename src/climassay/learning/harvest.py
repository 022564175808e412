"""Harvest hidden states at scale: what is stored is not computed again, what is shared is computed once.

Requests are put into the order of their prompts, so that those with a common beginning come together, and are computed
in contiguous pieces of that order. A piece is stored when it is complete, and every half minute before that: a process
killed at any moment loses no more than that, and the same call again computes only what is missing.

A store is a folder with one section for each way of computing activations (:class:`ActivationSetting`). A section has
shards: safetensors files that are written under another name and renamed when they are complete. Two processes may
write the same activations at the same time; the shards then have the same rows twice, which does no harm. Rows are read
through a memory map, so that the time to read a few does not depend on the size of the shards.
"""

import hashlib
import json
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.io import write_file
from climassay.learning.model_file import safetensors_library
from climassay.models.contract import Activations, MultiWorkerModel, OpenWeights, OptionRequest

StorageType = Literal["float32", "float16"]

KEY_BYTES = 16
_FORMAT = 1
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ActivationSetting:
    """Everything that decides the activations of a request, apart from the request."""

    fingerprint: str
    """Fingerprint of the model."""
    dtype: str
    """Number format of the computation."""
    layers: tuple[int, ...]
    """Requested layers, in this order."""
    token_budget: int
    """Maximum number of tokens of one forward pass. It is part of the key only if ``dtype`` has 16 bits, for which
    results depend on the budget by more than rounding."""

    def key(self, storage: StorageType) -> str:
        """Return the name of the section: 32 hexadecimal digits."""
        return _digest(self.described(storage)).hex()

    def described(self, storage: StorageType) -> dict[str, Any]:
        """Return the content of the key, as it is written beside the shards."""
        batching = None if self.dtype == "float32" else self.token_budget
        return {"format": _FORMAT, "storage": storage, **asdict(self), "token_budget": batching}


class Rows(NamedTuple):
    """Activations of requests that all have the same number of options."""

    states: NDArray[Any]
    """float32 or float16 [requests, options, layers, width]."""
    logprobs: NDArray[np.float64]
    """[requests, options]; natural logarithms of the probabilities of the options as texts."""
    tokens: NDArray[np.int64]
    """[requests]: tokens that a plain pass for each option would compute."""


def request_key(prompt: str, options: Sequence[str]) -> bytes:
    """Return the name of a request within a section: 16 bytes of a hash of the rendered prompt and the options."""
    return _digest([prompt, list(options)])


class ActivationStore:
    """A folder of activations, for any number of models, settings and processes."""

    def __init__(self, folder: Path | str, *, storage: StorageType = "float32") -> None:
        """Open a store; its folder is created by the first write.

        Args:
            folder: Folder of the shards.
            storage: Number format of the states; float16 takes half the space and keeps three decimal digits.

        Raises:
            InputError: ``storage`` is neither of the two, or the folder is a file.
        """
        if storage not in ("float32", "float16"):
            raise InputError(f"Activations cannot be stored as {storage!r}: use float32 or float16.")
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"The activations cannot be stored in {self.folder}: it is a file; name a folder.")
        self.storage: StorageType = storage
        self._sections: dict[str, SettingActivations] = {}

    def section(self, setting: ActivationSetting) -> "SettingActivations":
        """Return the activations of one setting, including shards that other processes have written."""
        key = setting.key(self.storage)
        if key in self._sections:
            self._sections[key].refresh()
        else:
            self._sections[key] = SettingActivations(self.folder / key, setting.described(self.storage), self.storage)
        return self._sections[key]


class SettingActivations:
    """Activations of one setting: an index of request keys in memory, everything else on disk."""

    def __init__(self, folder: Path, described: dict[str, Any], storage: StorageType) -> None:
        self._folder, self._described, self._storage = folder, described, storage
        self._shards: list[_Shard] = []
        self._read_files: set[str] = set()
        self._index: dict[bytes, tuple[int, int]] = {}
        self.refresh()

    def __contains__(self, key: bytes) -> bool:
        return key in self._index

    def __len__(self) -> int:
        return len(self._index)

    def refresh(self) -> None:
        """Index shards that other processes have written; damaged shards cause a warning."""
        for path in sorted(self._folder.glob("*.safetensors")):
            if path.name not in self._read_files and not path.name.startswith("."):
                self._index_shard(path)

    def write(self, keys: Sequence[bytes], rows: Rows) -> None:
        """Write activations as one shard, which appears to other processes whole or not at all.

        Args:
            keys: One :func:`request_key` for each row.
            rows: Activations.

        Raises:
            InputError: A state is too large for float16, or the shard cannot be written.
        """
        with np.errstate(over="ignore"):
            states = np.ascontiguousarray(rows.states, dtype=self._storage)
        if not np.isfinite(states).all():
            raise InputError("A hidden state is too large to be stored as float16: use a store of float32.")
        tensors = {
            "keys": np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES),
            "states": states,
            "logprobs": np.ascontiguousarray(rows.logprobs, dtype=np.float64),
            "tokens": np.ascontiguousarray(rows.tokens, dtype=np.int64),
        }
        about = self._folder / "setting.json"
        if not about.exists():
            write_file(about, json.dumps(self._described, indent=2).encode())
        path = self._folder / f"{uuid.uuid4().hex}.safetensors"
        write_file(path, safetensors_library().numpy.save(tensors))
        self._index_shard(path)

    def states(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """Return states of stored requests, float32 [keys, options, layers, width]; a key may occur twice.

        Raises:
            KeyError: The section does not hold one of them.
            InputError: The requests do not all have the same number of options.
        """
        shape = self._shape(keys)
        states = np.empty((len(keys), *shape), dtype=np.float32)
        for file, positions, rows in self._parts(keys):
            stored = file.get_slice("states")
            for position, row in zip(positions.tolist(), rows.tolist(), strict=True):
                states[position] = stored[row : row + 1][0]
        return states

    def scores(self, keys: Sequence[bytes]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return log-probabilities [keys, options] and numbers of tokens [keys]; errors as :meth:`states`."""
        logprobs = np.empty((len(keys), self._shape(keys)[0]), dtype=np.float64)
        tokens = np.empty(len(keys), dtype=np.int64)
        for file, positions, rows in self._parts(keys):
            logprobs[positions] = file.get_tensor("logprobs")[rows]
            tokens[positions] = file.get_tensor("tokens")[rows]
        return logprobs, tokens

    def _shape(self, keys: Sequence[bytes]) -> tuple[int, ...]:
        shapes = {self._shards[shard].shape for shard in {self._index[key][0] for key in keys}}
        if len(shapes) != 1:
            raise InputError("Activations of requests with different numbers of options do not form one array.")
        return shapes.pop()

    def _parts(self, keys: Sequence[bytes]) -> Iterator[tuple[Any, IntArray, IntArray]]:
        """Yield the memory-mapped file of each shard with positions in the result and ascending rows."""
        shards, rows = np.array([self._index[key] for key in keys], dtype=np.int64).T
        for shard in np.unique(shards):
            positions = np.flatnonzero(shards == shard)
            positions = positions[np.argsort(rows[positions], kind="stable")]
            with safetensors_library().safe_open(self._shards[int(shard)].path, framework="numpy") as file:
                yield file, positions, rows[positions]

    def _index_shard(self, path: Path) -> None:
        self._read_files.add(path.name)
        library = safetensors_library()
        try:
            with library.safe_open(path, framework="numpy") as file:
                keys = file.get_tensor("keys")
                names = ("states", "logprobs", "tokens")
                states, logprobs, tokens = (tuple(file.get_slice(name).get_shape()) for name in names)
            rows = len(keys)
            if keys.shape != (rows, KEY_BYTES) or states[:1] != (rows,) or tokens != (rows,) or logprobs != states[:2]:
                raise ValueError("its tensors do not belong together")
        except (OSError, ValueError, TypeError, library.SafetensorError) as error:
            warnings.warn(f"The activations in {path} are not used, the file is damaged: {error}.", stacklevel=4)
            return
        number = len(self._shards)
        self._shards.append(_Shard(path, states[1:]))
        for row, key in enumerate(keys):
            self._index[key.tobytes()] = (number, row)


class _Shard(NamedTuple):
    path: Path
    shape: tuple[int, ...]


def _digest(content: object) -> bytes:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).digest()[:KEY_BYTES]


DEFAULT_SHARD = 256
STORE_SECONDS = 30.0
"""Maximum seconds between two writes of activations; until then, a piece of work is written once it is complete."""
Progress = Callable[[int], None]
"""Called with the number of requests done (served, computed or failed) since the last call."""


@dataclass(frozen=True, slots=True, eq=False)
class Harvest:
    """Hidden states of many requests, and their cost.

    ``stored + computed + len(failed)`` is the number of requests.
    """

    logprobs: NDArray[np.float64]
    """[requests, options]: log P(option | prompt); 0 if the request failed, see :attr:`succeeded`."""
    failed: dict[int, str]
    """Error messages of failed requests, by index."""
    stored: int
    """Number of requests served from disk."""
    computed: int
    """Number of requests computed. A repeated request is computed once and counts each time."""
    passes: int
    tokens_computed: int
    tokens_two_pass: int
    """Number of tokens that a plain pass for each option of each request would compute, including those served from
    disk."""
    read: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    """Function that returns the states of requests by their indices, float32 [indices, options, layers, width], from
    disk if there is a store. States of failed requests are 0."""

    @property
    def states(self) -> NDArray[np.float32]:
        """States of all requests, float32 [requests, options, layers, width]; 0 if the request failed."""
        return self.read(np.arange(len(self.logprobs)))

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Mask of the requests that have states, [requests]."""
        has_states = np.ones(len(self.logprobs), dtype=np.bool_)
        has_states[list(self.failed)] = False
        return has_states


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
    """Harvest hidden states at the last token of every option of every request.

    Args:
        model: An :class:`~climassay.models.contract.OpenWeights` model.
        requests: Any number, all with the same number of options.
        layers: Numbered as in transformers: 0 are the embeddings, -1 the last layer after the final norm.
        store: Store of the states; without it they stay in memory.
        token_budget: Maximum number of tokens in one forward pass, by default what suits the device.
        shard: Maximum number of requests in one piece of work; more for a model spread over several machines, which
            needs more to keep them busy.
        on_progress: Called with the number of requests done since the last call.

    Raises:
        InputError: The model does not expose its states, or an argument cannot be used.
        ModelError: The model has no such layer.
    """
    if not isinstance(model, OpenWeights):
        raise InputError(
            f"The hidden states of {getattr(model, 'name', 'this model')} cannot be read: give the local "
            "model itself, not a wrapper, for example local:smollm2."
        )
    if shard < 1:
        raise InputError(f"The shard size is {shard}: give a positive number of requests, for example {DEFAULT_SHARD}.")
    options = {len(request.options) for request in requests}
    if len(options) > 1:
        raise InputError(f"The requests have {sorted(options)} options: harvest those with equal numbers together.")
    budget = model.token_budget if token_budget is None else token_budget
    setting = ActivationSetting(model.fingerprint, model.dtype, tuple(layers), budget)
    target: SettingActivations | _Memory = _Memory() if store is None else store.section(setting)
    before = model.work
    prompts: dict[int, str] = {}
    keys: dict[int, bytes] = {}
    indices_of_key: dict[bytes, list[int]] = {}
    failed: dict[int, str] = {}
    failed_tokens = 0
    for index, request in enumerate(requests):
        try:
            prompts[index] = model.render(request.messages, request.assistant_prefix)
        except ModelError as error:
            failed[index] = str(error)
            continue
        keys[index] = request_key(prompts[index], request.options)
        indices_of_key.setdefault(keys[index], []).append(index)
    progress = on_progress or (lambda _: None)
    served = sum(key in target for key in keys.values())
    progress(served + len(failed))
    missing = sorted(
        (indices[0] for key, indices in indices_of_key.items() if key not in target), key=prompts.__getitem__
    )
    for piece in _pieces(
        missing, prompts, max(shard, model.requests_at_once) if isinstance(model, MultiWorkerModel) else shard
    ):
        counts = [len(indices_of_key[keys[index]]) for index in piece]
        writer = _PieceWriter(target, [keys[index] for index in piece], counts, progress)
        results = model.harvest(
            [requests[index] for index in piece],
            layers=tuple(layers),
            token_budget=token_budget,
            on_result=writer.add,
        )
        writer.store()
        for index, result in zip(piece, results, strict=True):
            if result.error is not None:
                failed |= dict.fromkeys(indices_of_key[keys[index]], result.error)
                failed_tokens += result.tokens * len(indices_of_key[keys[index]])

    logprobs, two_pass = np.zeros((len(requests), max(options, default=0))), failed_tokens
    shape: tuple[int, ...] = (max(options, default=0), len(layers), 0)
    succeeded = [index for index in range(len(requests)) if index not in failed]
    if succeeded:
        logprobs[succeeded], tokens = target.scores([keys[index] for index in succeeded])
        two_pass += int(tokens.sum())
        shape = target.states([keys[succeeded[0]]]).shape[1:]

    def read(indices: NDArray[np.int64]) -> NDArray[np.float32]:
        states = np.zeros((len(indices), *shape), dtype=np.float32)
        positions = [position for position, index in enumerate(indices) if int(index) not in failed]
        if positions:
            states[positions] = target.states([keys[int(indices[position])] for position in positions])
        return states

    cost = model.work - before
    return Harvest(logprobs, failed, served, len(succeeded) - served, cost.passes, cost.tokens, two_pass, read)


class _PieceWriter:
    """Writer of the activations of one piece of work, as they are computed.

    Args:
        target: Store of the activations.
        keys: Key of each request of the piece.
        counts: Number of requests with each key.
        progress: Called with the number of requests done.
    """

    def __init__(
        self, target: "SettingActivations | _Memory", keys: Sequence[bytes], counts: Sequence[int], progress: Progress
    ) -> None:
        self._target, self._keys, self._counts, self._progress = target, keys, counts, progress
        self._pending: dict[int, Activations] = {}
        self._stored_at = monotonic()

    def add(self, position: int, activations: Activations) -> None:
        """Take the activations of a request of the piece; store all pending ones if the last shard is old enough."""
        if activations.error is None:
            self._pending[position] = activations
        if monotonic() - self._stored_at >= STORE_SECONDS:
            self.store()
        self._progress(self._counts[position])

    def store(self) -> None:
        """Store the pending activations as one shard."""
        if self._pending:
            rows = Rows(
                np.stack([activations.states for activations in self._pending.values()]),
                np.array([activations.logprobs for activations in self._pending.values()], dtype=np.float64),
                np.array([activations.tokens for activations in self._pending.values()], dtype=np.int64),
            )
            self._target.write([self._keys[position] for position in self._pending], rows)
            self._pending.clear()
        self._stored_at = monotonic()


class _Memory:
    """Activations in memory."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[NDArray[np.float32], NDArray[np.float64], int]] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def write(self, keys: Sequence[bytes], rows: Rows) -> None:
        for key, states, logprobs, tokens in zip(keys, *rows, strict=True):
            self._entries[key] = (states, logprobs, int(tokens))

    def states(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        return np.stack([self._entries[key][0] for key in keys])

    def scores(self, keys: Sequence[bytes]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        entries = [self._entries[key] for key in keys]
        return np.stack([logprobs for _, logprobs, _ in entries]), np.array([tokens for _, _, tokens in entries])


def _pieces(order: Sequence[int], prompts: dict[int, str], size: int) -> list[list[int]]:
    """Split an order into pieces of at most ``size`` requests.

    A piece ends in its second half, between the neighbours with the shortest common beginning.
    """
    pieces = []
    start = 0
    while start < len(order):
        end = min(start + size, len(order))
        if end < len(order):
            cuts = range(start + max(1, (size + 1) // 2), end + 1)
            end = min(cuts, key=lambda cut: (_common_length(prompts[order[cut - 1]], prompts[order[cut]]), -cut))
        pieces.append(list(order[start:end]))
        start = end
    return pieces


def _common_length(first: str, second: str) -> int:
    """Return the number of characters that two texts share at their beginning."""
    limit = min(len(first), len(second))
    if first[:limit] == second[:limit]:
        return limit
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low
