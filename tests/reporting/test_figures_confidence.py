"""Dots on any axis, rows that several dots share, and thousands of specks."""

from climassay.reporting import Axis, Cloud, Dot, DotPlot, Report, ScatterPlot, Section
from climassay.reporting.html import as_svg

SCALE = Axis("score", -1.0, 1.0, (-1.0, 0.0, 1.0))
DOTS = (
    Dot("sea", "AR6", -0.5, -0.75, 0.0),
    Dot("sea", "AR5", 0.5, 0.25, 0.75),
    Dot("ice", "AR6", 0.0, -0.25, 0.25),
)
CLOUDS = (
    Cloud("low", tuple((x / 10, 0.0) for x in range(20)), 0.0),
    Cloud("high", tuple((x / 10, 1.0) for x in range(3)), 1.0),
)
MAP = ScatterPlot("Map", CLOUDS, Axis("x", 0.0, 2.0, ()), Axis("y", 0.0, 1.0, ()), small=True, wide=True)


def page(*figures):
    return Report("R", "lead", (Section("S", figures),))


def test_dots_lie_on_the_axis_that_is_given():
    html = page(DotPlot("Scores", DOTS, scale=SCALE)).to_html()
    assert 'cx="25.0%"' in html
    assert "−0.50" in html
    assert "%<" not in html.split("<svg", 1)[1]


def test_dots_of_one_label_share_a_row_with_a_legend():
    apart, together = (
        DotPlot("S", DOTS, scale=SCALE),
        DotPlot("S", DOTS, scale=SCALE, together=True, order=("AR5", "AR6")),
    )
    assert [len(dots) for _, dots in together.rows] == [2, 1]
    assert together.groups == ("AR5", "AR6")
    assert apart.groups == ("AR6", "AR5")
    assert together.shift(DOTS[1]) < 0 < together.shift(DOTS[0])
    assert 'class="legend"' in page(together).to_html()
    assert ">AR5<" in as_svg(together)


def test_every_speck_is_drawn_once_and_no_cloud_covers_the_other():
    paths = MAP.specks(100)
    assert sum(path.count("h0") for _, path in paths) == 23
    names = [cloud.name for cloud, _ in paths]
    assert names[:4] == ["low", "high", "low", "high"]
    html = page(MAP).to_html()
    assert html.count("h0") == 23 + 2
    assert "style=" not in html.split("</style>")[1]
    assert 'stroke="#' in as_svg(MAP)


def test_a_point_costs_few_bytes():
    many = ScatterPlot("Map", (Cloud("a", CLOUDS[0].points * 500, 0.5),), MAP.x, MAP.y, small=True)
    assert len(page(many).to_html()) - len(page(MAP).to_html()) < 10_000 * 16
