"""Vectors of the tokens of texts, from a layer of any transformers encoder; for BERTScore."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.models.bundled import bundled_path
from climassay.models.encoders.loading import BUNDLED_ENCODER, token_batches
from climassay.models.model_files import refuse_kernels

_PREFIX = "local:"
_TOKEN_BUDGET = 8192
"""Padded tokens in a batch."""
_LONGEST = 512
"""Tokens of a text where a tokenizer names no limit of its own (it then names an absurdly large one)."""
_SPACE_FIRST = ("roberta", "gpt2")
"""Kinds of models whose tokenizers read the first word of a text otherwise than the others, unless a space leads.

BERTScore's authors put one there; under transformers 5 their library does not any more.
"""

PUBLISHED_LAYERS = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "bert-base-multilingual-cased": 9,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "distilbert-base-uncased": 5,
    "distilroberta-base": 5,
    "allenai/scibert_scivocab_uncased": 8,
    "microsoft/deberta-xlarge-mnli": 40,
}
"""Layers that BERTScore's authors chose for models, by correlation with human judgement of translations (WMT16)."""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The tokens of one text."""

    ids: tuple[int, ...]
    """Of the vocabulary, with the special tokens that the model wants."""
    special: NDArray[np.bool_]
    """Which of them are special, shape [tokens]."""
    vectors: NDArray[np.float32]
    """Unit vectors, shape [tokens, width]."""

    @property
    def empty(self) -> bool:
        """Whether there is no token but special ones."""
        return bool(self.special.all())


class TokenEncoder:
    """A transformers encoder that gives a vector for every token; loaded when it is first used.

    It runs in float32 on the processor, or on the GPU where there is one. Texts beyond the model's length are cut.
    """

    def __init__(self, name: str, layer: int | None = None, *, batch_tokens: int = _TOKEN_BUDGET) -> None:
        """Prepare; nothing is loaded yet.

        Args:
            name: ``local:minilm`` (bundled), or ``local:`` and a folder or a hub id (``local:roberta-large``).
            layer: Layer whose states are taken, counted from 1; by default the one of :data:`PUBLISHED_LAYERS`, or the
                last one.
            batch_tokens: Padded tokens that go through the model at once.

        Raises:
            InputError: The name has no ``local:``.
        """
        if not name.startswith(_PREFIX) or name == _PREFIX:
            raise InputError(f"{name!r} names no encoder: write local:minilm, or local: and a folder or a hub id.")
        self.name = name
        self._layer = layer
        self._batch_tokens = batch_tokens

    @cached_property
    def layer(self) -> int:
        """Number of the layer whose states are taken.

        Raises:
            InputError: The model has no such layer.
        """
        deepest = int(self._model.config.num_hidden_layers)
        chosen = self._layer if self._layer is not None else PUBLISHED_LAYERS.get(self.name.removeprefix(_PREFIX))
        if chosen is None:
            return deepest
        if not 1 <= chosen <= deepest:
            raise InputError(f"{self.name} has the layers 1 to {deepest}, not {chosen}.")
        return chosen

    def encode(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors of each text, in order; a text's vectors do not depend on the others beyond rounding."""
        import torch

        rows = [self._ids(text) for text in texts]
        encoded: list[TokenVectors | None] = [None] * len(rows)
        for batch in token_batches([len(row) for row in rows], self._batch_tokens):
            longest = max(len(rows[place]) for place in batch)
            ids = torch.full((len(batch), longest), self._tokenizer.pad_token_id or 0)
            mask = torch.zeros(len(batch), longest, dtype=torch.long)
            for line, place in enumerate(batch):
                ids[line, : len(rows[place])] = torch.tensor(rows[place])
                mask[line, : len(rows[place])] = 1
            states = self._states(ids, mask)
            for line, place in enumerate(batch):
                encoded[place] = self._vectors(rows[place], states[line, : len(rows[place])])
        return [one for one in encoded if one is not None]

    def _states(self, ids: Any, mask: Any) -> NDArray[np.float32]:
        """States of the chosen layer, shape [texts, tokens, width]."""
        import torch

        with torch.inference_mode():
            device = self._model.device
            out = self._model(ids.to(device), attention_mask=mask.to(device), output_hidden_states=True)
            states: NDArray[np.float32] = out.hidden_states[self.layer].float().cpu().numpy()
        return states

    def _vectors(self, ids: Sequence[int], states: NDArray[np.float32]) -> TokenVectors:
        special = np.isin(ids, self._tokenizer.all_special_ids)
        # A word that the vocabulary does not know is marked special by the tokenizer, but it is a word of the text.
        special &= np.asarray(ids) != self._tokenizer.unk_token_id
        return TokenVectors(tuple(ids), special, states / np.linalg.norm(states, axis=1, keepdims=True))

    def _ids(self, text: str) -> list[int]:
        plain = text.strip()
        if plain and self._model.config.model_type in _SPACE_FIRST:
            plain = f" {plain}"
        longest = min(self._tokenizer.model_max_length, self._longest)
        ids: list[int] = self._tokenizer(plain, truncation=True, max_length=longest)["input_ids"]
        return ids

    @cached_property
    def _longest(self) -> int:
        """Most tokens that the model has positions for."""
        places = int(getattr(self._model.config, "max_position_embeddings", _LONGEST))
        # RoBERTa's positions begin after the padding's.
        return min(_LONGEST, places - 2) if self._model.config.model_type == "roberta" else min(_LONGEST, places)

    @cached_property
    def _folder(self) -> str:
        if self.name == BUNDLED_ENCODER:
            return str(bundled_path("minilm"))
        return str(Path(self.name.removeprefix(_PREFIX)).expanduser())

    @cached_property
    def _tokenizer(self) -> Any:
        return self._load("AutoTokenizer")

    @cached_property
    def _model(self) -> Any:
        import torch

        model = self._load("AutoModel", dtype=torch.float32, use_safetensors=True)
        return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def _load(self, kind: str, **settings: Any) -> Any:
        try:
            import transformers
            from transformers.utils import logging
        except ImportError as error:
            raise MissingExtraError(
                f"BERTScore with {self.name} needs torch and transformers: run `pip install 'climassay[local]'`."
            ) from error
        logging.disable_progress_bar()
        refuse_kernels(Path(self._folder))
        try:
            # Without a word on it, transformers would ask on the terminal whether to run the code of a model.
            return getattr(transformers, kind).from_pretrained(self._folder, trust_remote_code=False, **settings)
        except Exception as error:
            # What transformers raises for a folder that is not one, or is damaged, belongs to no one family.
            raise ModelError(
                f"The encoder {self.name} is neither a transformers folder with safetensors weights here nor such a "
                f"model that the hub gives out ({type(error).__name__}): check its name and the connection."
            ) from error


@cache
def token_encoder(name: str, layer: int | None = None) -> TokenEncoder:
    """The encoder of that name and layer, loaded once a process."""
    return TokenEncoder(name, layer)
