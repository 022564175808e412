"""Draw a page of a PDF file as a picture, with its text and the place of every character in the picture."""

import ctypes
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

from climassay.corpus.readers.cleaning import LINE_END_HYPHEN
from climassay.errors import DocumentError
from climassay.reporting.highlighting import letters

LONGEST_SIDE = 1500
"""Pixels of the picture's longer side: about 130 to the inch of a printed page."""
MOST_CHARACTERS = 20_000
"""Characters of a page whose places are looked up; a printed page has some thousands."""
MOST_OBJECTS = 500_000
"""Lines, pictures and pieces of text that a page may be drawn from."""
CONTEXT = 60
"""Letters around words by which they are told from the same words elsewhere on a page."""
SHORTEST_PART = 8
"""Letters of a part of words that were set apart, as by the number of a note; fewer may be chance."""
LEAST_FOUND = 0.8
"""Share of the letters that must be found in parts."""
LONGEST_GAP = 1500
"""Letters that may stand between the parts, as in a figure's caption or a column beside."""
EDGE = 20
"""Letters on either side of where words begin or end, by which those are found of which the rest is overleaf."""
SAME_LINE = 0.5
"""Characters stand in one line where their boxes share this part of the lower one's height."""

_PLAIN = str.maketrans({"\r": " ", "\x02": "-", LINE_END_HYPHEN: "-"})

Box = tuple[int, int, int, int]
"""Left, top, right and bottom, in pixels of the picture."""


