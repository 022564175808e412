"""Collections: passages of documents, embedded and indexed, in a folder or an object store.

Adding documents can be killed anywhere and run again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from climassay.corpus.collection_storage import (
    PASSAGE_COLUMNS,
    CollectionSettings,
    CollectionStore,
    Compaction,
    DamagedCollectionError,
    Location,
    PendingPassage,
    StoredDocument,
    check_name,
    compact,
    compact_if_fragmented,
    compact_locked,
    index_new_passages,
    quoted,
    read_settings,
    stored_documents,
    to_passage,
    to_table,
    write_lock,
)
from climassay.corpus.documents import Document, Hit, LeftOut, Passage, Skipped, split_passages
from climassay.corpus.originals import Originals
from climassay.corpus.relevance import RELEVANCE, RelevanceRule, Threshold
from climassay.corpus.search import DEFAULT_DENSE_WEIGHT, DENSE_WEIGHT, Searcher, SearchMode
from climassay.errors import InputError
from climassay.models.contract import Encoder, StreamingEncoder
from climassay.models.encoders import BUNDLED_ENCODER, load_encoder
from climassay.reporting.results import Result
from climassay.reporting.tables import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_PASSAGE_SIZE, DEFAULT_PASSAGE_OVERLAP = 2000, 200
"""Characters of a passage, and those that neighbours share."""
MOST_LISTED = 20
"""Documents, and skipped files and pages, that are listed one by one; the rest is counted."""
LONGEST_TITLE = 300
"""Characters of a title that somebody gives a document."""
CHUNK = 512
"""Passages that are embedded and then stored together: what a kill can cost, and what is kept in memory."""


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """One line of the list of collections."""

    name: str
    documents: int
    incomplete: int
    """Documents whose adding was interrupted."""
    passages: int
    settings: CollectionSettings


@dataclass(frozen=True, slots=True)
class AddProgress:
    """How far adding documents has come."""

    passages_done: int
    """Embedded by this call."""
    passages_known: int
    """To be embedded by this call, as far as documents have been read."""
    documents: int
    """Documents read."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that has the content of a document of another name."""

    source: str
    """Name of the file."""
    document: StoredDocument
    """The document that the collection has."""


