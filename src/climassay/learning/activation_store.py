"""Activations on disk: written once, read row by row, safe to kill and safe to share.

A folder holds one section for each way of computing activations (:class:`Setting`), and a section holds shards:
safetensors files that appear whole, by renaming, or not at all. Two processes may write the same activations at the
same time; the shards then say the same thing twice, which does no harm. Rows are read through a memory map, so that a
few of them cost little however large the shards are.
"""

import hashlib
import json
import os
import uuid
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, MissingExtraError

StorageType = Literal["float32", "float16"]

KEY_BYTES = 16
_FORMAT = 1
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Setting:
    """All that decides what the activations of a request are, apart from the request."""

    fingerprint: str
    """Fingerprint of the model."""
    dtype: str
    """In which the model computes."""
    layers: tuple[int, ...]
    """As they were asked for, in this order."""
    token_budget: int
    """Tokens of one forward pass. Part of the key only where ``dtype`` has 16 bits: float32 results do not depend on
    it by more than rounding, 16-bit results do."""

    def key(self, storage: StorageType) -> str:
        """Name of the section: 32 hexadecimal digits."""
        return _digest(self.described(storage)).hex()

    def described(self, storage: StorageType) -> dict[str, Any]:
        """The key's content, as it is written beside the shards."""
        batching = None if self.dtype == "float32" else self.token_budget
        return {"format": _FORMAT, "storage": storage, **asdict(self), "token_budget": batching}


class Rows(NamedTuple):
    """Activations of some requests, all with the same number of options."""

    states: NDArray[Any]
    """float32 or float16 [requests, options, layers, width]."""
    logprobs: NDArray[np.float64]
    """[requests, options]; of the options as texts, natural logarithm."""
    tokens: NDArray[np.int64]
    """[requests]: tokens that a plain pass for each option would compute."""


def request_key(prompt: str, options: Sequence[str]) -> bytes:
    """Name of a request within a section: 16 bytes of a hash over the rendered prompt and the options."""
    return _digest([prompt, list(options)])


class ActivationStore:
    """A folder of activations, for any number of models, settings and processes."""

    def __init__(self, folder: Path | str, *, storage: StorageType = "float32") -> None:
        """Open a store; the folder is made when something is written.

        Args:
            folder: Where the shards are.
            storage: How states are kept; float16 takes half the space and keeps three decimal digits.

        Raises:
            InputError: ``storage`` is neither of the two, or the folder is a file.
        """
        if storage not in ("float32", "float16"):
            raise InputError(f"Activations cannot be stored as {storage!r}: use float32 or float16.")
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"The activations cannot be stored in {self.folder}: it is a file; name a folder.")
        self.storage: StorageType = storage
        self._sections: dict[str, Section] = {}

    def section(self, setting: Setting) -> "Section":
        """The activations computed in one way, with what other processes have written by now."""
        key = setting.key(self.storage)
        if key in self._sections:
            self._sections[key].refresh()
        else:
            self._sections[key] = Section(self.folder / key, setting.described(self.storage), self.storage)
        return self._sections[key]


class Section:
    """Activations computed in one way: an index of request keys in memory, everything else on disk."""

    def __init__(self, folder: Path, described: dict[str, Any], storage: StorageType) -> None:
        self._folder, self._described, self._storage = folder, described, storage
        self._shards: list[_Shard] = []
        self._seen: set[str] = set()
        self._index: dict[bytes, tuple[int, int]] = {}
        self.refresh()

    def __contains__(self, key: bytes) -> bool:
        return key in self._index

    def __len__(self) -> int:
        return len(self._index)

    def refresh(self) -> None:
        """Take in what other processes have written since. Shards that cannot be read are named in a warning."""
        for path in sorted(self._folder.glob("*.safetensors")):
            if path.name not in self._seen and not path.name.startswith("."):
                self._take_in(path)

    def write(self, keys: Sequence[bytes], rows: Rows) -> None:
        """Add activations as one shard, which other processes see whole or not at all.

        Args:
            keys: One :func:`request_key` for each row.
            rows: What to keep.

        Raises:
            InputError: A state is too large for float16.
            MissingExtraError: safetensors is not installed.
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
        self._folder.mkdir(parents=True, exist_ok=True)
        about = self._folder / "setting.json"
        if not about.exists():
            _write_whole(about, json.dumps(self._described, indent=2).encode())
        path = self._folder / f"{uuid.uuid4().hex}.safetensors"
        _write_whole(path, _safetensors().numpy.save(tensors))
        self._take_in(path)

    def states(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """States of requests that the section holds, float32 [keys, options, layers, width]; a key may come twice.

        Raises:
            KeyError: The section does not hold one of them.
            InputError: The requests do not all have the same number of options.
        """
        shape = self._shape(keys)
        states = np.empty((len(keys), *shape), dtype=np.float32)
        for file, places, rows in self._parts(keys):
            stored = file.get_slice("states")
            for place, row in zip(places.tolist(), rows.tolist(), strict=True):
                states[place] = stored[row : row + 1][0]
        return states

    def scores(self, keys: Sequence[bytes]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Log-probabilities [keys, options] and tokens of a plain computation [keys]; raises as :meth:`states`."""
        logprobs = np.empty((len(keys), self._shape(keys)[0]), dtype=np.float64)
        tokens = np.empty(len(keys), dtype=np.int64)
        for file, places, rows in self._parts(keys):
            logprobs[places] = file.get_tensor("logprobs")[rows]
            tokens[places] = file.get_tensor("tokens")[rows]
        return logprobs, tokens

    def _shape(self, keys: Sequence[bytes]) -> tuple[int, ...]:
        shapes = {self._shards[shard].shape for shard in {self._index[key][0] for key in keys}}
        if len(shapes) != 1:
            raise InputError("Activations of requests with different numbers of options do not form one array.")
        return shapes.pop()

    def _parts(self, keys: Sequence[bytes]) -> Iterator[tuple[Any, IntArray, IntArray]]:
        """Each shard's file, mapped while it is used and no longer, with places in the result and ascending rows."""
        shards, rows = np.array([self._index[key] for key in keys], dtype=np.int64).T
        for shard in np.unique(shards):
            places = np.flatnonzero(shards == shard)
            places = places[np.argsort(rows[places], kind="stable")]
            with _safetensors().safe_open(self._shards[int(shard)].path, framework="numpy") as file:
                yield file, places, rows[places]

    def _take_in(self, path: Path) -> None:
        self._seen.add(path.name)
        library = _safetensors()
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
    """Options, layers and width of a row's states."""


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise MissingExtraError(
            "Storing activations needs the package safetensors: install it with `pip install 'climassay[local]'`."
        ) from error
    return safetensors


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that is never seen half written, not even after a power cut."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _digest(content: object) -> bytes:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).digest()[:KEY_BYTES]
