"""Remove running heads, feet and tables of contents from PDF pages, and sort the lines into reading order."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from climassay.corpus.readers.cleaning import mask_digits
from climassay.corpus.readers.pdf_lines import Line, OmittedCounts, PdfPage, has_leaders

MARGIN_SHARE = 0.13
"""Fraction of the page height, at the top and at the bottom, that may contain running heads and feet."""
MIN_REPEATED_PAGES = 3
"""Minimum number of pages on which a running head, foot or margin tab has the same position."""
MAX_REPEATED_SHARE = 0.6
"""Maximum fraction of a page's lines that may be running heads, feet and tabs."""
MAX_HEAD_CHARACTERS = 150
MAX_HEAD_SIZE_RATIO = 1.2
"""Maximum type size of a running head, as a multiple of the usual size; larger type is a title, as on slides."""
MIN_COLUMN_LINE_CHARACTERS = 15
"""Minimum length of the lines that are used to detect columns, in characters."""
MIN_COLUMN_LINES = 4
MAX_NEIGHBOUR_DISTANCE = 8
"""Maximum vertical distance between the baselines of lines side by side in two columns, in points."""
MAX_NESTED_COLUMNS = 2
MIN_WIDE_SHARE = 0.75
"""Minimum width, as a fraction of the text width, of a chunk that spans the columns."""
_NUMBER_ENDS = re.compile(r"^\W*(\d{1,4}|[ivxl]{1,7})\b|\b(\d{1,4}|[ivxl]{1,7})\W*$")
MIN_CONTENTS_SHARE = 0.25
MIN_LEADER_LINES = 4
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50}


def drop_running_lines(pages: Sequence[PdfPage], omitted_counts: OmittedCounts) -> None:
    """Remove running heads and feet, page numbers, margin tabs and lines of contents from the pages, and count them."""
    positions = [[_locate_line(line, page) for line in page.lines] for page in pages]
    edge_lines_by_page = [_find_edge_lines(page) for page in pages]
    min_pages = max(2, min(MIN_REPEATED_PAGES, len(positions) - 1))
    counts = Counter(position for page_positions in positions for position in set(page_positions))
    repeated_positions = {position for position, count in counts.items() if count >= min_pages and position[0]}
    # Numbers whose difference from the page's index recurs on many pages are page numbers.
    offset_counts = Counter(
        offset
        for edge_lines in edge_lines_by_page
        for offset in {number_offset for line in edge_lines for number_offset in _find_number_offsets(line)}
    )
    page_number_offsets = {
        offset
        for offset, count in offset_counts.items()
        if count >= max(2, min(MIN_REPEATED_PAGES, len(edge_lines_by_page)))
    }
    header_positions = _find_header_positions(pages, edge_lines_by_page)
    for page, edge_lines, page_positions in zip(pages, edge_lines_by_page, positions, strict=True):
        header_ids = {
            id(line)
            for line in edge_lines
            if _locate_header(line, page) in header_positions or _find_number_offsets(line) & page_number_offsets
        }
        # A page that is nearly all repeated is a copy of others.
        is_copy = sum(position in repeated_positions for position in page_positions) > MAX_REPEATED_SHARE * len(
            page_positions
        )
        remaining_lines = [
            line
            for line, position in zip(page.lines, page_positions, strict=True)
            if (is_copy or position not in repeated_positions) and id(line) not in header_ids
        ]
        # Dots lead from a title to a page number, as in a table of contents.
        page.lines = [line for line in remaining_lines if not has_leaders(line)]
        n_contents_lines = len(remaining_lines) - len(page.lines)
        if n_contents_lines >= MIN_LEADER_LINES and n_contents_lines > MIN_CONTENTS_SHARE * len(remaining_lines):
            n_contents_lines, page.lines = len(remaining_lines), []
        omitted_counts["running heads and page numbers", page.number] += len(page_positions) - len(remaining_lines)
        omitted_counts["lines of contents", page.number] += n_contents_lines


Position = tuple[str, int, int]


def _locate_line(line: Line, page: PdfPage) -> Position:
    """Return the text of a line and its rounded position.

    Digits are masked in the margins, where page numbers change.
    """
    text = line.text
    if len(text) > MAX_HEAD_CHARACTERS:
        return "", 0, 0
    if not MARGIN_SHARE * page.height <= line.y <= (1 - MARGIN_SHARE) * page.height:
        text = mask_digits(text)
    return text, round(line.x0 / 4), round(line.y / 4)


