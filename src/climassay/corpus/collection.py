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
    quote_sql,
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
"""Size of passages and overlap of consecutive passages, in characters."""
MAX_TITLE_LENGTH = 300
"""Maximum length of a title, author or date set by :meth:`Collection.edit`, in characters."""
BATCH_ROWS = 1024
"""Number of rows fetched at a time when iterating over all passages."""
CHUNK_PASSAGES = 512
"""Number of passages embedded and stored together; an interruption loses at most this number of embeddings."""


ProgressCallback = Callable[[AddProgress], None]


@dataclass
class _AdditionState:
    """State of one call of :meth:`Collection.add`."""

    table: Any
    settings: CollectionSettings
    existing_documents: dict[str, StoredDocument]
    """Documents that the collection contained before the call, by id."""
    on_progress: ProgressCallback | None
    new_documents: dict[str, StoredDocument] = field(default_factory=dict)
    already_there: list[StoredDocument] = field(default_factory=list)
    copies: dict[str, Copy] = field(default_factory=dict)
    """Files whose content is already stored under another name, by file name."""
    skipped: list[Skipped] = field(default_factory=list)
    passages_done: int = 0
    passages_known: int = 0
    single_documents: list[Document] = field(default_factory=list)
    """Documents that are the only one in their file, so that the file may be stored. Their blocks are dropped to save
    memory."""
    omitted_parts: dict[str, tuple[OmittedParts, ...]] = field(default_factory=dict)

    def report_progress(self, n_new: int = 0) -> None:
        self.passages_done += n_new
        if self.on_progress is not None:
            documents = len(self.new_documents) + len(self.already_there) + len(self.skipped)
            self.on_progress(AddProgress(self.passages_done, self.passages_known, documents))


def _iterate_missing_passages(state: _AdditionState, documents: Iterable[Document]) -> Iterator[PendingPassage]:
    """Yield the passages that are not stored yet, document by document, and update ``state``."""
    size, overlap = state.settings.passage_size, state.settings.passage_overlap
    for original in documents:
        document = original
        stored_document = state.new_documents.get(document.id) or state.existing_documents.get(document.id)
        if stored_document is not None and stored_document.source != document.source:
            state.copies[document.source] = Copy(document.source, stored_document)
            # An interrupted addition is completed under its original name.
            document = replace(document, source=stored_document.source, title=stored_document.title)
        if document.id in state.new_documents:
            continue
        if document.omitted_parts:
            state.omitted_parts[document.id] = document.omitted_parts
        if document.path is not None:
            state.single_documents.append(replace(original, blocks=()))
        if stored_document is not None and stored_document.complete:
            if stored_document not in state.already_there:
                state.already_there.append(stored_document)
            state.report_progress()
            continue
        passages = split_passages(document, size=size, overlap=overlap)
        if not passages:
            state.skipped.append(Skipped(document.source, f"{document.title!r} has no text."))
            continue
        state.new_documents[document.id] = StoredDocument.from_document(document, len(passages))
        stored_ids: set[str] = set()
        if stored_document is not None:
            query = state.table.search().where(f"document_id = {quote_sql(document.id)}").select(["id"]).limit(None)
            stored_ids.update(query.to_arrow()["id"].to_pylist())
        missing_passages = [passage for passage in passages if passage.id not in stored_ids]
        state.passages_known += len(missing_passages)
        state.report_progress()
        for passage in missing_passages:
            yield PendingPassage(passage, len(passages))


def _embed_chunks(
    encoder: Encoder, chunks: Iterator[list[PendingPassage]], on_progress: Callable[[int], None]
) -> Iterator[tuple[list[PendingPassage], "NDArray[np.float32]"]]:
    """Yield each chunk with its vectors, shape [passages, width].

    If the encoder encodes several chunks at once, they come in any order.
    """
    if not isinstance(encoder, StreamingEncoder):
        for chunk in chunks:
            texts = [pending_passage.passage.text for pending_passage in chunk]
            yield chunk, encoder.encode(texts, on_progress=on_progress)
        return
    pending_chunks: dict[int, list[PendingPassage]] = {}

    def read_texts() -> Iterator[list[str]]:
        for index, chunk in enumerate(chunks):
            pending_chunks[index] = chunk
            yield [pending_passage.passage.text for pending_passage in chunk]

    for index, vectors in encoder.encode_stream(read_texts(), on_progress=on_progress):
        yield pending_chunks.pop(index), vectors


