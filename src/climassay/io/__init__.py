"""Files: what people give, read whole and within bounds, rows of tables too; what is written, whole or not at all.

What is wrong with a given file is an :class:`OSError` or a :class:`ValueError` here, never a hang, a crash or a full
memory; each reader says in its own words what it wanted of the file.
"""

import contextlib
import errno
import glob
import gzip
import io
import json
import os
import re
import stat
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from climassay.errors import InputError
from climassay.io.decoding import decode_text
from climassay.io.delimited import read_delimited
from climassay.workspace import mask_at

MOST_BYTES = 512 << 20
"""Largest table or configuration file, packed, unpacked, and its values written out; documents have their own limit."""
LONGEST_LINE = 64 << 20
"""Longest line, in characters, of a file that is read line by line."""

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
                raise OSError(errno.EINVAL, "It is a pipe that nothing writes to", str(path))
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


def first_problem(error: Exception) -> str:
    """What is wrong with checked data, in one line: the first entry that pydantic names, or the error's words."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


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


STALE_SECONDS = 3600
"""Age at which a half-written file is taken for one of a killed process: nobody writes bytes he has for so long."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_file(place: Path, data: bytes | str) -> None:
    """Write a file at once: a reader sees all of it or what was there before, also when the disk is full.

    A link is followed, and what is not a file (``/dev/stdout``, a pipe) is written to as it is.

    Args:
        place: Its folder is made where it is missing.
        data: All of its bytes, or a text. A name that is not UTF-8 may appear in a text; it is written as the bytes
            that it is.

    Raises:
        InputError: It cannot be written there.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    try:
        if place.exists() and not (place.is_file() or place.is_dir()):
            place.write_bytes(data)
            return
    except OSError as error:
        raise cannot_write(place, error) from error
    with written_beside(place) as part:
        part.write_bytes(data)


@contextmanager
def written_beside(place: Path) -> Iterator[Path]:
    """A path for a file that takes its place, whole, at the end of the block; of a block that fails nothing is left.

    Raises:
        InputError: It cannot be written there.
    """
    try:
        target = Path(os.path.realpath(place))
        mask = mask_at(target.parent)
        made = [one for one in (target.parent, *target.parent.parents) if not one.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        if mask is not None:
            for folder in made:
                folder.chmod(0o777 & ~mask)
        part = target.with_name(f".{target.name}.{os.getpid()}.new")
        _sweep(target)
        try:
            yield part
            move_into_place(part, target)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise cannot_write(place, error) from error


def move_into_place(part: Path, place: Path) -> None:
    """Put a file that is whole in its place; who may read it is as it was there, or as is usual in that folder."""
    mask = mask_at(place.parent)
    if mask is not None:
        part.chmod(stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o666 & ~mask)
    part.replace(place)


def _sweep(target: Path) -> None:
    """Remove what killed processes left of this file. Others may be writing it now, perhaps on another machine."""
    stale = time.time() - STALE_SECONDS
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.new"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < stale:
                left.unlink()


def cannot_write(place: Path, error: OSError) -> InputError:
    """What to tell the user whose file could not be written."""
    said = f"{place} cannot be written ({error.strerror or error})"
    if error.errno in _FULL:
        return InputError(f"{said}: free some space and run the command again, or choose another place.")
    return InputError(f"{said}: choose another place.")


def write_files(folder: Path, files: Mapping[str, bytes]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the files of a folder in their order; those that are there with the same bytes are left alone.

    Args:
        folder: Made where it is missing.
        files: Bytes by path, relative to the folder. What tells that the folder is whole comes last.

    Returns:
        Paths of files that were written, and of those that were the same already.

    Raises:
        InputError: A file cannot be written.
    """
    written: list[str] = []
    unchanged: list[str] = []
    for path, data in files.items():
        place = folder / path
        try:
            same = place.is_file() and place.read_bytes() == data
        except OSError as error:
            raise InputError(f"{place} cannot be read ({error.strerror}): choose another folder.") from error
        if not same:
            write_file(place, data)
        (unchanged if same else written).append(path)
    return tuple(written), tuple(unchanged)


