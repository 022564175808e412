"""The bundled encoder on ONNX Runtime: eight-bit, without padding, on all cores, started in a fraction of a second."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import MissingExtraError, ModelError
from climassay.io import write_file
from climassay.models.contract import EncoderRole
from climassay.models.encoder_graph import BertShape, Precision, build_graph
from climassay.models.file_digest import file_digest
from climassay.workspace import cache_folder

WINDOW_TOKENS = 256
"""Most tokens the model sees at once, its two special tokens included: its authors' own limit."""
_TEXT_BLOCK = 1024
"""Texts that are tokenised together, so that many texts do not all have their tokens in memory."""


class BertEncoder:
    """A sentence-transformers BERT with mean pooling, as a quantised ONNX graph.

    A text longer than :data:`WINDOW_TOKENS` is cut into windows of equal length and gets the mean of their vectors,
    weighted by their tokens: nothing of a 2000-character passage (about 400 tokens) is lost. ``benchmarks/encoder.py``
    compares this with cutting at 256 or 512 tokens and with the same windows in float32, in speed and in recall.

    The graph is made once in the cache folder; a text's vector does not depend on the texts encoded with it, nor on
    the number of threads.
    """

    def __init__(
        self, name: str, folder: Path, fingerprint: str, precision: Precision = "int8", threads: int | None = None
    ) -> None:
        """Prepare an encoder; nothing is loaded yet.

        Args:
            name: As the user wrote it.
            folder: With ``config.json``, ``model.safetensors`` and ``tokenizer.json``.
            fingerprint: See :func:`climassay.models.encoder.folder_fingerprint`; names the graph in the cache.
            precision: Of the matrix products.
            threads: Texts encoded at the same time; by default as many as there are cores.
        """
        self.name = name
        self.fingerprint = fingerprint
        self._folder = folder
        self._precision: Precision = precision
        self._threads = threads or _cores()

    @cached_property
    def width(self) -> int:
        """Number of dimensions."""
        return BertShape.of(self._folder).width

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: EncoderRole = "passage",  # noqa: ARG002 - this model treats queries and passages alike
        on_progress: Callable[[int], None] | None = None,
    ) -> NDArray[np.float32]:
        """Unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        if not texts:
            return vectors
        session = self._session
        with ThreadPoolExecutor(min(self._threads, len(texts))) as pool:
            done = 0
            for block in _blocks(texts):
                tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(block, add_special_tokens=False)]
                for vector in pool.map(lambda ids: self._vector(session, ids), tokens):
                    vectors[done] = vector
                    done += 1
                    if on_progress is not None:
                        on_progress(1)
        return vectors

    def _vector(self, session: Any, ids: Sequence[int]) -> NDArray[np.float32]:
        """Unit vector of one text of any length."""
        start, end = self._special_tokens
        total = np.zeros(self.width, dtype=np.float32)
        for window in windows(ids, WINDOW_TOKENS - 2):
            (vector,) = session.run(None, {"ids": np.array([[start, *window, end]], dtype=np.int32)})
            # An empty text has no token to weigh it with, but a vector all the same.
            total += vector[0] * max(len(window), 1)
        return total / np.linalg.norm(total)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _special_tokens(self) -> tuple[int, int]:
        """Ids of the tokens before and after every text."""
        start, end = self._tokenizer.encode("").ids
        return int(start), int(end)

    @cached_property
    def _session(self) -> Any:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError(
                f"The encoder {self.name} needs onnxruntime: run `pip install 'climassay[local]'`."
            ) from error
        options = onnxruntime.SessionOptions()
        # Texts are spread over threads; within a text one thread is enough and never waits for another.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # The extended optimisations would fuse the layer norms back into the slow operator.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        graph = self._graph_file()
        try:
            return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            graph.unlink(missing_ok=True)
            raise ModelError(
                f"The encoder graph {graph} could not be loaded ({error}) and has been removed: "
                "run the command again, it is made anew."
            ) from error

    def _graph_file(self) -> Path:
        """The graph in the cache, made when it is not there or spoilt; several processes may make it at once."""
        file = cache_folder() / "encoders" / f"{self.fingerprint[:32]}-{self._precision}.onnx"
        receipt = file.with_suffix(".sha256")
        # One flipped bit of a weight would change every vector, and nobody would see it.
        if not (file.is_file() and _said(receipt) == file_digest(file)):
            file.parent.mkdir(parents=True, exist_ok=True)
            graph = build_graph(self._folder, self._precision)
            write_file(file, graph)
            write_file(receipt, hashlib.sha256(graph).hexdigest().encode())
        return file


def _said(receipt: Path) -> str:
    try:
        return receipt.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def windows(ids: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """Cut tokens into the fewest windows of at most ``most``, all of nearly the same length; one, if there are none."""
    count = max(1, -(-len(ids) // most))
    for number in range(count):
        yield ids[number * len(ids) // count : (number + 1) * len(ids) // count]


def _blocks(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), _TEXT_BLOCK):
        yield list(texts[start : start + _TEXT_BLOCK])


def _cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
