"""Tables of text as people's programs write them: the same cells, or one sentence with the cause and the mend."""

import codecs
from pathlib import Path

import pytest

from climassay.corpus import read
from climassay.errors import InputError
from climassay.io import find_column, parse_rows, require_column
from climassay.io.decoding import decode_text
from climassay.io.delimited import read_delimited

SEA = "Sea level rose by 0.20 m between 1901 and 2018."
ROWS = [{"text": SEA, "page": "5"}, {"text": "Ice, snow and permafrost melt.", "page": "6"}]
PLAIN = f'text,page\n"{SEA}",5\n"Ice, snow and permafrost melt.",6\n'
SEMICOLONS = f"text;page\n{SEA};5\nIce, snow and permafrost melt.;6\n"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        SEMICOLONS,
        PLAIN.replace("\n", "\r\n"),
        SEMICOLONS.replace(";", "\t"),
        SEMICOLONS.replace(";", "|"),
        "sep=;\n" + SEMICOLONS,
        "SEP=;\r\n" + SEMICOLONS.replace("\n", "\r\n"),
        '"sep=;"\n' + SEMICOLONS,
        "sep=\t\n" + SEMICOLONS.replace(";", "\t"),
        "sep=\\t\n" + SEMICOLONS.replace(";", "\t"),
        "sep=^\n" + SEMICOLONS.replace(";", "^"),
        "Source: World Bank\nLast updated: 2024-01-01\n\n" + PLAIN,
        "Source: World Bank,\n,\nLast updated: 2024-01-01,\n" + PLAIN,
        "UTF-8\n" + PLAIN,
        " text , page \n" + PLAIN.partition("\n")[2],
        PLAIN + "\n\n",
        PLAIN.replace(",page", ", page").replace('",', '", ').replace('\n"', '\n "'),
        "# World Bank, 2024-01-01, all regions\n" + PLAIN,
    ],
)
def test_every_way_to_write_a_table_gives_the_same_cells(text: str) -> None:
    table = read_delimited(text)
    assert table.names == ["text", "page"]
    assert table.rows == ROWS
    assert table.overlong == []


def test_a_statistical_table_with_notes_above_a_wide_header() -> None:
    text = (
        '"Data Source","World Development Indicators",\n\n"Last Updated Date","2024-01-01",\n\n'
        '"Country Name","Country Code","1990","2000",\n"Aruba","ABW","1,5","",\n"Chad","TCD","2","3",\n'
    )
    table = read_delimited(text)
    assert table.names == ["Country Name", "Country Code", "1990", "2000"]
    assert table.rows[0] == {"Country Name": "Aruba", "Country Code": "ABW", "1990": "1,5", "2000": ""}
    assert len(table.lines_above) == 2


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("year;value\n1990;1,5\n2000;2,5\n", ["year", "value"], {"year": "1990", "value": "1,5"}),
        ("text\nSea level, which rose, rises.\nIce, too.\n", ["text"], {"text": "Sea level, which rose, rises."}),
        (",text\n0,Ice melts.\n1,Snow falls.\n", ["text"], {"text": "Ice melts."}),
        ("text,page\nIce melts.\n", ["text", "page"], {"text": "Ice melts.", "page": None}),
        ("date;T;P\n04.05;9.8;759;\n05.05;9.9;760;\n", ["date", "T", "P"], {"date": "04.05", "T": "9.8", "P": "759"}),
        ('text,page\n"Two\nlines, one cell.",5\n', ["text", "page"], {"text": "Two\nlines, one cell.", "page": "5"}),
        ('text,page\n"Said \\"1.5 °C\\".",5\n', ["text", "page"], {"text": 'Said "1.5 °C".', "page": "5"}),
        ("#,text\n1,Ice melts.\n", ["#", "text"], {"#": "1", "text": "Ice melts."}),
        ("value,unit,value\n1,K,2\n", ["value", "unit", "value (2)"], {"value": "1", "unit": "K", "value (2)": "2"}),
        ('text,page\n"Said ""1.5 °C"", not 2.",5\n', ["text", "page"], {"text": 'Said "1.5 °C", not 2.', "page": "5"}),
    ],
)  # fmt: skip
def test_separators_are_told_from_the_marks_of_texts(text: str, names: list[str], first: dict[str, str]) -> None:
    table = read_delimited(text)
    assert table.names == names
    assert table.rows[0] == first


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("text,,page\nSeas rise.,a note,5\nIce melts.,,6\n", ["text", "column 2", "page"]),
        (",text,page\nsurvey,Seas rise.,5\n", ["column 1", "text", "page"]),
        (",text,page\n0,Seas rise.,5\n1,Ice melts.,6\n", ["text", "page"]),
        ('"","text","page"\n"1","Seas rise.","5"\n"2","Ice melts.","6"\n', ["text", "page"]),
        ("text,page,\nSeas rise.,5,\nIce melts.,6,\n", ["text", "page"]),
    ],
)
def test_columns_without_a_name_are_numbered_unless_they_say_nothing(text: str, names: list[str]) -> None:
    table = read_delimited(text)
    assert table.names == names
    assert all(list(row) == names for row in table.rows)


