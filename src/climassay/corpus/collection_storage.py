"""Where collections lie: passages as rows of LanceDB tables in a workspace, a folder or an object store.

What a collection remembers about itself stands in the metadata of its table. Locks, damage, index and compaction are
here as well.

An addition writes a file of its own and leaves the others alone, whatever the size of the collection. Passages outside
the full-text index would be scored by other counts of words than those in it, so that a search for words takes a small
addition into the index first, and every search gives the same hits before and after a compaction. LanceDB rewrites a
collection where it joins files; that is done once for many additions: at the first search for words after them, when
they have become many, or by ``climassay corpus compact``.
"""

import errno
import json
import logging
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from climassay.corpus.documents import Document, Passage
from climassay.errors import ClimassayError, InputError
from climassay.workspace import Workspace

try:
    import fcntl
except ImportError:  # Windows: LanceDB's own conflict detection remains.
    fcntl = None  # type: ignore[assignment]


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
        InputError: The table is not one of ours, or of a newer layout.
    """
    try:
        result = json.loads((schema.metadata or {})[METADATA_KEY])
        settings = CollectionSettings(**result)
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
            name = source if names[source] == 1 else f"{source}, {one[:8]}"
            titles[one] = title if len(same) == 1 else f"{title} ({name})"
    return titles


def stored_documents(table: Any) -> list[StoredDocument]:
    """Documents of a collection's table, by title; documents whose adding was interrupted among them."""
    documents: dict[str, StoredDocument] = {}
    columns = ["document_id", "document_passages", "last_page", "url", *_COLUMNS]
    # A document's passages agree in all other columns, so that any aggregate of them gives the value itself.
    greatest = [(name, "max") for name in ("document_passages", "last_page", "url", *_COLUMNS)]
    aggregated = [("document_id", "count"), ("url", "min"), *greatest]
    # In batches: the titles of a million passages would fill the memory, those of their documents do not.
    for batch in table.search().select(columns).limit(None).to_batches(_BATCH):
        grouped = pa.Table.from_batches([batch]).group_by("document_id").aggregate(aggregated)
        for row in grouped.to_pylist():
            result = StoredDocument(
                id=row["document_id"],
                title=row["document_max"],
                source=row["source_max"],
                passages=row["document_id_count"],
                expected=row["document_passages_max"],
                pages=row["last_page_max"],
                url=row["url_max"] if row["url_min"] == row["url_max"] else None,
                **{name: row[f"{name}_max"] for name in _COLUMNS[2:]},
            )
            if (known := documents.get(result.id)) is not None:  # its passages came in two batches
                pages = max((page for page in (known.pages, result.pages) if page is not None), default=None)
                url = known.url if known.url == result.url else None
                result = replace(result, passages=known.passages + result.passages, pages=pages, url=url)
            documents[result.id] = result
    return sorted(documents.values(), key=lambda document: (document.title, document.id))


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_PRIMARY_KEY = b"lance-schema:unenforced-primary-key:position"
"""Where LanceDB notes in a column that it is the key."""
Location = Workspace | Path | str
"""A workspace, a folder, or an address that LanceDB understands, for example ``s3://bucket/collections``."""
TEXT_INDEX, HEADING_INDEX = "text_idx", "headings_idx"
"""Names that LanceDB gives to the indexes of the columns ``text`` and ``headings``, which are updated together."""
SMALL = 512
"""Passages that may wait outside the index for the next search; more are taken in as soon as they have been added."""
SHARE = 0.05
"""Share of a collection's passages that may wait likewise, so that small collections have no need to."""
FILES = 64
"""Files of passages beyond which an addition joins them."""
ORIGINALS = "originals"
"""Folder beside the tables."""
_HALF_WRITTEN = ".tmp"
_GONE = "not found"
"""In the error of a file that is not there."""
_PANICS = ("RustPanic", "PanicException")
"""What the table's library raises where damage met it unprepared; not all of them are an :class:`Exception`."""

logger = logging.getLogger(__name__)


