"""What a job gives back can be read, saved and shown in every form."""

import csv
import json

import pytest

from climassay.errors import InputError
from climassay.reporting import Table
from climassay.reporting.results import RESULT_SUFFIXES, Result, Shown, listing

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
