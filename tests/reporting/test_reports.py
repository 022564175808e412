"""Reports and results: shown and saved in every form, and as data and back."""

import csv
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any
from xml.dom import minidom
from xml.etree import ElementTree

import pytest

from climassay.errors import InputError
from climassay.evaluation import experiment_report
from climassay.factcheck import analyse, factcheck_report
from climassay.factcheck.scales import CLIMATE_FEEDBACK
from climassay.reporting import (
    AnswerCard,
    AnsweredQuestion,
    AnswerRow,
    AnswerTables,
    Axis,
    Case,
    Cases,
    Category,
    Cloud,
    Dot,
    DotPlot,
    Facts,
    HeatMap,
    LinePlot,
    Option,
    Point,
    Prose,
    Report,
    ScatterPlot,
    Section,
    Series,
    SourceText,
    StackedBar,
    StackedBars,
    Table,
    as_csv,
    as_markdown,
)
from climassay.reporting.html import FIGURES, as_svg, render_block, report_data, report_from_data
from climassay.reporting.results import RESULT_SUFFIXES, AssembledResult, Result, listing, write_rows, write_table
from experiments import experiment
from factcheck_transcripts import full_transcript
from html_pages import Elements

TABLE = Table.of(
    "Accuracy <b>",
    ["setting", "n", "accuracy"],
    [("default", "60", "40.0"), ("rag:a|b", "60", "55.0")],
    note="A note & more.",
    strong=[1],
)


def test_csv_and_markdown_carry_every_cell():
    rows = list(csv.reader(io.StringIO(as_csv(TABLE))))
    assert rows == [["setting", "n", "accuracy"], ["default", "60", "40.0"], ["rag:a|b", "60", "55.0"]]
    lines = as_markdown(TABLE).splitlines()
    assert lines[3] == "| --- | ---: | ---: |"
    assert lines[5] == "| rag:a\\|b | 60 | 55.0 |"
    assert lines[-1] == "A note & more."


def report():
    card = AnswerCard(
        "Why <script>alert(1)</script>?",
        (("Because.", (1,), False), ("I think so.", (), True)),
        ((1, "Book, p. 3", "Some <i>passage</i>."),),
    )
    dots = (Dot("default", "default", 0.4, 0.3, 0.5, 0.25), Dot("rag", "rag", 0.6, 0.5, 0.7, 0.25))
    return Report(
        "A title",
        "A lead.",
        (
            Section("Answers", (Prose("Text."), card, card)),
            Section("Scores", (DotPlot("Overall", dots), TABLE, Facts((("seed", "0"),)))),
        ),
        (("Run", "r1"),),
    )


def test_report_is_self_contained_and_escapes_what_it_shows():
    page = report().to_html()
    parsed = Elements(page)
    assert not {"script", "link", "iframe", "img"} & set(parsed.tags)
    assert not any(name in attributes for _, attributes, _ in parsed.found for name in ("src", "action"))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"url\(|@import|https?://", page)
    parsed.check()
    assert all(link.startswith("#") for link in parsed.links)


def test_report_is_written_whole(tmp_path):
    target = report().write(tmp_path / "deep" / "report.html")
    assert target.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert list(target.parent.iterdir()) == [target]


MCQ = AnsweredQuestion(
    "q1",
    "mcq",
    "base",
    "primer",
    "Which <gas>?",
    "CO2",
    ("accuracy",),
    (
        AnswerRow("small", "default", "b) CH4", ("0",), wrong=True, remarks=("probability 0.40",)),
        AnswerRow("small", "rag", "a) CO2", ("1",), wrong=False, sources=(0, 1)),
        AnswerRow("large", "rag", "no <answer> in 60 s", ("0",), wrong=True, failed=True),
    ),
    (Option("a", "CO2", True), Option("b", "CH4", False)),
    source=1,
)
CLOZE = AnsweredQuestion(
    "q2",
    "cloze",
    "",
    "primer",
    "A <MASK>.",
    "word",
    ("exact match",),
    (AnswerRow("small", "default", "", ("1",), False),),
)
BLOCK = AnswerTables("All", (MCQ, CLOZE), (SourceText("p1", "One & only passage."), SourceText("p2", "Another.")))


