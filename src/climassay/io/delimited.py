"""Delimited text (CSV, TSV and similar) as spreadsheets of all languages write it."""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r"""["']?sep=(?P<delimiter>\\t|[^\r\n])["']?[,;\t|]*\s*(?:\n|\Z)""", re.IGNORECASE)
"""First line that tells Excel the separator."""
_ONE_NAME = re.compile(r"""\s*(["']?)[^\W\d]\w*\1[ \t]*""")
_NO_DELIMITER = "\x1f"
HEAD_ROWS = 200
"""Number of first rows that decide the separator and the header."""


class DelimitedTable(NamedTuple):
    """Rows of delimited text."""

    names: list[str]
    rows: list[Mapping[str, Any]]
    """Cells by the name of their column; None if a row ends before the column."""
    lines_above: list[str]
    """Lines above the header, such as the source and date of a table."""
    overlong: list[int]
    """Numbers, from 1, of rows with more cells than the header; these rows are not in ``rows``."""

    def overlong_sentence(self) -> str:
        """Return the error message on overlong rows, to follow the file's name and a comma."""
        more = "" if len(self.overlong) == 1 else f" and {len(self.overlong) - 1} others"
        return (
            f"row {self.overlong[0]}{more}: there are more cells than the header names columns; put quotation marks "
            "around texts that hold the separator."
        )


def read_delimited(text: str, delimiter: str | None = None) -> DelimitedTable:
    """Read text with comma, semicolon, tab or bar as separator.

    A line ``sep=;`` sets the separator; otherwise it is the character that splits most rows into the same number of
    cells. The header is the first row with that number of cells. All cells stay text.

    Args:
        text: The decoded file; quoted cells may hold line breaks.
        delimiter: The separator, if it is known.

    Raises:
        ValueError: A quoted cell has no end; the message is a clause without the file's name.
    """
    text = text.removeprefix("\ufeff")
    if match := _SEPARATOR_LINE.match(text):
        text = text[match.end() :]
        delimiter = "\t" if match["delimiter"] == "\\t" else match["delimiter"]
    n_columns = 0
    if delimiter is None:
        delimiter, n_columns = _find_delimiter(text)
    rows = _split_rows(text, delimiter)
    start = _find_header(rows[:HEAD_ROWS], n_columns or _usual_width(rows[:HEAD_ROWS])[0])
    lines_above = [" ".join(cell.strip() for cell in row if cell.strip()) for row in rows[:start]]
    names = [name.strip() for name in rows[start]] if rows else []
    table = DelimitedTable([name for name in names if name], [], [line for line in lines_above if line], [])
    for number, row in enumerate(rows[start + 1 :], start=1):
        if any(cell.strip() for cell in row[len(names) :]):
            table.overlong.append(number)
        else:
            cells = [*row, *[None] * (len(names) - len(row))]
            table.rows.append({name: cell for name, cell in zip(names, cells, strict=False) if name})
    return table


def _split_rows(text: str, delimiter: str) -> list[list[str]]:
    """Cut a text into rows of cells, without blank lines.

    Raises:
        ValueError: A quoted cell has no end.
    """
    csv.field_size_limit(2**31 - 1)
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begin = 1
    try:
        for row in reader:
            rows.append(row)
            begin = reader.line_num + 1
    except csv.Error as error:
        if "end of data" in str(error):
            raise ValueError(f"the row in line {begin} opens a quotation mark that is never closed") from None
        return list(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)))
    return list(filter(None, rows))


def _find_delimiter(text: str) -> tuple[str, int]:
    """Return the separator that cuts most of the first rows into the same number of cells, and that number."""
    head = text[: 1 << 18]
    first = next((line for line in head.splitlines() if line.strip()), "")
    if _ONE_NAME.fullmatch(first):
        return _NO_DELIMITER, 1  # a column alone, whose sentences may have commas
    best = (0, 0, "", 0)
    for order, delimiter in enumerate(_DELIMITERS):
        rows = list(islice(filter(None, csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)), HEAD_ROWS))
        width, count = _usual_width(rows)
        best = max(best, (count, -order, delimiter, width))
    return (best[2], best[3]) if best[0] else (_NO_DELIMITER, 1)


def _usual_width(rows: list[list[str]]) -> tuple[int, int]:
    """Return the number of cells, at least two, that most rows have, and how many rows that are."""
    widths = Counter(len(row) for row in rows if len(row) > 1)
    return max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))


def _find_header(rows: list[list[str]], width: int) -> int:
    """Return the index of the first row that names the columns, given the usual number of cells per row."""
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    for index, row in enumerate(rows):
        is_wide = len(row) >= width or (width > 2 and len(row) == width - 1 == filled[index])
        # A note above the table that a spreadsheet has filled up with empty cells.
        is_note = filled[index] <= width / 2 and not any(row[filled[index] :]) and max(filled[index:]) > filled[index]
        if is_wide and not is_note:
            return index
    return 0