def remove_files(folder: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Remove files of a folder, and folders in it that are empty then; nothing outside of it, whatever a path says.

    Args:
        folder: Stays, even when it is empty.
        paths: Relative to the folder; those that are not there are passed over.

    Returns:
        Paths of the files that were removed.
    """
    root = folder.resolve()
    removed = []
    for path in sorted(paths):
        place = folder / path
        if root not in place.resolve().parents or not place.is_file():
            continue
        place.unlink()
        removed.append(path)
        holder = place.parent.resolve()
        while root in holder.parents and not any(holder.iterdir()):
            holder.rmdir()
            holder = holder.parent
    return tuple(removed)


_FORMULA = ("=", "+", "-", "@", "\t", "\n")
_ONLY_NUMBERS = re.compile(r"[+-](?:[\d\s.,;:%()\[\]–−±+-]|[eE](?=[+-]?\d)|(?<= )to(?= ))*")
"""Numbers, intervals and dashes, which a spreadsheet may well compute with."""


def safe_cell(value: Any) -> Any:
    """A cell of a CSV file.

    Spreadsheets run what begins like a formula, as ``=HYPERLINK(...)`` or ``-1+cmd|...``. Such a text gets an
    apostrophe before it, which they take for *this is text*. Numbers, and other formats than CSV, stay as they are.

    Args:
        value: Anything that the csv module writes.
    """
    if not isinstance(value, str):
        return value
    # The csv module leaves a lone carriage return unquoted where lines end in \n, and readers begin a row there.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return "'" + text if text.startswith(_FORMULA) and not _ONLY_NUMBERS.fullmatch(text) else text


Row = Mapping[str, Any]


def read_bytes(file: Path) -> bytes:
    """Content of a file, unpacked where it is gzip.

    Raises:
        InputError: The file is missing, unreadable, damaged, or larger than a table may be (512 MB, unpacked).
    """
    try:
        return unpacked(read_whole(file))
    except FileNotFoundError as error:
        raise InputError(f"There is no file at {file}.") from error
    except OSError as error:
        raise InputError(f"The file {file} cannot be read: {reason(error)}.") from error


def parse_rows(file: Path, data: bytes) -> Iterator[Row]:
    """Rows of a table, recognised by its content: Parquet, JSON array, JSON lines, or delimited text.

    Raises:
        InputError: The content is not one of these or not text, or a row has more cells than there are columns.
    """
    if data[:4] == b"PAR1":
        try:
            yield from read_parquet(data).rows
        except ValueError as error:
            raise InputError(f"{file} is not a readable Parquet file: {error}.") from error
        return
    try:
        text = decode_text(data)
    except ValueError as error:
        raise InputError(f"{file} {error}: save it as UTF-8.") from error
    if text.lstrip()[:1] in ("{", "["):
        yield from _json_rows(file, text)
        return
    try:
        table = read_delimited(text)
    except ValueError as error:
        raise InputError(f"{file} is not a readable table: {error}.") from error
    if table.overlong:
        raise InputError(f"{file}, {table.overlong_sentence()}")
    yield from table.rows


def _json_rows(file: Path, text: str) -> Iterator[Row]:
    if text.lstrip().startswith("["):
        try:
            rows = parse_json(text)
        except ValueError as error:
            said = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
            raise InputError(f"{file} is not valid JSON ({said}).") from error
        numbered = list(enumerate(rows, start=1))
    else:
        numbered = []
        # Not splitlines: texts may hold other line ends than \n, such as U+2028, as they are.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    numbered.append((number, parse_json(line)))
                except ValueError as error:
                    said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                    raise InputError(f"{file}, line {number} is not valid JSON ({said}).") from error
    for number, row in numbered:
        if not isinstance(row, dict):
            raise InputError(f"{file}, entry {number} is not an object with named fields.")
        yield row


MOST_CELLS = 50_000_000
ROWS_AT_ONCE = 16_384


class ParquetTable(NamedTuple):
    """A table in memory."""

    names: list[str]
    rows: list[Mapping[str, Any]]


def read_parquet(data: bytes, most_bytes: int = MOST_BYTES) -> ParquetTable:
    """Read a Parquet file.

    Columns whose values repeat are counted before they are written out, so that what is too large is refused before it
    is in memory. What a file says of its own size is not relied upon.

    Raises:
        ValueError: It is damaged, or larger than ``most_bytes`` or :data:`MOST_CELLS`; the message is a clause without
            the file's name.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        facts = pyarrow.parquet.read_metadata(io.BytesIO(data))
        _check_cells(facts.num_rows * max(1, facts.num_columns))
        schema = facts.schema.to_arrow_schema()
        types = pyarrow.types
        texts = [field.name for field in schema if types.is_string(field.type) or types.is_binary(field.type)]
        file = pyarrow.parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts)
        rows: list[Mapping[str, Any]] = []
        size = 0
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            size += sum(_written_out(column) for column in batch.columns)
            if size > most_bytes:
                raise ValueError(f"it unpacks to more than the limit of {most_bytes >> 20} MB")
            plain = [
                (column.dictionary_decode() if types.is_dictionary(column.type) else column).to_pylist()
                for column in batch.columns
            ]
            rows += [dict(zip(schema.names, row, strict=True)) for row in zip(*plain, strict=True)]
            _check_cells(len(rows) * batch.num_columns)
    except (pyarrow.ArrowException, OSError) as error:
        said = str(error).splitlines()[0].rstrip(".") if str(error) else "damaged"
        raise ValueError(f"it is damaged or truncated: {said}") from None
    return ParquetTable(list(schema.names), rows)


def _check_cells(cells: int) -> None:
    if cells > MOST_CELLS:
        raise ValueError(f"it has more than {MOST_CELLS:,} cells")


def _written_out(column: Any) -> int:
    """Bytes of a column's values, each counted as often as it appears there."""
    import pyarrow
    import pyarrow.compute

    if not pyarrow.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pyarrow.compute.binary_length(column.dictionary).cast(pyarrow.int64())
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)


def listed_names(names: Iterable[Any]) -> str:
    """Return the names of columns for a sentence: the first twenty, each on one line and at most forty characters."""
    words = [" ".join(str(name).split()) for name in names]
    shown = [f"{word[:40]}…" if len(word) > 40 else word for word in words[:20]]
    return ", ".join([*shown, *([f"and {len(words) - 20:,} more"] if len(words) > 20 else [])]) or "none"
