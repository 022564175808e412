"""Drafts in files: JSON Lines, one draft a line, with all that was decided about it."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from climassay.errors import InputError
from climassay.generation.draft import Draft, draft_from_row, draft_row


def write_drafts(path: Path, drafts: Iterable[Draft]) -> None:
    """Write drafts; the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("w", encoding="utf-8") as file:
        for draft in drafts:
            file.write(json.dumps(draft_row(draft), ensure_ascii=False, allow_nan=False) + "\n")
    unfinished.replace(path)


def read_drafts(path: Path) -> Iterator[Draft]:
    """Drafts of a file in its order.

    Raises:
        InputError: The file cannot be read, or a line is not a draft.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _draft(line, f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The drafts {path} cannot be read: {error}.") from None


def _draft(line: str, place: str) -> Draft:
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise InputError("it is no object")
        return draft_from_row(row)
    except (json.JSONDecodeError, InputError) as error:
        raise InputError(f"{place}: {error}") from None
