"""PDF pages that are turned, written in another direction or in another script are read in order."""

import pytest

from climassay.corpus import Document, ReadOptions
from climassay.corpus.readers.pdf import read_pdf
from pdf_building import HEBREW, Text, build_pdf, column

TEXT = (
    "Glaciers on land answer more slowly than sea ice. Their length today still reflects the climate of decades ago, "
    "so that they would go on shrinking for a long time even if temperatures stayed where they are now."
)
SECOND = (
    "The permafrost thaws from above. Where the ground holds much ice it then sinks unevenly, lakes form and drain "
    "again, and the carbon that was frozen in for thousands of years begins to decay in the warm months."
)


def document(data: bytes) -> Document:
    return read_pdf(data, "page.pdf", ReadOptions()).documents[0]


def raised(x: float, y: float, *parts: str) -> list[Text]:
    """Set a line whose parts that begin with ^ are raised and small."""
    line = []
    for part in parts:
        is_raised = part.startswith("^")
        size = 6.0 if is_raised else 10.0
        line.append(Text(x, y, part.removeprefix("^"), size, rise=4.0 * is_raised))
        x += 0.6 * size * len(part.removeprefix("^"))
    return line


@pytest.mark.parametrize("angle", [0, 90, 180, 270])
@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_turned_pages_are_read_with_columns_exponents_and_tables(angle: int, rotate: int) -> None:
    page = [
        *column(TEXT, 50, 560, 230),
        *column(SECOND, 310, 560, 230),
        *raised(
            50,
            380,
            "The ocean stored 4.2 x 10",
            "^22",
            " J, the budget was 450",
            "^12",
            " euros, and 2.7 W m",
            "^-2",
            ".",
        ),
        *(
            Text(x, 330 - 14 * row, text)
            for row, cells in enumerate([("Sector", "1990", "2021"), ("Energy", "148", "71"), ("Waste", "22", "9")])
            for x, text in zip((50, 200, 300), cells, strict=True)
        ),
    ]
    found = document(build_pdf([[line._replace(angle=angle) for line in page]], rotate=rotate))
    assert [block.text for block in found.blocks] == [
        TEXT,
        SECOND,
        "The ocean stored 4.2 x 10²² J, the budget was 450 euros, and 2.7 W m⁻².",
        "Sector: Energy; 1990: 148; 2021: 71",
        "Sector: Waste; 1990: 22; 2021: 9",
    ]


def test_a_label_in_another_direction_is_counted_and_a_text_is_read() -> None:
    label = Text(100, 100, "Change of the extent", 8, angle=90)
    found = document(build_pdf([[*column(TEXT, 50, 700, 480), label]]))
    assert [block.text for block in found.blocks] == [TEXT]
    assert [(left.kind, left.count, left.pages) for left in found.omitted_parts] == [
        ("lines written in another direction", 1, (1,))
    ]
    beside = [line._replace(angle=90) for line in column(f"{SECOND} {SECOND} {SECOND}", 50, 200, 600)]
    found = document(build_pdf([[*column(f"{TEXT} {TEXT} {TEXT} {TEXT}", 50, 700, 300), *beside]]))
    assert [block.text for block in found.blocks] == [f"{TEXT} {TEXT} {TEXT} {TEXT}", f"{SECOND} {SECOND} {SECOND}"]


def hebrew(text: str, y: float) -> list[Text]:
    """Set a line from right to left: the letters in the order of the page, figures in their own."""
    parts = []
    x = 540.0
    for word in text.split():
        is_figure = word[0].isdigit()
        shown = (
            word if is_figure else "".join(chr(ord("A") + HEBREW.index(c)) if c in HEBREW else c for c in word[::-1])
        )
        x -= 6.0 * len(word)
        parts.append(Text(x, y, shown, 10, "F1" if is_figure else "F4"))
        x -= 6.0
    return parts


def test_text_from_right_to_left_is_read_in_its_order_with_its_figures() -> None:
    lines = [
        "הטמפרטורה הממוצעת באזור עלתה ב 2.1 מעלות בין 1961 לבין 2020",
        "והעלייה הייתה מהירה יותר בחורף בכל התחנות שנבדקו",
        "פני הים עלו ב 24 סנטימטרים מאז 1993",
    ]
    words = [(line, 700 - 14 * n) for n, line in enumerate(lines)]
    found = document(build_pdf([[part for line, y in words for part in hebrew(line, y)]]))
    assert " ".join(block.text for block in found.blocks).split() == " ".join(lines).split()


@pytest.mark.parametrize("size", [18, 22])
def test_all_lines_of_slides_are_kept(size: float) -> None:
    slides = [
        [
            Text(40, 740, title, 1.4 * size, "F2"),
            *(Text(50, 640 - 3 * size * n, line, size) for n, line in enumerate(lines)),
        ]
        for title, lines in (
            ("Observed changes", ("\x95 Sea level: +0.20 m", "\x95 Arctic ice: -40%", "\x95 Unequivocal")),
            ("Mitigation", ("Methane: 34% cut", "Forests: 7.3 Gt", "1.5 C by 2040")),
            ("Finance", ("\x95 USD 632 billion", "\x95 3 to 6 times more", "\x95 Adaptation: 7%")),
            ("Losses", ("Crops: 12%", "Homes: 41", "Coasts: 3.5 m")),
            ("More than 3.3 billion people", ()),
        )
    ]
    encoded = [[text._replace(text=text.text.replace("\x95", "\u2022")) for text in slide] for slide in slides]
    found = document(build_pdf(encoded, title="Climate in five slides"))
    text = " ".join([*(block.text for block in found.blocks), *(h for block in found.blocks for h in block.headings)])
    for slide in encoded:
        for line in slide:
            assert line.text.removeprefix("\u2022 ") in text
    assert found.blocks[-1].page == 5
