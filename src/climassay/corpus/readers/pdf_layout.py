"""Take the lines of text off PDF pages, with their place, size and style, and bring them into reading order.

PDFium gives the text of a whole page in one call, lines divided. Asking it for every character's box from Python would
be slower than all the rest together; a line's geometry follows from three of its characters. Running heads and feet
are left out, and columns follow one after the other.
"""

import ctypes
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pypdfium2.raw as pdfium

from climassay.corpus.readers.cleaning import LINE_END_HYPHEN, mask_digits

RAISED = 0.18
"""A figure whose baseline is higher than the line's by this part of the size is a superscript."""
SUPERSCRIPT_SIZE = 0.9
HIGHEST = 0.7
"""A superscript's baseline is not higher above the line's than this part of the size."""
SAME_BASELINE = 0.35
WIDEST_SPACE = 1.3
"""Pieces on one baseline belong to one line when the gap between them is at most this many times the size."""
SHORTEST_TYPICAL = 3
WIDE_LINE = 0.6
"""A line that takes up this part of the page's width may be two, side by side in two columns."""
GUTTER = 1.2
FEWEST_GUTTER_LINES = 4
GUTTER_SAMPLE = 6
BOLD_WEIGHT = 600
_get_origin = pdfium.FPDFText_GetCharOrigin
_get_matrix = pdfium.FPDFText_GetMatrix
_get_font_size = pdfium.FPDFText_GetFontSize
_get_font_info = pdfium.FPDFText_GetFontInfo
_get_loose_box = pdfium.FPDFText_GetLooseCharBox
_count_rects = pdfium.FPDFText_CountRects
_SEGMENT = re.compile(rf"[^\s{LINE_END_HYPHEN}](?:[^\r\n{LINE_END_HYPHEN}]*[^\s{LINE_END_HYPHEN}])?")
_SPACES = " \u00a0"
_FIGURES = re.compile(r"\d+")
_FIGURES_ONLY = re.compile(r"[+\-−–‐]?\d+(?:,\d+)*")
_UNIT = re.compile(r"(?:^|[^A-Za-z])(?:[kcdmµμnMGTP]?(?:m|s|g|W|J|K|Hz|Pa|N|V|A|L|l|mol|t|ha)|yr|h|hr)$")
_SUPERSCRIPTS = str.maketrans("0123456789+-−–‐", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁻")
_SIGNS = "+-−–‐"
_BOLD_NAME = re.compile(r"bold|black|heavy|semib|demi|-medi|cmbx|sfbx|\bbd\b", re.IGNORECASE)
_FAMILY = re.compile(r"(?:[A-Z]{6}\+)?([A-Za-z]+)")


Span = tuple[int, int]


@dataclass(slots=True)
class Line:
    """A line of text as it stands on the page. Lengths in points; y grows upwards."""

    text: str
    page: int
    """From 1."""
    x0: float
    x1: float
    y: float
    """Baseline."""
    size: float
    """Height of the type."""
    bold: bool
    """All of it, as far as its first and last characters tell."""
    family: str
    """Name of the typeface without style."""
    angle: int = 0
    """Direction of writing: 0, 90, 180 or 270 degrees."""
    starts_bold: bool = False
    hyphen: bool = False
    """The line ends in a hyphen that PDFium has taken for one of a broken word."""
    mark: str = ""
    """The raised figure that the line begins with, as a footnote does; empty where there is none."""
    right: float = field(default=0.0)
    """Right edge of the column the line appears in."""


class LineReader:
    """Reads the lines of page after page of one file; keeps the buffers and the names of fonts seen."""

    def __init__(self) -> None:
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

    def read(self, text_page: Any, page: int, width: float) -> list[Line]:
        """The lines of a page in the order of its content stream."""
        text, identical = _page_text(text_page)
        self._handle = text_page
        spans = [match.span() for match in _SEGMENT.finditer(text)]
        lines = [self._line(text[start:end], self._index(start, identical), page) for start, end in spans]
        cut = self._cut_at_gutter(spans, lines, identical, width)
        if cut:
            spans = cut
            lines = [self._line(text[start:end].rstrip(), self._index(start, identical), page) for start, end in spans]
        joined: list[Line] = []
        for line, (start, end) in zip(lines, spans, strict=True):
            line.hyphen = text.startswith(LINE_END_HYPHEN, end)
            if not joined or not _continues(joined[-1], line, start > 0 and text[start - 1] in _SPACES):
                joined.append(line)
        return joined

    def _index(self, position: int, identical: bool) -> int:
        """PDFium's number of the character at a position of the page's text."""
        return position if identical else pdfium.FPDFText_GetCharIndexFromTextIndex(self._handle, position)

    def _cut_at_gutter(self, spans: list[Span], lines: list[Line], identical: bool, width: float) -> list[Span]:
        """Cut the lines that PDFium has drawn together from two columns because the file gives them row by row.

        Returns:
            The new spans; none where the page is not of that kind.
        """
        wide = [n for n, line in enumerate(lines) if line.x1 - line.x0 > WIDE_LINE * width and not line.angle]
        if len(wide) < FEWEST_GUTTER_LINES:
            return []

        def starts_after_gap(number: int) -> list[int]:
            index = self._index(spans[number][0], identical)
            return [round(x / 4) for x in self._gaps(lines[number], index) if 0.3 * width < x < 0.75 * width]

        # Most pages are not; a few lines show it.
        sample = wide[:: max(1, len(wide) // GUTTER_SAMPLE)]
        if sum(1 for number in sample if starts_after_gap(number)) < 0.5 * len(sample):
            return []
        results = {number: starts_after_gap(number) for number in wide}
        place, count = Counter(x for starts in results.values() for x in starts).most_common(1)[0]
        if count < FEWEST_GUTTER_LINES or count < 0.5 * len(wide):
            return []
        cut: list[Span] = []
        for number, (start, end) in enumerate(spans):
            offset = 0
            if place in results.get(number, ()):
                x, y = 4.0 * place + 2, lines[number].y + 1
                offset = pdfium.FPDFText_GetCharIndexAtPos(self._handle, x, y, 6, 4) - self._index(start, identical)
            cut += [(start, start + offset), (start + offset, end)] if 0 < offset < end - start else [(start, end)]
        return cut

    def _gaps(self, line: Line, index: int) -> list[float]:
        """Where text begins again after a gap as wide as the one between columns."""
        left, top, right, bottom = (ctypes.c_double() for _ in range(4))
        starts: list[float] = []
        end = line.x0
        for number in range(_count_rects(self._handle, index, len(line.text))):
            pdfium.FPDFText_GetRect(self._handle, number, left, top, right, bottom)
            if left.value - end > GUTTER * line.size:
                starts.append(left.value)
            end = max(end, right.value)
        return starts

    def _baseline(self, index: int) -> float:
        _get_origin(self._handle, index, self._x_ref, self._y_ref)
        return self._y.value

    def _size(self, index: int) -> float:
        """Size of the type of a character on the page; leaves its direction in the matrix."""
        matrix = self._matrix
        _get_matrix(self._handle, index, self._matrix_ref)
        scale = matrix.d if matrix.c == 0 else math.hypot(matrix.c, matrix.d)
        return float(abs(_get_font_size(self._handle, index) * scale))

    def _font(self, index: int) -> tuple[str, bool]:
        """Family of the typeface, and whether it is bold."""
        _get_font_info(self._handle, index, self._name, 128, self._flags_ref)
        name = self._name.value
        known = self._families.get(name)
        if known is None:
            spelled = name.decode("utf-8", "replace")
            match = _FAMILY.match(spelled)
            family = match.group(1) if match else spelled
            if re.match(r"(?:CM|SF|LM)[A-Z]{1,4}$", family):
                family = family[:2]  # Computer Modern names every style as a family of its own
            heavy = pdfium.FPDFText_GetFontWeight(self._handle, index) >= BOLD_WEIGHT
            known = self._families[name] = (family, heavy or bool(_BOLD_NAME.search(spelled)))
        return known

    def _line(self, text: str, start: int, page: int) -> Line:
        length = len(text)
        last = start + length - 1
        size = self._size(start)
        y = self._baseline(start)
        x0 = self._x.value
        family, starts_bold = self._font(start)
        if length > SHORTEST_TYPICAL:
            # A big initial or a raised figure at the start says little about the line: two of three places decide.
            # Figures say little as well, which may be raised or lowered themselves.
            middle, third = (_letter(text, place) for place in (length // 2, length // 3))
            typical = start + middle
            middle_size = self._size(typical)
            if abs(middle_size - size) > 0.05 * size:
                third_size = self._size(start + third)
                if abs(third_size - middle_size) > 0.05 * middle_size:
                    typical = start + third
                size = self._size(typical)
                y = self._baseline(typical)
                family = self._font(typical)[0]
        matrix, angle = self._matrix, 0  # of the character last asked for its size
        if abs(matrix.b) > 0.1 * abs(matrix.a):
            angle = round(math.degrees(math.atan2(matrix.b, matrix.a)) / 90) % 4 * 90
        elif matrix.a < 0:
            angle = 180
        _get_loose_box(self._handle, last, self._box_ref)
        bold = starts_bold and self._font(last)[1]
        line = Line(text, page, x0, self._box.right, y, size, bold, family, angle, starts_bold)
        if angle:
            line.x1 = x0 + abs(self._box.bottom - y)
        elif _FIGURES.search(text) and _count_rects(self._handle, start, length) > 1:
            self._superscripts(line, start)
        return line

    def _superscripts(self, line: Line, start: int) -> None:
        """Write raised figures as superscripts where they are exponents, and take out the marks of notes."""
        text = line.text
        limit = line.y + RAISED * line.size
        parts: list[str] = []
        done = 0
        for match in _FIGURES.finditer(text):
            last = start + match.end() - 1
            if self._baseline(last) <= limit or self._size(last) > SUPERSCRIPT_SIZE * line.size:
                continue
            begin = match.end() - 1
            while begin > done and (text[begin - 1].isdigit() or text[begin - 1] in _SIGNS + ","):
                if self._baseline(start + begin - 1) <= limit:
                    break
                begin -= 1
            if not text[:begin].strip():
                line.mark = text[begin : match.end()]
                continue
            after = text[match.end() : match.end() + 1]
            parts += (text[done:begin], _raised(text[:begin], text[begin : match.end()], after))
            done = match.end()
        if parts:
            line.text = "".join((*parts, text[done:])).strip()


def _letter(text: str, place: int) -> int:
    """A place of a text, or where a figure appears there, of the next letter, if there is one."""
    if not text[place].isdigit():
        return place
    return next((number for number in range(place, len(text)) if text[number].isalpha()), place)


def _raised(before: str, raised: str, after: str) -> str:
    """What a raised figure stands for: an exponent, the mass of an isotope, or the mark of a note (nothing)."""
    if raised[0] in _SIGNS or re.search(r"(?:^|[^\d.,])10$", before):
        return raised.translate(_SUPERSCRIPTS)
    if _UNIT.search(before):
        return raised[0].translate(_SUPERSCRIPTS)  # what follows the 2 of km² is the mark of a note
    if before[-1:] in " (" and after.isalpha():
        return raised
    return ""


def _page_text(text_page: Any) -> tuple[str, bool]:
    """The text of a page, one Python character for each of PDFium's code units; whether both count alike."""
    count = pdfium.FPDFText_CountChars(text_page)
    if count <= 0:
        return "", True
    # PDFium may put in characters of its own, so that the text is longer than the list of characters.
    last = count - 1
    while last > 0 and (text_index := pdfium.FPDFText_GetTextIndexFromCharIndex(text_page, last)) < 0:
        last -= 1
    room = max(count, text_index + 1 if last > 0 else count) + 1
    buffer = (ctypes.c_ushort * room)()
    written = pdfium.FPDFText_GetText(text_page, 0, count, buffer)
    units = memoryview(buffer)[: max(0, written - 1)]
    text = bytes(units).decode("utf-16-le", "surrogatepass")
    if len(text) != len(units):
        text = "".join(map(chr, units))
    return text, text_index == count - 1 if last > 0 else True


def _continues(line: Line, piece: Line, spaced: bool) -> bool:
    """Append a piece to the line before it when it stands on the same baseline right after it, or is raised from it."""
    if piece.angle or line.angle or line.hyphen:
        return False
    size = max(line.size, piece.size)
    gap = piece.x0 - line.x1
    if (
        _FIGURES_ONLY.fullmatch(piece.text)
        and not spaced
        and piece.size <= SUPERSCRIPT_SIZE * line.size
        and RAISED * line.size < piece.y - line.y <= HIGHEST * line.size
        and -0.5 * size <= gap <= 0.15 * size
    ):
        line.text += _raised(line.text, piece.text, "")
        line.x1, line.hyphen = piece.x1, piece.hyphen
        return True
    if abs(piece.y - line.y) > SAME_BASELINE * size or not -0.5 * size <= gap <= WIDEST_SPACE * size:
        return False
    joint = " " if spaced or gap > 0.15 * size else ""
    if piece.size > 1.05 * line.size:
        line.y, line.size, line.family = piece.y, piece.size, piece.family
    before, rest = line.text + joint, piece.text.removeprefix(piece.mark)
    raised = _raised(before, piece.mark, rest[:1]) if piece.mark else ""
    line.text = f"{before}{raised}{rest.lstrip() if joint and not raised else rest}".rstrip()
    line.x1, line.hyphen, line.bold = piece.x1, piece.hyphen, line.bold and piece.bold
    return True


def upright(lines: list[Line], height: float) -> list[Line]:
    """Lines of a page written the way most of its text is; those in another direction (axis titles) are dropped."""
    weights: dict[int, int] = {}
    for line in lines:
        weights[line.angle] = weights.get(line.angle, 0) + len(line.text)
    main = max(weights, key=lambda angle: weights[angle], default=0)
    kept = [line for line in lines if line.angle == main]
    for line in kept if main else ():
        length = line.x1 - line.x0
        along, across = _turned(line, main, height)
        line.x0, line.x1, line.y, line.angle = along, along + length, across, 0
    return kept


def _turned(line: Line, angle: int, height: float) -> tuple[float, float]:
    """Place of the start of a line on a page that is written at an angle, seen upright."""
    if angle == 90:
        return line.y, height - line.x0
    if angle == 270:
        return height - line.y, line.x0
    return -line.x0, -line.y


MARGIN_ZONE = 0.13
"""Running heads and feet appear in this part of the page at its top and bottom."""
REPEATS = 3
"""A line that appears in the same place on so many pages is a running head, foot or tab."""
LONGEST_HEAD = 150
SHORTEST_COLUMN_LINE = 15
"""Shorter lines say nothing about columns."""
FEWEST_COLUMN_LINES = 4
NEIGHBOUR = 8
"""Lines in two columns appear beside each other when their baselines are about this many points apart, or less."""
MOST_NESTED_COLUMNS = 2
WIDE_SHARE = 0.75
"""A chunk that takes up this part of the width of all text goes over the columns."""
_NUMBER_ENDS = re.compile(r"^\W*(\d{1,4}|[ivxl]{1,7})\b|\b(\d{1,4}|[ivxl]{1,7})\W*$")
_LEADERS = re.compile(r"(?:\.\s?){5,}|…{2,}|\ufffd{3,}|_{5,}")
_DOTS = ("....", ". . .", "\ufffd\ufffd", "__", "……")
"""One of them appears in every text with leaders, and is found faster."""
CONTENTS_SHARE = 0.25
FEWEST_LEADERS = 4
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50}


@dataclass(slots=True)
class Page:
    """The lines of a page; ``lines`` shrinks and is put in order as the layout is worked out."""

    number: int
    """From 1."""
    width: float
    height: float
    lines: list[Line]


def drop_running_lines(pages: Sequence[Page]) -> None:
    """Take running heads and feet, page numbers, margin tabs and tables of contents off the pages, in place."""
    places = [[_place(line, page) for line in page.lines] for page in pages]
    edges = [_edge_lines(page) for page in pages]
    enough = max(2, min(REPEATS, len(places) - 1))
    counts = Counter(place for where in places for place in set(where))
    repeated = {place for place, count in counts.items() if count >= enough and place[0]}
    # Offsets that come again on many pages: those numbers are page numbers.
    differences = Counter(offset for edge in edges for offset in {one for line in edge for one in _offsets(line)})
    offsets = {offset for offset, count in differences.items() if count >= max(2, min(REPEATS, len(edges)))}
    slots = _head_slots(pages, edges)
    for page, edge, where in zip(pages, edges, places, strict=True):
        heads = {id(line) for line in edge if _slot(line, page) in slots or _offsets(line) & offsets}
        kept = [
            line
            for line, place in zip(page.lines, where, strict=True)
            if place not in repeated and id(line) not in heads
        ]
        # Dots lead from a title to a page number, as in a table of contents.
        page.lines = [
            line for line in kept if not (any(dots in line.text for dots in _DOTS) and _LEADERS.search(line.text))
        ]
        leaders = len(kept) - len(page.lines)
        if leaders >= FEWEST_LEADERS and leaders > CONTENTS_SHARE * len(kept):
            page.lines = []


Place = tuple[str, int, int]


def _place(line: Line, page: Page) -> Place:
    """Text and position; the text with its digits masked in the margins, where page numbers change it."""
    text = line.text
    if len(text) > LONGEST_HEAD:
        return "", 0, 0
    if not MARGIN_ZONE * page.height <= line.y <= (1 - MARGIN_ZONE) * page.height:
        text = mask_digits(text)
    return text, round(line.x0 / 4), round(line.y / 4)


def _edge_lines(page: Page) -> list[Line]:
    """The topmost and lowest lines in the margins of a page, all that share a baseline with them included."""
    low, high = MARGIN_ZONE * page.height, (1 - MARGIN_ZONE) * page.height
    top = max((line.y for line in page.lines if line.y > high), default=None)
    bottom = min((line.y for line in page.lines if line.y < low), default=None)
    return [
        line
        for line in page.lines
        if len(line.text) < LONGEST_HEAD
        and ((top is not None and line.y > top - 3) or (bottom is not None and line.y < bottom + 3))
    ]


def _offsets(line: Line) -> set[tuple[bool, int]]:
    """By how much the numbers at the ends of a line differ from the page's place in the file (roman apart)."""
    results = set()
    for match in _NUMBER_ENDS.finditer(line.text):
        token = match.group(1) or match.group(2)
        roman = not token.isdigit()
        results.add((roman, (_roman(token) if roman else int(token)) - line.page))
    return results


def _roman(text: str) -> int:
    values = [_ROMAN[char] for char in text]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def _slot(line: Line, page: Page) -> tuple[bool, int, int]:
    return line.y > page.height / 2, round(line.y / 3), round(line.size * 2)


def _head_slots(pages: Sequence[Page], edges: Sequence[list[Line]]) -> set[tuple[bool, int, int]]:
    """Baselines on which most pages have a short line set off from the text, whatever it says (section titles)."""
    counts: Counter[tuple[bool, int, int]] = Counter()
    for page, edge in zip(pages, edges, strict=True):
        for line in edge:
            nearest = min((abs(line.y - other.y) for other in page.lines if abs(line.y - other.y) > 3), default=0.0)
            if len(line.text) < LONGEST_HEAD / 2 and nearest > 2 * line.size:
                counts[_slot(line, page)] += 1
    return {slot for slot, count in counts.items() if count >= max(4, 0.5 * len(pages))}


def order_lines(page: Page) -> list[Line]:
    """The lines of a page in reading order, each with the right edge of its column set.

    Lines that follow each other in the file and on the page stay together; what is ordered are these chunks: columns
    from left to right, broken where something crosses from one into the other (a title, a wide figure's caption).
    """
    ordered: list[Line] = []
    for group in _groups(_chunks(page.lines)):
        lines = [line for chunk in group for line in chunk]
        edges: dict[float, float] = defaultdict(float)
        for line in lines:
            edges[round(line.size)] = max(edges[round(line.size)], line.x1)
        for line in lines:
            line.right = edges[round(line.size)]
        ordered += lines
    return ordered


Chunk = list[Line]


def _chunks(lines: Iterable[Line]) -> list[Chunk]:
    chunks: list[Chunk] = []
    for line in lines:
        last = chunks[-1][-1] if chunks else None
        follows = (
            last is not None
            and 0.3 * line.size < last.y - line.y < 2.2 * max(last.size, line.size)
            and line.x0 < last.x1
            and last.x0 < line.x1
            and abs(line.size - last.size) < 0.12 * last.size
        )
        if follows:
            chunks[-1].append(line)
        else:
            chunks.append([line])
    return chunks


def _groups(chunks: list[Chunk]) -> list[list[Chunk]]:
    """Chunks in reading order, grouped by column; what goes over the whole width divides the page into bands.

    Each band has its own columns, so that a table with many of them does not hide the two of the text above it.
    """
    if not chunks:
        return []
    edges = [(min(line.x0 for line in chunk), max(line.x1 for line in chunk)) for chunk in chunks]
    wide = WIDE_SHARE * (max(right for _, right in edges) - min(left for left, _ in edges))
    is_wide = {id(chunk): right - left > wide for chunk, (left, right) in zip(chunks, edges, strict=True)}
    groups: list[list[Chunk]] = [[]]
    band: list[Chunk] = []
    for chunk in [*_downwards(chunks), None]:
        if chunk is not None and not is_wide[id(chunk)]:
            band.append(chunk)
            continue
        columns = _columns(band, MOST_NESTED_COLUMNS)
        if len(columns) > 1:
            groups += [*columns, []]
        else:
            groups[-1] += [piece for column in columns for piece in column]
        if chunk is not None:
            groups[-1].append(chunk)
        band = []
    return groups


def _columns(chunks: list[Chunk], depth: int) -> list[list[Chunk]]:
    """Chunks in reading order, grouped by the column they appear in."""
    gutter = _gutter([line for chunk in chunks for line in chunk]) if depth else None
    if gutter is None:
        return [_downwards(chunks)] if chunks else []
    groups: list[list[Chunk]] = []
    left: list[Chunk] = []
    right: list[Chunk] = []
    # A chunk in which only some lines cross the gutter is cut into lines, so that the others find their column.
    pieces = [piece for chunk in chunks for piece in _cut_at(chunk, gutter)]
    for chunk in _downwards(pieces):
        if min(line.x0 for line in chunk) >= gutter - 3:
            right.append(chunk)
        elif max(line.x1 for line in chunk) <= gutter + 3:
            left.append(chunk)
        else:
            groups += [*_columns(left, depth - 1), *_columns(right, depth - 1), [chunk]]
            left, right = [], []
    return [*groups, *_columns(left, depth - 1), *_columns(right, depth - 1)]


def _cut_at(chunk: Chunk, gutter: float) -> list[Chunk]:
    crossing = [line.x0 < gutter - 3 and line.x1 > gutter + 3 for line in chunk]
    if all(crossing) or not any(crossing):
        return [chunk]
    if sum(crossing) * 2 > len(chunk):
        return [chunk]  # a wide paragraph with a short last line
    return [[line] for line in chunk]


def _downwards(chunks: list[Chunk]) -> list[Chunk]:
    return sorted(chunks, key=lambda chunk: (-round((chunk[0].y + 0.8 * chunk[0].size) / 4), chunk[0].x0))


def _gutter(lines: list[Line]) -> float | None:
    """Left edge of the right-hand column, where the lines appear in two columns side by side."""
    long = [line for line in lines if len(line.text) >= SHORTEST_COLUMN_LINE]
    if len(long) < 2 * FEWEST_COLUMN_LINES:
        return None
    leftmost, rightmost = min(line.x0 for line in long), max(line.x1 for line in long)
    starts = Counter(round(line.x0 / 3) * 3 for line in long)
    best: tuple[int, float] | None = None
    for start, count in starts.items():
        share = (start - leftmost) / max(1.0, rightmost - leftmost)
        if count < FEWEST_COLUMN_LINES or not 0.25 < share < 0.8:
            continue
        side_by_side = _side_by_side(long, start)
        if side_by_side and (best is None or side_by_side > best[0]):
            best = (side_by_side, float(start))
    return best[1] if best else None


def _side_by_side(lines: list[Line], start: float) -> int:
    """How many lines would have a neighbour in the other column, if the right column began at ``start``; 0: too few.

    Lines that cross from one into the other do not count against it: a wide caption between the columns is no reason
    to read the columns above and below it as one.
    """
    left = {round(line.y / NEIGHBOUR) for line in lines if line.x1 <= start + 3}
    right = {round(line.y / NEIGHBOUR) for line in lines if line.x0 >= start - 3}
    both = min(_beside(left, right), _beside(right, left))
    return both if both >= FEWEST_COLUMN_LINES else 0


def _beside(rows: set[int], others: set[int]) -> int:
    return sum(1 for row in rows if row in others or row - 1 in others or row + 1 in others)
