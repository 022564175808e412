"""What a local model's answers depend on, as one SHA-256."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from climassay.models.file_digest import file_digest

SCHEME = 1
"""Changes when this package changes what it puts into a fingerprint."""

_WEIGHTS = ("*.safetensors",)
_SETTINGS = ("config.json", "generation_config.json", "*.safetensors.index.json")
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "*.tiktoken",
)
_ADAPTER = ("adapter_config.json", "adapter_model.safetensors")


def model_fingerprint(folder: Path, *, adapter: Path | None, chat_template: str | None, dtype: str) -> str:
    """SHA-256 over weights, settings (quantisation included), tokenizer, chat template, adapter and dtype.

    Only contents count and names inside the folder; the same model copied elsewhere has the same fingerprint.

    Args:
        folder: Where the model lies.
        adapter: Folder of the PEFT adapter.
        chat_template: The template in use, wherever it came from.
        dtype: Type of the numbers the model is computed with, for example ``float32``.
    """
    parts: Mapping[str, object] = {
        "scheme": SCHEME,
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
