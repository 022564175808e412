"""What the commands share that train, evaluate or apply something learned from labels: options, tables, files.

Every such thing has the same three commands: ``train LABELS -o MODEL``, ``evaluate MODEL LABELS`` and ``apply MODEL
ITEMS``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.output import progress_bar, stderr_console, stdout_console
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.learning import ActivationStore, Evaluation, Provenance
    from climassay.models import OpenWeights
    from climassay.questions.rows import Row
    from climassay.reporting import Table

OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="File of the trained model, for example model.safetensors.")
]
LinesOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write what was found (.jsonl, .csv, .xlsx).")]
HtmlOption = Annotated[Path | None, typer.Option(help="Write figures and tables as a self-contained HTML report.")]
EncoderOption = Annotated[str, typer.Option(help="Encoder whose vectors are read, or none.")]
StatesModelOption = Annotated[str, typer.Option("--model", "-m", help="Local model whose hidden states are read.")]
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
IncludeTrainedOption = Annotated[
    bool, typer.Option("--include-trained", help="Score on items of the training data too.")
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

    @wraps(command)
    def run(**given: Any) -> None:
        note(f"This command is called climassay {name} now.")
        command(**given)

    return run


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


def note(*sentences: str) -> None:
    """Say on stderr what is no result; empty sentences are left out."""
    for one in filter(None, sentences):
        stderr_console().print(one, highlight=False)


def show(tables: "Iterable[Table]", *sentences: str) -> None:
    """Print tables, and sentences below them, as the result."""
    from climassay.reporting import as_rich

    console = stdout_console()
    for table in tables:
        console.print(as_rich(table))
    for one in filter(None, sentences):
        console.print(one, highlight=False)


def write_lines(path: Path | None, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as the ending of a file says, where one is wanted."""
    if path is not None:
        from climassay.reporting.results import write_rows

        write_rows(path, rows)


@contextmanager
def counting(words: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A progress bar of one task; what is given is called with the number of steps done since the last call."""
    with progress_bar(quiet) as progress:
        task = progress.add_task(words, total=total)
        yield lambda done: progress.advance(task, done)


def activation_store() -> "ActivationStore":
    """Where hidden states are kept."""
    from climassay.learning import ActivationStore
    from climassay.workspace import cache_folder

    return ActivationStore(cache_folder() / "activations")


def load_weights(name: str) -> "OpenWeights":
    """A model whose hidden states can be read.

    Raises:
        InputError: It shows none.
        ModelError: It cannot be loaded.
    """
    from climassay.models import OpenWeights, load_model

    model = load_model(name)
    if not isinstance(model, OpenWeights):
        model.close()
        raise InputError(f"The states of {name} cannot be read: give a local: model.")
    return model


def text_rows(file: Path, text: str, *others: str | None) -> "list[tuple[str, Row]]":
    """The text of each row of a table, with the row.

    Args:
        file: CSV, TSV, JSON, JSONL or Parquet, also gzipped.
        text: Column of the texts.
        others: Further columns that must be there; None is no column.

    Raises:
        InputError: A column is missing, a text has no words, or there are no rows.
    """
    from climassay.questions.rows import parse_rows, read_bytes

    found = []
    for number, row in enumerate(parse_rows(file, read_bytes(file)), start=1):
        missing = next((name for name in (text, *others) if name is not None and name not in row), None)
        if missing is not None:
            raise InputError(f"Row {number} of {file} has no column {missing!r}.")
        said = str(row[text] or "")
        if not any(map(str.isalpha, said)):
            raise InputError(f"Row {number} of {file} has no text in the column {text!r}.")
        found.append((said, row))
    if not found:
        raise InputError(f"{file} has no rows.")
    return found


def card(provenance: "Provenance") -> dict[str, Any]:
    """Where a model comes from, for JSON; of the texts it was trained on, their number only."""
    return {**provenance.facts(), "trained_on": len(provenance.trained_on)}


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
    words = (
        f"{first.n} items in {first.groups} groups; 95% bootstrap intervals over groups. The most frequent class alone:"
        f" {first.constant.value:.3f} right."
    )
    return Table.of(title, ["model", "accuracy", "macro-F1", "balanced", "log loss"], rows, note=words, strong=[best])
