"""Find a local model by name (bundled, a folder, or on the Hugging Face hub) and load it."""

import gc
import re
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import MissingExtraError, ModelError
from climassay.models.bundled import BUNDLED, bundled_path, check_adapter, model_fingerprint, refuse_kernels
from climassay.models.local.cpu_settings import fastest_cpu_dtype, measured_cpu_dtype

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DTYPES = ("float32", "bfloat16", "float16")
_HUB_ID = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
_HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken", "README.md"]
_ADAPTER_SEPARATOR = "+adapter="


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Model in memory, ready for computation."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    folder: Path
    fingerprint: str
    device: str
    dtype: str
    licence: str | None
    """Licence as stated by the authors, or None."""
    seconds: float
    """Loading time in seconds."""


def load_local(
    name: str, *, device: str | None = None, dtype: str | None = None, adapter: str | None = None
) -> LoadedModel:
    """Load a model and its tokenizer.

    Code that comes with a model is never run, and weights are read from safetensors only, never from pickles.

    Args:
        name: Bundled name, folder or hub id, without ``local:``; may end in ``+adapter=FOLDER``.
        device: torch device (``cpu``, ``cuda``, ``cuda:1``), or ``auto`` to distribute a model over GPUs; by default a
            GPU if there is one.
        dtype: One of :data:`DTYPES`; by default bfloat16 on a GPU (float16 if not supported), float16 on a Mac's GPU,
            and :func:`~climassay.models.local.cpu_settings.fastest_cpu_dtype` on a CPU.
        adapter: Folder of a PEFT adapter; its weights are merged into the model.

    Raises:
        ModelError: The model cannot be found, verified or loaded.
        MissingExtraError: The packages for local models are not installed.
    """
    # Importing torch and transformers makes millions of objects that stay; looking for garbage there costs 1 s.
    was_gc_enabled = gc.isenabled()
    gc.disable()
    try:
        return _load_model(name, device, dtype, adapter)
    finally:
        if was_gc_enabled:
            gc.enable()


def _load_model(name: str, device: str | None, dtype: str | None, adapter: str | None) -> LoadedModel:
    start_time = time.perf_counter()
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
        raise ModelError(f"There is no dtype {dtype!r}: use one of {', '.join(DTYPES)}.")
    if device == "cpu" and dtype == "bfloat16" and measured_cpu_dtype() != dtype:
        warnings.warn(
            "This processor has no fast bfloat16, so the model may run many times slower than in float32: omit --dtype "
            "or use float32.",
            stacklevel=3,
        )
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(folder), trust_remote_code=False, local_files_only=True
        )
    except Exception as error:
        raise _loading_error("tokenizer", name, error) from error
    options: dict[str, Any] = {"dtype": getattr(torch, dtype)}
    if device != "cpu":
        options["device_map"] = "auto" if device == "auto" else {"": device}
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, use_safetensors=True, **options
        )
    except Exception as error:
        raise _loading_error("model", name, error) from error
    if adapter_folder is not None:
        try:
            from peft import PeftModel
        except ImportError as error:
            raise MissingExtraError(
                "A model with an adapter needs the package peft: install it with `pip install 'climassay[local]'`."
            ) from error
        try:
            model = PeftModel.from_pretrained(model, str(adapter_folder)).merge_and_unload()
        except Exception as error:
            raise _loading_error("adapter", str(adapter_folder), error) from error
    model.eval().requires_grad_(False)
    chat_template = tokenizer.chat_template
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        folder=folder,
        fingerprint=model_fingerprint(
            folder,
            adapter=adapter_folder,
            chat_template=chat_template if chat_template is None else str(chat_template),
            dtype=dtype,
        ),
        device=str(model.device),
        dtype=dtype,
        licence=BUNDLED[name].licence if name in BUNDLED else stated_licence(folder),
        seconds=time.perf_counter() - start_time,
    )


def _loading_error(part: str, name: str, error: Exception) -> ModelError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return ModelError(f"The {part} {name} cannot be loaded: {lines[0].strip().rstrip('.')}.")


