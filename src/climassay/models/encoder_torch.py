"""Any sentence-transformers model as an :class:`~climassay.models.contract.Encoder`."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import MissingExtraError, ModelError
from climassay.models.contract import EncoderRole
from climassay.models.encoder_batches import token_batches
from climassay.models.folder_checks import refuse_kernels, refuse_pickles

TOKEN_BUDGET = 8192
"""Padded tokens in a batch: a few megabytes of activations, large enough to keep a CPU or a small GPU busy."""


class SentenceTransformerEncoder:
    """A sentence-transformers folder, run by torch in the precision of its weights.

    The model's own prompts are used where it has them: ``query`` for queries and ``document`` for passages. Texts
    beyond the model's stated length are cut by its tokenizer. Weights are loaded at the first encoding.
    """

    def __init__(self, name: str, folder: Path, fingerprint: str, device: str | None = None) -> None:
        """Prepare an encoder; nothing is loaded yet.

        Args:
            name: As the user wrote it.
            folder: Folder with ``modules.json`` or a plain transformers model.
            fingerprint: See :func:`climassay.models.encoder.folder_fingerprint`.
            device: torch's name of a device; by default the GPU where there is one.
        """
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
