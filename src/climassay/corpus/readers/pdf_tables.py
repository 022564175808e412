"""Find the tables of PDF pages by the positions of their cells.

A table is a sequence of rows with numbers whose cells are aligned in columns. Axes of figures are excluded, because
their numbers change by equal steps in every column. Tables of contents are excluded, because their only column of
numbers increases.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from climassay.corpus.readers.pdf_lines import Line, PdfTable, has_leaders

MAX_CELL_LENGTH = 60
"""Maximum length of a cell in characters; longer text is running text in another column of the page."""
MIN_ROWS = 2
MIN_NUMBERS_BESIDE = 3
"""If no line has gaps, a page has a table only if at least this many lines have a number beside another line."""
MIN_SURE_ROWS = 3
"""Minimum number of rows of a table whose columns have no names."""
MAX_COLUMNS = 60
MAX_TABLES = 30
"""Maximum number of tables per page."""
MAX_ROW_GAP = 4.5
"""Maximum distance between two rows of a table, as a multiple of the type size."""
MAX_LABEL_ROWS = 4
"""Maximum number of consecutive rows without numbers, such as lines of a long label."""
MAX_ROWS_TO_NEXT = 2
"""If a row that may be a running head or foot is at most this many rows from a row with numbers, both belong to one
table."""
MAX_HEADER_ROWS = 4
MAX_HEADER_CELLS = 2
"""Maximum number of header cells over one column; a larger number indicates labels of an axis."""
MAX_BRIDGE_SHARE = 0.1
"""Maximum fraction of rows in which the numbers of two columns are too close to be separated."""
MAX_UNIT_LENGTH = 15
"""Maximum number of letters after a number."""
MIN_NUMERIC_SHARE = 0.3
"""Minimum fraction of cells in a table's rows that are numbers."""
MAX_CONFLICT_SHARE = 0.25
"""Maximum fraction of rows with two cells in one column."""
MIN_LOWER_CASE_SHARE = 0.3
"""Text continued from above counts as running text if at least this fraction of its lines begins in lower case."""
MIN_JUSTIFIED_SHARE = 0.5
"""Text counts as justified if at least this fraction of its lines reaches the right edge."""
MAX_EDGE_DISTANCE = 2.0
"""Maximum distance of a justified line from the right edge, in points."""
MIN_PROSE_LENGTH = 25
"""Minimum mean length of lines of running text, in characters."""
MIN_FILLED_SHARE = 0.5
"""Minimum fraction of a table's cells that are not empty."""
MIN_COVERED_SHARE = 0.5
"""Minimum fraction of a column's width that a spanning cell must cover."""
MIN_EQUAL_SHARE = 0.5
"""Columns count as panels of a figure if the numbers are equal in at least this fraction of rows."""
MIN_DENSE_COLUMNS = 4
"""Minimum number of numeric columns of a table without header and row labels."""
MIN_LABELLED_SHARE = 0.5
"""Minimum fraction of the rows of a table without a header that must begin with words."""
MAX_BASELINE_DISTANCE = 0.4
"""Maximum difference between baselines within a row, as a fraction of the type size."""
_NUMBER = re.compile(r"[(\[<>≤≥~≈±+\-−–$€£]*\s?\d")
_ADJACENT_NUMBERS = re.compile(r"(?:^|\s)[(\[<>≤≥~≈±+\-−–$€£]*\d\S*\s+[(\[<>≤≥~≈±+\-−–$€£]*\d")
MIN_WIDTH_PER_CHARACTER = 0.5
"""Minimum width per character of a line with gaps, as a multiple of the type size; running text is narrower."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d(?:\s?[-–/]\s?\d{2,4})?\W{0,2}\d?")
_EQUATION = re.compile(r"\(\d{1,3}[a-z]?\)")
_VALUE = re.compile(r"[-−–]?\d+(?:,\d{3})*(?:\.\d+)?")
_CAPTION = re.compile(r"(?:Table|TABLE|Tab\.|Tabelle|Tableau|Tabla)\s")

Row = list[Line]
"""Cells of a row from left to right."""
Interval = tuple[float, float]


def find_tables(lines: Sequence[Line], split: Callable[[Line], list[Line]]) -> tuple[list[PdfTable], list[Line]]:
    """Find the tables of a page; ``split`` splits a line at the gaps between columns.

    Returns:
        Tables from top to bottom, and the lines outside tables in input order.
    """
    candidates = [line for line in lines if _may_be_cells(line)]
    if len(candidates) < MIN_ROWS or sum(map(has_leaders, candidates)) >= MIN_SURE_ROWS:
        return [], list(lines)
    cells_by_line: dict[int, list[Line]] = {id(line): split(line) for line in candidates}
    n_split_lines = sum(len(cell_ids) > 1 for cell_ids in cells_by_line.values())
    if n_split_lines < MIN_ROWS and _count_numbers_beside(candidates, lines) < MIN_NUMBERS_BESIDE:
        return [], list(lines)
    rows = _group_into_rows(lines)
    grid = [[cell for line in row for cell in cells_by_line.get(id(line), [line])] for row in rows]
    tables: list[PdfTable] = []
    table_line_ids: set[int] = set()
    for first_row, last_row in _find_row_runs(grid)[:MAX_TABLES]:
        # Cells of the rows above, whose words may name the columns, are not cut yet.
        header_indices = range(max(0, first_row - MAX_HEADER_ROWS), first_row)
        headers = [
            [cell for line in rows[index] for cell in cells_by_line.get(id(line)) or split(line)]
            for index in header_indices
        ]
        result = _arrange_table(headers, grid[first_row : last_row + 1])
        if result is None:
            continue
        table, n_rows_above = result
        cell_ids = {id(cell) for cell in table.lines}
        for index in range(first_row - n_rows_above, last_row + 1):
            for line in rows[index]:
                line_cells = cells_by_line.get(id(line)) or (
                    headers[index - first_row] if index < first_row else [line]
                )
                if id(line) in cell_ids or any(
                    id(cell) in cell_ids for cell in line_cells if line.x0 - 1 <= cell.x0 <= line.x1
                ):
                    table_line_ids.add(id(line))
        tables.append(table)
    return tables, [line for line in lines if id(line) not in table_line_ids]


def _may_be_cells(line: Line) -> bool:
    """Return whether a line may consist of table cells with numbers instead of running text."""
    text = line.text
    if len(text) > 2 * MAX_CELL_LENGTH or (
        len(text) > MAX_CELL_LENGTH / 2 and line.x1 - line.x0 < MIN_WIDTH_PER_CHARACTER * len(text) * line.size
    ):
        return False
    if len(text) <= MAX_CELL_LENGTH and (text[-1].isdigit() or text[-1] in ")%*"):
        return _NUMBER.match(text, max(text.rfind(" "), text.rfind("(") - 1) + 1) is not None
    return _ADJACENT_NUMBERS.search(text) is not None


def _is_number(text: str) -> bool:
    """Return whether a cell is a number or a range of numbers; signs and units are allowed."""
    return _NUMBER.match(text) is not None and sum(map(len, _WORD.findall(text))) <= MAX_UNIT_LENGTH


def _count_numbers_beside(candidates: Sequence[Line], lines: Sequence[Line]) -> int:
    """Return the number of lines that consist of a number and have another line beside them."""
    n_lines_by_height = Counter(round(line.y) for line in lines)
    numeric_lines = [line for line in candidates if len(line.text) <= MAX_UNIT_LENGTH and _is_number(line.text)]
    return sum(n_lines_by_height[round(line.y)] > 1 for line in numeric_lines)


def _is_value(text: str) -> bool:
    """Return whether a cell is a number other than the number of an equation."""
    return _is_number(text) and _EQUATION.fullmatch(text) is None


def _group_into_rows(lines: Sequence[Line]) -> list[Row]:
    rows: list[Row] = []
    for line in sorted(lines, key=lambda line: -line.y):
        if rows and rows[-1][0].y - line.y <= MAX_BASELINE_DISTANCE * min(line.size, rows[-1][0].size):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.x0) for row in rows]


def _select_short_cells(row: Row) -> Row:
    return [cell for cell in row if len(cell.text) <= MAX_CELL_LENGTH]


def _is_tabular(row: Row) -> bool:
    cells = _select_short_cells(row)
    return len(cells) > 1 and any(_is_number(cell.text) for cell in cells)


def _is_running_head(row: Row) -> bool:
    """Return whether a row may be a running head or foot, whose only number is the page number."""
    numbers = [cell.text for cell in row if _is_number(cell.text)]
    return len(numbers) == 1 and numbers[0].isdecimal()


def _find_row_runs(grid: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the first and last row of each sequence of rows with numbers; only label rows may interrupt it."""
    runs: list[tuple[int, int]] = []
    first_row = last_row = -1
    left = right = labels_end = bottom = 0.0
    n_rows_between = 0

    def end_run() -> None:
        if first_row < 0:
            return
        row_indices = [index for index in range(first_row, last_row + 1) if _is_tabular(grid[index])]
        # A running head or foot with its page number is no row.
        while (
            len(row_indices) > 1
            and row_indices[1] - row_indices[0] > MAX_ROWS_TO_NEXT
            and _is_running_head(grid[row_indices[0]])
        ):
            row_indices.pop(0)
        while (
            len(row_indices) > 1
            and row_indices[-1] - row_indices[-2] > MAX_ROWS_TO_NEXT
            and _is_running_head(grid[row_indices[-1]])
        ):
            row_indices.pop()
        if len(row_indices) >= MIN_ROWS:
            runs.append((row_indices[0], row_indices[-1]))

    for index, row in enumerate(grid):
        if _is_tabular(row):
            cells = _select_short_cells(row)
            gap = bottom - row[0].y if first_row >= 0 else 0.0
            if first_row < 0 or gap > MAX_ROW_GAP * max(cell.size for cell in cells):
                end_run()
                first_row, left, right, labels_end = index, cells[0].x0, cells[-1].x1, cells[-1].x1
            last_row, n_rows_between, bottom = index, 0, row[0].y
            left, right = min(left, cells[0].x0), max(right, cells[-1].x1)
            labels_end = min([labels_end, *(cell.x0 for cell in cells if _is_number(cell.text))])
        elif first_row >= 0:
            is_beside = all(line.x0 > right or line.x1 < left for line in row)
            is_label = all(line.x1 < labels_end or len(line.text) <= MAX_CELL_LENGTH for line in row)
            if not is_beside:
                n_rows_between += 1
                bottom = row[0].y
            if n_rows_between > MAX_LABEL_ROWS or not (is_beside or is_label):
                end_run()
                first_row = last_row = -1
                n_rows_between = 0
    end_run()
    return runs


