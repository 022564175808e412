"""SHA-256 of files, remembered so that a large unchanged file is hashed once and not at every start."""

import hashlib
import json
import os
import time
from pathlib import Path

from climassay.workspace import cache_folder

_SETTLED_SECONDS = 0.05
"""A file that changed less than this before hashing may change again within one tick of the file system's clock."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    The digest is kept in the cache folder under the file's path and is trusted as long as size, inode, modification
    time and status-change time are the same; any writing to the file changes at least the last one.

    Args:
        path: An existing file; symbolic links are followed.

    Returns:
        64 hexadecimal digits.

    Raises:
        OSError: The file cannot be read.
    """
    path = path.resolve()
    stamp = _stamp(path)
    remembered = _remembered_file(path)
    known = _read_remembered(remembered, stamp)
    if known is not None:
        return known
    started = time.time()
    digest = _hash(path)
    settled = path.stat().st_ctime < started - _SETTLED_SECONDS
    if settled and _stamp(path) == stamp:
        _remember(remembered, stamp, digest)
    return digest


def is_remembered(path: Path) -> bool:
    """Whether :func:`file_digest` would answer without reading the file."""
    path = path.resolve()
    return path.is_file() and _read_remembered(_remembered_file(path), _stamp(path)) is not None


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remembered_file(path: Path) -> Path:
    return cache_folder() / "digests" / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def _read_remembered(file: Path, stamp: list[int]) -> str | None:
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))
        return str(entry["sha256"]) if entry["stamp"] == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(file: Path, stamp: list[int], digest: str) -> None:
    """Write through a rename, so that another process never reads half an entry; a full disk only costs speed."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"stamp": stamp, "sha256": digest}), encoding="utf-8")
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
