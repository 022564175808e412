"""Vectors of texts, kept by their content so that a text is encoded once: on disk, or in memory while a job runs."""

import contextlib
import hashlib
import os
import threading
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from climassay.models.contract import Encoder, EncoderRole
from climassay.workspace import cache_folder

_KEPT_AT_ONCE = 512
"""Texts that are encoded before the cache is written: what an interruption can lose."""


def cached_vectors(
    texts: Sequence[str], encoder: Encoder, folder: str, *, on_progress: Callable[[int], None] | None = None
) -> NDArray[np.float32]:
    """Vectors of texts, from the cache where they are.

    Returns:
        Unit vectors, shape [texts, width], in the order of ``texts``.
    """
    file = cache_folder() / folder / f"{encoder.fingerprint[:32]}.npz"
    keys = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
    known = _read(file, encoder.width)
    missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in known}.items())
    if on_progress:
        on_progress(len(texts) - len(missing))
    # Texts of about one length share batches, which are padded to their longest.
    missing.sort(key=lambda entry: len(entry[1]))
    for start in range(0, len(missing), _KEPT_AT_ONCE):
        chunk = missing[start : start + _KEPT_AT_ONCE]
        vectors = encoder.encode([text for _, text in chunk], on_progress=on_progress)
        known |= dict(zip((key for key, _ in chunk), vectors, strict=True))
        _write(file, known)
    return np.stack([known[key] for key in keys]) if keys else np.zeros((0, encoder.width), dtype=np.float32)


def _read(file: Path, width: int) -> dict[str, NDArray[np.float32]]:
    try:
        with np.load(file, allow_pickle=False) as kept:
            keys, vectors = kept["keys"], kept["vectors"]
    except (OSError, ValueError, EOFError, KeyError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error):
        return {}  # not there, or spoilt: encoded anew
    if vectors.shape != (len(keys), width):
        return {}
    return dict(zip(keys.tolist(), vectors, strict=True))


def _write(file: Path, known: dict[str, NDArray[np.float32]]) -> None:
    """Write the cache as a whole; of two processes that do so at once one wins, and the other encodes again."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    # It is only a cache: where the disk is full, the texts are encoded again the next time.
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.suppress(OSError), temporary.open("wb") as target:
            np.savez(target, keys=np.array(list(known)), vectors=np.stack(list(known.values())))
            temporary.replace(file)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


MOST_TEXTS = 32_768
"""Texts whose vectors are kept: 48 MiB at 384 dimensions. Those that were not met for the longest time go first."""


class CachedEncoder:
    """An encoder that encodes a text once; threads may share it."""

    def __init__(self, encoder: Encoder, most: int = MOST_TEXTS) -> None:
        self.wrapped = encoder
        self.name, self.fingerprint, self.width = encoder.name, encoder.fingerprint, encoder.width
        self._most = most
        self._known: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, encoder: Encoder) -> "CachedEncoder":
        """An encoder with a memory; itself, where it has one."""
        return encoder if isinstance(encoder, cls) else cls(encoder)

    def encode(
        self, texts: Sequence[str], *, role: EncoderRole = "passage", on_progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        keys = {text: hashlib.blake2b(f"{role} {text}".encode(), digest_size=16).digest() for text in texts}
        found: dict[str, NDArray[np.float32]] = {}
        with self._lock:
            for text, key in keys.items():
                if (vector := self._known.get(key)) is not None:
                    self._known.move_to_end(key)
                    found[text] = vector
        missing = [text for text in keys if text not in found]
        if on_progress is not None and len(texts) > len(missing):
            on_progress(len(texts) - len(missing))
        if missing:
            found |= zip(missing, self.wrapped.encode(missing, role=role, on_progress=on_progress), strict=True)
            with self._lock:
                # Copies: a row alone would keep the array that it is a row of.
                self._known.update((keys[text], found[text].copy()) for text in missing)
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
        return np.stack([found[text] for text in texts]) if texts else np.zeros((0, self.width), dtype=np.float32)
