"""Rows of a table with a column of texts, to be classified or to learn from."""

from pathlib import Path
from typing import NamedTuple

from climassay.errors import InputError
from climassay.io import Row, parse_rows, read_bytes, require_column

_TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".xlsx", ".gz")


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
    remaining: Row
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
