"""Validators: models that learn from experts' labels which questions are valid, and active learning.

Manivannan et al. 2025 (ClimaQA), section 4.4 and appendix A.5.2. See docs/generation_validator.md.
"""

from climassay.generation.validation.active_learning import STRATEGIES, Acquisition, choose_next
from climassay.generation.validation.labels import LabelSet, read_label_set, reason_figure
from climassay.generation.validation.loading import load_validator, read_training_record
from climassay.generation.validation.readers import (
    FeatureReader,
    StateReader,
    TextReader,
    draft_vectors,
    validation_prompt,
)
from climassay.generation.validation.training import Training, train_validator
from climassay.generation.validation.validators import (
    ValidatorsByKind,
    PromptedValidator,
    TrainedValidator,
    TrainingRecord,
    Validator,
    validate,
)

__all__ = [
    "STRATEGIES",
    "Acquisition",
    "FeatureReader",
    "LabelSet",
    "PromptedValidator",
    "StateReader",
    "TextReader",
    "TrainedValidator",
    "Training",
    "TrainingRecord",
    "Validator",
    "ValidatorsByKind",
    "choose_next",
    "draft_vectors",
    "load_validator",
    "read_label_set",
    "read_training_record",
    "reason_figure",
    "train_validator",
    "validate",
    "validation_prompt",
]  # fmt: skip
