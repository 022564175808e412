"""Collections of a workspace, each opened once per server, with their documents and titles."""

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
from climassay.web.failures import NotFound, not_found_if_invalid

NAMES_CACHE_SECONDS = 5.0
"""Time for which the names of the collections in an object store are cached, in seconds."""
_FolderId = tuple[int, int]
"""Inode and change time of a collection's folder, which change if the collection is removed and created again."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Documents and size of a collection at one version."""

    name: str
    encoder: str
    documents: tuple[StoredDocument, ...]
    """Documents, sorted by title."""
    passages: int
    bytes: int
    """Size on disk in bytes, including vectors and index; 0 for a collection in an object store."""
    version: int

    def document(self, document_id: str) -> StoredDocument:
        """Return the document with the given id.

        Raises:
            NotFound: The collection does not contain the document.
        """
        for document in self.documents:
            if document.id == document_id:
                return document
        raise NotFound(f"The collection {self.name} has no document {document_id!r}.")


class Titles:
    """Titles of the library's documents; equal titles are extended so that all titles differ."""

    def __init__(self, contents: list[Contents]) -> None:
        self.contents = contents
        self._by_collection: dict[str, Mapping[str, str]] = {}

    def of_collection(self, name: str) -> Mapping[str, str]:
        """Return the titles of a collection's documents by document id; empty if the collection does not exist."""
        if name not in self._by_collection:
            documents = next((contents.documents for contents in self.contents if contents.name == name), ())
            ids = {document.id for document in documents}
            all_documents = (document for contents in self.contents for document in contents.documents)
            other_documents = (document for document in all_documents if document.id not in ids)
            titles = distinct_titles([*documents, *other_documents])
            self._by_collection[name] = {document.id: titles[document.id] for document in documents}
        return self._by_collection[name]

    def with_current_title(self, name: str, passage: Passage) -> Passage:
        """Return a copy of a passage with its document's current title; unchanged if the document was removed."""
        return replace(passage, document=self.of_collection(name).get(passage.document_id, passage.document))


