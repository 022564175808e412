"""Adding documents to a collection so that it can be killed anywhere and run again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from climassay.corpus.collection_compaction import join, join_if_many
from climassay.corpus.collection_documents import StoredDocument, stored_documents
from climassay.corpus.collection_lock import write_lock
from climassay.corpus.collection_rows import CollectionSettings, PendingPassage, quoted, to_table
from climassay.corpus.collection_store import CollectionStore
from climassay.corpus.documents import Document, Skipped
from climassay.corpus.passages import split_passages
from climassay.errors import InputError
from climassay.models.contract import Encoder, StreamingEncoder
from climassay.reporting.results import Result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from climassay.corpus.collection import CollectionSummary

CHUNK = 512
"""Passages that are embedded and then stored together: what a kill can cost, and what is kept in memory."""


@dataclass(frozen=True, slots=True)
class AddProgress:
    """How far adding has come."""

    passages_done: int
    """Embedded by this call."""
    passages_known: int
    """To be embedded by this call, as far as documents have been read."""
    documents: int
    """Documents read."""


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
    collection: "CollectionSummary | None" = None
    """The collection as it is now."""

    def lines(self) -> Iterator[str]:
        """What adding did, line by line."""
        from climassay.corpus.presentation import added_lines

        return added_lines(self)

    def rows(self) -> list[dict[str, Any]]:
        """The documents of the call, with what became of each."""
        kinds = {"added": self.added, "already there": self.already_there, "replaced": self.replaced}
        return [{**asdict(one), "state": state} for state, documents in kinds.items() for one in documents]


ProgressCallback = Callable[[AddProgress], None]


@dataclass
class _Intake:
    """The state of one adding."""

    table: Any
    settings: CollectionSettings
    known: dict[str, StoredDocument]
    """Documents that were there before this call, by id."""
    on_progress: ProgressCallback | None
    seen: dict[str, StoredDocument] = field(default_factory=dict)
    already_there: list[StoredDocument] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    passages_done: int = 0
    passages_known: int = 0

    def progress(self, done: int = 0) -> None:
        self.passages_done += done
        if self.on_progress is not None:
            documents = len(self.seen) + len(self.already_there) + len(self.skipped)
            self.on_progress(AddProgress(self.passages_done, self.passages_known, documents))


def add_documents(
    store: CollectionStore,
    name: str,
    table: Any,
    settings: CollectionSettings,
    documents: Iterable[Document],
    encoder: Encoder,
    *,
    replace: bool = False,
    on_progress: ProgressCallback | None = None,
) -> AddReport:
    """Split, embed and store documents; see :meth:`climassay.corpus.collection.Collection.add`."""
    before = stored_documents(table)
    intake = _Intake(table, settings, {document.id: document for document in before}, on_progress)
    lock = store.lock_file(name)
    replaced: tuple[StoredDocument, ...] = ()
    try:
        for chunk, vectors in _embedded(encoder, _chunks(_pending(intake, documents)), intake.progress):
            if vectors.shape[1] != settings.width:
                raise InputError(
                    f"The encoder {encoder.name} gives {vectors.shape[1]} dimensions, not {settings.width} as it said."
                )
            rows = to_table(chunk, vectors, table.schema)
            with write_lock(lock):
                # Not the id's index: it may lag behind and then lets a passage in twice.
                table.merge_insert("id").use_index(False).when_not_matched_insert_all().execute(rows)
        older = _older_versions(before, intake)
        if replace and older:
            replaced = older
            with write_lock(lock):
                table.delete(f"document_id IN ({', '.join(quoted(document.id) for document in older)})")
    finally:
        with write_lock(lock):
            (join if replaced else join_if_many)(table, store, name)
    return AddReport(
        added=tuple(intake.seen.values()),
        already_there=tuple(intake.already_there),
        replaced=replaced,
        other_versions=() if replace else older,
        passages=intake.passages_done,
        skipped=tuple(intake.skipped),
    )


def _pending(intake: _Intake, documents: Iterable[Document]) -> Iterator[PendingPassage]:
    """Passages that are not stored yet, document after document."""
    size, overlap = intake.settings.passage_size, intake.settings.passage_overlap
    for document in documents:
        if document.id in intake.seen:
            continue
        known = intake.known.get(document.id)
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
        stored = _stored_ids(intake.table, document.id) if known is not None else frozenset[str]()
        missing = [passage for passage in passages if passage.id not in stored]
        intake.passages_known += len(missing)
        intake.progress()
        for passage in missing:
            yield PendingPassage(passage, len(passages))


def _chunks(pending: Iterable[PendingPassage]) -> Iterator[list[PendingPassage]]:
    chunk: list[PendingPassage] = []
    for item in pending:
        chunk.append(item)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


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


def _stored_ids(table: Any, document_id: str) -> frozenset[str]:
    query = table.search().where(f"document_id = {quoted(document_id)}").select(["id"]).limit(None)
    return frozenset(query.to_arrow()["id"].to_pylist())


def _older_versions(before: Sequence[StoredDocument], intake: _Intake) -> tuple[StoredDocument, ...]:
    """Documents that were there before and have the source and title, but not the content, of one added now."""
    kept = {document.id for document in intake.already_there} | set(intake.seen)
    places = {(document.source, document.title) for document in intake.seen.values()}
    return tuple(
        document for document in before if (document.source, document.title) in places and document.id not in kept
    )