def _arrange_table(headers: Sequence[Row], rows: Sequence[Row]) -> tuple[PdfTable, int] | None:
    """Return rows as a table, and the number of header rows above them; None if the rows are not a table."""
    numeric_rows = [_select_short_cells(row) for row in rows if _is_tabular(row)]
    n_bridges = int(MAX_BRIDGE_SHARE * len(numeric_rows))
    numeric_columns = _merge_intervals(
        [(cell.x0, cell.x1) for row in numeric_rows for cell in row if _is_number(cell.text)], n_bridges
    )
    words = [cell for row in numeric_rows for cell in row if not _is_number(cell.text)]
    word_columns = [(cell.x0, cell.x1) for cell in words if not _find_overlapped_columns(cell, numeric_columns)]
    columns = sorted([*numeric_columns, *_merge_intervals(word_columns)])
    if not 2 <= len(columns) <= MAX_COLUMNS:
        return None
    if prose_columns := [
        column for column in (columns[0], columns[-1]) if _is_prose_column(words, headers, column, numeric_columns)
    ]:
        other_cells = [[cell for cell in row if not _find_overlapped_columns(cell, prose_columns)] for row in rows]
        return _arrange_table(headers, [row for row in other_cells if row])
    labels_end = min((left for left, _ in numeric_columns), default=0.0)
    cells_by_row = [[cell for cell in row if len(cell.text) <= MAX_CELL_LENGTH or cell.x1 < labels_end] for row in rows]
    body = [_assign_to_columns(row, columns) for row in cells_by_row]
    body = [row for row in body if any(row)]
    n_conflicts = sum(any(len(cell) > 1 for cell in row) for row in body)
    n_filled_cells = sum(len(row) for row in numeric_rows)
    if n_conflicts > MAX_CONFLICT_SHARE * len(numeric_rows) or n_filled_cells < MIN_FILLED_SHARE * len(
        numeric_rows
    ) * len(columns):
        return None
    n_figures = sum(_is_value(cell.text) for row in numeric_rows for cell in row)
    if n_figures < MIN_NUMERIC_SHARE * n_filled_cells:
        return None
    header = _find_header_rows(headers, columns, numeric_columns)
    if len(numeric_rows) < MIN_SURE_ROWS and not (
        header and len(columns) > 2 and _has_worded_names(header, columns, numeric_columns)
    ):
        return None
    is_captioned = any(_CAPTION.match(cell.text) for row in headers for cell in row[:1])
    has_own_header = not header and _names_columns(body)
    n_words_first = sum(any(_WORD.search(cell.text) for cell in (*row[0], *row[1])) for row in body)
    is_labelled = min(len(columns), len(numeric_rows)) >= MIN_SURE_ROWS and n_words_first >= MIN_LABELLED_SHARE * len(
        numeric_rows
    )
    is_dense = sum(not _is_regular(values) for values in _list_column_values(body)) >= MIN_DENSE_COLUMNS
    if not (header or has_own_header or is_captioned or is_labelled or is_dense) or _is_axis_or_contents(
        body, bool(header)
    ):
        return None
    return PdfTable([*header, *body], len(header) or int(has_own_header)), len(header)


