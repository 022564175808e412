"""Generation: from books to a published benchmark, with a validator that learns from experts (ClimaGen).

Liu et al. 2025 (ClimaQA), section 4 and appendices A.4 and A.5. See docs/generation.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.generation.contexts import ContextFinder
    from climassay.generation.draft import (
        EXPERT_REASONS,
        Decision,
        Draft,
        Origin,
        Reason,
        SourcePassage,
        Step,
        Subject,
        Wording,
    )
    from climassay.generation.draft_files import read_drafts, write_drafts
    from climassay.generation.evolving import Evolver
    from climassay.generation.masking import (
        Choice,
        Masker,
        PromptedMasker,
        StatisticsMasker,
        TrainedMasker,
        mask,
        open_masker,
    )
    from climassay.generation.publishing import (
        PublishedDataset,
        contains_canary,
        publish_dataset,
        push_dataset,
        read_dataset,
    )
    from climassay.generation.seeds import SeedSampler
    from climassay.generation.writing import Assignment, Writer

_PLACES = {
    "contexts": ("ContextFinder",),
    "draft": (
        "EXPERT_REASONS",
        "Decision",
        "Draft",
        "Origin",
        "Reason",
        "SourcePassage",
        "Step",
        "Subject",
        "Wording",
    ),
    "draft_files": ("read_drafts", "write_drafts"),
    "evolving": ("Evolver",),
    "seeds": ("SeedSampler",),
    "writing": ("Assignment", "Writer"),
    "masking": ("Choice", "Masker", "PromptedMasker", "StatisticsMasker", "TrainedMasker", "mask", "open_masker"),
    "publishing": ("PublishedDataset", "contains_canary", "publish_dataset", "push_dataset", "read_dataset"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "EXPERT_REASONS",
    "Assignment",
    "Choice",
    "ContextFinder",
    "Decision",
    "Draft",
    "Evolver",
    "Masker",
    "Origin",
    "PromptedMasker",
    "PublishedDataset",
    "Reason",
    "SeedSampler",
    "SourcePassage",
    "StatisticsMasker",
    "Step",
    "Subject",
    "TrainedMasker",
    "Wording",
    "Writer",
    "contains_canary",
    "mask",
    "open_masker",
    "publish_dataset",
    "push_dataset",
    "read_dataset",
    "read_drafts",
    "write_drafts",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
