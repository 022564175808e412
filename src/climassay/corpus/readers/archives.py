"""Read EPUB books, which are web pages in a zip archive, and limit the decompressed size of zip archives."""

import io
import posixpath
import xml.etree.ElementTree as ET
import zipfile
import zlib
from urllib.parse import unquote
from xml.parsers import expat

from climassay.corpus.documents import (
    MEBIBYTE,
    Block,
    Document,
    OmittedParts,
    ReadOptions,
    ReadResult,
    Skipped,
    merge_omitted_parts,
)
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.html import read_html_text
from climassay.corpus.readers.references import is_references_heading, omit_references
from climassay.corpus.readers.text import decode_markup
from climassay.errors import DocumentError

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGE_TYPES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})
MAX_PAGES = 20_000
MAX_COMPRESSION_RATIO = 100
"""Maximum ratio of decompressed to compressed size; text rarely reaches 10, a zip bomb 1000."""
MAX_UNCHECKED_BYTES = 16 * MEBIBYTE
"""The ratio is not checked up to this decompressed size in bytes."""


@reader("epub", ".epub")
def read_epub(data: bytes, source: str, options: ReadOptions) -> ReadResult:
    """Read an EPUB book.

    Raises:
        DocumentError: The file is not an EPUB, is damaged or copy-protected, contains no text, or is too large when
            decompressed.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            check_decompressed_size(sum(entry.file_size for entry in book.infolist()), len(data), source, options)
            pages, fields = _read_package(book, source)
            if _ENCRYPTION in book.namelist():  # fonts are often obfuscated, which does no harm
                references = read_xml(book, _ENCRYPTION, source).findall(".//{*}CipherReference")
                if {unquote(reference.get("URI", "")) for reference in references} & set(pages):
                    raise DocumentError(f"{source} is copy-protected (its pages are encrypted) and cannot be read.")
            blocks, skipped_pages, omitted_parts = _read_pages(book, pages, source)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError):
        raise DocumentError(f"{source} is not a readable EPUB file (damaged, truncated or encrypted).") from None
    if not blocks:
        reason = "has no readable page (each is damaged or missing)" if skipped_pages else "has no text in its pages"
        raise DocumentError(f"{source} {reason}.")
    if not options.references:
        blocks, omitted_references = omit_references(blocks)
        omitted_parts = (*omitted_references, *omitted_parts)
    document = Document(
        id=document_id(data),
        title=options.title or fields.get("title") or source.rsplit(".", 1)[0],
        source=source,
        blocks=tuple(blocks),
        date=(fields.get("date") or "")[:10] or None,
        licence=fields.get("rights"),
        author=fields.get("creator"),
        media="epub",
        omitted_parts=omitted_parts,
    )
    return ReadResult(source, (document,), tuple(skipped_pages))


def check_decompressed_size(
    n_decompressed_bytes: int, n_compressed_bytes: int, source: str, options: ReadOptions
) -> None:
    """Reject an archive that would exhaust memory when decompressed.

    The sizes are those stated in the archive; zipfile does not read more of an entry than its header states.

    Raises:
        DocumentError: The decompressed size exceeds ``options.max_bytes``, or :data:`MAX_COMPRESSION_RATIO` times the
            compressed size.
    """
    if n_decompressed_bytes > options.max_bytes:
        raise DocumentError(f"{source} unpacks to more than the limit of {options.max_bytes >> 20} MB.")
    if n_decompressed_bytes > MAX_UNCHECKED_BYTES and n_decompressed_bytes > MAX_COMPRESSION_RATIO * n_compressed_bytes:
        raise DocumentError(
            f"{source} was not read: it grows {n_decompressed_bytes // n_compressed_bytes:,} times when unpacked, "
            "as attacks do, not books."
        )


def read_xml(book: zipfile.ZipFile, name: str, source: str, kind: str = "an EPUB") -> ET.Element:
    """Parse an XML file in a zip archive; entity definitions are rejected.

    Raises:
        DocumentError: The file is missing, not well-formed, or defines entities.
    """

    def reject_entity(*_: object) -> None:
        raise DocumentError(f"{source} was not read: its {name} defines XML entities, as attacks do and books do not.")

    try:
        content = book.read(name)
        parser = expat.ParserCreate()
        parser.EntityDeclHandler = reject_entity  # finds what declares entities, whatever the encoding
        parser.Parse(content, True)
        return ET.fromstring(content)
    except (KeyError, ET.ParseError, expat.ExpatError, LookupError, RecursionError):
        raise DocumentError(f"{source} is not {kind} file (no readable {name} in it).") from None


def _read_package(book: zipfile.ZipFile, source: str) -> tuple[list[str], dict[str, str]]:
    """Return the names of the pages in reading order, and the Dublin Core metadata by name."""
    rootfile = read_xml(book, _CONTAINER, source).find(".//{*}rootfile")
    if rootfile is None or not (path := rootfile.get("full-path")):
        raise DocumentError(f"{source} is not an EPUB file (its container names no package).")
    path = _find_entry(book, path)
    package = read_xml(book, path, source)
    folder = posixpath.dirname(path)
    items = {
        item.get("id"): _find_entry(book, posixpath.normpath(posixpath.join(folder, item.get("href", ""))))
        for item in package.findall(".//{*}item")
        if item.get("media-type") in _PAGE_TYPES and "nav" not in (item.get("properties") or "").split()
    }
    pages = [items[ref.get("idref")] for ref in package.findall(".//{*}itemref") if ref.get("idref") in items]
    fields: dict[str, str] = {}
    for element in package.iter():
        namespace, _, name = element.tag.rpartition("}")
        if namespace.endswith("purl.org/dc/elements/1.1/") and element.text and (text := clean(element.text)):
            fields.setdefault(name, text)
    # Duplicates are removed, since a short list that names a long page many times would make a long book.
    return list(dict.fromkeys(pages))[:MAX_PAGES], fields


def _find_entry(book: zipfile.ZipFile, name: str) -> str:
    """Return the name of an archive entry, which the package may have percent-encoded."""
    return name if name in book.NameToInfo else unquote(name)


def _read_pages(
    book: zipfile.ZipFile, pages: list[str], source: str
) -> tuple[list[Block], list[Skipped], tuple[OmittedParts, ...]]:
    blocks: list[Block] = []
    skipped_pages: list[Skipped] = []
    omitted_parts: list[tuple[OmittedParts, ...]] = []
    chapter: tuple[str, ...] = ()
    for name in pages:
        try:
            content = book.read(name)
        except KeyError:
            skipped_pages.append(Skipped(source, f"{source} names a page {name} that is not in it."))
            continue
        except (zipfile.BadZipFile, zlib.error, EOFError):
            skipped_pages.append(Skipped(source, f"{name} in {source} is damaged and was not read."))
            continue
        # References are recognised later: a list may go on in the next page.
        page, page_omitted_parts = read_html_text(decode_markup(content, source), source, references=True)
        omitted_parts.append(page_omitted_parts)
        for block in page:
            # A page without a heading continues the chapter of the page before.
            if block.headings and not is_references_heading(block.headings[0]):
                chapter = block.headings[:1]
            blocks.append(Block(text=block.text, headings=block.headings or chapter))
    return blocks, skipped_pages, merge_omitted_parts(omitted_parts)
