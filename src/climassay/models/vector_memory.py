"""Vectors of texts, kept in memory by the text, for work that meets the same sentences again and again."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from climassay.models.contract import Encoder, EncoderRole

MOST_TEXTS = 32_768
"""Texts whose vectors are kept: 48 MiB at 384 dimensions. Those that were not met for the longest time go first."""


class VectorMemory:
    """An encoder that encodes a text once; threads may share it.

    Args:
        encoder: Encodes what is not known.
        most: Texts kept.
    """

    def __init__(self, encoder: Encoder, most: int = MOST_TEXTS) -> None:
        self.wrapped = encoder
        self.name, self.fingerprint, self.width = encoder.name, encoder.fingerprint, encoder.width
        self._most = most
        self._known: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, encoder: Encoder) -> "VectorMemory":
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