@dataclass(frozen=True, slots=True)
class AddReport(Result):
    """What adding documents did."""

    added: tuple[StoredDocument, ...]
    """Documents that this call completed."""
    already_there: tuple[StoredDocument, ...]
    """Documents that were complete before, with the same content."""
    replaced: tuple[StoredDocument, ...]
    """Older versions that were taken out, when replacing was asked for."""
    other_versions: tuple[StoredDocument, ...]
    """Documents of the same source and title with other content that were there before and still are."""
    passages: int
    """Passages embedded and stored by this call."""
    skipped: tuple[Skipped, ...]
    """What could not be read, with the reason."""
    originals: int = 0
    """Files of the documents added or there already that are kept beside the collection."""
    collection: CollectionSummary | None = None
    """The collection as it is now."""
    left_out: dict[str, tuple[LeftOut, ...]] = field(default_factory=dict)
    """Parts left out of each document added or there already, by its id; documents read whole are not in it."""
    copies: tuple[Copy, ...] = ()
    """Files that were not added because the collection has their content under another name."""

    def failure(self) -> InputError | None:
        """No document has any text."""
        if self.added or self.already_there:
            return None
        name = self.collection.name if self.collection else "the collection"
        return InputError(f"None of the documents has any text, so nothing was added to {name}.")

    def lines(self) -> Iterator[str]:
        """What adding did, line by line."""
        name, skipped = self.collection.name if self.collection else "the collection", self.skipped
        for stored in self.added[:MOST_LISTED]:
            yield f"added     {stored.title} ({stored.id}, {counted(stored.passages, 'passage')})"
        if len(self.added) > MOST_LISTED:
            yield f"added     and {len(self.added) - MOST_LISTED:,} more"
        titles = {stored.id: stored.title for stored in (*self.added, *self.already_there)}
        for document, left_out in list(self.left_out.items())[:MOST_LISTED]:
            yield f"left out  of {titles.get(document, document)}: {', '.join(map(str, left_out))}"
        if len(self.left_out) > MOST_LISTED:
            yield f"left out  of {len(self.left_out) - MOST_LISTED:,} more (--json lists all)"
        for stored in self.replaced:
            yield f"replaced  {stored.title} ({stored.id})"
        for stored in self.other_versions:
            yield (
                f"note      {name} also keeps another version of {stored.title} ({stored.id}): "
                f"`climassay corpus remove {name} {stored.id}` takes it out, adding with --replace does so at once"
            )
        for copy in self.copies[:MOST_LISTED]:
            there_as = copy.document
            yield f"same      {copy.source}: already there as {there_as.source} ({there_as.title}, {there_as.id})"
        if len(self.copies) > MOST_LISTED:
            yield f"same      and {len(self.copies) - MOST_LISTED:,} more (--json lists all)"
        read = {one.source for one in (*self.added, *self.already_there)} | {one.source for one in self.copies}
        there = len({one.id for one in self.already_there}) + sum(one.document in self.added for one in self.copies)
        for item in skipped[:MOST_LISTED]:
            yield f"{'in part' if item.source in read else 'skipped':<9} {item.source}: {item.reason}"
        if len(skipped) > MOST_LISTED:
            yield f"skipped   and {len(skipped) - MOST_LISTED:,} more (--json lists all)"
        yield (
            f"{name}: {counted(len(self.added), 'document')} added with {counted(self.passages, 'new passage')}, "
            f"{there:,} already there, {sum(one.source not in read for one in skipped):,} skipped"
        )

    def rows(self) -> list[dict[str, Any]]:
        """The documents of the call, with what became of each."""
        kinds = {"added": self.added, "already there": self.already_there, "replaced": self.replaced}
        return [
            {**asdict(one), "state": state, "left_out": ", ".join(map(str, self.left_out.get(one.id, ())))}
            for state, documents in kinds.items()
            for one in documents
        ]


ProgressCallback = Callable[[AddProgress], None]


@dataclass
class _Addition:
    """The state of one adding."""

    table: Any
    settings: CollectionSettings
    known: dict[str, StoredDocument]
    """Documents that were there before this call, by id."""
    on_progress: ProgressCallback | None
    seen: dict[str, StoredDocument] = field(default_factory=dict)
    already_there: list[StoredDocument] = field(default_factory=list)
    copies: dict[str, Copy] = field(default_factory=dict)
    """By name of the file."""
    skipped: list[Skipped] = field(default_factory=list)
    passages_done: int = 0
    passages_known: int = 0
    read: list[Document] = field(default_factory=list)
    """Documents with a file, without their text."""
    left_out: dict[str, tuple[LeftOut, ...]] = field(default_factory=dict)

    def progress(self, done: int = 0) -> None:
        self.passages_done += done
        if self.on_progress is not None:
            documents = len(self.seen) + len(self.already_there) + len(self.skipped)
            self.on_progress(AddProgress(self.passages_done, self.passages_known, documents))