def _is_prose_column(
    words: Sequence[Line], headers: Sequence[Row], column: Interval, numeric_columns: Sequence[Interval]
) -> bool:
    """Return whether words in a column are lines of adjacent running text: justified, or continued from above."""
    lines = [cell for cell in words if _find_overlapped_columns(cell, [column])]
    if sum(len(cell.text) for cell in lines) < MIN_PROSE_LENGTH * len(lines):
        return False
    n_full = sum(cell.x1 > column[1] - MAX_EDGE_DISTANCE for cell in lines)
    n_lower = sum(cell.text[0].islower() for cell in lines)
    cells_above = [
        cell
        for row in headers
        for cell in row
        if _find_overlapped_columns(cell, [column]) and not _find_overlapped_columns(cell, numeric_columns)
    ]
    is_continued = sum(len(cell.text) >= MIN_PROSE_LENGTH for cell in cells_above) > 1
    return n_full > max(1, MIN_JUSTIFIED_SHARE * len(lines)) or (
        is_continued and n_lower > MIN_LOWER_CASE_SHARE * len(lines)
    )


def _merge_intervals(intervals: Sequence[Interval], n_bridges: int = 0) -> list[Interval]:
    """Merge overlapping intervals; up to ``n_bridges`` intervals that span a gap between others are ignored."""
    ends = sorted([(left, 1) for left, _ in intervals] + [(right, -1) for _, right in intervals])
    merged_intervals: list[Interval] = []
    depth, start = 0, 0.0
    for x, change in ends:
        if depth == n_bridges and change > 0:
            start = x
        depth += change
        if depth == n_bridges and change < 0 and x > start:
            merged_intervals.append((start, x))
    return merged_intervals


