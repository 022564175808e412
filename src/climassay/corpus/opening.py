"""The readers of documents by kind of file; bringing a file's bytes into memory within bounds."""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from climassay.errors import DocumentError
from climassay.io import in_megabytes, read_whole, reason, unpacked
from climassay.registry import Registry

if TYPE_CHECKING:
    from climassay.corpus.documents import Document
    from climassay.corpus.options import ReadResult

Read = Callable[..., "ReadResult | Document"]


@dataclass(frozen=True, slots=True)
class Reader:
    """How files of one kind are read."""

    endings: tuple[str, ...]
    """Of file names, in lower case with their dot; each also with ``.gz`` after it."""
    read: Read
    """From bytes, name and options to a document, or to what was read of a file of many."""
    magic: bytes = b""
    """How the content begins, where that tells the kind of a file whose name does not."""
    paged: bool = False
    """Whether ``read`` takes, as its last argument, a callback that is told each page."""
    packed: bool = False
    """Whether content that looks like gzip is left as it is."""


READERS: Registry[Reader] = Registry(
    "reader",
    "climassay.readers",
    [f"climassay.corpus.{name}" for name in ("pdf", "html", "markdown", "text", "epub", "docx", "tables")],
)
"""By kind of file."""


def reader(kind: str, *endings: str, **more: Any) -> Callable[[Read], Read]:
    """Add a function as the reader of a kind of file; ``more`` are fields of :class:`Reader`.

    Example:
        >>> @reader("rst", ".rst")
        ... def read_rst(data, source, options):
        ...     return Document(document_id(source, data), source, source, (Block(data.decode()),), media="rst")
    """

    def add(function: Read) -> Read:
        READERS.add(kind, Reader(endings, function, **more), function.__module__)
        return function

    return add


def file_endings() -> dict[str, str]:
    """Kind of file by the ending of its name."""
    return {ending: kind for kind, one in READERS.items() for ending in one.endings}


_GZIP_MAGIC = b"\x1f\x8b"


class Opened(NamedTuple):
    """The content of a file."""

    source: str
    """File name without folder."""
    kind: str
    data: bytes


def kind_of(path: Path) -> str | None:
    """The kind a file's name claims, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return file_endings().get(suffixes[-1]) if suffixes else None


def open_file(path: Path, max_bytes: int, source: str | None = None) -> Opened:
    """Read a file, unpacking gzip.

    Args:
        path: The file.
        max_bytes: Most bytes of it, packed and unpacked.
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
            raise DocumentError(f"{source} is larger than the limit of {in_megabytes(max_bytes)}.")
        data = read_whole(path, max_bytes)
    except OSError as error:
        raise DocumentError(f"{source} cannot be read ({reason(error)}).") from None
    if not data:
        raise DocumentError(f"{source} is empty.")
    kind = kind or next((name for name, one in READERS.items() if one.magic and data.startswith(one.magic)), None)
    if kind is None:
        listed = " ".join(sorted(file_endings()))
        raise DocumentError(
            f"{source} is of no known kind; names must end in one of {listed} (each may have .gz after it)."
        )
    if data.startswith(_GZIP_MAGIC) and not READERS[kind].packed:
        data = _gunzip(data, source, max_bytes)
    elif path.suffix.lower() == ".gz":
        raise DocumentError(f"{source} is not a gzip file although its name ends in .gz.")
    return Opened(source, kind, data)


def _gunzip(data: bytes, source: str, max_bytes: int) -> bytes:
    try:
        content = unpacked(data, max_bytes)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise DocumentError(f"{source} unpacks to more than the limit of {in_megabytes(max_bytes)}.") from None
        raise DocumentError(f"{source} is a damaged or truncated gzip file.") from None
    if not content:
        raise DocumentError(f"{source} is empty.")
    return content
