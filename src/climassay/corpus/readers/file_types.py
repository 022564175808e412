"""Read files of any supported kind into documents, within bounds; a bad file never stops the others."""

import errno
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


@dataclass(frozen=True, slots=True)
class Reader:
    """How files of one kind are read."""

    endings: tuple[str, ...]
    """Ends of file names, in lower case with their dot; each also with ``.gz`` after it."""
    read: Read
    """From bytes, name and options to a document, or to what was read of a file of many."""
    magic: bytes = b""
    """How the content begins, where that tells the kind of a file whose name does not."""
    paged: bool = False
    """Whether ``read`` takes, as its last argument, a callback that is called with each page."""
    packed: bool = False
    """Whether content that looks like gzip is left as it is."""


READERS: Registry[Reader] = Registry(
    "reader",
    "climassay.readers",
    [f"climassay.corpus.readers.{name}" for name in ("pdf", "html", "markdown", "text", "archives", "word", "tables")],
)
"""By kind of file."""


def reader(kind: str, *endings: str, **more: Any) -> Callable[[Read], Read]:
    """Add a function as the reader of a kind of file; ``more`` are fields of :class:`Reader`.

    Example:
        >>> @reader("rst", ".rst")
        ... def read_rst(data, source, options):
        ...     return Document(document_id(data), source, source, (Block(data.decode()),), media="rst")
    """

    def add(function: Read) -> Read:
        READERS.add(kind, Reader(endings, function, **more), function.__module__)
        return function

    return add


def file_endings() -> dict[str, str]:
    """Kind of file by the ending of its name."""
    return {ending: kind for kind, one in READERS.items() for ending in one.endings}


def kind_of(path: Path) -> str | None:
    """The kind a file's name claims, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return file_endings().get(suffixes[-1]) if suffixes else None


def open_file(path: Path, max_bytes: int, source: str | None = None) -> tuple[str, str, bytes]:
    """Name, kind and content of a file, gzip decompress.

    Args:
        path: The file.
        max_bytes: Maximum size in bytes, packed and decompress.
        source: What it is called, by default its name.

    Raises:
        DocumentError: No such file, a folder, unreadable, of unknown kind, empty, larger than ``max_bytes`` (after
            unpacking, too), or damaged gzip.
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
    kind = kind or next((name for name, one in READERS.items() if one.magic and data.startswith(one.magic)), None)
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
    """Read one file.

    Args:
        path: PDF, HTML, Markdown, plain text, EPUB, Word (.docx), or a table (CSV, TSV, JSON, JSONL, Parquet);
            gzip of any of these.
        options: Columns of tables, and what to put in place of what the file says of itself.
        source: Name by which users know the file, where it is stored here under another one; documents and sentences
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
        _, kind, data = open_file(path, options.max_bytes, name)
        chosen = READERS[kind]
        results = chosen.read(data, name, options, *((on_page,) if chosen.paged else ()))
    except DocumentError as error:
        return ReadResult(name, (), (Skipped(name, str(error)),))
    result = results if isinstance(results, ReadResult) else ReadResult(name, (results,))
    overrides: dict[str, Any] = dict(options.overrides)
    if len(result.documents) == 1:
        overrides["path"] = str(path)
    return replace(result, documents=tuple(replace(document, **overrides) for document in result.documents))


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """Files to read, each once: a file as named; of a folder, all files of known kinds below it in name order.

    Hidden files and folders, files of unknown kinds, and links that lead out of the folder are left out unless they are
    named themselves: a folder from somebody else may link to files that were never meant to be read.
    """
    results: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            below = (file for file in sorted(path.rglob("*")) if file.is_file() and kind_of(file))
            visible = (file for file in below if not any(part.startswith(".") for part in file.relative_to(path).parts))
            results.update(dict.fromkeys(file for file in visible if path.resolve() in file.resolve().parents))
        else:
            results[path] = None
    return list(results)


def read_all(paths: Iterable[str | Path], options: ReadOptions | None = None) -> Iterator[ReadResult]:
    """Read files and folders one after the other; see :func:`read` and :func:`find_files`."""
    for path in find_files(paths):
        yield read(path, options)
