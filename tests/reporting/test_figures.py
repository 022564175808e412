import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.reporting import Axis, Cloud, LinePlot, Point, Report, ScatterPlot, Section, Series

SHARE = Axis("share", 0, 1, (0, 0.5, 1), percent=True)


def page(*figures):
    return Report("T", "L", (Section("S", figures),)).to_html()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_an_axis_covers_its_values_with_a_few_round_ticks(values):
    axis = Axis.over("x", values)
    invisible = 1e-5 * (axis.high - axis.low)
    assert axis.low <= min(values) + invisible
    assert axis.high >= max(values) - invisible
    assert 2 <= len(axis.ticks) <= 8
    assert list(axis.ticks) == sorted(set(axis.ticks))


@pytest.mark.parametrize(
    ("values", "ticks"),
    [([0, 1], (0, 0.2, 0.4, 0.6, 0.8, 1)), ([0.61, 0.94], (0.6, 0.7, 0.8, 0.9, 1.0)), ([-3, 12], (-5, 0, 5, 10, 15))],
    ids=["unit", "part", "signs"],
)
def test_ticks_are_round(values, ticks):
    assert Axis.over("x", values).ticks == pytest.approx(ticks)


def test_a_logarithmic_axis_sets_equal_ratios_equally_apart():
    axis = Axis.at("items", [10, 20, 40])
    first, second, third = (axis.share(tick) for tick in axis.ticks)
    assert second - first == pytest.approx(third - second)
    assert 0 < first < third < 1
    assert Axis.at("items", [10]).share(10) == pytest.approx(0.5)


def test_values_are_written_as_shares_or_numbers():
    assert SHARE.words(0.5) == "50%"
    assert Axis.over("x", [-1, 1]).words(-0.5) == "\u22120.5"


class Drawing(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, tag, **wanted):
        return [a for t, a in self.found if t == tag and all(v in (a.get(k) or "") for k, v in wanted.items())]


def line_plot():
    series = (
        Series("<a>", (Point(0, 0.25, 0, 0.5), Point(1, 0.75, note="9 pairs"))),
        Series("b", (Point(0.5, 1),)),
        Series("even", (Point(0, 0.5), Point(1, 0.5)), reference=True),
    )
    return LinePlot("Curve", series, SHARE, SHARE, square=True)


def test_a_line_plot_draws_points_lines_and_intervals_where_they_belong():
    drawing = Drawing(page(line_plot()))
    plotted = drawing.of("circle", cx="", **{"class": "dot"})
    # A mark each in the legend for the two series, then three points.
    marks = [mark for mark in plotted if mark["r"] == "4.5"]
    assert len(marks) == 3
    low, high = (float(mark["cy"]) for mark in marks[:2])
    bottom, top = 400 - 44, 10
    assert (low, high) == pytest.approx((bottom - 0.25 * (bottom - top), bottom - 0.75 * (bottom - top)), abs=0.1)
    (whisker,) = drawing.of("line", **{"class": "whisker"})
    assert float(whisker["y1"]) == pytest.approx(bottom)
    lines = drawing.of("polyline")
    assert [line["class"] for line in lines] == ["line g0", "reference"]
    assert all(len(line["points"].split()) == 2 for line in lines)


def test_a_scatter_plot_tells_kinds_apart_by_shape_too():
    plot = ScatterPlot(
        "Cloud", (Cloud("yes", ((0, 0), (1, 1))), Cloud("no", ((0.5, 0.5),)), Cloud("even", ())), SHARE, SHARE
    )
    text = page(plot)
    drawing = Drawing(text)
    assert len(drawing.of("circle", **{"class": "mark g0"})) == 3
    assert len(drawing.of("path", **{"class": "mark g1"})) == 2
    assert "yes (2)" in text
    assert "no: 1 points around 0.5, 0.5" in text


def test_figures_can_be_read_without_seeing_them():
    text = page(line_plot(), line_plot())
    drawing = Drawing(text)
    described = [svg["aria-describedby"] for svg in drawing.of("svg", role="img")]
    assert len(set(described)) == 2
    assert {desc["id"] for desc in drawing.of("desc")} == set(described)
    assert "&lt;a&gt;: 0% 25%, 100% 75%" in text
    assert "<a>" not in text
    assert not re.search(r"url\(|https?://", text)
