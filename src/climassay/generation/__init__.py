"""Generation: from books to a published benchmark, with a validator that learns from experts (ClimaGen).

Liu et al. 2025 (ClimaQA), section 4 and appendices A.4 and A.5. See docs/generation.md.
"""

from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from climassay.generation.opening import open_pipeline as open_pipeline
    from climassay.generation.dataset_store import DatasetStore as DatasetStore
    from climassay.generation.draft import (
        EXPERT_REASONS as EXPERT_REASONS,
        Decision as Decision,
        Draft as Draft,
        Origin as Origin,
        Reason as Reason,
        SourcePassage as SourcePassage,
        DraftStep as DraftStep,
        Subject as Subject,
        Wording as Wording,
        read_drafts as read_drafts,
        write_drafts as write_drafts,
    )
    from climassay.generation.masking import (
        Choice as Choice,
        Masker as Masker,
        PromptedMasker as PromptedMasker,
        StatisticsMasker as StatisticsMasker,
        mask as mask,
        open_masker as open_masker,
    )
    from climassay.generation.passages import ContextFinder as ContextFinder, SeedSampler as SeedSampler
    from climassay.generation.pipeline import PipelineResult as PipelineResult, run_pipeline as run_pipeline
    from climassay.generation.publishing import (
        PublishedDataset as PublishedDataset,
        contains_canary as contains_canary,
        publish_dataset as publish_dataset,
        push_dataset as push_dataset,
        read_dataset as read_dataset,
    )
    from climassay.generation.recipe import (
        CountSpec as CountSpec,
        Recipe as Recipe,
        ScreenSpec as ScreenSpec,
        WriterSpec as WriterSpec,
        check_recipe as check_recipe,
        load_recipe as load_recipe,
    )
    from climassay.generation.writing import Assignment as Assignment, Evolver as Evolver, Writer as Writer

export_lazily(__name__)