def page(block=BLOCK):
    return Report("T", "L", (Section("S", (block,)),)).to_html()


def test_every_question_is_folded_and_says_what_a_filter_needs():
    items = [attrs for attrs in Elements(page()).of("details") if attrs.get("class") == "item"]
    assert [(one["data-kind"], one["data-level"], one["data-wrong"]) for one in items] == [
        ("mcq", "base", "2"),
        ("cloze", "", "0"),
    ]
    assert all("open" not in one for one in items)


def test_texts_are_stored_once_and_linked():
    text = page()
    assert text.count("One &amp; only passage.") == 1
    targets = {attrs["id"] for attrs in Elements(text).of("li") if "id" in attrs}
    links = {attrs["href"][1:] for attrs in Elements(text).of("a") if "-t" in attrs["href"]}
    assert links == targets
    assert len(targets) == 2


def test_what_models_wrote_stays_text():
    text = page()
    assert "Which &lt;gas&gt;?" in text
    assert "failed: no &lt;answer&gt; in 60 s" in text
    assert "(empty)" in text


ROWS = [{"name": "ice", "size": 2, "parts": ["a", "b"]}, {"name": "<b>sea</b>", "size": 3, "parts": []}]


class Figures(Result):
    """A room's record, which says no more than its tables."""

    def tables(self):
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
    page = AssembledResult(
        {}, (Table.of("Things", ("name",), [("<script>",)]),), printed_lines=("<i>said</i>",)
    )._repr_html_()
    assert "Things" in page
    assert "<script>" not in page
    assert "<i>" not in page


def test_a_console_shows_tables_from_their_beginning_and_not_the_fields():
    table = Table.of("Things", ("name", "size"), [(f"thing {number}", "1") for number in range(100)], strong=(99,))
    shown = repr(AssembledResult({"secret": "x" * 1000}, (table,), printed_lines=("It is said.",)))
    assert shown.splitlines()[0] == "It is said."
    assert "thing 39" in shown
    assert "thing 40" not in shown
    assert "... of 100 rows" in shown
    assert "xxx" not in shown


def test_what_found_nothing_says_so_in_a_notebook_and_a_console():
    empty = AssembledResult([], (Table.of("Things", ("name",), ()),), noted=("Nothing was found.",))
    assert "Nothing was found." in empty._repr_html_()
    assert repr(empty) == "Nothing was found."


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
            column = ord(cell.attrib["r"][0]) - ord("A")
            cells += [None] * (column - len(cells))
            value, text = cell.find(f"{_SHEET}v"), cell.find(f".//{_SHEET}t")
            cells.append(float(str(value.text)) if value is not None else None if text is None else text.text)
        found.append(cells)
    width = max(map(len, found))
    return [cells + [None] * (width - len(cells)) for cells in found]


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


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.jsonl"])
def test_a_table_has_no_two_columns_of_one_name(tmp_path: Path, name: str) -> None:
    rows = [("sea level", "1,204", "\N{MINUS SIGN}0.50", "0.1 to 0.2", "12%")]
    table = Table.of("", ("topic", "n", "score", "interval", "interval"), rows, marks={(0, 2): frozenset(["best"])})
    write_table(tmp_path / name, table)
    headings: list[Any]
    if name.endswith("xlsx"):
        headings, cells = workbook_cells(tmp_path / name)
        assert cells[1:5] == [1204, -0.5, 0.1, 0.2]
    elif name.endswith("jsonl"):
        row = json.loads((tmp_path / name).read_text())
        headings = list(row)
        assert row["n"] == 1204
        assert row["best"] == "score"
    else:
        headings = next(csv.reader((tmp_path / name).open()))
    assert headings == ["topic", "n", "score", "interval low", "interval high", "interval", "best", "top"]


