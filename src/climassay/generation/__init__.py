"""Generation: from books to a published benchmark, with a validator that learns from experts (ClimaGen).

Liu et al. 2025 (ClimaQA), section 4 and appendices A.4 and A.5. See docs/generation.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.generation.build_pipeline import open_pipeline
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
        read_drafts,
        write_drafts,
    )
    from climassay.generation.masking import (
        Choice,
        Masker,
        PromptedMasker,
        StatisticsMasker,
        TrainedMasker,
        mask,
        open_masker,
    )
    from climassay.generation.passages import ContextFinder, SeedSampler
    from climassay.generation.pipeline import PipelineResult, run_pipeline
    from climassay.generation.publishing import (
        PublishedDataset,
        contains_canary,
        publish_dataset,
        push_dataset,
        read_dataset,
    )
    from climassay.generation.recipe import CountSpec, Recipe, ScreenSpec, WriterSpec, check_recipe, load_recipe
    from climassay.generation.writing import Assignment, Evolver, Writer

_MODULE_OF = {
    name: module
    for module, names in {
        "build_pipeline": "open_pipeline",
        "dataset_store": "DatasetStore",
        "draft": "EXPERT_REASONS Decision Draft Origin Reason SourcePassage Step Subject Wording "
        "read_drafts write_drafts",
        "masking": "Choice Masker PromptedMasker StatisticsMasker TrainedMasker mask open_masker",
        "passages": "ContextFinder SeedSampler",
        "pipeline": "PipelineResult run_pipeline",
        "publishing": "PublishedDataset contains_canary publish_dataset push_dataset read_dataset",
        "recipe": "CountSpec Recipe ScreenSpec WriterSpec check_recipe load_recipe",
        "writing": "Assignment Evolver Writer",
    }.items()
    for name in names.split()
}

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
    "Masker",
    "Origin",
    "PipelineResult",
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
    "open_pipeline",
    "publish_dataset",
    "push_dataset",
    "read_dataset",
    "read_drafts",
    "run_pipeline",
    "write_drafts",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
