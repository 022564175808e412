"""Rows as a file of the kind that its name ends in: CSV, an Excel workbook, or JSON lines."""

import csv
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from climassay.folder_files import write_file
from climassay.spreadsheets import safe_cell

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


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows; numbers stay numbers, lists become texts divided by semicolons in CSV and workbooks.

    Args:
        path: Its ending tells the kind; any other than those of ``ROW_SUFFIXES`` is JSON lines.
        rows: The columns are the keys of all rows, in the order in which they come.

    Raises:
        InputError: The file cannot be written.
    """
    match path.suffix.lower():
        case ".csv":
            data = _csv(rows).encode("utf-8")
        case ".xlsx":
            data = _workbook(rows)
        case _:
            data = "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows).encode("utf-8")
    write_file(path, data)


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
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
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>"
    text = "".join(char for char in str(value)[:_LONGEST_CELL] if char >= " " or char in "\n\t")
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'
