"""Find the tables of PDF pages by the positions of their cells.

A table is a sequence of rows with figures whose cells are aligned in columns. Axes of figures are excluded: their
numbers change by equal steps in every column. So are tables of contents: their only column of figures rises.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from climassay.corpus.readers.pdf_lines import Line, PdfTable, has_leaders

MAX_CELL = 60
"""Maximum number of characters of a cell; longer text is prose in another column of the page."""
MIN_ROWS = 2
MIN_FIGURES_BESIDE = 3
"""Minimum number of figures beside another line on a page with a table, if no line has column gaps."""
MIN_SURE_ROWS = 3
"""Minimum number of rows of a table without named columns."""
MAX_COLUMNS = 60
MAX_TABLES = 30
"""Maximum number of tables of a page."""
MAX_ROW_GAP = 4.5
"""Maximum distance of two rows of a table, as a multiple of the type size."""
MAX_LABEL_ROWS = 4
"""Maximum number of consecutive rows without figures, such as lines of a label."""
MAX_ISOLATED = 2
"""Maximum distance, in rows, of the first or last row from the next row with figures."""
MAX_HEADER_ROWS = 4
MAX_HEADER_CELLS = 2
"""Maximum number of cells of a header row over one column; more are labels of an axis."""
MAX_BRIDGE_SHARE = 0.1
"""Maximum share of rows in which figures of two columns are too close to be separated."""
MAX_UNIT = 15
"""Maximum number of letters after a figure."""
MIN_FIGURES = 0.3
"""Minimum share of figures among the cells of a table's rows."""
MAX_CONFLICTS = 0.25
"""Maximum share of rows with two cells in one column."""
MIN_LOWER = 0.3
"""Minimum share of lines that begin in lower case if the lines are running text."""
MIN_FULL = 0.5
"""Minimum share of lines of a justified text that reach its right edge."""
JUSTIFIED = 2.0
"""Maximum distance from the right edge, in points."""
MIN_PROSE_LENGTH = 25
"""Minimum mean number of characters of a lines of prose."""
MIN_FILLED = 0.5
"""Minimum share of a table's cells that have text."""
MIN_COVERED = 0.5
"""Minimum share of a column's width that a spanning cell covers."""
MIN_EQUAL_SHARE = 0.5
"""Share of rows with equal figures that indicates panels of a figure side by side."""
MIN_DENSE = 4
"""Minimum number of figure columns of a table without header and labels."""
MIN_LABELLED = 0.5
"""Minimum share of rows that begin with words, if there is no header."""
SAME_ROW = 0.4
"""Maximum difference of baselines in a row, as a share of the type size."""
_FIGURE = re.compile(r"[(\[<>≤≥~≈±+\-−–$€£]*\s?\d")
_FIGURES_BESIDE = re.compile(r"(?:^|\s)[(\[<>≤≥~≈±+\-−–$€£]*\d\S*\s+[(\[<>≤≥~≈±+\-−–$€£]*\d")
MIN_ADVANCE = 0.5
"""Width per character of a line with gaps, as a multiple of the type size; prose is narrower in most fonts."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d(?:\s?[-–/]\s?\d{2,4})?\W{0,2}\d?")
_EQUATION = re.compile(r"\(\d{1,3}[a-z]?\)")
_VALUE = re.compile(r"[-−–]?\d+(?:,\d{3})*(?:\.\d+)?")
_CAPTION = re.compile(r"(?:Table|TABLE|Tab\.|Tabelle|Tableau|Tabla)\s")

Row = list[Line]
"""Cells from left to right."""
Interval = tuple[float, float]


def find_tables(lines: Sequence[Line], split: Callable[[Line], list[Line]]) -> tuple[list[PdfTable], list[Line]]:
    """Find the tables of a page.

    Args:
        lines: Lines of the page.
        split: Splits a line at the gaps between columns.

    Returns:
        The tables from top to bottom, and the remaining lines in input order.
    """
    candidates = [line for line in lines if _may_be_cells(line)]
    if len(candidates) < MIN_ROWS or sum(map(has_leaders, candidates)) >= MIN_SURE_ROWS:
        return [], list(lines)
    cells_of: dict[int, list[Line]] = {id(line): split(line) for line in candidates}
    n_cut = sum(len(cells) > 1 for cells in cells_of.values())
    if n_cut < MIN_ROWS and _count_figures_beside(candidates, lines) < MIN_FIGURES_BESIDE:
        return [], list(lines)
    rows = _group_into_rows(lines)
    grid = [[cell for line in row for cell in cells_of.get(id(line), [line])] for row in rows]
    tables: list[PdfTable] = []
    table_line_ids: set[int] = set()
    for first, last in _find_row_runs(grid)[:MAX_TABLES]:
        # Cells of the rows above, whose words may name the columns, are not cut yet.
        above = range(max(0, first - MAX_HEADER_ROWS), first)
        headers = [[cell for line in rows[index] for cell in cells_of.get(id(line)) or split(line)] for index in above]
        arranged = _arrange_table(headers, grid[first : last + 1])
        if arranged is None:
            continue
        table, n_above = arranged
        cells = {id(cell) for cell in table.lines}
        for index in range(first - n_above, last + 1):
            for line in rows[index]:
                line_cells = cells_of.get(id(line)) or (headers[index - first] if index < first else [line])
                if id(line) in cells or any(
                    id(cell) in cells for cell in line_cells if line.x0 - 1 <= cell.x0 <= line.x1
                ):
                    table_line_ids.add(id(line))
        tables.append(table)
    return tables, [line for line in lines if id(line) not in table_line_ids]


def _may_be_cells(line: Line) -> bool:
    """Return whether a line may be table cells with figures instead of prose."""
    text = line.text
    if len(text) > 2 * MAX_CELL or (
        len(text) > MAX_CELL / 2 and line.x1 - line.x0 < MIN_ADVANCE * len(text) * line.size
    ):
        return False
    if len(text) <= MAX_CELL and (text[-1].isdigit() or text[-1] in ")%*"):
        return _FIGURE.match(text, max(text.rfind(" "), text.rfind("(") - 1) + 1) is not None
    return _FIGURES_BESIDE.search(text) is not None


def _is_figure(text: str) -> bool:
    """Return whether a cell is a figure, optionally with sign, unit or range."""
    return _FIGURE.match(text) is not None and sum(map(len, _WORD.findall(text))) <= MAX_UNIT


def _count_figures_beside(candidates: Sequence[Line], lines: Sequence[Line]) -> int:
    """Return the number of lines that are only a figure beside another line."""
    heights = Counter(round(line.y) for line in lines)
    figures = [line for line in candidates if len(line.text) <= MAX_UNIT and _is_figure(line.text)]
    return sum(heights[round(line.y)] > 1 for line in figures)


def _is_value(text: str) -> bool:
    """Return whether a cell is a figure and not the number of an equation."""
    return _is_figure(text) and _EQUATION.fullmatch(text) is None


def _group_into_rows(lines: Sequence[Line]) -> list[Row]:
    rows: list[Row] = []
    for line in sorted(lines, key=lambda line: -line.y):
        if rows and rows[-1][0].y - line.y <= SAME_ROW * min(line.size, rows[-1][0].size):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.x0) for row in rows]


def _short(row: Row) -> Row:
    return [cell for cell in row if len(cell.text) <= MAX_CELL]


def _is_tabular(row: Row) -> bool:
    cells = _short(row)
    return len(cells) > 1 and any(_is_figure(cell.text) for cell in cells)


def _is_running_head(row: Row) -> bool:
    """Return whether a row may be a running head or foot: its only figure is a page number."""
    figures = [cell.text for cell in row if _is_figure(cell.text)]
    return len(figures) == 1 and figures[0].isdecimal()


def _find_row_runs(grid: Sequence[Row]) -> list[tuple[int, int]]:
    """Return first and last row of each sequence of rows with figures, with only label rows between them."""
    runs: list[tuple[int, int]] = []
    first = last = -1
    left = right = labels_end = bottom = 0.0
    n_between = 0

    def close() -> None:
        if first < 0:
            return
        tabular = [index for index in range(first, last + 1) if _is_tabular(grid[index])]
        # A running head or foot with its page number is no row.
        while len(tabular) > 1 and tabular[1] - tabular[0] > MAX_ISOLATED and _is_running_head(grid[tabular[0]]):
            tabular.pop(0)
        while len(tabular) > 1 and tabular[-1] - tabular[-2] > MAX_ISOLATED and _is_running_head(grid[tabular[-1]]):
            tabular.pop()
        if len(tabular) >= MIN_ROWS:
            runs.append((tabular[0], tabular[-1]))

    for index, row in enumerate(grid):
        if _is_tabular(row):
            cells = _short(row)
            gap = bottom - row[0].y if first >= 0 else 0.0
            if first < 0 or gap > MAX_ROW_GAP * max(cell.size for cell in cells):
                close()
                first, left, right, labels_end = index, cells[0].x0, cells[-1].x1, cells[-1].x1
            last, n_between, bottom = index, 0, row[0].y
            left, right = min(left, cells[0].x0), max(right, cells[-1].x1)
            labels_end = min([labels_end, *(cell.x0 for cell in cells if _is_figure(cell.text))])
        elif first >= 0:
            is_beside = all(line.x0 > right or line.x1 < left for line in row)
            is_label = all(line.x1 < labels_end or len(line.text) <= MAX_CELL for line in row)
            if not is_beside:
                n_between += 1
                bottom = row[0].y
            if n_between > MAX_LABEL_ROWS or not (is_beside or is_label):
                close()
                first = last = -1
                n_between = 0
    close()
    return runs


def _arrange_table(headers: Sequence[Row], rows: Sequence[Row]) -> tuple[PdfTable, int] | None:
    """Arrange rows in columns.

    Returns:
        The table and the number of its header rows above; None if the rows are not a table.
    """
    tabular = [_short(row) for row in rows if _is_tabular(row)]
    n_bridges = int(MAX_BRIDGE_SHARE * len(tabular))
    figures = _merge_intervals(
        [(cell.x0, cell.x1) for row in tabular for cell in row if _is_figure(cell.text)], n_bridges
    )
    words = [cell for row in tabular for cell in row if not _is_figure(cell.text)]
    word_columns = [(cell.x0, cell.x1) for cell in words if not _overlapped_columns(cell, figures)]
    columns = sorted([*figures, *_merge_intervals(word_columns)])
    if not 2 <= len(columns) <= MAX_COLUMNS:
        return None
    if prose := [column for column in (columns[0], columns[-1]) if _is_prose_column(words, headers, column, figures)]:
        other_cells = [[cell for cell in row if not _overlapped_columns(cell, prose)] for row in rows]
        return _arrange_table(headers, [row for row in other_cells if row])
    labels_end = min((left for left, _ in figures), default=0.0)
    cells_by_row = [[cell for cell in row if len(cell.text) <= MAX_CELL or cell.x1 < labels_end] for row in rows]
    body = [_assign_to_columns(row, columns) for row in cells_by_row]
    body = [row for row in body if any(row)]
    conflicts = sum(any(len(cell) > 1 for cell in row) for row in body)
    n_filled = sum(len(row) for row in tabular)
    if conflicts > MAX_CONFLICTS * len(tabular) or n_filled < MIN_FILLED * len(tabular) * len(columns):
        return None
    n_figures = sum(_is_value(cell.text) for row in tabular for cell in row)
    if n_figures < MIN_FIGURES * n_filled:
        return None
    header = _find_header_rows(headers, columns, figures)
    if len(tabular) < MIN_SURE_ROWS and not (
        header and len(columns) > 2 and _has_worded_names(header, columns, figures)
    ):
        return None
    is_captioned = any(_CAPTION.match(cell.text) for row in headers for cell in row[:1])
    has_own_header = not header and _names_columns(body)
    n_words_first = sum(any(_WORD.search(cell.text) for cell in (*row[0], *row[1])) for row in body)
    is_labelled = min(len(columns), len(tabular)) >= MIN_SURE_ROWS and n_words_first >= MIN_LABELLED * len(tabular)
    is_dense = sum(not _is_regular(values) for values in _column_values(body)) >= MIN_DENSE
    if not (header or has_own_header or is_captioned or is_labelled or is_dense) or _is_axis_or_contents(
        body, bool(header)
    ):
        return None
    return PdfTable([*header, *body], len(header) or int(has_own_header)), len(header)


def _is_prose_column(
    words: Sequence[Line], headers: Sequence[Row], column: Interval, figures: Sequence[Interval]
) -> bool:
    """Return whether words in a column are lines of adjacent text: justified, or continued from above."""
    lines = [cell for cell in words if _overlapped_columns(cell, [column])]
    if sum(len(cell.text) for cell in lines) < MIN_PROSE_LENGTH * len(lines):
        return False
    n_full = sum(cell.x1 > column[1] - JUSTIFIED for cell in lines)
    n_lower = sum(cell.text[0].islower() for cell in lines)
    above = [
        cell
        for row in headers
        for cell in row
        if _overlapped_columns(cell, [column]) and not _overlapped_columns(cell, figures)
    ]
    continues = sum(len(cell.text) >= MIN_PROSE_LENGTH for cell in above) > 1
    return n_full > max(1, MIN_FULL * len(lines)) or (continues and n_lower > MIN_LOWER * len(lines))


def _merge_intervals(intervals: Sequence[Interval], n_bridges: int = 0) -> list[Interval]:
    """Merge overlapping intervals, ignoring ``n_bridges`` intervals that span a gap between others."""
    ends = sorted([(left, 1) for left, _ in intervals] + [(right, -1) for _, right in intervals])
    merged: list[Interval] = []
    depth, begin = 0, 0.0
    for x, change in ends:
        if depth == n_bridges and change > 0:
            begin = x
        depth += change
        if depth == n_bridges and change < 0 and x > begin:
            merged.append((begin, x))
    return merged


def _overlapped_columns(cell: Line, columns: Sequence[Interval]) -> list[int]:
    """Return the indices of columns that a cell overlaps most or mostly covers."""
    shared = [min(cell.x1, right) - max(cell.x0, left) for left, right in columns]
    widest = max(shared)
    covered = [part >= MIN_COVERED * (right - left) for part, (left, right) in zip(shared, columns, strict=True)]
    return [index for index, part in enumerate(shared) if part > 0 and (covered[index] or part == widest)]


def _assign_to_columns(row: Row, columns: Sequence[Interval], spanning: bool = False) -> list[list[Line]]:
    """Assign the cells of a row to columns: to all that they span if ``spanning``, otherwise to the first."""
    arranged: list[list[Line]] = [[] for _ in columns]
    for cell in row:
        overlapped = _overlapped_columns(cell, columns)
        if not overlapped:
            middle = (cell.x0 + cell.x1) / 2
            nearest = min(range(len(columns)), key=lambda index: abs(sum(columns[index]) / 2 - middle))
            overlapped = [nearest] if columns[0][0] - cell.size < middle < columns[-1][1] + cell.size else []
        for index in overlapped if spanning else overlapped[:1]:
            arranged[index].append(cell)
    return arranged


def _find_header_rows(
    headers: Sequence[Row], columns: Sequence[Interval], figures: Sequence[Interval]
) -> list[list[list[Line]]]:
    """Return the rows above a table that give each figure column a distinct name; empty if there are none."""
    header: list[list[list[Line]]] = []
    below: float | None = None
    for row in reversed(headers):
        cells_in_width = [
            cell for cell in row if cell.x1 > columns[0][0] - cell.size and cell.x0 < columns[-1][1] + cell.size
        ]
        if not cells_in_width or (
            below is not None and cells_in_width[0].y - below > MAX_ROW_GAP * cells_in_width[0].size
        ):
            break
        # A single cell is the caption or a line of text, unless it is above the figures only.
        is_alone = len(cells_in_width) == 1 and (not header or cells_in_width[0].x0 < columns[0][1])
        is_text = any(len(cell.text) > MAX_CELL or cell.text[-1] in ".;" for cell in cells_in_width)
        # The first cell may be the number of the line in a draft.
        may_name = (
            cells_in_width[1:] if len(cells_in_width) > 2 and cells_in_width[0].text.isdecimal() else cells_in_width
        )
        has_values = any(
            (_is_figure(cell.text) and not _YEAR.fullmatch(cell.text)) or _FIGURES_BESIDE.search(cell.text)
            for cell in may_name
        )
        if is_alone or is_text or has_values or _CAPTION.match(cells_in_width[0].text):
            break
        arranged = _assign_to_columns(cells_in_width, columns, spanning=True)
        if any(len(cell) > MAX_HEADER_CELLS for cell in arranged):
            break
        header.insert(0, arranged)
        below = cells_in_width[0].y
    named = [index for index, column in enumerate(columns) if column in figures]
    names = {" ".join(cell.text for row in header for cell in row[index]) for index in named}
    return header if len(names) == len(named) and "" not in names else []


def _has_worded_names(
    header: Sequence[Sequence[Sequence[Line]]], columns: Sequence[Interval], figures: Sequence[Interval]
) -> bool:
    """Return whether a header names each figure column with a word."""
    named = [index for index, column in enumerate(columns) if column in figures]
    return all(any(_WORD.search(cell.text) for row in header for cell in row[index]) for index in named)


def _names_columns(body: Sequence[Sequence[Sequence[Line]]]) -> bool:
    """Return whether the first row is a header: years over other figures, or bold over plain type."""
    first, *other_rows = ([cell for cells in row for cell in cells] for row in body)
    if len(first) < 2 or not other_rows:
        return False
    if all(cell.bold for cell in first) and not any(cell.bold for row in other_rows for cell in row[1:]):
        return True
    figures = [cell.text for cell in first if _is_figure(cell.text)]
    is_years = len(figures) > 1 and all(map(_YEAR.fullmatch, figures)) and figures == sorted(figures)
    return is_years and not all(_YEAR.fullmatch(cell.text) for row in other_rows for cell in row[1:])


def _is_axis_or_contents(body: Sequence[Sequence[Sequence[Line]]], has_header: bool) -> bool:
    """Return whether the columns are axes of a figure or a table of contents.

    Axes change by equal steps, or are equal side by side. In contents, the only column of figures rises.
    """
    values = _column_values(body)
    if values and all(_is_regular(column) for column in values):
        return True
    are_equal = [len(set(texts)) == 1 for texts in map(_plain_figures, body) if len(texts) > 1]
    if sum(are_equal) >= MIN_EQUAL_SHARE * len(are_equal) > 0:
        return True
    rises = len(values) == 1 and all(a <= b for a, b in pairwise(values[0]))
    return rises and not has_header and all(value.is_integer() for value in values[0])


def _column_values(body: Sequence[Sequence[Sequence[Line]]]) -> list[list[float]]:
    """Return the figures of each column that has at least :data:`MIN_SURE_ROWS`."""
    columns = [[cell[0].text for cell in column if cell] for column in zip(*body, strict=True)]
    figures = [[_parse_number(text) for text in column if _is_figure(text)] for column in columns]
    return [column for column in figures if len(column) >= MIN_SURE_ROWS]


def _plain_figures(row: Sequence[Sequence[Line]]) -> list[str]:
    return [cell[0].text for cell in row if cell and _VALUE.fullmatch(cell[0].text)]


def _parse_number(text: str) -> float:
    match = _VALUE.search(text)
    return float(match.group().replace(",", "").replace("−", "-").replace("–", "-")) if match else 0.0


def _is_regular(values: Sequence[float]) -> bool:
    """Return whether numbers change by equal steps or factors, as on an axis."""
    steps = {round(b - a, 6) for a, b in pairwise(values)}
    factors = {round(b / a, 6) for a, b in pairwise(values) if a}
    return len(steps) == 1 or (len(factors) == 1 and 0 not in values)
