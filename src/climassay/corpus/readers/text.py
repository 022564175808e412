"""Read plain text: find its encoding, its pages, and the paragraphs behind hard-wrapped lines."""

import codecs
import re
from collections import Counter
from contextlib import suppress
from pathlib import PurePath

import webencodings

from climassay.corpus.documents import Block, Document, LeftOut, ReadOptions, merge_left_out
from climassay.corpus.readers.cleaning import (
    LINE_END_HYPHEN,
    clean,
    count_words,
    document_id,
    join_hyphens,
    mask_digits,
)
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.references import begins_like_entry, is_references_heading, leave_out_references
from climassay.errors import DocumentError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_STRAY = "climassay.stray-windows-1252"
"""Name of the handler of decoding errors."""
_PYTHON_NAMES = {"shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs", "gbk": "gb18030"}
"""Python's names of the encodings that the standard calls by the name of a smaller one."""
FEWEST_UTF8_CHARACTERS = 8
"""Characters beyond ASCII from which on text that is valid UTF-8 is not in the other encoding that it declares."""
MARKUP_START = 4096
"""Bytes at the beginning of a page in which its encoding is declared."""
_META_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)""")
SAMPLE = 1 << 16
SHORTEST_BROKEN = 25
"""A shorter line without a full stop is a heading, not a sentence that a page break cut."""
MOST_CONTROL_CHARACTERS = 0.02
FEWEST_PAGES = 3
"""Form feeds count as page breaks from this many pages on."""
LONGEST_WRAPPED_LINE = 130
"""Lines longer than this are paragraphs of their own, not the lines of a wrapped one."""
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
# A number or a list mark alone is what is left of a table or a page; leaders are those of a table of contents.
_WORD = re.compile(r"[^\W\d_]{2,}")
_FIGURES = re.compile(r"\d\D+\d|\d{5}|[%°€$£±+−]")
"""Two numbers, a long one, or one with a sign: figures and not the number of a page."""
_PAGE_AT_END = re.compile(r"(?:\.{3}|(?:\. ){3})[\s.]*(?:\d{1,4}|[ivxlc]{1,7})?$", re.IGNORECASE)
_LEADERS = re.compile(r"\.{6,}|(?:\. ){6,}")
_BLANK_LINES = re.compile(r"\n[ \t\u00a0]*(?:\n[ \t\u00a0]*)+")
_ITEM = re.compile(r"\s*(?:[•◦▪‣·*–-]\s|\[\d{1,4}\]\s|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]\s)")
_SENTENCE_END = re.compile(r"[.!?:;…][\"'”’»)\]}]*\d{0,2}$")
_PAGE_NUMBER = re.compile(r"(?:page\s+)?[-–|\s]*(?:\d{1,4}|[ivxl]{1,6})[-–|\s]*(?:of\s+\d+)?", re.IGNORECASE)


def decode(data: bytes, source: str, label: str | None = None) -> str:
    """Decode text: by its byte order mark, by the declared encoding, as UTF-8 or UTF-16, else as windows-1252.

    Single bytes that are wrong in UTF-8 are read as windows-1252 where most other characters are right.

    Args:
        data: The text.
        source: Name of the file, for error messages.
        label: Name of the encoding that the file declares, read as the Encoding standard of the WHATWG defines it
            (``iso-8859-1`` and ``latin1`` mean windows-1252).

    Raises:
        DocumentError: The bytes are not text.
    """

    def decoded(encoding: str) -> str:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            raise DocumentError(f"{source} begins as {encoding} text but is damaged or truncated.") from None

    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _utf8_with_strays(data[len(bom) :]) if encoding == "utf-8-sig" else decoded(encoding)
    sample = data[:SAMPLE]
    if b"\0" in sample:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        half = len(sample) / 2
        if odd > 0.3 * half and even < 0.05 * half:
            return decoded("utf-16-le")
        if even > 0.3 * half and odd < 0.05 * half:
            return decoded("utf-16-be")
        raise DocumentError(f"{source} is not a text file (it holds binary data).")
    text = _decode_labelled(data, label) if label else _utf8_with_strays(data)
    if len(_CONTROL.findall(text[:SAMPLE])) > MOST_CONTROL_CHARACTERS * len(text[:SAMPLE]):
        raise DocumentError(f"{source} is not a text file (it holds binary data).")
    return text


def decode_markup(data: bytes, source: str) -> str:
    """Decode a page by its byte order mark, its XML declaration or its ``<meta>``, else as :func:`decode` does.

    Raises:
        DocumentError: The bytes are not text.
    """
    start = data[:MARKUP_START]
    declared = _XML_ENCODING.match(start) or _META_CHARSET.search(start)
    return decode(data, source, declared[1].decode("ascii") if declared else None)


def _decode_labelled(data: bytes, label: str) -> str:
    known = webencodings.lookup(label)
    name = _PYTHON_NAMES.get(known.name, known.codec_info.name) if known is not None else "utf-8"
    if name.startswith("utf"):
        return _utf8_with_strays(data)  # a label that ASCII bytes can spell is not UTF-16
    with suppress(UnicodeDecodeError):
        text = data.decode("utf-8")  # a file may have been saved anew since it was labelled
        if name == "cp1252" or sum(not char.isascii() for char in text) >= FEWEST_UTF8_CHARACTERS:
            return text
    with suppress(UnicodeDecodeError):
        return data.decode(name)
    return data.decode(name, "replace" if name != "cp1252" else _STRAY)


def _utf8_with_strays(data: bytes) -> str:
    """Decode UTF-8 with single bytes of windows-1252 in it, or windows-1252 if those are the greater part."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", _STRAY)
    n_high_bytes = sum(data.count(byte) for byte in range(0x80, 0x100))
    n_characters = sum(not char.isascii() for char in text)
    # Each character of UTF-8 that is not ASCII has two to four such bytes, each stray is one.
    return text if n_high_bytes > 1.5 * n_characters else data.decode("cp1252", _STRAY)


