"""Read PDF files into clean paragraphs with pages and headings, and render their pages with character positions."""

import ctypes
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import PurePath
from statistics import median

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

from climassay.corpus.documents import (
    Block,
    Document,
    OmittedParts,
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
from climassay.corpus.readers.pdf_lines import LineReader, OmittedCounts, PdfPage
from climassay.corpus.readers.pdf_paragraphs import (
    CONTENTS,
    REFERENCES,
    BlockBuilder,
    build_paragraphs,
    classify_paragraphs,
    find_style,
    insert_tables,
)
from climassay.corpus.readers.pdf_tables import find_tables
from climassay.errors import DocumentError
from climassay.reporting.marking import letters

HEADER_BYTES = 1024
"""Number of bytes at the beginning of a file that must contain the PDF signature."""
TRAILER_BYTES = 2048
MAX_TITLE_CHARACTERS = 200
MAX_TEXT_OBJECTS = 50_000
"""Maximum number of text objects on a page, ten times as many as on a page full of numbers. Reading a larger number
would take minutes."""
MAX_CHARACTERS = 1_000_000
"""Maximum number of characters of a page."""
_IMAGE_OBJECT_TYPES = frozenset({pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM})
_OPENING_PAGES = 4
"""Number of first pages in which a recommended citation of the document is searched for."""
_TITLE_WORD = re.compile(r"[^\W\d_]{4,}")
_CHAPTER_NUMBER = re.compile(r"^\d{1,2}\s+(?=[A-Z])")
_NO_TITLE = re.compile(
    r"(?:untitled.*|document\d*|(?:microsoft (?:word|powerpoint|excel) - |powerpoint presentation).*|"
    r"(?:slide|layout|page|cover|front\s?matter|chapter)\s?\d*|print|\(?anonymous\)?|unknown|no title|title|"
    r".*\.(?:docx?|pdf|ind[db]|qxd|exe|txt|html?|tex|dvi|rtf|pptx?|qxp|pmd))\s*",
    re.IGNORECASE,
)


@reader("pdf", ".pdf", magic=b"%PDF-", reports_pages=True)
def read_pdf(data: bytes, source: str, options: ReadOptions, on_page: PageCallback | None = None) -> ReadResult:
    """Read a PDF file.

    Running heads and feet, page numbers, tables of contents and labels of figures are omitted, and so are captions and
    references unless ``options`` include them. Footnotes follow the paragraph that refers to them.

    Raises:
        DocumentError: The file is not a PDF, is encrypted or damaged, or has no pages or no running text.
    """
    pdf = _open_pdf(data, source)
    omitted_counts: OmittedCounts = Counter()
    try:
        pages, skipped_pages = _read_pages(pdf, source, on_page, omitted_counts)
        metadata_title, *other_metadata = (
            clean(pdf.get_metadata_value(name) or "") for name in ("Title", "Subject", "Author")
        )
    finally:
        pdf.close()
    if not any(page.lines or page.tables for page in pages):
        raise DocumentError(skipped_pages[0].reason if skipped_pages else f"{source} has no text on its pages.")
    if b"%%EOF" not in data[-TRAILER_BYTES:]:
        skipped_pages.append(
            Skipped(source, f"{source} seems truncated (its end is missing); {len(pages)} pages were read.")
        )
    drop_line_numbers(pages, omitted_counts)
    drop_running_lines(pages, omitted_counts)
    stem = PurePath(source).stem
    opening_text = " ".join(line.text for page in pages[:_OPENING_PAGES] for line in page.lines)
    own_title = options.title or _find_title(metadata_title, pages) or stem
    blocks: tuple[Block, ...] = ()
    if lines_by_page := [(page, order_lines(page)) for page in pages if page.lines or page.tables]:
        # A document may be nothing but tables.
        columns = [lines for _, lines in lines_by_page if lines] or [page.tables[0].lines for page, _ in lines_by_page]
        style = find_style(columns, median(page.height for page in pages))
        builder = BlockBuilder(own_title, style, options, omitted_counts)
        for page, lines in lines_by_page:
            paragraphs = build_paragraphs(lines, style)
            classify_paragraphs(paragraphs, style)
            for paragraph in insert_tables(paragraphs, page.tables):
                builder.add(paragraph)
        blocks = tuple(builder.blocks())
    if not blocks:
        raise DocumentError(f"{source} has no running text on its pages (only fragments as in figures and tables).")
    title = options.title or full_title(own_title, (*other_metadata, stem, opening_text))
    document = Document(
        document_id(data), title, source, blocks, media="pdf", omitted_parts=tuple(_list_omitted_parts(omitted_counts))
    )
    return ReadResult(source, (document,), tuple(skipped_pages))


def _list_omitted_parts(omitted_counts: OmittedCounts) -> Iterator[OmittedParts]:
    totals: Counter[str] = Counter()
    for (kind, _), count in omitted_counts.items():
        totals[kind] += count
    for kind, total in totals.most_common():
        if total:
            yield OmittedParts(
                kind, total, tuple(sorted(page for (name, page), n in omitted_counts.items() if n and name == kind))
            )


def _open_pdf(data: bytes, source: str) -> pypdfium2.PdfDocument:
    start = data[:HEADER_BYTES]
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
    pdf: pypdfium2.PdfDocument, source: str, on_page: PageCallback | None, omitted_counts: OmittedCounts
) -> tuple[list[PdfPage], list[Skipped]]:
    reader = LineReader(omitted_counts)
    pages: list[PdfPage] = []
    image_pages: list[int] = []
    damaged_pages: list[int] = []
    overfull_pages: list[int] = []
    for number in range(1, len(pdf) + 1):
        if on_page is not None:
            on_page(number, len(pdf))
        page = pdfium.FPDF_LoadPage(pdf.raw, number - 1)
        if not page:
            damaged_pages.append(number)
            continue
        # Counted before any text is read, since reading so many objects would take minutes.
        if _list_object_types(page, MAX_TEXT_OBJECTS).count(pdfium.FPDF_PAGEOBJ_TEXT) > MAX_TEXT_OBJECTS:
            overfull_pages.append(number)
            pdfium.FPDF_ClosePage(page)
            continue
        text_page = pdfium.FPDFText_LoadPage(page)
        width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
        if pdfium.FPDFPage_GetRotation(page) % 2:
            width, height = height, width
        if text_page and pdfium.FPDFText_CountChars(text_page) > MAX_CHARACTERS:
            overfull_pages.append(number)
        elif text_page:
            for turned_page in reader.read(page, text_page, number):
                turned_page.tables, turned_page.lines = find_tables(turned_page.lines, reader.split)
                pages.append(turned_page)
        if not pages or pages[-1].number != number:
            pages.append(PdfPage(number, width, height, []))
            if number not in overfull_pages and _IMAGE_OBJECT_TYPES.intersection(_list_object_types(page)):
                image_pages.append(number)
        pdfium.FPDFText_ClosePage(text_page)
        pdfium.FPDF_ClosePage(page)
    for kind, numbers in (
        ("pages of images", image_pages),
        ("damaged pages", damaged_pages),
        ("overfull pages", overfull_pages),
    ):
        omitted_counts.update((kind, number) for number in numbers)
    return pages, list(_describe_skipped_pages(source, image_pages, damaged_pages, overfull_pages, len(pdf)))


