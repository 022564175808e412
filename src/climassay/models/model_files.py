"""Files of models: their SHA-256, the fingerprints made of it, and what a model's folder may not ask of its user."""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from climassay.errors import ModelError
from climassay.workspace import cache_folder

FINGERPRINT_SCHEME = 1
"""Raised when the parts of a local model's fingerprint change."""

_SETTLED_SECONDS = 0.05
"""A file that changed less than this before hashing may change again within one tick of the file system's clock."""
_WEIGHTS = ("*.safetensors",)
_SETTINGS = ("config.json", "generation_config.json", "*.safetensors.index.json")
_TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.*", "merges.txt", "*.model", "*.tiktoken"),
)
_ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
_ENCODER_SETTINGS = (".json", ".txt", ".model")
_KERNEL_SETTINGS = {
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("experts_implementation", "_experts_implementation", "_experts_implementation_internal"),
}
"""Entries of a configuration in which transformers takes ``owner/name`` for compiled code, fetched from the hub."""
_MERGED_ADAPTERS = frozenset(
    {"LORA", "ADALORA", "IA3", "LOHA", "LOKR", "OFT", "BOFT", "VERA", "HRA", "BONE", "MISS", "FOURIERFT", "RANDLORA"}
)
"""Kinds of adapters that are numbers added to weights; others load tokenizers and models that their file names."""


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, 64 hexadecimal digits; a large unchanged file is hashed once, not at every start.

    The digest is kept in the cache folder under the file's path and is trusted as long as size, inode, modification
    time and status-change time are the same; any writing to the file changes at least the last one.

    Raises:
        OSError: The file cannot be read.
    """
    path = path.resolve()
    stamp = _stamp(path)
    entry = _cache_entry(path)
    if (known := _read_digest(entry, stamp)) is not None:
        return known
    started = time.time()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if path.stat().st_ctime < started - _SETTLED_SECONDS and _stamp(path) == stamp:
        # Through a rename, so that another process never reads half an entry; a full disk only costs speed.
        temporary = entry.with_suffix(f".{os.getpid()}.tmp")
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({"stamp": stamp, "sha256": digest}), encoding="utf-8")
            temporary.replace(entry)
        except OSError:
            temporary.unlink(missing_ok=True)
    return digest


def is_remembered(path: Path) -> bool:
    """Whether :func:`file_digest` would answer without reading the file."""
    path = path.resolve()
    return path.is_file() and _read_digest(_cache_entry(path), _stamp(path)) is not None


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _cache_entry(path: Path) -> Path:
    return cache_folder() / "digests" / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def _read_digest(entry: Path, stamp: list[int]) -> str | None:
    try:
        kept = json.loads(entry.read_text(encoding="utf-8"))
        return str(kept["sha256"]) if kept["stamp"] == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def model_fingerprint(folder: Path, *, adapter: Path | None, chat_template: str | None, dtype: str) -> str:
    """SHA-256 over weights, settings (quantisation included), tokenizer, chat template, adapter and dtype.

    Only contents count and names inside the folder; the same model copied elsewhere has the same fingerprint. The chat
    template is the one in use, wherever it came from; ``dtype`` is what the model is computed with.
    """
    parts: Mapping[str, object] = {
        "scheme": FINGERPRINT_SCHEME,
        "weights": _digests(folder, _WEIGHTS),
        "settings": _digests(folder, _SETTINGS),
        "tokenizer": _digests(folder, _TOKENIZER),
        "chat_template": chat_template,
        "adapter": None if adapter is None else _digests(adapter, _ADAPTER),
        "dtype": dtype,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _digests(folder: Path, patterns: Iterable[str]) -> dict[str, str]:
    files = {file for pattern in patterns for file in folder.glob(pattern) if file.is_file()}
    return {file.name: file_digest(file) for file in sorted(files)}


def encoder_fingerprint(folder: Path, settings: Mapping[str, str]) -> str:
    """SHA-256 over all files that decide an encoder's vectors and over how it is run, 64 hexadecimal digits.

    Args:
        folder: Model folder; its README and its hidden files do not count.
        settings: What is not in the files, for example the precision.

    Raises:
        ModelError: The folder has no weights in safetensors files.
    """
    suffixes = (".safetensors", *_ENCODER_SETTINGS)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in suffixes]
    if not any(path.suffix == ".safetensors" for path in files):
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


def refuse_kernels(folder: Path) -> None:
    """Refuse a model whose ``config.json`` names compiled code of the hub to compute with.

    Raises:
        ModelError: It does, or is not JSON.
    """
    file = folder / "config.json"
    if not file.is_file():
        return
    try:
        waiting = [json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, RecursionError):
        raise ModelError(f"The model in {folder} cannot be loaded: its config.json is not JSON.") from None
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            for name in _KERNEL_SETTINGS & part.keys():
                if "/" in str(part[name]):
                    raise ModelError(
                        f"The model in {folder} wants compiled code from elsewhere ({name} = {part[name]!r} in its "
                        "config.json), which is not run: take that entry out."
                    )


def refuse_pickles(folder: Path) -> None:
    """Refuse a model that has weights only as a pickle, in whatever part of it: reading one may run code.

    Raises:
        ModelError: It has.
    """
    for pickle in sorted(folder.rglob("pytorch_model*.bin")):
        if not any(pickle.parent.glob("*.safetensors")):
            raise ModelError(
                f"The model in {folder} has weights in {pickle.relative_to(folder)}, which can run code when it is "
                "read, and is not read: save the model again with `save_pretrained`."
            )


def check_adapter(folder: Path) -> None:
    """Refuse an adapter that is more than numbers to be added to weights.

    Raises:
        ModelError: Its kind loads further things that its file names, or it names a module to be imported.
    """
    try:
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        kind = config.get("peft_type")
    except (OSError, ValueError, RecursionError, AttributeError):
        raise ModelError(f"The adapter in {folder} cannot be loaded: its adapter_config.json is not JSON.") from None
    if kind not in _MERGED_ADAPTERS:
        listed = ", ".join(sorted(_MERGED_ADAPTERS))
        raise ModelError(f"The adapter in {folder} is of the kind {kind!r}, which is not read: there are {listed}.")
    if config.get("megatron_config"):
        raise ModelError(f"The adapter in {folder} names a module to import (megatron_core), which is not done.")
