"""Whether a file is by its content what its name claims."""

import codecs
import re
from pathlib import Path

from climassay.corpus.readers.text import decode
from climassay.errors import DocumentError

SAMPLE = 1 << 16
"""Bytes from the beginning of a file that are looked at."""
_PDF_WITHIN = 1024
_ZIP, _GZIP, _PDF = b"PK\x03\x04", b"\x1f\x8b", b"%PDF-"
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_PAGE_START = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"<(?:html|head|body|title|meta|main|article|section|div|p|h[1-6]|ul|ol|table|span)\b", re.IGNORECASE)
_WORDS = {
    "pdf": "a PDF file",
    "epub": "an EPUB book",
    "docx": "a Word file",
    "html": "a web page",
    "jsonl": "a file of one JSON object a line",
}


def check_content(path: Path, kind: str, shown: str) -> None:
    """Look at the beginning of a file.

    Args:
        path: The file.
        kind: What its name claims: pdf, epub, docx, html, markdown, text, csv or jsonl.
        shown: What its people call it.

    Raises:
        DocumentError: It is empty, or something else.
    """
    with path.open("rb") as file:
        start = file.read(SAMPLE)
    if not start.strip():
        raise DocumentError(f"{shown} is empty.")
    if kind == "pdf":
        fits = _PDF in start[:_PDF_WITHIN]
    elif kind == "epub":
        fits = start.startswith(_ZIP) and (b"application/epub+zip" in start[:SAMPLE] or b"META-INF/" in start)
    elif kind == "docx":
        fits = start.startswith(_ZIP)  # its reader tells other zips apart
    else:
        fits = _is_text_of(kind, start, shown)
    if not fits:
        raise DocumentError(f"{shown} is not {_WORDS.get(kind, 'a text file')} by its content.")


def _is_text_of(kind: str, start: bytes, shown: str) -> bool:
    if start.startswith((_ZIP, _GZIP, _PDF)):
        return False
    # Characters of two or four bytes may be cut at the end of the sample, which says nothing about the file.
    text = "" if start.startswith(_WIDE_MARKS) else decode(start, shown)
    if not text:
        return True
    if kind == "html":
        return _TAG.search(text) is not None or _PAGE_START.match(text) is not None
    if kind == "jsonl":
        return text.lstrip().startswith("{")
    if _PAGE_START.match(text):
        raise DocumentError(f"{shown} is a web page by its content: give it a name that ends in .html.")
    return True
