"""Bring a file's bytes into memory within bounds, and find out of what kind it is."""

import errno
from pathlib import Path
from typing import NamedTuple

from climassay.errors import DocumentError
from climassay.given_files import in_megabytes, read_whole, reason, unpacked

KINDS: dict[str, str] = {
    ".pdf": "pdf",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".epub": "epub",
    ".docx": "docx",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""Kind of file by the ending of its name; each also with ``.gz`` after it."""

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
    return KINDS.get(suffixes[-1]) if suffixes else None


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
    if kind is None and not data.startswith(b"%PDF-"):
        listed = " ".join(sorted(KINDS))
        raise DocumentError(
            f"{source} is of no known kind; names must end in one of {listed} (each may have .gz after it)."
        )
    if data.startswith(_GZIP_MAGIC) and kind != "parquet":
        data = _gunzip(data, source, max_bytes)
    elif path.suffix.lower() == ".gz":
        raise DocumentError(f"{source} is not a gzip file although its name ends in .gz.")
    return Opened(source, kind or "pdf", data)


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
