"""Options and tables that every command shares which trains, measures or applies something learned from labels."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.learning import Evaluation
    from climassay.reporting import Table

OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="File of the trained model, for example model.safetensors.")
]
EncoderOption = Annotated[str, typer.Option(help="Encoder whose vectors are read, or none.")]
LayerOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Layer whose hidden states are read (-1: last), several side by side as 16,-1; repeat to have the best "
        "chosen by cross-validation."
    ),
]
FoldsOption = Annotated[int, typer.Option(min=2, help="Number of cross-validation folds.")]
HoldOutOption = Annotated[
    int, typer.Option(min=0, help="Number of items kept out of training, in whole groups, to be measured on.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of samples, splits, folds and resampling.")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Number of items drawn at random; all by default.")]


def check_model_path(path: Path) -> None:
    """Make sure that a model's file can be written there, before anything is trained.

    Raises:
        InputError: It is a folder, or its folder does not exist.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the model a file's name, for example {path}/model.safetensors.")
    if not path.parent.is_dir():
        raise InputError(f"The folder of {path} does not exist: make it first, or choose another place.")


def renamed(command: Callable[..., None], name: str) -> Callable[..., None]:
    """A command for its earlier name, which tells the name that it has now."""
    from climassay.cli.output import stderr_console

    @wraps(command)
    def run(**given: Any) -> None:
        stderr_console().print(f"This command is called climassay {name} now.", highlight=False)
        command(**given)

    return run


def comparison_table(tried: "Sequence[tuple[str, Evaluation]]", title: str = "Tried, on held-out items") -> "Table":
    """Evaluations side by side, one row each; the lowest log loss is marked as the best."""
    from climassay.reporting import Table

    best = min(range(len(tried)), key=lambda place: tried[place][1].log_loss.value)
    first = tried[0][1]
    rows = [
        [
            name,
            *(
                f"{part.value:.3f} [{part.interval.low:.3f}, {part.interval.high:.3f}]"
                for part in (one.accuracy, one.macro_f1)
            ),
            f"{one.balanced_accuracy.value:.3f}",
            f"{one.log_loss.value:.3f}",
        ]
        for name, one in tried
    ]
    note = (
        f"{first.n} items in {first.groups} groups; 95% bootstrap intervals over groups. The most frequent class alone:"
        f" {first.constant.value:.3f} right."
    )
    return Table.of(title, ["model", "accuracy", "macro-F1", "balanced", "log loss"], rows, note=note, strong=[best])


__all__ = [
    "EncoderOption",
    "FoldsOption",
    "HoldOutOption",
    "LayerOption",
    "LimitOption",
    "OutputOption",
    "SeedOption",
    "check_model_path",
    "comparison_table",
    "renamed",
]
