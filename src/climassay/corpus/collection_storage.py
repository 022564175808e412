"""LanceDB tables of collections in a workspace, a folder or an object store: rows, index and compaction.

The settings of a collection are stored in the metadata of its table. An addition writes a new file and leaves the
others unchanged. The BM25 score of a passage outside the full-text index is computed from other word counts. A search
for words therefore adds the passages of small additions to the index first, so that results are the same before and
after a compaction. Compaction rewrites a collection, so it runs once for many additions: at the first search for words
after them, after many additions, or by ``climassay corpus compact``.
"""

import json
import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from climassay.corpus.documents import Document, Passage
from climassay.corpus.guarded_table import (
    DamagedCollectionError,
    GuardedTable,
    exclude_readers,
    raise_damage,
    write_lock,
)
from climassay.errors import InputError
from climassay.workspace import Workspace

METADATA_KEY = b"climassay"
FORMAT = 1
"""Version of the table layout; tables with another version are rejected."""

PASSAGE_COLUMNS = tuple(field.name for field in fields(Passage))
"""Fields of :class:`Passage`, which are also column names of the table."""


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """Settings that determine a collection's content; stored in the table and never changed."""

    encoder: str
    """Name of the encoder, for example ``local:minilm``."""
    encoder_fingerprint: str
    width: int
    """Dimension of the vectors."""
    passage_size: int
    """Target length of a passage, in characters."""
    passage_overlap: int
    """Overlap of consecutive passages, in characters."""
    format: int = FORMAT


def table_schema(settings: CollectionSettings) -> pa.Schema:
    """Return the schema of a collection's table, with the settings as metadata."""
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
    """Return the settings stored in a table.

    Raises:
        InputError: The table is not a climassay collection, or has another layout.
    """
    try:
        entries = json.loads((schema.metadata or {})[METADATA_KEY])
        settings = CollectionSettings(**entries)
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
    """Passage to be stored, with the passage count of its document."""

    passage: Passage
    document_passages: int
    """Number of passages of the whole document. The document is complete if the table contains this number of passages.
    """


def to_table(pending: Sequence[PendingPassage], vectors: NDArray[np.float32], schema: pa.Schema) -> pa.Table:
    """Build table rows from passages and their vectors, shape [passages, width]; see :func:`table_schema`."""
    rows: dict[str, Any] = {
        name: pa.array([getattr(pending_passage.passage, name) for pending_passage in pending], schema.field(name).type)
        for name in PASSAGE_COLUMNS
    }
    rows["document_passages"] = pa.array([pending_passage.document_passages for pending_passage in pending], pa.int32())
    flat_vectors = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
    rows["vector"] = pa.FixedSizeListArray.from_arrays(flat_vectors, vectors.shape[1])
    return pa.table(rows, schema=schema)


def passage_columns(table: Any) -> list[str]:
    """Return the :data:`PASSAGE_COLUMNS` that a table has.

    A table of an earlier version lacks some of them until a document is added.
    """
    existing_columns = table.schema.names
    return [name for name in PASSAGE_COLUMNS if name in existing_columns]


def add_missing_columns(table: Any) -> None:
    """Add the text columns that a table of an earlier version lacks, filled with nulls."""
    missing_columns = [name for name in PASSAGE_COLUMNS if name not in table.schema.names]
    if missing_columns:
        table.add_columns(dict.fromkeys(missing_columns, "CAST(NULL AS STRING)"))


def to_passage(row: Mapping[str, Any]) -> Passage:
    """Build a passage from a table row that has the columns returned by :func:`passage_columns`."""
    values = {name: row.get(name) for name in PASSAGE_COLUMNS}
    return Passage(**values | {name: tuple(values[name] or ()) for name in ("headings", "paragraph_ids")})


def to_matrix(column: pa.ChunkedArray, width: int) -> NDArray[np.float32]:
    """Convert a column of vectors to an array, shape [rows, width]."""
    if len(column) == 0:
        return np.zeros((0, width), dtype=np.float32)
    parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate(parts).reshape(len(column), width).astype(np.float32, copy=False)


def quote_sql(text: str) -> str:
    """Quote a text as a string literal for LanceDB's SQL filters."""
    return "'" + text.replace("'", "''") + "'"


