"""Read PDF files into clean paragraphs with page numbers and headings, and draw their pages as pictures with text."""

import ctypes
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath
from statistics import median

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

from climassay.corpus.documents import (
    Block,
    Document,
    LeftOut,
    PageCallback,
    ReadOptions,
    ReadResult,
    Skipped,
    full_title,
)
from climassay.corpus.readers.cleaning import LINE_END_HYPHEN, clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.pdf_layout import drop_running_lines, order_lines
from climassay.corpus.readers.pdf_line_numbers import drop_line_numbers
from climassay.corpus.readers.pdf_lines import LineReader, Omitted, Page
from climassay.corpus.readers.pdf_paragraphs import (
    CONTENTS,
    REFERENCES,
    BlockBuilder,
    build_paragraphs,
    classify,
    find_style,
    with_tables,
)
from climassay.corpus.readers.pdf_tables import find_tables
from climassay.errors import DocumentError
from climassay.reporting.marking import letters

HEADER_WITHIN = 1024
"""A PDF file shows its mark within so many bytes."""
TRAILER_WITHIN = 2048
LONGEST_TITLE = 200
MOST_TEXTS = 50_000
"""Pieces of text that a page may be set from: ten times those of a page full of figures. More would take minutes."""
MOST_CHARACTERS = 1_000_000
"""Characters of a page, however its text is set."""
_IMAGES = frozenset({pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM})
_OPENING_PAGES = 4
"""Pages that may say how a document is to be cited."""
_TITLE_WORD = re.compile(r"[^\W\d_]{4,}")
_CHAPTER_NUMBER = re.compile(r"^\d{1,2}\s+(?=[A-Z])")
_NO_TITLE = re.compile(
    r"(?:untitled|document\d*|microsoft word - .*|.*\.(?:docx?|pdf|indd|exe|txt|html?|tex|dvi|rtf|pptx?|qxp|pmd))\s*",
    re.IGNORECASE,
)


@reader("pdf", ".pdf", magic=b"%PDF-", paged=True)
def read_pdf(data: bytes, source: str, options: ReadOptions, on_page: PageCallback | None = None) -> ReadResult:
    """Read a PDF file.

    Running heads and feet, page numbers, tables of contents, captions, and the residue of figures and tables are left
    out (captions on request not); so are lists of references. Footnotes follow the paragraph they hang on.

    Raises:
        DocumentError: Not a PDF, encrypted, damaged beyond reading, without pages, or made of images only.
    """
    pdf = _open(data, source)
    omitted: Omitted = Counter()
    try:
        pages, skipped = _read_pages(pdf, source, on_page, omitted)
        metadata_title, *facts = (clean(pdf.get_metadata_value(name) or "") for name in ("Title", "Subject", "Author"))
    finally:
        pdf.close()
    if not any(page.lines or page.tables for page in pages):
        raise DocumentError(skipped[0].reason if skipped else f"{source} has no text on its pages.")
    if b"%%EOF" not in data[-TRAILER_WITHIN:]:
        skipped.append(Skipped(source, f"{source} seems truncated (its end is missing); {len(pages)} pages were read."))
    drop_line_numbers(pages, omitted)
    drop_running_lines(pages, omitted)
    stem = PurePath(source).stem
    opening = " ".join(line.text for page in pages[:_OPENING_PAGES] for line in page.lines)
    own_title = options.title or _title(metadata_title, pages) or stem
    blocks: tuple[Block, ...] = ()
    if ordered := [(page, order_lines(page)) for page in pages if page.lines or page.tables]:
        # A document may be nothing but tables.
        columns = [lines for _, lines in ordered if lines] or [page.tables[0].lines for page, _ in ordered]
        style = find_style(columns, median(page.height for page in pages))
        builder = BlockBuilder(own_title, style, options, omitted)
        for page, lines in ordered:
            paragraphs = build_paragraphs(lines, style)
            classify(paragraphs, style)
            for paragraph in with_tables(paragraphs, page.tables):
                builder.add(paragraph)
        blocks = tuple(builder.blocks())
    if not blocks:
        raise DocumentError(f"{source} has no running text on its pages (only fragments as in figures and tables).")
    title = options.title or full_title(own_title, (*facts, stem, opening))
    document = Document(document_id(data), title, source, blocks, media="pdf", left_out=tuple(_left_out(omitted)))
    return ReadResult(source, (document,), tuple(skipped))


def _left_out(omitted: Omitted) -> Iterator[LeftOut]:
    """Yield one entry for each kind of block that was left out, the most frequent kind first."""
    totals: Counter[str] = Counter()
    for (kind, _), count in omitted.items():
        totals[kind] += count
    for kind, total in totals.most_common():
        if total:
            yield LeftOut(kind, total, tuple(sorted(page for (name, page), n in omitted.items() if n and name == kind)))


