"""Statements as files: JSON lines, one statement a line, lossless; CSV and workbooks for reading."""

import json
from collections.abc import Iterable
from pathlib import Path

from climassay.confidence.statement import Statement, statement_from_row, statement_row
from climassay.errors import InputError
from climassay.io import cannot_write, parse_json, read_text
from climassay.reporting.row_files import write_rows


def write_statements(statements: Iterable[Statement], path: Path) -> int:
    """Write statements, through a temporary file so that a reader never sees half of it.

    Args:
        statements: Written one by one.
        path: ``.csv`` and ``.xlsx`` make a table and a workbook, which are not read back; all else is JSON lines.

    Returns:
        How many.

    Raises:
        InputError: The file cannot be written.
    """
    if path.suffix.lower() in (".csv", ".xlsx"):
        rows = [statement_row(one) for one in statements]
        write_rows(path, rows)
        return len(rows)
    part = path.with_name(path.name + ".part")
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            for statement in statements:
                file.write(json.dumps(statement_row(statement), ensure_ascii=False) + "\n")
                count += 1
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise cannot_write(path, error) from None
    return count


def read_statements(path: Path) -> list[Statement]:
    """The statements of a file.

    Raises:
        InputError: The file is missing, or a line is no statement.
    """
    try:
        lines = read_text(path).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {reason}.") from None
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(statement_from_row(parse_json(line)))
        except (ValueError, TypeError, AttributeError, InputError) as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return found