_BATCH_ROWS = 65_536
_DOCUMENT_COLUMNS = ("document", "source", "report", "date", "edition", "licence", "author")


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """Document with at least one passage in a collection."""

    id: str
    title: str
    source: str
    passages: int
    expected: int
    """Number of passages of the whole document."""
    report: str | None = None
    date: str | None = None
    edition: str | None = None
    licence: str | None = None
    pages: int | None = None
    """Highest page number of the stored passages; None if the source has no pages."""
    url: str | None = None
    """URL of the whole document; None if its passages have different URLs."""
    author: str | None = None

    @property
    def complete(self) -> bool:
        """True if all passages of the document are stored."""
        return self.passages >= self.expected

    @classmethod
    def from_document(cls, document: Document, passages: int) -> "StoredDocument":
        """Build the record of a document whose passages are all stored."""
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
            author=document.author,
        )


def distinct_titles(documents: Iterable[StoredDocument]) -> dict[str, str]:
    """Return a unique title for each document, by id; the file name is appended to equal titles.

    Documents with the same title and file name, such as two versions of a file, also get the beginning of their id.
    """
    entries_by_title: dict[str, list[tuple[str, str]]] = {}
    for document in documents:
        entries = entries_by_title.setdefault(document.title, [])
        if (document.id, document.source) not in entries:
            entries.append((document.id, document.source))
    titles = {}
    for title, entries in entries_by_title.items():
        source_counts = Counter(source for _, source in entries)
        for document_id, source in entries:
            suffix = source if source_counts[source] == 1 else f"{source}, {document_id[:8]}"
            titles[document_id] = title if len(entries) == 1 else f"{title} ({suffix})"
    return titles


def stored_documents(table: Any) -> list[StoredDocument]:
    """Return the documents of a table, sorted by title, including those whose addition was interrupted."""
    documents: dict[str, StoredDocument] = {}
    optional_columns = [name for name in _DOCUMENT_COLUMNS if name in table.schema.names]
    columns = ["document_id", "document_passages", "last_page", "url", *optional_columns]
    # A document's passages agree in all other columns, so that any aggregate of them gives the value itself.
    max_aggregates = [(name, "max") for name in ("document_passages", "last_page", "url", *optional_columns)]
    aggregates = [("document_id", "count"), ("url", "min"), *max_aggregates]
    # In batches: the titles of a million passages would fill the memory, unlike those of their documents.
    for batch in table.search().select(columns).limit(None).to_batches(_BATCH_ROWS):
        document_table = pa.Table.from_batches([batch]).group_by("document_id").aggregate(aggregates)
        for row in document_table.to_pylist():
            stored_document = StoredDocument(
                id=row["document_id"],
                title=row["document_max"],
                source=row["source_max"],
                passages=row["document_id_count"],
                expected=row["document_passages_max"],
                pages=row["last_page_max"],
                url=row["url_max"] if row["url_min"] == row["url_max"] else None,
                **{name: row[f"{name}_max"] for name in optional_columns[2:]},
            )
            if (earlier_document := documents.get(stored_document.id)) is not None:  # its passages came in two batches
                pages = max(
                    (page for page in (earlier_document.pages, stored_document.pages) if page is not None), default=None
                )
                url = earlier_document.url if earlier_document.url == stored_document.url else None
                stored_document = replace(
                    stored_document, passages=earlier_document.passages + stored_document.passages, pages=pages, url=url
                )
            documents[stored_document.id] = stored_document
    return sorted(documents.values(), key=lambda document: (document.title, document.id))


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_PRIMARY_KEY = b"lance-schema:unenforced-primary-key:position"
"""Metadata key by which LanceDB recognises the primary key column."""
Location = Workspace | Path | str
"""Workspace, folder, or LanceDB address such as ``s3://bucket/collections``."""
TEXT_INDEX, HEADING_INDEX = "text_idx", "headings_idx"
"""Names that LanceDB gives to the indexes of the columns ``text`` and ``headings``. Both indexes are updated
together."""
MAX_UNINDEXED = 512
"""Maximum number of passages that may remain unindexed until the next search; larger additions are indexed at once."""
MAX_UNINDEXED_SHARE = 0.05
"""Maximum proportion of a collection's passages that may remain unindexed until the next search."""
MAX_FILES = 64
"""Maximum number of data files. If an addition exceeds it, the files are compacted."""
ORIGINALS = "originals"
"""Name of the folder for original files, inside the folder of the tables."""
_TEMPORARY_PREFIX = ".tmp"

logger = logging.getLogger(__name__)