def _find_edge_lines(page: PdfPage) -> list[Line]:
    """Return the short lines on the topmost baseline of the top margin and on the lowest one of the bottom margin."""
    bottom_zone, top_zone = MARGIN_SHARE * page.height, (1 - MARGIN_SHARE) * page.height
    top = max((line.y for line in page.lines if line.y > top_zone), default=None)
    bottom = min((line.y for line in page.lines if line.y < bottom_zone), default=None)
    return [
        line
        for line in page.lines
        if len(line.text) < MAX_HEAD_CHARACTERS
        and ((top is not None and line.y > top - 3) or (bottom is not None and line.y < bottom + 3))
    ]


def _find_number_offsets(line: Line) -> set[tuple[bool, int]]:
    """Return the differences between the numbers at both ends of a line and its page number.

    Each has a flag that is True for roman numerals.
    """
    offsets = set()
    for match in _NUMBER_ENDS.finditer(line.text):
        token = match.group(1) or match.group(2)
        is_roman = not token.isdigit()
        offsets.add((is_roman, (_parse_roman(token) if is_roman else int(token)) - line.page))
    return offsets


def _parse_roman(text: str) -> int:
    values = [_ROMAN[char] for char in text]
    return sum(
        -value if value < next_value else value for value, next_value in zip(values, [*values[1:], 0], strict=True)
    )


def _locate_header(line: Line, page: PdfPage) -> tuple[bool, int, int]:
    return line.y > page.height / 2, round(line.y / 3), round(line.size * 2)


def _find_header_positions(
    pages: Sequence[PdfPage], edge_lines_by_page: Sequence[list[Line]]
) -> set[tuple[bool, int, int]]:
    """Return the positions (half of the page, baseline, type size) at which most pages have a short isolated line."""
    counts: Counter[tuple[bool, int, int]] = Counter()
    text_size = median(line.size for page in pages for line in page.lines)
    for page, edge_lines in zip(pages, edge_lines_by_page, strict=True):
        for line in edge_lines:
            min_distance = min(
                (abs(line.y - other_line.y) for other_line in page.lines if abs(line.y - other_line.y) > 3), default=0.0
            )
            is_large = line.size > MAX_HEAD_SIZE_RATIO * text_size
            if len(line.text) < MAX_HEAD_CHARACTERS / 2 and min_distance > 2 * line.size and not is_large:
                counts[_locate_header(line, page)] += 1
    return {header_position for header_position, count in counts.items() if count >= max(4, 0.5 * len(pages))}


def order_lines(page: PdfPage) -> list[Line]:
    """Return a page's lines in reading order, and set the right edge of each line's column in place.

    Consecutive lines below each other form chunks. A chunk that spans the columns, such as a title or a wide caption,
    divides the page. Above and below such a chunk, chunks are sorted by column from left to right.
    """
    ordered_lines: list[Line] = []
    for group in _group_chunks(_build_chunks(page.lines)):
        lines = [line for chunk in group for line in chunk]
        right_edges: dict[float, float] = defaultdict(float)
        for line in lines:
            right_edges[round(line.size)] = max(right_edges[round(line.size)], line.x1)
        for line in lines:
            line.right = right_edges[round(line.size)]
        ordered_lines += lines
    return ordered_lines


Chunk = list[Line]


def _build_chunks(lines: Iterable[Line]) -> list[Chunk]:
    chunks: list[Chunk] = []
    for line in lines:
        last_line = chunks[-1][-1] if chunks else None
        is_continued = (
            last_line is not None
            and 0.3 * line.size < last_line.y - line.y < 2.2 * max(last_line.size, line.size)
            and line.x0 < last_line.x1
            and last_line.x0 < line.x1
            and abs(line.size - last_line.size) < 0.12 * last_line.size
        )
        if is_continued:
            chunks[-1].append(line)
        else:
            chunks.append([line])
    return chunks


