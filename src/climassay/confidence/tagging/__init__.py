"""Tagging: the level of confidence that a statement would carry in an assessment report.

What was reached, beside published figures, is in docs/results/confidence.md; how to use it in docs/confidence.md.
"""

from climassay.confidence.tagging.labelled import (
    LEVELS as LEVELS,
    ClimateX as ClimateX,
    LabelledItem as LabelledItem,
    LabelledTable as LabelledTable,
    Taggable as Taggable,
    TaggingItem as TaggingItem,
    read_climatex as read_climatex,
    read_labelled as read_labelled,
)
from climassay.confidence.tagging.quantification import (
    Shares as Shares,
    adjusted_shares as adjusted_shares,
    estimate_shares as estimate_shares,
    share_residuals as share_residuals,
)
from climassay.confidence.tagging.tagger import (
    BUNDLED_TAGGER as BUNDLED_TAGGER,
    CLIMATEX_MIX as CLIMATEX_MIX,
    EQUAL as EQUAL,
    MIXES as MIXES,
    PUBLISHED as PUBLISHED,
    SPECS as SPECS,
    STATES as STATES,
    Tagger as Tagger,
    load_tagger as load_tagger,
    on_mixes as on_mixes,
    train_tagger as train_tagger,
)
