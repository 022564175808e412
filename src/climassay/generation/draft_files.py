"""Drafts in files: JSON Lines, one draft a line, with all that was decided about it."""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from climassay.errors import InputError
from climassay.generation.draft import Draft, draft_from_row, draft_row
from climassay.io import cannot_write, parse_json, put, read_lines, reason
from climassay.reporting.row_files import write_rows


def write_drafts(path: Path, drafts: Iterable[Draft]) -> None:
    """Write drafts; the file appears whole or not at all.

    Args:
        path: ``.csv`` and ``.xlsx`` make a table and a workbook, which are not read back; all else is JSON lines.
        drafts: Written one by one.

    Raises:
        InputError: It cannot be written.
    """
    if path.suffix.lower() in (".csv", ".xlsx"):
        write_rows(path, map(draft_row, drafts))
        return
    unfinished = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("w", encoding="utf-8") as file:
            for draft in drafts:
                file.write(json.dumps(draft_row(draft), ensure_ascii=False, allow_nan=False) + "\n")
        put(unfinished, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def read_drafts(path: Path) -> Iterator[Draft]:
    """Drafts of a file in its order.

    Raises:
        InputError: The file cannot be read, or a line is not a draft.
    """
    try:
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                yield _draft(line, f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The drafts {path} cannot be read: {reason(error)}.") from None


def _draft(line: str, place: str) -> Draft:
    try:
        row = parse_json(line)
        if not isinstance(row, dict):
            raise InputError("it is no object")
        return draft_from_row(row)
    except (ValueError, InputError) as error:
        raise InputError(f"{place}: {error}") from None
