"""Read files of all supported types into documents, within size limits.

A file that cannot be read does not affect the others.
"""

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from climassay.corpus.documents import Document, PageCallback, ReadOptions, ReadResult, Skipped
from climassay.errors import DocumentError
from climassay.io import decompress, describe_error, format_size, read_file
from climassay.io.reading import join_surrogates
from climassay.registry import Registry

Read = Callable[..., ReadResult | Document]
_GZIP = b"\x1f\x8b"
_MAX_LISTED_ENDINGS = 8


@dataclass(frozen=True, slots=True)
class FileReader:
    """File type with the function that reads it."""

    endings: tuple[str, ...]
    """File name endings in lower case with the dot; each may be followed by ``.gz``."""
    read: Read
    """Function of bytes, file name and options that returns a document, or a :class:`ReadResult` for several documents.
    """
    magic: bytes = b""
    """First bytes of files of this type, used if the file name ending is unknown; empty if files of this type
    differ in their first bytes."""
    reports_pages: bool = False
    """Whether ``read`` accepts a page callback as an additional argument."""
    is_compressed: bool = False
    """Whether ``read`` receives gzip-compressed content without prior decompression."""


READERS: Registry[FileReader] = Registry(
    "reader",
    "climassay.readers",
    [f"climassay.corpus.readers.{name}" for name in ("pdf", "html", "markdown", "text", "archives", "word", "tables")],
)


def reader(kind: str, *endings: str, **fields: Any) -> Callable[[Read], Read]:
    """Register a function as the reader of a file type.

    ``endings`` are file name endings with the dot; ``fields`` are further fields of :class:`FileReader`.

    Example:
        >>> @reader("rst", ".rst")
        ... def read_rst(data, source, options):
        ...     return Document(document_id(data), source, source, (Block(data.decode()),), media="rst")
    """

    def register(function: Read) -> Read:
        READERS.add(kind, FileReader(endings, function, **fields), function.__module__)
        return function

    return register


def list_file_endings() -> dict[str, str]:
    """Return the file type for each file name ending."""
    return {ending: kind for kind, file_reader in READERS.items() for ending in file_reader.endings}


def find_file_type(path: Path) -> str | None:
    """Return the file type of a file by its name; None if the ending is unknown."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return list_file_endings().get(suffixes[-1]) if suffixes else None


def open_file(path: Path, max_bytes: int, source: str | None = None) -> tuple[str, str, bytes]:
    """Read a file, decompressing gzip; return its name, file type and content.

    Args:
        path: The file.
        max_bytes: Maximum size in bytes, compressed and decompressed.
        source: Name of the file in messages; by default the name of ``path``.

    Raises:
        DocumentError: The file is missing, a folder, unreadable, of unknown type, empty, damaged, or larger than
            ``max_bytes``.
    """
    source = source or path.name
    if not path.exists():
        raise DocumentError(f"There is no file {path}.")
    if path.is_dir():
        raise DocumentError(f"{path} is a folder, not a file.")
    kind = find_file_type(path)
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise DocumentError(f"{source} is larger than the limit of {format_size(max_bytes)}.")
        data = read_file(path, max_bytes)
    except OSError as error:
        raise DocumentError(f"{source} cannot be read ({describe_error(error)}).") from None
    if not data:
        raise DocumentError(f"{source} is empty.")
    kind = kind or next(
        (name for name, file_reader in READERS.items() if file_reader.magic and data.startswith(file_reader.magic)),
        None,
    )
    if kind is None:
        known_endings = " ".join(sorted(list_file_endings()))
        raise DocumentError(
            f"{source} is of an unknown kind; names must end in one of {known_endings} (each may have .gz after it)."
        )
    if data.startswith(_GZIP) and not READERS[kind].is_compressed:
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
    """Read the documents of one file.

    Args:
        path: PDF, HTML, Markdown, plain text, EPUB or Word file (.docx), or table (CSV, TSV, JSON, JSONL, Parquet);
            each may be compressed with gzip.
        options: Column names of tables, and metadata that override those in the file.
        source: Name of the file in documents and messages; by default the name of ``path``.
        on_page: Function called before each page of a PDF file with its number and the number of pages.

    Returns:
        The documents (several for some tables), and the parts that could not be read, each with a reason. An unreadable
        file raises no error: its result has no documents and one reason.
    """
    options = options or ReadOptions()
    path = Path(path)
    name = join_surrogates(source or path.name)  # Nothing could store the bytes of a name that is not UTF-8.
    try:
        _, kind, data = open_file(path, options.max_bytes, name)
        file_reader = READERS[kind]
        content = file_reader.read(data, name, options, *((on_page,) if file_reader.reports_pages else ()))
    except DocumentError as error:
        return ReadResult(name, (), (Skipped(name, str(error)),))
    result = content if isinstance(content, ReadResult) else ReadResult(name, (content,))
    overrides: dict[str, Any] = dict(options.overrides)
    if len(result.documents) == 1:
        overrides["path"] = str(path)
    return replace(result, documents=tuple(replace(document, **overrides) for document in result.documents))


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """Return the given files, and the files of known types in the given folders, sorted and without duplicates.

    In folders, hidden files and folders, files of unknown types, and links to files outside the folder are skipped,
    because an untrusted folder may link to private files.
    """
    return _sort_by_type(paths)[0]


def _sort_by_type(paths: Iterable[str | Path]) -> tuple[list[Path], dict[Path, Counter[str]]]:
    """Return the files to read, and for each folder the number of files of unknown types, by file name ending."""
    files: dict[Path, None] = {}
    unknown_endings: dict[Path, Counter[str]] = {}
    for path in map(Path, paths):
        if not path.is_dir():
            files[path] = None
            continue
        unknown_endings[path] = Counter()
        for file in _iterate_files(path):
            if find_file_type(file):
                files[file] = None
            else:
                unknown_endings[path][file.suffix.lower() or "no ending"] += 1
    return list(files), unknown_endings


def _iterate_files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders in sorted order.

    Hidden files and links out of the folder are skipped.
    """
    root = folder.resolve()
    for file in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if not is_hidden and file.is_file() and root in file.resolve().parents:
            yield file


def read_all(paths: Iterable[str | Path], options: ReadOptions | None = None) -> Iterator[ReadResult]:
    """Read files, and all files in folders, one by one; see :func:`read` and :func:`find_files`.

    After all files, one further result is yielded for each folder with files of unknown types; its ``skipped`` states
    the number of these files.
    """
    files, unknown_endings = _sort_by_type(paths)
    for path in files:
        yield read(path, options)
    for folder, endings in unknown_endings.items():
        if endings:
            ending_counts = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(_MAX_LISTED_ENDINGS))
            more = ", ..." if len(endings) > _MAX_LISTED_ENDINGS else ""
            reason = f"files of types that climassay does not read: {endings.total()} ({ending_counts}{more})"
            yield ReadResult(folder.name, (), (Skipped(folder.name, reason),))
