"""Documents again from a collection's passages."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from climassay.corpus.documents import Block, Document, Passage
from climassay.corpus.passages import shared_start

if TYPE_CHECKING:
    from climassay.corpus.collection import Collection


def documents_of_collection(collection: "Collection") -> Iterator[Document]:
    """The documents that a collection holds, by title, as far as its passages tell.

    What neighbouring passages share is there once. A passage knows its first page and the headings that its paragraphs
    have in common: pages and sections are coarser than those of the file.
    """
    for stored in collection.documents():
        passages = collection.document_passages(stored.id)
        yield Document(
            id=stored.id,
            title=stored.title,
            source=stored.source,
            blocks=tuple(_blocks(passages)),
            url=stored.url,
            report=stored.report,
            date=stored.date,
            edition=stored.edition,
            licence=stored.licence,
            media="collection",
        )


def _blocks(passages: list[Passage]) -> Iterator[Block]:
    """Paragraphs of passages; one that two passages divide is put together where they share their section."""
    for _, run in groupby(passages, key=lambda passage: (passage.chapter, passage.headings)):
        before, open_block = "", None
        for passage in run:
            shared = shared_start(before, passage.text) if before else 0
            for number, text in enumerate(passage.text[shared:].split("\n")):
                goes_on = shared and number == 0 and open_block is not None
                if goes_on and open_block is not None:
                    open_block = _longer(open_block, text)
                    continue
                if open_block is not None and open_block.text.strip():
                    yield open_block
                open_block = _block(passage, text)
            before = passage.text
        if open_block is not None and open_block.text.strip():
            yield open_block


def _block(passage: Passage, text: str) -> Block:
    one = passage.paragraph_ids[0] if len(passage.paragraph_ids) == 1 else None
    return Block(text, passage.first_page, passage.last_page, passage.headings, one, passage.chapter, passage.url)


def _longer(block: Block, text: str) -> Block:
    from dataclasses import replace

    return replace(block, text=block.text + text)
