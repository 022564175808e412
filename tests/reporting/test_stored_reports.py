"""Reports as data and back, and blocks for pages of an application."""

import json
import re
from xml.dom import minidom

import pytest

from climassay.errors import InputError
from climassay.evaluation import experiment_report
from climassay.factcheck import analyse, factcheck_report
from climassay.factcheck.scales import CLIMATE_FEEDBACK
from climassay.reporting import (
    AnswerCard,
    Axis,
    Case,
    Cases,
    Category,
    Cloud,
    Dot,
    DotPlot,
    Facts,
    HeatMap,
    LinePlot,
    Point,
    Prose,
    Report,
    ScatterPlot,
    Section,
    Series,
    StackedBar,
    StackedBars,
    Table,
)
from climassay.reporting.html import FIGURES, as_svg, render_block, report_data, report_from_data
from experiments import experiment
from factcheck_transcripts import full_transcript

SHARE = Axis("share", 0.0, 1.0, (0.0, 0.5, 1.0), percent=True)
FIGURE_BLOCKS = (
    DotPlot("Dots <b>", (Dot("a <b>", "g", 0.4, 0.3, 0.5, 0.25), Dot("b", "h", 0.6, 0.5, 0.7))),
    LinePlot("Lines", (Series("<b>", (Point(0, 0.2, 0.1, 0.3, "n"), Point(1, 0.5))),
                       Series("even", (Point(0, 0.5), Point(1, 0.5)), reference=True)), SHARE, SHARE),
    ScatterPlot("Cloud", (Cloud("yes <b>", ((0, 0), (1, 1))), Cloud("no", ())), SHARE, SHARE),
    HeatMap("Map", ("wrong <b>", "right"), ("wrong <b>", "right"), ((3, 1), (0, 2)), "true", "given"),
    StackedBars("Bars", (Category("low", 0.0), Category("none <b>"), Category("void", hatched=True)),
                (StackedBar("one <b>", (3, 1, 2)),)),
)  # fmt: skip
OTHER_BLOCKS = (
    Prose("Text <b>."),
    Facts((("a", "b"),)),
    AnswerCard("Q?", (("Yes.", (1,), False),), ((1, "Book", "Text."),)),
    Cases("Cases", (Case("One", (("given", "right"),), "Because.", "/there"),)),
    Table.of("T <b>", ["a", "b"], [("x", "1"), ("y", "2")], strong=[1], grouped=1, marks={(0, 1): frozenset(["best"])}),
)


def kind(block):
    return type(block).__name__


def test_every_block_comes_back_as_it_was():
    report = Report("T", "L", (Section("S", (*FIGURE_BLOCKS, *OTHER_BLOCKS)),), (("run", "r1"),))
    assert report_from_data(json.loads(json.dumps(report_data(report)))) == report


@pytest.mark.parametrize(
    "report",
    [
        experiment_report(experiment()),
        factcheck_report(analyse([full_transcript()], {"c1": "correct"}, CLIMATE_FEEDBACK), file="claims.csv"),
    ],
    ids=["experiment", "factcheck"],
)
def test_whole_reports_come_back_and_look_the_same(report):
    again = report_from_data(json.loads(json.dumps(report_data(report))))
    assert again == report
    assert again.to_html() == report.to_html()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("title"),
        lambda data: data.update(title=3),
        lambda data: data["sections"][0]["blocks"][0].update(block="Bomb"),
        lambda data: data["sections"][0]["blocks"][0].update(dots="many"),
        lambda data: data["sections"][0]["blocks"][0]["dots"][0].update(value="0.4"),
        lambda data: data["sections"][0]["blocks"][0].update(colour="red"),
        lambda data: data.update(sections=None),
    ],
    ids=["missing", "number", "kind", "text", "type", "unknown", "nothing"],
)
def test_damaged_reports_are_refused(damage):
    data = json.loads(json.dumps(report_data(Report("T", "L", (Section("S", FIGURE_BLOCKS[:1]),)))))
    damage(data)
    with pytest.raises(InputError, match="The stored report is damaged"):
        report_from_data(data)


@pytest.mark.parametrize("block", [*FIGURE_BLOCKS, *OTHER_BLOCKS], ids=kind)
def test_blocks_for_pages_need_no_inline_style_or_script(block):
    markup = str(render_block(block, "s1", 3))
    assert markup.strip()
    assert not re.search(r" style=|<script|<style| on\w+=", markup)
    assert "<b>" not in markup


@pytest.mark.parametrize("figure", FIGURE_BLOCKS, ids=kind)
def test_a_figure_is_a_drawing_of_its_own(figure):
    assert isinstance(figure, FIGURES)
    text = as_svg(figure)
    drawing = minidom.parseString(text.strip()).documentElement
    assert drawing.tagName == "svg"
    assert drawing.getElementsByTagName("title")[0].firstChild.data == figure.title
    assert "<b>" not in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    # Programs that draw papers know neither the page's colours nor how to mix them.
    assert "var(" not in text
    assert "color-mix" not in text
