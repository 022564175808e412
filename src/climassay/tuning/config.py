"""How an adapter is trained: the settings, their checks, and those that the ClimaQA paper states."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from climassay.errors import InputError

Schedule = Literal["cosine", "linear", "constant"]
Task = Literal["pretrain", "finetune"]

SCHEDULES: tuple[Schedule, ...] = ("cosine", "linear", "constant")
ALL_LINEAR = "all-linear"
"""Every linear layer of the model but the one that gives the logits."""
DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True, slots=True)
class TuningConfig:
    """Everything but model and data that decides what an adapter becomes."""

    rank: int = 16
    """Rank of the two factors that are added to each weight matrix (LoRA, Hu et al. 2021)."""
    alpha: float = 16.0
    """The product of the factors is scaled by alpha / rank."""
    dropout: float = 0.0
    """Dropout of the adapter's inputs; each step has its own seed, also after an interruption."""
    targets: tuple[str, ...] = (ALL_LINEAR,)
    """Names of the linear layers that get an adapter, for example ``("q_proj", "v_proj")``."""
    epochs: int = 1
    learning_rate: float = 5e-5
    """The highest one, reached after the warm-up."""
    warmup: float = 0.05
    """Share of all steps in which the learning rate rises linearly from nearly 0."""
    schedule: Schedule = "cosine"
    """How the learning rate falls to 0 after the warm-up; ``constant`` keeps it."""
    weight_decay: float = 0.0
    """Weight decay of AdamW, decoupled."""
    batch_size: int = 8
    """Sequences in one forward pass; bounds the memory."""
    accumulation: int = 1
    """Forward passes a step. Their gradients add up to that of one batch of batch_size x accumulation sequences."""
    max_length: int = 512
    """Maximum number of tokens per sequence: size of text blocks, limit of examples (prompts are cut on the left)."""
    max_gradient_norm: float = 1.0
    """A longer gradient is scaled down to this norm; 0 leaves it alone."""
    dtype: str | None = None
    """Number format of the model's frozen weights; None: bfloat16 on GPUs and CPUs where it is faster (half the memory,
    more than twice the speed; see docs/tuning.md), float32 elsewhere. Adapter and optimiser are always float32: steps
    of 1e-5 vanish in the 8 bits of a bfloat16."""
    gradient_checkpointing: bool = False
    """Compute activations again in the backward pass instead of keeping them: less memory for about a third more time.
    Part of nothing that is learned."""
    seed: int = 0
    """Seed of the adapter's first values, of the order of the data and of the dropout."""
    patience: int | None = None
    """Evaluations without a lower validation loss after which training ends; None: never."""
    evaluations: int = 2
    """Evaluations an epoch, evenly spread, the last one at the epoch's end."""

    def __post_init__(self) -> None:
        for name in ("rank", "epochs", "batch_size", "accumulation", "evaluations"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "a whole number of at least 1")
        _require(self.alpha > 0, "alpha", self.alpha, "a positive number")
        _require(0 <= self.dropout < 1, "dropout", self.dropout, "a number from 0 to below 1")
        _require(bool(self.targets), "targets", self.targets, f"names of layers, or {ALL_LINEAR}")
        _require(0 < self.learning_rate < 1, "learning rate", self.learning_rate, "a number between 0 and 1, as 5e-5")
        _require(0 <= self.warmup < 1, "warm-up", self.warmup, "a share from 0 to below 1")
        _require(self.schedule in SCHEDULES, "schedule", self.schedule, f"one of {', '.join(SCHEDULES)}")
        _require(self.weight_decay >= 0, "weight decay", self.weight_decay, "0 or a positive number")
        _require(self.max_length >= 8, "max length", self.max_length, "at least 8 tokens")
        _require(self.max_gradient_norm >= 0, "max gradient norm", self.max_gradient_norm, "0 or a positive number")
        _require(self.dtype in (None, *DTYPES), "dtype", self.dtype, f"one of {', '.join(DTYPES)}")
        _require(self.patience is None or self.patience >= 1, "patience", self.patience, "at least 1, or none")

    def with_values(self, values: Mapping[str, Any]) -> "TuningConfig":
        """The same with other values; a value of None changes nothing.

        Raises:
            InputError: A value cannot be, or there is no such setting.
        """
        unknown = set(values) - set(asdict(self))
        if unknown:
            raise InputError(f"There is no tuning setting {min(unknown)!r}: there are {', '.join(asdict(self))}.")
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "TuningConfig":
        """Read what ``dataclasses.asdict`` and JSON made of it."""
        return cls(**{**data, "targets": tuple(data["targets"])})


def _require(kept: bool, name: str, value: object, wanted: str) -> None:
    if not kept:
        raise InputError(f"The {name.replace('_', ' ')} is {value!r}: give {wanted}.")


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings known to be sensible for a model and a task."""

    name: str
    task: Task
    model: str
    """What it was made for."""
    config: TuningConfig
    source: str
    """Where its values come from."""


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
    """A preset by its name.

    Raises:
        InputError: There is none of that name.
    """
    if name not in PRESETS:
        raise InputError(f"There is no tuning preset {name!r}: there are {', '.join(PRESETS)}.")
    return PRESETS[name]
