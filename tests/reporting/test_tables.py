"""Tables in every form, on screens of every width; nothing that a cell says is lost."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from browser import NARROWEST, WIDE, inside
from climassay.reporting import Report, Section, Table, as_csv, as_latex, as_markdown, counted
from climassay.reporting.tables import TOP_SIGN, escape_latex, split_columns

MARKED = Table.of(
    "Scores & more",
    ["model", "setting", "accuracy", "50% EM"],
    [("a_1", "default", "40", "0.1"), ("a_1", "rag", "60", "0.3"), ("b", "rag", "55", "0.4")],
    note="A note.",
    left_columns=2,
    grouped=1,
    marks={(1, 2): frozenset({"best", "top"}), (1, 3): frozenset({"best"}), (2, 3): frozenset({"top"})},
)


def test_markdown_shows_both_marks():
    text = as_markdown(MARKED)
    assert f"| a_1 | rag | **60**{TOP_SIGN} | **0.3** |" in text
    assert f"| b | rag | 55 | 0.4{TOP_SIGN} |" in text
    assert f"Bold: best of its group. {TOP_SIGN}: best of its column. A note." in text


def test_csv_keeps_cells_as_they_are_and_names_the_marked_columns():
    rows = list(csv.DictReader(io.StringIO(as_csv(MARKED))))
    assert [row["accuracy"] for row in rows] == ["40", "60", "55"]
    assert [row["best"] for row in rows] == ["", "accuracy; 50% EM", ""]
    assert [row["top"] for row in rows] == ["", "accuracy", "50% EM"]


@pytest.mark.parametrize(
    ("heading", "cells", "columns"),
    [
        (
            "MCQ n=12",
            ("25.0 [4.6, 69.9]", "54.6", "-"),
            {"MCQ": "25.0 54.6 -", "MCQ low": "4.6  ", "MCQ high": "69.9  ", "MCQ n": "12  "},
        ),
        (
            "alpha",
            ("0.45 (0.20 to 0.71), n = 30", "\N{MINUS SIGN}0.10 (\N{MINUS SIGN}0.3 to 0.1), n = 1,204"),
            {"alpha": "0.45 -0.10", "alpha low": "0.20 -0.3", "alpha high": "0.71 0.1", "alpha n": "30 1204"},
        ),
        ("95% interval", ("+50.0 to +100.0", "-"), {"95% interval low": "+50.0 ", "95% interval high": "+100.0 "}),
        ("years", ("2010 to 2020", "2011"), {"years": "2010 to 2020 2011"}),
        ("text", ("25.0 [4.6, 69.9]", "see note [1, 2]"), {"text": "25.0 [4.6, 69.9] see note [1, 2]"}),
        ("n=3", ("4", "5"), {"n=3": "4 5"}),
    ],
    ids=["brackets", "words and counts", "interval alone", "years", "text among them", "plain numbers"],
)
def test_files_have_columns_of_numbers_for_values_and_intervals(heading, cells, columns):
    table = Table.of("", ["model", heading], [(f"m{row}", cell) for row, cell in enumerate(cells)])
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert {name: " ".join(row[name] for row in rows) for name in rows[0] if name != "model"} == columns


def test_html_shows_both_marks():
    page = Report("T", "L", (Section("S", (MARKED,)),)).to_html()
    assert "<strong><u>60</u></strong>" in page
    assert '<td class="right"><strong>0.3</strong></td>' in page
    assert '<td class="right"><u>0.4</u></td>' in page
    assert "Bold: best of its group. Underlined: best of its column. A note." in page


def test_the_terminal_shows_both_marks():
    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system="standard")
    console.print(MARKED)
    text = console.file.getvalue()
    assert re.search(r"\x1b\[1;4m60\x1b", text)
    assert re.search(r"\x1b\[1m0\.3\x1b", text)
    assert re.search(r"\x1b\[4m0\.4\x1b", text)


def test_latex_shows_both_marks_and_parts_groups():
    text = as_latex(MARKED)
    assert r"a\_1 & default & 40 & 0.1 \\" in text
    assert r" & rag & \textbf{\underline{60}} & \textbf{0.3} \\" in text
    assert "\\midrule\nb & rag & 55 & \\underline{0.4}" in text
    assert r"\begin{tabular}{llrr}" in text
    assert r"\caption{Scores \& more}" in text
    assert r"50\% EM" in text
    assert text.count(r"\midrule") == 2
    assert text.count("{") == text.count("}")


def test_latex_escapes_everything_it_would_read_as_a_command():
    assert escape_latex(r"50% of $x_1^2$ & {a~b} #1 \n <5|6>") == (
        r"50\% of \$x\_1\textasciicircum{}2\$ \& \{a\textasciitilde{}b\} \#1 \textbackslash{}n "
        r"\textless{}5\textbar{}6\textgreater{}"
    )
    assert escape_latex("61.1 ±7.2") == r"61.1 $\pm$7.2"
    assert escape_latex("two\nlines") == "two lines"


def test_wide_tables_are_parted_with_their_leading_columns_and_marks():
    first, second = split_columns(MARKED, 2, 1)
    assert [column.label for column in second.columns] == ["model", "setting", "50% EM"]
    assert second.rows[1] == ("a_1", "rag", "0.3")
    assert second.marks == {(1, 2): frozenset({"best"}), (2, 2): frozenset({"top"})}
    assert first.marks == {(1, 2): frozenset({"best", "top"})}
    assert (second.note, second.grouped) == (MARKED.note, MARKED.grouped)
    assert split_columns(MARKED, 2, 2) == [MARKED]


WORD = st.text("abcdefgh0123456789.%", min_size=1, max_size=24)
CELL = st.lists(WORD, min_size=1, max_size=6).map(" ".join)


def printed(table, width):
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


@st.composite
def tables(draw):
    columns = draw(st.integers(1, 7))
    headings = draw(st.lists(CELL, min_size=columns, max_size=columns))
    rows = draw(st.lists(st.lists(CELL, min_size=columns, max_size=columns), min_size=1, max_size=4))
    left = draw(st.integers(0, columns))
    return Table.of("Title", headings, rows, left_columns=left, grouped=draw(st.integers(0, max(0, columns - 1))))


@given(tables(), st.integers(30, 200))
def test_every_word_of_every_cell_is_there_and_no_line_is_too_long(table, width):
    out = printed(table, width)
    assert all(len(line) <= width for line in out.splitlines())
    words = set(out.replace(":", " ").replace(",", " ").split())
    assert {word for row in table.rows for cell in row for word in cell.split()} <= words
    assert {word for column in table.columns[table.grouped :] for word in column.label.split()} <= words


NUMBERS = Table.of(
    "Counts", ["who", "settled since the last training", "share"], [("ann", "14", "0.64 (0.39 to 0.84)")]
)


def test_a_table_that_fits_stands_as_a_grid():
    lines = printed(NUMBERS, 100).splitlines()
    assert any(line.split() == ["who", "settled", "since", "the", "last", "training", "share"] for line in lines)
    assert any(line.split() == ["ann", "14", "0.64", "(0.39", "to", "0.84)"] for line in lines)


def test_a_narrow_screen_shows_row_by_row():
    lines = printed(NUMBERS, 30).splitlines()
    assert lines[:2] == ["Counts", ""]
    assert "who: ann" in lines
    assert "share: 0.64 (0.39 to 0.84)" in lines


def test_groups_stand_above_their_rows():
    table = Table.of(
        "T", ["set", "model", "n"], [("gold", "a", "1"), ("gold", "b", "2"), ("silver", "a", "3")], grouped=1
    )
    for width in (80, 12):
        words = printed(table, width).replace(":", " ").split()
        assert words.count("gold") == 1
        assert words.index("gold") < words.index("1") < words.index("2") < words.index("silver") < words.index("3")


@pytest.mark.browser
@pytest.mark.parametrize("shown", ["61.1 [52.0, 69.4]", "0.473 [0.311, 0.520]", "100.0 [100.0, 100.0]"])
def test_twelve_columns_of_intervals_fit(shown, chromium):
    headings = ("model", "setting", *(f"MCQ Reason\n{number}" for number in range(12)))
    rows = [
        ("Llama-3.3-70B-Instruct-Turbo", "rag-source", *[shown] * 12),
        ("smollm2", "default", *["0.0 [0.0, 9.9]"] * 12),
    ]
    table = Table.of("Accuracy of every model in every setting, by level", headings, rows, left_columns=2)
    browser, loop = chromium
    with inside(loop):
        page = browser.new_page(viewport=WIDE)
        page.set_content(Report("R", "lead", (Section("S", (table,)),)).to_html())
        assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))") == 0
        cut = "[...document.querySelectorAll('td, th')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
        assert page.evaluate(cut) == 0
        page.set_viewport_size(NARROWEST)
        title = page.locator("caption span").bounding_box()
        assert title["x"] + title["width"] <= NARROWEST["width"], "the title of a wide table is cut off"
        page.close()


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 claims"), (1, "1 claim"), (2, "2 claims"), (1200, "1,200 claims")], ids=str
)
def test_a_noun_is_singular_for_one_only(number, words):
    assert counted(number, "claim") == words
