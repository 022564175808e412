"""Options of the commands that train, evaluate or apply something learned from labels.

Every such thing has the same three commands: ``train LABELS -o MODEL``, ``evaluate MODEL LABELS`` and ``apply MODEL
ITEMS``.
"""

from pathlib import Path
from typing import Annotated

import typer

from climassay.errors import InputError


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers between commas.

    Raises:
        InputError: They are not.
    """
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} takes whole numbers between commas, not {text!r}.") from None
    if len(set(found)) < len(found):
        raise InputError(f"{option} names a number twice: {text}.")
    return found


def _layer_sets(given: list[str] | None) -> list[tuple[int, ...]] | None:
    return [numbers(text, "--layer") for text in dict.fromkeys(given)] if given else None


def _layers(given: str | None) -> tuple[int, ...] | None:
    return numbers(given, "--layer") if given else None


OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="File of the trained model, for example model.safetensors.")
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", help="Write figures and tables as a self-contained HTML report.")
]
EncoderOption = Annotated[str, typer.Option(help="Encoder whose vectors are read, or none.")]
StatesModelOption = Annotated[str, typer.Option("--model", "-m", help="Local model whose hidden states are read.")]
LayerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--layer",
        callback=_layer_sets,
        help="Layer whose hidden states are read (-1: last), several side by side as 16,-1; repeat to have the best "
        "chosen by cross-validation.",
    ),
]
LayersOption = Annotated[
    str | None,
    typer.Option("--layer", callback=_layers, help="Layers whose hidden states are read, side by side as 16,-1."),
]
FoldsOption = Annotated[int, typer.Option(min=2, help="Number of cross-validation folds.")]
HoldOutOption = Annotated[
    int, typer.Option(min=0, help="Number of items kept out of training, in whole groups, to be measured on.")
]
IncludeTrainedOption = Annotated[
    bool, typer.Option("--include-trained", help="Score on items of the training data too.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of samples, splits, folds and resampling.")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Number of items drawn at random; all by default.")]