def _pending(intake: _Addition, documents: Iterable[Document]) -> Iterator[PendingPassage]:
    """Passages that are not stored yet, document after document."""
    size, overlap = intake.settings.passage_size, intake.settings.passage_overlap
    for read in documents:
        document = read
        known = intake.seen.get(document.id) or intake.known.get(document.id)
        if known is not None and known.source != document.source:
            intake.copies[document.source] = Copy(document.source, known)
            # An interrupted addition is completed under the name that it was begun with.
            document = replace(document, source=known.source, title=known.title)
        if document.id in intake.seen:
            continue
        if document.left_out:
            intake.left_out[document.id] = document.left_out
        if document.path is not None:
            intake.read.append(replace(read, blocks=()))
        if known is not None and known.complete:
            if known not in intake.already_there:
                intake.already_there.append(known)
            intake.progress()
            continue
        passages = split_passages(document, size=size, overlap=overlap)
        if not passages:
            intake.skipped.append(Skipped(document.source, f"{document.title!r} has no text."))
            continue
        intake.seen[document.id] = StoredDocument.of(document, len(passages))
        stored: set[str] = set()
        if known is not None:
            query = intake.table.search().where(f"document_id = {quoted(document.id)}").select(["id"]).limit(None)
            stored.update(query.to_arrow()["id"].to_pylist())
        missing = [passage for passage in passages if passage.id not in stored]
        intake.passages_known += len(missing)
        intake.progress()
        for passage in missing:
            yield PendingPassage(passage, len(passages))


def _embedded(
    encoder: Encoder, chunks: Iterator[list[PendingPassage]], on_progress: Callable[[int], None]
) -> Iterator[tuple[list[PendingPassage], "NDArray[np.float32]"]]:
    """Chunks with their vectors: one after the other, or as they come where the encoder works on several at once."""
    if not isinstance(encoder, StreamingEncoder):
        for chunk in chunks:
            yield chunk, encoder.encode([item.passage.text for item in chunk], on_progress=on_progress)
        return
    under_way: dict[int, list[PendingPassage]] = {}

    def texts() -> Iterator[list[str]]:
        for number, chunk in enumerate(chunks):
            under_way[number] = chunk
            yield [item.passage.text for item in chunk]

    for number, vectors in encoder.encode_stream(texts(), on_progress=on_progress):
        yield under_way.pop(number), vectors


