"""Settings of a training, their validation, and presets, such as those of the ClimaQA paper."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field

from climassay.errors import InputError
from climassay.settings import settings

Schedule = Literal["cosine", "linear", "constant"]
Task = Literal["pretrain", "finetune"]
Dtype = Literal["float32", "bfloat16"]

ALL_LINEAR = "all-linear"
"""Value of ``targets`` that stands for all linear layers of the model except the output layer."""


@settings(subject="The training")
class TuningConfig:
    """Settings that, together with model and data, determine an adapter."""

    rank: Annotated[int, Field(ge=1)] = 16
    """Rank of the low-rank matrices added to each weight matrix (LoRA, Hu et al. 2021)."""
    alpha: Annotated[float, Field(gt=0)] = 16.0
    """LoRA alpha: the adapter's output is scaled by alpha / rank."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Dropout probability of the adapter's inputs.

    Each step has a seed of its own, so a resumed training drops the same inputs.
    """
    targets: tuple[str, ...] = (ALL_LINEAR,)
    """Layer to adapt, e.g. q_proj, or all-linear for all but the output layer; repeat."""
    epochs: Annotated[int, Field(ge=1)] = 1
    """Number of passes over all data."""
    learning_rate: Annotated[float, Field(gt=0, lt=1)] = 5e-5
    """Highest learning rate, reached after the warm-up."""
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Fraction of the steps in which the learning rate rises."""
    schedule: Schedule = "cosine"
    """Decay of the learning rate to 0 after the warm-up; constant: no decay."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Decoupled weight decay of AdamW."""
    batch_size: Annotated[int, Field(ge=1)] = 8
    """Number of sequences in one forward pass, which bounds the memory."""
    accumulation: Annotated[int, Field(ge=1)] = 1
    """Number of forward passes per step (gradient accumulation)."""
    max_length: Annotated[int, Field(ge=8)] = 512
    """Maximum number of tokens per block of text and per example.

    Prompts of longer examples are truncated on the left.
    """
    max_gradient_norm: Annotated[float, Field(ge=0)] = 1.0
    """Norm at which gradients are clipped; 0: no clipping."""
    dtype: Dtype | None = None
    """Number format of the frozen weights; by default bfloat16 if it is faster.

    bfloat16 takes half the memory, and half the time on hardware that supports it (docs/tuning.md). Adapter and
    optimiser are always float32, because the precision of bfloat16 is too low for small updates.
    """
    gradient_checkpointing: bool = False
    """Recompute activations instead of storing them: less memory, a third more time, the same adapter."""
    seed: int = 0
    """Seed of the initial weights, data order and dropout."""
    patience: Annotated[int | None, Field(ge=1)] = None
    """Stop training after this number of evaluations without a lower validation loss."""
    evaluations: Annotated[int, Field(ge=1)] = 2
    """Number of evaluations per epoch, at equal intervals; the last is at the end of the epoch."""

    def __post_init__(self) -> None:
        if not self.targets:
            raise InputError(f"The training needs targets: names of layers, or {ALL_LINEAR}.")

    def with_values(self, values: Mapping[str, Any]) -> "TuningConfig":
        """Return a copy with the given settings replaced; a setting whose value is None is kept.

        Raises:
            InputError: A value is invalid, or a setting does not exist.
        """
        unknown_names = set(values) - set(asdict(self))
        if unknown_names:
            raise InputError(f"There is no tuning setting {min(unknown_names)!r}: there are {', '.join(asdict(self))}.")
        return replace(self, **{name: value for name, value in values.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Preset:
    """Recommended settings for a model and a task."""

    name: str
    task: Task
    model: str
    """Name of the model for which the preset is meant."""
    config: TuningConfig
    source: str
    """Origin of the values, for example a paper."""


_PAPER_SOURCE = "rank, alpha, epochs and learning rate: ClimaQA (ICLR 2025), Table {}; the paper states no others"
_SEARCH_SOURCE = "a short search on the primer and Pirá, see docs/tuning.md"


def _make_climaqa_preset(name: str, model: str, *, rank: int, epochs: int, learning_rate: float) -> Preset:
    # Without early stopping, as in the paper; block and step sizes are usual for models of this size.
    is_pretraining = name.endswith("pretrain")
    defaults = TuningConfig(max_length=2048 if is_pretraining else 1024, batch_size=4, accumulation=4)
    config = replace(defaults, rank=rank, alpha=16, epochs=epochs, learning_rate=learning_rate)
    return Preset(
        name,
        "pretrain" if is_pretraining else "finetune",
        model,
        config,
        _PAPER_SOURCE.format(8 if is_pretraining else 9),
    )


_MISTRAL, _LLAMA = "local:mistralai/Mistral-7B-Instruct-v0.3", "local:meta-llama/Llama-3.1-8B-Instruct"
_SMOLLM2_CONFIG = TuningConfig(rank=8, alpha=16, epochs=2, learning_rate=1e-3, patience=2)
_PRESETS = (
    _make_climaqa_preset("mistral-7b-pretrain", _MISTRAL, rank=64, epochs=1, learning_rate=5e-5),
    _make_climaqa_preset("llama3.1-8b-pretrain", _LLAMA, rank=16, epochs=2, learning_rate=2e-5),
    _make_climaqa_preset("mistral-7b-finetune", _MISTRAL, rank=16, epochs=3, learning_rate=5e-5),
    _make_climaqa_preset("llama3.1-8b-finetune", _LLAMA, rank=16, epochs=3, learning_rate=5e-5),
    Preset(
        "smollm2-cpu-pretrain",
        "pretrain",
        "local:smollm2",
        replace(_SMOLLM2_CONFIG, batch_size=4, max_length=128),
        _SEARCH_SOURCE,
    ),
    Preset(
        "smollm2-cpu-finetune",
        "finetune",
        "local:smollm2",
        replace(_SMOLLM2_CONFIG, batch_size=8, max_length=512),
        _SEARCH_SOURCE,
    ),
)
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _PRESETS})


def find_preset(name: str) -> Preset:
    """Return a preset by name.

    Raises:
        InputError: The preset does not exist.
    """
    if name not in PRESETS:
        raise InputError(f"There is no tuning preset {name!r}: there are {', '.join(PRESETS)}.")
    return PRESETS[name]
