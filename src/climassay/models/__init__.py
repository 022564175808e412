"""What a language model can do for us, and who provides it."""

from climassay.models.contract import (
    Activations,
    Completion,
    Encoder,
    GenerationRequest,
    Generator,
    Message,
    OpenWeights,
    OptionRequest,
    OptionScorer,
    OptionScores,
    Sampling,
    Usage,
    Work,
    option_array,
)
from climassay.models.registry import DEFAULT_MODEL, load_model

__all__ = [
    "DEFAULT_MODEL",
    "Activations",
    "Completion",
    "Encoder",
    "GenerationRequest",
    "Generator",
    "Message",
    "OpenWeights",
    "OptionRequest",
    "OptionScorer",
    "OptionScores",
    "Sampling",
    "Usage",
    "Work",
    "load_model",
    "option_array",
]