class Collection:
    """A named set of passages that can be searched.

    Several processes may read and add at the same time. The collection remembers the encoder its vectors come from
    and refuses any other one. What is added by one process is found by the next search of every other.
    """

    def __init__(self, store: CollectionStore, name: str, table: Any, encoder: Encoder | None = None) -> None:
        """Use :meth:`open` or :meth:`create`."""
        self.name = name
        self.settings = read_settings(table.schema, name)
        self._store = store
        self._table = table
        self._given_encoder = encoder
        if encoder is not None:
            self._check_encoder(encoder)

    @classmethod
    def open(cls, location: Location, name: str, encoder: Encoder | None = None) -> "Collection":
        """Open a collection that is there.

        Args:
            location: Workspace, folder, or address of an object store that LanceDB understands.
            name: Name of the collection.
            encoder: The encoder it was made with; by default that is loaded by its name when first needed.

        Raises:
            InputError: There is no such collection, or the encoder is another one.
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
        """Open a collection, making it when it is not there.

        Sizes are in characters; see :func:`~climassay.corpus.documents.split_passages`.

        Raises:
            InputError: The name is none, the sizes do not fit, or the collection is there with other settings.
        """
        # The splitter says what does not fit, before anything is made.
        split_passages(Document("", "", "", ()), size=passage_size, overlap=passage_overlap)
        store = CollectionStore.at(location)
        wanted = CollectionSettings(encoder.name, encoder.fingerprint, encoder.width, passage_size, passage_overlap)
        collection = cls(store, name, store.create(name, wanted), encoder)
        there = collection.settings
        if (there.passage_size, there.passage_overlap) != (passage_size, passage_overlap):
            raise InputError(
                f"The collection {name!r} has passages of {there.passage_size} characters with {there.passage_overlap} "
                f"overlapping, not {passage_size} and {passage_overlap}: use its own values or another collection."
            )
        return collection

    @property
    def encoder(self) -> Encoder:
        """The encoder of the collection's vectors.

        Raises:
            ModelError: It cannot be found.
            InputError: What has its name now is another model than the one the collection was made with.
        """
        if self._given_encoder is None:
            encoder = load_encoder(self.settings.encoder)
            self._check_encoder(encoder)
            self._given_encoder = encoder
        return self._given_encoder

    @property
    def version(self) -> int:
        """A number that is another one when what is stored has changed, by whatever process."""
        return int(self._table.version)

    @property
    def originals(self) -> Originals:
        """Files that documents were read from; all collections of a place share them."""
        return Originals(self._store.originals)

    @property
    def relevance(self) -> RelevanceRule | None:
        """What ``min_cosine="measured"`` applies; None if the encoder was not measured: all passages are relevant."""
        return RELEVANCE.get(self.settings.encoder)

    def add(
        self,
        documents: Iterable[Document],
        *,
        replace: bool = False,
        keep_originals: bool = True,
        on_progress: ProgressCallback | None = None,
    ) -> AddReport:
        """Add documents; one that is there already changes nothing, whatever its file is called.

        Passages are embedded and stored in chunks. When the process dies in between, the same call goes on where it
        stopped and embeds only what is missing. Another process may add to the same collection meanwhile.

        Args:
            documents: Read one after the other; at most a chunk of passages and one document are in memory.
            replace: Take out older versions (same source and title, other content) of the documents added.
            keep_originals: Keep the files that they were read from, also of documents that are there already.
            on_progress: Called after each embedded batch and each document.

        Raises:
            InputError: The encoder gives vectors of another width than it said, or a file cannot be kept.
        """
        encoder = self.encoder
        before = stored_documents(self._table)
        intake = _Addition(self._table, self.settings, {document.id: document for document in before}, on_progress)
        lock = self._store.lock_file(self.name)
        replaced: tuple[StoredDocument, ...] = ()
        pending = _pending(intake, documents)
        chunks = iter(lambda: list(islice(pending, CHUNK)), [])
        try:
            for chunk, vectors in _embedded(encoder, chunks, intake.progress):
                if (width := vectors.shape[1]) != self.settings.width:
                    expected = self.settings.width
                    raise InputError(f"The encoder {encoder.name} gives {width} dimensions, not {expected} as it said.")
                rows = to_table(chunk, vectors, self._table.schema)
                with write_lock(lock):
                    # Not the id's index: it may lag behind and then lets a passage in twice.
                    self._table.merge_insert("id").use_index(False).when_not_matched_insert_all().execute(rows)
            # There before, with the source and title of a document added now, but with other content.
            current = {document.id for document in intake.already_there} | set(intake.seen)
            places = {(document.source, document.title) for document in intake.seen.values()}
            older = tuple(one for one in before if (one.source, one.title) in places and one.id not in current)
            if replace and older:
                replaced = older
                with write_lock(lock):
                    self._table.delete(f"document_id IN ({', '.join(quoted(document.id) for document in older)})")
        finally:
            with write_lock(lock):
                (compact_locked if replaced else compact_if_fragmented)(self._table, self._store, self.name)
        self.originals.remove((one.id for one in replaced), self._store.holds)
        # Last, so that no file is kept of what was not added; who is killed before adds once more.
        kept = {one.id for one in intake.read if keep_originals and one.id in current and self.originals.keep(one)}
        return AddReport(
            added=tuple(intake.seen.values()),
            already_there=tuple(intake.already_there),
            replaced=replaced,
            other_versions=() if replace else older,
            passages=intake.passages_done,
            skipped=tuple(intake.skipped),
            originals=len(kept),
            copies=tuple(intake.copies.values()),
            left_out=intake.left_out,
        )

    def remove(self, document: str) -> tuple[StoredDocument, ...]:
        """Take out a document by its id or its title; all documents of that title go.

        Raises:
            InputError: There is none with that id or title.
        """
        gone = tuple(stored for stored in self.documents() if document in (stored.id, stored.title))
        if not gone:
            raise InputError(
                f"The collection {self.name!r} has no document with the id or title {document!r}: "
                f"see `climassay corpus show {self.name}`."
            )
        ids = ", ".join(quoted(stored.id) for stored in gone)
        with write_lock(self._store.lock_file(self.name)):
            self._table.delete(f"document_id IN ({ids})")
            compact_locked(self._table, self._store, self.name)
        self.originals.remove((stored.id for stored in gone), self._store.holds)
        return gone

    def rename(self, document: str, title: str) -> StoredDocument:
        """Give a document another title, by which it is listed, found and cited from now on.

        Args:
            document: Its id, title or source, as :meth:`documents` gives them.
            title: The new one, in one line.

        Returns:
            The document with its new title.

        Raises:
            InputError: No document, or several, of that name; one whose adding was interrupted; or no title, or one
                longer than :data:`LONGEST_TITLE`.
        """
        new = " ".join(title.split())
        if not 0 < len(new) <= LONGEST_TITLE:
            raise InputError(f"A title has 1 to {LONGEST_TITLE} characters, this one has {len(new)}.")
        stored = self._document(document)
        if not stored.complete:
            raise InputError(f"Adding {stored.title} was interrupted: add it again first, then rename it.")
        if new != stored.title:
            with write_lock(self._store.lock_file(self.name)):
                self._table.update(where=f"document_id = {quoted(stored.id)}", values={"document": new})
                compact_locked(self._table, self._store, self.name)
        return replace(stored, title=new)

    def compact(self) -> Compaction:
        """Join the files of small additions; see :func:`climassay.corpus.collection_storage.compact`."""
        return compact(self._table, self._store, self.name)

    def documents(self) -> list[StoredDocument]:
        """All documents by title, those whose adding was interrupted among them."""
        return stored_documents(self._table)

    def passage(self, passage_id: str) -> Passage:
        """A passage by its id.

        Raises:
            InputError: There is none with that id.
        """
        result = self._passages_where(f"id = {quoted(passage_id)}", 1)
        if not result:
            raise InputError(f"The collection {self.name!r} has no passage {passage_id!r}.")
        return result[0]

    def document_passages(self, document: str) -> list[Passage]:
        """All passages of a document, in its order.

        Raises:
            InputError: No document, or several, of that name.
        """
        return self._passages_where(f"document_id = {quoted(self._document(document).id)}")

    def _document(self, name: str) -> StoredDocument:
        results = [one for one in self.documents() if name in (one.id, one.title, one.source)]
        if len(results) != 1:
            known = "no document" if not results else f"{len(results)} documents"
            raise InputError(f"The collection {self.name!r} has {known} {name!r}: name it by its id.")
        return results[0]

    def passages_at(self, document_id: str, positions: range) -> list[Passage]:
        """Some passages of a document, in its order: those that are there, without looking at any other document.

        Positions are numbers of passages, from 0, one after the other.
        """
        place = f"position >= {positions.start:d} AND position < {positions.stop:d}"
        return self._passages_where(f"document_id = {quoted(document_id)} AND {place}")

    def _passages_where(self, condition: str, most: int | None = None) -> list[Passage]:
        query = self._table.search().where(condition).select(list(PASSAGE_COLUMNS)).limit(most)
        passages = [to_passage(row) for row in query.to_arrow().to_pylist()]
        return sorted(passages, key=lambda passage: passage.position)

    def each_passage(self, batch: int = 1024) -> Iterator[Passage]:
        """All passages, as they come, so that a large collection does not have to fit into memory."""
        for rows in self._table.search().select(list(PASSAGE_COLUMNS)).limit(None).to_batches(batch):
            yield from map(to_passage, rows.to_pylist())

    def texts(self, batch: int = 1024) -> Iterator[list[str]]:
        """The texts of all passages, in batches, so that a large collection does not have to fit into memory."""
        reader = self._table.search().select(["text"]).limit(None).to_batches(batch)
        for rows in reader:
            yield rows["text"].to_pylist()

    def __len__(self) -> int:
        """Number of passages stored."""
        return int(self._table.count_rows())

    def summary(self) -> CollectionSummary:
        """What the collection holds, in numbers."""
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
        """The passages that fit a query best; see :meth:`search_many`."""
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
        """The passages that fit each query best.

        Args:
            queries: Questions or statements; encoded together.
            k: Maximum number of hits per query.
            mode: ``hybrid`` (weighted sum of cosine and BM25; passages under a heading that has all words of the
                query come first), ``dense`` (cosine), ``bm25`` (words), or ``rrf``
                (reciprocal rank fusion of both).
            min_cosine: Leave out passages whose cosine to the query is lower, whatever their rank; ``"measured"``
                leaves out those that are not relevant (:mod:`climassay.corpus.relevance`), except in mode ``bm25``,
                where words alone count; None keeps all.
            document: Id of the one document whose passages are looked at; None looks at all.
            report: The one report whose passages are looked at.

        Returns:
            Hits of every query, best first, the same at every call: equals are ordered by passage id.

        Raises:
            InputError: A query is empty, or ``k`` or ``min_cosine`` makes no sense.
        """
        wanted = {"document_id": document, "report": report}
        where = " AND ".join(f"{column} = {quoted(value)}" for column, value in wanted.items() if value is not None)
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
        made = self.settings
        if encoder.fingerprint == made.encoder_fingerprint:
            return
        if encoder.name == made.encoder:
            raise InputError(
                f"The collection {self.name!r} was made with an encoder named {made.encoder} whose weights "
                "or settings have changed since: remove the collection and add its documents again."
            )
        raise InputError(
            f"The collection {self.name!r} was made with the encoder {made.encoder}, not with {encoder.name}: "
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
    """Open a collection with what it remembers, or make it; what is given must agree with what it remembers.

    Args:
        location: Workspace, folder, or address of an object store.
        name: Name of the collection.
        encoder: Name of an encoder; by default the collection's own, for a new one :data:`BUNDLED_ENCODER`.
        passage_size: Characters; by default the collection's own, for a new one :data:`DEFAULT_PASSAGE_SIZE`.
        passage_overlap: Characters; likewise.
        load: From an encoder's name to the encoder.

    Raises:
        InputError: The name is none, or the collection is there with other settings.
        ModelError: The encoder cannot be found.
    """
    store = CollectionStore.at(location)
    check_name(name)
    made = read_settings(store.open(name).schema, name) if name in store.names() else None
    if passage_size is None:
        passage_size = made.passage_size if made else DEFAULT_PASSAGE_SIZE
    if passage_overlap is None:
        passage_overlap = made.passage_overlap if made else min(DEFAULT_PASSAGE_OVERLAP, passage_size // 2)
    model = load(encoder or (made.encoder if made else BUNDLED_ENCODER))
    if made is None:
        # Before anything is made: an encoder whose packages are missing leaves no empty collection behind.
        model.encode(["Can it encode?"])
    return Collection.create(location, name, model, passage_size=passage_size, passage_overlap=passage_overlap)


def list_collections(location: Location) -> list[CollectionSummary]:
    """All collections of a place, by name; tables that are none of climassay's are left out.

    Raises:
        DamagedCollectionError: One of them is damaged; :func:`survey_collections` gives the others.
    """
    summaries, damaged = survey_collections(location)
    if damaged:
        raise damaged[0]
    return summaries


def survey_collections(location: Location) -> tuple[list[CollectionSummary], list[DamagedCollectionError]]:
    """The collections of a place that can be read, by name, and for each damaged one what is wrong with it."""
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
    """Delete a collection with all that is in it.

    Raises:
        InputError: There is none with that name.
    """
    store = CollectionStore.at(location)
    documents: list[StoredDocument] = []
    with suppress(DamagedCollectionError):
        documents = stored_documents(store.open(name))
    store.drop(name)
    Originals(store.originals).remove((one.id for one in documents), store.holds)
