"""Encoders by name: the bundled one, or any sentence-transformers folder or hub id."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from climassay.errors import ModelError
from climassay.models.bundled import bundled_path
from climassay.models.contract import Encoder
from climassay.models.encoder_graph import GRAPH_VERSION
from climassay.models.encoder_onnx import WINDOW_TOKENS, BertEncoder
from climassay.models.encoder_torch import SentenceTransformerEncoder

BUNDLED_ENCODER = "local:minilm"
"""The default: all-MiniLM-L6-v2."""

_PREFIX = "local:"
_WEIGHTS = (".safetensors",)
_SETTINGS = (".json", ".txt", ".model")
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
        return SentenceTransformerEncoder(name, folder, folder_fingerprint(folder, {"engine": "torch"}), device)
    if device not in (None, "cpu"):
        raise ModelError(
            f"The bundled encoder runs on the processor, not on {device}: "
            "for a GPU take local:sentence-transformers/all-MiniLM-L6-v2 or another model."
        )
    folder = bundled_path("minilm")
    engine = {"engine": f"graph {GRAPH_VERSION}", "precision": "int8", "windows": str(WINDOW_TOKENS)}
    return BertEncoder(name, folder, folder_fingerprint(folder, engine), threads=threads)


def folder_fingerprint(folder: Path, settings: Mapping[str, str]) -> str:
    """SHA-256 over the content of all files that decide a model's vectors, and over how it is run.

    Args:
        folder: Model folder; its README and its hidden files do not count.
        settings: What is not in the files, for example the precision.

    Returns:
        64 hexadecimal digits.

    Raises:
        ModelError: The folder has no weights in safetensors files.
    """
    from climassay.models.file_digest import file_digest

    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in _WEIGHTS + _SETTINGS]
    if not any(path.suffix in _WEIGHTS for path in files):
        raise ModelError(
            f"The encoder in {folder} has no safetensors weights: save it again with `save_pretrained` (other formats "
            "can run code when they are read, and are not read)."
        )
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0{file_digest(path)}\n".encode())
    for key in sorted(settings):
        digest.update(f"{key}={settings[key]}\n".encode())
    return digest.hexdigest()


def _find_folder(name: str) -> Path:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"There is no encoder folder at {folder}.")
    return _download(name)


def _download(hub_id: str) -> Path:
    """Folder of a hub model, downloaded when it is not in the hub's own cache."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise ModelError(
            f"There is no encoder folder {hub_id}, and the hub cannot be asked: run `pip install 'climassay[local]'`."
        ) from error
    try:
        return Path(snapshot_download(hub_id, allow_patterns=_HUB_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ModelError(
            f"The encoder {hub_id} is neither a folder here nor a model that the hub gives out "
            f"({type(error).__name__}): check its name and the connection."
        ) from error
