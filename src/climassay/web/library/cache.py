"""The collections of a workspace, opened once a server, with what pages tell about them."""

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

NAMES_SECONDS = 5.0
"""How long the names of the collections in an object store are believed."""
_Mark = tuple[int, int]
"""Tells a collection's folder from one of the same name that was made after this one was removed."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a collection holds, at one version of it."""

    name: str
    encoder: str
    documents: tuple[StoredDocument, ...]
    """By title."""
    passages: int
    bytes: int
    """On disk, with vectors and index; 0 in an object store."""
    version: int

    def document(self, document_id: str) -> StoredDocument:
        """A document by its id; missing where there is none."""
        for document in self.documents:
            if document.id == document_id:
                return document
        raise Missing(f"The collection {self.name} has no document {document_id!r}.")


class Titles:
    """A title for each document of the library that no other document has."""

    def __init__(self, everything: list[Contents]) -> None:
        self.everything = everything
        self._made: dict[str, Mapping[str, str]] = {}

    def of(self, name: str) -> Mapping[str, str]:
        """The titles of a collection's documents, by id; empty where there is no such collection."""
        if name not in self._made:
            own = next((one.documents for one in self.everything if one.name == name), ())
            ids = {one.id for one in own}
            others = (document for one in self.everything for document in one.documents if document.id not in ids)
            titles = distinct_titles([*own, *others])
            self._made[name] = {one.id: titles[one.id] for one in own}
        return self._made[name]

    def titled(self, name: str, passage: Passage) -> Passage:
        """A passage under the title that its document goes by today; as it is where the document is gone."""
        return replace(passage, document=self.of(name).get(passage.document_id, passage.document))


class CollectionCache:
    """The opened collections of a workspace; what other processes add, make or remove is seen at the next look."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._store = CollectionStore.at(app.workspace)
        self._named: tuple[float, frozenset[str]] | None = None
        self._lock = threading.Lock()
        self._open: dict[tuple[str, bool], tuple[_Mark, Collection]] = {}
        self._contents: dict[str, tuple[_Mark, Contents]] = {}
        self._titles = Titles([])
        self.originals = Originals(self._store.originals)

    def has(self, name: str) -> bool:
        """Whether there is a collection of that name."""
        try:
            self._mark(name)
        except Missing:
            return False
        return True

    def browse(self, name: str) -> Collection:
        """A collection to read in; its encoder need not be here.

        Raises:
            Missing: There is none with that name.
            InputError: It is damaged, or none of ours.
        """
        return self._opened(name, with_encoder=False)

    def search(self, name: str) -> Collection:
        """A collection to search in or to add to; all collections share their encoders.

        Raises:
            Missing: There is none with that name.
            InputError: It is damaged, or was made with another encoder than the one of that name now.
            ModelError: Its encoder is not here.
        """
        return self._opened(name, with_encoder=True)

    def search_or_make(self, name: str) -> Collection:
        """A collection to add to, made with the bundled encoder where it is not there.

        Raises:
            InputError: The name is none, or as for :meth:`search`.
            ModelError: The encoder is not here.
        """
        check_name(name)
        if not self.has(name):
            Collection.create(self._app.workspace, name, self._app.encoder(BUNDLED_ENCODER))
            self._named = None
        return self.search(name)

    def contents(self, name: str) -> Contents:
        """What a collection holds; counted anew only when it has changed.

        Raises:
            Missing: There is none with that name.
            InputError: It is damaged, or none of ours.
        """
        mark, collection = self._mark(name), self.browse(name)
        version = collection.version
        known = self._contents.get(name)
        if known is None or known[0] != mark or known[1].version != version:
            documents = tuple(collection.documents())
            passages = sum(document.passages for document in documents)
            size = 0 if self._store.folder is None else _size(self._store.folder / f"{name}.lance")
            contents = Contents(name, collection.settings.encoder, documents, passages, size, version)
            known = self._contents[name] = (mark, contents)
        return known[1]

    def all_contents(self) -> list[Contents]:
        """What every collection holds; tables that are none of ours are left out."""
        results = []
        for name in self._store.names() if self._store.folder is not None else sorted(self._remote_names()):
            try:
                results.append(self.contents(name))
            except (InputError, Missing):
                continue
        return results

    def with_passages(self) -> list[str]:
        """Names of the collections that answers and debates may rest on."""
        return [one.name for one in self.all_contents() if one.passages]

    def titles(self) -> "Titles":
        """The titles of all documents as they are now; whoever shows many passages asks once."""
        everything = self.all_contents()
        if self._titles.everything != everything:
            self._titles = Titles(everything)
        return self._titles

    def rename_document(self, name: str, document_id: str, title: str) -> None:
        """Give a document another title; missing where there is no such document.

        Raises:
            InputError: The title is empty or too long.
        """
        self.contents(name).document(document_id)
        self.browse(name).rename(document_id, title)

    def remove_document(self, name: str, document_id: str) -> None:
        """Take a document out of a collection; missing where either is not there."""
        self.contents(name).document(document_id)
        self.browse(name).remove(document_id)

    def _opened(self, name: str, *, with_encoder: bool) -> Collection:
        mark = self._mark(name)
        with self._lock:
            known = self._open.get((name, with_encoder))
        if known is not None and known[0] == mark:
            return known[1]
        workspace = self._app.workspace
        collection = Collection.open(workspace, name)
        if with_encoder:
            collection = Collection.open(workspace, name, self._app.encoder(collection.settings.encoder))
        with self._lock:
            # Two visitors may have opened it at once: both go on with the first, so that vectors are read once.
            known = self._open.get((name, with_encoder))
            if known is None or known[0] != mark:
                known = self._open[name, with_encoder] = (mark, collection)
        return known[1]

    def _mark(self, name: str) -> _Mark:
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
        """Names of the collections in an object store, asked for anew after :data:`NAMES_SECONDS`.

        Raises:
            InputError: It does not answer.
        """
        if self._named is None or time.monotonic() > self._named[0] + NAMES_SECONDS:
            try:
                names = frozenset(self._store.names())
            except Exception as error:  # each kind of store fails in ways of its own
                raise InputError("The collections cannot be listed: their object store does not answer.") from error
            self._named = time.monotonic(), names
        return self._named[1]


def found_passage(library: CollectionCache, name: str, passage_id: str) -> Passage:
    """The passage of an address; missing where there is none."""
    opened = library.browse(name)
    with missing():
        return opened.passage(passage_id)


def library_of(app: AppState) -> CollectionCache:
    """The collections of a server."""
    return app.shared("library", lambda: CollectionCache(app))


def _size(folder: Path) -> int:
    """Bytes of all files of a folder; files that vanish meanwhile, as old versions do, count nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total
