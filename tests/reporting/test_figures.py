"""Figures: colours that keep their meaning, and marked words."""

import itertools
import re
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.reporting import (
    Axis,
    Category,
    Cloud,
    Dot,
    DotPlot,
    LinePlot,
    Point,
    PointLabel,
    Report,
    ScatterPlot,
    Section,
    Series,
    StackedBar,
    StackedBars,
)
from climassay.reporting.html import as_svg
from climassay.reporting.marking import highlight_words
from html_pages import Elements

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


def test_a_logarithmic_axis_sets_equal_ratios_equally_apart():
    axis = Axis.logarithmic_at("items", [10, 20, 40])
    first, second, third = (axis.share(tick) for tick in axis.ticks)
    assert second - first == pytest.approx(third - second)
    assert 0 < first < third < 1
    assert Axis.logarithmic_at("items", [10]).share(10) == pytest.approx(0.5)


def line_plot():
    series = (
        Series("<a>", (Point(0, 0.25, 0, 0.5), Point(1, 0.75, note="9 pairs"))),
        Series("b", (Point(0.5, 1),)),
        Series("even", (Point(0, 0.5), Point(1, 0.5)), reference=True),
    )
    return LinePlot("Curve", series, SHARE, SHARE, square=True)


def test_a_line_plot_draws_points_lines_and_intervals_where_they_belong():
    drawing = Elements(page(line_plot()))
    plotted = drawing.of("circle", cx="", **{"class": "dot"})
    # A mark each in the legend for the two series, then three points.
    marks = [(mark["cx"], mark["cy"]) for mark in plotted if mark["r"] == "4.5"]
    assert marks == [("0.0%", "75.0%"), ("100.0%", "25.0%"), ("50.0%", "0.0%")]
    (whisker,) = drawing.of("line", **{"class": "whisker"})
    assert (whisker["x1"], whisker["y1"], whisker["y2"]) == ("0.0%", "100.0%", "50.0%")
    drawn = [line for line in drawing.of("line") if line["x1"].endswith("%") and line.get("class") != "grid"]
    assert [line["class"] for line in drawn] == ["line g0", "whisker g0", "reference d0"]


def test_figures_can_be_read_without_seeing_them():
    text = page(line_plot(), line_plot())
    drawing = Elements(text)
    described = [svg["aria-describedby"] for svg in drawing.of("svg", role="img")]
    assert len(set(described)) == 2
    assert {desc["id"] for desc in drawing.of("desc")} == set(described)
    assert [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", text)[:4]] == [
        "&lt;a&gt;",
        "0.0%",
        "25.0%",
        "[0.0, 50.0]",
    ]
    assert "&lt;a&gt;, 0.0%: 25.0% [0.0, 50.0]</title>" in text
    assert "<a>" not in text
    assert not re.search(r"url\(|https?://", text)


def test_no_size_of_a_figure_depends_on_the_width_of_its_page():
    dots = DotPlot("Dots", (Dot("a", "a", 0.5, 0.4, 0.6),))
    bars = StackedBars("Bars", (Category("yes"), Category("no")), (StackedBar("a", (1, 2)),))
    small = ScatterPlot("Map", (Cloud("yes", ((0, 0),), 0.5),), SHARE, SHARE, small=True)
    for figure in (line_plot(), dots, bars, small):
        for svg in Elements(page(figure)).of("svg"):
            # A view box would shrink words with the page; only legends, and specks that keep their size, have one.
            assert svg.get("viewbox") is None or svg.get("aria-hidden") or svg["preserveaspectratio"] == "none"


def test_an_axis_without_zero_says_so_and_is_broken():
    off, under, whole = (Axis.over("precision", values) for values in ([0.6, 0.8], [-0.8, -0.6], [-0.1, 0.8]))
    assert "starts at 0.6" in off.caption
    assert "ends at \u22120.6" in under.caption
    assert whole.caption == "precision"
    points = (Point(0.61, 0.62), Point(0.75, 0.75))
    for plot, breaks in (
        (LinePlot("P", (Series("a", points),), off, off), 2),
        (LinePlot("P", (Series("a", points),), whole, off), 1),
        (LinePlot("P", (Series("a", points),), whole, whole), 0),
        (DotPlot("P", (Dot("a", "a", 0.7, 0.6, 0.8),), scale=off), 1),
        (DotPlot("P", (Dot("a", "a", -0.7, -0.8, -0.6),), scale=under), 1),
    ):
        for text in (page(plot), as_svg(plot)):
            assert len(Elements(text).of("path", **{"class": "gap"})) == breaks
            assert text.count("not at 0)") >= breaks
    assert "logarithmic" in Axis.logarithmic_at("items", [10, 20]).caption


