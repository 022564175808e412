"""The collections of a workspace, opened once per server, with their documents and titles."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from climassay.corpus.collection import Collection
from climassay.corpus.collection_storage import CollectionStore, StoredDocument, check_name, distinct_titles
from climassay.corpus.documents import Passage
from climassay.corpus.originals import Originals
from climassay.errors import InputError
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.web.app_state import AppState
from climassay.web.failures import Missing, missing

NAMES_CACHE_SECONDS = 5.0
"""Seconds for which the names of the collections in an object store are cached."""
_FolderId = tuple[int, int]
"""Inode and time of change of a folder, which differ if a collection is removed and created again."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Documents and size of a collection at one version."""

    name: str
    encoder: str
    documents: tuple[StoredDocument, ...]
    """Documents by title."""
    passages: int
    bytes: int
    """Size on disk, with vectors and index; 0 in an object store."""
    version: int

    def document(self, document_id: str) -> StoredDocument:
        """Return a document by its id.

        Raises:
            Missing: The collection has no such document.
        """
        for document in self.documents:
            if document.id == document_id:
                return document
        raise Missing(f"The collection {self.name} has no document {document_id!r}.")


class Titles:
    """Titles that tell all documents of the library apart."""

    def __init__(self, contents: list[Contents]) -> None:
        self.contents = contents
        self._by_collection: dict[str, Mapping[str, str]] = {}

    def of(self, name: str) -> Mapping[str, str]:
        """Return the titles of the documents of a collection by id; empty if there is no such collection."""
        if name not in self._by_collection:
            documents = next((contents.documents for contents in self.contents if contents.name == name), ())
            ids = {document.id for document in documents}
            all_documents = (document for contents in self.contents for document in contents.documents)
            other_documents = (document for document in all_documents if document.id not in ids)
            titles = distinct_titles([*documents, *other_documents])
            self._by_collection[name] = {document.id: titles[document.id] for document in documents}
        return self._by_collection[name]

    def titled(self, name: str, passage: Passage) -> Passage:
        """Return a passage with the current title of its document; unchanged if the document was removed."""
        return replace(passage, document=self.of(name).get(passage.document_id, passage.document))


