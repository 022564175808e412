"""Read files within limits of size and line length, without waiting for pipes that have no writer.

Faults of a file are raised as :class:`OSError` or :class:`ValueError`; callers add the file's name and advice.
"""

import errno
import gzip
import io
import json
import os
import re
import stat
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

MAX_TABLE_BYTES = 512 << 20
"""Maximum size of a table or configuration file in bytes, compressed and decompressed; documents have their own limit.
"""
MAX_LINE_LENGTH = 64 << 20
"""Maximum length of a line, in characters, in a file that is read line by line."""

_CHUNK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file, or a pipe with a writer, for reading bytes.

    Raises:
        OSError: The path is missing, unreadable, a folder, a device, or a pipe without a writer.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise OSError(errno.EINVAL, "It is a device, not a file", str(path))
        if stat.S_ISFIFO(mode):
            os.set_blocking(descriptor, True)
            if not file.peek(1):
                raise OSError(errno.EINVAL, "It is a pipe that nothing writes to", str(path))
        yield file


def read_file(path: Path, max_bytes: int = MAX_TABLE_BYTES) -> bytes:
    """Read all bytes of a file or pipe.

    Raises:
        OSError: The path cannot be opened (:func:`open_file`), or the file is larger than ``max_bytes``.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > max_bytes else file.read(max_bytes + 1)
        if max(size, len(data)) > max_bytes:
            raise OSError(errno.EFBIG, f"It is larger than {format_size(max_bytes)}", str(path))
        return data


def read_text(path: Path, encoding: str = "utf-8") -> str:
    r"""Read the text of a file, converting line ends to ``\n``.

    Raises:
        OSError: The file cannot be read; see :func:`read_file`.
        UnicodeDecodeError: The file is not text in this encoding.
    """
    return read_file(path).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file of any size.

    Raises:
        OSError: The file cannot be opened, or a line is longer than :data:`MAX_LINE_LENGTH`.
        UnicodeDecodeError: The file is not UTF-8.
    """
    with open_file(path) as file, io.TextIOWrapper(file, encoding="utf-8") as text:
        while line := text.readline(MAX_LINE_LENGTH):
            if len(line) == MAX_LINE_LENGTH and not line.endswith("\n"):
                raise OSError(errno.EFBIG, f"It has a line of more than {MAX_LINE_LENGTH} characters", str(path))
            yield line


def decompress(data: bytes, max_bytes: int = MAX_TABLE_BYTES) -> bytes:
    """Decompress gzip data; return other data unchanged.

    Raises:
        OSError: The data are damaged, truncated, or larger than ``max_bytes`` when decompressed.
    """
    if data[:2] != _GZIP_MAGIC:
        return data
    chunks: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                size += len(chunk)
                if size > max_bytes:
                    raise OSError(errno.EFBIG, f"It unpacks to more than {format_size(max_bytes)}")
                chunks.append(chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise OSError(errno.EINVAL, "It is a damaged or truncated gzip file") from None
    return b"".join(chunks)


def parse_json(text: str | bytes) -> Any:
    r"""Parse JSON. Replace lone surrogates (``\ud800``), which cannot be stored or printed, by U+FFFD, and warn.

    Raises:
        ValueError: The text is not JSON, or nested too deeply. A :class:`json.JSONDecodeError` has the position.
    """
    try:
        value = json.loads(text)
        source = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return _replace_surrogates(value) if _ESCAPED_SURROGATE.search(source) else value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def join_surrogates(text: str) -> str:
    """Join the surrogate pairs in a text, and replace lone surrogates by U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def describe_error(error: Exception) -> str:
    """Return the message of an error as a clause, starting in lower case and without the file's name."""
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return message[:1].lower() + message[1:]


def describe_first_problem(error: Exception) -> str:
    """Return the message of the first problem in a pydantic ``ValidationError``, after the name of the field if any.

    For any other error, return its message.
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    problem = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(map(str, problem["loc"]))
    return f"{field}: {problem['msg']}" if field else problem["msg"]


def format_size(n_bytes: int) -> str:
    """Format a size, for example as ``512 MB``."""
    return f"{n_bytes / (1 << 20):.0f} MB" if n_bytes >= 1 << 20 else f"{n_bytes} bytes"


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str) and _SURROGATE.search(value):
        warnings.warn("A JSON text has half a character (a lone surrogate): it is read as U+FFFD.", stacklevel=2)
        return join_surrogates(value)
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(item) for name, item in value.items()}
    return value
