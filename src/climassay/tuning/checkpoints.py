"""The state of a training between two steps, on disk: all that is needed to go on as if nothing had happened.

Learning rates, the order of the data and the dropout of a step are functions of the seed and the step's number, so that
no generator's state has to be kept: weights, the optimiser's two moments and the number of the step are enough. They
lie in one safetensors file, which cannot hold code.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from climassay.errors import InputError
from climassay.tuning.files import save_tensors
from climassay.tuning.result import Evaluation, StepLoss

CHECKPOINT_FILE = "checkpoint.safetensors"
_STATE = "climassay"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


@dataclass(slots=True)
class Progress:
    """Where a training is."""

    fingerprint: str
    """Of the training; a checkpoint of another one is refused."""
    step: int = 0
    """Steps taken."""
    losses: list[StepLoss] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    best_step: int | None = None
    """Of the lowest validation loss of an adapter that has learned something; None before the first."""
    without_gain: int = 0
    """Evaluations since then."""
    stopped_early: bool = False
    seconds: float = 0.0
    threads: int = 1
    """Of torch. Another number adds numbers up in another order, and ends up elsewhere in the last digits."""

    @property
    def lowest(self) -> float:
        """Validation loss of the best step."""
        return min((one.loss for one in self.evaluations if one.step == self.best_step), default=float("inf"))


def best_file(folder: Path, step: int) -> Path:
    """Where the adapter of the best step waits until the training is finished."""
    return folder / f"best-{step}.safetensors"


def save_checkpoint(
    folder: Path, progress: Progress, parameters: dict[str, Tensor], optimiser: torch.optim.Optimizer
) -> None:
    """Write a checkpoint; the one before stays until this one is whole.

    Args:
        folder: Of the training.
        progress: Where it is.
        parameters: What is trained, by name, of any shape.
        optimiser: Its moments, of the parameters' shapes, are kept too.

    Raises:
        InputError: It cannot be written.
    """
    tensors = {f"weight/{name}": weight for name, weight in parameters.items()}
    for name, weight in parameters.items():
        tensors |= {f"{part}/{name}": optimiser.state[weight][part] for part in _MOMENTS if optimiser.state[weight]}
    save_tensors(folder / CHECKPOINT_FILE, tensors, {_STATE: json.dumps(asdict(progress))})
    kept = None if progress.best_step is None else best_file(folder, progress.best_step)
    for file in folder.glob("best-*.safetensors"):
        if file != kept:
            file.unlink()


def read_progress(folder: Path) -> Progress | None:
    """Where an unfinished training in a folder is, without its weights; None where there is none.

    Raises:
        InputError: The checkpoint is damaged.
    """
    from safetensors import SafetensorError, safe_open

    file = folder / CHECKPOINT_FILE
    if not file.is_file():
        return None
    try:
        with safe_open(file, framework="pt") as opened:
            data: dict[str, Any] = json.loads(opened.metadata()[_STATE])
        losses = [StepLoss(**one) for one in data.pop("losses")]
        evaluations = [Evaluation(**one) for one in data.pop("evaluations")]
        return Progress(**data, losses=losses, evaluations=evaluations)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"The checkpoint {file} is damaged: remove it to train from the start.") from error


def restore(folder: Path, parameters: dict[str, Tensor], optimiser: torch.optim.Optimizer) -> None:
    """Put weights and moments back as they were when the checkpoint was written.

    Args:
        folder: Of the training.
        parameters: Overwritten in place, by name; of the shapes that they had then.
        optimiser: Gets its moments.

    Raises:
        InputError: The checkpoint does not fit the model.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = folder / CHECKPOINT_FILE
    try:
        tensors = load_file(file)
        for name, weight in parameters.items():
            with torch.no_grad():
                weight.copy_(tensors[f"weight/{name}"])
            if f"step/{name}" in tensors:
                # The number of steps stays on the CPU, where AdamW makes it.
                optimiser.state[weight] = {
                    part: tensors[f"{part}/{name}"].to("cpu" if part == "step" else weight.device) for part in _MOMENTS
                }
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise InputError(f"The checkpoint {file} is damaged: remove it to train from the start.") from error


def remove_checkpoint(folder: Path) -> None:
    """Remove what only an unfinished training needs."""
    (folder / CHECKPOINT_FILE).unlink(missing_ok=True)
    for file in folder.glob("best-*.safetensors"):
        file.unlink()
