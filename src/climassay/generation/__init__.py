"""Generation: from books to a published benchmark, with a validator that learns from experts (ClimaGen).

Liu et al. 2025 (ClimaQA), section 4 and appendices A.4 and A.5. See docs/generation.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.generation.contexts import ContextFinder
    from climassay.generation.dataset_store import DatasetStore
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
    from climassay.generation.line import LineReport, run_line
    from climassay.generation.line_parts import open_parts
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
    from climassay.generation.recipe import CountSpec, Recipe, ScreenSpec, WriterSpec, check_recipe, load_recipe
    from climassay.generation.seeds import SeedSampler
    from climassay.generation.writing import Assignment, Writer

_PLACES = {
    "contexts": ("ContextFinder",),
    "dataset_store": ("DatasetStore",),
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
    "line": ("LineReport", "run_line"),
    "line_parts": ("open_parts",),
    "recipe": ("CountSpec", "Recipe", "ScreenSpec", "WriterSpec", "check_recipe", "load_recipe"),
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
    "CountSpec",
    "DatasetStore",
    "Decision",
    "Draft",
    "Evolver",
    "LineReport",
    "Masker",
    "Origin",
    "PromptedMasker",
    "PublishedDataset",
    "Reason",
    "Recipe",
    "ScreenSpec",
    "SeedSampler",
    "SourcePassage",
    "StatisticsMasker",
    "Step",
    "Subject",
    "TrainedMasker",
    "Wording",
    "Writer",
    "WriterSpec",
    "check_recipe",
    "contains_canary",
    "load_recipe",
    "mask",
    "open_masker",
    "open_parts",
    "publish_dataset",
    "push_dataset",
    "read_dataset",
    "read_drafts",
    "run_line",
    "write_drafts",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
