"""Remove line numbers from the pages of drafts and preprints.

Line numbers are integers in a column beside running text. They increase from top to bottom by equal steps, and the
column contains no other text. List numbers, first columns of tables, equation numbers and page numbers fail at least
one of these conditions.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from climassay.corpus.readers.pdf_lines import MAX_EDGE_DIGITS, EdgeNumber, Line, OmittedCounts, PdfPage, PdfTable

MAX_EDGE_DISTANCE = 3.0
"""Maximum horizontal distance between the edges of two numbers in one column, in points."""
MAX_STEP = 10
MAX_COLUMNS_PER_PAGE = 20
"""Maximum number of number columns that are checked per page."""
MAX_MISSING_NUMBERS = 3
"""Maximum number of consecutive numbers missing from a column, for example beside a figure."""
MIN_NUMBERS = {1: 5}
"""Minimum count of numbers in a column, by the step between them; :data:`MIN_SPARSE_NUMBERS` for other steps."""
MIN_SPARSE_NUMBERS = 3
MIN_TEXT_LENGTH = 25
"""Minimum length of a line of running text, in characters."""
MIN_PROSE_SHARE = 0.25
"""Minimum fraction of the lines beside the numbers that continue a sentence."""
MIN_COVERAGE = 0.4
"""Minimum fraction of the pages' lines that have a number beside them."""
MAX_CROSSED_SHARE = 0.1
"""Maximum fraction of the lines beside the numbers that extend into the column of numbers."""
MAX_CROSSED_PAGE_SHARE = 0.2
"""Maximum fraction of a page's lines that extend into the column of numbers, as a title over two columns does."""
MAX_BASELINE_DISTANCE = 0.5
"""Maximum difference between the baselines of a number and the text beside it, as a fraction of the type size."""


@dataclass(frozen=True, slots=True)
class _Number:
    value: int
    x0: float
    x1: float
    line: Line
    edge: EdgeNumber | None
    """Position of the number in its line; None if the line contains only the number."""

    @property
    def y(self) -> float:
        return self.line.y


@dataclass(frozen=True, slots=True)
class _Chain:
    """Column of numbers that increase from top to bottom."""

    step: int
    is_right_aligned: bool
    numbers: list[_Number]

    @property
    def edge(self) -> float:
        """Horizontal position of the edge that the numbers share."""
        return self.numbers[0].x1 if self.is_right_aligned else self.numbers[0].x0


def drop_line_numbers(pages: Sequence[PdfPage], omitted_counts: OmittedCounts) -> None:
    """Remove line numbers from the pages, in place, and count them by page."""
    numbers = [_find_edge_numbers(page) for page in pages]
    page_chains = [
        (page, chain) for page, page_numbers in zip(pages, numbers, strict=True) for chain in _find_chains(page_numbers)
    ]
    page_chains = [
        (page, chain)
        for page, chain in page_chains
        if len(chain.numbers) >= MIN_NUMBERS.get(chain.step, MIN_SPARSE_NUMBERS)
        and not _is_crossed(chain, page)
        and not _is_crossed(chain, page, page.height)
    ]
    if not page_chains or not _are_beside_prose(page_chains):
        return
    column_keys = _list_columns(chain for _, chain in page_chains)
    for page, page_numbers in zip(pages, numbers, strict=True):
        numbers_by_line: dict[int, _Number] = {}
        for is_right_aligned, edge, step, first_value in column_keys:
            aligned_numbers = [
                number
                for number in page_numbers
                if abs(_get_edge(number, is_right_aligned) - edge) <= MAX_EDGE_DISTANCE
            ]
            chain = _Chain(step, is_right_aligned, _find_longest_chain(aligned_numbers, step))
            is_sure = len(chain.numbers) > 1 or (chain.numbers and chain.numbers[0].value == first_value)
            if is_sure and not _is_crossed(chain, page):
                numbers_by_line.update((id(number.line), number) for number in chain.numbers)
        for number in numbers_by_line.values():
            _remove_number(number)
        page.lines = [
            line for line in page.lines if id(line) not in numbers_by_line or numbers_by_line[id(line)].edge is not None
        ]
        for table in page.tables if numbers_by_line else ():
            _remove_from_table(table, numbers_by_line)
            if len(table.cells[0]) < 2:  # lines of text, which only their numbers made a table
                page.lines += table.lines
                table.cells = []
        page.tables = [table for table in page.tables if table.cells]
        if numbers_by_line:
            omitted_counts["line numbers", page.number] += len(numbers_by_line)


