"""Validators: models that learn from experts which generated questions are valid, and which to have labelled next.

Liu et al. 2025 (ClimaQA), section 4.4 and appendix A.5.2. See docs/generation_validator.md. Fine-tuned models are in
``fine_tuning``.
"""

from climassay.generation.validation.active_learning import STRATEGIES, Acquisition, choose_next
from climassay.generation.validation.labels import (
    LabelSet,
    read_label_set,
    reason_figure,
)
from climassay.generation.validation.validators import Reader, StateReader, TextReader, draft_vectors, validation_prompt
from climassay.generation.validation.training import Training, train_validator
from climassay.generation.validation.validators import (
    ByKind,
    Learned,
    PromptedValidator,
    TrainedValidator,
    Validator,
    load_validator,
    read_learned,
    validate,
)

__all__ = [
    "STRATEGIES", "Acquisition", "ByKind", "LabelSet", "Learned", "PromptedValidator", "Reader",
    "StateReader", "TextReader", "TrainedValidator", "Training", "Validator", "choose_next",
    "draft_vectors", "load_validator", "read_label_set", "read_learned", "reason_figure",
    "train_validator", "validate", "validation_prompt",
]  # fmt: skip
