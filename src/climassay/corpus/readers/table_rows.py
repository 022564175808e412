"""Write the rows of a table as text that names its columns; used for the tables of every file format."""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

_NUMBER = re.compile(r"\W*\d")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
MAX_REPEATS = 50
"""Places in the grid per cell above which spans are ignored, so that a small file cannot make a huge table."""


class Cell(NamedTuple):
    """Text of a cell and the number of rows and columns that it spans; 0 rows: all rows below."""

    text: str
    n_rows: int = 1
    n_columns: int = 1


def span_rows(rows: Sequence[Sequence[Cell]]) -> list[list[str | None]]:
    """Return the rows with each cell in its column, as :func:`row_texts` takes them.

    A cell that spans several rows stands in each of them. A cell that spans several columns stands in the first; None
    marks the others.
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
    """Return one text for each row of a table, for example ``Year: 1990; CO2: 320; CH4: 41``.

    A row's empty cells are left out, which moves no other cell because each value follows the name of its column. If
    no header is known, the cells are separated by bars and empty cells keep their place (``a | | b``).

    Args:
        rows: Cells as cleaned text, header rows first; None where the cell to the left goes on (:func:`span_rows`).
        n_header_rows: Number of rows at the top that name the columns. By default the first row is taken as the
            header if it has no figures but years, and the cells below it in at least one column are all figures.

    Returns:
        Texts of the rows with at least one cell that is not empty, without the header rows. A table that consists of
        header rows only returns them separated by bars, so that nothing is lost.
    """
    width = max((len(row) for row in rows), default=0)
    grid = [[*row, *[""] * (width - len(row))] for row in rows]
    if n_header_rows is None:
        n_header_rows = int(_first_row_names_columns(grid))
    header, body = grid[:n_header_rows], grid[n_header_rows:]
    if not header or not any(any(row) for row in body):
        return [_with_bars(row) for row in grid if any(row)]
    names = [
        " ".join(dict.fromkeys(cell for cell in column if cell))
        for column in zip(*(_spread(row) for row in header), strict=True)
    ]
    write = partial(_named_cells, names) if any(names) else _with_bars
    return [write(row) for row in body if any(row)]


def _with_bars(row: Sequence[str | None]) -> str:
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


def _spread(row: Sequence[str | None]) -> list[str]:
    """Return a header row with the text of each cell in all columns that it spans."""
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