def _get_edge(number: _Number, right: bool) -> float:
    return number.x1 if right else number.x0


def _find_edge_numbers(page: PdfPage) -> list[_Number]:
    """Return the numbers at the left or right end of a page's lines, from top to bottom.

    Short lines that consist of a number only are included.
    """
    numbers: list[_Number] = []
    cells = [cell for table in page.tables for row in table.cells for cell in (*row[0], *row[-1])]
    for line in [*page.lines, *cells] if cells else page.lines:
        if len(line.text) <= MAX_EDGE_DIGITS:
            if line.text.isdecimal():
                numbers.append(_Number(int(line.text), line.x0, line.x1, line, None))
            continue
        if line.leading_number is None and line.trailing_number is None:
            continue
        numbers += [
            _Number(int(edge.digits), edge.x0, edge.x1, line, edge)
            for edge in (line.leading_number, line.trailing_number)
            if edge is not None
        ]
    return sorted(numbers, key=lambda number: -number.y)


def _find_chains(numbers: Sequence[_Number]) -> list[_Chain]:
    """Return the longest columns of numbers that increase from top to bottom by equal steps."""
    chains: list[_Chain] = []
    for is_right_aligned in (True, False):
        columns: dict[int, list[_Number]] = defaultdict(list)
        for number in numbers:
            columns[round(_get_edge(number, is_right_aligned) / MAX_EDGE_DISTANCE)].append(number)
        for position, column in columns.items():
            neighbours = columns.get(position + 1, [])
            aligned_numbers = sorted([*column, *neighbours], key=lambda number: -number.y) if neighbours else column
            aligned_numbers = [
                number
                for number in aligned_numbers
                if abs(_get_edge(number, is_right_aligned) - _get_edge(column[0], is_right_aligned))
                <= MAX_EDGE_DISTANCE
            ]
            if len(aligned_numbers) < MIN_SPARSE_NUMBERS:
                continue
            steps = Counter(
                lower_number.value - upper_number.value for upper_number, lower_number in pairwise(aligned_numbers)
            )
            step_counts = [(count, step) for step, count in steps.items() if 0 < step <= MAX_STEP]
            if step_counts:
                step = max(step_counts)[1]
                chains.append(_Chain(step, is_right_aligned, _find_longest_chain(aligned_numbers, step)))
    return sorted(chains, key=lambda chain: -len(chain.numbers))[:MAX_COLUMNS_PER_PAGE]


def _find_longest_chain(numbers: Sequence[_Number], step: int) -> list[_Number]:
    """Return the longest sequence of numbers, from top to bottom, that increase by ``step``.

    Where numbers are missing, the increase may be a multiple of ``step``.
    """
    lengths: dict[int, tuple[int, int]] = {}
    previous_indices: list[int | None] = []
    for number_index, number in enumerate(numbers):
        candidates = [
            lengths[value] for n in range(1, MAX_MISSING_NUMBERS + 2) if (value := number.value - n * step) in lengths
        ]
        length, last_index = max(candidates, default=(0, -1))
        previous_indices.append(last_index if length else None)
        if length + 1 > lengths.get(number.value, (0, -1))[0]:
            lengths[number.value] = (length + 1, number_index)
    if not lengths:
        return []
    chain: list[_Number] = []
    index: int | None = max(lengths.values())[1]
    while index is not None:
        chain.append(numbers[index])
        index = previous_indices[index]
    return chain[::-1]


def _is_crossed(chain: _Chain, page: PdfPage, margin: float = 1.0) -> bool:
    """Return whether text extends into the column of numbers, up to ``margin`` points above and below the numbers."""
    left, right = min(number.x0 for number in chain.numbers), max(number.x1 for number in chain.numbers)
    top, bottom = chain.numbers[0].y, chain.numbers[-1].y
    numbers_by_line = {id(number.line): number for number in chain.numbers}
    n_crossing_lines = n_lines = 0
    for line in page.lines:
        if not bottom - margin <= line.y <= top + margin or (margin > 1 and len(line.text) < MIN_TEXT_LENGTH):
            continue
        n_lines += 1
        number = numbers_by_line.get(id(line))
        x0, x1 = (line.x0, line.x1) if number is None else _find_text_edges(number)
        n_crossing_lines += x0 < right and x1 > left
    return n_crossing_lines > (MAX_CROSSED_SHARE if margin <= 1 else MAX_CROSSED_PAGE_SHARE) * n_lines