def _find_overlapped_columns(cell: Line, columns: Sequence[Interval]) -> list[int]:
    """Return the indices of the columns that a cell spans: the most overlapped one, and those that it mostly covers."""
    overlaps = [min(cell.x1, right) - max(cell.x0, left) for left, right in columns]
    max_overlap = max(overlaps)
    is_covered = [
        overlap >= MIN_COVERED_SHARE * (right - left) for overlap, (left, right) in zip(overlaps, columns, strict=True)
    ]
    return [
        index for index, overlap in enumerate(overlaps) if overlap > 0 and (is_covered[index] or overlap == max_overlap)
    ]


def _assign_to_columns(row: Row, columns: Sequence[Interval], may_span: bool = False) -> list[list[Line]]:
    """Assign the cells of a row to columns.

    A cell that overlaps several columns is assigned to all of them if ``may_span`` is True, otherwise to the first.
    """
    cells_by_column: list[list[Line]] = [[] for _ in columns]
    for cell in row:
        column_indices = _find_overlapped_columns(cell, columns)
        if not column_indices:
            middle = (cell.x0 + cell.x1) / 2
            nearest_index = min(range(len(columns)), key=lambda index: abs(sum(columns[index]) / 2 - middle))
            column_indices = [nearest_index] if columns[0][0] - cell.size < middle < columns[-1][1] + cell.size else []
        for index in column_indices if may_span else column_indices[:1]:
            cells_by_column[index].append(cell)
    return cells_by_column