def test_all_values_of_dots_and_bars_can_be_read():
    dots = DotPlot("D", (Dot("a", "x", 0.5, 0.4, 0.6, 0.25), Dot("a", "y", 0.7, 0.6, 0.8)), has_shared_rows=True)
    words = " ".join(re.sub(r"<title>.*?</title>|<[^>]*>", " ", page(dots)).split())
    assert "a x: 50.0% [40.0, 60.0] ; dashed: 25.0% y: 70.0% [60.0, 80.0]" in words
    bars = StackedBars("B", (Category("yes"), Category("no")), (StackedBar("few", (1, 30)), StackedBar("none", (0, 0))))
    assert bars.table.rows == (("few", "31", "1 (3%)", "30 (97%)"), ("none", "0", "0 (0%)", "0 (0%)"))
    assert ">1 (3%)</td>" in page(bars)


def test_percentages_have_the_decimals_that_tell_ticks_apart():
    for values, words in (
        ([0.1, 0.9], "20%"),
        ([0.788, 0.804], "79.5%"),
        ([0.7981, 0.7989], "79.82%"),
    ):
        axis = Axis.over("precision", values, percent=True)
        shown = [axis.format_value(tick) for tick in axis.ticks]
        assert len(set(shown)) == len(shown)
        assert words in shown


SCORE = Axis("score", -1.0, 1.0, (-1.0, 0.0, 1.0))
SCORED = (
    Dot("sea", "AR6", -0.5, -0.75, 0.0),
    Dot("sea", "AR5", 0.5, 0.25, 0.75),
    Dot("ice", "AR6", 0.0, -0.25, 0.25),
)
TWO_CLOUDS = (
    Cloud("low", tuple((x / 10, 0.0) for x in range(20)), 0.0),
    Cloud("high", tuple((x / 10, 1.0) for x in range(3)), 1.0),
)
SPECKS = ScatterPlot("Map", TWO_CLOUDS, Axis("x", 0.0, 2.0, ()), Axis("y", 0.0, 1.0, ()), small=True, wide=True)


def report_of(*figures):
    return Report("R", "lead", (Section("S", figures),))


def test_dots_lie_on_the_axis_that_is_given():
    html = report_of(DotPlot("Scores", SCORED, scale=SCORE)).to_html()
    assert 'cx="25.0%"' in html
    assert "−0.50" in html
    assert "%<" not in html.split("<svg", 1)[1]


def test_dots_of_one_label_share_a_row_with_a_legend():
    apart, together = (
        DotPlot("S", SCORED, scale=SCORE),
        DotPlot("S", SCORED, scale=SCORE, has_shared_rows=True, order=("AR5", "AR6")),
    )
    assert [len(dots) for _, dots in together.rows] == [2, 1]
    assert together.groups == ("AR5", "AR6")
    assert apart.groups == ("AR6", "AR5")
    assert together.row_offset(SCORED[1]) < 0 < together.row_offset(SCORED[0])
    assert 'class="legend"' in report_of(together).to_html()
    assert ">AR5<" in as_svg(together)


def test_every_speck_is_drawn_once_and_no_cloud_covers_the_other():
    paths = SPECKS.point_paths(100)
    assert sum(path.count("h0") for _, path in paths) == 23
    names = [cloud.name for cloud, _ in paths]
    assert names[:4] == ["low", "high", "low", "high"]
    html = report_of(SPECKS).to_html()
    assert html.count("h0") == 23 + 2
    assert "style=" not in html.split("</style>")[1]
    assert 'stroke="#' in as_svg(SPECKS)


def test_a_point_costs_few_bytes():
    many = ScatterPlot("Map", (Cloud("a", TWO_CLOUDS[0].points * 500, 0.5),), SPECKS.x, SPECKS.y, small=True)
    assert len(report_of(many).to_html()) - len(report_of(SPECKS).to_html()) < 10_000 * 16


SIGHT = {
    "all colours": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
}
"""Machado, Oliveira and Fernandes 2009, severity 1, on linear light."""


def levels(theme):
    """The five colours from --least over --mid to --most of a theme, as linear light."""
    css = (files("climassay.reporting") / "templates" / "colours.css.j2").read_text()
    light, dark = css.split("prefers-color-scheme: dark")
    found = re.findall(r"--(least|mid|most): #(\w{6})", light if theme == "light" else dark)
    least, mid, most = (np.array([int(colour[n : n + 2], 16) for n in (0, 2, 4)]) for _, colour in found)
    mixed = np.array([least, (least + mid) / 2, mid, (mid + most) / 2, most]) / 255
    return np.where(mixed <= 0.04045, mixed / 12.92, ((mixed + 0.055) / 1.055) ** 2.4)


