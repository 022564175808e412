"""Passages as rows of a LanceDB table, and what a collection remembers about itself in the table's metadata."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from climassay.corpus.documents import Passage
from climassay.errors import InputError

METADATA_KEY = b"climassay"
FORMAT = 1
"""Version of the row layout; a table of another one is refused."""

PASSAGE_COLUMNS = (
    "id",
    "text",
    "document_id",
    "document",
    "source",
    "position",
    "headings",
    "first_page",
    "last_page",
    "url",
    "report",
    "chapter",
    "paragraph_ids",
    "date",
    "edition",
    "licence",
)
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
    fields = [
        pa.field(name, types.get(name, text), nullable=name not in ("id", "text", "document_id"))
        for name in PASSAGE_COLUMNS
    ]
    fields.append(pa.field("document_passages", number))
    fields.append(pa.field("vector", pa.list_(pa.float32(), settings.width)))
    return pa.schema(fields, metadata={METADATA_KEY: json.dumps(asdict(settings))})


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
    """Rows of passages.

    Args:
        pending: Passages.
        vectors: Shape [passages, width].
        schema: See :func:`table_schema`.
    """
    rows: dict[str, Any] = {
        name: pa.array([_cell(getattr(item.passage, name)) for item in pending], schema.field(name).type)
        for name in PASSAGE_COLUMNS
    }
    rows["document_passages"] = pa.array([item.document_passages for item in pending], pa.int32())
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
    rows["vector"] = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.table(rows, schema=schema)


def _cell(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def to_passage(row: Mapping[str, Any]) -> Passage:
    """The passage of a row that has all of :data:`PASSAGE_COLUMNS`."""
    fields = {name: row[name] for name in PASSAGE_COLUMNS}
    return Passage(**fields | {name: tuple(fields[name] or ()) for name in ("headings", "paragraph_ids")})


def to_matrix(column: pa.ChunkedArray, width: int) -> NDArray[np.float32]:
    """Vectors of a column, shape [rows, width]."""
    if len(column) == 0:
        return np.zeros((0, width), dtype=np.float32)
    parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate(parts).reshape(len(column), width).astype(np.float32, copy=False)


def quoted(text: str) -> str:
    """A text as a literal of LanceDB's SQL filters."""
    return "'" + text.replace("'", "''") + "'"
