"""Compute hidden states of many requests, storing them so that they are computed only once.

Requests are sorted by prompt, so that prompts with a common beginning are adjacent, and are computed in batches of
adjacent prompts. A batch is stored when it is complete, and every half minute before that. If the process is killed,
the same call computes only the missing requests.

A store is a folder with one section for each :class:`ActivationSetting`. A section has shards: safetensors files that
are renamed when they are complete. If two processes write the same activations at the same time, rows are duplicated,
which is harmless. Rows are read through a memory map, so that reading a few rows is fast for shards of any size.
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
    """Everything on which the activations of a request depend, apart from the request itself."""

    fingerprint: str
    """Fingerprint of the model."""
    dtype: str
    """Number format of the computation."""
    layers: tuple[int, ...]
    """Layers whose hidden states are stored, in this order."""
    token_budget: int
    """Maximum number of tokens in one forward pass. For 16-bit number formats, this budget is part of the key, because
    it changes results by more than rounding errors."""

    def key(self, storage: StorageType) -> str:
        """Return the name of the section of a store that has these activations: 32 hexadecimal digits."""
        return _hash_request(self.to_dict(storage)).hex()

    def to_dict(self, storage: StorageType) -> dict[str, Any]:
        """Return the values on which the key depends, as JSON-serialisable values."""
        batching = None if self.dtype == "float32" else self.token_budget
        return {"format": _FORMAT, "storage": storage, **asdict(self), "token_budget": batching}


class Rows(NamedTuple):
    """Activations of requests that all have the same number of options."""

    states: NDArray[Any]
    """Hidden states, float32 or float16, shape [requests, options, layers, width]."""
    logprobs: NDArray[np.float64]
    """Log-probabilities of the options' texts, natural logarithms, shape [requests, options]."""
    tokens: NDArray[np.int64]
    """Number of tokens that separate forward passes for all options would compute, shape [requests]."""


def request_key(prompt: str, options: Sequence[str]) -> bytes:
    """Return the key of a request: the first 16 bytes of a hash of its rendered prompt and its options.

    It is unique within a section, that is, for one :class:`ActivationSetting`.
    """
    return _hash_request([prompt, list(options)])