def _list_object_types(page: object, min_count: int = 0) -> list[int]:
    """Return the types of a page's objects; an empty list if there are at most ``min_count`` objects."""
    count = pdfium.FPDFPage_CountObjects(page)
    if count <= min_count:
        return []
    return [pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, number)) for number in range(count)]


def _describe_skipped_pages(
    source: str, image_pages: list[int], damaged_pages: list[int], overfull_pages: list[int], n_pages: int
) -> Iterator[Skipped]:
    if len(image_pages) == n_pages:
        yield Skipped(source, f"{source} holds images of pages without text (a scan); put it through text recognition.")
    elif image_pages:
        yield Skipped(
            source,
            f"There are only images on {len(image_pages)} of {n_pages} pages: {_format_page_numbers(image_pages)}.",
        )
    if damaged_pages:
        yield Skipped(source, f"There is damage on {_format_page_numbers(damaged_pages)}.")
    if overfull_pages:
        yield Skipped(source, f"There is more than any page holds on {_format_page_numbers(overfull_pages)}.")


def _format_page_numbers(numbers: list[int]) -> str:
    number_list = ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
    return f"{'page' if len(numbers) == 1 else 'pages'} {number_list}"


def _find_title(metadata: str, pages: Sequence[PdfPage]) -> str:
    """Return the title in the metadata if it is usable; otherwise the largest text on the first page that has words."""
    if len(metadata) > 3 and not _NO_TITLE.fullmatch(metadata) and any(char.isalpha() for char in metadata):
        return metadata

    def may_be_title(text: str) -> bool:
        return _TITLE_WORD.search(text) is not None and not (REFERENCES.fullmatch(text) or CONTENTS.fullmatch(text))

    lines_by_page = ([line for line in page.lines if may_be_title(line.text)] for page in pages)
    first_lines = next((lines for lines in lines_by_page if lines), [])
    if not first_lines:
        return ""
    max_size = max(line.size for line in first_lines)
    lines = [line for line in first_lines if line.size > 0.95 * max_size]
    title = _CHAPTER_NUMBER.sub("", clean(" ".join(line.text for line in lines)))
    return title if len(title) <= MAX_TITLE_CHARACTERS else clean(lines[0].text)


