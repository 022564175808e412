"""Collections: passages of documents, embedded and indexed, in a folder or an object store.

Adding documents can be interrupted at any time and continued by the same call.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from climassay.corpus.collection_storage import (
    CollectionSettings,
    CollectionStore,
    Compaction,
    Location,
    PendingPassage,
    StoredDocument,
    add_missing_columns,
    check_name,
    compact,
    compact_if_fragmented,
    compact_locked,
    index_new_passages,
    passage_columns,
    quoted,
    read_settings,
    stored_documents,
    to_passage,
    to_table,
)
from climassay.corpus.documents import Document, Hit, OmittedParts, Passage, Skipped, check_date, split_passages
from climassay.corpus.guarded_table import DamagedCollectionError, write_lock
from climassay.corpus.originals import Originals
from climassay.corpus.presentation import AddProgress, AddReport, CollectionSummary, Copy
from climassay.corpus.relevance import RELEVANCE, RelevanceRule, Threshold
from climassay.corpus.search import DEFAULT_DENSE_WEIGHT, DENSE_WEIGHT, Searcher, SearchMode
from climassay.errors import InputError
from climassay.models.contract import Encoder, StreamingEncoder
from climassay.models.encoders import BUNDLED_ENCODER, load_encoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_PASSAGE_SIZE, DEFAULT_PASSAGE_OVERLAP = 2000, 200
"""Passage size, and overlap of neighbouring passages, in characters."""
MAX_TITLE_LENGTH = 300
"""Maximum number of characters of a title, author or date set by :meth:`Collection.edit`."""
BATCH_ROWS = 1024
"""Number of rows read at a time when all passages are iterated."""
CHUNK_PASSAGES = 512
"""Number of passages embedded and stored together; an interruption loses at most one chunk."""


ProgressCallback = Callable[[AddProgress], None]


@dataclass
class _AdditionState:
    """State of one call of :meth:`Collection.add`."""

    table: Any
    settings: CollectionSettings
    known: dict[str, StoredDocument]
    """Documents in the collection before this call, by id."""
    on_progress: ProgressCallback | None
    new_documents: dict[str, StoredDocument] = field(default_factory=dict)
    already_there: list[StoredDocument] = field(default_factory=list)
    copies: dict[str, Copy] = field(default_factory=dict)
    """Copies by file name."""
    skipped: list[Skipped] = field(default_factory=list)
    passages_done: int = 0
    passages_known: int = 0
    read: list[Document] = field(default_factory=list)
    """Documents with an original file, without their blocks."""
    left_out: dict[str, tuple[OmittedParts, ...]] = field(default_factory=dict)

    def progress(self, done: int = 0) -> None:
        self.passages_done += done
        if self.on_progress is not None:
            documents = len(self.new_documents) + len(self.already_there) + len(self.skipped)
            self.on_progress(AddProgress(self.passages_done, self.passages_known, documents))


def _missing_passages(intake: _AdditionState, documents: Iterable[Document]) -> Iterator[PendingPassage]:
    """Yield the passages that are not stored yet, document by document, updating ``intake``."""
    size, overlap = intake.settings.passage_size, intake.settings.passage_overlap
    for read in documents:
        document = read
        stored = intake.new_documents.get(document.id) or intake.known.get(document.id)
        if stored is not None and stored.source != document.source:
            intake.copies[document.source] = Copy(document.source, stored)
            # An interrupted addition is completed under its original name.
            document = replace(document, source=stored.source, title=stored.title)
        if document.id in intake.new_documents:
            continue
        if document.left_out:
            intake.left_out[document.id] = document.left_out
        if document.path is not None:
            intake.read.append(replace(read, blocks=()))
        if stored is not None and stored.complete:
            if stored not in intake.already_there:
                intake.already_there.append(stored)
            intake.progress()
            continue
        passages = split_passages(document, size=size, overlap=overlap)
        if not passages:
            intake.skipped.append(Skipped(document.source, f"{document.title!r} has no text."))
            continue
        intake.new_documents[document.id] = StoredDocument.from_document(document, len(passages))
        stored_ids: set[str] = set()
        if stored is not None:
            query = intake.table.search().where(f"document_id = {quoted(document.id)}").select(["id"]).limit(None)
            stored_ids.update(query.to_arrow()["id"].to_pylist())
        missing = [passage for passage in passages if passage.id not in stored_ids]
        intake.passages_known += len(missing)
        intake.progress()
        for passage in missing:
            yield PendingPassage(passage, len(passages))


def _embed_chunks(
    encoder: Encoder, chunks: Iterator[list[PendingPassage]], on_progress: Callable[[int], None]
) -> Iterator[tuple[list[PendingPassage], "NDArray[np.float32]"]]:
    """Yield chunks with their vectors; in any order if the encoder works on several chunks at once."""
    if not isinstance(encoder, StreamingEncoder):
        for chunk in chunks:
            yield chunk, encoder.encode([item.passage.text for item in chunk], on_progress=on_progress)
        return
    pending_chunks: dict[int, list[PendingPassage]] = {}

    def texts() -> Iterator[list[str]]:
        for index, chunk in enumerate(chunks):
            pending_chunks[index] = chunk
            yield [item.passage.text for item in chunk]

    for index, vectors in encoder.encode_stream(texts(), on_progress=on_progress):
        yield pending_chunks.pop(index), vectors


class Collection:
    """Named set of passages that can be searched.

    Several processes may read and add at the same time; each search sees the additions of all processes. The collection
    stores the name and fingerprint of its encoder and rejects any other.
    """

    def __init__(self, store: CollectionStore, name: str, table: Any, encoder: Encoder | None = None) -> None:
        """Wrap an open table; use :meth:`open` or :meth:`create` instead."""
        self.name = name
        self.settings = read_settings(table.schema, name)
        self._store = store
        self._table = table
        self._given_encoder = encoder
        if encoder is not None:
            self._check_encoder(encoder)

    @classmethod
    def open(cls, location: Location, name: str, encoder: Encoder | None = None) -> "Collection":
        """Open an existing collection.

        Args:
            location: Workspace, folder, or object store address that LanceDB understands.
            name: Name of the collection.
            encoder: Encoder of the collection; loaded by its stored name at first use by default.

        Raises:
            InputError: The collection does not exist, or the encoder differs from the stored one.
        """
        store = CollectionStore.at(location)
        return cls(store, name, store.open(name), encoder)

    @classmethod
    def create(
        cls,
        location: Location,
        name: str,
        encoder: Encoder,
        *,
        passage_size: int = DEFAULT_PASSAGE_SIZE,
        passage_overlap: int = DEFAULT_PASSAGE_OVERLAP,
    ) -> "Collection":
        """Open a collection, creating it if it does not exist.

        Sizes are in characters; see :func:`~climassay.corpus.documents.split_passages`.

        Raises:
            InputError: The name or the sizes are invalid, or the collection exists with other settings.
        """
        # The splitter says what does not fit, before anything is made.
        split_passages(Document("", "", "", ()), size=passage_size, overlap=passage_overlap)
        store = CollectionStore.at(location)
        settings = CollectionSettings(encoder.name, encoder.fingerprint, encoder.width, passage_size, passage_overlap)
        collection = cls(store, name, store.create(name, settings), encoder)
        stored = collection.settings
        if (stored.passage_size, stored.passage_overlap) != (passage_size, passage_overlap):
            raise InputError(
                f"The collection {name!r} has passages of {stored.passage_size} characters with an overlap "
                f"of {stored.passage_overlap}, not {passage_size} and {passage_overlap}: use its own values or another "
                "collection."
            )
        return collection

    @property
    def encoder(self) -> Encoder:
        """Encoder of the collection's vectors, loaded at first use.

        Raises:
            ModelError: The encoder cannot be found.
            InputError: The encoder's weights differ from those the collection was created with.
        """
        if self._given_encoder is None:
            encoder = load_encoder(self.settings.encoder)
            self._check_encoder(encoder)
            self._given_encoder = encoder
        return self._given_encoder

    @property
    def version(self) -> int:
        """Version number that changes with each change of the stored data, by any process."""
        return int(self._table.version)

    @property
    def originals(self) -> Originals:
        """Store of original files, shared by all collections of the location."""
        return Originals(self._store.originals)

    @property
    def relevance(self) -> RelevanceRule | None:
        """Relevance rule that ``min_cosine="measured"`` applies; None if none was measured for the encoder."""
        return RELEVANCE.get(self.settings.encoder)

    def add(
        self,
        documents: Iterable[Document],
        *,
        replace: bool = False,
        keep_originals: bool = True,
        on_progress: ProgressCallback | None = None,
    ) -> AddReport:
        """Add documents; a document whose content is already stored is skipped, even under another file name.

        Passages are embedded and stored in chunks. After an interruption, the same call embeds only the missing
        passages. Other processes may add to the same collection at the same time.

        Args:
            documents: Iterated lazily; at most one chunk of passages and one document are in memory.
            replace: Remove older versions (same source and title, other content) of the added documents.
            keep_originals: Store the original files, including those of documents that are already there.
            on_progress: Called after each embedded batch and each document.

        Raises:
            InputError: The encoder returns vectors of another width than it states, or a file cannot be stored.
        """
        encoder = self.encoder
        lock = self._store.lock_file(self.name)
        with write_lock(lock):
            add_missing_columns(self._table)
        before = stored_documents(self._table)
        intake = _AdditionState(self._table, self.settings, {document.id: document for document in before}, on_progress)
        replaced: tuple[StoredDocument, ...] = ()
        pending = _missing_passages(intake, documents)
        chunks = iter(lambda: list(islice(pending, CHUNK_PASSAGES)), [])
        try:
            for chunk, vectors in _embed_chunks(encoder, chunks, intake.progress):
                if (width := vectors.shape[1]) != self.settings.width:
                    expected = self.settings.width
                    raise InputError(f"The encoder {encoder.name} gives {width} dimensions, not {expected} as it said.")
                rows = to_table(chunk, vectors, self._table.schema)
                with write_lock(lock):
                    # Not the id's index: it may lag behind and then lets a passage in twice.
                    self._table.merge_insert("id").use_index(False).when_not_matched_insert_all().execute(rows)
            # There before, with the source and title of a document added now, but with other content.
            current = {document.id for document in intake.already_there} | set(intake.new_documents)
            new_names = {(document.source, document.title) for document in intake.new_documents.values()}
            older = tuple(
                document
                for document in before
                if (document.source, document.title) in new_names and document.id not in current
            )
            if replace and older:
                replaced = older
                with write_lock(lock):
                    self._table.delete(f"document_id IN ({', '.join(quoted(document.id) for document in older)})")
        finally:
            with write_lock(lock):
                (compact_locked if replaced else compact_if_fragmented)(self._table, self._store, self.name)
        self.originals.remove((document.id for document in replaced), self._store.holds)
        # Last, so that no file is kept of what was not added; who is killed before adds once more.
        stored_ids = {
            document.id
            for document in intake.read
            if keep_originals and document.id in current and self.originals.keep(document)
        }
        return AddReport(
            added=tuple(intake.new_documents.values()),
            already_there=tuple(intake.already_there),
            replaced=replaced,
            other_versions=() if replace else older,
            passages=intake.passages_done,
            skipped=tuple(intake.skipped),
            originals=len(stored_ids),
            copies=tuple(intake.copies.values()),
            left_out=intake.left_out,
        )

    def remove(self, document: str) -> tuple[StoredDocument, ...]:
        """Remove all documents with a given id or title, and return them.

        Raises:
            InputError: No document has that id or title.
        """
        removed = tuple(stored for stored in self.documents() if document in (stored.id, stored.title))
        if not removed:
            raise InputError(
                f"The collection {self.name!r} has no document with the id or title {document!r}: "
                f"see `climassay corpus show {self.name}`."
            )
        ids = ", ".join(quoted(stored.id) for stored in removed)
        with write_lock(self._store.lock_file(self.name)):
            self._table.delete(f"document_id IN ({ids})")
            compact_locked(self._table, self._store, self.name)
        self.originals.remove((stored.id for stored in removed), self._store.holds)
        return removed

    def edit(
        self, document: str, *, title: str | None = None, author: str | None = None, date: str | None = None
    ) -> StoredDocument:
        """Change what is known of a document; its passages are cited so from then on.

        Args:
            document: Id, title or source of the document.
            title: New title; None keeps it.
            author: New author; None keeps it, an empty text removes it.
            date: New date: ISO 8601 or a year; None keeps it, an empty text removes it.

        Returns:
            The document with its new details.

        Raises:
            InputError: No document, or more than one, matches; its addition was interrupted; the title is empty; a text
                is longer than :data:`MAX_TITLE_LENGTH`; or the date is none.
        """
        stored = self._find_document(document)
        texts = {"title": title, "author": author, "date": date}
        details: dict[str, Any] = {
            name: " ".join(text.split()) or None for name, text in texts.items() if text is not None
        }
        for name, text in details.items():
            if text is None and name == "title":
                raise InputError(f"A title has 1 to {MAX_TITLE_LENGTH} characters, this one has none.")
            if text is not None and len(text) > MAX_TITLE_LENGTH:
                raise InputError(f"The {name} has {len(text)} characters, more than the limit of {MAX_TITLE_LENGTH}.")
        if details.get("date") not in (None, stored.date):
            check_date(details["date"])
        if not stored.complete:
            raise InputError(f"Adding {stored.title} was interrupted: add it again first, then change it.")
        edited = replace(stored, **details)
        if edited != stored:
            values = {"document" if name == "title" else name: text for name, text in details.items()}
            with write_lock(self._store.lock_file(self.name)):
                add_missing_columns(self._table)
                self._table.update(where=f"document_id = {quoted(stored.id)}", values=values)
                compact_locked(self._table, self._store, self.name)
        return edited

    def compact(self) -> Compaction:
        """Merge the files of small additions; see :func:`climassay.corpus.collection_storage.compact`."""
        return compact(self._table, self._store, self.name)

    def documents(self) -> list[StoredDocument]:
        """Return all documents by title, including those whose addition was interrupted."""
        return stored_documents(self._table)

    def passage(self, passage_id: str) -> Passage:
        """Return a passage by its id.

        Raises:
            InputError: No passage has that id.
        """
        result = self._passages_where(f"id = {quoted(passage_id)}", 1)
        if not result:
            raise InputError(f"The collection {self.name!r} has no passage {passage_id!r}.")
        return result[0]

    def document_passages(self, document: str) -> list[Passage]:
        """Return all passages of a document, in order.

        Raises:
            InputError: No document, or more than one, has that id, title or source.
        """
        return self._passages_where(f"document_id = {quoted(self._find_document(document).id)}")

    def _find_document(self, name: str) -> StoredDocument:
        results = [document for document in self.documents() if name in (document.id, document.title, document.source)]
        if len(results) != 1:
            listed = "no document" if not results else f"{len(results)} documents"
            raise InputError(f"The collection {self.name!r} has {listed} {name!r}: name it by its id.")
        return results[0]

    def passages_at(self, document_id: str, positions: range) -> list[Passage]:
        """Return the passages of a document whose positions are in a range, without reading other documents.

        Positions that do not exist are ignored.
        """
        condition = f"position >= {positions.start:d} AND position < {positions.stop:d}"
        return self._passages_where(f"document_id = {quoted(document_id)} AND {condition}")

    def _passages_where(self, condition: str, limit: int | None = None) -> list[Passage]:
        query = self._table.search().where(condition).select(passage_columns(self._table)).limit(limit)
        passages = [to_passage(row) for row in query.to_arrow().to_pylist()]
        return sorted(passages, key=lambda passage: passage.position)

    def each_passage(self, batch: int = BATCH_ROWS) -> Iterator[Passage]:
        """Yield all passages in storage order, reading ``batch`` rows at a time."""
        for rows in self._table.search().select(passage_columns(self._table)).limit(None).to_batches(batch):
            yield from map(to_passage, rows.to_pylist())

    def texts(self) -> Iterator[list[str]]:
        """Yield the texts of all passages in batches."""
        for rows in self._table.search().select(["text"]).limit(None).to_batches(BATCH_ROWS):
            yield rows["text"].to_pylist()

    def __len__(self) -> int:
        """Number of passages stored."""
        return int(self._table.count_rows())

    def summary(self) -> CollectionSummary:
        """Return the numbers of documents and passages, with the settings."""
        documents = self.documents()
        incomplete = sum(not document.complete for document in documents)
        passages = sum(document.passages for document in documents)
        return CollectionSummary(self.name, len(documents), incomplete, passages, self.settings)

    def search(
        self,
        query: str,
        *,
        k: int = 8,
        mode: SearchMode = "hybrid",
        min_cosine: Threshold = None,
        document: str | None = None,
    ) -> list[Hit]:
        """Return the best hits of one query; see :meth:`search_many`."""
        return self.search_many([query], k=k, mode=mode, min_cosine=min_cosine, document=document)[0]

    def search_many(
        self,
        queries: Sequence[str],
        *,
        k: int = 8,
        mode: SearchMode = "hybrid",
        min_cosine: Threshold = None,
        document: str | None = None,
        report: str | None = None,
    ) -> list[list[Hit]]:
        """Return the best hits of each query.

        Args:
            queries: Questions or statements.
            k: Maximum number of hits per query.
            mode: ``hybrid`` (weighted sum of cosine and BM25; passages under a heading that has all words of the
                query come first), ``dense`` (cosine), ``bm25`` (words), or ``rrf``
                (reciprocal rank fusion of both).
            min_cosine: Minimum cosine of a hit; ``"measured"`` drops passages that are not relevant
                (:mod:`climassay.corpus.relevance`) in all modes but ``bm25``; None keeps all.
            document: Id of the only document to search; None searches all.
            report: Name of the only report to search; None searches all.

        Returns:
            Hits of each query, best first; ties are ordered by passage id.

        Raises:
            InputError: A query is empty, or ``k``, ``mode`` or ``min_cosine`` is out of range.
        """
        filters = {"document_id": document, "report": report}
        where = " AND ".join(f"{column} = {quoted(value)}" for column, value in filters.items() if value is not None)
        return self._searcher.search(
            queries, lambda: self.encoder, k=k, mode=mode, min_cosine=min_cosine, where=where or None
        )

    @cached_property
    def _searcher(self) -> Searcher:
        weight = DENSE_WEIGHT.get(self.settings.encoder, DEFAULT_DENSE_WEIGHT)

        def index_words() -> None:
            index_new_passages(self._table, self._store, self.name)

        return Searcher(
            self._table,
            self.settings.width,
            dense_weight=weight,
            index_words=index_words,
            relevance=self.relevance,
        )

    def _check_encoder(self, encoder: Encoder) -> None:
        settings = self.settings
        if encoder.fingerprint == settings.encoder_fingerprint:
            return
        if encoder.name == settings.encoder:
            raise InputError(
                f"The collection {self.name!r} was made with an encoder named {settings.encoder} whose weights "
                "or settings have changed since: remove the collection and add its documents again."
            )
        raise InputError(
            f"The collection {self.name!r} was made with the encoder {settings.encoder}, not with {encoder.name}: "
            "use that one, or another collection."
        )


def open_or_create(
    location: Location,
    name: str,
    *,
    encoder: str | None = None,
    passage_size: int | None = None,
    passage_overlap: int | None = None,
    load: Callable[[str], Encoder] = load_encoder,
) -> Collection:
    """Open a collection, or create it if it does not exist; stored settings must match the arguments.

    Args:
        location: Workspace, folder, or address of an object store.
        name: Name of the collection.
        encoder: Name of an encoder; by default the stored one, or :data:`BUNDLED_ENCODER` for a new collection.
        passage_size: Length of passages in characters; by default the stored one, or :data:`DEFAULT_PASSAGE_SIZE`.
        passage_overlap: Overlap of passages in characters; by default the stored one, or
            :data:`DEFAULT_PASSAGE_OVERLAP`.
        load: Function that loads an encoder by name.

    Raises:
        InputError: The name is invalid, or the collection exists with other settings.
        ModelError: The encoder cannot be found.
    """
    store = CollectionStore.at(location)
    check_name(name)
    settings = read_settings(store.open(name).schema, name) if name in store.names() else None
    if passage_size is None:
        passage_size = settings.passage_size if settings else DEFAULT_PASSAGE_SIZE
    if passage_overlap is None:
        passage_overlap = settings.passage_overlap if settings else min(DEFAULT_PASSAGE_OVERLAP, passage_size // 2)
    loaded_encoder = load(encoder or (settings.encoder if settings else BUNDLED_ENCODER))
    if settings is None:
        # Before anything is made: an encoder whose packages are missing leaves no empty collection behind.
        loaded_encoder.encode(["Can it encode?"])
    return Collection.create(location, name, loaded_encoder, passage_size=passage_size, passage_overlap=passage_overlap)


def list_collections(location: Location) -> list[CollectionSummary]:
    """Return summaries of all collections of a location by name, ignoring foreign tables.

    Raises:
        DamagedCollectionError: A collection is damaged; :func:`survey_collections` returns the others.
    """
    summaries, damaged = survey_collections(location)
    if damaged:
        raise damaged[0]
    return summaries


def survey_collections(location: Location) -> tuple[list[CollectionSummary], list[DamagedCollectionError]]:
    """Return summaries of the readable collections by name, and an error for each damaged one."""
    store = CollectionStore.at(location)
    summaries, damaged = [], []
    for name in store.names():
        try:
            summaries.append(Collection(store, name, store.open(name)).summary())
        except DamagedCollectionError as error:
            damaged.append(error)
        except InputError:
            continue
    return summaries, damaged


def remove_collection(location: Location, name: str) -> None:
    """Delete a collection, and the original files that no other collection needs.

    Raises:
        InputError: The collection does not exist.
    """
    store = CollectionStore.at(location)
    documents: list[StoredDocument] = []
    with suppress(DamagedCollectionError):
        documents = stored_documents(store.open(name))
    store.drop(name)
    Originals(store.originals).remove((document.id for document in documents), store.holds)
