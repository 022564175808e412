"""Write table rows as text that names the columns, for the tables of all file formats."""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

_NUMBER = re.compile(r"\W*\d")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
MAX_REPEATS = 50
"""Maximum number of grid cells per table cell; above it spans are ignored, since a small file could expand to a huge
table."""


class TableCell(NamedTuple):
    """Text of a cell, with the number of rows and columns that it spans; 0 rows: all rows below."""

    text: str
    n_rows: int = 1
    n_columns: int = 1


def span_rows(rows: Sequence[Sequence[TableCell]]) -> list[list[str | None]]:
    """Expand spanning cells into a grid, as :func:`row_texts` takes it.

    A cell that spans several rows is repeated in each. A cell that spans several columns is in the first; None marks
    the others.
    """
    max_columns = max(map(len, rows), default=0)
    cells = [cell for row in rows for cell in row]
    spanned = sum((cell.n_rows or len(rows)) * min(cell.n_columns, max_columns) for cell in cells)
    is_ignored = spanned > MAX_REPEATS * (len(cells) + 20)
    grid: list[list[str | None]] = []
    below: dict[int, tuple[int, str | None]] = {}
    for index, row in enumerate(rows):
        line: list[str | None] = []
        for cell in row:
            _fill_from_above(line, below)
            n_rows = 1 if is_ignored else min(cell.n_rows or len(rows), len(rows) - index)
            for position in range(1 if is_ignored else max(1, min(cell.n_columns, max_columns))):
                text = None if position else cell.text
                if n_rows > 1:
                    below[len(line)] = (n_rows, text)
                line.append(text)
        _fill_from_above(line, below)
        grid.append(line)
        below = {column: (n_rows - 1, text) for column, (n_rows, text) in below.items() if n_rows > 1}
    return grid


def _fill_from_above(line: list[str | None], below: dict[int, tuple[int, str | None]]) -> None:
    while len(line) in below:
        line.append(below[len(line)][1])


def row_texts(rows: Sequence[Sequence[str | None]], n_header_rows: int | None = None) -> list[str]:
    """Return one text per table row, for example ``Year: 1990; CO2: 320; CH4: 41``.

    Empty cells are omitted, because each value follows its column name. Without a header, cells are separated by bars
    and empty cells are kept (``a | | b``).

    Args:
        rows: Cells as cleaned text, header rows first; None for columns spanned by the cell to the left
            (:func:`span_rows`).
        n_header_rows: Number of header rows. By default the first row is the header if it has no figures but years, and
            at least one column has only figures below it.

    Returns:
        Texts of the rows that are not empty, without the header rows. A table of header rows only returns their cells
        separated by bars.
    """
    width = max((len(row) for row in rows), default=0)
    grid = [[*row, *[""] * (width - len(row))] for row in rows]
    if n_header_rows is None:
        n_header_rows = int(_first_row_names_columns(grid))
    header, body = grid[:n_header_rows], grid[n_header_rows:]
    if not header or not any(any(row) for row in body):
        return [_join_with_bars(row) for row in grid if any(row)]
    names = [
        " ".join(dict.fromkeys(cell for cell in column if cell))
        for column in zip(*(_repeat_spanned_text(row) for row in header), strict=True)
    ]
    write = partial(_named_cells, names) if any(names) else _join_with_bars
    return [write(row) for row in body if any(row)]


def _join_with_bars(row: Sequence[str | None]) -> str:
    return " ".join(" | ".join(cell for cell in row if cell is not None).rstrip(" |").split())


def _first_row_names_columns(grid: Sequence[Sequence[str | None]]) -> bool:
    if len(grid) < 2 or not all(grid[0][1:]):
        return False
    n_columns_of_figures = 0
    for name, *cells in zip(*grid, strict=True):
        filled = [cell for cell in cells if cell]
        are_figures = bool(filled) and all(map(_NUMBER.match, filled))
        if _NUMBER.match(name or "") and not (
            _YEAR.fullmatch(name or "") and are_figures and not all(map(_YEAR.fullmatch, filled))
        ):
            return False
        n_columns_of_figures += are_figures
    return n_columns_of_figures > (len(grid) == 2)


def _repeat_spanned_text(row: Sequence[str | None]) -> list[str]:
    """Return a header row with the text of each cell repeated in the columns that it spans."""
    spread: list[str] = []
    for cell in row:
        spread.append(cell if cell is not None else spread[-1] if spread else "")
    return spread


def _named_cells(names: Sequence[str], row: Sequence[str | None]) -> str:
    cells: list[tuple[str, list[str]]] = []
    for name, cell in zip(names, row, strict=True):
        if cell is None and cells:
            cells[-1][1].append(name)
        else:
            cells.append((cell or "", [name]))
    if len(cells) == 1 and len(names) > 1:
        return cells[0][0]  # the title of a part of the table
    named = ((", ".join(dict.fromkeys(name for name in spanned if name)), cell) for cell, spanned in cells if cell)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named)
