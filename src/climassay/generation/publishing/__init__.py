"""Publishing: from drafts or questions to a dataset that others can load, cite and check. See docs/publishing.md."""

from climassay.generation.publishing.canary import canaries, canary_guid, canary_sentence, contains_canary
from climassay.generation.publishing.dataset import (
    PreparedDataset,
    PublishedDataset,
    check_free,
    prepare_dataset,
    publish_dataset,
    read_manifest,
    write_dataset,
)
from climassay.generation.publishing.entries import Placement
from climassay.generation.publishing.hub import check_repository, push_dataset
from climassay.generation.publishing.reading import read_dataset, read_dataset_questions
from climassay.generation.publishing.splitting import SHARES, SPLITS, Split, SplitPlan, split_placements

__all__ = [
    "SHARES",
    "SPLITS",
    "Placement",
    "PreparedDataset",
    "PublishedDataset",
    "Split",
    "SplitPlan",
    "canaries",
    "canary_guid",
    "canary_sentence",
    "check_free",
    "check_repository",
    "contains_canary",
    "prepare_dataset",
    "publish_dataset",
    "push_dataset",
    "read_dataset",
    "read_dataset_questions",
    "read_manifest",
    "split_placements",
    "write_dataset",
]
