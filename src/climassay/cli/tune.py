"""``climassay tune``: train adapters, list them, show how they were trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from climassay.api import tuning as api
from climassay.cli.commands import add_command
from climassay.cli.options import NON_NEGATIVE, PromptOptions, WorkspaceOptions, bounded, given_values, options_for
from climassay.errors import InputError
from climassay.tuning.config import TuningConfig

app = App(name="tune")


@dataclass(frozen=True)
@options_for(
    TuningConfig,
    *(name for name in TuningConfig.__dataclass_fields__ if name not in ("seed", "targets", "gradient_checkpointing")),
    show_defaults=False,
    targets=Parameter(name="--target"),
    gradient_checkpointing=Parameter(negative=()),
)
class TuningOptions:
    """Options for the model, the training settings and the name of an adapter."""

    output: Annotated[str, Parameter(alias="-o")]
    """Name of the adapter in the workspace."""
    model: Annotated[str, Parameter(alias="-m")] = "local:smollm2"
    """local:smollm2 or local:FOLDER_OR_HUB_ID."""
    preset: str | None = None
    """Preset of settings, see climassay tune presets; default: the preset for the model and task."""
    device: str | None = None
    """Device: cpu, cuda, cuda:1 or mps."""
    seed: Annotated[int, NON_NEGATIVE] = 0
    """Seed of initial weights, data order, dropout and splits."""
    search: bool = False
    """Try a grid of settings and keep the best; see --grid."""
    grid: tuple[str, ...] = ()
    """Values to search as SETTING=VALUES, e.g. rank=8,32; repeat; by default rank=8,32 learning_rate=3e-4,1e-3."""
    replace: bool = False
    """Replace an existing adapter with this name."""

    def build(self) -> dict[str, Any]:
        """Return the options as keyword arguments for :func:`climassay.pretrain` and :func:`climassay.finetune`.

        Raises:
            InputError: ``--grid`` was given without ``--search``, or is not of the form SETTING=VALUES.
        """
        from climassay.tuning import DEFAULT_GRID

        if self.grid and not self.search:
            raise InputError("A --grid is for a search: add --search.")
        grid = dict(_parse_grid_axis(axis) for axis in self.grid) or DEFAULT_GRID
        return {
            "name": self.output,
            "model": self.model,
            "preset": self.preset,
            "settings": given_values(self, TuningConfig),
            "seed": self.seed,
            "grid": grid if self.search else None,
            "device": self.device,
            "replace_other": self.replace,
        }


_GRID_SETTINGS = ("rank", "alpha", "epochs", "learning_rate", "lr", "dropout", "weight_decay", "warmup", "schedule",
         "batch_size", "accumulation", "max_length")  # fmt: skip
"""Names of settings whose values can be searched."""
_TYPE_NAMES: Mapping[type, str] = {int: "a whole number", float: "a number", str: "a word"}


def _parse_grid_axis(axis: str) -> tuple[str, tuple[Any, ...]]:
    """Parse ``SETTING=VALUE,VALUE`` into the name of a setting and its values.

    Raises:
        InputError: The setting cannot be searched, or a value has the wrong type.
    """
    name, equals, values = axis.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or name not in _GRID_SETTINGS:
        raise InputError(
            f"The grid {axis!r} is not understood: write SETTING=VALUE,VALUE with one of {', '.join(_GRID_SETTINGS)}."
        )
    setting = "learning_rate" if name == "lr" else name
    value_type = type(getattr(TuningConfig(), setting))
    try:
        return setting, tuple(value_type(value.strip()) for value in values.split(","))
    except ValueError as error:
        raise InputError(f"The grid {axis!r} has a value that is not {_TYPE_NAMES[value_type]}.") from error


add_command(
    app,
    "pretrain",
    api.pretrain,
    common_options=WorkspaceOptions,
    name=None,
    collections=Annotated[list[str], Parameter(name="collection")],
    validate_on=Annotated[Literal["held-out", "source"], Parameter()],
    seed=None,
    training=TuningOptions,
)
add_command(
    app,
    "finetune",
    api.finetune,
    model_options=PromptOptions,
    common_options=WorkspaceOptions,
    name=None,
    questions=Parameter(name="file"),
    limit=bounded(2),
    seed=None,
    training=TuningOptions,
)
add_command(app, "list", api.list_adapters)
add_command(app, "show", api.show_adapter)
add_command(app, "presets", api.list_presets)
