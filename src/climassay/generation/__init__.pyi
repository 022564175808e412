from .dataset_store import DatasetStore as DatasetStore
from .draft import (
    EXPERT_REASONS as EXPERT_REASONS,
    Decision as Decision,
    Draft as Draft,
    Origin as Origin,
    Reason as Reason,
    SourcePassage as SourcePassage,
    DraftStep as DraftStep,
    Subject as Subject,
    Wording as Wording,
    is_draft_file as is_draft_file,
    read_drafts as read_drafts,
    read_drafts_or_questions as read_drafts_or_questions,
    write_drafts as write_drafts,
)
from .masking import (
    Choice as Choice,
    Masker as Masker,
    PromptedMasker as PromptedMasker,
    StatisticsMasker as StatisticsMasker,
    mask as mask,
    open_masker as open_masker,
)
from .passages import ContextFinder as ContextFinder, SeedSampler as SeedSampler
from .opening import open_pipeline as open_pipeline
from .pipeline import PipelineResult as PipelineResult, run_pipeline as run_pipeline
from .publishing import (
    PublishedDataset as PublishedDataset,
    contains_canary as contains_canary,
    publish_dataset as publish_dataset,
    push_dataset as push_dataset,
    read_dataset as read_dataset,
)
from .recipe import (
    CountSpec as CountSpec,
    Recipe as Recipe,
    ScreenSpec as ScreenSpec,
    WriterSpec as WriterSpec,
    check_recipe as check_recipe,
    load_recipe as load_recipe,
)
from .writing import Assignment as Assignment, Evolver as Evolver, Writer as Writer
