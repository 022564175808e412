"""Rows of the tables that questions come in."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.io import parse_json, read_whole, reason, unpacked
from climassay.questions.parquet import read_parquet

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
    """Rows of a table, told by its content: Parquet, JSON array, JSON lines, or comma- or tab-separated values.

    Args:
        file: For messages.
        data: Its content.

    Raises:
        InputError: The content is none of these, or not UTF-8.
    """
    if data[:4] == b"PAR1":
        yield from _parquet_rows(file, data)
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


def _parquet_rows(file: Path, data: bytes) -> list[Row]:
    try:
        return read_parquet(data).rows
    except ValueError as error:
        raise InputError(f"{file} is not a readable Parquet file: {error}.") from error


def _json_rows(file: Path, text: str) -> Iterator[Row]:
    if text.lstrip().startswith("["):
        try:
            rows = parse_json(text)
        except ValueError as error:
            raise InputError(f"{file} is not valid JSON ({_where(error)}).") from error
        numbered = list(enumerate(rows, start=1))
    else:
        numbered = []
        # Not splitlines: texts may hold other line ends than \n, such as U+2028, as they are.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    numbered.append((number, parse_json(line)))
                except ValueError as error:
                    said = error.msg if isinstance(error, json.JSONDecodeError) else error
                    raise InputError(f"{file}, line {number} is not valid JSON ({said}).") from error
    for number, row in numbered:
        if not isinstance(row, dict):
            raise InputError(f"{file}, entry {number} is not an object with named fields.")
        yield row


def _where(error: ValueError) -> str:
    return f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
