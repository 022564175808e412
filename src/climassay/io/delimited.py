"""Read delimited text (CSV, TSV and similar) written by spreadsheet programs in any language."""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

_DELIMITERS = ",;\t|"
_DELIMITER_LINE = re.compile(r"""["']?sep=(?P<delimiter>\\t|[^\r\n])["']?[,;\t|]*\s*(?:\n|\Z)""", re.IGNORECASE)
"""Pattern of a first line such as ``sep=;``, which states the delimiter for Excel."""
_SINGLE_NAME = re.compile(r"""\s*(["']?)[^\W\d]\w*\1[ \t]*""")
_NO_DELIMITER = "\x1f"
HEAD_ROWS = 200
"""Number of first rows that are used to detect the delimiter and the header."""


MAX_MISSING_CELLS = 1_000_000
"""Maximum number of cells that a table's short rows lack. Missing cells are stored as None; without a limit, a small
file could fill the memory."""


class DelimitedTable(NamedTuple):
    """Table read from delimited text."""

    names: list[str]
    rows: list[Mapping[str, Any]]
    """Rows as cells by column name; None for columns after the end of a short row."""
    lines_above: list[str]
    """Lines above the header, for example the source and date of the table."""
    overlong: list[int]
    """Numbers, from 1, of rows with more cells than the header; these are not included in ``rows``."""

    def overlong_sentence(self) -> str:
        """Return an error message about rows with too many cells, to follow the file's name and a comma."""
        more = "" if len(self.overlong) == 1 else f" and {len(self.overlong) - 1} others"
        return (
            f"row {self.overlong[0]}{more}: there are more cells than the header names columns; put quotation marks "
            "around texts that hold the separator."
        )


def read_delimited(text: str, delimiter: str | None = None) -> DelimitedTable:
    """Read text in which commas, semicolons, tabs or bars separate the cells.

    A first line ``sep=;`` sets the delimiter. Otherwise it is the character that splits most rows into the same number
    of cells. The header is the first row with that number of cells. All cells remain strings, without spaces before
    them.

    Raises:
        ValueError: A quoted cell is not closed; the message does not contain the file's name.
    """
    text = text.removeprefix("\ufeff")
    if match := _DELIMITER_LINE.match(text):
        text = text[match.end() :]
        delimiter = "\t" if match["delimiter"] == "\\t" else match["delimiter"]
    n_columns = 0
    if delimiter is None:
        delimiter, n_columns = _find_delimiter(text)
    return arrange_rows(_split_rows(text, delimiter), n_columns)


def arrange_rows(rows: list[list[str]], n_columns: int = 0) -> DelimitedTable:
    """Return rows of cells as a table. The header is the first row with ``n_columns`` cells.

    If ``n_columns`` is 0, it is the most frequent number of cells per row. ``rows`` contains no blank rows. A column
    without a name is called ``column 5`` or the like, unless it is empty or a row index of pandas or R.

    Raises:
        ValueError: Short rows lack more than :data:`MAX_MISSING_CELLS` cells.
    """
    start = _find_header(rows[:HEAD_ROWS], n_columns or _find_usual_width(rows[:HEAD_ROWS])[0])
    lines_above = [" ".join(cell.strip() for cell in row if cell.strip()) for row in rows[:start]]
    names = _number_repeated_names(_name_unnamed(rows[start:])) if rows else []
    table = DelimitedTable([name for name in names if name], [], [line for line in lines_above if line], [])
    n_missing = 0
    for number, row in enumerate(rows[start + 1 :], start=1):
        n_missing += max(0, len(names) - len(row))
        if n_missing > MAX_MISSING_CELLS:
            raise ValueError(f"its header names {len(names):,} columns, and most rows have far fewer cells")
        if any(cell.strip() for cell in row[len(names) :]):
            table.overlong.append(number)
        else:
            cells = [*row, *[None] * (len(names) - len(row))]
            table.rows.append({name: cell for name, cell in zip(names, cells, strict=False) if name})
    return table


