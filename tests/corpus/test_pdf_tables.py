"""Tables of PDF files are read row by row; nothing else is taken for one."""

from collections.abc import Sequence

import pytest

from climassay.corpus import Document, ReadOptions
from climassay.corpus.readers.pdf import read_pdf
from pdf_building import Text, build_pdf, column

BEFORE = (
    "Snow reflects most of the sunlight that falls on it, whereas open water absorbs almost all of it. When sea ice "
    "retreats in spring the ocean therefore takes up heat that it gives back to the air in autumn."
)
AFTER = (
    "Satellites measure the balance at the top of the atmosphere. They show that the region has darkened by several "
    "watts per square metre since the record began."
)


def document(page: Sequence[Text], **options: bool) -> Document:
    return read_pdf(build_pdf([page]), "table.pdf", ReadOptions(**options)).documents[0]


def table(rows: Sequence[Sequence[str]], xs: Sequence[float], top: float = 560, size: float = 9) -> list[Text]:
    return [
        Text(x, top - 14 * n, cell, size) for n, row in enumerate(rows) for x, cell in zip(xs, row, strict=True) if cell
    ]


def around(lines: Sequence[Text]) -> list[Text]:
    return [*column(BEFORE, 50, 700, 480), *lines, *column(AFTER, 50, 400, 480)]


def texts(document: Document) -> list[str]:
    return [" ".join(block.text.split()) for block in document.blocks]


@pytest.mark.parametrize("one_object", [False, True], ids=["cell by cell", "row by row"])
def test_rows_name_their_columns_and_empty_cells_move_none(one_object: bool) -> None:
    rows = [
        ("Sector", "1990", "2005", "2021"),
        ("Energy industries", "148", "131", "71"),
        ("Transport", "92", "", "88"),
        ("Agriculture, forestry", "41", "38", "36"),
    ]
    lines = table(rows, (50, 220, 300, 380))
    if one_object:
        # One string a row, the gaps made of spaces.
        widths = (31, 15, 15, 6)
        lines = [
            Text(
                50,
                560 - 14 * n,
                "".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(),
                9,
            )
            for n, row in enumerate(rows)
        ]
    caption = Text(50, 590, "Table 2: Emissions by sector in Mt", 9, "F2")
    found = document(around([caption, *lines]))
    assert texts(found) == [
        BEFORE,
        "Sector: Energy industries; 1990: 148; 2005: 131; 2021: 71",
        "Sector: Transport; 1990: 92; 2021: 88",
        "Sector: Agriculture, forestry; 1990: 41; 2005: 38; 2021: 36",
        AFTER,
    ]
    assert {block.headings for block in found.blocks[1:4]} == {("Table 2: Emissions by sector in Mt",)}
    assert not found.omitted_parts


def test_words_name_columns_and_a_header_of_two_rows_is_joined() -> None:
    rows = [
        ("", "Near term", "Long term"),
        ("Scenario", "Best (C)", "Best (C)"),
        ("SSP1", "1.5", "1.4"),
        ("SSP2", "1.7", "2.7"),
        ("SSP5", "1.9", "4.4"),
    ]
    assert texts(document(around(table(rows, (50, 200, 320)))))[1:-1] == [
        "Scenario: SSP1; Near term Best (C): 1.5; Long term Best (C): 1.4",
        "Scenario: SSP2; Near term Best (C): 1.7; Long term Best (C): 2.7",
        "Scenario: SSP5; Near term Best (C): 1.9; Long term Best (C): 4.4",
    ]


def test_cells_are_divided_by_bars_if_no_header_is_sure() -> None:
    rows = [("North", "1.5", "220", "3"), ("South", "2.7", "", "41"), ("West", "0.9", "18", "7")]
    assert texts(document(around(table(rows, (50, 200, 300, 400)))))[1:-1] == [
        "North | 1.5 | 220 | 3",
        "South | 2.7 | | 41",
        "West | 0.9 | 18 | 7",
    ]


