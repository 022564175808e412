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

    @property
    def complete(self) -> bool:
        """Whether adding it was finished."""
        return self.passages >= self.expected

    @classmethod
    def of(cls, document: Document, passages: int) -> "StoredDocument":
        """The record of a document all of whose passages are stored."""
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
        )


def stored_documents(table: Any) -> list[StoredDocument]:
    """Documents of a collection's table, by title; documents whose adding was interrupted among them."""
    documents: dict[str, StoredDocument] = {}
    columns = ["document_id", "document_passages", *_COLUMNS]
    # In batches: the titles of a million passages would fill the memory, those of their documents do not.
    for batch in table.search().select(columns).limit(None).to_batches(_BATCH):
        for found in _documents_in(pa.Table.from_batches([batch])):
            known = documents.get(found.id)
            passages = found.passages + (known.passages if known else 0)
            documents[found.id] = replace(found, passages=passages)
    return sorted(documents.values(), key=lambda document: (document.title, document.id))


def _documents_in(rows: pa.Table) -> Iterator[StoredDocument]:
    # A document's passages agree in all these columns, so that any aggregate of them gives the value itself.
    grouped = rows.group_by("document_id").aggregate(
        [("document_passages", "max"), ("document_id", "count"), *((name, "max") for name in _COLUMNS)]
    )
    for row in grouped.to_pylist():
        yield StoredDocument(
            id=row["document_id"],
            title=row["document_max"],
            source=row["source_max"],
            passages=row["document_id_count"],
            expected=row["document_passages_max"],
            **{name: row[f"{name}_max"] for name in _COLUMNS[2:]},
        )