def _read_stray(error: UnicodeError) -> tuple[str, int]:
    """Read bytes that are wrong in an encoding as windows-1252; those that it does not define as control characters."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start : error.start + 1]
    try:
        return byte.decode("cp1252"), error.start + 1
    except UnicodeDecodeError:
        return byte.decode("latin-1"), error.start + 1


codecs.register_error(_STRAY, _read_stray)


@reader("text", ".txt", ".text")
def read_text(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a plain text file.

    Raises:
        DocumentError: Not text, or empty.
    """
    text = decode(data, source).replace("\r\n", "\n").replace("\r", "\n")
    pages = text.split("\f")
    left_out: list[LeftOut] = []
    if len(pages) >= FEWEST_PAGES:
        pages, running = _without_running_lines(pages)
        left_out += running
        numbered: list[tuple[int | None, str]] = list(enumerate(pages, start=1))
    else:
        numbered = [(None, text.replace("\f", "\n\n"))]
    blocks: list[Block] = []
    for page, content in numbered:
        for part in paragraphs(content):
            kind = _kind_left_out(part)
            if kind is None:
                blocks.append(Block(text=part, page=page))
            else:
                left_out.append(LeftOut(kind, 1, () if page is None else (page,)))
    blocks = _joined(blocks)
    if not options.references:
        blocks, references = leave_out_references(blocks)
        left_out += references
    if not blocks:
        raise DocumentError(f"{source} is empty.")
    return Document(
        id=document_id(source, data),
        title=options.title or PurePath(source).stem,
        source=source,
        blocks=tuple(blocks),
        media="text",
        left_out=merge_left_out([left_out]),
    )


def _kind_left_out(part: str) -> str | None:
    """Return what a paragraph is that is no text: a line of contents, or a page number or list mark alone."""
    if not (_WORD.search(part) or _FIGURES.search(part)):
        return "stray marks"
    return "contents lines" if _LEADERS.search(part) and _PAGE_AT_END.search(part) else None


def paragraphs(text: str) -> list[str]:
    """The paragraphs of plain text: blank lines divide them, hard-wrapped lines are put together again.

    A line much longer than a page is wide is a paragraph of its own; so is a list item.
    """
    results: list[str] = []
    marked = re.sub(r"(?<=[A-Za-z])[-‐]\n\s*(?=[a-z])", LINE_END_HYPHEN, text)
    vocabulary = count_words([marked]) if LINE_END_HYPHEN in marked else Counter()
    in_references = False
    for chunk in _BLANK_LINES.split(marked):
        lines = [line for line in chunk.split("\n") if line.strip()]
        in_references = in_references or any(map(is_references_heading, lines))
        groups = _groups(lines, in_references=in_references)
        results += (part for group in groups if (part := clean(join_hyphens(" ".join(group), vocabulary))))
    return results


def _groups(lines: list[str], *, in_references: bool) -> list[list[str]]:
    """Return lines without a blank one between them, put together as far as they are one wrapped paragraph."""
    groups: list[list[str]] = []
    width = max((len(line.rstrip()) for line in lines), default=0)
    for line in lines:
        last = groups[-1][-1].rstrip() if groups else ""
        goes_on = (
            groups
            and not (in_references and _begins_entry(line, last))
            and len(last) <= LONGEST_WRAPPED_LINE
            and not _ITEM.match(line)
            and not (_SENTENCE_END.search(last) and len(last) < 0.7 * width)
        )
        if goes_on:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _begins_entry(line: str, last: str) -> bool:
    """Return whether a line begins an entry of a list of references, or is the heading or follows it."""
    if is_references_heading(line) or is_references_heading(last):
        return True
    return begins_like_entry(line.strip()) and last[-1:] not in ",;&-–" and not last.endswith(" and")


def _joined(blocks: list[Block]) -> list[Block]:
    """Blocks with a sentence that a page break or stray blank line cut put together again."""
    joined: list[Block] = []
    for block in blocks:
        before = joined[-1] if joined else None
        if (
            before
            and block.text[0].islower()
            and not _SENTENCE_END.search(before.text)
            and len(before.text) > SHORTEST_BROKEN
        ):
            last_page = block.page if block.page != before.page else before.last_page
            joined[-1] = Block(text=f"{before.text} {block.text}", page=before.page, last_page=last_page)
        else:
            joined.append(block)
    return joined


def _without_running_lines(pages: list[str]) -> tuple[list[str], list[LeftOut]]:
    """Return pages without the first and last lines that come again on other pages, and without page numbers."""
    split = [page.split("\n") for page in pages]
    edges = Counter(key for lines in split for key in {mask_digits(lines[i].strip()) for i in _edge_lines(lines)})
    repeated = {key for key, count in edges.items() if count >= FEWEST_PAGES}
    cleaned = []
    left_out = []
    for page, lines in enumerate(split, start=1):
        drop = {
            i
            for i in _edge_lines(lines)
            if mask_digits(lines[i].strip()) in repeated or _PAGE_NUMBER.fullmatch(lines[i].strip())
        }
        cleaned.append("\n".join(line for i, line in enumerate(lines) if i not in drop))
        left_out.append(LeftOut("running lines", len(drop), (page,) if drop else ()))
    return cleaned, left_out


def _edge_lines(lines: list[str]) -> list[int]:
    """Numbers of the first two and last two lines that are not blank."""
    filled = [i for i, line in enumerate(lines) if line.strip()]
    return sorted({*filled[:2], *filled[-2:]})
