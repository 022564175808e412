"""Tagging: the level of confidence that a statement would carry in an assessment report.

What was reached, beside published figures, is in docs/results/confidence.md; how to use it in docs/confidence.md.
"""

from climassay.confidence.tagging.climatex import ClimateX, read_climatex
from climassay.confidence.tagging.items import LEVELS, LabelledItem, TaggingItem
from climassay.confidence.tagging.labelled import LabelledTable, read_labelled
from climassay.confidence.tagging.measures import (
    CLIMATEX_MIX,
    PUBLISHED,
    Tagged,
    TaggerScores,
    by_group,
    score_tagger,
    small_tests,
)
from climassay.confidence.tagging.quantification import (
    Shares,
    adjusted_shares,
    estimate_shares,
    expected_scores,
    share_residuals,
)
from climassay.confidence.tagging.reading import Readers
from climassay.confidence.tagging.tagger import (
    BUNDLED_TAGGER,
    ConstantTagger,
    LinearTagger,
    Tagger,
    TaggerCard,
    load_tagger,
    save_tagger,
)
from climassay.confidence.tagging.training import (
    SPECS,
    STATES,
    Lesson,
    PartSpec,
    TaggerSpec,
    Tried,
    best_of,
    compare,
    cross_validated,
    finish,
    measured,
)

__all__ = [
    "BUNDLED_TAGGER",
    "CLIMATEX_MIX",
    "LEVELS",
    "PUBLISHED",
    "SPECS",
    "STATES",
    "ClimateX",
    "ConstantTagger",
    "LabelledItem",
    "LabelledTable",
    "Lesson",
    "LinearTagger",
    "PartSpec",
    "Readers",
    "Shares",
    "Tagged",
    "Tagger",
    "TaggerCard",
    "TaggerScores",
    "TaggerSpec",
    "TaggingItem",
    "Tried",
    "adjusted_shares",
    "best_of",
    "by_group",
    "compare",
    "cross_validated",
    "estimate_shares",
    "expected_scores",
    "finish",
    "load_tagger",
    "measured",
    "read_climatex",
    "read_labelled",
    "save_tagger",
    "score_tagger",
    "share_residuals",
    "small_tests",
]
