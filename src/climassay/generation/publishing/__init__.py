"""Publish drafts or questions as a dataset that others can load, cite and check. See docs/publishing.md."""

from climassay.generation.publishing.dataset import (
    PublishedDataset as PublishedDataset,
    check_target_folder as check_target_folder,
    check_repository as check_repository,
    prepare_dataset as prepare_dataset,
    publish_dataset as publish_dataset,
    push_dataset as push_dataset,
    read_dataset as read_dataset,
    read_dataset_questions as read_dataset_questions,
    read_manifest as read_manifest,
    write_dataset as write_dataset,
)
from climassay.generation.publishing.entries import (
    DatasetEntry as DatasetEntry,
    to_json_lines as to_json_lines,
    find_canaries as find_canaries,
    canary_sentence as canary_sentence,
    climaqa_row as climaqa_row,
    contains_canary as contains_canary,
)
from climassay.generation.publishing.splits import (
    Placement as Placement,
    SplitPlan as SplitPlan,
    split_placements as split_placements,
)