class CollectionCache:
    """Opened collections of a workspace; changes by other processes are seen at the next access."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._store = CollectionStore.at(app.workspace)
        self._remote_listing: tuple[float, frozenset[str]] | None = None
        self._lock = threading.Lock()
        self._open: dict[tuple[str, bool], tuple[_FolderId, Collection]] = {}
        self._contents: dict[str, tuple[_FolderId, Contents]] = {}
        self._titles = Titles([])
        self.originals = Originals(self._store.originals)

    def has(self, name: str) -> bool:
        """Return whether a collection exists."""
        try:
            self._folder_id(name)
        except Missing:
            return False
        return True

    def browse(self, name: str) -> Collection:
        """Open a collection for reading, without its encoder.

        Raises:
            Missing: There is no such collection.
            InputError: It is damaged, or not a collection of climassay.
        """
        return self._opened(name, with_encoder=False)

    def search(self, name: str) -> Collection:
        """Open a collection with its encoder, for searching and adding; collections share their encoders.

        Raises:
            Missing: There is no such collection.
            InputError: It is damaged, or was made with another version of its encoder.
            ModelError: Its encoder is not installed.
        """
        return self._opened(name, with_encoder=True)

    def search_or_make(self, name: str) -> Collection:
        """Open a collection for adding; create it with the bundled encoder if it does not exist.

        Raises:
            InputError: The name is invalid, or as for :meth:`search`.
            ModelError: The encoder is not installed.
        """
        check_name(name)
        if not self.has(name):
            Collection.create(self._app.workspace, name, self._app.encoder(BUNDLED_ENCODER))
            self._remote_listing = None
        return self.search(name)

    def contents(self, name: str) -> Contents:
        """Return the contents of a collection, read again only if it has changed.

        Raises:
            Missing: There is no such collection.
            InputError: It is damaged, or not a collection of climassay.
        """
        folder_id, collection = self._folder_id(name), self.browse(name)
        version = collection.version
        cached = self._contents.get(name)
        if cached is None or cached[0] != folder_id or cached[1].version != version:
            documents = tuple(collection.documents())
            passages = sum(document.passages for document in documents)
            n_bytes = 0 if self._store.folder is None else _size(self._store.folder / f"{name}.lance")
            contents = Contents(name, collection.settings.encoder, documents, passages, n_bytes, version)
            cached = self._contents[name] = (folder_id, contents)
        return cached[1]

    def all_contents(self) -> list[Contents]:
        """Return the contents of all collections; tables that are not collections of climassay are left out."""
        results = []
        for name in self._store.names() if self._store.folder is not None else sorted(self._remote_names()):
            try:
                results.append(self.contents(name))
            except (InputError, Missing):
                continue
        return results

    def with_passages(self) -> list[str]:
        """Return the names of the collections that have passages."""
        return [contents.name for contents in self.all_contents() if contents.passages]

    def titles(self) -> "Titles":
        """Return the current titles of all documents."""
        all_contents = self.all_contents()
        if self._titles.contents != all_contents:
            self._titles = Titles(all_contents)
        return self._titles

    def edit_document(self, name: str, document_id: str, **details: str) -> None:
        """Change the title, author or date of a document; see :meth:`climassay.corpus.Collection.edit`.

        Raises:
            Missing: There is no such document.
            InputError: A detail cannot be.
        """
        self.contents(name).document(document_id)
        self.browse(name).edit(document_id, **details)

    def remove_document(self, name: str, document_id: str) -> None:
        """Remove a document from a collection.

        Raises:
            Missing: There is no such document.
        """
        self.contents(name).document(document_id)
        self.browse(name).remove(document_id)

    def _opened(self, name: str, *, with_encoder: bool) -> Collection:
        folder_id = self._folder_id(name)
        with self._lock:
            cached = self._open.get((name, with_encoder))
        if cached is not None and cached[0] == folder_id:
            return cached[1]
        workspace = self._app.workspace
        collection = Collection.open(workspace, name)
        if with_encoder:
            collection = Collection.open(workspace, name, self._app.encoder(collection.settings.encoder))
        with self._lock:
            # Two visitors may have opened it at once: both go on with the first, so that vectors are read once.
            cached = self._open.get((name, with_encoder))
            if cached is None or cached[0] != folder_id:
                cached = self._open[name, with_encoder] = (folder_id, collection)
        return cached[1]

    def _folder_id(self, name: str) -> _FolderId:
        try:
            check_name(name)
            if self._store.folder is not None:
                state = (self._store.folder / f"{name}.lance").stat()
                return state.st_ino, state.st_ctime_ns
        except (InputError, OSError):
            raise Missing(f"There is no collection {name!r}.") from None
        if name not in self._remote_names():
            raise Missing(f"There is no collection {name!r}.")
        return 0, 0  # an object store tells no time of change; the version of a collection does

    def _remote_names(self) -> frozenset[str]:
        """Return the names of the collections in an object store, cached for :data:`NAMES_CACHE_SECONDS`.

        Raises:
            InputError: The object store does not answer.
        """
        if self._remote_listing is None or time.monotonic() > self._remote_listing[0] + NAMES_CACHE_SECONDS:
            try:
                names = frozenset(self._store.names())
            except Exception as error:  # each kind of store fails in ways of its own
                raise InputError("The collections cannot be listed: their object store does not answer.") from error
            self._remote_listing = time.monotonic(), names
        return self._remote_listing[1]


def find_passage(library: CollectionCache, name: str, passage_id: str) -> Passage:
    """Return a passage.

    Raises:
        Missing: There is no such collection or passage.
    """
    opened = library.browse(name)
    with missing():
        return opened.passage(passage_id)


def collection_cache(app: AppState) -> CollectionCache:
    """Return the collections of a server."""
    return app.shared("library", lambda: CollectionCache(app))


def _size(folder: Path) -> int:
    """Return the size of all files of a folder; files that are deleted meanwhile count 0."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total
