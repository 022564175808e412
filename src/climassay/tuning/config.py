"""How an adapter is trained: the settings, their checks, and those that the ClimaQA paper states."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field

from climassay.errors import InputError
from climassay.settings import validate_settings

Schedule = Literal["cosine", "linear", "constant"]
Task = Literal["pretrain", "finetune"]
Dtype = Literal["float32", "bfloat16"]

ALL_LINEAR = "all-linear"
"""Every linear layer of the model but the one that gives the logits."""


@dataclass(frozen=True, slots=True)
class TuningConfig:
    """Settings that, with model and data, decide an adapter."""

    rank: Annotated[
        int,
        Field(ge=1, description="Rank of the factors added to each weight matrix (LoRA, Hu et al. 2021)."),
    ] = 16
    alpha: Annotated[float, Field(gt=0, description="Scale of the adapter, times its rank.")] = 16.0
    dropout: Annotated[float, Field(ge=0, lt=1, description="Dropout of the adapter's inputs.")] = 0.0
    """Each step has its own seed, also after an interruption."""
    targets: Annotated[
        tuple[str, ...],
        Field(description="Layers to adapt, e.g. q_proj; all-linear: all but the output layer; repeat."),
    ] = (ALL_LINEAR,)
    epochs: Annotated[int, Field(ge=1, description="Passes over all data.")] = 1
    learning_rate: Annotated[
        float,
        Field(gt=0, lt=1, description="Highest learning rate, reached after the warm-up."),
    ] = 5e-5
    warmup: Annotated[float, Field(ge=0, lt=1, description="Share of the steps in which the learning rate rises.")] = (
        0.05
    )
    schedule: Annotated[Schedule, Field(description="How the learning rate then falls to 0; constant keeps it.")] = (
        "cosine"
    )
    weight_decay: Annotated[float, Field(ge=0, description="Weight decay of AdamW, decoupled.")] = 0.0
    batch_size: Annotated[int, Field(ge=1, description="Sequences in one forward pass; bounds the memory.")] = 8
    accumulation: Annotated[int, Field(ge=1, description="Forward passes per step (gradient accumulation).")] = 1
    max_length: Annotated[
        int, Field(ge=8, description="Maximum number of tokens per block of text and per example.")
    ] = 512
    """Prompts of longer examples are cut from the left."""
    max_gradient_norm: Annotated[
        float, Field(ge=0, description="Norm at which gradients are clipped; 0: no clipping.")
    ] = 1.0
    dtype: Annotated[
        Dtype | None,
        Field(description="Number format of the frozen weights; by default bfloat16 where it is faster."),
    ] = None
    """bfloat16 takes half the memory, and half the time where the processor has it (docs/tuning.md). Adapter and
    optimiser are always float32: steps of 1e-5 vanish in the 8 bits of a bfloat16."""
    gradient_checkpointing: Annotated[
        bool,
        Field(description="Recompute activations instead of storing them: less memory, a third more time."),
    ] = False
    """Part of nothing that is learned."""
    seed: Annotated[int, Field(description="Seed of first values, of the order of the data and of the dropout.")] = 0
    patience: Annotated[
        int | None,
        Field(ge=1, description="Evaluations without a lower validation loss after which training stops."),
    ] = None
    evaluations: Annotated[
        int, Field(ge=1, description="Evaluations per epoch, evenly spread, the last at its end.")
    ] = 2

    def __post_init__(self) -> None:
        validate_settings(self, "The training", "the configuration")
        if not self.targets:
            raise InputError(f"The training needs targets: names of layers, or {ALL_LINEAR}.")

    def with_values(self, values: Mapping[str, Any]) -> "TuningConfig":
        """Return a copy with other values; None changes nothing.

        Raises:
            InputError: A value is invalid, or a setting does not exist.
        """
        unknown = set(values) - set(asdict(self))
        if unknown:
            raise InputError(f"There is no tuning setting {min(unknown)!r}: there are {', '.join(asdict(self))}.")
        return replace(self, **{name: value for name, value in values.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Preset:
    """Recommended settings for a model and a task."""

    name: str
    task: Task
    model: str
    """Model that the preset was made for."""
    config: TuningConfig
    source: str
    """Origin of its values."""


_PAPER = "rank, alpha, epochs and learning rate: ClimaQA (ICLR 2025), Table {}; the paper states no others"
_MEASURED = "a short search on the primer and Pirá, see docs/tuning.md"


def _published(name: str, model: str, *, rank: int, epochs: int, learning_rate: float) -> Preset:
    # The whole of the training is run, as in the paper; blocks and steps are those usual for models of this size.
    reads = name.endswith("pretrain")
    usual = TuningConfig(max_length=2048 if reads else 1024, batch_size=4, accumulation=4)
    config = replace(usual, rank=rank, alpha=16, epochs=epochs, learning_rate=learning_rate)
    return Preset(name, "pretrain" if reads else "finetune", model, config, _PAPER.format(8 if reads else 9))


_MISTRAL, _LLAMA = "local:mistralai/Mistral-7B-Instruct-v0.3", "local:meta-llama/Llama-3.1-8B-Instruct"
_SMALL = TuningConfig(rank=8, alpha=16, epochs=2, learning_rate=1e-3, patience=2)
_PRESETS = (
    _published("mistral-7b-pretrain", _MISTRAL, rank=64, epochs=1, learning_rate=5e-5),
    _published("llama3.1-8b-pretrain", _LLAMA, rank=16, epochs=2, learning_rate=2e-5),
    _published("mistral-7b-finetune", _MISTRAL, rank=16, epochs=3, learning_rate=5e-5),
    _published("llama3.1-8b-finetune", _LLAMA, rank=16, epochs=3, learning_rate=5e-5),
    Preset(
        "smollm2-cpu-pretrain", "pretrain", "local:smollm2", replace(_SMALL, batch_size=4, max_length=128), _MEASURED
    ),
    Preset(
        "smollm2-cpu-finetune", "finetune", "local:smollm2", replace(_SMALL, batch_size=8, max_length=512), _MEASURED
    ),
)
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _PRESETS})
"""Every preset by its name."""


def find_preset(name: str) -> Preset:
    """Return a preset by name.

    Raises:
        InputError: The preset does not exist.
    """
    if name not in PRESETS:
        raise InputError(f"There is no tuning preset {name!r}: there are {', '.join(PRESETS)}.")
    return PRESETS[name]
