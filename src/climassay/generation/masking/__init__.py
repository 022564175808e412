"""The masker: which word of a cloze statement is left out (ClimaQA, section 4.4 and appendix A.5.3)."""

from climassay.generation.masking.maskers import (
    STATISTICS,
    Choice,
    ExpertChoice,
    Masker,
    MaskerFeatures,
    PromptedMasker,
    StatisticsMasker,
    TrainedMasker,
    accuracies,
    choices_of,
    leave_one_out,
    mask,
    measure,
    open_masker,
    read_choices,
    train_masker,
)
from climassay.generation.masking.words import FEATURES, WordStatistics, candidates, count_words, read_glossary, words

__all__ = [
    "FEATURES", "STATISTICS", "Choice", "ExpertChoice", "Masker", "MaskerFeatures", "PromptedMasker",
    "StatisticsMasker", "TrainedMasker", "WordStatistics", "accuracies", "candidates", "choices_of", "count_words",
    "leave_one_out", "mask", "measure", "open_masker", "read_choices", "read_glossary", "train_masker", "words",
]  # fmt: skip
