import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.reporting import Case, Cases, Category, HeatMap, Report, Section, StackedBar, StackedBars
from html_pages import Elements

MAP = HeatMap(
    "Two classes <b>",
    ("wrong", "right"),
    ("wrong", "right", "no <i>view</i>"),
    ((6, 2, 0), (1, 0, 0)),
    "published",
    "given",
)
BARS = StackedBars(
    "Verdicts",
    (
        Category("wrong", 0.0),
        Category("so so", 0.5),
        Category("right", 1.0),
        Category("never", 1.0),
        Category("none", hatched=True),
    ),
    (StackedBar("IPCC <b>", (30, 0, 8, 0, 2)), StackedBar("WMO", (0, 20, 0, 0, 20)), StackedBar("nobody", (0,) * 5)),
)


def page(*blocks):
    return Report("T", "L", (Section("S", blocks),)).to_html()


def test_a_heat_map_has_every_number_in_its_place():
    elements = Elements(page(MAP))
    assert elements.texts("td", "cell") == ["6", "2", "0", "1", "0", "0"]
    cells = elements.of("td", "cell")
    assert [a["class"].split()[1] for a in cells][:3] == ["share-75", "share-25", "share-0"]
    assert [number for number, a in enumerate(cells) if "same" in a["class"].split()] == [0, 4]
    rows = [text for tag, a, text in elements.found if tag == "th" and a.get("scope") == "row"]
    assert rows == ["wrong", "right"]
    assert "6 of 9 are the same in both" in page(MAP)


def test_stacked_bars_are_as_long_as_their_shares():
    text = page(BARS)
    elements = Elements(text)
    parts = elements.of("g", "part")
    widths = [float(a["width"].rstrip("%")) for a in elements.of("rect")]
    assert widths == pytest.approx([75, 20, 5, 50, 50])
    starts = [float(a["x"].rstrip("%")) for a in elements.of("rect")]
    assert starts == pytest.approx([0, 75, 95, 0, 50])
    # A part of 5% is too narrow for its number.
    assert elements.texts("text") == ["30", "8", "20", "20"]
    assert "<title>none: 2 (5%)</title>" in text
    hatched = [a["x"] for a in elements.of("foreignobject")]
    assert hatched == ["95.0%", "50.0%"]
    assert ["outside" in a["class"] for a in parts] == [False, False, True, False, True]
    assert [a["class"].split()[1] for a in parts[:2]] == ["lower", "upper"]


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=6).filter(any))
def test_parts_of_a_bar_fill_it_in_order_and_none_vanishes(counts):
    categories = tuple(Category(str(number)) for number in range(len(counts)))
    bar = StackedBar("all", tuple(counts))
    parts = StackedBars("T", categories, (bar,)).parts(bar)
    assert [int(part.category.name) for part in parts] == [number for number, count in enumerate(counts) if count]
    assert sum(part.width for part in parts) == pytest.approx(100)
    assert all(part.width > 0.39 for part in parts)
    ends = [part.start + part.width for part in parts]
    assert [part.start for part in parts] == pytest.approx([0, *ends[:-1]])


def test_stacked_bars_can_be_read_without_seeing_them():
    text = page(BARS)
    described = [a["aria-label"] for a in Elements(text).of("svg", "parts")]
    assert described == [
        "IPCC <b>: wrong 30 (75%), right 8 (20%), none 2 (5%)",
        "WMO: so so 20 (50%), none 20 (50%)",
        "nobody: no cases",
    ]
    assert len(Elements(text).of("span", "swatch")) == 4


def test_cases_are_linked_from_their_list():
    cases = Cases("Wrong", (Case("One", (("given", "right"),), "Because.", "one.html"), Case("Two", ())))
    text = page(cases, cases)
    elements = Elements(text)
    elements.check()
    assert elements.links.count("one.html") == 2
    assert text.count("Because.") == 2
