"""Colours keep their meaning, and five levels can be told apart, by readers who see no red and green too."""

import itertools
import re
from importlib.resources import files

import numpy as np
import pytest

from climassay.reporting import Axis, Cloud, Dot, DotPlot, Label, Report, ScatterPlot, Section
from climassay.reporting.html import as_svg

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
    labels = (*tuple(Label(0.5, 0.5, f"A long name, {n}") for n in range(5)), Label(1.0, 0.0, "At the corner"))
    plot = ScatterPlot("Map", (Cloud("a", ((0.5, 0.5),), 0.5),), axis, axis, small=True, labels=labels)
    placed = plot.placed_labels(484)
    assert [one.text for one in placed] == [*(f"A long name, {n}" for n in range(3)), "At the corner"]
    ys = sorted(one.y for one in placed[:3])
    assert all(second - first >= 14 for first, second in itertools.pairwise(ys))
    assert placed[-1].x < 484
    assert len(plot.placed_labels(60)) == 0
    assert as_svg(plot).count('class="place"') == 4
