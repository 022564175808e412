"""Encoders by name: the bundled one, or any sentence-transformers folder or hub id."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import MissingExtraError, ModelError
from climassay.models.bundled import bundled_path
from climassay.models.contract import Encoder, EncoderRole
from climassay.models.encoders.bert import GRAPH_VERSION, WINDOW_TOKENS, BertEncoder
from climassay.models.model_files import encoder_fingerprint, refuse_kernels, refuse_pickles

BUNDLED_ENCODER = "local:minilm"
"""The default: all-MiniLM-L6-v2."""

TOKEN_BUDGET = 8192
"""Padded tokens in a batch: a few megabytes of activations, large enough to keep a CPU or a small GPU busy."""
_PREFIX = "local:"
_HUB_FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "README.md"]


def load_encoder(name: str = BUNDLED_ENCODER, device: str | None = None, *, threads: int | None = None) -> Encoder:
    """An encoder by its name; its weights are loaded when it first encodes.

    The bundled encoder always runs on the processor, in 8-bit ONNX Runtime, so that a collection made on one machine
    can be searched on any other. Any other model runs in torch and in its own precision.

    Args:
        name: ``local:minilm`` (bundled all-MiniLM-L6-v2), or ``local:`` and a sentence-transformers folder or hub id.
        device: torch's name of a device, for example ``cuda:0``; by default the GPU where there is one.
        threads: Texts that the bundled encoder encodes at the same time; by default as many as there are cores.

    Raises:
        ModelError: The name has no ``local:``, the model is not there or not the published one, or the bundled encoder
            is asked to run elsewhere than on the processor.
    """
    if not name.startswith(_PREFIX) or name == _PREFIX:
        raise ModelError(f"{name!r} names no encoder: write local:minilm, or local: and a folder or a hub id.")
    if name != BUNDLED_ENCODER:
        folder = _find_folder(name.removeprefix(_PREFIX))
        return SentenceTransformerEncoder(name, folder, encoder_fingerprint(folder, {"engine": "torch"}), device)
    if device not in (None, "cpu"):
        raise ModelError(
            f"The bundled encoder runs on the processor, not on {device}: "
            "for a GPU take local:sentence-transformers/all-MiniLM-L6-v2 or another model."
        )
    folder = bundled_path("minilm")
    engine = {"engine": f"graph {GRAPH_VERSION}", "precision": "int8", "windows": str(WINDOW_TOKENS)}
    return BertEncoder(name, folder, encoder_fingerprint(folder, engine), threads=threads)


def _find_folder(name: str) -> Path:
    """A folder here, or that of a hub model, downloaded when it is not in the hub's own cache."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"There is no encoder folder at {folder}.")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise ModelError(
            f"There is no encoder folder {name}, and the hub cannot be asked: run `pip install 'climassay[local]'`."
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ModelError(
            f"The encoder {name} is neither a folder here nor a model that the hub gives out "
            f"({type(error).__name__}): check its name and the connection."
        ) from error


class SentenceTransformerEncoder:
    """A sentence-transformers folder, run by torch in the precision of its weights, which are loaded when first needed.

    The model's own prompts are used where it has them: ``query`` for queries and ``document`` for passages. Texts
    beyond the model's stated length are cut by its tokenizer.
    """

    def __init__(self, name: str, folder: Path, fingerprint: str, device: str | None = None) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._folder = folder
        self._device = device

    @property
    def width(self) -> int:
        """Number of dimensions.

        Raises:
            ModelError: The model cannot be loaded, or does not say.
        """
        width = self._model.get_embedding_dimension()
        if width is None:
            raise ModelError(f"The encoder {self.name} does not say how many dimensions its vectors have.")
        return int(width)

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: EncoderRole = "passage",
        on_progress: Callable[[int], None] | None = None,
    ) -> NDArray[np.float32]:
        """Unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        for batch in token_batches(self._lengths(texts), TOKEN_BUDGET):
            vectors[batch] = encode(
                [texts[index] for index in batch],
                batch_size=len(batch),
                normalize_embeddings=True,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
            if on_progress is not None:
                on_progress(len(batch))
        return vectors

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, at most the model's length; guessed from characters where it has no usual tokenizer."""
        limit = self._model.max_seq_length or 512
        try:
            ids = self._model.tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
        except (AttributeError, KeyError, TypeError):
            return [min(limit, 2 + len(text) // 4) for text in texts]
        return [len(row) for row in ids]

    @cached_property
    def _model(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtraError(
                f"The encoder {self.name} needs sentence-transformers: run `pip install 'climassay[local]'`."
            ) from error
        try:
            refuse_pickles(self._folder)
            refuse_kernels(self._folder)
            return SentenceTransformer(
                str(self._folder),
                device=self._device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except ModelError:
            raise
        except Exception as error:
            # What its parts raise for a folder that is damaged, or wants its own code to be run, is of no one family.
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(
                f"The encoder {self.name} cannot be loaded from {self._folder}: {lines[0].rstrip('.')}."
            ) from error


def token_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group texts by their lengths, longest first, so that no batch has more padded tokens than a budget.

    A single longer text is a batch of its own. Each index into ``lengths`` comes exactly once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    batch: list[int] = []
    for index in order:
        # Longest first: the first text of a batch decides the width of all of it.
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
