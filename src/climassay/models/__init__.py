"""Language models: the protocols they implement, and how local models and models behind servers are loaded."""

from climassay.models.contract import (
    Activations as Activations,
    Completion as Completion,
    Encoder as Encoder,
    GenerationRequest as GenerationRequest,
    Generator as Generator,
    Message as Message,
    OpenWeights as OpenWeights,
    OptionRequest as OptionRequest,
    OptionScorer as OptionScorer,
    OptionScores as OptionScores,
    Sampling as Sampling,
    StreamingGenerator as StreamingGenerator,
    Usage as Usage,
    Work as Work,
)
from climassay.models.options import ModelOptions as ModelOptions
from climassay.models.provider import DEFAULT_MODEL as DEFAULT_MODEL, load_model as load_model
