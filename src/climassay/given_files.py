"""Reading what people give: whole files within bounds, packed or not, and JSON that may hold anything.

What is wrong with a file is an :class:`OSError` or a :class:`ValueError` here, never a hang, a crash or a full memory;
each reader says in its own words what it wanted of the file.
"""

import errno
import gzip
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

MOST_BYTES = 512 << 20
"""Of a table or a configuration, packed and unpacked; documents of collections have a limit of their own."""
LONGEST_LINE = 64 << 20
"""Of a file that is read line by line, in characters."""

_STEP = 1 << 20
_GZIP = b"\x1f\x8b"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file, open for reading; a pipe is waited for only where somebody writes to it.

    Raises:
        OSError: It is missing, unreadable, a folder, a device, or a pipe without a writer.
    """
    # Opening a pipe the usual way waits for its writer, for ever where there is none.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(number, "rb") as file:
        kind = os.fstat(number).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
            raise OSError(errno.EINVAL, "It is a device, not a file", str(path))
        if stat.S_ISFIFO(kind):
            os.set_blocking(number, True)
            if not file.peek(1):
                raise OSError(errno.EINVAL, "It is a pipe that nobody writes to", str(path))
        yield file


def read_whole(path: Path, most: int = MOST_BYTES) -> bytes:
    """All bytes of a file.

    Args:
        path: A file, or a pipe with a writer.
        most: Bytes.

    Raises:
        OSError: As :func:`opened`, or it is larger than ``most``.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > most else file.read(most + 1)
        if max(size, len(data)) > most:
            raise OSError(errno.EFBIG, f"It is larger than {in_megabytes(most)}", str(path))
        return data


def read_text(path: Path, encoding: str = "utf-8") -> str:
    r"""The text of a file, with line ends as ``\n``.

    Raises:
        OSError: As :func:`read_whole`.
        UnicodeDecodeError: It is not text of this encoding.
    """
    return read_whole(path).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of a file of any size, one at a time.

    Raises:
        OSError: As :func:`opened`, or a line is longer than :data:`LONGEST_LINE`.
        UnicodeDecodeError: It is not text of this encoding.
    """
    with opened(path) as file, io.TextIOWrapper(file, encoding=encoding) as text:
        while line := text.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith("\n"):
                raise OSError(errno.EFBIG, f"It has a line of more than {LONGEST_LINE} characters", str(path))
            yield line


def unpacked(data: bytes, most: int = MOST_BYTES) -> bytes:
    """What gzip packed; anything else as it is.

    Args:
        data: Of a file.
        most: Bytes, unpacked.

    Raises:
        OSError: It is damaged, truncated, or unpacks to more than ``most``.
    """
    if data[:2] != _GZIP:
        return data
    parts: list[bytes] = []
    total = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while part := stream.read(_STEP):
                total += len(part)
                if total > most:
                    raise OSError(errno.EFBIG, f"It unpacks to more than {in_megabytes(most)}")
                parts.append(part)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise OSError(errno.EINVAL, "It is a damaged or truncated gzip file") from None
    return b"".join(parts)


def parse_json(text: str | bytes) -> Any:
    r"""The value of a JSON text.

    Half characters (``\ud800`` alone), which JSON can name but nothing can store or print, are left out.

    Raises:
        ValueError: It is not JSON, or nested too deeply to be read. A :class:`json.JSONDecodeError` says where.
    """
    try:
        value = json.loads(text)
        written = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return _whole_characters(value) if _ESCAPED_SURROGATE.search(written) else value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def reason(error: Exception) -> str:
    """What an error of this module or of the system says, as a clause without the file's name."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said[:1].lower() + said[1:]


def in_megabytes(size: int) -> str:
    """A size as people read it, for example ``512 MB``."""
    return f"{size / (1 << 20):.0f} MB" if size >= 1 << 20 else f"{size} bytes"


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("", value)
    if isinstance(value, list):
        return [_whole_characters(one) for one in value]
    if isinstance(value, dict):
        return {_whole_characters(name): _whole_characters(one) for name, one in value.items()}
    return value