def test_marks_of_notes_and_exponents_in_cells_change_no_figure() -> None:
    rows = [("Gas", "Mt", "W m"), ("CO2", "320", "2.1"), ("CH4", "41", "0.5"), ("N2O", "17", "0.2")]
    lines = table(rows, (50, 200, 300))
    lines.insert(5, Text(200 + 3 * 5.4, 560 - 14, "1", 5, rise=4))
    lines.insert(3, Text(300 + 3 * 5.4, 560, "-2", 5, rise=4))
    assert texts(document(around(lines)))[1:-1] == [
        "Gas: CO2; Mt: 320; W m⁻²: 2.1",
        "Gas: CH4; Mt: 41; W m⁻²: 0.5",
        "Gas: N2O; Mt: 17; W m⁻²: 0.2",
    ]


def test_a_table_in_one_of_two_columns_leaves_the_other_text_whole() -> None:
    left = column(f"{BEFORE} {AFTER} {BEFORE}", 50, 700, 230)
    rows = [("Gas", "Mt", "Share"), ("CO2", "320", "81%"), ("CH4", "41", "10%"), ("N2O", "17", "4%")]
    right = [*column(AFTER, 320, 700, 230), *table(rows, (320, 400, 470), 580), *column(BEFORE, 320, 500, 230)]
    found = document([*left, *right])
    assert texts(found) == [
        f"{BEFORE} {AFTER} {BEFORE}",
        AFTER,
        "Gas: CO2; Mt: 320; Share: 81%",
        "Gas: CH4; Mt: 41; Share: 10%",
        "Gas: N2O; Mt: 17; Share: 4%",
        BEFORE,
    ]


def test_a_sentence_goes_on_below_a_table() -> None:
    start, end = (
        "The emissions of the sectors fell at different rates in all of the",
        "years that the table shows, most in the north of it.",
    )
    rows = [("Gas", "Mt", "Share"), ("CO2", "320", "81%"), ("CH4", "41", "10%")]
    page = [Text(50, 600, start.ljust(70)), *table(rows, (50, 200, 300)), Text(50, 500, end)]
    assert texts(document(page)) == [f"{start} {end}", "Gas: CO2; Mt: 320; Share: 81%", "Gas: CH4; Mt: 41; Share: 10%"]


def axes() -> list[Text]:
    """Tick labels of three panels beside each other."""
    ticks = [Text(x, 560 - 20 * n, f"{2.0 - n / 2:.1f}", 7) for n in range(5) for x in (60, 220, 380)]
    titles = [Text(x, 580, title, 8) for x, title in ((60, "Ocean"), (220, "Land"), (380, "Ice"))]
    return [*titles, *ticks]


def contents() -> list[Text]:
    rows = [(f"Section {n} of this report", str(3 + 4 * n)) for n in range(1, 8)]
    return table(rows, (50, 400))


def prose() -> list[Text]:
    lines = [
        "The rise was 12 cm in 2019,",
        "and 14 cm in the year 2020.",
        "It was 15 cm in 2021, 16 in 2022,",
        "and 17.5 cm, 2 more, in 2023.",
    ]
    return [Text(50, 560 - 12 * n, line) for n, line in enumerate(lines)]


@pytest.mark.parametrize("lines", [axes, contents, prose])
def test_axes_contents_and_prose_are_no_tables(lines) -> None:
    found = document(around(lines()))
    assert not any(" | " in block.text or "; " in block.text for block in found.blocks)


def test_tables_that_are_not_wanted_are_counted() -> None:
    rows = [("Gas", "Mt", "Share"), ("CO2", "320", "81%"), ("CH4", "41", "10%")]
    found = document(around(table(rows, (50, 200, 300))), tables=False)
    assert texts(found) == [BEFORE, AFTER]
    assert [(left.kind, left.count, left.pages) for left in found.omitted_parts] == [("tables", 1, (1,))]