def has_text_index(table: Any) -> bool:
    """Return whether texts and headings both have full-text indexes."""
    return {TEXT_INDEX, HEADING_INDEX} <= {index.name for index in table.list_indices()}


def create_text_index(table: Any) -> None:
    """Create full-text indexes of texts and headings, with English stemming; stop words and accents are ignored."""
    from lancedb.index import FTS

    for column in ("text", "headings"):
        table.create_index(
            column, config=FTS(language="English", stem=True, remove_stop_words=True, ascii_folding=True)
        )


def ensure_text_index(table: Any) -> None:
    """Create the full-text indexes if they are missing, for example after an interruption."""
    if has_text_index(table):
        return
    try:
        create_text_index(table)
    except DamagedCollectionError:
        # Another process may have been faster.
        if not has_text_index(table):
            raise


def count_unindexed(table: Any) -> int:
    """Return the number of passages outside the text index; all passages if there is no index."""
    result = table.index_stats(TEXT_INDEX)
    return int(table.count_rows() if result is None else result.num_unindexed_rows)


def check_name(name: str) -> str:
    """Check a collection name and return it unchanged.

    Raises:
        InputError: The name is empty, too long, or has characters other than letters, digits, ``_`` and ``-``.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a collection: use 1 to 63 letters, digits, hyphens and underscores, "
            "the first one a letter or digit."
        )
    return name


@dataclass(frozen=True, slots=True)
class CollectionStore:
    """Tables of all collections at one location."""

    address: str
    """Folder or URI of the tables."""
    folder: Path | None
    """Local folder of the tables; None for an object store."""
    originals: Path | None = None
    """Local folder of original files. A workspace has such a folder even if its collections are in an object store."""

    @classmethod
    def at(cls, location: Location) -> "CollectionStore":
        """Return the store at a location; nothing is written to disk."""
        originals = None
        if isinstance(location, Workspace):
            originals = location.collections / ORIGINALS
            location = location.collections_address
        if isinstance(location, str) and "://" in location:
            return cls(location.rstrip("/"), None, originals)
        folder = Path(location).expanduser().absolute()
        return cls(str(folder), folder, folder / ORIGINALS)

    def lock_file(self, name: str) -> Path | None:
        """Return the path of a collection's write lock; None for an object store."""
        return None if self.folder is None else self.folder / f".{name}.lock"

    def reader_lock_file(self, name: str) -> Path | None:
        """Return the path of a collection's reader lock; None for an object store."""
        return None if self.folder is None else self.folder / f".{name}.reading"

    def list_files(self, name: str) -> list[Path]:
        """Return the paths of a collection's files; an empty list for an object store."""
        paths = [] if self.folder is None else (self.folder / f"{name}.lance").rglob("*")
        return [file for file in paths if file.is_file()]

    def count_bytes(self, name: str) -> int:
        """Return the total size of a collection's files in bytes; 0 for an object store."""
        return sum(file.stat().st_size for file in self.list_files(name))

    def names(self) -> list[str]:
        """Return the names of all tables in alphabetical order, without tables whose creation was interrupted."""
        if self.folder is not None:
            # As LanceDB lists them, without opening it. Damage takes versions or data, not both and every trace.
            return sorted(
                table.stem
                for table in self.folder.glob("*.lance")
                if any(file.is_file() for part in ("_versions", "data") for file in (table / part).glob("*"))
            )
        connection = self._connect()
        names: list[str] = []
        page_token = None
        while True:
            response = connection.list_tables(page_token=page_token)
            names += response.tables
            page_token = response.page_token
            if not page_token:
                return sorted(names)

    def open(self, name: str) -> Any:
        """Open the LanceDB table of a collection.

        Raises:
            InputError: The collection does not exist (the message lists those that do), or is damaged.
        """
        check_name(name)
        if name not in (names := self.names()):
            existing_names = f"there are {', '.join(names)}" if names else "there are none yet"
            raise InputError(
                f"There is no collection {name!r} in {self.address} ({existing_names}): "
                f"make it with `climassay corpus add {name} FILES`."
            )
        return self._open_table(name)

    def create(self, name: str, settings: CollectionSettings) -> Any:
        """Create the empty table of a collection with its full-text index, or open the existing table."""
        check_name(name)
        with write_lock(self.lock_file(name)):
            is_new = name not in self.names()
            if is_new:
                connection = GuardedTable(self._connect(), name, self.address, self.reader_lock_file(name))
                table = connection.create_table(name, schema=table_schema(settings), exist_ok=True)
            else:
                table = self._open_table(name)
                read_settings(table.schema, name)
            # Also if an earlier call was interrupted after the step above.
            if _PRIMARY_KEY not in (table.schema.field("id").metadata or {}):
                table.set_unenforced_primary_key("id")
            if is_new:
                create_text_index(table)
            return table

    def drop(self, name: str) -> None:
        """Delete a collection.

        Raises:
            InputError: The collection does not exist.
        """
        self.open(name)
        with write_lock(self.lock_file(name)):
            self._connect().drop_table(name)

    def has_document(self, document: str) -> bool:
        """Return whether any collection has passages of a document with this id; True if a collection is unreadable."""
        for name in self.names():
            try:
                if self._open_table(name).count_rows(f"document_id = {quote_sql(document)}"):
                    return True
            except DamagedCollectionError:
                return True
        return False

    def _open_table(self, name: str) -> Any:
        # Read first, so that a version that another process writes now does not count as damage.
        latest_version = 0
        if self.folder is not None:
            with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                hint = self.folder / f"{name}.lance" / "_versions" / "latest_version_hint.json"
                latest_version = int(json.loads(hint.read_bytes())["version"])
        connection = GuardedTable(self._connect(), name, self.address, self.reader_lock_file(name))
        table = connection.open_table(name)
        if table.version < latest_version:
            # LanceDB uses the newest manifest that it finds, and returns fewer passages if this is an older one.
            raise_damage(ValueError(f"its version {latest_version} is missing"), name, self.address)
        return table

    def _connect(self) -> Any:
        import lancedb

        # Interval 0: the next read includes everything that other processes have written.
        return lancedb.connect(self.address, read_consistency_interval=timedelta(0))