def _open(data: bytes, source: str) -> pypdfium2.PdfDocument:
    start = data[:HEADER_WITHIN]
    if b"%PDF-" not in start:
        kind = "a web page" if re.search(rb"<(?:!doctype|html)", start, re.IGNORECASE) else "another kind of file"
        raise DocumentError(f"{source} is not a PDF file; by its content it is {kind}.")
    try:
        pdf = pypdfium2.PdfDocument(data)
        count = len(pdf)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower():
            raise DocumentError(f"{source} is encrypted; save a copy without its password and read that.") from None
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_SECURITY:
            raise DocumentError(f"{source} is encrypted in a way that cannot be read.") from None
        raise DocumentError(f"{source} is damaged or truncated; download it again.") from None
    if count == 0:
        pdf.close()
        raise DocumentError(f"{source} has no pages (damaged or truncated).")
    return pdf


def _read_pages(
    pdf: pypdfium2.PdfDocument, source: str, on_page: PageCallback | None, omitted: Omitted
) -> tuple[list[Page], list[Skipped]]:
    """The lines of every page, and which pages gave none although there is something on them."""
    reader = LineReader(omitted)
    pages: list[Page] = []
    images: list[int] = []
    broken: list[int] = []
    crowded: list[int] = []
    for number in range(1, len(pdf) + 1):
        if on_page is not None:
            on_page(number, len(pdf))
        page = pdfium.FPDF_LoadPage(pdf.raw, number - 1)
        if not page:
            broken.append(number)
            continue
        # More pieces of text than a page for people has; counted before any is read.
        if _kinds(page, MOST_TEXTS).count(pdfium.FPDF_PAGEOBJ_TEXT) > MOST_TEXTS:
            crowded.append(number)
            pdfium.FPDF_ClosePage(page)
            continue
        text_page = pdfium.FPDFText_LoadPage(page)
        width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
        if pdfium.FPDFPage_GetRotation(page) % 2:
            width, height = height, width
        if text_page and pdfium.FPDFText_CountChars(text_page) > MOST_CHARACTERS:
            crowded.append(number)
        elif text_page:
            for turned in reader.read(page, text_page, number):
                turned.tables, turned.lines = find_tables(turned.lines, reader.split)
                pages.append(turned)
        if not pages or pages[-1].number != number:
            pages.append(Page(number, width, height, []))
            if number not in crowded and _IMAGES.intersection(_kinds(page)):
                images.append(number)
        pdfium.FPDFText_ClosePage(text_page)
        pdfium.FPDF_ClosePage(page)
    for kind, numbers in (("pages of images", images), ("damaged pages", broken), ("overfull pages", crowded)):
        omitted.update((kind, number) for number in numbers)
    return pages, list(_skipped(source, images, broken, crowded, len(pdf)))


def _kinds(page: object, least: int = 0) -> list[int]:
    """Kinds of a page's objects; none are looked at where there are no more than ``least``."""
    count = pdfium.FPDFPage_CountObjects(page)
    if count <= least:
        return []
    return [pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, number)) for number in range(count)]


def _skipped(source: str, images: list[int], broken: list[int], crowded: list[int], count: int) -> Iterator[Skipped]:
    if len(images) == count:
        yield Skipped(source, f"{source} holds images of pages without text (a scan); put it through text recognition.")
    elif images:
        yield Skipped(source, f"There are only images on {len(images)} of {count} pages: {_pages(images)}.")
    if broken:
        yield Skipped(source, f"There is damage on {_pages(broken)}.")
    if crowded:
        yield Skipped(source, f"There is more than any page holds on {_pages(crowded)}.")


def _pages(numbers: list[int]) -> str:
    listed = ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
    return f"{'page' if len(numbers) == 1 else 'pages'} {listed}"


def _title(metadata: str, pages: Sequence[Page]) -> str:
    """The title the file gives itself, else the largest type on its first page with words."""
    if len(metadata) > 3 and not _NO_TITLE.fullmatch(metadata) and any(char.isalpha() for char in metadata):
        return metadata

    def may_be_title(text: str) -> bool:
        return _TITLE_WORD.search(text) is not None and not (REFERENCES.fullmatch(text) or CONTENTS.fullmatch(text))

    worded = ([line for line in page.lines if may_be_title(line.text)] for page in pages)
    first = next((lines for lines in worded if lines), [])
    if not first:
        return ""
    largest = max(line.size for line in first)
    lines = [line for line in first if line.size > 0.95 * largest]
    title = _CHAPTER_NUMBER.sub("", clean(" ".join(line.text for line in lines)))
    return title if len(title) <= LONGEST_TITLE else clean(lines[0].text)


LONGEST_SIDE = 1500
"""Pixels of the picture's longer side: about 130 to the inch of a printed page."""
MOST_PLACED = 20_000
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
            if line is not None:
                shared = min(line[3], bottom) - max(line[1], top)
                if left >= line[0] and shared >= SAME_LINE * min(line[3] - line[1], bottom - top):
                    line = (line[0], min(line[1], top), max(line[2], right), max(line[3], bottom))
                    continue
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
            raise DocumentError(f"Page {number} has too much on it to be drawn.")
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
        count = min(pdfium.FPDFText_CountChars(text_page), MOST_PLACED)
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
