"""Publishing: from drafts or questions to a dataset that others can load, cite and check. See docs/publishing.md."""

from climassay.generation.publishing.dataset import (
    PreparedDataset,
    PublishedDataset,
    check_free,
    check_repository,
    prepare_dataset,
    publish_dataset,
    push_dataset,
    read_dataset,
    read_dataset_questions,
    read_manifest,
    write_dataset,
)
from climassay.generation.publishing.entries import (
    Entry,
    Placement,
    as_json_lines,
    canaries,
    canary_guid,
    canary_sentence,
    climaqa_row,
    contains_canary,
)
from climassay.generation.publishing.entries import SHARES, SPLITS, Split, SplitPlan, split_placements

__all__ = [
    "SHARES", "SPLITS", "Entry", "Placement", "PreparedDataset", "PublishedDataset", "Split", "SplitPlan",
    "as_json_lines", "canaries", "canary_guid", "canary_sentence", "check_free", "check_repository", "climaqa_row",
    "contains_canary", "prepare_dataset", "publish_dataset", "push_dataset", "read_dataset", "read_dataset_questions",
    "read_manifest", "split_placements", "write_dataset",
]  # fmt: skip