def _group_chunks(chunks: list[Chunk]) -> list[list[Chunk]]:
    """Group chunks by column in reading order; wide chunks divide the page into bands.

    Columns are detected in each band separately, so that a table with many columns does not hide the columns of text
    above it.
    """
    if not chunks:
        return []
    edges = [(min(line.x0 for line in chunk), max(line.x1 for line in chunk)) for chunk in chunks]
    min_width = MIN_WIDE_SHARE * (max(right for _, right in edges) - min(left for left, _ in edges))
    is_wide = {id(chunk): right - left > min_width for chunk, (left, right) in zip(chunks, edges, strict=True)}
    groups: list[list[Chunk]] = [[]]
    band: list[Chunk] = []
    for chunk in [*_sort_downwards(chunks), None]:
        if chunk is not None and not is_wide[id(chunk)]:
            band.append(chunk)
            continue
        columns = _group_by_column(band, MAX_NESTED_COLUMNS)
        if len(columns) > 1:
            groups += [*columns, []]
        else:
            groups[-1] += [piece for column in columns for piece in column]
        if chunk is not None:
            groups[-1].append(chunk)
        band = []
    return groups


def _group_by_column(chunks: list[Chunk], depth: int) -> list[list[Chunk]]:
    """Group chunks by column in reading order, splitting columns at most ``depth`` times."""
    gutter = _find_gutter([line for chunk in chunks for line in chunk]) if depth else None
    if gutter is None:
        return [_sort_downwards(chunks)] if chunks else []
    groups: list[list[Chunk]] = []
    left_chunks: list[Chunk] = []
    right_chunks: list[Chunk] = []
    # A chunk in which only some lines cross the gutter is split into lines, so that the others get their columns.
    pieces = [piece for chunk in chunks for piece in _split_lines_across_gutter(chunk, gutter)]
    for chunk in _sort_downwards(pieces):
        if min(line.x0 for line in chunk) >= gutter - 3:
            right_chunks.append(chunk)
        elif max(line.x1 for line in chunk) <= gutter + 3:
            left_chunks.append(chunk)
        else:
            groups += [*_group_by_column(left_chunks, depth - 1), *_group_by_column(right_chunks, depth - 1), [chunk]]
            left_chunks, right_chunks = [], []
    return [*groups, *_group_by_column(left_chunks, depth - 1), *_group_by_column(right_chunks, depth - 1)]


def _split_lines_across_gutter(chunk: Chunk, gutter: float) -> list[Chunk]:
    crosses_gutter = [line.x0 < gutter - 3 and line.x1 > gutter + 3 for line in chunk]
    if all(crosses_gutter) or not any(crosses_gutter):
        return [chunk]
    if sum(crosses_gutter) * 2 > len(chunk):
        return [chunk]  # a wide paragraph with a short last line
    return [[line] for line in chunk]


def _sort_downwards(chunks: list[Chunk]) -> list[Chunk]:
    return sorted(chunks, key=lambda chunk: (-round((chunk[0].y + 0.8 * chunk[0].size) / 4), chunk[0].x0))


def _find_gutter(lines: list[Line]) -> float | None:
    long_lines = [line for line in lines if len(line.text) >= MIN_COLUMN_LINE_CHARACTERS]
    if len(long_lines) < 2 * MIN_COLUMN_LINES:
        return None
    leftmost, rightmost = min(line.x0 for line in long_lines), max(line.x1 for line in long_lines)
    starts = Counter(round(line.x0 / 3) * 3 for line in long_lines)
    best_gutter: tuple[int, float] | None = None
    for start, count in starts.items():
        share = (start - leftmost) / max(1.0, rightmost - leftmost)
        if count < MIN_COLUMN_LINES or not 0.25 < share < 0.8:
            continue
        n_side_by_side = _count_side_by_side(long_lines, start)
        if n_side_by_side and (best_gutter is None or n_side_by_side > best_gutter[0]):
            best_gutter = (n_side_by_side, float(start))
    return best_gutter[1] if best_gutter else None


def _count_side_by_side(lines: list[Line], start: float) -> int:
    """Return the number of lines with a line beside them in the other column, if the right column begins at ``start``.

    The result is 0 if there are too few. Lines that cross the gutter are ignored, since a wide caption may interrupt
    the columns.
    """
    left_rows = {round(line.y / MAX_NEIGHBOUR_DISTANCE) for line in lines if line.x1 <= start + 3}
    right_rows = {round(line.y / MAX_NEIGHBOUR_DISTANCE) for line in lines if line.x0 >= start - 3}
    smaller_count = min(_count_neighbours(left_rows, right_rows), _count_neighbours(right_rows, left_rows))
    return smaller_count if smaller_count >= MIN_COLUMN_LINES else 0


def _count_neighbours(rows: set[int], neighbour_rows: set[int]) -> int:
    return sum(1 for row in rows if row in neighbour_rows or row - 1 in neighbour_rows or row + 1 in neighbour_rows)
