"""Original files of documents, stored beside the collections, so that a citation can open the printed page.

A document's id is a hash of its file's content, and the file is stored under this id only once even if several
collections contain the document. Tables are not stored: their rows are separate documents whose text is in the
passages.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from climassay.corpus.documents import Document, ReadOptions
from climassay.corpus.guarded_table import write_lock
from climassay.corpus.readers.cleaning import document_id
from climassay.errors import DocumentError
from climassay.io import write_file

_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Originals:
    """Stored original files of one location; several processes may add and remove files at the same time."""

    folder: Path | None
    """Folder of the files. None if files are not stored, as for collections in an object store without a workspace."""

    @property
    def lock_file(self) -> Path | None:
        """Path of the lock for adding and removing files."""
        return None if self.folder is None else self.folder / ".lock"

    def find(self, document: str) -> Path | None:
        """Return the path of the stored file of the document with this id; None if no file is stored."""
        return self.find_pdf(document) or self._find_stored_file(document, document)

    def find_pdf(self, document: str) -> Path | None:
        """Return the path of the stored PDF file of the document with this id; None if no PDF file is stored."""
        return self._find_stored_file(document, f"{document}.pdf")

    def keep(self, document: Document) -> bool:
        """Store the file that a document was read from; return False if it could not be stored.

        A file is not stored if it contains several documents, or was deleted or changed after it was read.

        Raises:
            InputError: The copy cannot be written.
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

    def remove(self, documents: Iterable[str], is_in_use: Callable[[str], bool]) -> None:
        """Delete the files of the documents with these ids, except ids for which ``is_in_use`` returns True."""
        files = [(document, file) for document in documents if (file := self.find(document)) is not None]
        if files:
            with write_lock(self.lock_file):
                for document, file in files:
                    if not is_in_use(document):
                        file.unlink(missing_ok=True)

    def bytes_of(self, documents: Iterable[str]) -> int:
        """Return the total size in bytes of the stored files of the documents with these ids."""
        files = map(self.find, documents)
        return sum(file.stat().st_size for file in files if file is not None)

    def _find_stored_file(self, document: str, name: str) -> Path | None:
        # Ids of tables and of readers in other packages may be any text, and no file is stored under them.
        if self.folder is None or not _ID.fullmatch(document):
            return None
        file = self.folder / name
        return file if file.is_file() else None
