"""Find a local model by name and load it (bundled, from a folder, or from the Hugging Face hub), or do without loading.

Answers that are on record are found by a model's fingerprint and the rendered prompt, and the weights may be in the
workers of a cluster. So what a model said about itself when it was loaded (:class:`ModelInfo`) is kept in the cache
folder, and as long as its files are the same it is loaded when it is first asked something.
"""

import gc
import hashlib
import importlib.metadata
import json
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.io import write_file
from climassay.models.bundled import BUNDLED, bundled_path
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
from climassay.models.cpu_settings import DTYPE_VARIABLE, fastest_cpu_dtype, gpu_devices, processor
from climassay.models.local.prompts import PromptFormat
from climassay.models.model_files import check_adapter, model_fingerprint, refuse_kernels
from climassay.workspace import cache_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from climassay.models.local.model import LocalModel


DTYPES = ("float32", "bfloat16", "float16")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken", "README.md"]
_ADAPTER_SEPARATOR = "+adapter="


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, ready to be asked."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    folder: Path
    fingerprint: str
    device: str
    dtype: str
    licence: str | None
    """As its authors state it; None where they do not."""
    seconds: float
    """Time it took to load."""


def load_local(
    name: str, *, device: str | None = None, dtype: str | None = None, adapter: str | None = None
) -> LoadedModel:
    """Load a model and its tokenizer.

    Code that comes with a model is never run, and weights are read from safetensors only, never from pickles.

    Args:
        name: Bundled name, folder or hub id, without ``local:``; ``+adapter=FOLDER`` at its end names an adapter.
        device: As torch names it (``cpu``, ``cuda``, ``cuda:1``), or ``auto`` to spread a model over several GPUs; by
            default a GPU when there is one.
        dtype: One of :data:`DTYPES`; by default bfloat16 on a GPU (float16 where it has none), float16 on a
            Mac's, and on a CPU what is faster there, see :func:`~climassay.models.cpu_settings.fastest_cpu_dtype`.
        adapter: Folder of a PEFT adapter; its weights are merged into the model.

    Raises:
        ModelError: The model cannot be found, verified or loaded.
        MissingExtraError: The packages for local models are not installed.
    """
    # Importing torch and transformers makes millions of objects that stay; looking for garbage there costs 1 s.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _load(name, device, dtype, adapter)
    finally:
        if collecting:
            gc.enable()


def _load(name: str, device: str | None, dtype: str | None, adapter: str | None) -> LoadedModel:
    started = time.perf_counter()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtraError(
            f"Local models need the package {error.name}: install it with `pip install 'climassay[local]'`."
        ) from error
    transformers.utils.logging.disable_progress_bar()
    name, adapter_folder = split_adapter(name, adapter)
    folder = find_folder(name)
    device = device or default_device()
    dtype = dtype or default_dtype(device)
    if dtype not in DTYPES:
        raise ModelError(f"There is no dtype {dtype!r} for a model: use one of {', '.join(DTYPES)}.")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(folder), trust_remote_code=False, local_files_only=True
        )
    except Exception as error:
        raise _cannot_load("tokenizer", name, error) from error
    options: dict[str, Any] = {"dtype": getattr(torch, dtype)}
    if device != "cpu":
        options["device_map"] = "auto" if device == "auto" else {"": device}
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, use_safetensors=True, **options
        )
    except Exception as error:
        raise _cannot_load("model", name, error) from error
    if adapter_folder is not None:
        model = _merge_adapter(model, adapter_folder)
    model.eval().requires_grad_(False)
    template = tokenizer.chat_template
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        folder=folder,
        fingerprint=model_fingerprint(
            folder, adapter=adapter_folder, chat_template=template if template is None else str(template), dtype=dtype
        ),
        device=str(model.device),
        dtype=dtype,
        licence=BUNDLED[name].licence if name in BUNDLED else stated_licence(folder),
        seconds=time.perf_counter() - started,
    )


def find_folder(name: str) -> Path:
    """Folder of a model, fetched from the hub when the name is neither bundled nor a folder.

    Raises:
        ModelError: There is no such model.
    """
    if name in BUNDLED:
        if BUNDLED[name].kind != "generator":
            raise ModelError(f"The bundled model {name} is an encoder and cannot generate: use local:smollm2.")
        return bundled_path(name)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _check_folder(folder.absolute())
    if not _HUB_ID.fullmatch(name) or folder.exists():
        raise ModelError(f"There is no model at {name}: give a bundled name, a folder with a model, or a hub id.")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        fetched = snapshot_download(name, allow_patterns=_HUB_FILES, ignore_patterns=["*/*"])
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"The hub has no public model named {name}: check the name, or log in if it is gated."
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise ModelError(
            f"The model {name} is neither a bundled name ({', '.join(sorted(BUNDLED))}) nor a folder, and the hub "
            "could not be reached to look for it there."
        ) from error
    return _check_folder(Path(fetched))


def stated_licence(folder: Path) -> str | None:
    """Licence named at the head of the model's README, None when there is none."""
    try:
        head = (folder / "README.md").read_text(encoding="utf-8", errors="replace")[:4000]
    except OSError:
        return None
    match = re.search(r"\A---\s.*?^license(?:_name)?:\s*['\"]?([^'\"\n]+)", head, re.DOTALL | re.MULTILINE)
    return match.group(1).strip() if match else None


def split_adapter(name: str, adapter: str | None) -> tuple[str, Path | None]:
    """A model's name without its adapter, and the folder of that one.

    Raises:
        ModelError: Two adapters are given, or the folder holds none that can be read.
    """
    name, separator, in_name = name.partition(_ADAPTER_SEPARATOR)
    if separator and adapter:
        raise ModelError(f"Two adapters are given, {in_name} in the model's name and {adapter}: give one of them.")
    chosen = in_name or adapter
    if not chosen:
        return name, None
    folder = Path(chosen).expanduser().absolute()
    if not (folder / "adapter_config.json").is_file():
        raise ModelError(f"There is no adapter in {folder}: it has no adapter_config.json.")
    if not (folder / "adapter_model.safetensors").is_file():
        raise ModelError(f"The adapter in {folder} has no adapter_model.safetensors: save it in that format.")
    check_adapter(folder)
    return name, folder


def _check_folder(folder: Path) -> Path:
    if not (folder / "config.json").is_file():
        raise ModelError(f"There is no model in {folder}: it has no config.json.")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"The model in {folder} has no safetensors weights: save it again with `save_pretrained` (other formats "
            "can run code when they are read, and are not read)."
        )
    refuse_kernels(folder)
    return folder


def default_device() -> str:
    """The first GPU, else the CPU."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def default_dtype(device: str) -> str:
    """What a model computes with on a device where nothing else is said; see :func:`load_local`."""
    import torch

    if device == "cpu":
        return fastest_cpu_dtype()
    if device == "mps":
        return "float16"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


def _merge_adapter(model: "PreTrainedModel", folder: Path) -> "PreTrainedModel":
    try:
        from peft import PeftModel
    except ImportError as error:
        raise MissingExtraError(
            "A model with an adapter needs the package peft: install it with `pip install 'climassay[local]'`."
        ) from error
    try:
        return PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    except Exception as error:
        raise _cannot_load("adapter", str(folder), error) from error


def _cannot_load(part: str, name: str, error: Exception) -> ModelError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return ModelError(f"The {part} {name} cannot be loaded: {lines[0].strip().rstrip('.')}.")


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