@contextmanager
def reader_lock(path: Path | None) -> Iterator[None]:
    """Say that passages are read one after the other, so that the version they belong to is not removed meanwhile."""
    if path is None or fcntl is None:
        yield
        return
    try:
        file = path.open("a")
    except OSError:  # Where nothing can be written, nothing is removed.
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def exclude_readers(path: Path | None) -> Iterator[bool]:
    """Keep readers waiting, unless somebody reads; give whether nobody does, False where that cannot be known."""
    if path is None or fcntl is None:
        yield False
        return
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def write_lock(path: Path | None) -> Iterator[None]:
    """Hold a lock that other processes wait for; the system frees it when the process dies, however it dies.

    LanceDB detects most conflicting writes by itself, but three processes that inserted the same keys while others
    compacted the table have left duplicates; hence the lock wherever there is a file system to hold it.
    """
    if path is None or fcntl is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


class DamagedCollectionError(InputError):
    """Files of a collection are damaged, or the library that reads them cannot."""


class GuardedTable:
    """A LanceDB table, or a part of a query on one, whose errors say which collection is damaged and what to do.

    The library reports damage where a file is first read, which may be in any of its calls, as errors of many types.
    """

    def __init__(self, inner: Any, name: str, address: str, reading_file: Path | None = None) -> None:
        self._inner, self._name, self._address, self._reading_file = inner, name, address, reading_file

    def __getattr__(self, attribute: str) -> Any:
        value = self._try(lambda: getattr(self._inner, attribute))
        if attribute == "to_batches":
            return lambda *arguments, **named: self._batches(lambda: value(*arguments, **named))
        return self._calling(value) if callable(value) else value

    def search_words(self, words: str, where: str | None, most: int, *, headings: bool = False) -> Any:
        """Search for words.

        The library's blocking search asks its thread five times for one query, this asks it once: half of the time.

        Args:
            words: The query.
            where: Condition on the columns; None for none.
            most: Maximum number of passages.
            headings: Search the headings for passages that have all of the words, not the texts for any of them.

        Returns:
            Ids and BM25 scores (``_score``) of the passages, as an Arrow table.
        """
        from lancedb.background_loop import LOOP
        from lancedb.query import FullTextOperator, MatchQuery

        column, operator = ("headings", FullTextOperator.AND) if headings else ("text", FullTextOperator.OR)

        def search() -> Any:
            match = MatchQuery(words, column, operator=operator)
            query = self._inner._table.query().nearest_to_text(match).select(["id", "_score"])
            return LOOP.run((query if where is None else query.where(where)).limit(most).to_arrow())

        return self._calling(search)()

    def __len__(self) -> int:
        return int(self._try(lambda: len(self._inner)))

    def _calling(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            def read() -> Any:
                try:
                    return method(*arguments, **named)
                except (OSError, RuntimeError, ValueError) as error:
                    if _GONE not in str(error).lower():
                        raise
                    # Another process has compacted the collection meanwhile: there is a newer version to be read.
                    return method(*arguments, **named)

            result = self._try(read)
            kind = type(result)
            # Queries are put together by calls on calls; answers (Arrow tables, lists, numbers) pass as they are.
            if kind.__module__.startswith("lancedb"):
                return GuardedTable(result, self._name, self._address, self._reading_file)
            return result

        return call

    def _batches(self, begin: Callable[[], Any]) -> Iterator[Any]:
        with reader_lock(self._reading_file):
            reader = self._try(begin)
            while True:
                try:
                    batch = self._try(reader.read_next_batch)
                except StopIteration:
                    return
                yield batch

    def _try(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (ClimassayError, AttributeError, StopIteration, TypeError):
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise_damage(error, self._name, self._address)
        except BaseException as error:
            if type(error).__name__ not in _PANICS:
                raise
            raise_damage(error, self._name, self._address)


def raise_damage(error: BaseException, name: str, address: str) -> NoReturn:
    """Say that a collection cannot be used, and what to do about it.

    Raises:
        InputError: The disk is full.
        DamagedCollectionError: Anything else.
    """
    message = (str(error).split(", /")[0].strip().splitlines() or [type(error).__name__])[0][:200]
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if full or "No space left" in str(error) or "File too large" in str(error):
        raise InputError(
            f"The collection {name!r} in {address} cannot be written because the disk is full: free some "
            "space and run the "
            "command again."
        ) from error
    raise DamagedCollectionError(
        f"The collection {name!r} in {address} cannot be read ({message.rstrip('.')}): if it is damaged, delete "
        f"{name}.lance there and add its documents again."
    ) from error


def has_text_index(table: Any) -> bool:
    """Whether the texts and headings of the table can be searched by words."""
    return {TEXT_INDEX, HEADING_INDEX} <= {index.name for index in table.list_indices()}


def create_text_index(table: Any) -> None:
    """Index the words of all passages and of their headings: English stems, no stop words, accents folded."""
    from lancedb.index import FTS

    for column in ("text", "headings"):
        table.create_index(
            column, config=FTS(language="English", stem=True, remove_stop_words=True, ascii_folding=True)
        )


def ensure_text_index(table: Any) -> None:
    """Make the index where there is none, as after a kill between making a table and indexing it."""
    if has_text_index(table):
        return
    try:
        create_text_index(table)
    except DamagedCollectionError:
        # Another process may have been faster.
        if not has_text_index(table):
            raise


def count_unindexed(table: Any) -> int:
    """Number of passages that were stored since the index was last brought up to date; all, where there is none."""
    result = table.index_stats(TEXT_INDEX)
    return int(table.count_rows() if result is None else result.num_unindexed_rows)


def check_name(name: str) -> str:
    """Return a collection's name when it is one.

    Raises:
        InputError: It is empty, too long, or has other characters than letters, digits, ``_`` and ``-``.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a collection: use 1 to 63 letters, digits, hyphens and underscores, "
            "the first one a letter or digit."
        )
    return name


@dataclass(frozen=True, slots=True)
class CollectionStore:
    """The tables of one place."""

    address: str
    """Folder or URI."""
    folder: Path | None
    """The folder, where the place is one."""
    originals: Path | None = None
    """Folder of the files that documents were read from; on this machine also where collections are not."""

    @classmethod
    def at(cls, location: Location) -> "CollectionStore":
        """The store of a location; nothing is made yet."""
        originals = None
        if isinstance(location, Workspace):
            originals = location.collections / ORIGINALS
            location = location.collections_address
        if isinstance(location, str) and "://" in location:
            return cls(location.rstrip("/"), None, originals)
        folder = Path(location).expanduser().absolute()
        return cls(str(folder), folder, folder / ORIGINALS)

    def lock_file(self, name: str) -> Path | None:
        """File whose lock lets one process write to a collection; None on object storage."""
        return None if self.folder is None else self.folder / f".{name}.lock"

    def reading_file(self, name: str) -> Path | None:
        """File whose lock says that somebody reads a collection; None on object storage."""
        return None if self.folder is None else self.folder / f".{name}.reading"

    def files_of(self, name: str) -> list[Path]:
        """A collection's files; none on object storage."""
        there = [] if self.folder is None else (self.folder / f"{name}.lance").rglob("*")
        return [file for file in there if file.is_file()]

    def bytes_of(self, name: str) -> int:
        """Size of a collection's files; 0 on object storage."""
        return sum(file.stat().st_size for file in self.files_of(name))

    def names(self) -> list[str]:
        """Names of all tables, in alphabetical order; what was interrupted before its first version is none yet."""
        if self.folder is not None:
            # As LanceDB lists them, without opening it. Damage takes versions or data, not both and every trace.
            return sorted(
                table.stem
                for table in self.folder.glob("*.lance")
                if any(file.is_file() for part in ("_versions", "data") for file in (table / part).glob("*"))
            )
        connection = self._connect()
        names: list[str] = []
        page = None
        while True:
            answer = connection.list_tables(page_token=page)
            names += answer.tables
            page = answer.page_token
            if not page:
                return sorted(names)

    def open(self, name: str) -> Any:
        """The LanceDB table of a collection.

        Raises:
            InputError: There is none with that name (the message names those that are there), or it is damaged.
        """
        check_name(name)
        if name not in (names := self.names()):
            known = f"there are {', '.join(names)}" if names else "there are none yet"
            raise InputError(
                f"There is no collection {name!r} in {self.address} ({known}): "
                f"make it with `climassay corpus add {name} FILES`."
            )
        return self._open_table(name)

    def create(self, name: str, settings: CollectionSettings) -> Any:
        """Make the empty table of a collection, with its full-text index, or open the one that is there already."""
        check_name(name)
        with write_lock(self.lock_file(name)):
            is_new = name not in self.names()
            if is_new:
                connection = GuardedTable(self._connect(), name, self.address, self.reading_file(name))
                table = connection.create_table(name, schema=table_schema(settings), exist_ok=True)
            else:
                table = self._open_table(name)
                read_settings(table.schema, name)
            # Also where an earlier call was interrupted after the step above.
            if _PRIMARY_KEY not in (table.schema.field("id").metadata or {}):
                table.set_unenforced_primary_key("id")
            if is_new:
                create_text_index(table)
            return table

    def drop(self, name: str) -> None:
        """Delete a collection with all that is in it.

        Raises:
            InputError: There is none with that name.
        """
        self.open(name)
        with write_lock(self.lock_file(name)):
            self._connect().drop_table(name)

    def holds(self, document: str) -> bool:
        """Whether a collection has passages of a document; one that cannot be read is taken to have them."""
        for name in self.names():
            try:
                if self._open_table(name).count_rows(f"document_id = {quoted(document)}"):
                    return True
            except DamagedCollectionError:
                return True
        return False

    def _open_table(self, name: str) -> Any:
        # Read first: what another process writes meanwhile is no damage.
        newest = 0
        if self.folder is not None:
            with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                hint = self.folder / f"{name}.lance" / "_versions" / "latest_version_hint.json"
                newest = int(json.loads(hint.read_bytes())["version"])
        connection = GuardedTable(self._connect(), name, self.address, self.reading_file(name))
        table = connection.open_table(name)
        if table.version < newest:
            # The library takes the newest manifest that it finds, and with an older one it gives fewer passages.
            raise_damage(ValueError(f"its version {newest} is missing"), name, self.address)
        return table

    def _connect(self) -> Any:
        import lancedb

        # Interval 0: what another process has written is seen by the next read.
        return lancedb.connect(self.address, read_consistency_interval=timedelta(0))


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did."""

    bytes_before: int
    """Size of the collection's folder; 0 for one in an object store."""
    bytes_after: int


def compact(table: Any, store: CollectionStore, name: str) -> Compaction:
    """Join files, bring the index up to date and remove what earlier versions and killed writers have left.

    Searches give the same hits before and after. It may be killed anywhere, and is finished by the next one. Old
    versions stay while somebody reads passages one after the other, and in an object store, where nobody could be asked
    to wait.
    """
    before = store.bytes_of(name)
    with write_lock(store.lock_file(name)):
        compact_locked(table, store, name)
    return Compaction(before, store.bytes_of(name))


def compact_locked(table: Any, store: CollectionStore, name: str) -> None:
    """As :func:`compact`, for who holds the write lock.

    Passages outside the index are found as well, only more slowly: LanceDB scans them. So when another process is at
    the same work, nothing is lost by leaving it to that one.
    """
    ensure_text_index(table)
    try:
        with exclude_readers(store.reading_file(name)) as alone, warnings.catch_warnings():
            # The warning is about other readers and writers, of whom there are none now.
            warnings.simplefilter("ignore", UserWarning)
            table.optimize()
            if alone:
                table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
                # LanceDB leaves a file that a killed writer had half written: nobody writes now.
                for file in store.files_of(name):
                    if file.name.startswith(_HALF_WRITTEN):
                        file.unlink(missing_ok=True)
    except DamagedCollectionError as error:
        logger.info("The files of %s were left as they are: %s", name, error)


def compact_if_fragmented(table: Any, store: CollectionStore, name: str) -> None:
    """Compact after an addition that was not small, or after many; the write lock is held."""
    files = table.stats()["fragment_stats"]["num_fragments"]
    if count_unindexed(table) > min(SMALL, SHARE * table.count_rows()) or files > FILES:
        compact_locked(table, store, name)


def index_new_passages(table: Any, store: CollectionStore, name: str) -> None:
    """Take a small addition into the index before a search for words.

    A large one is under way in another process, or was killed: its passages are scanned until it has ended.
    """
    if not 0 < count_unindexed(table) <= SMALL:
        return
    # Where nothing can be written, the passages are scanned.
    with suppress(OSError), write_lock(store.lock_file(name)):
        if count_unindexed(table):
            compact_locked(table, store, name)
