"""What the folder of a model may not ask of whoever loads it: to read pickles, or to run code from elsewhere."""

import json
from pathlib import Path

from climassay.errors import ModelError

_KERNEL_SETTINGS = {
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("experts_implementation", "_experts_implementation", "_experts_implementation_internal"),
}
"""Entries of a configuration in which transformers takes ``owner/name`` for compiled code, fetched from the hub."""
_MERGED_ADAPTERS = frozenset(
    {"LORA", "ADALORA", "IA3", "LOHA", "LOKR", "OFT", "BOFT", "VERA", "HRA", "BONE", "MISS", "FOURIERFT", "RANDLORA"}
)
"""Kinds of adapters that are numbers added to weights; others load tokenizers and models that their file names."""


def refuse_kernels(folder: Path) -> None:
    """Refuse a model whose ``config.json`` names compiled code of the hub to compute with.

    Raises:
        ModelError: It does, or is no JSON.
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
