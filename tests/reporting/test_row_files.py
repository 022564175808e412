"""Rows and tables as files of the kind that their name tells."""

import csv
import json
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from climassay.reporting import Table
from climassay.reporting.results import write_rows, write_table

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def workbook_cells(path: Path) -> list[list[Any]]:
    """Cells of the only sheet: numbers as floats, texts as they are, None for empty ones."""
    with zipfile.ZipFile(path) as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    found: list[list[Any]] = []
    for row in sheet.iter(f"{_SHEET}row"):
        cells: list[Any] = []
        for cell in row:
            value, text = cell.find(f"{_SHEET}v"), cell.find(f".//{_SHEET}t")
            cells.append(float(str(value.text)) if value is not None else None if text is None else text.text)
        found.append(cells)
    return found


def test_rows_keep_their_numbers_and_lose_no_field(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "n": 3, "probabilities": {"low": 0.25, "high": 0.75}, "shares": [0.5, 0.5], "context": ["x", "y"]},
        {"id": "=1+1", "n": None, "sure": True, "steps": [{"by": "rule"}]},
    ]
    headings = [
        "id",
        "n",
        "probabilities.low",
        "probabilities.high",
        "shares.1",
        "shares.2",
        "context",
        "sure",
        "steps",
    ]
    for name in ("x.csv", "x.XLSX", "x.jsonl", "x"):
        write_rows(tmp_path / name, rows)
    book = workbook_cells(tmp_path / "x.XLSX")
    assert book[0] == headings
    assert book[1][:7] == ["a", 3, 0.25, 0.75, 0.5, 0.5, "x; y"]
    assert book[2] == ["=1+1", None, None, None, None, None, None, "true", '[{"by": "rule"}]']
    with (tmp_path / "x.csv").open(newline="") as file:
        table = list(csv.reader(file))
    assert table[0] == headings
    assert table[1][:4] == ["a", "3", "0.25", "0.75"]
    assert table[2][0] == "'=1+1"
    for name in ("x.jsonl", "x"):
        assert [json.loads(line) for line in (tmp_path / name).read_text().splitlines()] == rows
    write_rows(tmp_path / "plain", rows, otherwise=".csv")
    assert (tmp_path / "plain").read_text() == (tmp_path / "x.csv").read_text()


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.jsonl"])
def test_a_table_has_no_two_columns_of_one_name(tmp_path: Path, name: str) -> None:
    rows = [("sea level", "1,204", "\N{MINUS SIGN}0.50", "0.1 to 0.2", "12%")]
    table = Table.of("", ("topic", "n", "score", "interval", "interval"), rows, marks={(0, 2): frozenset(["best"])})
    write_table(tmp_path / name, table)
    headings: list[Any]
    if name.endswith("xlsx"):
        headings, cells = workbook_cells(tmp_path / name)
        assert cells[1:4] == [1204, -0.5, "0.1 to 0.2"]
    elif name.endswith("jsonl"):
        row = json.loads((tmp_path / name).read_text())
        headings = list(row)
        assert row["n"] == 1204
        assert row["best"] == "score"
    else:
        headings = next(csv.reader((tmp_path / name).open()))
    assert headings == ["topic", "n", "score", "interval", "interval (2)", "best", "top"]
