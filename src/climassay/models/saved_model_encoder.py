"""TensorFlow encoders of sentences in a folder, such as the Universal Sentence Encoder (Cer et al. 2018).

The published phrase similarity of ClimaQA uses ``google/universal-sentence-encoder/4``, which is a *SavedModel*: a
folder with ``saved_model.pb`` and ``variables``. Its hub offers it as an archive, to be unpacked by the user.

A SavedModel holds the graph of a program. A graph with operations that read or write other files, or call Python, is
rejected before it is loaded.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import MissingExtraError, ModelError
from climassay.models.bundled import file_digest
from climassay.models.contract import EncoderRole

PREFIX = "savedmodel:"
_GRAPH = "saved_model.pb"
_BATCH_SIZE = 64
_REFUSED_OPERATIONS = frozenset(
    {
        "CreateSummaryFileWriter",
        "DebugIdentityV2",
        "DebugNumericSummaryV2",
        "EagerPyFunc",
        "FixedLengthRecordDataset",
        "LoadAndRemapMatrix",
        "MatchingFiles",
        "PrintV2",
        "PyFunc",
        "PyFuncStateless",
        "ReadFile",
        "Save",
        "SaveSlices",
        "TextLineDataset",
        "TFRecordDataset",
        "WriteFile",
    }
)


class SavedModelEncoder:
    """Encoder from a folder in TensorFlow's SavedModel format, loaded at first use.

    Raises:
        ModelError: The folder holds no SavedModel.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._folder = Path(name.removeprefix(PREFIX)).expanduser()
        if not (self._folder / _GRAPH).is_file():
            raise ModelError(
                f"{self._folder} is no folder with {_GRAPH}: unpack the encoder there, for example the Universal "
                "Sentence Encoder (TensorFlow 2, version 4)."
            )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all files of the folder."""
        digest = hashlib.sha256()
        for path in sorted(path for path in self._folder.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(self._folder).as_posix()}\0{file_digest(path)}\n".encode())
        return digest.hexdigest()

    @cached_property
    def width(self) -> int:
        """Number of dimensions of the vectors.

        Raises:
            ModelError: The model cannot be loaded, or its function does not map texts to vectors.
        """
        return int(self._encode_batch(["width"]).shape[1])

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: EncoderRole = "passage",  # noqa: ARG002
        on_progress: Callable[[int], None] | None = None,
    ) -> NDArray[np.float32]:
        """Return unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for start in range(0, len(texts), _BATCH_SIZE):
            batch = self._encode_batch(texts[start : start + _BATCH_SIZE])
            norms = np.linalg.norm(batch, axis=1, keepdims=True)
            vectors[start : start + len(batch)] = batch / np.maximum(norms, np.finfo(np.float32).tiny)
            if on_progress is not None:
                on_progress(len(batch))
        return vectors

    def _encode_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = self._model
        try:
            vectors = np.asarray(model(list(texts)), dtype=np.float32)
        except Exception as error:
            # TensorFlow's exceptions have no common base class.
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(f"The encoder {self.name} cannot encode texts: {lines[0].rstrip('.')}.") from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ModelError(f"The encoder {self.name} returns no vector for each text.")
        return vectors

    @cached_property
    def _model(self) -> Any:
        try:
            import tensorflow
            from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
        except ImportError as error:
            raise MissingExtraError(
                f"The encoder {self.name} needs TensorFlow: run `pip install 'climassay[use]'`."
            ) from error
        graph = SavedModel()
        try:
            graph.ParseFromString((self._folder / _GRAPH).read_bytes())
        except Exception as error:
            raise ModelError(f"{self._folder / _GRAPH} cannot be read: it is damaged.") from error
        refused_operations = sorted(_REFUSED_OPERATIONS.intersection(_iterate_operations(graph)))
        if refused_operations:
            raise ModelError(
                f"The encoder {self.name} is not loaded: its graph has the operation {refused_operations[0]}."
            )
        try:
            return tensorflow.saved_model.load(str(self._folder))
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(f"The encoder {self.name} cannot be loaded: {lines[0].rstrip('.')}.") from error


def _iterate_operations(graph: Any) -> Iterator[str]:
    for meta_graph in graph.meta_graphs:
        for node in meta_graph.graph_def.node:
            yield node.op
        for function in meta_graph.graph_def.library.function:
            for node in function.node_def:
                yield node.op