MAX_SIDE_PIXELS = 1500
"""Length of the longer side of the image, in pixels (about 130 pixels per inch of a printed page)."""
MAX_BOXES = 20_000
"""Maximum number of characters of a page whose positions are computed; printed pages have several thousand."""
MAX_OBJECTS = 500_000
"""Maximum number of lines, images and text objects of a page that can be rendered."""
CONTEXT_LETTERS = 60
"""Number of letters before and after a quotation that are compared if the quotation occurs several times on the page.
"""
MIN_PART_LETTERS = 8
"""Minimum number of letters in a matching part of a quotation. Shorter matches are ignored as coincidences."""
MIN_MATCHED_SHARE = 0.8
"""Minimum fraction of a quotation's letters that the matching parts must cover."""
MAX_GAP_LETTERS = 1500
"""Maximum number of letters between matching parts; a figure's caption or another column may separate them."""
EDGE_LETTERS = 20
"""Number of letters on each side of a page break that are used to locate a quotation across the break."""
MIN_LINE_OVERLAP = 0.5
"""Minimum vertical overlap of two characters on one line, as a fraction of the height of the smaller one."""

_CHARACTER_REPLACEMENTS = str.maketrans({"\r": " ", "\x02": "-", LINE_END_HYPHEN: "-"})

Box = tuple[int, int, int, int]
"""Left, top, right and bottom edges, in pixels of the image."""


