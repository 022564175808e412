"""Cut documents into passages of whole sentences, with what the source says about their place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.documents import Block, Document, Passage
from climassay.corpus.sentences import sentence_spans
from climassay.errors import InputError

SMALLEST_SIZE = 100
SHORT_TAIL = 0.2
"""A last piece of a section shorter than this part of ``size`` joins the passage before it ..."""
STRETCH = 1.2
"""... which may then be longer than ``size`` by this factor."""
SHORTEST_OVERLAP = 20
"""Characters; what two neighbours share by less may be chance."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, or a part of a very long one, and the block it appears in."""

    text: str
    block: int


def split_passages(document: Document, *, size: int = 2000, overlap: int = 200) -> list[Passage]:
    """Cut a document into passages of about ``size`` characters that end at sentences.

    A passage never crosses a chapter, and ends early where a new section begins once it is half full. Within a section
    neighbours share the last whole sentences of the first, up to ``overlap`` characters.

    Args:
        document: What was read.
        size: Characters of a passage; none is longer than 1.2 times this. A sentence longer than ``size`` is cut
            between words.
        overlap: Maximum number of characters that two neighbours share.

    Returns:
        Passages in reading order. The same document and settings give the same passages with the same ids.

    Raises:
        InputError: A size below 100, or an overlap that is negative or more than half the size.
    """
    if size < SMALLEST_SIZE:
        raise InputError(f"A passage size of {size} characters is too small: take at least {SMALLEST_SIZE}.")
    if not 0 <= overlap <= size // 2:
        raise InputError(f"An overlap of {overlap} characters does not fit passages of {size}: take 0 to {size // 2}.")
    passages: list[Passage] = []
    for run in _runs(document, size):
        for pieces in _fill(run, size, overlap):
            passages.append(_passage(document, pieces, len(passages)))
    return passages


def _runs(document: Document, size: int) -> Iterator[list[_Piece]]:
    """Stretches of pieces that may share passages: cut at chapters, and at sections once half a passage is there."""
    run: list[_Piece] = []
    length = 0
    last: Block | None = None
    for number, block in enumerate(document.blocks):
        pieces = [_Piece(text, number) for text in _sentences(block.text, size)]
        if not pieces:
            continue
        chapter_ends = last is not None and (last.chapter, last.headings[:1]) != (block.chapter, block.headings[:1])
        section_ends = last is not None and last.headings != block.headings and length >= size // 2
        if run and (chapter_ends or section_ends):
            yield run
            run, length = [], 0
        run.extend(pieces)
        length += len(block.text) + 1
        last = block
    if run:
        yield run


def _sentences(text: str, size: int) -> Iterator[str]:
    """The sentences of a paragraph, none longer than ``size``."""
    for start, end in sentence_spans(text):
        sentence = text[start:end].strip()
        while len(sentence) > size:
            cut = sentence.rfind(" ", size // 2, size + 1)
            cut = cut if cut > 0 else size
            yield sentence[:cut].rstrip()
            sentence = sentence[cut:].lstrip()
        if sentence:
            yield sentence


def _fill(run: list[_Piece], size: int, overlap: int) -> list[list[_Piece]]:
    """Share out the pieces of a run; every piece is in at least one passage."""
    filled: list[list[_Piece]] = []
    current: list[_Piece] = []
    length = 0
    fresh = 0  # pieces of `current` that no earlier passage has
    for piece in run:
        if current and length + 1 + len(piece.text) > size:
            filled.append(current)
            current = _tail(current, min(overlap, size - len(piece.text) - 1))
            length = _length(current)
            fresh = 0
        current = [*current, piece]
        length += len(piece.text) + (len(current) > 1)
        fresh += 1
    tail = current[-fresh:]
    if filled and _length(tail) < SHORT_TAIL * size and _length(filled[-1]) + 1 + _length(tail) <= STRETCH * size:
        filled[-1] = filled[-1] + tail
    else:
        filled.append(current)
    return filled


def _length(pieces: list[_Piece]) -> int:
    return sum(len(piece.text) for piece in pieces) + max(0, len(pieces) - 1)


def _tail(pieces: list[_Piece], room: int) -> list[_Piece]:
    """The last whole pieces that fit into ``room`` characters, never all of them."""
    kept = used = 0
    for piece in reversed(pieces[1:]):
        used += len(piece.text) + (kept > 0)
        if used > room:
            break
        kept += 1
    return pieces[len(pieces) - kept :]


def _passage(document: Document, pieces: list[_Piece], position: int) -> Passage:
    numbers = dict.fromkeys(piece.block for piece in pieces)
    blocks = [document.blocks[number] for number in numbers]
    parts = [pieces[0].text]
    for before, after in pairwise(pieces):
        parts += (" " if before.block == after.block else "\n", after.text)
    pages = [page for block in blocks for page in (block.page, block.last_page) if page is not None]
    urls = {block.url for block in blocks}
    levels = zip(*(block.headings for block in blocks), strict=False)
    return Passage(
        id=f"{document.id}-{position}",
        text="".join(parts),
        document_id=document.id,
        document=document.title,
        source=document.source,
        position=position,
        headings=tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)),
        first_page=min(pages, default=None),
        last_page=max(pages, default=None),
        url=blocks[0].url if len(urls) == 1 and blocks[0].url else document.url or blocks[0].url,
        report=document.report,
        chapter=blocks[0].chapter,
        paragraph_ids=tuple(dict.fromkeys(block.paragraph_id for block in blocks if block.paragraph_id)),
        date=document.date,
        edition=document.edition,
        licence=document.licence,
    )


def shared_start(before: str, passage: str) -> int:
    """Characters at the start of a passage that end the text before it; 0 below :data:`SHORTEST_OVERLAP`."""
    start = passage[:SHORTEST_OVERLAP]
    if len(start) < SHORTEST_OVERLAP:
        return 0
    # The first place where all the rest of the text before is the beginning of the passage is the longest overlap.
    place = before.find(start, max(0, len(before) - len(passage)))
    while place >= 0:
        if passage.startswith(before[place:]):
            return len(before) - place
        place = before.find(start, place + 1)
    return 0


def join_passages(texts: Sequence[str]) -> str:
    """Text of consecutive passages, what neighbours share once; an empty line where they share nothing."""
    joined = ""
    for text in texts:
        shared = shared_start(joined, text)
        joined += text[shared:] if shared or not joined else "\n\n" + text
    return joined


def excerpt(sentences: Sequence[str], nearness: NDArray[np.float64], words: int) -> str:
    """The sentences nearest to a query, in their order, of at most so many words in all; gaps are marked.

    Args:
        sentences: Of one passage, in order.
        nearness: Shape [sentences].
        words: Maximum number of words; 0 keeps all. The nearest sentence is always kept, cut where it alone is longer.
    """
    if not words:
        return " ".join(sentences)
    nearest = sentences[int(nearness.argmax())].split()
    if len(nearest) > words:
        return " ".join(nearest[:words]) + " ..."
    kept: set[int] = set()
    room = words
    for place in np.argsort(-nearness, kind="stable"):
        length = len(sentences[place].split())
        if length <= room:
            kept.add(int(place))
            room -= length
    places = sorted(kept)
    pieces = [sentences[places[0]]]
    for before, place in pairwise(places):
        pieces.append(("... " if place > before + 1 else "") + sentences[place])
    return " ".join(pieces)