SHARE = Axis("share", 0.0, 1.0, (0.0, 0.5, 1.0), percent=True)
FIGURE_BLOCKS = (
    DotPlot("Dots <b>", (Dot("a <b>", "g", 0.4, 0.3, 0.5, 0.25), Dot("b", "h", 0.6, 0.5, 0.7))),
    LinePlot("Lines", (Series("<b>", (Point(0, 0.2, 0.1, 0.3, "n"), Point(1, 0.5))),
                       Series("even", (Point(0, 0.5), Point(1, 0.5)), reference=True)), SHARE, SHARE),
    ScatterPlot("Cloud", (Cloud("yes <b>", ((0, 0), (1, 1))), Cloud("no", ())), SHARE, SHARE),
    HeatMap("Map", ("wrong <b>", "right"), ("wrong <b>", "right"), ((3, 1), (0, 2)), "true", "given"),
    StackedBars("Bars", (Category("low", 0.0), Category("none <b>"), Category("void", hatched=True)),
                (StackedBar("one <b>", (3, 1, 2)),)),
)  # fmt: skip
OTHER_BLOCKS = (
    Prose("Text <b>."),
    Facts((("a", "b"),)),
    AnswerCard("Q?", (("Yes.", (1,), False),), ((1, "Book", "Text."),)),
    Cases("Cases", (Case("One", (("given", "right"),), "Because.", "/there"),)),
    Table.of("T <b>", ["a", "b"], [("x", "1"), ("y", "2")], strong=[1], grouped=1, marks={(0, 1): frozenset(["best"])}),
)


def kind(block):
    return type(block).__name__


def test_every_block_comes_back_as_it_was():
    report = Report("T", "L", (Section("S", (*FIGURE_BLOCKS, *OTHER_BLOCKS)),), (("run", "r1"),))
    assert report_from_data(json.loads(json.dumps(report_data(report)))) == report


@pytest.mark.parametrize(
    "report",
    [
        experiment_report(experiment()),
        factcheck_report(analyse([full_transcript()], {"c1": "correct"}, CLIMATE_FEEDBACK), file="claims.csv"),
    ],
    ids=["experiment", "factcheck"],
)
def test_whole_reports_come_back_and_look_the_same(report):
    again = report_from_data(json.loads(json.dumps(report_data(report))))
    assert again == report
    assert again.to_html() == report.to_html()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("title"),
        lambda data: data.update(title=3),
        lambda data: data["sections"][0]["blocks"][0].update(dots="many"),
        lambda data: data.update(sections=None),
    ],
    ids=["missing title", "title is a number", "dots are a string", "no sections"],
)
def test_damaged_reports_are_refused(damage):
    data = json.loads(json.dumps(report_data(Report("T", "L", (Section("S", FIGURE_BLOCKS[:1]),)))))
    damage(data)
    with pytest.raises(InputError, match="The stored report is damaged"):
        report_from_data(data)


@pytest.mark.parametrize("block", [*FIGURE_BLOCKS, *OTHER_BLOCKS], ids=kind)
def test_blocks_for_pages_need_no_inline_style_or_script(block):
    markup = str(render_block(block, "s1", 3))
    assert markup.strip()
    assert not re.search(r" style=|<script|<style| on\w+=", markup)
    assert "<b>" not in markup


@pytest.mark.parametrize("figure", FIGURE_BLOCKS, ids=kind)
def test_a_figure_is_a_drawing_of_its_own(figure):
    assert isinstance(figure, FIGURES)
    text = as_svg(figure)
    drawing = minidom.parseString(text.strip()).documentElement
    assert drawing.tagName == "svg"
    assert drawing.getElementsByTagName("title")[0].firstChild.data == figure.title
    assert "<b>" not in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    # Programs that draw papers know neither the page's colours nor how to mix them.
    assert "var(" not in text
    assert "color-mix" not in text


def test_an_empty_corner_of_a_table_is_no_heading():
    table = Table.of("Shares", ["", "n"], [("sea", "3")])
    page = str(render_block(table, "all", 1))
    assert "<thead><tr><td></td><th" in page
    assert "></th>" not in page


def test_a_table_without_rows_says_so_across_its_columns():
    headings = ("file", "paragraph", "what to change")
    empty, filled = (
        str(render_block(Table.of("Words", headings, rows), "all", 1)) for rows in ([], [("a.md", "1", "say likely")])
    )
    assert re.search(r'<td colspan="3">[^<]+</td>', empty)
    assert "colspan" not in filled
