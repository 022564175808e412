"""Write table rows as text that names the columns, for the tables of all file formats."""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

_NUMBER = re.compile(r"\W*\d")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
MAX_EXPANSION = 50
"""Spans are ignored if the ratio of grid cells to table cells would exceed this value, since a small file could
otherwise become a huge table."""


class TableCell(NamedTuple):
    """Text of a cell and the numbers of rows and columns that the cell spans; 0 rows means all remaining rows."""

    text: str
    n_rows: int = 1
    n_columns: int = 1


def expand_spans(rows: Sequence[Sequence[TableCell]]) -> list[list[str | None]]:
    """Expand spanning cells into a grid, as :func:`format_rows` expects it.

    A cell that spans several rows is repeated in each of them. A cell that spans several columns has its text in the
    first; the others are None.
    """
    max_columns = max(map(len, rows), default=0)
    cells = [cell for row in rows for cell in row]
    n_grid_cells = sum((cell.n_rows or len(rows)) * min(cell.n_columns, max_columns) for cell in cells)
    is_ignored = n_grid_cells > MAX_EXPANSION * (len(cells) + 20)
    grid: list[list[str | None]] = []
    pending_cells: dict[int, tuple[int, str | None]] = {}
    for index, row in enumerate(rows):
        grid_row: list[str | None] = []
        for cell in row:
            _fill_from_above(grid_row, pending_cells)
            n_rows = 1 if is_ignored else min(cell.n_rows or len(rows), len(rows) - index)
            for column_offset in range(1 if is_ignored else max(1, min(cell.n_columns, max_columns))):
                text = None if column_offset else cell.text
                if n_rows > 1:
                    pending_cells[len(grid_row)] = (n_rows, text)
                grid_row.append(text)
        _fill_from_above(grid_row, pending_cells)
        grid.append(grid_row)
        pending_cells = {column: (n_rows - 1, text) for column, (n_rows, text) in pending_cells.items() if n_rows > 1}
    return grid


def _fill_from_above(grid_row: list[str | None], pending_cells: dict[int, tuple[int, str | None]]) -> None:
    while len(grid_row) in pending_cells:
        grid_row.append(pending_cells[len(grid_row)][1])


def format_rows(rows: Sequence[Sequence[str | None]], n_header_rows: int | None = None) -> list[str]:
    """Return one text per table row, for example ``Year: 1990; CO2: 320; CH4: 41``.

    Empty cells are omitted, since column names identify the others. Rows without a header consist of all cells,
    including empty ones, separated by bars (``a | | b``).

    Args:
        rows: Cells as cleaned text, header rows first; None for columns spanned by the cell to their left
            (:func:`expand_spans`).
        n_header_rows: Number of header rows. By default, the first row is the header if it contains no numbers other
            than years, and at least one column contains only numbers below it.

    Returns:
        Texts of the rows that are not empty, without the header rows. If the table has only header rows, their texts,
            with cells separated by bars.
    """
    width = max((len(row) for row in rows), default=0)
    grid = [[*row, *[""] * (width - len(row))] for row in rows]
    if n_header_rows is None:
        n_header_rows = int(_is_header_first(grid))
    header, body = grid[:n_header_rows], grid[n_header_rows:]
    if not header or not any(any(row) for row in body):
        return [_join_with_bars(row) for row in grid if any(row)]
    names = [
        " ".join(dict.fromkeys(cell for cell in column if cell))
        for column in zip(*(_repeat_spanned_text(row) for row in header), strict=True)
    ]
    format_row = partial(_format_named_cells, names) if any(names) else _join_with_bars
    return [format_row(row) for row in body if any(row)]


def _join_with_bars(row: Sequence[str | None]) -> str:
    return " ".join(" | ".join(cell for cell in row if cell is not None).rstrip(" |").split())


def _is_header_first(grid: Sequence[Sequence[str | None]]) -> bool:
    if len(grid) < 2 or not all(grid[0][1:]):
        return False
    n_numeric_columns = 0
    for name, *cells in zip(*grid, strict=True):
        non_empty_cells = [cell for cell in cells if cell]
        is_numeric = bool(non_empty_cells) and all(map(_NUMBER.match, non_empty_cells))
        if _NUMBER.match(name or "") and not (
            _YEAR.fullmatch(name or "") and is_numeric and not all(map(_YEAR.fullmatch, non_empty_cells))
        ):
            return False
        n_numeric_columns += is_numeric
    return n_numeric_columns > (len(grid) == 2)


def _repeat_spanned_text(row: Sequence[str | None]) -> list[str]:
    """Return a header row with the text of each cell repeated in all columns that it spans."""
    texts: list[str] = []
    for cell in row:
        texts.append(cell if cell is not None else texts[-1] if texts else "")
    return texts


def _format_named_cells(names: Sequence[str], row: Sequence[str | None]) -> str:
    texts_with_names: list[tuple[str, list[str]]] = []
    for name, cell in zip(names, row, strict=True):
        if cell is None and texts_with_names:
            texts_with_names[-1][1].append(name)
        else:
            texts_with_names.append((cell or "", [name]))
    if len(texts_with_names) == 1 and len(names) > 1:
        return texts_with_names[0][0]  # the title of a part of the table
    names_with_text = (
        (", ".join(dict.fromkeys(name for name in spanned_names if name)), cell)
        for cell, spanned_names in texts_with_names
        if cell
    )
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in names_with_text)
