"""Passages as rows of a LanceDB table, and what a collection remembers about itself in the table's metadata."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from climassay.corpus.documents import Document, Passage
from climassay.errors import InputError

METADATA_KEY = b"climassay"
FORMAT = 1
"""Version of the row layout; a table of another one is refused."""

PASSAGE_COLUMNS = tuple(one.name for one in fields(Passage))
"""The fields of a :class:`Passage`, which are the columns of the table of the same names."""


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """What decides a collection's content; remembered in it and never changed."""

    encoder: str
    """Name of the encoder, for example ``local:minilm``."""
    encoder_fingerprint: str
    width: int
    """Dimensions of its vectors."""
    passage_size: int
    """In characters."""
    passage_overlap: int
    """In characters."""
    format: int = FORMAT


def table_schema(settings: CollectionSettings) -> pa.Schema:
    """Columns of a collection's table, with the settings as metadata."""
    text, number, texts = pa.string(), pa.int32(), pa.list_(pa.string())
    types = {"position": number, "first_page": number, "last_page": number, "headings": texts, "paragraph_ids": texts}
    columns = [
        pa.field(name, types.get(name, text), nullable=name not in ("id", "text", "document_id"))
        for name in PASSAGE_COLUMNS
    ]
    columns.append(pa.field("document_passages", number))
    columns.append(pa.field("vector", pa.list_(pa.float32(), settings.width)))
    return pa.schema(columns, metadata={METADATA_KEY: json.dumps(asdict(settings))})


def read_settings(schema: pa.Schema, name: str) -> CollectionSettings:
    """The settings a table was made with.

    Raises:
        InputError: The table is none of ours, or of a newer layout.
    """
    try:
        found = json.loads((schema.metadata or {})[METADATA_KEY])
        settings = CollectionSettings(**found)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The table {name!r} was not made by this version of climassay: choose another collection name."
        ) from error
    if settings.format != FORMAT:
        advice = "update climassay" if settings.format > FORMAT else "remove it and add its documents again"
        raise InputError(
            f"The collection {name!r} has layout {settings.format}, this version reads layout {FORMAT}: {advice}."
        )
    return settings


@dataclass(frozen=True, slots=True)
class PendingPassage:
    """A passage on its way into a collection."""

    passage: Passage
    document_passages: int
    """Passages of the whole document; a document is complete when the collection holds that many."""


def to_table(pending: Sequence[PendingPassage], vectors: NDArray[np.float32], schema: pa.Schema) -> pa.Table:
    """Rows of passages with their vectors, shape [passages, width]; see :func:`table_schema`."""
    rows: dict[str, Any] = {
        name: pa.array([getattr(item.passage, name) for item in pending], schema.field(name).type)
        for name in PASSAGE_COLUMNS
    }
    rows["document_passages"] = pa.array([item.document_passages for item in pending], pa.int32())
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
    rows["vector"] = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.table(rows, schema=schema)


def to_passage(row: Mapping[str, Any]) -> Passage:
    """The passage of a row that has all of :data:`PASSAGE_COLUMNS`."""
    values = {name: row[name] for name in PASSAGE_COLUMNS}
    return Passage(**values | {name: tuple(values[name] or ()) for name in ("headings", "paragraph_ids")})


def to_matrix(column: pa.ChunkedArray, width: int) -> NDArray[np.float32]:
    """Vectors of a column, shape [rows, width]."""
    if len(column) == 0:
        return np.zeros((0, width), dtype=np.float32)
    parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate(parts).reshape(len(column), width).astype(np.float32, copy=False)


def quoted(text: str) -> str:
    """A text as a literal of LanceDB's SQL filters."""
    return "'" + text.replace("'", "''") + "'"


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


def distinct_titles(documents: Iterable[StoredDocument]) -> dict[str, str]:
    """A title for each document, by id, that no other has: where titles are the same, the file's name stands behind it.

    Where the names are the same too, as of two versions of a file, so does the id.
    """
    files: dict[str, list[tuple[str, str]]] = {}
    for document in documents:
        known = files.setdefault(document.title, [])
        if (document.id, document.source) not in known:
            known.append((document.id, document.source))
    titles = {}
    for title, same in files.items():
        names = Counter(source for _, source in same)
        for one, source in same:
            told = source if names[source] == 1 else f"{source}, {one[:8]}"
            titles[one] = title if len(same) == 1 else f"{title} ({told})"
    return titles


def stored_documents(table: Any) -> list[StoredDocument]:
    """Documents of a collection's table, by title; documents whose adding was interrupted among them."""
    documents: dict[str, StoredDocument] = {}
    columns = ["document_id", "document_passages", "last_page", "url", *_COLUMNS]
    # In batches: the titles of a million passages would fill the memory, those of their documents do not.
    for batch in table.search().select(columns).limit(None).to_batches(_BATCH):
        for found in _documents_in(pa.Table.from_batches([batch])):
            if (known := documents.get(found.id)) is not None:  # its passages came in two batches
                pages = max((page for page in (known.pages, found.pages) if page is not None), default=None)
                url = known.url if known.url == found.url else None
                found = replace(found, passages=known.passages + found.passages, pages=pages, url=url)
            documents[found.id] = found
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