def test_a_row_with_too_many_cells_is_never_cut(tmp_path: Path) -> None:
    text = "text,page\nIce melts.,5\nSea level, which rose, rises.,6\nSnow falls.,7\n"
    assert read_delimited(text).overlong == [2]
    (tmp_path / "t.csv").write_text(text)
    result = read(tmp_path / "t.csv")
    assert [block.text for document in result.documents for block in document.blocks] == ["Ice melts.", "Snow falls."]
    assert "quotation marks" in result.skipped[0].reason
    with pytest.raises(InputError, match=r"row 2.*quotation marks"):
        list(parse_rows(Path("t.csv"), text.encode()))


def test_a_quotation_that_never_ends_swallows_no_rows() -> None:
    with pytest.raises(InputError, match="line 2"):
        list(parse_rows(Path("t.csv"), b'text,page\n"Ice melts.,5\nSnow falls.,6\n'))


def test_lines_above_the_header_are_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Source: World Bank\nUpdated: 2024\n" + PLAIN)
    result = read(tmp_path / "t.csv")
    assert [block.text for document in result.documents for block in document.blocks] == [row["text"] for row in ROWS]
    assert "2 lines" in result.skipped[0].reason
    assert "World Bank" in result.skipped[0].reason


UMLAUTS = "text;page\nCO₂ in Zürich: −1,5 °C – 2 °C.;5\n"


@pytest.mark.parametrize(
    "data",
    [
        UMLAUTS.encode(),
        codecs.BOM_UTF8 + UMLAUTS.encode(),
        UMLAUTS.encode("utf-16"),
        UMLAUTS.encode("utf-16-le"),
        UMLAUTS.encode("utf-16-be"),
        UMLAUTS.replace("ü", "\udcfc").encode("utf-8", "surrogateescape"),
    ],
    ids=["utf-8", "mark", "utf-16", "little", "big", "one stray byte"],
)
def test_encodings_are_recognised_and_one_stray_byte_spoils_nothing(data: bytes) -> None:
    assert decode_text(data) == UMLAUTS
    assert list(parse_rows(Path("t.csv"), data)) == [{"text": "CO₂ in Zürich: −1,5 °C – 2 °C.", "page": "5"}]


def test_windows_tables_keep_their_dashes() -> None:
    data = "text;page\nVon 1850–1900 stieg der Gehalt – in „ppm“.;5\n".encode("cp1252")
    assert list(parse_rows(Path("t.csv"), data)) == [
        {"text": "Von 1850–1900 stieg der Gehalt – in „ppm“.", "page": "5"}
    ]


@pytest.mark.parametrize(
    ("names", "requested", "column"),
    [
        (["Text", "text"], ["text"], "text"),
        (["ID", " Reference Answer "], ["reference", "reference_answer"], " Reference Answer "),
        (["published-verdict"], ["Published Verdict"], "published-verdict"),
        (["texts"], ["text"], None),
    ],
)
def test_columns_are_found_in_any_case_the_exact_name_first(names, requested, column):
    assert find_column(names, *requested) == column


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(InputError, match=r"t.csv has no column 'truth' \(--truth\): it has claim, label"):
        require_column("t.csv", ["claim", "label"], "truth", "--truth")


def test_a_small_file_of_many_columns_and_short_rows_is_refused():
    header, rows = ",".join(f"c{number}" for number in range(5000)), "\n".join("x,y" for _ in range(5000))
    with pytest.raises(ValueError, match="5,000 columns"):
        read_delimited(f"{header}\n{rows}")
    assert len(read_delimited(f"{header}\n{rows[:400]}").rows) == 100