def _name_unnamed(rows: list[list[str]]) -> list[str]:
    """Return the names of columns, given the header and the rows below it; empty if a column is to be left out."""
    names = [name.strip() for name in rows[0]]
    filled_columns = {index for row in rows[1:] for index, cell in enumerate(row) if cell.strip()}
    first_cells = [row[0].strip() for row in rows[1:] if row]
    if first_cells in [list(map(str, range(first, first + len(first_cells)))) for first in (0, 1)]:
        filled_columns.discard(0)
    return [name or (f"column {index + 1}" if index in filled_columns else "") for index, name in enumerate(names)]


def _number_repeated_names(names: list[str]) -> list[str]:
    """Append a number to the second and further columns of the same name, so that no column hides another."""
    counts: Counter[str] = Counter()
    numbered_names = []
    for name in names:
        counts[name] += 1
        numbered_names.append(f"{name} ({counts[name]})" if name and counts[name] > 1 else name)
    return numbered_names


def _split_rows(text: str, delimiter: str) -> list[list[str]]:
    """Split a text into rows of cells, skipping blank lines.

    Quotation marks within a quoted cell are doubled or, as databases export them, preceded by a backslash.

    Raises:
        ValueError: A quoted cell is not closed.
    """
    csv.field_size_limit(2**31 - 1)
    errors = []
    for variant in dict.fromkeys((text, text.replace('\\"', '""'))):
        rows: list[list[str]] = []
        reader = _read_cells(variant, delimiter, strict=True)
        first_line = 1
        try:
            for row in reader:
                rows.append(row)
                first_line = reader.line_num + 1
        except csv.Error as error:
            errors.append((str(error), first_line))
        else:
            return list(filter(None, rows))
    message, first_line = errors[0]
    if "end of data" in message:
        raise ValueError(f"the row in line {first_line} opens a quotation mark that is never closed")
    return list(filter(None, _read_cells(text, delimiter)))


def _read_cells(text: str, delimiter: str, *, strict: bool = False) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict, skipinitialspace=True)


def _find_delimiter(text: str) -> tuple[str, int]:
    """Return the delimiter that splits most of the first rows into equally many cells, and this number of cells."""
    head = text[: 1 << 18]
    first_line = next((line for line in head.splitlines() if line.strip()), "")
    if _SINGLE_NAME.fullmatch(first_line):
        return _NO_DELIMITER, 1  # a single column, whose sentences may have commas
    best = (0, 0, "", 0)
    for order, delimiter in enumerate(_DELIMITERS):
        rows = list(islice(filter(None, _read_cells(head, delimiter)), HEAD_ROWS))
        width, count = _find_usual_width(rows)
        best = max(best, (count, -order, delimiter, width))
    return (best[2], best[3]) if best[0] else (_NO_DELIMITER, 1)


def _find_usual_width(rows: list[list[str]]) -> tuple[int, int]:
    widths = Counter(len(row) for row in rows if len(row) > 1)
    return max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))


def _find_header(rows: list[list[str]], width: int) -> int:
    """Return the index of the first row that can be the header, given the usual number of cells per row."""
    n_filled_cells = [sum(bool(cell.strip()) for cell in row) for row in rows]
    for index, row in enumerate(rows):
        is_wide = len(row) >= width or (width > 2 and len(row) == width - 1 == n_filled_cells[index])
        # A note above the table, which a spreadsheet program has padded with empty cells.
        is_note = (
            n_filled_cells[index] <= width / 2
            and not any(row[n_filled_cells[index] :])
            and max(n_filled_cells[index:]) > n_filled_cells[index]
        )
        # A comment with commas, unlike a header such as "#,text".
        is_comment = row[0].startswith("#") and len(row) != width
        if is_wide and not is_note and not is_comment:
            return index
    return 0
