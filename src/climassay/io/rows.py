"""Read rows from tables in formats recognised by content, find columns, and make cells safe for spreadsheets."""

import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from climassay.errors import InputError
from climassay.io.decoding import decode_text
from climassay.io.delimited import read_delimited
from climassay.io.reading import MAX_TABLE_BYTES, decompress, describe_error, parse_json, read_file
from climassay.io.workbooks import is_workbook, read_workbook

MAX_CELLS = 50_000_000
"""Maximum number of cells in a Parquet file."""
_BATCH_ROWS = 16_384
_ARCHIVES = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
"""First bytes of archives, such as .ods, and of old Office documents, such as .xls."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\n")
_NUMERIC = re.compile(r"[+-](?:[\d\s.,;:%()\[\]–−±+-]|[eE](?=[+-]?\d)|(?<= )to(?= ))*")
"""Pattern of signed numbers, intervals and dashes. They need no escaping, although spreadsheets evaluate other texts
with the same first character."""

_WRAPPERS = ("data", "questions", "rows", "examples", "items", "instances", "records")
"""Names of entries in which a JSON object may contain the rows of a table."""

Row = Mapping[str, Any]


def safe_cell(value: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would evaluate as a formula (``=HYPERLINK(...)``).

    Line ends become newlines. Everything else is returned unchanged.
    """
    if not isinstance(value, str):
        return value
    # The csv module does not quote a lone carriage return, and readers start a new row there.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return "'" + text if text.startswith(_FORMULA_STARTS) and not _NUMERIC.fullmatch(text) else text


def read_bytes(file: Path) -> bytes:
    """Read the content of a file, decompressing gzip.

    Raises:
        InputError: The file is missing, unreadable, damaged, or larger than 512 MB when decompressed.
    """
    try:
        return decompress(read_file(file))
    except FileNotFoundError as error:
        raise InputError(f"There is no file at {file}.") from error
    except OSError as error:
        raise InputError(f"The file {file} cannot be read: {describe_error(error)}.") from error


def parse_rows(file: Path, data: bytes) -> Iterator[Row]:
    """Yield the rows of a table whose format is recognised by content.

    Args:
        file: Name of the file, for messages.
        data: A Parquet file, a workbook (.xlsx), a JSON array, JSON lines or delimited text.

    Raises:
        InputError: The content has none of these formats or is not text, or a row has more cells than the header.
    """
    if data[:4] == b"PAR1":
        try:
            yield from read_parquet(data).rows
        except ValueError as error:
            raise InputError(f"{file} is not a readable Parquet file: {error}.") from error
        return
    if data.startswith(_ARCHIVES):
        if not is_workbook(data):
            raise InputError(
                f"{file} is an archive, or an old or damaged workbook: save its sheet as CSV (UTF-8) or .xlsx."
            )
        try:
            table = read_workbook(data)
        except ValueError as error:
            raise InputError(f"{file} is not a readable workbook: {error}.") from error
    else:
        try:
            text = decode_text(data)
        except ValueError as error:
            raise InputError(f"{file} {error}: save it as UTF-8.") from error
        if text.lstrip()[:1] in ("{", "["):
            yield from _iterate_json_rows(file, text)
            return
        try:
            table = read_delimited(text)
        except ValueError as error:
            raise InputError(f"{file} is not a readable table: {error}.") from error
    if table.overlong:
        raise InputError(f"{file}, {table.overlong_sentence()}")
    yield from table.rows


def _find_wrapped_rows(text: str) -> list[Any]:
    """Return the list of rows in a JSON object such as ``{"data": [...]}``; empty for other texts."""
    try:
        document = parse_json(text)
    except ValueError:
        return []
    lists = [value for name, value in document.items() if name in _WRAPPERS] if isinstance(document, dict) else []
    return lists[0] if len(lists) == 1 and isinstance(lists[0], list) else []


def _iterate_json_rows(file: Path, text: str) -> Iterator[Row]:
    if text.lstrip().startswith("["):
        try:
            rows = list(enumerate(parse_json(text), start=1))
        except ValueError as error:
            fault = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
            raise InputError(f"{file} is not valid JSON ({fault}).") from error
    elif wrapped_rows := _find_wrapped_rows(text):
        rows = list(enumerate(wrapped_rows, start=1))
    else:
        rows = []
        # Not splitlines: texts may contain other line ends, such as U+2028.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    rows.append((number, parse_json(line)))
                except ValueError as error:
                    fault = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                    raise InputError(f"{file}, line {number} is not valid JSON ({fault}).") from error
    for number, row in rows:
        if not isinstance(row, dict):
            raise InputError(f"{file}, entry {number} is not an object with named fields.")
        yield row