class Collection:
    """Named set of passages that can be searched.

    Several processes may read and add at the same time; each search sees what all of them have added. The collection
    stores the name and fingerprint of its encoder and rejects any other encoder.
    """

    def __init__(self, store: CollectionStore, name: str, table: Any, encoder: Encoder | None = None) -> None:
        """Wrap an open table; use :meth:`open` or :meth:`create` instead."""
        self.name = name
        self.settings = read_settings(table.schema, name)
        self._store = store
        self._table = table
        self._encoder = encoder
        if encoder is not None:
            self._check_encoder(encoder)

    @classmethod
    def open(cls, location: Location, name: str, encoder: Encoder | None = None) -> "Collection":
        """Open an existing collection.

        Args:
            location: Workspace, folder, or address of an object store that LanceDB supports.
            name: Name of the collection.
            encoder: Encoder of the collection; by default it is loaded by its stored name when first needed.

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
        # Validates the sizes before anything is created.
        split_passages(Document("", "", "", ()), size=passage_size, overlap=passage_overlap)
        store = CollectionStore.at(location)
        settings = CollectionSettings(encoder.name, encoder.fingerprint, encoder.width, passage_size, passage_overlap)
        collection = cls(store, name, store.create(name, settings), encoder)
        stored_settings = collection.settings
        if (stored_settings.passage_size, stored_settings.passage_overlap) != (passage_size, passage_overlap):
            raise InputError(
                f"The collection {name!r} has passages of {stored_settings.passage_size} characters with an overlap "
                f"of {stored_settings.passage_overlap}, not {passage_size} and {passage_overlap}: use its own values "
                "or another collection."
            )
        return collection

    @property
    def encoder(self) -> Encoder:
        """Encoder of the collection's vectors, loaded at first use.

        Raises:
            ModelError: The encoder cannot be found.
            InputError: The encoder's weights differ from those the collection was created with.
        """
        if self._encoder is None:
            encoder = load_encoder(self.settings.encoder)
            self._check_encoder(encoder)
            self._encoder = encoder
        return self._encoder

    @property
    def version(self) -> int:
        """Version number of the stored data. Every change by any process increases it."""
        return int(self._table.version)

    @property
    def originals(self) -> Originals:
        """Store of original files, shared by all collections at the same location."""
        return Originals(self._store.originals)

    @property
    def relevance(self) -> RelevanceRule | None:
        """Relevance rule used for ``min_cosine="measured"``; None if no rule has been measured for the encoder."""
        return RELEVANCE.get(self.settings.encoder)

    def add(
        self,
        documents: Iterable[Document],
        *,
        replace: bool = False,
        keep_originals: bool = True,
        on_progress: ProgressCallback | None = None,
    ) -> AddReport:
        """Add documents, skipping those whose content is already stored, even under another file name.

        Passages are embedded and stored in chunks. After an interruption, the same call embeds only the missing
        passages. Other processes may add to the same collection at the same time.

        Args:
            documents: Documents, iterated lazily: only one document and one chunk of passages are in memory at a time.
            replace: Remove older versions (same source and title, but other content) of the added documents.
            keep_originals: Store the original files, including those of documents that were already in the collection.
            on_progress: Function called after each embedded batch and each document.

        Raises:
            InputError: The encoder returns vectors whose width differs from its stated width, or a file cannot be
                stored.
        """
        encoder = self.encoder
        lock = self._store.lock_file(self.name)
        with write_lock(lock):
            add_missing_columns(self._table)
        existing_documents = stored_documents(self._table)
        state = _AdditionState(
            self._table, self.settings, {document.id: document for document in existing_documents}, on_progress
        )
        replaced_documents: tuple[StoredDocument, ...] = ()
        pending_passages = _iterate_missing_passages(state, documents)
        chunks = iter(lambda: list(islice(pending_passages, CHUNK_PASSAGES)), [])
        try:
            for chunk, vectors in _embed_chunks(encoder, chunks, state.report_progress):
                if (width := vectors.shape[1]) != self.settings.width:
                    expected_width = self.settings.width
                    raise InputError(
                        f"The encoder {encoder.name} gives {width} dimensions, not {expected_width} as it said."
                    )
                rows = to_table(chunk, vectors, self._table.schema)
                with write_lock(lock):
                    # Not the id's index: it may lag behind and then lets a passage in twice.
                    self._table.merge_insert("id").use_index(False).when_not_matched_insert_all().execute(rows)
            # There before, with the source and title of a document added now, but with other content.
            current_ids = {document.id for document in state.already_there} | set(state.new_documents)
            new_names = {(document.source, document.title) for document in state.new_documents.values()}
            older_versions = tuple(
                document
                for document in existing_documents
                if (document.source, document.title) in new_names and document.id not in current_ids
            )
            if replace and older_versions:
                replaced_documents = older_versions
                with write_lock(lock):
                    self._table.delete(
                        f"document_id IN ({', '.join(quote_sql(document.id) for document in older_versions)})"
                    )
        finally:
            with write_lock(lock):
                (compact_locked if replaced_documents else compact_if_fragmented)(self._table, self._store, self.name)
        self.originals.remove((document.id for document in replaced_documents), self._store.has_document)
        # Last, so that files are stored only for added documents; after an interruption, the call is repeated.
        stored_ids = {
            document.id
            for document in state.single_documents
            if keep_originals and document.id in current_ids and self.originals.keep(document)
        }
        return AddReport(
            added=tuple(state.new_documents.values()),
            already_there=tuple(state.already_there),
            replaced=replaced_documents,
            other_versions=() if replace else older_versions,
            passages=state.passages_done,
            skipped=tuple(state.skipped),
            originals=len(stored_ids),
            copies=tuple(state.copies.values()),
            omitted_parts=state.omitted_parts,
        )

    def remove(self, document: str) -> tuple[StoredDocument, ...]:
        """Remove all documents with a given id or title, and return them.

        Raises:
            InputError: No document has that id or title.
        """
        removed_documents = tuple(
            stored_document
            for stored_document in self.documents()
            if document in (stored_document.id, stored_document.title)
        )
        if not removed_documents:
            raise InputError(
                f"The collection {self.name!r} has no document with the id or title {document!r}: "
                f"see `climassay corpus show {self.name}`."
            )
        ids = ", ".join(quote_sql(stored_document.id) for stored_document in removed_documents)
        with write_lock(self._store.lock_file(self.name)):
            self._table.delete(f"document_id IN ({ids})")
            compact_locked(self._table, self._store, self.name)
        self.originals.remove((stored_document.id for stored_document in removed_documents), self._store.has_document)
        return removed_documents

    def edit(
        self, document: str, *, title: str | None = None, author: str | None = None, date: str | None = None
    ) -> StoredDocument:
        """Change the title, author or date of a document, and thereby the citations of its passages.

        Args:
            document: Id, title or source of the document.
            title: New title; None leaves the title unchanged.
            author: New author; None leaves the author unchanged, and an empty string removes the author.
            date: New date, as a year or in ISO 8601; None leaves the date unchanged, and an empty string removes it.

        Returns:
            The edited document.

        Raises:
            InputError: No document or several documents match, the addition of the document was interrupted, the title
                is empty, a value is longer than :data:`MAX_TITLE_LENGTH`, or the date is invalid.
        """
        stored_document = self._find_document(document)
        requested_values = {"title": title, "author": author, "date": date}
        new_values: dict[str, Any] = {
            name: " ".join(text.split()) or None for name, text in requested_values.items() if text is not None
        }
        for name, text in new_values.items():
            if text is None and name == "title":
                raise InputError(f"A title has 1 to {MAX_TITLE_LENGTH} characters, this one has none.")
            if text is not None and len(text) > MAX_TITLE_LENGTH:
                raise InputError(f"The {name} has {len(text)} characters, more than the limit of {MAX_TITLE_LENGTH}.")
        if new_values.get("date") not in (None, stored_document.date):
            check_date(new_values["date"])
        if not stored_document.complete:
            raise InputError(f"Adding {stored_document.title} was interrupted: add it again first, then change it.")
        edited_document = replace(stored_document, **new_values)
        if edited_document != stored_document:
            values = {"document" if name == "title" else name: text for name, text in new_values.items()}
            with write_lock(self._store.lock_file(self.name)):
                add_missing_columns(self._table)
                self._table.update(where=f"document_id = {quote_sql(stored_document.id)}", values=values)
                compact_locked(self._table, self._store, self.name)
        return edited_document

    def compact(self) -> Compaction:
        """Merge the files of small additions; see :func:`climassay.corpus.collection_storage.compact`."""
        return compact(self._table, self._store, self.name)

    def documents(self) -> list[StoredDocument]:
        """Return all documents, sorted by title, including those whose addition was interrupted."""
        return stored_documents(self._table)

    def passage(self, passage_id: str) -> Passage:
        """Return a passage by its id.

        Raises:
            InputError: No passage has that id.
        """
        result = self._select_passages(f"id = {quote_sql(passage_id)}", 1)
        if not result:
            raise InputError(f"The collection {self.name!r} has no passage {passage_id!r}.")
        return result[0]

    def document_passages(self, document: str) -> list[Passage]:
        """Return all passages of a document in reading order.

        Raises:
            InputError: No document, or more than one, has that id, title or source.
        """
        return self._select_passages(f"document_id = {quote_sql(self._find_document(document).id)}")

    def _find_document(self, name: str) -> StoredDocument:
        results = [document for document in self.documents() if name in (document.id, document.title, document.source)]
        if len(results) != 1:
            match_count = "no document" if not results else f"{len(results)} documents"
            raise InputError(f"The collection {self.name!r} has {match_count} {name!r}: name it by its id.")
        return results[0]

    def passages_at(self, document_id: str, positions: range) -> list[Passage]:
        """Return the passages of a document whose positions are in a range, without reading other documents.

        Positions without a passage are ignored.
        """
        condition = f"position >= {positions.start:d} AND position < {positions.stop:d}"
        return self._select_passages(f"document_id = {quote_sql(document_id)} AND {condition}")

    def _select_passages(self, condition: str, limit: int | None = None) -> list[Passage]:
        query = self._table.search().where(condition).select(passage_columns(self._table)).limit(limit)
        passages = [to_passage(row) for row in query.to_arrow().to_pylist()]
        return sorted(passages, key=lambda passage: passage.position)

    def iterate_passages(self, batch_size: int = BATCH_ROWS) -> Iterator[Passage]:
        """Yield all passages in storage order, fetching ``batch_size`` rows at a time."""
        for rows in self._table.search().select(passage_columns(self._table)).limit(None).to_batches(batch_size):
            yield from map(to_passage, rows.to_pylist())

    def texts(self) -> Iterator[list[str]]:
        """Yield the texts of all passages in batches."""
        for rows in self._table.search().select(["text"]).limit(None).to_batches(BATCH_ROWS):
            yield rows["text"].to_pylist()

    def __len__(self) -> int:
        """Return the number of stored passages."""
        return int(self._table.count_rows())

    def summary(self) -> CollectionSummary:
        """Return the settings of the collection and its numbers of documents and passages."""
        documents = self.documents()
        n_incomplete = sum(not document.complete for document in documents)
        passages = sum(document.passages for document in documents)
        return CollectionSummary(self.name, len(documents), n_incomplete, passages, self.settings)

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
            mode: ``dense`` (cosine), ``bm25`` (words), ``rrf`` (reciprocal rank fusion of both), or ``hybrid``
                (weighted sum of both; passages under a heading that contains all words of the query come first).
            min_cosine: Minimum cosine of a hit. ``"measured"`` drops irrelevant passages
                (:mod:`climassay.corpus.relevance`) in all modes except ``bm25``. None keeps all passages.
            document: Id of a document to restrict the search to; None searches all documents.
            report: Name of a report to restrict the search to; None searches all reports.

        Returns:
            Hits of each query, best first; ties are ordered by passage id.

        Raises:
            InputError: A query is empty, or ``k``, ``mode`` or ``min_cosine`` is invalid.
        """
        filters = {"document_id": document, "report": report}
        where = " AND ".join(f"{column} = {quote_sql(value)}" for column, value in filters.items() if value is not None)
        return self._searcher.search(
            queries, lambda: self.encoder, k=k, mode=mode, min_cosine=min_cosine, where=where or None
        )

    @cached_property
    def _searcher(self) -> Searcher:
        weight = DENSE_WEIGHT.get(self.settings.encoder, DEFAULT_DENSE_WEIGHT)

        def index_words() -> None:
            index_new_passages(self._table, self._store, self.name)

        return Searcher(
            self._table, self.settings.width, dense_weight=weight, index_words=index_words, relevance=self.relevance
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
    """Open a collection, or create it if it does not exist. Stored settings must match the arguments.

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
        # Before the collection is created, so that an encoder whose packages are missing leaves no empty collection.
        loaded_encoder.encode(["Can it encode?"])
    return Collection.create(location, name, loaded_encoder, passage_size=passage_size, passage_overlap=passage_overlap)


def list_collections(location: Location) -> list[CollectionSummary]:
    """Return summaries of all collections at a location, sorted by name; tables of other programs are ignored.

    Raises:
        DamagedCollectionError: A collection is damaged; :func:`survey_collections` returns the others.
    """
    summaries, damage_errors = survey_collections(location)
    if damage_errors:
        raise damage_errors[0]
    return summaries


def survey_collections(location: Location) -> tuple[list[CollectionSummary], list[DamagedCollectionError]]:
    """Return summaries of the readable collections, sorted by name, and one error per damaged collection."""
    store = CollectionStore.at(location)
    summaries, damage_errors = [], []
    for name in store.names():
        try:
            summaries.append(Collection(store, name, store.open(name)).summary())
        except DamagedCollectionError as error:
            damage_errors.append(error)
        except InputError:
            continue
    return summaries, damage_errors


def remove_collection(location: Location, name: str) -> None:
    """Delete a collection, with all original files that no other collection needs.

    Raises:
        InputError: The collection does not exist.
    """
    store = CollectionStore.at(location)
    documents: list[StoredDocument] = []
    with suppress(DamagedCollectionError):
        documents = stored_documents(store.open(name))
    store.drop(name)
    Originals(store.originals).remove((document.id for document in documents), store.has_document)
