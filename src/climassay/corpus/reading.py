"""Read files of any supported kind into documents; a bad file never stops the others."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from climassay.corpus.documents import Document, Skipped
from climassay.corpus.opening import READERS, Opened, kind_of, open_file
from climassay.corpus.options import PageCallback, ReadOptions, ReadResult, TableColumns
from climassay.errors import DocumentError

__all__ = ["ReadOptions", "ReadResult", "TableColumns", "find_files", "read", "read_all"]


def read(
    path: str | Path,
    options: ReadOptions | None = None,
    *,
    source: str | None = None,
    on_page: PageCallback | None = None,
) -> ReadResult:
    """Read one file.

    Args:
        path: PDF, HTML, Markdown, plain text, EPUB, Word (.docx), or a table (CSV, TSV, JSON, JSONL, Parquet);
            gzip of any of these.
        options: Columns of tables, and what to put in place of what the file says of itself.
        source: Name by which its people know the file, where it lies here under another one; documents and sentences
            name it so.
        on_page: Called before each page of a PDF file with its number and the number of pages.

    Returns:
        The documents in the file (tables may hold many) and, each in one sentence, what could not be read. A file that
        cannot be read at all gives no document and its reason; nothing is raised for bad content.
    """
    options = options or ReadOptions()
    path = Path(path)
    name = source or path.name
    try:
        result = _dispatch(open_file(path, options.max_bytes, source), options, on_page)
    except DocumentError as error:
        return ReadResult(name, (), (Skipped(name, str(error)),))
    documents = tuple(_override(document, options) for document in result.documents)
    return dataclasses.replace(result, documents=documents)


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """Files to read, each once: a file as named; of a folder, all files of known kinds below it in name order.

    Hidden files and folders, files of unknown kinds, and links that lead out of the folder are left out unless they are
    named themselves: a folder from somebody else may link to files that were never meant to be read.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            below = (file for file in sorted(path.rglob("*")) if file.is_file() and kind_of(file))
            visible = (file for file in below if not any(part.startswith(".") for part in file.relative_to(path).parts))
            found.update(dict.fromkeys(file for file in visible if _lies_in(file, path)))
        else:
            found[path] = None
    return list(found)


def _lies_in(file: Path, folder: Path) -> bool:
    return folder.resolve() in file.resolve().parents


def read_all(paths: Iterable[str | Path], options: ReadOptions | None = None) -> Iterator[ReadResult]:
    """Read files and folders one after the other; see :func:`read` and :func:`find_files`."""
    for path in find_files(paths):
        yield read(path, options)


def _dispatch(opened: Opened, options: ReadOptions, on_page: PageCallback | None) -> ReadResult:
    """Hand the content to the reader of its kind."""
    chosen = READERS[opened.kind]
    found = chosen.read(opened.data, opened.source, options, *((on_page,) if chosen.paged else ()))
    return found if isinstance(found, ReadResult) else ReadResult(opened.source, (found,))


def _override(document: Document, options: ReadOptions) -> Document:
    overrides: dict[str, Any] = dict(options.overrides)
    return dataclasses.replace(document, **overrides)
