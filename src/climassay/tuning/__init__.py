"""LoRA training of local models: continued pre-training on texts, fine-tuning on chats, and the adapters they leave."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.tuning.base import TuningBase
    from climassay.tuning.config import PRESETS, Preset, TuningConfig, find_preset
    from climassay.tuning.data import (
        ChatData,
        ChatExample,
        ContinuedPretrainingData,
        TextData,
        TextDocument,
        TuningData,
        ValidateOn,
        split_documents,
        split_groups,
    )
    from climassay.tuning.result import (
        DataSummary,
        Evaluation,
        StepLoss,
        Trial,
        TuningResult,
        list_adapters,
        read_result,
    )
    from climassay.tuning.run import TuningProgress
    from climassay.tuning.training import DEFAULT_GRID, SearchProgress, search, train

_PLACES = {
    "base": ("TuningBase",),
    "config": ("PRESETS", "Preset", "TuningConfig", "find_preset"),
    "data": (
        *("ChatData", "ChatExample", "ContinuedPretrainingData", "TextData", "TextDocument", "TuningData"),
        *("ValidateOn", "split_documents", "split_groups"),
    ),
    "result": ("DataSummary", "Evaluation", "StepLoss", "Trial", "TuningResult", "list_adapters", "read_result"),
    "run": ("TuningProgress",),
    "training": ("DEFAULT_GRID", "SearchProgress", "search", "train"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "DEFAULT_GRID",
    "PRESETS",
    "ChatData",
    "ChatExample",
    "ContinuedPretrainingData",
    "DataSummary",
    "Evaluation",
    "Preset",
    "SearchProgress",
    "StepLoss",
    "TextData",
    "TextDocument",
    "Trial",
    "TuningBase",
    "TuningConfig",
    "TuningData",
    "TuningProgress",
    "TuningResult",
    "ValidateOn",
    "find_preset",
    "list_adapters",
    "read_result",
    "search",
    "split_documents",
    "split_groups",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch comes with some of them, and takes a second."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