class ParquetTable(NamedTuple):
    """Table read from a Parquet file."""

    names: list[str]
    rows: list[Row]


def read_parquet(data: bytes) -> ParquetTable:
    """Read a Parquet file.

    The size of dictionary-encoded columns is computed before they are decoded, so that a file that is too large is
    rejected before it fills the memory. Sizes that the file declares are not trusted.

    Raises:
        ValueError: The file is damaged, or exceeds :data:`MAX_TABLE_BYTES` or :data:`MAX_CELLS`; the message does not
            contain the file's name.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_metadata(io.BytesIO(data))
        _check_cell_count(metadata.num_rows * max(1, metadata.num_columns))
        schema = metadata.schema.to_arrow_schema()
        types = pyarrow.types
        text_columns = [field.name for field in schema if types.is_string(field.type) or types.is_binary(field.type)]
        file = pyarrow.parquet.ParquetFile(io.BytesIO(data), read_dictionary=text_columns)
        rows: list[Row] = []
        size = 0
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            size += sum(_count_decoded_bytes(column) for column in batch.columns)
            if size > MAX_TABLE_BYTES:
                raise ValueError(f"it unpacks to more than the limit of {MAX_TABLE_BYTES >> 20} MB")
            columns = [
                (column.dictionary_decode() if types.is_dictionary(column.type) else column).to_pylist()
                for column in batch.columns
            ]
            rows += [dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
            _check_cell_count(len(rows) * batch.num_columns)
    except (pyarrow.ArrowException, OSError) as error:
        fault = str(error).splitlines()[0].rstrip(".") if str(error) else "damaged"
        raise ValueError(f"it is damaged or truncated: {fault}") from None
    return ParquetTable(list(schema.names), rows)


def _check_cell_count(n_cells: int) -> None:
    if n_cells > MAX_CELLS:
        raise ValueError(f"it has more than {MAX_CELLS:,} cells")


def _count_decoded_bytes(column: Any) -> int:
    """Return the size that a column will have after decoding its dictionary, in bytes."""
    import pyarrow
    import pyarrow.compute

    if not pyarrow.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pyarrow.compute.binary_length(column.dictionary).cast(pyarrow.int64())
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)


def normalise_column_name(name: Any) -> str:
    """Convert a column name to lower case with underscores: ``Option A`` becomes ``option_a``.

    Full-width characters become ordinary ones, and invisible characters are removed.
    """
    visible_name = re.sub("[\u00ad\u200b-\u200f\u2060\ufeff]", "", unicodedata.normalize("NFKC", str(name)))
    return re.sub(r"[\s_-]+", "_", visible_name.strip().lower())


def find_column(names: Iterable[str], *requested: str) -> str | None:
    """Return the first of the ``requested`` columns that a table has; None if it has none of them.

    Names are compared exactly first, then by :func:`normalise_column_name`.
    """
    columns = list(names)
    by_key = {normalise_column_name(column): column for column in reversed(columns)}
    for name in requested:
        if name in columns:
            return name
        if (column := by_key.get(normalise_column_name(name))) is not None:
            return column
    return None


def require_column(file: str | Path, names: Iterable[str], requested: str, option: str = "") -> str:
    """Return the name of a requested column as the table spells it; see :func:`find_column`.

    Args:
        file: Name of the file in the message.
        names: Columns of the table.
        requested: Name of the column.
        option: Option of the command that names the column, to be mentioned in the message.

    Raises:
        InputError: The column does not exist; the message lists the columns of the table.
    """
    names = list(names)
    column = find_column(names, requested)
    if column is None:
        suffix = f" ({option})" if option else ""
        raise InputError(f"{file} has no column {requested!r}{suffix}: it has {format_names(names)}.")
    return column


def format_names(names: Iterable[Any]) -> str:
    """Format column names for a message: the first twenty, on one line, each truncated to forty characters."""
    words = [" ".join(str(name).split()) for name in names]
    short_names = [f"{word[:40]}…" if len(word) > 40 else word for word in words[:20]]
    return ", ".join([*short_names, *([f"and {len(words) - 20:,} more"] if len(words) > 20 else [])]) or "none"
