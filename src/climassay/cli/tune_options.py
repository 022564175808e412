"""Options that the trainings of ``climassay tune`` share, and what becomes of them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.tuning import Preset, TuningConfig
    from climassay.tuning.config import Task

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WHOLE = "a whole number"


@dataclass(frozen=True)
class TuningOptions:
    """Which model is trained, how, and under which name the adapter is kept."""

    output: Annotated[str, typer.Option("--output", "-o", help="Name of the adapter in the workspace.")]
    model: Annotated[str, typer.Option("--model", "-m", help="local:smollm2 or local:FOLDER_OR_HUB_ID.")] = (
        "local:smollm2"
    )
    preset: Annotated[
        str | None, typer.Option(help="See climassay tune presets.  [default: the one made for model and task]")
    ] = None
    rank: Annotated[int | None, typer.Option(help="Of the adapter's factors.")] = None
    alpha: Annotated[float | None, typer.Option(help="The adapter is scaled by alpha / rank.")] = None
    dropout: Annotated[float | None, typer.Option(help="Of the adapter's inputs.")] = None
    target: Annotated[list[str] | None, typer.Option(help="Layers to adapt, e.g. q_proj; repeat.")] = None
    epochs: Annotated[int | None, typer.Option(help="How often all data are seen.")] = None
    lr: Annotated[float | None, typer.Option("--lr", help="Highest learning rate.")] = None
    warmup: Annotated[float | None, typer.Option(help="Share of the steps in which it rises.")] = None
    schedule: Annotated[str | None, typer.Option(help="cosine, linear or constant afterwards.")] = None
    weight_decay: Annotated[float | None, typer.Option(help="Of AdamW.")] = None
    batch_size: Annotated[int | None, typer.Option(help="Sequences in one forward pass.")] = None
    accumulation: Annotated[int | None, typer.Option(help="Forward passes a step.")] = None
    max_length: Annotated[int | None, typer.Option(help="Tokens of a block or, at most, of an example.")] = None
    max_gradient_norm: Annotated[float | None, typer.Option(help="Longer gradients are scaled down.")] = None
    dtype: Annotated[str | None, typer.Option(help="float32 or bfloat16, of the frozen weights.")] = None
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None
    gradient_checkpointing: Annotated[
        bool, typer.Option("--gradient-checkpointing", help="Less memory for more time.")
    ] = False
    patience: Annotated[int | None, typer.Option(help="End after so many evaluations without gain.")] = None
    evaluations: Annotated[int | None, typer.Option(help="Evaluations an epoch.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Of first values, order, dropout and splits.")] = 0
    search: Annotated[bool, typer.Option("--search", help="Try a grid and keep the best, see --grid.")] = False
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=VALUES",
            help="For --search, e.g. rank=8,32; repeat.  [default: rank=8,32 learning_rate=3e-4,1e-3]",
        ),
    ] = None
    replace: Annotated[bool, typer.Option("--replace", help="Remove another adapter of this name.")] = False

    def settings(self, task: "Task") -> "tuple[TuningConfig, Preset | None]":
        """The preset's settings with those given put in.

        Raises:
            InputError: A setting cannot be, or the preset is for the other task.
        """
        from climassay.tuning import TuningConfig

        preset = self._preset(task)
        config = TuningConfig() if preset is None else preset.config
        given = {
            name: getattr(self, name)
            for name in (
                *("rank", "alpha", "dropout", "epochs", "warmup", "schedule", "weight_decay", "batch_size", "seed"),
                *("accumulation", "max_length", "max_gradient_norm", "dtype", "patience", "evaluations"),
            )
        }
        given["learning_rate"] = self.lr
        given["targets"] = tuple(self.target) if self.target else None
        given["gradient_checkpointing"] = self.gradient_checkpointing or None
        return config.with_values(given), preset

    def _preset(self, task: "Task") -> "Preset | None":
        from climassay.tuning import PRESETS, find_preset

        if self.preset is not None:
            preset = find_preset(self.preset)
            if preset.task != task:
                raise InputError(f"The preset {preset.name} is for climassay tune {preset.task}, not for {task}.")
            return preset
        name = self.model if self.model.startswith("local:") else f"local:{self.model}"
        return next((preset for preset in PRESETS.values() if (preset.task, preset.model) == (task, name)), None)

    def searched(self) -> Mapping[str, tuple[Any, ...]] | None:
        """The grid of the search; None where there is none to be.

        Raises:
            InputError: A part of it cannot be read.
        """
        from climassay.tuning import DEFAULT_GRID

        if not self.search:
            if self.grid:
                raise InputError("A --grid is for a search: add --search.")
            return None
        return dict(_axis(text) for text in self.grid) if self.grid else DEFAULT_GRID

    def folder(self, adapters: Path) -> Path:
        """Where the adapter goes.

        Raises:
            InputError: The name is none.
        """
        return adapters / checked_name(self.output)


_AXES: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "rank": (int, _WHOLE),
    "alpha": (float, "a number"),
    "epochs": (int, _WHOLE),
    "learning_rate": (float, "a number"),
    "lr": (float, "a number"),
    "dropout": (float, "a number"),
    "weight_decay": (float, "a number"),
    "warmup": (float, "a number"),
    "schedule": (str, "a word"),
    "batch_size": (int, _WHOLE),
    "accumulation": (int, _WHOLE),
    "max_length": (int, _WHOLE),
}


def _axis(text: str) -> tuple[str, tuple[Any, ...]]:
    name, separator, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not separator or name not in _AXES:
        raise InputError(
            f"The grid {text!r} is not understood: write SETTING=VALUE,VALUE with one of {', '.join(_AXES)}."
        )
    read, wanted = _AXES[name]
    try:
        return "learning_rate" if name == "lr" else name, tuple(read(value.strip()) for value in values.split(","))
    except ValueError as error:
        raise InputError(f"The grid {text!r} has a value that is not {wanted}.") from error


def checked_name(name: str) -> str:
    """The name of an adapter.

    Raises:
        InputError: It could not be a folder's everywhere.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"An adapter cannot be called {name!r}: use letters, digits, dots, hyphens and underscores.")
    return name