def _find_header_rows(
    headers: Sequence[Row], columns: Sequence[Interval], numeric_columns: Sequence[Interval]
) -> list[list[list[Line]]]:
    """Return the rows above a table that give each numeric column a distinct name; empty if there are none."""
    header: list[list[list[Line]]] = []
    y_below: float | None = None
    for row in reversed(headers):
        cells_in_width = [
            cell for cell in row if cell.x1 > columns[0][0] - cell.size and cell.x0 < columns[-1][1] + cell.size
        ]
        if not cells_in_width or (
            y_below is not None and cells_in_width[0].y - y_below > MAX_ROW_GAP * cells_in_width[0].size
        ):
            break
        # A single cell is the caption or a line of text, unless it is above the figures only.
        is_single = len(cells_in_width) == 1 and (not header or cells_in_width[0].x0 < columns[0][1])
        is_text = any(len(cell.text) > MAX_CELL_LENGTH or cell.text[-1] in ".;" for cell in cells_in_width)
        # The first cell may be the number of the line in a draft.
        name_cells = (
            cells_in_width[1:] if len(cells_in_width) > 2 and cells_in_width[0].text.isdecimal() else cells_in_width
        )
        has_values = any(
            (_is_number(cell.text) and not _YEAR.fullmatch(cell.text)) or _ADJACENT_NUMBERS.search(cell.text)
            for cell in name_cells
        )
        if is_single or is_text or has_values or _CAPTION.match(cells_in_width[0].text):
            break
        cells_by_column = _assign_to_columns(cells_in_width, columns, may_span=True)
        if any(len(cell) > MAX_HEADER_CELLS for cell in cells_by_column):
            break
        header.insert(0, cells_by_column)
        y_below = cells_in_width[0].y
    numeric_indices = [index for index, column in enumerate(columns) if column in numeric_columns]
    names = {" ".join(cell.text for row in header for cell in row[index]) for index in numeric_indices}
    return header if len(names) == len(numeric_indices) and "" not in names else []


def _has_worded_names(
    header: Sequence[Sequence[Sequence[Line]]], columns: Sequence[Interval], numeric_columns: Sequence[Interval]
) -> bool:
    numeric_indices = [index for index, column in enumerate(columns) if column in numeric_columns]
    return all(any(_WORD.search(cell.text) for row in header for cell in row[index]) for index in numeric_indices)


def _names_columns(body: Sequence[Sequence[Sequence[Line]]]) -> bool:
    """Return whether the first row is a header: years above other numbers, or bold above plain type."""
    first_row, *other_rows = ([cell for cells in row for cell in cells] for row in body)
    if len(first_row) < 2 or not other_rows:
        return False
    if all(cell.bold for cell in first_row) and not any(cell.bold for row in other_rows for cell in row[1:]):
        return True
    numbers = [cell.text for cell in first_row if _is_number(cell.text)]
    are_years = len(numbers) > 1 and all(map(_YEAR.fullmatch, numbers)) and numbers == sorted(numbers)
    return are_years and not all(_YEAR.fullmatch(cell.text) for row in other_rows for cell in row[1:])


def _is_axis_or_contents(body: Sequence[Sequence[Sequence[Line]]], has_header: bool) -> bool:
    """Return whether the columns are axes of a figure, or a table of contents.

    The numbers on axes change by equal steps, or are equal within each row. In a table of contents, the numbers of the
    only numeric column increase.
    """
    values = _list_column_values(body)
    if values and all(_is_regular(column) for column in values):
        return True
    are_equal = [len(set(texts)) == 1 for texts in map(_select_plain_numbers, body) if len(texts) > 1]
    if sum(are_equal) >= MIN_EQUAL_SHARE * len(are_equal) > 0:
        return True
    is_increasing = len(values) == 1 and all(first <= second for first, second in pairwise(values[0]))
    return is_increasing and not has_header and all(value.is_integer() for value in values[0])


def _list_column_values(body: Sequence[Sequence[Sequence[Line]]]) -> list[list[float]]:
    """Return the numbers of each column that has at least :data:`MIN_SURE_ROWS` of them."""
    columns = [[cell[0].text for cell in column if cell] for column in zip(*body, strict=True)]
    numbers_by_column = [[_parse_number(text) for text in column if _is_number(text)] for column in columns]
    return [column for column in numbers_by_column if len(column) >= MIN_SURE_ROWS]


def _select_plain_numbers(row: Sequence[Sequence[Line]]) -> list[str]:
    return [cell[0].text for cell in row if cell and _VALUE.fullmatch(cell[0].text)]


def _parse_number(text: str) -> float:
    match = _VALUE.search(text)
    return float(match.group().replace(",", "").replace("−", "-").replace("–", "-")) if match else 0.0


def _is_regular(values: Sequence[float]) -> bool:
    """Return whether numbers change by equal steps or factors, as on an axis."""
    steps = {round(second - first, 6) for first, second in pairwise(values)}
    factors = {round(second / first, 6) for first, second in pairwise(values) if first}
    return len(steps) == 1 or (len(factors) == 1 and 0 not in values)
