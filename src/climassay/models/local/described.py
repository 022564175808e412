"""A local model by what it says about itself: its prompts, its identity and its measures, without its weights.

The weights may be in the workers of a cluster (:mod:`climassay.distributed.remote`), or not be needed at all: answers
that are on record are found by a model's fingerprint and the rendered prompt. So what a model said when it was loaded
is kept in the cache folder, and as long as its files are the same it is loaded when it is first asked something.
"""

import hashlib
import importlib.metadata
import json
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError, ModelError
from climassay.io import write_file
from climassay.models.contract import (
    Activations,
    ActivationsCallback,
    Completion,
    CompletionCallback,
    GenerationRequest,
    Generator,
    Message,
    OptionRequest,
    OptionScores,
    ScoresCallback,
    TextCallback,
    Work,
)
from climassay.models.cpu_settings import DTYPE_VARIABLE, gpu_devices, processor
from climassay.models.local.loading import find_folder, split_adapter
from climassay.models.local.prompts import PromptFormat
from climassay.models.model_files import model_fingerprint
from climassay.workspace import cache_folder

if TYPE_CHECKING:
    from climassay.models.local.model import LocalModel


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model says about itself without computing anything; enough to name requests before they are sent."""

    fingerprint: str
    prompts: PromptFormat
    """Tokenizer and chat template: prompts are rendered, and tokens counted, where the records are."""
    window: int
    layers: int
    dtype: str
    device: str
    token_budget: int
    parameters: int
    licence: str | None
    folder: Path


class DescribedModel:
    """What needs no weights of a local model."""

    def __init__(self, name: str, info: ModelInfo) -> None:
        self.name, self.info, self.fingerprint = name, info, info.fingerprint
        self.window, self.layers, self.parameters = info.window, info.layers, info.parameters
        self.dtype, self.device, self.token_budget = info.dtype, info.device, info.token_budget
        self.licence, self.folder = info.licence, info.folder
        self.prompts = info.prompts

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the model receives it.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        return self.prompts.render(messages, assistant_prefix)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without those of the chat template."""
        return [len(tokens) for tokens in self.prompts.encode_all(texts)]


class LazyModel(DescribedModel):
    """A local model that is loaded when it is first asked; the contract's ``OpenWeights``."""

    def __init__(self, name: str, info: ModelInfo, load: "Callable[[], LocalModel]") -> None:
        super().__init__(name, info)
        self._load = load
        self._lock = threading.Lock()

    @cached_property
    def _loaded(self) -> "LocalModel":
        model = self._load()
        if model.fingerprint != self.fingerprint:
            raise ModelError(f"The files of {self.name} have changed since the command began: start it again.")
        return model

    def loaded(self) -> "LocalModel":
        """The model itself.

        Raises:
            ModelError: It cannot be loaded.
        """
        with self._lock:
            return self._loaded

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order; see the contract."""
        return self.loaded().generate(requests, on_result=on_result) if requests else []

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """The same, with the text so far after every token; see the contract."""
        if not requests:
            return []
        return self.loaded().generate_stream(requests, on_text=on_text, on_result=on_result)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Weigh every request's options, in order; see the contract."""
        return self.loaded().option_logprobs(requests, on_result=on_result) if requests else []

    def harvest(
        self,
        requests: Sequence[OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: ActivationsCallback | None = None,
    ) -> list[Activations]:
        """Hidden states at the last token of every option, float32 [options, layers, width]; see the contract."""
        return self.loaded().harvest(requests, layers=layers, token_budget=token_budget, on_result=on_result)

    @property
    def work(self) -> Work:
        """Computed so far; nothing before it is loaded."""
        return self._loaded.work if "_loaded" in self.__dict__ else Work(0, 0)

    def close(self) -> None:
        """Give back the memory."""
        if "_loaded" in self.__dict__:
            self._loaded.close()


def open_local(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    adapter: str | None = None,
    concurrency: int | None = None,
    max_output_tokens: int | None = None,
) -> "LocalModel | LazyModel":
    """A local model, loaded at once only where it is not known from before; arguments and errors as for `LocalModel`.

    Raises:
        ModelError: The model cannot be found, verified or loaded.
        MissingExtraError: The packages for local models are not installed.
    """

    def load() -> "LocalModel":
        from climassay.models.local.model import LocalModel

        return LocalModel(
            name,
            device=device,
            dtype=dtype,
            adapter=adapter,
            concurrency=concurrency,
            max_output_tokens=max_output_tokens,
        )

    plain, adapter_folder = split_adapter(name.removeprefix("local:"), adapter)
    folder = find_folder(plain)
    card = _card(folder, adapter_folder, device, dtype, max_output_tokens)
    if (info := _kept_info(card)) is not None:
        return LazyModel(name, info, load)
    model = load()
    if model.folder == folder:
        _keep_info(card, model.info)
    return model


def loaded_model(model: Generator) -> "LocalModel | None":
    """The local model itself, loaded; None where it is none."""
    from climassay.models.local.model import LocalModel

    found = model.loaded() if isinstance(model, LazyModel) else model
    return found if isinstance(found, LocalModel) else None


def _card(folder: Path, adapter: Path | None, device: str | None, dtype: str | None, limit: int | None) -> Path:
    """Where it is kept what a model says about itself: by its files, how it is loaded, and what decides the rest."""
    files = model_fingerprint(folder, adapter=adapter, chat_template=None, dtype="")
    versions = [importlib.metadata.version(package) for package in ("torch", "transformers", "tokenizers")]
    known = [
        *(str(folder), files, device, dtype, limit, os.environ.get(DTYPE_VARIABLE), processor(), versions),
        *(gpu_devices(), os.environ.get("CUDA_VISIBLE_DEVICES")),
    ]
    return cache_folder() / "models" / f"{hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]}.json"


def _kept_info(card: Path) -> ModelInfo | None:
    """What a model said about itself, None where that is not known or the card is damaged."""
    try:
        kept = json.loads(card.read_text(encoding="utf-8"))
        folder = Path(kept.pop("folder"))
        return ModelInfo(prompts=PromptFormat(_plain_tokenizer(folder)), folder=folder, **kept)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _keep_info(card: Path, info: ModelInfo) -> None:
    """Keep what a model says about itself, if its tokenizer read without its class is the same."""
    own: Any = info.prompts.tokenizer
    with suppress(OSError, ValueError, AttributeError, InputError):
        read = _plain_tokenizer(info.folder)
        same = own.backend_tokenizer.to_str() == read.backend_tokenizer.to_str()
        same = same and type(own).apply_chat_template is type(read).apply_chat_template
        if same and (own.special_tokens_map, own.chat_template) == (read.special_tokens_map, read.chat_template):
            kept = {part.name: getattr(info, part.name) for part in fields(info) if part.name != "prompts"}
            write_file(card, json.dumps(kept | {"folder": str(info.folder)}).encode())


def _plain_tokenizer(folder: Path) -> Any:
    """A model's tokenizer without its class, for which transformers would import torch: that takes seconds."""
    from transformers import PreTrainedTokenizerFast

    tokenizers: Any = PreTrainedTokenizerFast
    return tokenizers.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