@dataclass(frozen=True, slots=True)
class DrawnPage:
    """A page as it is shown."""

    number: int
    """From 1."""
    pages: int
    """Pages of the file."""
    width: int
    """Pixels of the picture."""
    height: int
    png: bytes
    text: str
    """As the file holds it, lines divided, hyphens and ligatures as they are printed."""
    boxes: tuple[Box, ...]
    """For each character of the text where it stands; of no width and height where it is not printed."""

    def find(self, words: str, before: str = "", after: str = "") -> tuple[tuple[int, int], ...]:
        """Where words stand in the text, whatever hyphens, ligatures and line ends they are set with.

        Words that are not there in one piece are found in parts where something small stands between them, as a note's
        number; of words that go on overleaf, or come from the page before, those are found that are here.

        Returns:
            Beginning and end of each part, in order; none where the words are not on the page.
        """
        (wanted, whence), (have, places) = letters(words), letters(self.text)
        if not wanted:
            return ()
        closing = words[whence[-1] + 1 :]

        def spans(found: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
            ends = [(places[start], places[end - 1] + 1) for start, end in found]
            return tuple((start, end + _alike(closing, self.text[end:])) for start, end in ends)

        lead, tail = letters(before)[0][-CONTEXT:], letters(after)[0][:CONTEXT]
        for first, last in ((lead, tail), (lead, ""), ("", tail), ("", "")):
            place = have.find(first + wanted + last)
            if place >= 0:
                start = place + len(first)
                return spans([(start, start + len(wanted))])
        return spans(_in_parts(have, wanted) or _over_an_edge(have, wanted, lead, tail))

    def rectangles(self, start: int, end: int) -> Iterator[Box]:
        """The places of some characters of the text, joined to one rectangle a line."""
        line: Box | None = None
        for left, top, right, bottom in self.boxes[start:end]:
            if right <= left or bottom <= top:
                continue
            if line is not None and _in_line(line, top, bottom) and left >= line[0]:
                line = (line[0], min(line[1], top), max(line[2], right), max(line[3], bottom))
                continue
            if line is not None:
                yield line
            line = (left, top, right, bottom)
        if line is not None:
            yield line


def _in_parts(have: str, wanted: str) -> list[tuple[int, int]]:
    """Beginnings and ends of the parts of wanted letters, near each other and in order; none unless most are there."""
    matcher = SequenceMatcher(None, have, wanted, autojunk=False)
    anchor = matcher.find_longest_match()
    begin = max(0, anchor.a - anchor.b - LONGEST_GAP)
    matcher.set_seq1(have[begin : anchor.a + len(wanted) - anchor.b + LONGEST_GAP])
    parts = [part for part in matcher.get_matching_blocks() if part.size >= SHORTEST_PART]
    if sum(part.size for part in parts) < LEAST_FOUND * len(wanted):
        return []
    return [(begin + part.a, begin + part.a + part.size) for part in parts]


def _over_an_edge(have: str, wanted: str, lead: str, tail: str) -> list[tuple[int, int]]:
    """Beginning and end of the wanted letters that end a page, or begin one; none unless what is around them fits."""
    lead, tail = lead[-EDGE:], tail[:EDGE]
    first, last = lead + wanted[: 2 * EDGE - len(lead)], wanted[len(tail) - 2 * EDGE :] + tail
    if (place := have.rfind(first)) >= 0:
        start = place + len(lead)
        return [(start, start + _alike(have[start:], wanted))]
    if (place := have.find(last)) >= 0:
        end = place + len(last) - len(tail)
        return [(end - _alike(have[:end][::-1], wanted[::-1]), end)]
    return []


def _alike(one: str, other: str) -> int:
    """Characters at the beginning of two texts that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (first, second) in pairs if first != second), min(len(one), len(other)))


def _in_line(line: Box, top: int, bottom: int) -> bool:
    shared = min(line[3], bottom) - max(line[1], top)
    return shared >= SAME_LINE * min(line[3] - line[1], bottom - top)


def draw_page(data: bytes, number: int) -> DrawnPage:
    """Draw a page.

    Args:
        data: The PDF file.
        number: Number of the page, from 1.

    Raises:
        DocumentError: The file cannot be read, has no such page, or more is set on the page than on any printed one.
    """
    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError:
        raise DocumentError("The file is damaged or encrypted.") from None
    try:
        if not 1 <= number <= len(pdf):
            raise DocumentError(f"The file has {len(pdf)} pages.")
        try:
            page = pdf[number - 1]
        except pypdfium2.PdfiumError:
            raise DocumentError(f"Page {number} is damaged.") from None
        if pdfium.FPDFPage_CountObjects(page.raw) > MOST_OBJECTS:
            raise DocumentError(f"More is set on page {number} than can be drawn.")
        size = page.get_size()
        scale = LONGEST_SIDE / max(*size, 1.0)
        bitmap = page.render(scale=scale, rev_byteorder=True)
        pixels = bitmap.to_numpy()[:, :, :3] if bitmap.n_channels > 3 else bitmap.to_numpy()
        height, width = pixels.shape[:2]
        text, boxes = _characters(page.raw, width, height)
        return DrawnPage(number, len(pdf), width, height, png_of(pixels), text, boxes)
    finally:
        pdf.close()


def _characters(page: object, width: int, height: int) -> tuple[str, tuple[Box, ...]]:
    text_page = pdfium.FPDFText_LoadPage(page)
    if not text_page:
        return "", ()
    try:
        count = min(pdfium.FPDFText_CountChars(text_page), MOST_CHARACTERS)
        codes = [pdfium.FPDFText_GetUnicode(text_page, place) for place in range(max(count, 0))]
        box, x, y = pdfium.FS_RECTF(), ctypes.c_int(), ctypes.c_int()
        boxes: list[Box] = []
        for place in range(len(codes)):
            if not pdfium.FPDFText_GetLooseCharBox(text_page, place, box):
                boxes.append((0, 0, 0, 0))
                continue
            corners = []
            for across, up in ((box.left, box.top), (box.right, box.bottom)):
                pdfium.FPDF_PageToDevice(page, 0, 0, width, height, 0, across, up, x, y)
                corners.append((min(max(x.value, 0), width), min(max(y.value, 0), height)))
            # On a turned page the corners change places.
            (left, right), (top, bottom) = (sorted(pair) for pair in zip(*corners, strict=True))
            boxes.append((left, top, right, bottom))
    finally:
        pdfium.FPDFText_ClosePage(text_page)
    # Halves of a character and what is none would not survive their way to a browser.
    text = "".join(chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " " for code in codes)
    return text.translate(_PLAIN), tuple(boxes)


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """A picture as a PNG file.

    Args:
        pixels: Shape [height, width] or [height, width, 1] for grey, [height, width, 3] for red, green and blue.
    """
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    colour = 2 if rows.shape[1] == 3 * width else 0
    # Each row less the one above it: most of a page is white or goes straight down, and becomes zeros.
    lines = np.empty((height, rows.shape[1] + 1), np.uint8)
    lines[:, 0] = 2
    lines[:, 1:] = rows
    lines[1:, 1:] -= rows[:-1]

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
