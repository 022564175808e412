"""Read plain text: decode it, and split it into pages and paragraphs, joining hard-wrapped lines."""

import re
from collections import Counter
from pathlib import PurePath

from climassay.corpus.documents import Block, Document, OmittedParts, ReadOptions, merge_omitted_parts
from climassay.corpus.readers.cleaning import (
    LINE_END_HYPHEN,
    clean,
    count_words,
    document_id,
    join_hyphens,
    mask_digits,
)
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.references import begins_like_entry, is_references_heading, omit_references
from climassay.errors import DocumentError
from climassay.io.decoding import decode_text

MARKUP_START_BYTES = 4096
"""Number of bytes at the beginning of a page within which its encoding may be declared."""
_META_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)""")
MIN_BROKEN_LINE_CHARACTERS = 25
"""A longer line, in characters, that does not end in a full stop counts as part of a split sentence; a shorter one may
be a heading."""
MIN_PAGES = 3
"""Form feeds separate pages if there are at least this many; a running line recurs on at least this many pages."""
MAX_WRAPPED_LINE_CHARACTERS = 130
"""Maximum length of a wrapped line, in characters; longer lines are separate paragraphs."""
# A number or a list mark alone is what is left of a table or a page; leaders are those of a table of contents.
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMERIC = re.compile(r"\d\D+\d|\d{5}|[%°€$£±+−]")
"""Pattern of two numbers, a long number or a sign such as ``%``; a text that matches is not a page number."""
_PAGE_AT_END = re.compile(r"(?:\.{3}|(?:\. ){3})[\s.]*(?:\d{1,4}|[ivxlc]{1,7})?$", re.IGNORECASE)
_LEADERS = re.compile(r"\.{6,}|(?:\. ){6,}")
_BLANK_LINES = re.compile(r"\n[ \t\u00a0]*(?:\n[ \t\u00a0]*)+")
_ITEM = re.compile(r"\s*(?:[•◦▪‣·*–-]\s|\[\d{1,4}\]\s|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]\s)")
_SENTENCE_END = re.compile(r"[.!?:;…][\"'”’»)\]}]*\d{0,2}$")
_PAGE_NUMBER = re.compile(r"(?:page\s+)?[-–|\s]*(?:\d{1,4}|[ivxl]{1,6})[-–|\s]*(?:of\s+\d+)?", re.IGNORECASE)


def decode(data: bytes, source: str, label: str | None = None) -> str:
    """Decode a document; see :func:`climassay.io.decoding.decode_text`.

    Raises:
        DocumentError: The bytes are not text.
    """
    try:
        return decode_text(data, label)
    except ValueError as error:
        raise DocumentError(f"{source} {error}.") from None


def decode_markup(data: bytes, source: str) -> str:
    """Decode a page using its byte order mark, XML declaration or ``<meta>`` tag, and otherwise like :func:`decode`.

    Raises:
        DocumentError: The bytes are not text.
    """
    start = data[:MARKUP_START_BYTES]
    encoding_match = _XML_ENCODING.match(start) or _META_CHARSET.search(start)
    return decode(data, source, encoding_match[1].decode("ascii") if encoding_match else None)


@reader("text", ".txt", ".text")
def read_text(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a plain text file.

    Raises:
        DocumentError: The file is not text, or empty.
    """
    text = decode(data, source).replace("\r\n", "\n").replace("\r", "\n")
    pages = text.split("\f")
    omitted_parts: list[OmittedParts] = []
    if len(pages) >= MIN_PAGES:
        pages, omitted_lines = _remove_running_lines(pages)
        omitted_parts += omitted_lines
        numbered_pages: list[tuple[int | None, str]] = list(enumerate(pages, start=1))
    else:
        numbered_pages = [(None, text.replace("\f", "\n\n"))]
    blocks: list[Block] = []
    for page, content in numbered_pages:
        for part in split_paragraphs(content):
            kind = _find_omitted_kind(part)
            if kind is None:
                blocks.append(Block(text=part, page=page))
            else:
                omitted_parts.append(OmittedParts(kind, 1, () if page is None else (page,)))
    blocks = _join_split_sentences(blocks)
    if not options.references:
        blocks, references = omit_references(blocks)
        omitted_parts += references
    if not blocks:
        raise DocumentError(f"{source} is empty.")
    return Document(
        id=document_id(data),
        title=options.title or PurePath(source).stem,
        source=source,
        blocks=tuple(blocks),
        media="text",
        omitted_parts=merge_omitted_parts([omitted_parts]),
    )