class ActivationStore:
    """Folder with the activations of any number of models and settings, which several processes can share."""

    def __init__(self, folder: Path | str, *, storage: StorageType = "float32") -> None:
        """Open a store; its folder is created by the first write.

        Args:
            folder: Folder of the shards.
            storage: Number format of the hidden states; float16 takes half the space and has three decimal digits.

        Raises:
            InputError: ``storage`` is neither float32 nor float16, or the folder is a file.
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
            self._sections[key] = SettingActivations(self.folder / key, setting.to_dict(self.storage), self.storage)
        return self._sections[key]


class SettingActivations:
    """Stored activations of one setting; only an index of the request keys is in memory."""

    def __init__(self, folder: Path, setting: dict[str, Any], storage: StorageType) -> None:
        self._folder, self._setting, self._storage = folder, setting, storage
        self._shards: list[_Shard] = []
        self._indexed_files: set[str] = set()
        self._index: dict[bytes, tuple[int, int]] = {}
        self.refresh()

    def __contains__(self, key: bytes) -> bool:
        return key in self._index

    def __len__(self) -> int:
        return len(self._index)

    def refresh(self) -> None:
        """Index shards that other processes have written; damaged shards cause a warning."""
        for path in sorted(self._folder.glob("*.safetensors")):
            if path.name not in self._indexed_files and not path.name.startswith("."):
                self._index_shard(path)

    def write(self, keys: Sequence[bytes], rows: Rows) -> None:
        """Write activations as one shard; other processes see the shard only when it is complete.

        ``keys`` has the key of each row's request; see :func:`request_key`.

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
        setting_file = self._folder / "setting.json"
        if not setting_file.exists():
            write_file(setting_file, json.dumps(self._setting, indent=2).encode())
        path = self._folder / f"{uuid.uuid4().hex}.safetensors"
        write_file(path, safetensors_library().numpy.save(tensors))
        self._index_shard(path)

    def states(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """Return the hidden states of stored requests, float32 [keys, options, layers, width]; keys may be repeated.

        Raises:
            KeyError: The activations of a request are not stored.
            InputError: The requests do not all have the same number of options.
        """
        shape = self._get_shape(keys)
        states = np.empty((len(keys), *shape), dtype=np.float32)
        for file, positions, rows in self._open_shards(keys):
            shard_states = file.get_slice("states")
            for position, row in zip(positions.tolist(), rows.tolist(), strict=True):
                states[position] = shard_states[row : row + 1][0]
        return states

    def scores(self, keys: Sequence[bytes]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the log-probabilities [keys, options] and numbers of tokens [keys] of stored requests.

        It raises the same errors as :meth:`states`.
        """
        logprobs = np.empty((len(keys), self._get_shape(keys)[0]), dtype=np.float64)
        tokens = np.empty(len(keys), dtype=np.int64)
        for file, positions, rows in self._open_shards(keys):
            logprobs[positions] = file.get_tensor("logprobs")[rows]
            tokens[positions] = file.get_tensor("tokens")[rows]
        return logprobs, tokens

    def _get_shape(self, keys: Sequence[bytes]) -> tuple[int, ...]:
        shapes = {self._shards[shard].shape for shard in {self._index[key][0] for key in keys}}
        if len(shapes) != 1:
            raise InputError("Activations of requests with different numbers of options do not form one array.")
        return shapes.pop()

    def _open_shards(self, keys: Sequence[bytes]) -> Iterator[tuple[Any, IntArray, IntArray]]:
        """Yield each shard that has some of the keys, the keys' indices, and their ascending rows in it."""
        shards, rows = np.array([self._index[key] for key in keys], dtype=np.int64).T
        for shard in np.unique(shards):
            positions = np.flatnonzero(shards == shard)
            positions = positions[np.argsort(rows[positions], kind="stable")]
            with safetensors_library().safe_open(self._shards[int(shard)].path, framework="numpy") as file:
                yield file, positions, rows[positions]

    def _index_shard(self, path: Path) -> None:
        self._indexed_files.add(path.name)
        library = safetensors_library()
        try:
            with library.safe_open(path, framework="numpy") as file:
                keys = file.get_tensor("keys")
                names = ("states", "logprobs", "tokens")
                states, logprobs, tokens = (tuple(file.get_slice(name).get_shape()) for name in names)
            n_rows = len(keys)
            is_consistent = keys.shape == (n_rows, KEY_BYTES) and states[:1] == tokens == (n_rows,)
            if not is_consistent or logprobs != states[:2]:
                raise ValueError("its tensors do not belong together")
        except (OSError, ValueError, TypeError, library.SafetensorError) as error:
            warnings.warn(f"The activations in {path} are not used, the file is damaged: {error}.", stacklevel=4)
            return
        shard_index = len(self._shards)
        self._shards.append(_Shard(path, states[1:]))
        for row, key in enumerate(keys):
            self._index[key.tobytes()] = (shard_index, row)


class _Shard(NamedTuple):
    path: Path
    shape: tuple[int, ...]


def _hash_request(content: object) -> bytes:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).digest()[:KEY_BYTES]


DEFAULT_SHARD_SIZE = 256
STORE_SECONDS = 30.0
"""An incomplete batch's activations are stored after this number of seconds."""
Progress = Callable[[int], None]
"""Callback that gets the number of requests done (found in the store, computed or failed) since its last call."""


@dataclass(frozen=True, slots=True, eq=False)
class Harvest:
    """Hidden states of many requests, and the cost of computing them.

    The number of requests is ``stored + computed + len(failed)``.
    """

    logprobs: NDArray[np.float64]
    """Log-probabilities of the options given the prompts, shape [requests, options]; 0 for failed requests."""
    failed: dict[int, str]
    """Error messages of failed requests, by index."""
    stored: int
    """Number of requests whose activations were found in the store."""
    computed: int
    """Number of requests whose activations were computed; equal requests are computed once, but all of them are
    counted."""
    passes: int
    tokens_computed: int
    """Number of tokens in the forward passes."""
    tokens_two_pass: int
    """Number of tokens that would be computed with a separate forward pass for each option of each request. Requests
    whose activations were found in the store are counted, too."""
    read: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    """Function that returns the hidden states of the requests with the given indices, shape [indices, options, layers,
    width]; 0 for failed requests. If there is a store, the states are read from disk."""

    @property
    def states(self) -> NDArray[np.float32]:
        """Hidden states of all requests, float32 [requests, options, layers, width]; 0 for failed requests."""
        return self.read(np.arange(len(self.logprobs)))

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Mask of the requests that did not fail, shape [requests]."""
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
    shard: int = DEFAULT_SHARD_SIZE,
    on_progress: Progress | None = None,
) -> Harvest:
    """Compute the hidden states at the last token of every option of every request.

    Args:
        model: An :class:`~climassay.models.contract.OpenWeights` model.
        requests: Requests, all with the same number of options.
        layers: Layers, numbered as in transformers: 0 is the embedding, and -1 the last layer after the final norm.
        store: Store of the hidden states; without it they stay in memory.
        token_budget: Maximum number of tokens in one forward pass; by default a number that suits the device.
        shard: Maximum number of requests in one batch. It is raised for a model on several machines, to keep all of
            them busy.
        on_progress: Called with the number of requests done since the last call.

    Raises:
        InputError: The model does not expose its hidden states, or an argument is invalid.
        ModelError: The model lacks one of the layers.
    """
    if not isinstance(model, OpenWeights):
        raise InputError(
            f"The hidden states of {getattr(model, 'name', 'this model')} cannot be read: give the local "
            "model itself, not a wrapper, for example local:smollm2."
        )
    if shard < 1:
        raise InputError(
            f"The shard size is {shard}: give a positive number of requests, for example {DEFAULT_SHARD_SIZE}."
        )
    option_counts = {len(request.options) for request in requests}
    if len(option_counts) > 1:
        raise InputError(
            f"The requests have {sorted(option_counts)} options: harvest those with equal numbers together."
        )
    budget = model.token_budget if token_budget is None else token_budget
    setting = ActivationSetting(model.fingerprint, model.dtype, tuple(layers), budget)
    target: SettingActivations | _InMemoryActivations = (
        _InMemoryActivations() if store is None else store.section(setting)
    )
    work_before = model.work
    prompts: dict[int, str] = {}
    keys: dict[int, bytes] = {}
    indices_of_key: dict[bytes, list[int]] = {}
    errors: dict[int, str] = {}
    tokens_two_pass = 0
    for index, request in enumerate(requests):
        try:
            prompts[index] = model.render(request.messages, request.assistant_prefix)
        except ModelError as error:
            errors[index] = str(error)
            continue
        keys[index] = request_key(prompts[index], request.options)
        indices_of_key.setdefault(keys[index], []).append(index)
    report_progress = on_progress or (lambda _: None)
    n_stored = sum(key in target for key in keys.values())
    report_progress(n_stored + len(errors))
    missing_indices = sorted(
        (indices[0] for key, indices in indices_of_key.items() if key not in target), key=prompts.__getitem__
    )
    batch_size = max(shard, model.requests_at_once) if isinstance(model, MultiWorkerModel) else shard
    for batch in _split_into_batches(missing_indices, prompts, batch_size):
        counts = [len(indices_of_key[keys[index]]) for index in batch]
        writer = _BatchWriter(target, [keys[index] for index in batch], counts, report_progress)
        results = model.harvest(
            [requests[index] for index in batch], layers=tuple(layers), token_budget=token_budget, on_result=writer.add
        )
        writer.store()
        for index, result in zip(batch, results, strict=True):
            if result.error is not None:
                errors |= dict.fromkeys(indices_of_key[keys[index]], result.error)
                tokens_two_pass += result.tokens * len(indices_of_key[keys[index]])

    n_options = max(option_counts, default=0)
    logprobs = np.zeros((len(requests), n_options))
    shape: tuple[int, ...] = (n_options, len(layers), 0)
    successful_indices = [index for index in range(len(requests)) if index not in errors]
    if successful_indices:
        logprobs[successful_indices], tokens = target.scores([keys[index] for index in successful_indices])
        tokens_two_pass += int(tokens.sum())
        shape = target.states([keys[successful_indices[0]]]).shape[1:]

    def read(indices: NDArray[np.int64]) -> NDArray[np.float32]:
        states = np.zeros((len(indices), *shape), dtype=np.float32)
        positions = [position for position, index in enumerate(indices) if int(index) not in errors]
        if positions:
            states[positions] = target.states([keys[int(indices[position])] for position in positions])
        return states

    new_work = model.work - work_before
    n_computed = len(successful_indices) - n_stored
    return Harvest(logprobs, errors, n_stored, n_computed, new_work.passes, new_work.tokens, tokens_two_pass, read)


class _BatchWriter:
    """Writer of the activations of one batch of requests while they are computed."""

    def __init__(
        self,
        target: "SettingActivations | _InMemoryActivations",
        keys: Sequence[bytes],
        counts: Sequence[int],
        report_progress: Progress,
    ) -> None:
        self._target, self._keys, self._counts, self._report_progress = target, keys, counts, report_progress
        self._pending: dict[int, Activations] = {}
        self._stored_at = monotonic()

    def add(self, position: int, activations: Activations) -> None:
        """Add the activations of one request. If :data:`STORE_SECONDS` have passed, store all pending activations."""
        if activations.error is None:
            self._pending[position] = activations
        if monotonic() - self._stored_at >= STORE_SECONDS:
            self.store()
        self._report_progress(self._counts[position])

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


class _InMemoryActivations:
    """Replacement for :class:`SettingActivations` that stores activations in memory."""

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


def _split_into_batches(indices: Sequence[int], prompts: dict[int, str], size: int) -> list[list[int]]:
    """Split request indices, sorted by prompt, into batches of ``size / 2`` to ``size`` requests.

    Batches are divided between the adjacent prompts with the shortest common prefix.
    """
    batches = []
    start = 0
    while start < len(indices):
        end = min(start + size, len(indices))
        if end < len(indices):
            possible_ends = range(start + max(1, (size + 1) // 2), end + 1)
            end = min(
                possible_ends,
                key=lambda end: (_count_common_prefix(prompts[indices[end - 1]], prompts[indices[end]]), -end),
            )
        batches.append(list(indices[start:end]))
        start = end
    return batches


def _count_common_prefix(first: str, second: str) -> int:
    limit = min(len(first), len(second))
    if first[:limit] == second[:limit]:
        return limit
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low
