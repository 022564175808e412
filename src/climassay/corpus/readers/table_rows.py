"""Write the rows of a table as text that names its columns; used for the tables of every file format."""

import re
from collections.abc import Sequence

_HAS_DIGIT = re.compile(r"\d")


def row_texts(rows: Sequence[Sequence[str]], n_header_rows: int | None = None) -> list[str]:
    """Return one text for each row of a table, for example ``Year: 1990; CO2: 320; CH4: 41``.

    A row's empty cells are left out, which moves no other cell because each value follows the name of its column. If
    no header is known, the cells are separated by bars and empty cells keep their place (``a | | b``).

    Args:
        rows: Cells as cleaned text, header rows first. The text of a cell that spans several rows or columns stands
            in each of them.
        n_header_rows: Number of rows at the top that name the columns. By default the first row is taken as the
            header if every cell has text, none has a digit and a later row has one.

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
        return [" | ".join(row).strip() for row in grid if any(row)]
    names = [" ".join(dict.fromkeys(cell for cell in column if cell)) for column in zip(*header, strict=True)]
    return [_named_cells(names, row) for row in body if any(row)]


def _first_row_names_columns(grid: Sequence[Sequence[str]]) -> bool:
    if len(grid) < 2 or not all(grid[0]) or any(map(_HAS_DIGIT.search, grid[0])):
        return False
    return any(_HAS_DIGIT.search(cell) for row in grid[1:] for cell in row)


def _named_cells(names: Sequence[str], row: Sequence[str]) -> str:
    cells = []
    for index, (name, cell) in enumerate(zip(names, row, strict=True)):
        is_continued = index > 0 and cell == row[index - 1] and name == names[index - 1]
        if cell and not is_continued:
            cells.append(f"{name}: {cell}" if name else cell)
    return "; ".join(cells)
