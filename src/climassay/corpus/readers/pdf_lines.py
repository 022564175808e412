"""Extract lines of text from PDF pages, with position, size and style.

PDFium returns the text of a whole page in one call, divided into lines. Requesting each character's box from Python
would take longer than everything else; three characters determine a line's geometry.
"""

import ctypes
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pypdfium2.raw as pdfium

from climassay.corpus.readers.cleaning import LINE_END_HYPHEN

MIN_SUPERSCRIPT_RISE = 0.18
"""Minimum height of a superscript above the baseline of its line, as a fraction of the type size."""
MAX_SUPERSCRIPT_SIZE_RATIO = 0.9
MAX_SUPERSCRIPT_RISE = 0.7
"""Maximum height of a superscript above the baseline of its line, as a fraction of the type size."""
MAX_BASELINE_DIFFERENCE = 0.35
MAX_PIECE_GAP = 1.3
"""Maximum gap between two pieces of a line, as a multiple of the type size."""
MIN_SAMPLED_LENGTH = 3
MIN_WIDE_SHARE = 0.6
"""A line may consist of two lines in adjacent columns if it has at least this fraction of the page's width."""
MIN_GUTTER_WIDTH = 1.2
MIN_GUTTER_LINES = 4
GUTTER_SAMPLE_LINES = 6
BOLD_WEIGHT = 600
MAX_OVERPRINT_SHIFT = 0.1
"""Maximum distance between a line and the same line printed over it, as a fraction of the type size."""
MAX_GLYPH_SHIFT = 0.16
"""Maximum distance of two equal characters that count as printed over each other, as a fraction of the type size; two
narrow letters such as "ll" are further apart."""
_EQUAL_CHARACTERS = re.compile(r"(\S)(?=\1)")
_get_origin = pdfium.FPDFText_GetCharOrigin
_get_matrix = pdfium.FPDFText_GetMatrix
_get_font_size = pdfium.FPDFText_GetFontSize
_get_font_info = pdfium.FPDFText_GetFontInfo
_get_loose_box = pdfium.FPDFText_GetLooseCharBox
_count_rects = pdfium.FPDFText_CountRects
_SEGMENT = re.compile(rf"[^\s{LINE_END_HYPHEN}](?:[^\r\n{LINE_END_HYPHEN}]*[^\s{LINE_END_HYPHEN}])?")
_SPACES = " \u00a0"
_DIGITS = re.compile(r"\d+")
_SUPERSCRIPT_PIECE = re.compile(r"([+\-−–‐]?\d+(?:,\d+)*)([.,;:)\]]*)")
_UNIT = re.compile(r"(?:^|[^A-Za-z])(?:[kcdmµμnMGTP]?(?:m|s|g|W|J|K|Hz|Pa|N|V|A|L|l|mol|t|ha)|yr|h|hr)$")
_FRACTION_BARS = "⁄/∕"
_VARIABLE = re.compile(r"(?:^|[\s(=+−×/|])[^\W\d_]$")
_SUPERSCRIPTS = str.maketrans("0123456789+-−–‐", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁻")
_SIGNS = "+-−–‐"
_BOLD_NAME = re.compile(r"bold|black|heavy|semib|demi|-medi|cmbx|sfbx|\bbd\b", re.IGNORECASE)
_FAMILY = re.compile(r"(?:[A-Z]{6}\+)?([A-Za-z]+)")
MIN_TURNED_CHARACTERS = 400
"""Text in another writing direction is read if it has at least this number of characters; shorter texts are labels,
such as the title of an axis."""
_LEADING_NUMBER = re.compile(r"\d{1,4}(?!\d)")
_TRAILING_NUMBER = re.compile(r"(?<!\d)\d{1,4}$")
_SPACE = re.compile(r"\s+")
MIN_CELL_GAP = 0.7
"""Minimum gap between two cells of a table row, as a multiple of the type size; word spaces are half as wide."""
MAX_EDGE_DIGITS = 4
MIN_NUMBER_GAP = 0.4
"""Minimum gap between a number in the margin and the text, as a multiple of the type size."""
_SWAPPED_BRACKETS = str.maketrans("()[]{}", ")(][}{")


_LEADERS = re.compile(r"(?:\.\s?){5,}|…{2,}|\ufffd{3,}|_{5,}")
Span = tuple[int, int]


OmittedCounts = Counter[tuple[str, int]]
"""Number of omitted blocks by kind (a plural noun) and page."""


@dataclass(frozen=True, slots=True)
class EdgeNumber:
    """Number at the beginning or end of a line, separated from the text by a gap; possibly a line number."""

    digits: str
    x0: float
    x1: float
    text_edge: float
    """Horizontal position of the edge of the remaining text that faces the number."""
    bold: bool
    """Whether the first and last characters of the line, not counting the number, are bold."""
    starts_bold: bool


@dataclass(slots=True)
class Line:
    """Line of text on a page. Lengths are in points; y increases upwards."""

    text: str
    page: int
    """Page number, from 1."""
    x0: float
    x1: float
    y: float
    """Vertical position of the baseline."""
    size: float
    """Type size."""
    bold: bool
    """Whether the first and last characters are bold."""
    family: str
    """Name of the typeface without its style."""
    angle: int = 0
    """Writing direction relative to the horizontal of the page: 0, 90, 180 or 270 degrees."""
    starts_bold: bool = False
    hyphen: bool = False
    """Whether the line ends in a hyphen that, according to PDFium, divides a word."""
    n_note_marks: int = 0
    """Number of note marks removed from the text."""
    note_number: str = ""
    """Superscript number at the beginning of the line, as in a footnote; empty if there is none."""
    right: float = field(default=0.0)
    """Right edge of the line's column."""
    leading_number: EdgeNumber | None = None
    trailing_number: EdgeNumber | None = None
    pieces: tuple[tuple[int, str], ...] = ()
    """Pieces that were joined to form the line, each as (PDFium's index of the first character, text)."""


@dataclass(slots=True)
class PdfTable:
    """Cells of a table by row and column, header rows first."""

    cells: list[list[list[Line]]]
    """Lines by row, column and cell; a cell that spans several columns is repeated in each."""
    n_header_rows: int | None
    """Number of header rows. 0 if no row clearly names the columns; None if it must be derived from the texts."""

    @property
    def lines(self) -> list[Line]:
        """All lines, row by row."""
        return [line for row in self.cells for cell in row for line in cell]

    @property
    def texts(self) -> list[list[str]]:
        """Text of each cell, by row and column."""
        return [[" ".join(line.text for line in cell) for cell in row] for row in self.cells]


@dataclass(slots=True)
class PdfPage:
    """Lines of a page in one writing direction, rotated upright; lines are removed during layout analysis."""

    number: int
    """Page number, from 1."""
    width: float
    height: float
    lines: list[Line]
    tables: list[PdfTable] = field(default_factory=list)


class LineReader:
    """Reader of the lines of a file's pages; it reuses buffers and font names."""

    def __init__(self, omitted_counts: OmittedCounts) -> None:
        self._omitted_counts = omitted_counts
        self._turn = 0
        """Writing direction, in degrees, that is horizontal in line coordinates."""
        self._width = self._height = 0.0
        self._x = ctypes.c_double()
        self._y = ctypes.c_double()
        self._box = pdfium.FS_RECTF()
        self._matrix = pdfium.FS_MATRIX()
        self._name = ctypes.create_string_buffer(128)
        self._flags = ctypes.c_int()
        self._families: dict[bytes, tuple[str, bool]] = {}
        # A reference made once saves ctypes making one at each of some hundred thousand calls.
        self._x_ref, self._y_ref = ctypes.byref(self._x), ctypes.byref(self._y)
        self._box_ref, self._matrix_ref = ctypes.byref(self._box), ctypes.byref(self._matrix)
        self._flags_ref = ctypes.byref(self._flags)

    def read(self, page: Any, text_page: Any, number: int) -> Iterator[PdfPage]:
        """Read the lines of a page in the order of its content stream.

        PDFium divides lines well only if the text is displayed upright, so other pages are rotated first.

        Yields:
            One page per writing direction with much text, the main direction first. Lines in other directions are
                counted as omitted. :meth:`split` only accepts lines of the page yielded last.
        """
        rotation = pdfium.FPDFPage_GetRotation(page)
        width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
        self._width, self._height = (height, width) if rotation % 2 else (width, height)
        self._handle = text_page
        text, has_equal_indices = _extract_page_text(text_page)
        lines = self._read_turned(text, has_equal_indices, number, 0)
        n_characters_by_turn = _count_characters_by_angle(lines)
        main_turn = max(n_characters_by_turn, key=lambda turn: n_characters_by_turn[turn], default=0)
        if main_turn != 90 * rotation and n_characters_by_turn:
            pdfium.FPDFPage_SetRotation(page, main_turn // 90)
            self._handle = pdfium.FPDFText_LoadPage(page)
            text, has_equal_indices = _extract_page_text(self._handle)
            lines = self._read_turned(text, has_equal_indices, number, 0)
            n_characters_by_turn = _count_characters_by_angle(lines)
        for turn, n_characters in sorted(n_characters_by_turn.items(), key=lambda item: -item[1]):
            if turn != main_turn and n_characters < MIN_TURNED_CHARACTERS:
                self._omitted_counts["lines written in another direction", number] += sum(
                    1 for x in lines if x.angle == turn
                )
                continue
            turned_lines = self._read_turned(text, has_equal_indices, number, turn) if turn else lines
            self._omitted_counts["note marks", number] += sum(
                line.n_note_marks for line in turned_lines if not line.angle
            )
            size = (self._height, self._width) if turn % 180 else (self._width, self._height)
            yield PdfPage(number, *size, [line for line in turned_lines if not line.angle])
        if self._handle is not text_page:
            pdfium.FPDFText_ClosePage(self._handle)

    def _read_turned(self, text: str, has_equal_indices: bool, page: int, turn: int) -> list[Line]:
        """Read all lines of a page in one writing direction, in coordinates in which they are horizontal."""
        self._turn = turn
        width = self._height if turn % 180 else self._width
        spans = [match.span() for match in _SEGMENT.finditer(text)]
        lines = [
            self._build_line(text[start:end], self._to_pdfium_index(start, has_equal_indices), page)
            for start, end in spans
        ]
        split_spans = self._split_at_gutter(spans, lines, has_equal_indices, width)
        if split_spans:
            spans = split_spans
            lines = [
                self._build_line(text[start:end].rstrip(), self._to_pdfium_index(start, has_equal_indices), page)
                for start, end in spans
            ]
        joined_lines: list[Line] = []
        is_overprint = self._find_overprints(lines)
        for index, (line, (start, end)) in enumerate(zip(lines, spans, strict=True)):
            if is_overprint[index]:
                continue
            line.hyphen = text.startswith(LINE_END_HYPHEN, end)
            if not joined_lines or not _append_if_continued(
                joined_lines[-1], line, start > 0 and text[start - 1] in _SPACES
            ):
                joined_lines.append(line)
        return joined_lines

    def _to_pdfium_index(self, position: int, has_equal_indices: bool) -> int:
        return position if has_equal_indices else pdfium.FPDFText_GetCharIndexFromTextIndex(self._handle, position)

    def _split_at_gutter(
        self, spans: list[Span], lines: list[Line], has_equal_indices: bool, width: float
    ) -> list[Span]:
        """Split lines that PDFium has joined across two columns; return the spans, or [] if no lines were joined."""
        wide_lines = [
            n for n, line in enumerate(lines) if line.x1 - line.x0 > MIN_WIDE_SHARE * width and not line.angle
        ]
        if len(wide_lines) < MIN_GUTTER_LINES:
            return []

        def starts_after_gap(line_index: int) -> list[int]:
            index = self._to_pdfium_index(spans[line_index][0], has_equal_indices)
            return [round(x / 4) for x in self._find_gaps(lines[line_index], index) if 0.3 * width < x < 0.75 * width]

        # Most pages have no joined lines; a sample of the lines shows this.
        sample = wide_lines[:: max(1, len(wide_lines) // GUTTER_SAMPLE_LINES)]
        if sum(1 for line_index in sample if starts_after_gap(line_index)) < 0.5 * len(sample):
            return []
        starts_by_line = {line_index: starts_after_gap(line_index) for line_index in wide_lines}
        gutter, count = Counter(x for starts in starts_by_line.values() for x in starts).most_common(1)[0]
        if count < MIN_GUTTER_LINES or count < 0.5 * len(wide_lines):
            return []
        split_spans: list[Span] = []
        for line_index, (start, end) in enumerate(spans):
            offset = 0
            line = lines[line_index]
            if line_index not in starts_by_line and line.x0 < 4 * gutter < line.x1 and not line.angle:
                starts_by_line[line_index] = starts_after_gap(line_index)  # the short last lines of two paragraphs
            if gutter in starts_by_line.get(line_index, ()):
                x, y = self._to_page_coordinates(4.0 * gutter + 2, lines[line_index].y + 1)
                offset = pdfium.FPDFText_GetCharIndexAtPos(self._handle, x, y, 6, 4) - self._to_pdfium_index(
                    start, has_equal_indices
                )
            split_spans += (
                [(start, start + offset), (start + offset, end)] if 0 < offset < end - start else [(start, end)]
            )
        return split_spans

    def _find_gaps(self, line: Line, index: int) -> list[float]:
        """Return the left edge of each text that follows a gap at least as wide as a gap between columns."""
        left, top, right, bottom = (ctypes.c_double() for _ in range(4))
        starts: list[float] = []
        end = line.x0
        for number in range(_count_rects(self._handle, index, len(line.text))):
            pdfium.FPDFText_GetRect(self._handle, number, left, top, right, bottom)
            x0, x1 = self._find_horizontal_edges(left.value, bottom.value, right.value, top.value)
            if x0 - end > MIN_GUTTER_WIDTH * line.size:
                starts.append(x0)
            end = max(end, x1)
        return starts

    def _to_line_coordinates(self, x: float, y: float) -> tuple[float, float]:
        if self._turn == 90:
            return y, self._width - x
        if self._turn == 180:
            return self._width - x, self._height - y
        return (self._height - y, x) if self._turn else (x, y)

    def _to_page_coordinates(self, x: float, y: float) -> tuple[float, float]:
        if self._turn == 90:
            return self._width - y, x
        if self._turn == 180:
            return self._width - x, self._height - y
        return (y, self._height - x) if self._turn else (x, y)

    def _find_horizontal_edges(self, left: float, bottom: float, right: float, top: float) -> tuple[float, float]:
        """Return the left and right edges, in line coordinates, of a rectangle on the page."""
        if not self._turn:
            return left, right
        (first_x, _), (second_x, _) = self._to_line_coordinates(left, bottom), self._to_line_coordinates(right, top)
        return min(first_x, second_x), max(first_x, second_x)

    def _find_edges(self, index: int) -> tuple[float, float]:
        box = self._box
        _get_loose_box(self._handle, index, self._box_ref)
        return self._find_horizontal_edges(box.left, box.bottom, box.right, box.top)

    def _find_baseline(self, index: int) -> float:
        """Return the vertical position of a character's baseline, and set ``_x`` to the character's origin."""
        _get_origin(self._handle, index, self._x_ref, self._y_ref)
        if self._turn:
            self._x.value, self._y.value = self._to_line_coordinates(self._x.value, self._y.value)
        return self._y.value

    def _find_size(self, index: int) -> float:
        """Return the type size of a character as displayed on the page, and set ``_matrix``."""
        matrix = self._matrix
        _get_matrix(self._handle, index, self._matrix_ref)
        scale = matrix.d if matrix.c == 0 else math.hypot(matrix.c, matrix.d)
        return float(abs(_get_font_size(self._handle, index) * scale))

    def _find_font(self, index: int) -> tuple[str, bool]:
        """Return the typeface family of a character, and whether it is bold."""
        _get_font_info(self._handle, index, self._name, 128, self._flags_ref)
        name = self._name.value
        font = self._families.get(name)
        if font is None:
            full_name = name.decode("utf-8", "replace")
            match = _FAMILY.match(full_name)
            family = match.group(1) if match else full_name
            if re.match(r"(?:CM|SF|LM)[A-Z]{1,4}$", family):
                family = family[:2]  # Computer Modern names every style as a family of its own
            is_bold = pdfium.FPDFText_GetFontWeight(self._handle, index) >= BOLD_WEIGHT
            font = self._families[name] = (family, is_bold or bool(_BOLD_NAME.search(full_name)))
        return font

    def _build_line(self, text: str, start: int, page: int) -> Line:
        length = len(text)
        last_index = start + length - 1
        size = self._find_size(start)
        y = self._find_baseline(start)
        x0 = self._x.value
        family, starts_bold = self._find_font(start)
        if length > MIN_SAMPLED_LENGTH:
            # The first character may be a large initial or a superscript, so two of three positions decide. Digits are
            # avoided at the others, because they may be superscripts or subscripts.
            sample_index = start + _find_letter(text, length // 2)
            middle_size = self._find_size(sample_index)
            if abs(middle_size - size) > 0.05 * size:
                third_index = start + _find_letter(text, length // 3)
                if abs(self._find_size(third_index) - middle_size) > 0.05 * middle_size:
                    sample_index = third_index
                size = self._find_size(sample_index)
                y = self._find_baseline(sample_index)
                family = self._find_font(sample_index)[0]
        matrix, angle = self._matrix, 0  # matrix of the character whose size was read last
        if abs(matrix.b) > 0.1 * abs(matrix.a):
            angle = round(math.degrees(math.atan2(matrix.b, matrix.a)) / 90) % 4 * 90
        elif matrix.a < 0:
            angle = 180
        angle = (angle - self._turn) % 360
        if self._turn:
            left, right = self._find_edges(last_index)
        else:
            _get_loose_box(self._handle, last_index, self._box_ref)
            left, right = self._box.left, self._box.right
        bold = starts_bold and self._find_font(last_index)[1]
        line = Line(text, page, x0, right, y, size, bold, family, angle, starts_bold, pieces=((start, text),))
        if angle:
            return line
        if overprints := self._find_overprinted_characters(text, start, size):
            line.text = "".join(character for index, character in enumerate(text) if index not in overprints)
            return line
        if left < x0 and not text.isascii() and _is_right_to_left(text):
            line.x0, line.x1 = left, self._find_edges(start)[1]
            line.text = _swap_brackets(text)
            return line
        if text[0].isdigit() or text[-1].isdigit():
            line.leading_number = self._find_leading_number(line, start) if text[0].isdigit() else None
            line.trailing_number = self._find_trailing_number(line, start) if text[-1].isdigit() else None
            if line.trailing_number and line.trailing_number.x0 < x0:
                line.x1 = line.trailing_number.text_edge
        if _DIGITS.search(text) and _count_rects(self._handle, start, length) > 1:
            self._resolve_superscripts(line, start)
        return line

    def _find_overprints(self, lines: Sequence[Line]) -> list[bool]:
        """Return whether each line is printed over an earlier one or a part of it, as a shadow or to look bold."""
        lines_by_height: dict[tuple[int, int], list[Line]] = {}
        results = []
        for line in lines:
            height = round(line.y)
            heights = (height - 1, height, height + 1)
            earlier_lines = [other for y in heights for other in lines_by_height.get((y, line.angle), ())]
            results.append(any(self._is_over(line, other) for other in earlier_lines))
            lines_by_height.setdefault((height, line.angle), []).append(line)
        return results

    def _is_over(self, line: Line, other: Line) -> bool:
        """Return whether a line has the text and the place of another one or of a part of it."""
        distance = MAX_OVERPRINT_SHIFT * line.size
        if line.text not in other.text or abs(line.y - other.y) > distance:
            return False
        if line.text == other.text:
            return abs(line.x0 - other.x0) <= distance
        ((start, text),) = other.pieces
        for match in re.finditer(re.escape(line.text), text):
            self._find_baseline(start + match.start())
            if abs(self._x.value - line.x0) <= distance:
                return True
        return False

    def _find_overprinted_characters(self, text: str, start: int, size: float) -> set[int]:
        """Return the indices of characters that are printed over an equal one before them, to look bold."""
        results = set()
        for match in _EQUAL_CHARACTERS.finditer(text):
            self._find_baseline(start + match.start())
            x = self._x.value
            self._find_baseline(start + match.start() + 1)
            if abs(self._x.value - x) <= MAX_GLYPH_SHIFT * size:
                results.add(match.start() + 1)
        return results

    def split(self, line: Line) -> list[Line]:
        """Split a line at gaps wider than word spaces, as between the columns of a table.

        Returns:
            The parts, with superscripts and note marks resolved; only the line itself if it has no such gap.
        """
        min_gap = MIN_CELL_GAP * line.size
        parts: list[tuple[int, str]] = []
        for start, text in line.pieces:
            spaces = [(match.start(), match.end()) for match in _SPACE.finditer(text)]
            gaps = [
                space
                for space in spaces
                if self._find_edges(start + space[1])[0] - self._find_edges(start + space[0] - 1)[1] > min_gap
            ]
            ends = [*(begin for begin, _ in gaps), len(text)]
            starts = [0, *(end for _, end in gaps)]
            parts += [(start + begin, text[begin:end]) for begin, end in zip(starts, ends, strict=True) if begin < end]
        if len(parts) < 2:
            return [line]
        cells: list[Line] = []
        for start, text in parts:
            cell = self._build_line(text, start, line.page)
            if not cells or cell.x0 - cells[-1].x1 > min_gap or not _append_if_continued(cells[-1], cell, False):
                cells.append(cell)
        return cells if len(cells) > 1 else [line]

    def _find_leading_number(self, line: Line, start: int) -> EdgeNumber | None:
        match = _LEADING_NUMBER.match(line.text)
        if match is None or match.end() == len(line.text):
            return None
        text_index = match.end() + line.text[match.end()].isspace()
        left, right = line.x0, self._find_edges(start + match.end() - 1)[1]
        edge = self._find_edges(start + text_index)[0]
        if not edge - right > MIN_NUMBER_GAP * line.size:
            return None
        starts_bold = self._find_font(start + text_index)[1]
        bold = starts_bold and self._find_font(start + len(line.text) - 1)[1]
        return EdgeNumber(match.group(), left, right, edge, bold, starts_bold)

    def _find_trailing_number(self, line: Line, start: int) -> EdgeNumber | None:
        match = _TRAILING_NUMBER.search(line.text)
        if match is None or match.start() == 0:
            return None
        text_index = match.start() - 1 - line.text[match.start() - 1].isspace()
        edge = self._find_edges(start + text_index)[1]
        left, right = self._find_edges(start + match.start())[0], line.x1
        # A number in the left margin may follow the line's text in the file.
        if not (left - edge > MIN_NUMBER_GAP * line.size or right < line.x0):
            return None
        bold = line.starts_bold and self._find_font(start + text_index)[1]
        return EdgeNumber(match.group(), left, right, edge, bold, line.starts_bold)

    def _resolve_superscripts(self, line: Line, start: int) -> None:
        """Convert raised digits to superscript characters if they are exponents, and remove note marks."""
        text = line.text
        min_height = line.y + MIN_SUPERSCRIPT_RISE * line.size
        parts: list[str] = []
        end_of_previous = 0
        for match in _DIGITS.finditer(text):
            last_index = start + match.end() - 1
            if (
                self._find_baseline(last_index) <= min_height
                or self._find_size(last_index) > MAX_SUPERSCRIPT_SIZE_RATIO * line.size
            ):
                continue
            begin = match.end() - 1
            while begin > end_of_previous and (text[begin - 1].isdigit() or text[begin - 1] in _SIGNS + ","):
                if self._find_baseline(start + begin - 1) <= min_height:
                    break
                begin -= 1
            if not text[:begin].strip():
                line.note_number = text[begin : match.end()]
                continue
            next_character = text[match.end() : match.end() + 1]
            replacement = _replace_superscript(text[:begin], text[begin : match.end()], next_character)
            # Two and a half is "2 1/2", not "21/2".
            space = " " if next_character in _FRACTION_BARS and text[begin - 1].isdigit() else ""
            line.n_note_marks += not replacement
            parts += (text[end_of_previous:begin], space, replacement)
            end_of_previous = match.end()
        if parts:
            line.text = "".join((*parts, text[end_of_previous:])).strip()


def has_leaders(line: Line) -> bool:
    """Return whether a line has dot leaders between a title and a page number, as in a table of contents."""
    text = line.text
    has_dots = "...." in text or ". . ." in text or "……" in text or "__" in text or "\ufffd\ufffd" in text
    return has_dots and _LEADERS.search(text) is not None


def _count_characters_by_angle(lines: Iterable[Line]) -> dict[int, int]:
    weights: dict[int, int] = {}
    for line in lines:
        weights[line.angle] = weights.get(line.angle, 0) + len(line.text)
    return weights


def _find_letter(text: str, index: int) -> int:
    """Return ``index`` or, if the character there is a digit or space, the index of the next letter."""
    if not (text[index].isdigit() or text[index].isspace()):
        return index
    return next((letter_index for letter_index in range(index, len(text)) if text[letter_index].isalpha()), index)


def _replace_superscript(text_before: str, superscript: str, text_after: str) -> str:
    """Return the replacement for a number in superscript position.

    The replacement is a Unicode superscript; plain digits for a numerator or the mass number of an isotope; or an empty
    string for a note mark. A 2 or 3 after a single letter is an exponent (``R²``).
    """
    if text_after and text_after in _FRACTION_BARS:
        return superscript
    if superscript in "23" and _VARIABLE.search(text_before):
        return superscript.translate(_SUPERSCRIPTS)
    if superscript[0] in _SIGNS or re.search(r"(?:^|[^\d.,])10$", text_before):
        return superscript.translate(_SUPERSCRIPTS)
    if _UNIT.search(text_before):
        return superscript[0].translate(_SUPERSCRIPTS)  # digits after the 2 of km² are a note mark
    if text_before[-1:] in " (" and text_after.isalpha():
        return superscript
    return ""


def _extract_page_text(text_page: Any) -> tuple[str, bool]:
    """Return the text of a page, and whether its indices equal PDFium's character indices.

    The text has one character per UTF-16 code unit.
    """
    count = pdfium.FPDFText_CountChars(text_page)
    if count <= 0:
        return "", True
    # PDFium may put in characters of its own, so that the text is longer than the list of characters.
    last_index = count - 1
    while last_index > 0 and (text_index := pdfium.FPDFText_GetTextIndexFromCharIndex(text_page, last_index)) < 0:
        last_index -= 1
    buffer_size = max(count, text_index + 1 if last_index > 0 else count) + 1
    buffer = (ctypes.c_ushort * buffer_size)()
    n_written = pdfium.FPDFText_GetText(text_page, 0, count, buffer)
    units = buffer[: max(0, n_written - 1)]
    text = bytes(buffer)[: 2 * len(units)].decode("utf-16-le", "surrogatepass")
    if len(text) != len(units):
        text = "".join(map(chr, units))
    return text, text_index == count - 1 if last_index > 0 else True


def _append_if_continued(line: Line, piece: Line, is_after_space: bool) -> bool:
    """Append a piece that is adjacent on the same baseline or a superscript; return whether it was appended."""
    if piece.angle or line.angle or line.hyphen:
        return False
    size = max(line.size, piece.size)
    if abs(piece.y - line.y) > MAX_SUPERSCRIPT_RISE * size:
        return False
    gap = piece.x0 - line.x1
    number_match = None if is_after_space else _SUPERSCRIPT_PIECE.fullmatch(piece.text)
    if (
        number_match
        and piece.size <= MAX_SUPERSCRIPT_SIZE_RATIO * line.size
        and MIN_SUPERSCRIPT_RISE * line.size < piece.y - line.y <= MAX_SUPERSCRIPT_RISE * line.size
        and -0.5 * size <= gap <= 0.15 * size
    ):
        superscript = _replace_superscript(line.text, number_match[1], "")
        line.text += superscript + number_match[2]
        line.n_note_marks += not superscript
        line.pieces += piece.pieces
        line.x1, line.hyphen = piece.x1, piece.hyphen
        return True
    if abs(piece.y - line.y) > MAX_BASELINE_DIFFERENCE * size or not -0.5 * size <= gap <= MAX_PIECE_GAP * size:
        return False
    space = " " if is_after_space or gap > 0.15 * size else ""
    if piece.size > 1.05 * line.size:
        line.y, line.size, line.family = piece.y, piece.size, piece.family
    if line.text.isdigit() and len(line.text) <= MAX_EDGE_DIGITS and piece.leading_number is None:
        line.leading_number = EdgeNumber(line.text, line.x0, line.x1, piece.x0, piece.bold, piece.starts_bold)
    line.trailing_number = piece.trailing_number
    line.pieces += piece.pieces
    if piece.text.isdigit() and len(piece.text) <= MAX_EDGE_DIGITS:
        line.trailing_number = EdgeNumber(piece.text, piece.x0, piece.x1, line.x1, line.bold, line.starts_bold)
    text_before, remaining_text = line.text + space, piece.text.removeprefix(piece.note_number)
    superscript = _replace_superscript(text_before, piece.note_number, remaining_text[:1]) if piece.note_number else ""
    line.n_note_marks += piece.n_note_marks + (bool(piece.note_number) and not superscript)
    line.text = (
        f"{text_before}{superscript}{remaining_text.lstrip() if space and not superscript else remaining_text}".rstrip()
    )
    line.x1, line.hyphen, line.bold = piece.x1, piece.hyphen, line.bold and piece.bold
    return True


def _is_right_to_left(text: str) -> bool:
    first_letter = next((char for char in text if char.isalpha()), " ")
    return unicodedata.bidirectional(first_letter) in {"R", "AL"}


def _swap_brackets(text: str) -> str:
    """Swap opening and closing brackets if that leaves fewer of them unmatched, since PDFium may mirror them."""
    swapped_text = text.translate(_SWAPPED_BRACKETS)
    return swapped_text if _count_unmatched_brackets(swapped_text) < _count_unmatched_brackets(text) else text


def _count_unmatched_brackets(text: str) -> int:
    depth = n_unmatched = 0
    for char in text:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            n_unmatched += not depth
            depth -= depth > 0
    return n_unmatched + depth