def lab(light):
    """CIELAB of linear sRGB, shape [colours, 3]."""
    to_xyz = np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]])
    xyz = np.clip(light, 0, 1) @ to_xyz
    part = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.089], 0.008856))
    return np.stack([116 * part[:, 1] - 16, 500 * (part[:, 0] - part[:, 1]), 200 * (part[:, 1] - part[:, 2])], axis=1)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_any_two_levels_differ(theme, sight):
    colours = lab(levels(theme) @ np.array(SIGHT[sight]).T)
    apart = np.linalg.norm(colours[:, None] - colours[None], axis=2)[np.triu_indices(5, 1)]
    # A difference of 2.3 is just noticed; small dots need several times as much.
    assert apart.min() > 12


@pytest.mark.parametrize(
    ("groups", "tones"), [(("clear", "not"), {"g0", "g1"}), (("not",), {"g1"}), (("clear",), {"g0"})]
)
def test_a_group_keeps_its_colour_where_others_are_empty(groups, tones):
    dots = tuple(Dot(f"Topic {group}", group, 0.1, 0.0, 0.2) for group in groups)
    plot = DotPlot("Differences", dots, scale=Axis.over("score", [0, 0.2]), order=("clear", "not"))
    page = Report("R", "lead", (Section("S", (plot,)),)).to_html()
    assert set(re.findall(r'class="dot (g\d)"', page)) == tones
    # The legend names the groups that are there, in their colours, and no other.
    assert re.findall(r"</svg>(\w+)</li>", page) == list(groups)
    assert set(re.findall(r'class="dot (g\d)"', as_svg(plot))) == tones


def test_labels_do_not_cover_each_other_and_stay_within_the_map():
    axis = Axis("", 0.0, 1.0, ())
    labels = (
        *tuple(PointLabel(0.5, 0.5, f"A long name, {n}") for n in range(5)),
        PointLabel(1.0, 0.0, "At the corner"),
    )
    plot = ScatterPlot("Map", (Cloud("a", ((0.5, 0.5),), 0.5),), axis, axis, small=True, labels=labels)
    placed = plot.placed_labels(484)
    assert [one.text for one in placed] == [*(f"A long name, {n}" for n in range(3)), "At the corner"]
    ys = sorted(one.y for one in placed[:3])
    assert all(second - first >= 14 for first, second in itertools.pairwise(ys))
    assert placed[-1].x < 484
    assert len(plot.placed_labels(60)) == 0
    assert as_svg(plot).count('class="place"') == 4


def shown(text: str, *words: str) -> str:
    """The text with brackets around what is marked."""
    return "".join(f"[{piece}]" if is_marked else piece for piece, is_marked in highlight_words(text, words))


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Glaciers melt; the GLACIER melted.", ("glacier",), "[Glaciers] melt; the [GLACIER] melted."),
        ("The warmed ocean keeps warming.", ("warm",), "The [warmed] ocean keeps [warming]."),
        ("Cloud feedback is positive.", ("feedbacks of clouds",), "[Cloud feedback] is positive."),
        ("Ice-albedo feedback", ("albedo", "ice"), "[Ice-albedo] feedback"),
        ("La Niña and El Nino", ("nino", "niña"), "La [Niña] and El [Nino]"),
        ("It is 1.5 °C, not 15 or 1.2.", ("1.5 °C",), "It is [1.5] °[C], not 15 or 1.2."),
        ("The sea and the ice of the sea.", ("the of and",), "The sea and the ice of the sea."),
        ("CO2 rises.", ("co2",), "[CO2] rises."),
        ("catastrophe", ("cat",), "catastrophe"),
        ("<b>ocean</b>", ("ocean",), "<b>[ocean]</b>"),
    ],
    ids=["plural", "forms", "phrase", "hyphen", "accents", "numbers", "stop-words", "formula", "whole-word", "markup"],
)
def test_words_are_found_in_all_their_forms(text: str, words: tuple[str, ...], expected: str) -> None:
    assert shown(text, *words) == expected


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=4))
def test_the_pieces_are_the_text_in_turns(text: str, words: list[str]) -> None:
    pieces = highlight_words(text, words)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece for piece, _ in pieces)
    assert all(left[1] != right[1] for left, right in pairwise(pieces))
