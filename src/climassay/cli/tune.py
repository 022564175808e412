"""``climassay tune``: train adapters, list them, show how they came about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from climassay.api import tuning as api
from climassay.cli.options import CommandGroup, PromptOptions, WorkspaceOptions, given, with_flags
from climassay.errors import InputError
from climassay.tuning.config import TuningConfig

app = CommandGroup(no_args_is_help=True)


@dataclass(frozen=True)
@with_flags(TuningConfig, defaults=False)
class TuningOptions:
    """Which model is trained, how, and under which name the adapter is kept."""

    output: Annotated[str, typer.Option("--output", "-o", help="Name of the adapter in the workspace.")]
    model: Annotated[str, typer.Option("--model", "-m", help="local:smollm2 or local:FOLDER_OR_HUB_ID.")] = (
        "local:smollm2"
    )
    preset: Annotated[
        str | None, typer.Option(help="Preset, see climassay tune presets.  [default: the one made for model and task]")
    ] = None
    device: Annotated[str | None, typer.Option(help="Device: cpu, cuda, cuda:1 or mps.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of initial values, order, dropout and splits.")] = 0
    search: Annotated[bool, typer.Option("--search", help="Try a grid of settings and keep the best; see --grid.")] = (
        False
    )
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=VALUES",
            help="Values to search, e.g. rank=8,32; repeat.  [default: rank=8,32 learning_rate=3e-4,1e-3]",
        ),
    ] = None
    replace: Annotated[bool, typer.Option("--replace", help="Remove another adapter of this name.")] = False


def _training(tuning: TuningOptions) -> dict[str, Any]:
    """What the training takes."""
    from climassay.tuning import DEFAULT_GRID

    if tuning.grid and not tuning.search:
        raise InputError("A --grid is for a search: add --search.")
    settings = given(tuning, TuningConfig)
    if "targets" in settings:
        settings["targets"] = tuple(settings["targets"])
    grid = dict(_axis(text) for text in tuning.grid) if tuning.grid else DEFAULT_GRID
    return {
        "name": tuning.output,
        "model": tuning.model,
        "preset": tuning.preset,
        "settings": settings,
        "seed": tuning.seed,
        "grid": grid if tuning.search else None,
        "device": tuning.device,
        "replace_other": tuning.replace,
    }


_AXES = ("rank", "alpha", "epochs", "learning_rate", "lr", "dropout", "weight_decay", "warmup", "schedule",
         "batch_size", "accumulation", "max_length")  # fmt: skip
"""Settings whose values can be searched."""
_WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", str: "a word"}


def _axis(text: str) -> tuple[str, tuple[Any, ...]]:
    name, separator, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not separator or name not in _AXES:
        raise InputError(
            f"The grid {text!r} is not understood: write SETTING=VALUE,VALUE with one of {', '.join(_AXES)}."
        )
    setting = "learning_rate" if name == "lr" else name
    kind = type(getattr(TuningConfig(), setting))
    try:
        return setting, tuple(kind(value.strip()) for value in values.split(","))
    except ValueError as error:
        raise InputError(f"The grid {text!r} has a value that is not {_WORDS[kind]}.") from error


app.add_verb(
    "pretrain",
    api.pretrain,
    to=WorkspaceOptions,
    parse=_training,
    name=None,
    seed=None,
    collections=Annotated[list[str], typer.Argument(metavar="COLLECTION")],
    validate_on=Annotated[Literal["held-out", "source"], typer.Option()],
)
app.add_verb(
    "finetune",
    api.finetune,
    reach=PromptOptions,
    to=WorkspaceOptions,
    parse=_training,
    name=None,
    seed=None,
    questions=typer.Argument(metavar="FILE"),
    limit=typer.Option(min=2),
)
app.add_verb("list", api.list_adapters)
app.add_verb("show", api.show_adapter)
app.add_verb("presets", api.list_presets)
