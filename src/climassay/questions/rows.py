"""Rows of the tables that questions come in."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from climassay.errors import InputError
from climassay.io import parse_json, read_whole, reason, unpacked

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
    """Rows of a table, recognised by its content: Parquet, JSON array, JSON lines, or comma- or tab-separated values.

    Raises:
        InputError: The content is none of these, or not UTF-8.
    """
    if data[:4] == b"PAR1":
        try:
            yield from read_parquet(data).rows
        except ValueError as error:
            raise InputError(f"{file} is not a readable Parquet file: {error}.") from error
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text (byte {error.start}): save it as UTF-8.") from error
    if text.lstrip()[:1] in ("{", "["):
        yield from _json_rows(file, text)
        return
    csv.field_size_limit(2**31 - 1)
    header = text.partition("\n")[0]
    delimiter = "\t" if header.count("\t") > header.count(",") else ","
    try:
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter):
            # What a row has beyond the header has no name.
            yield {name: value for name, value in row.items() if name is not None}
    except csv.Error as error:
        raise InputError(f"{file} is not a readable table: {error}.") from error


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


MOST_BYTES = 512 << 20
"""Maximum size in bytes of all values of a table, written out."""
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