def _find_omitted_kind(part: str) -> str | None:
    """Return the kind of omitted part (contents line or stray signs) that a paragraph is; None if it is text."""
    if not (_WORD.search(part) or _NUMERIC.search(part)):
        return "stray marks"
    return "contents lines" if _LEADERS.search(part) and _PAGE_AT_END.search(part) else None


def split_paragraphs(text: str) -> list[str]:
    """Split plain text into paragraphs at blank lines, joining hard-wrapped lines.

    Each list item, and each line longer than :data:`MAX_WRAPPED_LINE_CHARACTERS`, is a separate paragraph.
    """
    result: list[str] = []
    marked_text = re.sub(r"(?<=[A-Za-z])[-‐]\n\s*(?=[a-z])", LINE_END_HYPHEN, text)
    vocabulary = count_words([marked_text]) if LINE_END_HYPHEN in marked_text else Counter()
    in_references = False
    for chunk in _BLANK_LINES.split(marked_text):
        lines = [line for line in chunk.split("\n") if line.strip()]
        in_references = in_references or any(map(is_references_heading, lines))
        groups = _group_wrapped_lines(lines, in_references=in_references)
        result += (part for group in groups if (part := clean(join_hyphens(" ".join(group), vocabulary))))
    return result


def _group_wrapped_lines(lines: list[str], *, in_references: bool) -> list[list[str]]:
    """Group consecutive lines into paragraphs whose lines are wrapped."""
    groups: list[list[str]] = []
    width = max((len(line.rstrip()) for line in lines), default=0)
    for line in lines:
        previous_line = groups[-1][-1].rstrip() if groups else ""
        is_continued = (
            groups
            and not (in_references and _begins_entry(line, previous_line))
            and len(previous_line) <= MAX_WRAPPED_LINE_CHARACTERS
            and not _ITEM.match(line)
            and not (_SENTENCE_END.search(previous_line) and len(previous_line) < 0.7 * width)
        )
        if is_continued:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _begins_entry(line: str, previous_line: str) -> bool:
    """Return whether a line begins a reference, is the heading of a reference list, or follows such a heading."""
    if is_references_heading(line) or is_references_heading(previous_line):
        return True
    return begins_like_entry(line.strip()) and previous_line[-1:] not in ",;&-–" and not previous_line.endswith(" and")


def _join_split_sentences(blocks: list[Block]) -> list[Block]:
    """Join sentences that were split by a page break or a stray blank line."""
    joined_blocks: list[Block] = []
    for block in blocks:
        previous = joined_blocks[-1] if joined_blocks else None
        if (
            previous
            and block.text[0].islower()
            and not _SENTENCE_END.search(previous.text)
            and len(previous.text) > MIN_BROKEN_LINE_CHARACTERS
        ):
            last_page = block.page if block.page != previous.page else previous.last_page
            joined_blocks[-1] = Block(text=f"{previous.text} {block.text}", page=previous.page, last_page=last_page)
        else:
            joined_blocks.append(block)
    return joined_blocks


def _remove_running_lines(pages: list[str]) -> tuple[list[str], list[OmittedParts]]:
    """Remove page numbers, and lines at the top and bottom that recur on other pages."""
    lines_by_page = [page.split("\n") for page in pages]
    edge_counts = Counter(
        key
        for lines in lines_by_page
        for key in {mask_digits(lines[index].strip()) for index in _find_edge_lines(lines)}
    )
    repeated_lines = {key for key, count in edge_counts.items() if count >= MIN_PAGES}
    cleaned_pages = []
    omitted_parts = []
    for page, lines in enumerate(lines_by_page, start=1):
        dropped_indices = {
            index
            for index in _find_edge_lines(lines)
            if mask_digits(lines[index].strip()) in repeated_lines or _PAGE_NUMBER.fullmatch(lines[index].strip())
        }
        cleaned_pages.append("\n".join(line for index, line in enumerate(lines) if index not in dropped_indices))
        omitted_parts.append(OmittedParts("running lines", len(dropped_indices), (page,) if dropped_indices else ()))
    return cleaned_pages, omitted_parts


def _find_edge_lines(lines: list[str]) -> list[int]:
    """Return the indices of the first two and the last two lines that are not blank."""
    non_blank_indices = [index for index, line in enumerate(lines) if line.strip()]
    return sorted({*non_blank_indices[:2], *non_blank_indices[-2:]})
