"""Plain text, and documents that are read page by page, as drafts."""

import re

from climassay.confidence.linting.draft import Draft, DraftBlock, masked
from climassay.corpus.documents import Document
from climassay.corpus.sentences import Span

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PARAGRAPH = re.compile(r"(?:[^\n]*\S[^\n]*(?:\n|\Z))+")


def plain_draft(text: str, name: str) -> Draft:
    """Plain text: paragraphs end at empty lines; comments are passed over as in Markdown."""
    comments = [match.span() for match in COMMENT.finditer(text)]
    mask = masked(text, (), comments)
    blocks = tuple(DraftBlock("paragraph", *match.span()) for match in _PARAGRAPH.finditer(mask))
    return Draft(name, text, mask, blocks)


def paged_draft(document: Document, name: str) -> Draft:
    """A document that was read from pages: a paragraph is a line, and places are told by page and paragraph."""
    parts: list[str] = []
    blocks: list[DraftBlock] = []
    place = 0
    for block in document.blocks:
        blocks.append(DraftBlock("paragraph", place, place + len(block.text), block.page))
        parts.append(block.text)
        place += len(block.text) + 2
    text = "\n\n".join(parts)
    return Draft(name, text, text, tuple(blocks), paged=True)


def joined(spans: list[tuple[int, int]]) -> tuple[Span, ...]:
    """Spans in order, those that touch or overlap made one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(end, found[-1].end))
        else:
            found.append(Span(start, end))
    return tuple(found)