@dataclass(frozen=True, slots=True)
class DrawnPage:
    """Rendered page with its text and the positions of its characters."""

    number: int
    """Page number, from 1."""
    pages: int
    """Number of pages of the file."""
    width: int
    """Width of the image in pixels."""
    height: int
    png: bytes
    text: str
    """Text as the file stores it, with line breaks, hyphens and ligatures."""
    boxes: tuple[Box, ...]
    """Box of each character of the text; all edges are 0 for characters without a position."""

    def find(self, words: str, before: str = "", after: str = "") -> tuple[tuple[int, int], ...]:
        """Locate a quotation in the page's text, ignoring hyphens, ligatures and line breaks.

        A quotation interrupted by other text, such as a note number, is located in parts. If it continues on another
        page, the part on this page is located.

        Args:
            words: The quotation.
            before: Text before the quotation, to choose among several occurrences.
            after: Text after the quotation.

        Returns:
            Start and end index of each part, in order; empty if the quotation is not on the page.
        """
        (quote_letters, quote_indices), (page_letters, page_indices) = letters(words), letters(self.text)
        if not quote_letters:
            return ()
        closing_punctuation = words[quote_indices[-1] + 1 :]

        def to_text_spans(parts: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
            spans = [(page_indices[start], page_indices[end - 1] + 1) for start, end in parts]
            return tuple(
                (start, end + _count_common_prefix(closing_punctuation, self.text[end:])) for start, end in spans
            )

        letters_before, letters_after = letters(before)[0][-CONTEXT_LETTERS:], letters(after)[0][:CONTEXT_LETTERS]
        for context_before, context_after in (
            (letters_before, letters_after),
            (letters_before, ""),
            ("", letters_after),
            ("", ""),
        ):
            index = page_letters.find(context_before + quote_letters + context_after)
            if index >= 0:
                start = index + len(context_before)
                return to_text_spans([(start, start + len(quote_letters))])
        return to_text_spans(
            _find_parts(page_letters, quote_letters)
            or _find_at_edge(page_letters, quote_letters, letters_before, letters_after)
        )

    def rectangles(self, start: int, end: int) -> Iterator[Box]:
        """Yield one rectangle per line for a range of characters in the text."""
        line: Box | None = None
        for left, top, right, bottom in self.boxes[start:end]:
            if right <= left or bottom <= top:
                continue
            if line is not None:
                shared_height = min(line[3], bottom) - max(line[1], top)
                if left >= line[0] and shared_height >= MIN_LINE_OVERLAP * min(line[3] - line[1], bottom - top):
                    line = (line[0], min(line[1], top), max(line[2], right), max(line[3], bottom))
                    continue
                yield line
            line = (left, top, right, bottom)
        if line is not None:
            yield line


def _find_parts(page_letters: str, quote_letters: str) -> list[tuple[int, int]]:
    """Return the page spans, in letters, of a quotation's matching parts; empty if they cover too little of it."""
    matcher = SequenceMatcher(None, page_letters, quote_letters, autojunk=False)
    longest_match = matcher.find_longest_match()
    search_start = max(0, longest_match.a - longest_match.b - MAX_GAP_LETTERS)
    matcher.set_seq1(
        page_letters[search_start : longest_match.a + len(quote_letters) - longest_match.b + MAX_GAP_LETTERS]
    )
    parts = [part for part in matcher.get_matching_blocks() if part.size >= MIN_PART_LETTERS]
    if sum(part.size for part in parts) < MIN_MATCHED_SHARE * len(quote_letters):
        return []
    return [(search_start + part.a, search_start + part.a + part.size) for part in parts]


def _find_at_edge(
    page_letters: str, quote_letters: str, letters_before: str, letters_after: str
) -> list[tuple[int, int]]:
    """Return the span, in letters, of the part on this page of a quotation that crosses a page break.

    The quotation is found by its first letters and the letters before it, or by its last letters and those after it.
    The result is empty if the page contains neither.
    """
    letters_before, letters_after = letters_before[-EDGE_LETTERS:], letters_after[:EDGE_LETTERS]
    start_pattern, end_pattern = (
        letters_before + quote_letters[: 2 * EDGE_LETTERS - len(letters_before)],
        quote_letters[len(letters_after) - 2 * EDGE_LETTERS :] + letters_after,
    )
    if (index := page_letters.rfind(start_pattern)) >= 0:
        start = index + len(letters_before)
        return [(start, start + _count_common_prefix(page_letters[start:], quote_letters))]
    if (index := page_letters.find(end_pattern)) >= 0:
        end = index + len(end_pattern) - len(letters_after)
        return [(end - _count_common_prefix(page_letters[:end][::-1], quote_letters[::-1]), end)]
    return []


def _count_common_prefix(first: str, second: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def draw_page(data: bytes, number: int) -> DrawnPage:
    """Render a page of a PDF file, numbered from 1, as a PNG image with the position of each character.

    Raises:
        DocumentError: The file cannot be read, the page does not exist, or it has more than :data:`MAX_OBJECTS`
            objects.
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
        if pdfium.FPDFPage_CountObjects(page.raw) > MAX_OBJECTS:
            raise DocumentError(f"Page {number} has too much on it to be drawn.")
        size = page.get_size()
        scale = MAX_SIDE_PIXELS / max(*size, 1.0)
        bitmap = page.render(scale=scale, rev_byteorder=True)
        pixels = bitmap.to_numpy()[:, :, :3] if bitmap.n_channels > 3 else bitmap.to_numpy()
        height, width = pixels.shape[:2]
        text, boxes = _read_characters(page.raw, width, height)
        return DrawnPage(number, len(pdf), width, height, encode_png(pixels), text, boxes)
    finally:
        pdf.close()


def _read_characters(page: object, width: int, height: int) -> tuple[str, tuple[Box, ...]]:
    text_page = pdfium.FPDFText_LoadPage(page)
    if not text_page:
        return "", ()
    try:
        count = min(pdfium.FPDFText_CountChars(text_page), MAX_BOXES)
        codes = [pdfium.FPDFText_GetUnicode(text_page, index) for index in range(max(count, 0))]
        box, device_x, device_y = pdfium.FS_RECTF(), ctypes.c_int(), ctypes.c_int()
        boxes: list[Box] = []
        for index in range(len(codes)):
            if not pdfium.FPDFText_GetLooseCharBox(text_page, index, box):
                boxes.append((0, 0, 0, 0))
                continue
            corners = []
            for page_x, page_y in ((box.left, box.top), (box.right, box.bottom)):
                pdfium.FPDF_PageToDevice(page, 0, 0, width, height, 0, page_x, page_y, device_x, device_y)
                corners.append((min(max(device_x.value, 0), width), min(max(device_y.value, 0), height)))
            # On a rotated page the corners are swapped.
            (left, right), (top, bottom) = (sorted(pair) for pair in zip(*corners, strict=True))
            boxes.append((left, top, right, bottom))
    finally:
        pdfium.FPDFText_ClosePage(text_page)
    # Surrogates and invalid code points cannot be sent to a browser.
    text = "".join(chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " " for code in codes)
    return text.translate(_CHARACTER_REPLACEMENTS), tuple(boxes)


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode an image as PNG.

    Args:
        pixels: Image of shape [height, width] or [height, width, 1] (grey), or [height, width, 3] (RGB).
    """
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    colour = 2 if rows.shape[1] == 3 * width else 0
    # PNG filter 2: each row minus the row above it, which turns most pixels of a page into zeros.
    lines = np.empty((height, rows.shape[1] + 1), np.uint8)
    lines[:, 0] = 2
    lines[:, 1:] = rows
    lines[1:, 1:] -= rows[:-1]

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
