"""The masker: which word of a cloze statement is left out (ClimaQA, section 4.4 and appendix A.5.3)."""

from climassay.generation.masking.candidates import Candidate, candidates, words
from climassay.generation.masking.choosing import NO_TERM, Choice, Masker, mask
from climassay.generation.masking.opening import open_masker
from climassay.generation.masking.prompted_masker import PromptedMasker
from climassay.generation.masking.statistics_masker import WEIGHTS, StatisticsMasker
from climassay.generation.masking.trained_masker import (
    MaskerProvenance,
    MaskerReading,
    TrainedMasker,
    load_masker,
    save_masker,
)
from climassay.generation.masking.training import (
    ExpertChoice,
    MaskingScores,
    accuracies,
    choices_of,
    leave_one_out,
    measure,
    read_choices,
    train_masker,
)
from climassay.generation.masking.word_features import FEATURES, WordStatistics, count_words, read_glossary

__all__ = [
    "FEATURES",
    "NO_TERM",
    "WEIGHTS",
    "Candidate",
    "Choice",
    "ExpertChoice",
    "Masker",
    "MaskerProvenance",
    "MaskerReading",
    "MaskingScores",
    "PromptedMasker",
    "StatisticsMasker",
    "TrainedMasker",
    "WordStatistics",
    "accuracies",
    "candidates",
    "choices_of",
    "count_words",
    "leave_one_out",
    "load_masker",
    "mask",
    "measure",
    "open_masker",
    "read_choices",
    "read_glossary",
    "save_masker",
    "train_masker",
    "words",
]
