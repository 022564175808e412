"""The files that documents were read from, kept beside the collections, so that a citation leads to the printed page.

A document's id is a hash of its file's content, and its file is kept under it: once, however many collections hold the
document, and whatever the file is called there. Tables are not kept: their rows are documents of their own, and stand
whole in the passages.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from climassay.corpus.collection_storage import write_lock
from climassay.corpus.documents import Document, ReadOptions
from climassay.corpus.readers.cleaning import document_id
from climassay.errors import DocumentError
from climassay.io import write_file

_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Originals:
    """The kept files of one place; several processes may keep and remove them at the same time."""

    folder: Path | None
    """None where nothing is kept: collections at a bare address of an object store."""

    @property
    def lock_file(self) -> Path | None:
        """File whose lock lets one process keep or remove files."""
        return None if self.folder is None else self.folder / ".lock"

    def find(self, document: str) -> Path | None:
        """The file of a document, by the document's id; None where none is kept."""
        return self.find_pdf(document) or self._there(document, document)

    def find_pdf(self, document: str) -> Path | None:
        """As :meth:`find`, where the file is a PDF."""
        return self._there(document, f"{document}.pdf")

    def keep(self, document: Document) -> bool:
        """Keep the file a document was read from; gives whether it is kept, now or since an earlier call.

        A file that is gone, has changed since it was read, or holds other documents as well is not kept.

        Raises:
            InputError: It cannot be written.
        """
        from climassay.corpus.readers.file_types import open_file

        if self.folder is None or document.path is None or not _ID.fullmatch(document.id):
            return False
        with write_lock(self.lock_file):
            if self.find(document.id) is not None:
                return True
            try:
                _, _, data = open_file(Path(document.path), ReadOptions().max_bytes, document.source)
            except DocumentError:
                return False
            if document_id(data) != document.id:
                return False
            write_file(self.folder / (f"{document.id}.pdf" if document.media == "pdf" else document.id), data)
            return True

    def remove(self, documents: Iterable[str], is_held: Callable[[str], bool]) -> None:
        """Remove the files of documents, by their ids, unless a collection still holds the document."""
        kept = [(document, file) for document in documents if (file := self.find(document)) is not None]
        if kept:
            with write_lock(self.lock_file):
                for document, file in kept:
                    if not is_held(document):
                        file.unlink(missing_ok=True)

    def bytes_of(self, documents: Iterable[str]) -> int:
        """Size of the files of documents, by their ids."""
        files = map(self.find, documents)
        return sum(file.stat().st_size for file in files if file is not None)

    def _there(self, document: str, name: str) -> Path | None:
        # Other ids, as of tables and other people's readers, may hold anything, and name no file.
        if self.folder is None or not _ID.fullmatch(document):
            return None
        file = self.folder / name
        return file if file.is_file() else None
