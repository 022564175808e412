"""Shared functions to train, evaluate and apply models learned from labels."""

from collections.abc import Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from climassay.errors import InputError
from climassay.io import parse_rows, read_bytes, require_column
from climassay.reporting import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from climassay.io import Row
    from climassay.learning import HeldOutScores, Provenance
    from climassay.models import OpenWeights

_TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".xlsx", ".gz")


def check_model_path(path: Path) -> None:
    """Check, before training, that a model file can be written to a path.

    Raises:
        InputError: The path is a folder, or its parent folder does not exist.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the model a file's name, for example {path}/model.safetensors.")
    if not path.parent.is_dir():
        raise InputError(f"The folder of {path} does not exist: make it first, or choose another place.")


@contextmanager
def open_weights(name: str | None) -> "Iterator[OpenWeights | None]":
    """Yield a loaded model with open weights, and close it afterwards; yield None if ``name`` is None.

    Raises:
        InputError: The model does not expose hidden states.
        ModelError: The model cannot be loaded.
    """
    from climassay.models import OpenWeights, load_model

    if name is None:
        yield None
        return
    with closing(load_model(name)) as model:
        if not isinstance(model, OpenWeights):
            raise InputError(f"The hidden states of {name} cannot be read: give a local: model.")
        yield model


def is_table(text: str) -> bool:
    """Return whether the text is the path of an existing file.

    Raises:
        InputError: The text has the suffix of a table, such as ``.csv``, but the file does not exist.
    """
    path = Path(text)
    try:
        if path.is_file():
            return True
    except OSError:  # too long for a name
        return False
    if path.suffix in _TABLES and " " not in text:
        raise InputError(f"There is no file {text}.")
    return False


class TextRow(NamedTuple):
    """Row of a table with a column of texts; see :func:`read_text_rows`."""

    text: str
    other: str
    """Value in the second column, such as a label; empty if no second column was requested."""
    remaining: "Row"
    """Values in all other columns, by name of the column."""


def read_text_rows(file: Path, text: str, other: str | None = None) -> list[TextRow]:
    """Read a table with a column of texts and, if requested, a second column.

    Args:
        file: CSV, TSV, JSON, JSONL or Parquet, also gzipped.
        text: Column of the texts.
        other: Second column, for example of labels.

    Raises:
        InputError: A column is missing, a text has no words, or there are no rows.
    """
    rows = list(parse_rows(file, read_bytes(file)))
    if not rows:
        raise InputError(f"{file} has no rows.")
    text = require_column(file, rows[0], text)
    other = require_column(file, rows[0], other) if other else None
    results = []
    for row_number, row in enumerate(rows, start=1):
        content = str(row.get(text) or "")
        if not any(map(str.isalpha, content)):
            raise InputError(f"Row {row_number} of {file} has no text in the column {text!r}.")
        other_cells = {name: value for name, value in row.items() if name not in (text, other)}
        results.append(TextRow(content, str(row.get(other) or "") if other else "", other_cells))
    return results


def provenance_data(provenance: "Provenance") -> dict[str, Any]:
    """Return a model's provenance as JSON-serialisable values, with the number of training texts, not their ids."""
    return {**provenance.to_dict(), "trained_on": len(provenance.trained_on)}


def comparison_table(
    evaluations: "Sequence[tuple[str, HeldOutScores]]", title: str = "Tried, on held-out items"
) -> "Table":
    """Return a table with an evaluation per row; the row with the lowest log loss is emphasised."""
    best_index = min(range(len(evaluations)), key=lambda index: evaluations[index][1].log_loss.value)
    scores = evaluations[0][1]
    rows = [
        [
            name,
            *(
                f"{estimate.value:.3f} [{estimate.interval.low:.3f}, {estimate.interval.high:.3f}]"
                for estimate in (evaluation.accuracy, evaluation.macro_f1)
            ),
            f"{evaluation.balanced_accuracy.value:.3f}",
            f"{evaluation.log_loss.value:.3f}",
        ]
        for name, evaluation in evaluations
    ]
    note = (
        f"{scores.n} items in {scores.groups} groups; 95% bootstrap intervals over groups. The most frequent class "
        f"alone: {scores.constant.value:.3f} right."
    )
    return Table.of(
        title, ["model", "accuracy", "macro-F1", "balanced", "log loss"], rows, note=note, strong=[best_index]
    )
