"""Passages and hits as files: JSON lines and CSV, written as they are read."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from starlette.responses import Response, StreamingResponse

from climassay.corpus.collection_rows import PASSAGE_COLUMNS
from climassay.corpus.documents import Passage
from climassay.io import safe_cell

COLUMNS = (*PASSAGE_COLUMNS, "citation")


def passages_file(passages: Iterable[Passage], ending: str, name: str) -> Response:
    """All passages as a file.

    Args:
        passages: What is written, one by one.
        ending: ``jsonl`` or ``csv``.
        name: Of the file, without its ending.
    """
    rows = (asdict(passage) | {"citation": passage.citation} for passage in passages)
    if ending == "jsonl":
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return _streamed(lines, "application/jsonl", f"{name}.jsonl")
    return _streamed(csv_lines(COLUMNS, rows), "text/csv; charset=utf-8", f"{name}.csv")


def rows_file(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], name: str) -> Response:
    """Rows as a CSV file."""
    return _streamed(csv_lines(columns, rows), "text/csv; charset=utf-8", f"{name}.csv")


def json_file(content: Mapping[str, Any], name: str) -> Response:
    """An object as a JSON file."""
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    return _streamed([text], "application/json", f"{name}.json")


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Lines of a CSV file with a heading row; lists are joined by `` > ``.

    Spreadsheets run what begins like a formula. Such a text gets an apostrophe before it, which they take for *this is
    text*; numbers stay numbers. The other formats hold every text as it is.
    """
    yield _line(columns)
    for row in rows:
        yield _line([_cell(row[column]) for column in columns])


def _line(cells: Sequence[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = " > ".join(value)
    return safe_cell(value)


def _streamed(parts: Iterable[str], kind: str, name: str) -> Response:
    # Names of collections are letters, digits, hyphens and underscores: nothing in them can end the header.
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse((part.encode("utf-8", "replace") for part in parts), media_type=kind, headers=headers)
