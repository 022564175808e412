"""Line numbers of drafts are left out of PDF files by their place, and no other number is."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from climassay.corpus import Document, ReadOptions
from climassay.corpus.readers.pdf import read_pdf
from pdf_building import Text, build_pdf, column

PARAGRAPHS = (
    "Mean temperature in the region rose by 2.1 degrees between 1961 and 2020, and the rise was fastest in winter, at "
    "all of the stations that were homogenised (high confidence). The number of hot days is projected to grow from 12 "
    "to 41 per year by the end of the century, with the largest increase in the south of the region.",
    "Sea level at the national tide gauge rose by 2.4 mm per year between 1993 and 2022, while the land subsided by "
    "0.3 mm per year over the same period, as satellite measurements show (high confidence). The cost of coastal "
    "protection was 450 million euros in 2021, twice as much as ten years before that.",
)
SPM = Path("../shared/data/cases/documents/linenumbers_before.pdf")

Page = list[Text]


def numbered(
    pages: Sequence[Page],
    x: float = 30,
    step: int = 1,
    restart: bool = False,
    size: float = 10,
    shift: float = 0,
    after: bool = False,
    right_aligned: bool = True,
    first: int = 1,
) -> list[Page]:
    """Number the lines of the pages beside the text, as word processors do."""
    results = []
    count = first - 1
    for page in pages:
        count = 0 if restart else count
        result: Page = []
        for line in page:
            count += 1
            digits = str(count)
            left = x - (0.6 * size * len(digits) if right_aligned else 0)
            number = [Text(left, line.y + shift, digits, size)] if count % step == 0 else []
            result += [line, *number] if after else [*number, line]
        results.append(result)
    return results


def draft(n_pages: int = 2, repeated: int = 1) -> list[Page]:
    """Pages with both paragraphs each, some times."""
    return [
        [
            line
            for n in range(repeated)
            for text, top in zip(PARAGRAPHS, (700, 615), strict=True)
            for line in column(text, 60, top - 170 * n, 480, leading=14)
        ]
        for _ in range(n_pages)
    ]


def document(data: bytes) -> Document:
    result = read_pdf(data, "draft.pdf", ReadOptions())
    return result.documents[0]


def n_left_out(document: Document) -> int:
    return sum(left.count for left in document.omitted_parts if left.kind == "line numbers")


MANNERS: dict[str, Callable[[], list[Page]]] = {
    "left": lambda: numbered(draft(), 45),
    "left, restarting on each page": lambda: numbered(draft(), 45, restart=True),
    "left, every fifth": lambda: numbered(draft(repeated=3), 45, step=5),
    "left, small and lower": lambda: numbered(draft(), 45, size=6, shift=-1),
    "left, close to the text": lambda: numbered(draft(), 54),
    "left, left-aligned": lambda: numbered(draft(), 20, right_aligned=False),
    "left, after the text in the file": lambda: numbered(draft(), 45, after=True),
    "right": lambda: numbered(draft(), 560, right_aligned=False, after=True),
    "right, close to the text": lambda: numbered(draft(), 548, right_aligned=False, after=True),
    "right, before the text in the file": lambda: numbered(draft(), 575),
    "all numbers first": lambda: [
        sorted(page, key=lambda line: not line.text.isdigit()) for page in numbered(draft(), 45)
    ],
    "both sides": lambda: [
        [*left, *(line for line in right if line.text.isdigit())]
        for left, right in zip(numbered(draft(), 45), numbered(draft(), 575), strict=True)
    ],
}


@pytest.mark.parametrize("manner", MANNERS)
def test_line_numbers_go_and_the_numbers_of_the_text_stay(manner: str) -> None:
    pages = MANNERS[manner]()
    found = document(build_pdf(pages))
    n_repeated = sum(line.text.startswith("Mean") for page in pages for line in page)
    assert [block.text for block in found.blocks] == [*PARAGRAPHS] * n_repeated
    assert n_left_out(found) == sum(line.text.isdigit() for page in pages for line in page)
    assert [left.pages for left in found.omitted_parts if left.kind == "line numbers"] == [
        tuple(range(1, len(pages) + 1))
    ]


@pytest.mark.parametrize("manner", ["left of each column", "between and right", "outside", "row by row"])
def test_line_numbers_of_two_columns(manner: str) -> None:
    left = [line for text, top in zip(PARAGRAPHS, (700, 500), strict=True) for line in column(text, 60, top, 220)]
    right = [line._replace(x=330) for line in left]
    places = {
        "left of each column": (50, 322),
        "between and right": (300, 570),
        "outside": (50, 575),
        "row by row": (50, 322),
    }
    page = [
        *numbered([left], places[manner][0])[0],
        *numbered([right], places[manner][1], first=len(left) + 1)[0],
    ]
    if manner == "row by row":
        page.sort(key=lambda line: (-line.y, line.x))
    found = document(build_pdf([page]))
    assert [block.text for block in found.blocks] == [*PARAGRAPHS, *PARAGRAPHS]
    assert n_left_out(found) == 2 * len(left)


def test_the_numbered_lines_of_a_short_last_page_and_of_blank_lines_go() -> None:
    pages = draft(2)
    last = [Text(60, 700, "It ends with one more line of the text."), Text(60, 560, "")]
    found = document(build_pdf(numbered([*pages, last], 45)))
    assert found.blocks[-1].text == "It ends with one more line of the text."
    assert n_left_out(found) == sum(map(len, pages)) + 2


def test_a_table_in_a_draft_loses_its_line_numbers_only() -> None:
    rows = [("Sector", "Mt", "Share"), ("Energy", "148", "12"), ("Transport", "92", "41"), ("Waste", "22", "7")]
    cells = [
        Text(x, 440 - 14 * n, cell) for n, row in enumerate(rows) for x, cell in zip((60, 200, 300), row, strict=True)
    ]
    pages = draft(1)
    page = numbered(pages, 45)[0]
    count = len(pages[0])
    for n in range(len(rows)):
        page += [Text(45 - 12, 440 - 14 * n, str(count + 1 + n)), *cells[3 * n : 3 * n + 3]]
    found = document(build_pdf([page, numbered(draft(1), 45, first=count + 5)[0]]))
    assert [block.text for block in found.blocks if block.text not in PARAGRAPHS] == [
        "Sector: Energy; Mt: 148; Share: 12",
        "Sector: Transport; Mt: 92; Share: 41",
        "Sector: Waste; Mt: 22; Share: 7",
    ]
    assert n_left_out(found) == 2 * count + len(rows)


def test_headings_of_a_draft_are_headings() -> None:
    page = [Text(60, 730, "2.1 Observed changes in the region", 12, "F2"), *draft(1)[0]]
    found = document(build_pdf(numbered([page, page], 45), title="The Region"))
    assert {block.headings for block in found.blocks} == {("2.1 Observed changes in the region",)}


def test_years_in_the_first_column_of_a_table_stay() -> None:
    rows = [
        Text(x, 680 - 14 * n, text)
        for n in range(31)
        for x, text in ((60, str(1990 + n)), (160, f"{320 + n * n % 7}.{n % 10}"), (260, f"{17 + n * n % 5}"))
    ]
    header = [Text(60, 694, "Year"), Text(160, 694, "CO2"), Text(260, 694, "CH4")]
    found = document(build_pdf([[*header, *rows], column(PARAGRAPHS[0], 60, 700, 480)]))
    assert n_left_out(found) == 0
    assert found.blocks[0].text == "Year: 1990; CO2: 320.0; CH4: 17"
    assert [block.text.split(";")[0] for block in found.blocks[:31]] == [f"Year: {1990 + n}" for n in range(31)]


@pytest.mark.parametrize("style", ["{} ", "{}. ", "({}) "])
def test_numbers_of_a_list_stay(style: str) -> None:
    items = [
        "reduce the emissions of transport by 12 per cent until the year 2030",
        "protect the coast where sea level has risen by more than 20 cm",
        "measure the carbon of soils at all of the 41 stations every year",
        "report the losses of crops by hail to the agency in each autumn",
        "plant trees on at least 450 hectares of the land that is not used",
        "insulate the houses that were built in the years before 1970",
    ]
    lines = [Text(60, 560 - 14 * n, style.format(n + 1) + item) for n, item in enumerate(items)]
    page = [*column(PARAGRAPHS[0], 60, 700, 480), *lines, *column(PARAGRAPHS[1], 60, 440, 480)]
    found = document(build_pdf([page]))
    assert n_left_out(found) == 0
    text = " ".join(block.text for block in found.blocks)
    assert [style.format(n + 1) + item in text for n, item in enumerate(items)] == [True] * len(items)


def test_numbers_of_equations_stay() -> None:
    page = column(PARAGRAPHS[0], 60, 700, 480)
    for n in range(6):
        page += [Text(120, 600 - 40 * n, "a = b + c"), Text(540, 600 - 40 * n, f"({n + 1})")]
        page += [Text(60, 580 - 40 * n, "which holds for all of the values that were measured in the region,")]
    assert n_left_out(document(build_pdf([page]))) == 0


@pytest.mark.skipif(not SPM.exists(), reason="the shared files are not here")
def test_the_draft_of_the_field_cases() -> None:
    found = document(SPM.read_bytes())
    text = " ".join(block.text for block in found.blocks)
    assert "from 12 to 41 per year" in text
    assert text.count("(high confidence)") == 2
    assert n_left_out(found) == 18
