"""Rows of the tables that questions come in."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from climassay.errors import InputError

Row = Mapping[str, Any]


def read_bytes(file: Path) -> bytes:
    """Content of a file, unpacked where it is gzip.

    Raises:
        InputError: The file is missing, unreadable or damaged.
    """
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except FileNotFoundError as error:
        raise InputError(f"There is no file at {file}.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"The file {file} cannot be read: {error}.") from error


def parse_rows(file: Path, data: bytes) -> Iterator[Row]:
    """Rows of a table, told by its content: Parquet, JSON array, JSON lines, or comma- or tab-separated values.

    Args:
        file: For messages.
        data: Its content.

    Raises:
        InputError: The content is none of these, or not UTF-8.
    """
    if data[:4] == b"PAR1":
        import pyarrow.parquet

        try:
            yield from pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
        except pyarrow.ArrowException as error:
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
    yield from csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)


def _json_rows(file: Path, text: str) -> Iterator[Row]:
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"{file} is not valid JSON (line {error.lineno}: {error.msg}).") from error
        numbered = list(enumerate(rows, start=1))
    else:
        numbered = []
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                try:
                    numbered.append((number, json.loads(line)))
                except json.JSONDecodeError as error:
                    raise InputError(f"{file}, line {number} is not valid JSON ({error.msg}).") from error
    for number, row in numbered:
        if not isinstance(row, dict):
            raise InputError(f"{file}, entry {number} is not an object with named fields.")
        yield row
