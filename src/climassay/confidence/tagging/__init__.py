"""Taggers, which estimate the level of confidence that a statement would have in an assessment report.

docs/results/confidence.md compares the results with published scores; docs/confidence.md explains the use.
"""

from climassay.confidence.tagging.labelled import (
    TAGGER_LEVELS as TAGGER_LEVELS,
    LabelledItem as LabelledItem,
    LabelledTable as LabelledTable,
    Taggable as Taggable,
    TaggingItem as TaggingItem,
    read_climatex as read_climatex,
    read_labelled as read_labelled,
)
from climassay.confidence.tagging.quantification import estimate_shares as estimate_shares
from climassay.confidence.tagging.tagger import (
    BUNDLED_TAGGER as BUNDLED_TAGGER,
    CLIMATEX_MIX as CLIMATEX_MIX,
    PUBLISHED as PUBLISHED,
    SPECS as SPECS,
    STATES as STATES,
    Tagger as Tagger,
    load_tagger as load_tagger,
    evaluate_on_mixes as evaluate_on_mixes,
    find_specs as find_specs,
    train_tagger as train_tagger,
)
