"""Tagging: the level of confidence that a statement would carry in an assessment report.

What was reached, beside published figures, is in docs/results/confidence.md; how to use it in docs/confidence.md.
"""

from climassay.confidence.tagging.labelled import (
    LEVELS,
    ClimateX,
    LabelledItem,
    LabelledTable,
    Taggable,
    TaggingItem,
    read_climatex,
    read_labelled,
)
from climassay.confidence.tagging.quantification import Shares, adjusted_shares, estimate_shares, share_residuals
from climassay.confidence.tagging.tagger import (
    BUNDLED_TAGGER,
    CLIMATEX_MIX,
    EQUAL,
    MIXES,
    PUBLISHED,
    SPECS,
    STATES,
    Tagger,
    load_tagger,
    on_mixes,
    train_tagger,
)

__all__ = [
    "BUNDLED_TAGGER",
    "CLIMATEX_MIX",
    "EQUAL",
    "LEVELS",
    "MIXES",
    "PUBLISHED",
    "SPECS",
    "STATES",
    "ClimateX",
    "LabelledItem",
    "LabelledTable",
    "Shares",
    "Taggable",
    "Tagger",
    "TaggingItem",
    "adjusted_shares",
    "estimate_shares",
    "load_tagger",
    "on_mixes",
    "read_climatex",
    "read_labelled",
    "share_residuals",
    "train_tagger",
]
