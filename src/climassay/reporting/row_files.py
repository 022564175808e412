"""Rows as a file of the kind that its name ends in: CSV, an Excel workbook, or JSON lines."""

import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from climassay.io import safe_cell, write_file
from climassay.reporting.tables import Table, as_csv, headed_cells

ROW_SUFFIXES = (".csv", ".xlsx", ".jsonl")
_NAMESPACE = "http://schemas.openxmlformats.org"
_MAIN = f'xmlns="{_NAMESPACE}/spreadsheetml/2006/main"'
_OFFICE = f"{_NAMESPACE}/officeDocument/2006/relationships"
_PACKAGE = f"{_NAMESPACE}/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets><sheet name="rows" sheetId="1" r:id="r1"/>'
    "</sheets></workbook>",
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}
_LONGEST_CELL = 32_767
"""Characters that Excel takes in a cell."""
_NUMBER = re.compile(r"[-+]?(\d+(\.\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]], otherwise: str = ".jsonl") -> None:
    """Write rows; numbers stay numbers.

    In CSV and workbooks a mapping becomes a column for each of its keys (``probabilities.high``), a list of fractions
    one for each place, another list a text divided by semicolons.

    Args:
        path: Its ending tells the kind.
        rows: The columns are the keys of all rows, in the order in which they come.
        otherwise: The kind of a file whose ending is none of ``ROW_SUFFIXES``.

    Raises:
        InputError: The file cannot be written.
    """
    suffix = path.suffix.lower()
    match suffix if suffix in ROW_SUFFIXES else otherwise:
        case ".csv":
            data = _csv([_flat(row) for row in rows]).encode("utf-8", "surrogateescape")
        case ".xlsx":
            data = _workbook([_flat(row) for row in rows])
        case _:
            lines = (json.dumps(dict(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            data = "".join(lines).encode("utf-8", "surrogateescape")
    write_file(path, data)


def write_table(path: Path, table: Table) -> None:
    """Write a table: a workbook or JSON lines where the name ends so, CSV otherwise; cells of digits are numbers.

    Raises:
        InputError: The file cannot be written.
    """
    headings, cells = headed_cells(table)
    if path.suffix.lower() in (".xlsx", ".jsonl"):
        write_rows(path, [dict(zip(headings, map(_as_number, row), strict=True)) for row in cells])
    else:
        write_file(path, as_csv(table).encode("utf-8", "surrogateescape"))


def _as_number(cell: str) -> str | int | float:
    text = cell.replace("\N{MINUS SIGN}", "-")
    if not _NUMBER.fullmatch(text):
        return cell
    value = float(text.replace(",", ""))
    return int(value) if "." not in text and abs(value) < 1e15 else value


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without mappings in it."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found.update({f"{name}.{key}": cell for key, cell in _flat(value).items()})
        elif isinstance(value, list | tuple) and value and all(isinstance(one, float) for one in value):
            found.update({f"{name}.{place}": one for place, one in enumerate(value, start=1)})
        else:
            found[name] = value
    return found


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        plain = not any(isinstance(one, list | tuple | dict) for one in value)
        return "; ".join(map(str, value)) if plain else json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else value


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = _columns(rows)
    writer.writerow([safe_cell(name) for name in columns])
    writer.writerows([safe_cell(_cell(row.get(name))) for name in columns] for row in rows)
    return out.getvalue()


def _workbook(rows: Sequence[Mapping[str, Any]]) -> bytes:
    columns = _columns(rows)
    lines: list[list[Any]] = [list(columns), *([row.get(name) for name in columns] for row in rows)]
    sheet = "".join(f"<row>{''.join(map(_xml_cell, line))}</row>" for line in lines)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in _PARTS.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
        file.writestr(
            "xl/worksheets/sheet1.xml",
            f'<?xml version="1.0" encoding="UTF-8"?><worksheet {_MAIN}><sheetData>{sheet}</sheetData></worksheet>',
        )
    return out.getvalue()


def _xml_cell(value: Any) -> str:
    value = _cell(value)
    if value is None:
        return "<c/>"
    if isinstance(value, int | float) and math.isfinite(value):
        return f"<c><v>{value}</v></c>"
    text = "".join(char for char in str(value)[:_LONGEST_CELL] if char >= " " or char in "\n\t")
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'
