"""Read Word files (.docx): a zip whose main part is one XML document of paragraphs."""

import io
import re
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Iterator

from climassay.corpus.cleaning import clean, document_id
from climassay.corpus.documents import Block, Document
from climassay.corpus.epub import check_unpacked, read_xml
from climassay.corpus.opening import reader
from climassay.corpus.options import ReadOptions
from climassay.errors import DocumentError

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_KIND = "a Word"
_HEADING = re.compile(r"heading (\d)$", re.IGNORECASE)


@reader("docx", ".docx")
def read_docx(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a Word file: its paragraphs, those in tables too, under their headings; deleted text is left out.

    Raises:
        DocumentError: Not a Word file, damaged, encrypted, without text, or larger than allowed when unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            check_unpacked(sum(entry.file_size for entry in file.infolist()), len(data), source, options)
            body = read_xml(file, "word/document.xml", source, _KIND)
            names = set(file.namelist())
            levels = _heading_levels(file, source) if "word/styles.xml" in names else {}
            title = _title(file, source) if "docProps/core.xml" in names else ""
            blocks = tuple(_blocks(body, levels))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError):
        raise DocumentError(f"{source} is not a readable Word file (damaged, truncated or encrypted).") from None
    if not blocks:
        raise DocumentError(f"{source} has no text in its paragraphs.")
    return Document(
        id=document_id(source, data),
        title=options.title or title or source.rsplit(".", 1)[0],
        source=source,
        blocks=blocks,
        media="docx",
    )


def _heading_levels(file: zipfile.ZipFile, source: str) -> dict[str, int]:
    """Levels of the styles of headings by their ids; ids are translated, names are not."""
    found = {}
    for style in read_xml(file, "word/styles.xml", source, _KIND).iter(f"{_WORD}style"):
        name = style.find(f"{_WORD}name")
        match = _HEADING.match(name.get(f"{_WORD}val", "")) if name is not None else None
        if match:
            found[style.get(f"{_WORD}styleId", "")] = int(match[1])
    return found


def _title(file: zipfile.ZipFile, source: str) -> str:
    core = read_xml(file, "docProps/core.xml", source, _KIND)
    return clean(core.findtext("{http://purl.org/dc/elements/1.1/}title") or "")


def _blocks(root: ET.Element, levels: dict[str, int]) -> Iterator[Block]:
    headings: list[tuple[int, str]] = []
    for paragraph, pieces in _paragraphs(root):
        text = clean("".join(pieces))
        style = paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
        level = levels.get(style.get(f"{_WORD}val", "")) if style is not None else None
        if level and text:
            headings = [*((one, title) for one, title in headings if one < level), (level, text)]
        elif any(char.isalpha() for char in text):
            yield Block(text, headings=tuple(title for _, title in headings))


def _paragraphs(root: ET.Element) -> list[tuple[ET.Element, list[str]]]:
    """All paragraphs with their text, each without that of paragraphs within it, as in text boxes.

    One walk through the tree: attacks nest paragraphs a hundred thousand times.
    """
    found: list[tuple[ET.Element, list[str]]] = []
    ahead: list[tuple[ET.Element, list[str]]] = [(root, [])]
    while ahead:
        element, pieces = ahead.pop()
        if element.tag == f"{_WORD}p":
            pieces = []
            found.append((element, pieces))
        elif element.tag == f"{_WORD}t":
            pieces.append(element.text or "")
        elif element.tag in (f"{_WORD}tab", f"{_WORD}br", f"{_WORD}cr"):
            pieces.append(" ")
        ahead.extend((child, pieces) for child in reversed(element))
    return found
