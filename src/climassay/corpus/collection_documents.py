"""The documents of a collection, as told by the passages it holds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from climassay.corpus.documents import Document

_BATCH = 65_536
_COLUMNS = ("document", "source", "report", "date", "edition", "licence")


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document that a collection holds, all of it or a part."""

    id: str
    title: str
    source: str
    passages: int
    """Passages stored."""
    expected: int
    """Passages the whole document has."""
    report: str | None = None
    date: str | None = None
    edition: str | None = None
    licence: str | None = None
    pages: int | None = None
    """Number of the last page that a passage comes from, where the source has pages."""
    url: str | None = None
    """Address of the whole document; none where its passages have addresses of their own."""

    @property
    def complete(self) -> bool:
        """Whether adding it was finished."""
        return self.passages >= self.expected

    @classmethod
    def of(cls, document: Document, passages: int) -> "StoredDocument":
        """The record of a document all of whose passages are stored."""
        pages = (page for block in document.blocks for page in (block.page, block.last_page))
        return cls(
            id=document.id,
            title=document.title,
            source=document.source,
            passages=passages,
            expected=passages,
            report=document.report,
            date=document.date,
            edition=document.edition,
            licence=document.licence,
            pages=max((page for page in pages if page is not None), default=None),
            url=document.url,
        )


def stored_documents(table: Any) -> list[StoredDocument]:
    """Documents of a collection's table, by title; documents whose adding was interrupted among them."""
    documents: dict[str, StoredDocument] = {}
    columns = ["document_id", "document_passages", "last_page", "url", *_COLUMNS]
    # In batches: the titles of a million passages would fill the memory, those of their documents do not.
    for batch in table.search().select(columns).limit(None).to_batches(_BATCH):
        for found in _documents_in(pa.Table.from_batches([batch])):
            known = documents.get(found.id)
            documents[found.id] = found if known is None else _joined(known, found)
    return sorted(documents.values(), key=lambda document: (document.title, document.id))


def _documents_in(rows: pa.Table) -> Iterator[StoredDocument]:
    # A document's passages agree in all these columns, so that any aggregate of them gives the value itself.
    grouped = rows.group_by("document_id").aggregate(
        [
            ("document_passages", "max"),
            ("document_id", "count"),
            ("last_page", "max"),
            ("url", "min"),
            ("url", "max"),
            *((name, "max") for name in _COLUMNS),
        ]
    )
    for row in grouped.to_pylist():
        yield StoredDocument(
            id=row["document_id"],
            title=row["document_max"],
            source=row["source_max"],
            passages=row["document_id_count"],
            expected=row["document_passages_max"],
            pages=row["last_page_max"],
            url=row["url_max"] if row["url_min"] == row["url_max"] else None,
            **{name: row[f"{name}_max"] for name in _COLUMNS[2:]},
        )


def _joined(one: StoredDocument, other: StoredDocument) -> StoredDocument:
    """A document whose passages came in two batches."""
    pages = max((page for page in (one.pages, other.pages) if page is not None), default=None)
    url = one.url if one.url == other.url else None
    return replace(other, passages=one.passages + other.passages, pages=pages, url=url)