class CollectionCache:
    """Collections of a workspace, which are kept open; changes by other processes are visible at the next access."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._store = CollectionStore.at(app.workspace)
        self._remote_listing: tuple[float, frozenset[str]] | None = None
        self._lock = threading.Lock()
        self._collections: dict[tuple[str, bool], tuple[_FolderId, Collection]] = {}
        self._contents: dict[str, tuple[_FolderId, Contents]] = {}
        self._titles = Titles([])
        self.originals = Originals(self._store.originals)

    def has(self, name: str) -> bool:
        """Return whether a collection exists."""
        try:
            self._folder_id(name)
        except NotFound:
            return False
        return True

    def open_readable(self, name: str) -> Collection:
        """Open a collection for reading, without its encoder.

        Raises:
            NotFound: The collection does not exist.
            InputError: The collection is damaged, or is not a collection of climassay.
        """
        return self._open_cached(name, with_encoder=False)

    def open_searchable(self, name: str) -> Collection:
        """Open a collection with its encoder, so that it can be searched and extended.

        Raises:
            NotFound: The collection does not exist.
            InputError: The collection is damaged, or was created with another version of its encoder.
            ModelError: The encoder is not installed.
        """
        return self._open_cached(name, with_encoder=True)

    def open_or_create(self, name: str) -> Collection:
        """Open a collection with its encoder; create it with the bundled encoder if it does not exist.

        Raises:
            InputError: The name is invalid, or the collection cannot be used (see :meth:`open_searchable`).
            ModelError: The encoder is not installed.
        """
        check_name(name)
        if not self.has(name):
            Collection.create(self._app.workspace, name, self._app.encoder(BUNDLED_ENCODER))
            self._remote_listing = None
        return self.open_searchable(name)

    def contents(self, name: str) -> Contents:
        """Return the documents and size of a collection; cached until the collection changes.

        Raises:
            NotFound: The collection does not exist.
            InputError: The collection is damaged, or is not a collection of climassay.
        """
        folder_id, collection = self._folder_id(name), self.open_readable(name)
        version = collection.version
        cached_entry = self._contents.get(name)
        if cached_entry is None or cached_entry[0] != folder_id or cached_entry[1].version != version:
            documents = tuple(collection.documents())
            passages = sum(document.passages for document in documents)
            n_bytes = 0 if self._store.folder is None else _folder_size(self._store.folder / f"{name}.lance")
            contents = Contents(name, collection.settings.encoder, documents, passages, n_bytes, version)
            cached_entry = self._contents[name] = (folder_id, contents)
        return cached_entry[1]

    def list_contents(self) -> list[Contents]:
        """Return the contents of all collections by name; collections that cannot be opened are left out."""
        results = []
        for name in self._store.names() if self._store.folder is not None else sorted(self._remote_names()):
            try:
                results.append(self.contents(name))
            except (InputError, NotFound):
                continue
        return results

    def names_with_passages(self) -> list[str]:
        """Return the names of all collections that contain passages."""
        return [contents.name for contents in self.list_contents() if contents.passages]

    def titles(self) -> "Titles":
        """Return the current titles of all documents of the library."""
        list_contents = self.list_contents()
        if self._titles.contents != list_contents:
            self._titles = Titles(list_contents)
        return self._titles

    def edit_document(self, name: str, document_id: str, **details: str) -> None:
        """Change the title, author or date of a document to the values in ``details``.

        See :meth:`climassay.corpus.Collection.edit`.

        Raises:
            NotFound: The document does not exist.
            InputError: A value is invalid.
        """
        self.contents(name).document(document_id)
        self.open_readable(name).edit(document_id, **details)

    def remove_document(self, name: str, document_id: str) -> None:
        """Remove a document from a collection.

        Raises:
            NotFound: The document does not exist.
        """
        self.contents(name).document(document_id)
        self.open_readable(name).remove(document_id)

    def _open_cached(self, name: str, *, with_encoder: bool) -> Collection:
        folder_id = self._folder_id(name)
        with self._lock:
            cached_entry = self._collections.get((name, with_encoder))
        if cached_entry is not None and cached_entry[0] == folder_id:
            return cached_entry[1]
        workspace = self._app.workspace
        collection = Collection.open(workspace, name)
        if with_encoder:
            collection = Collection.open(workspace, name, self._app.encoder(collection.settings.encoder))
        with self._lock:
            # If two threads have opened it at the same time, both use the first, so that vectors are read only once.
            cached_entry = self._collections.get((name, with_encoder))
            if cached_entry is None or cached_entry[0] != folder_id:
                cached_entry = self._collections[name, with_encoder] = (folder_id, collection)
        return cached_entry[1]

    def _folder_id(self, name: str) -> _FolderId:
        try:
            check_name(name)
            if self._store.folder is not None:
                folder_status = (self._store.folder / f"{name}.lance").stat()
                return folder_status.st_ino, folder_status.st_ctime_ns
        except (InputError, OSError):
            raise NotFound(f"There is no collection {name!r}.") from None
        if name not in self._remote_names():
            raise NotFound(f"There is no collection {name!r}.")
        return 0, 0  # object stores have no change times; the collection's version is compared as well

    def _remote_names(self) -> frozenset[str]:
        """Return the names of the collections in the object store, cached for :data:`NAMES_CACHE_SECONDS`.

        Raises:
            InputError: The object store cannot be reached.
        """
        if self._remote_listing is None or time.monotonic() > self._remote_listing[0] + NAMES_CACHE_SECONDS:
            try:
                names = frozenset(self._store.names())
            except Exception as error:  # each kind of store fails in ways of its own
                raise InputError("The collections cannot be listed: their object store does not answer.") from error
            self._remote_listing = time.monotonic(), names
        return self._remote_listing[1]


def find_passage(library: CollectionCache, name: str, passage_id: str) -> Passage:
    """Return the passage with the given id from a collection.

    Raises:
        NotFound: The collection or the passage does not exist.
    """
    collection = library.open_readable(name)
    with not_found_if_invalid():
        return collection.passage(passage_id)


def collection_cache(app: AppState) -> CollectionCache:
    """Return the server's cache of collections."""
    return app.shared("library", lambda: CollectionCache(app))


def _folder_size(folder: Path) -> int:
    """Return the total size of a folder's files in bytes; files that are deleted meanwhile count as 0."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total
