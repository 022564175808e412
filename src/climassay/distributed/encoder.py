"""An encoder in the workers: the contract's ``Encoder`` and ``StreamingEncoder``."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from climassay.distributed.jobs import Done, EncoderFront, EncodingJob, Wanted
from climassay.models.contract import EncoderRole

if TYPE_CHECKING:
    from climassay.distributed.pool import WorkerPool

MOST_TEXTS = 64
"""Texts of a job."""

Vectors = NDArray[np.float32]


@dataclass(slots=True)
class _Chunk:
    """A chunk of texts of which some parts may be encoded."""

    number: int
    vectors: Vectors
    left: int
    """Texts that have no vector yet."""


class DistributedEncoder:
    """Encodes in many workers what another encoder would encode here, to the same vectors.

    It has the name and the fingerprint of that encoder: a collection made with it is searched and added to without it.

    Args:
        pool: The workers.
        wanted: What they load.
        name: Of the encoder, as the user wrote it.
        front: What it says about itself.
    """

    def __init__(self, pool: "WorkerPool", wanted: Wanted, name: str, front: EncoderFront) -> None:
        self._pool = pool
        self._wanted = wanted
        self._front = front
        self.name = name

    @property
    def fingerprint(self) -> str:
        """That of the encoder in the workers."""
        return self._front.fingerprint

    @property
    def width(self) -> int:
        """Number of dimensions."""
        return self._front.width

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: EncoderRole = "passage",
        on_progress: Callable[[int], None] | None = None,
    ) -> Vectors:
        """Unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`.

        Raises:
            ModelError: No worker is left, or a text could not be encoded by several workers in turn.
        """
        from climassay.distributed.pool import shares

        size = shares(len(texts), self._pool.workers, MOST_TEXTS)
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for _, found in self._encoded([texts], size, role, on_progress):
            vectors = found
        return vectors

    def encode_stream(
        self, chunks: Iterable[Sequence[str]], *, on_progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[int, Vectors]]:
        """Vectors of chunks of passages; see :class:`~climassay.models.contract.StreamingEncoder`.

        Raises:
            ModelError: No worker is left, or a text could not be encoded by several workers in turn.
        """
        return self._encoded(chunks, MOST_TEXTS, "passage", on_progress)

    def _encoded(
        self,
        chunks: Iterable[Sequence[str]],
        size: int,
        role: EncoderRole,
        on_progress: Callable[[int], None] | None,
    ) -> Iterator[tuple[int, Vectors]]:
        places: dict[int, tuple[_Chunk, int]] = {}
        numbers = count()

        def jobs() -> Iterator[EncodingJob]:
            for number, texts in enumerate(chunks):
                chunk = _Chunk(number, np.zeros((len(texts), self.width), dtype=np.float32), len(texts))
                for start in range(0, len(texts), size):
                    places[next(numbers)] = (chunk, start)
                    yield EncodingJob(texts[start : start + size], role)

        for number, done in self._pool.run(self._wanted, jobs()):
            chunk, start = places.pop(number)
            taken = self._take(chunk, start, done)
            if on_progress is not None:
                on_progress(taken)
            if not chunk.left:
                yield chunk.number, chunk.vectors

    def _take(self, chunk: _Chunk, start: int, done: Done) -> int:
        """Put the vectors of a job into their chunk; gives how many there are."""
        vectors = done.checked(self.fingerprint).vectors()
        chunk.vectors[start : start + len(vectors)] = vectors
        chunk.left -= len(vectors)
        return len(vectors)
