import csv
import io
import re

from climassay.reporting import Report, Section, Table, as_csv, as_latex, as_markdown, as_rich
from climassay.reporting.tables import TOP_SIGN, escape_latex, split_columns

MARKED = Table.of(
    "Scores & more",
    ["model", "setting", "accuracy", "50% EM"],
    [("a_1", "default", "40", "0.1"), ("a_1", "rag", "60", "0.3"), ("b", "rag", "55", "0.4")],
    note="A note.",
    left=2,
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


def test_html_shows_both_marks():
    page = Report("T", "L", (Section("S", (MARKED,)),)).to_html()
    assert "<strong><u>60</u></strong>" in page
    assert '<td class="right"><strong>0.3</strong></td>' in page
    assert '<td class="right"><u>0.4</u></td>' in page
    assert "Bold: best of its group. Underlined: best of its column. A note." in page


def test_the_terminal_shows_both_marks():
    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system="standard")
    console.print(as_rich(MARKED))
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
