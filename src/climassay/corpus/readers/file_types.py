"""Read files of all supported types into documents, within size limits; a bad file never stops the others."""

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from climassay.corpus.documents import Document, PageCallback, ReadOptions, ReadResult, Skipped
from climassay.errors import DocumentError
from climassay.io import decompress, format_size, read_file, reason
from climassay.registry import Registry

Read = Callable[..., ReadResult | Document]
_GZIP = b"\x1f\x8b"
_MAX_LISTED_ENDINGS = 8


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reader of one file type."""

    endings: tuple[str, ...]
    """File name endings in lower case with dot; each may be followed by ``.gz``."""
    read: Read
    """Function from bytes, file name and options to a document, or a :class:`ReadResult` for several."""
    magic: bytes = b""
    """First bytes of the content, by which files with unknown endings are recognised; empty for none."""
    paged: bool = False
    """True if ``read`` takes a page callback as its last argument."""
    packed: bool = False
    """True if gzip content is not unpacked before reading."""


READERS: Registry[FileReader] = Registry(
    "reader",
    "climassay.readers",
    [f"climassay.corpus.readers.{name}" for name in ("pdf", "html", "markdown", "text", "archives", "word", "tables")],
)
"""Readers by file type."""


def reader(kind: str, *endings: str, **more: Any) -> Callable[[Read], Read]:
    """Register a function as the reader of a file type; ``more`` are fields of :class:`FileReader`.

    Example:
        >>> @reader("rst", ".rst")
        ... def read_rst(data, source, options):
        ...     return Document(document_id(data), source, source, (Block(data.decode()),), media="rst")
    """

    def add(function: Read) -> Read:
        READERS.add(kind, FileReader(endings, function, **more), function.__module__)
        return function

    return add


def file_endings() -> dict[str, str]:
    """Return the file type of each file name ending."""
    return {ending: kind for kind, file_reader in READERS.items() for ending in file_reader.endings}


def kind_of(path: Path) -> str | None:
    """Return the file type for a file name, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return file_endings().get(suffixes[-1]) if suffixes else None


def open_file(path: Path, max_bytes: int, source: str | None = None) -> tuple[str, str, bytes]:
    """Read a file, unpacking gzip, and return its name, type and content.

    Args:
        path: The file.
        max_bytes: Maximum size in bytes, packed and unpacked.
        source: Name for messages; by default the file name.

    Raises:
        DocumentError: The file is missing, a folder, unreadable, of unknown type, empty, larger than ``max_bytes``
            (packed or unpacked), or damaged gzip.
    """
    source = source or path.name
    if not path.exists():
        raise DocumentError(f"There is no file {path}.")
    if path.is_dir():
        raise DocumentError(f"{path} is a folder, not a file.")
    kind = kind_of(path)
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise DocumentError(f"{source} is larger than the limit of {format_size(max_bytes)}.")
        data = read_file(path, max_bytes)
    except OSError as error:
        raise DocumentError(f"{source} cannot be read ({reason(error)}).") from None
    if not data:
        raise DocumentError(f"{source} is empty.")
    kind = kind or next(
        (name for name, file_reader in READERS.items() if file_reader.magic and data.startswith(file_reader.magic)),
        None,
    )
    if kind is None:
        listed = " ".join(sorted(file_endings()))
        raise DocumentError(
            f"{source} is of an unknown kind; names must end in one of {listed} (each may have .gz after it)."
        )
    if data.startswith(_GZIP) and not READERS[kind].packed:
        try:
            data = decompress(data, max_bytes)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise DocumentError(f"{source} unpacks to more than the limit of {format_size(max_bytes)}.") from None
            raise DocumentError(f"{source} is a damaged or truncated gzip file.") from None
        if not data:
            raise DocumentError(f"{source} is empty.")
    elif path.suffix.lower() == ".gz":
        raise DocumentError(f"{source} is not a gzip file although its name ends in .gz.")
    return source, kind, data


def read(
    path: str | Path,
    options: ReadOptions | None = None,
    *,
    source: str | None = None,
    on_page: PageCallback | None = None,
) -> ReadResult:
    """Read one file into documents.

    Args:
        path: PDF, HTML, Markdown, plain text, EPUB, Word (.docx), or a table (CSV, TSV, JSON, JSONL, Parquet);
            gzip of any of these.
        options: Column names of tables, and metadata that overrides the file's.
        source: Name of the file in documents and messages; by default its own.
        on_page: Called before each page of a PDF file with its number and the number of pages.

    Returns:
        The documents of the file (a table may have several) and the parts that could not be read, each with a reason.
        Bad content raises nothing: an unreadable file gives no documents and one reason.
    """
    options = options or ReadOptions()
    path = Path(path)
    name = source or path.name
    try:
        _, kind, data = open_file(path, options.max_bytes, name)
        file_reader = READERS[kind]
        results = file_reader.read(data, name, options, *((on_page,) if file_reader.paged else ()))
    except DocumentError as error:
        return ReadResult(name, (), (Skipped(name, str(error)),))
    result = results if isinstance(results, ReadResult) else ReadResult(name, (results,))
    overrides: dict[str, Any] = dict(options.overrides)
    if len(result.documents) == 1:
        overrides["path"] = str(path)
    return replace(result, documents=tuple(replace(document, **overrides) for document in result.documents))


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """List files to read without duplicates: named files, and files of known types in named folders, sorted.

    Hidden files and folders, files of unknown types, and links that lead out of the folder are skipped unless they are
    named: an untrusted folder may link to private files.
    """
    results: dict[Path, None] = {}
    for path in map(Path, paths):
        results.update(dict.fromkeys(filter(kind_of, _files_below(path)) if path.is_dir() else [path]))
    return list(results)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted, without hidden ones and links that lead out of it."""
    root = folder.resolve()
    for file in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if not hidden and file.is_file() and root in file.resolve().parents:
            yield file


def read_all(paths: Iterable[str | Path], options: ReadOptions | None = None) -> Iterator[ReadResult]:
    """Read files and folders one by one; see :func:`read` and :func:`find_files`.

    Files of unknown types in a folder are counted in ``skipped`` of a result of the folder itself.
    """
    roots = [Path(path) for path in paths]
    for path in find_files(roots):
        yield read(path, options)
    for folder in filter(Path.is_dir, roots):
        endings = Counter(file.suffix.lower() or "no ending" for file in _files_below(folder) if not kind_of(file))
        if endings:
            listed = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(_MAX_LISTED_ENDINGS))
            more = ", ..." if len(endings) > _MAX_LISTED_ENDINGS else ""
            reason = f"files of types that climassay does not read: {endings.total()} ({listed}{more})"
            yield ReadResult(folder.name, (), (Skipped(folder.name, reason),))
