"""What a job gives back can be read, saved and shown in every form."""

import csv
import json
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from climassay.errors import InputError
from climassay.reporting import Table
from climassay.reporting.results import RESULT_SUFFIXES, Result, Shown, listing, write_rows, write_table

ROWS = [{"name": "ice", "size": 2, "parts": ["a", "b"]}, {"name": "<b>sea</b>", "size": 3, "parts": []}]


class Figures(Result):
    """A room's record, which says no more than its tables."""

    def tables(self):
        """One table."""
        return (Table.of("Figures", ("name", "n"), [("ice", "2")]),)


def test_rows_and_report_follow_from_the_tables():
    found = Figures()
    assert found.rows() == [{"name": "ice", "n": "2"}]
    assert "Figures" in found.report().to_html()
    assert "| ice | 2 |" in found.markdown()


@pytest.mark.parametrize("suffix", RESULT_SUFFIXES)
def test_the_ending_of_the_file_says_the_form(tmp_path, suffix):
    found = listing("Things", ROWS, {"name": "name", "size": "size"})
    file = found.save(tmp_path / "new" / f"things{suffix}")
    content = file.read_bytes()
    match suffix:
        case ".csv":
            assert [row["parts"] for row in csv.DictReader(content.decode().splitlines())] == ["a; b", ""]
        case ".json":
            assert json.loads(content) == ROWS
        case ".jsonl":
            assert [json.loads(line) for line in content.splitlines()] == ROWS
        case ".xlsx":
            assert content[:2] == b"PK"
        case ".md":
            assert b"| ice | 2 |" in content
        case ".html":
            assert b"<b>sea</b>" not in content
            assert b"sea" in content


@pytest.mark.parametrize("name", ["things", "things.txt", "things.pdf"])
def test_another_ending_is_refused_and_nothing_written(tmp_path, name):
    with pytest.raises(InputError, match=r"must end in \.csv"):
        Figures().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_notebook_shows_tables_and_escapes_what_is_in_them():
    page = Shown({}, (Table.of("Things", ("name",), [("<script>",)]),), said=("<i>said</i>",))._repr_html_()
    assert "Things" in page
    assert "<script>" not in page
    assert "<i>" not in page


def test_a_data_frame_has_the_records():
    frame = listing("Things", ROWS, {"name": "name"}).to_pandas()
    assert list(frame["size"]) == [2, 3]


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
        "id", "n", "probabilities.low", "probabilities.high", "shares.1", "shares.2", "context", "sure", "steps",
    ]  # fmt: skip
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