@dataclass(frozen=True, slots=True)
class Compaction:
    """Size of a collection's folder before and after a compaction, in bytes."""

    bytes_before: int
    """Size before the compaction; 0 for an object store."""
    bytes_after: int


def compact(table: Any, store: CollectionStore, name: str) -> Compaction:
    """Merge data files, update the index, and delete old versions and leftovers of interrupted writes.

    Searches return the same hits before and after. An interrupted compaction is finished by the next one. Old versions
    are kept while another process iterates over passages, and always in an object store, which has no locks.
    """
    bytes_before = store.count_bytes(name)
    with write_lock(store.lock_file(name)):
        compact_locked(table, store, name)
    return Compaction(bytes_before, store.count_bytes(name))


def compact_locked(table: Any, store: CollectionStore, name: str) -> None:
    """Compact a table while the caller holds its write lock; see :func:`compact`.

    If another process is compacting the table, the call returns without an error: passages outside the index can still
    be found.
    """
    ensure_text_index(table)
    try:
        with exclude_readers(store.reader_lock_file(name)) as is_exclusive, warnings.catch_warnings():
            # The warning concerns concurrent readers and writers, which the locks exclude.
            warnings.simplefilter("ignore", UserWarning)
            table.optimize()
            if is_exclusive:
                table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
                # LanceDB leaves partial files of killed writers; with the write lock held, no file is in progress.
                for file in store.list_files(name):
                    if file.name.startswith(_TEMPORARY_PREFIX):
                        file.unlink(missing_ok=True)
    except DamagedCollectionError as error:
        logger.info("The files of %s were left as they are: %s", name, error)


def compact_if_fragmented(table: Any, store: CollectionStore, name: str) -> None:
    """Compact a table after a large addition or many small additions; the caller must hold the write lock."""
    n_files = table.stats()["fragment_stats"]["num_fragments"]
    if count_unindexed(table) > min(MAX_UNINDEXED, MAX_UNINDEXED_SHARE * table.count_rows()) or n_files > MAX_FILES:
        compact_locked(table, store, name)


def index_new_passages(table: Any, store: CollectionStore, name: str) -> None:
    """Add new passages to the full-text index before a search for words, if there are few.

    If there are many, another process is still adding passages or was interrupted. LanceDB then searches them without
    the index.
    """
    if not 0 < count_unindexed(table) <= MAX_UNINDEXED:
        return
    # Where nothing can be written, the passages are scanned.
    with suppress(OSError), write_lock(store.lock_file(name)):
        if count_unindexed(table):
            compact_locked(table, store, name)