def _find_text_edges(number: _Number) -> tuple[float, float]:
    """Return the left and right edges of a line without its number; zeros if the line is only the number."""
    line, edge = number.line, number.edge
    if edge is None:
        return 0.0, 0.0
    return (edge.text_edge, line.x1) if edge is line.leading_number else (line.x0, edge.text_edge)


def _are_beside_prose(page_chains: Iterable[tuple[PdfPage, _Chain]]) -> bool:
    """Return whether most lines of the pages have a number beside them, and enough of them continue sentences."""
    n_numbered_lines = n_prose = n_text_lines = n_lines = 0
    pages: dict[int, tuple[PdfPage, int, set[int]]] = {}
    for page, chain in page_chains:
        rows: dict[int, list[Line]] = defaultdict(list)
        for line in page.lines:
            if len(line.text) >= MIN_TEXT_LENGTH:
                rows[round(line.y / 4)].append(line)
        lines_with_number: set[int] = set()
        for number in chain.numbers:
            text_line = number.line if number.edge else _find_nearest_line(number, rows)
            if text_line is None or len(text_line.text) < MIN_TEXT_LENGTH:
                continue
            text = text_line.text.removeprefix(number.edge.digits).lstrip() if number.edge else text_line.text
            lines_with_number.add(id(text_line))
            n_text_lines += 1
            n_prose += _continues_sentence(text)
        _, n_steps, previous_lines = pages.get(id(page), (page, 1, set()))
        pages[id(page)] = (page, max(n_steps, chain.step), previous_lines | lines_with_number)
    for page, step, lines_with_number in pages.values():
        n_numbered_lines += step * len(lines_with_number)
        n_lines += sum(1 for line in page.lines if len(line.text) >= MIN_TEXT_LENGTH)
    return n_prose >= MIN_PROSE_SHARE * max(1, n_text_lines) and n_numbered_lines >= MIN_COVERAGE * n_lines


def _find_nearest_line(number: _Number, rows: dict[int, list[Line]]) -> Line | None:
    row = round(number.y / 4)
    lines = [line for nearby_row in (row - 1, row, row + 1) for line in rows.get(nearby_row, ())]
    lines_on_baseline = [line for line in lines if abs(line.y - number.y) <= MAX_BASELINE_DISTANCE * line.size]
    return min(
        lines_on_baseline, key=lambda line: min(abs(line.x0 - number.x1), abs(number.x0 - line.x1)), default=None
    )


def _continues_sentence(text: str) -> bool:
    """Return whether a line is running text that begins in the middle of a sentence."""
    tokens = text.split()
    n_numbers = sum(token[0].isdigit() for token in tokens)
    return text[:1].isalpha() and not text[0].isupper() and n_numbers <= MIN_PROSE_SHARE * len(tokens)


def _list_columns(chains: Iterable[_Chain]) -> set[tuple[bool, float, int, int]]:
    """Return, for each column of numbers, the side and position of their alignment, the step and the first number."""
    columns: dict[tuple[bool, int], tuple[bool, float, int, int]] = {}
    for chain in chains:
        key = chain.is_right_aligned, round(chain.edge / MAX_EDGE_DISTANCE)
        first_value = min(chain.numbers[0].value, columns[key][3]) if key in columns else chain.numbers[0].value
        columns[key] = (chain.is_right_aligned, chain.edge, chain.step, first_value)
    return set(columns.values())


def _remove_from_table(table: PdfTable, numbers_by_line: Mapping[int, _Number]) -> None:
    """Remove line numbers from a table, and its columns that become empty."""
    n_lines_before = len(table.lines)
    rows = [[[line for line in cell if id(line) not in numbers_by_line] for cell in row] for row in table.cells]
    filled_indices = [index for index in range(len(rows[0])) if any(row[index] for row in rows)]
    table.cells = [[row[index] for index in filled_indices] for row in rows]
    if len(table.lines) < n_lines_before and not table.n_header_rows:
        table.n_header_rows = None  # the header's own number hid that it has words only


def _remove_number(number: _Number) -> None:
    line, edge = number.line, number.edge
    if edge is None:
        return
    line.x0, line.x1 = _find_text_edges(number)
    line.bold, line.starts_bold = edge.bold, edge.starts_bold
    if edge is line.leading_number:
        line.text, line.note_number = line.text.removeprefix(edge.digits).lstrip(), ""
    else:
        line.text = line.text.removesuffix(edge.digits).rstrip()