def split_adapter(name: str, adapter: str | None) -> tuple[str, Path | None]:
    """Return a model's name without ``+adapter=FOLDER``, and the folder of the adapter.

    ``adapter`` is a folder stated apart from the name. The returned folder is None if neither states one.

    Raises:
        ModelError: Two adapters are named, or the folder contains no readable adapter.
    """
    name, separator, adapter_in_name = name.partition(_ADAPTER_SEPARATOR)
    if separator and adapter:
        raise ModelError(f"Two adapters are given, {adapter_in_name} in the model's name and {adapter}: give only one.")
    adapter_name = adapter_in_name or adapter
    if not adapter_name:
        return name, None
    folder = Path(adapter_name).expanduser().absolute()
    if not (folder / "adapter_config.json").is_file():
        raise ModelError(f"There is no adapter in {folder}: it has no adapter_config.json.")
    if not (folder / "adapter_model.safetensors").is_file():
        raise ModelError(f"The adapter in {folder} has no adapter_model.safetensors: save it in that format.")
    check_adapter(folder)
    return name, folder


def find_folder(name: str) -> Path:
    """Return the folder of a model, downloading it if the name is neither bundled nor a folder.

    Raises:
        ModelError: The model does not exist.
    """
    if name in BUNDLED:
        if BUNDLED[name].kind != "generator":
            raise ModelError(f"The bundled model {name} is an encoder and cannot generate: use local:smollm2.")
        return bundled_path(name)
    return _check_folder(hub_folder(name, "model", _HUB_FILES, ["*/*"]))


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


def hub_folder(name: str, noun: str, allow_patterns: Sequence[str], ignore_patterns: Sequence[str] = ()) -> Path:
    """Return the folder of a model or encoder, downloading it from the Hugging Face hub if it is not a local folder.

    Args:
        name: Folder, or id on the hub.
        noun: Noun for messages, ``model`` or ``encoder``.
        allow_patterns: Patterns of the files to download.
        ignore_patterns: Patterns of files that are not downloaded.

    Raises:
        ModelError: The folder or model does not exist.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.absolute()
    if not _HUB_ID.fullmatch(name) or folder.exists():
        raise ModelError(f"There is no {noun} at {name}: give a bundled name, a folder with one, or a hub id.")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise ModelError(
            f"There is no {noun} folder {name}, and the hub cannot be asked: run `pip install 'climassay[local]'`."
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=list(allow_patterns), ignore_patterns=list(ignore_patterns)))
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"The hub has no public {noun} named {name}: check the name, or log in if it is gated."
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise ModelError(
            f"The {noun} {name} is neither a bundled name ({', '.join(sorted(BUNDLED))}) nor a folder, and the hub "
            "could not be reached to look for it there."
        ) from error


def stated_licence(folder: Path) -> str | None:
    """Return the licence stated in the header of the model's README, or None."""
    try:
        readme_start = (folder / "README.md").read_text(encoding="utf-8", errors="replace")[:4000]
    except OSError:
        return None
    match = re.search(r"\A---\s.*?^license(?:_name)?:\s*['\"]?([^'\"\n]+)", readme_start, re.DOTALL | re.MULTILINE)
    return match.group(1).strip() if match else None


def default_device() -> str:
    """Return ``cuda`` or ``mps`` if torch finds such a GPU, otherwise ``cpu``."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def default_dtype(device: str) -> str:
    """Return the default number format for a device; see :func:`load_local`."""
    import torch

    if device == "cpu":
        return fastest_cpu_dtype()
    if device == "mps":
        return "float16"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


def gpu_devices() -> list[str]:
    """Return evidence of a GPU, such as device files, without importing torch.

    If there is none, torch cannot use a GPU.
    """
    devices = [device for device in ("/dev/nvidia0", "/dev/kfd", "/dev/dxg") if Path(device).exists()]
    return devices or ["mps"] * (sys.platform == "darwin")
