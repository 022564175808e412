"""Read PDF files: clean paragraphs with page numbers and headings, at the speed of PDFium."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import pypdfium2
import pypdfium2.raw as pdfium

from climassay.corpus.documents import Block, Document, PageCallback, ReadOptions, ReadResult, Skipped, full_title
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.pdf_layout import Page, drop_running_lines, order_lines
from climassay.corpus.readers.pdf_lines import LineReader, upright
from climassay.corpus.readers.pdf_paragraphs import (
    CONTENTS,
    REFERENCES,
    BlockBuilder,
    build_paragraphs,
    classify,
    find_style,
)
from climassay.errors import DocumentError

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
    r"(?:untitled|document\d*|microsoft word - .*|.*\.(?:docx?|pdf|indd|tex|dvi|rtf|pptx?|qxp|pmd))\s*", re.IGNORECASE
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
    try:
        pages, skipped = _read_pages(pdf, source, on_page)
        metadata_title, *told = (clean(pdf.get_metadata_value(name) or "") for name in ("Title", "Subject", "Author"))
    finally:
        pdf.close()
    if not any(page.lines for page in pages):
        raise DocumentError(skipped[0].reason if skipped else f"{source} has no text on its pages.")
    if b"%%EOF" not in data[-TRAILER_WITHIN:]:
        skipped.append(Skipped(source, f"{source} seems truncated (its end is missing); {len(pages)} pages were read."))
    drop_running_lines(pages)
    stem = PurePath(source).stem
    opening = " ".join(line.text for page in pages[:_OPENING_PAGES] for line in page.lines)
    own_title = options.title or _title(metadata_title, pages) or stem
    blocks = _blocks(pages, own_title, options)
    if not blocks:
        raise DocumentError(f"{source} has no running text on its pages (only fragments as in figures and tables).")
    title = options.title or full_title(own_title, (*told, stem, opening))
    document = Document(document_id(source, data), title, source, blocks, media="pdf")
    return ReadResult(source, (document,), tuple(skipped))


def _blocks(pages: Sequence[Page], title: str, options: ReadOptions) -> tuple[Block, ...]:
    ordered = [order_lines(page) for page in pages if page.lines]
    if not ordered:
        return ()
    style = find_style(ordered)
    builder = BlockBuilder(title, style, options)
    for lines in ordered:
        paragraphs = build_paragraphs(lines, style)
        classify(paragraphs, style)
        for paragraph in paragraphs:
            builder.add(paragraph)
    return tuple(builder.blocks())


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
        raise DocumentError(f"{source} is damaged or truncated; fetch it again.") from None
    if count == 0:
        pdf.close()
        raise DocumentError(f"{source} has no pages (damaged or truncated).")
    return pdf


def _read_pages(
    pdf: pypdfium2.PdfDocument, source: str, on_page: PageCallback | None
) -> tuple[list[Page], list[Skipped]]:
    """The lines of every page, and which pages gave none although there is something on them."""
    reader = LineReader()
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
            lines = []
        else:
            lines = upright(reader.read(text_page, number, width), height) if text_page else []
        if not lines and number not in crowded and _IMAGES.intersection(_kinds(page)):
            images.append(number)
        pages.append(Page(number, width, height, lines))
        pdfium.FPDFText_ClosePage(text_page)
        pdfium.FPDF_ClosePage(page)
    return pages, list(_told(source, images, broken, crowded, len(pdf)))


def _kinds(page: object, least: int = 0) -> list[int]:
    """Kinds of a page's objects; none are looked at where there are no more than ``least``."""
    count = pdfium.FPDFPage_CountObjects(page)
    if count <= least:
        return []
    return [pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, number)) for number in range(count)]


def _told(source: str, images: list[int], broken: list[int], crowded: list[int], count: int) -> Iterator[Skipped]:
    if len(images) == count:
        yield Skipped(source, f"{source} holds images of pages without text (a scan); put it through text recognition.")
    elif images:
        yield Skipped(source, f"Left out of {source}, because there are only images: {_pages(images)}.")
    if broken:
        yield Skipped(source, f"Left out of {source}, because of damage: {_pages(broken)}.")
    if crowded:
        yield Skipped(source, f"Left out of {source}, because more is set there than on any page: {_pages(crowded)}.")


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
