from dataclasses import replace

import numpy as np
import pytest

from climassay.judging.candidates import ProbeSettings
from climassay.judging.causal import Ablation, Control
from climassay.judging.ranking import rank_items
from climassay.judging.report import (
    ablation_table,
    evidence_table,
    ranking_report,
    ranking_table,
    shortened,
    training_report,
)
from climassay.judging.report_plots import picture_blocks, reliability_plot
from climassay.judging.scores import Figure
from climassay.judging.training import Picture, train_probe
from climassay.learning.evaluation import calibration
from climassay.reporting import ScatterPlot
from planted_model import harvester, items


@pytest.fixture(scope="module")
def trained():
    return train_probe(items(), harvester(), settings=ProbeSettings())


class ByLabel:
    name = "by label"

    def compare(self, items, pairs, *, on_progress=None):
        from climassay.judging.preferences import Judgements

        values = np.array([item.label for item in items])
        return Judgements(values[pairs[:, 0]] - values[pairs[:, 1]], np.zeros(len(pairs), dtype=bool))


def test_a_training_report_has_the_evidence_in_figures(trained):
    report = training_report(trained, "items.csv")
    assert ("Number format", trained.probe.provenance.dtype) in report.facts
    page = report.to_html()
    for text in ("Reliability on held-out pairs", "Choice of the regularisation", "Components 1 and 3", "items.csv"):
        assert text in page
    assert page.count("<figure") == 4


def test_the_evidence_table_sets_the_probe_beside_length(trained):
    rows = evidence_table(trained).rows
    assert [row[0] for row in rows] == ["probe", "longer text", "difference"]
    gain = float(rows[0][2]) - float(rows[1][2])
    assert float(rows[2][2]) == pytest.approx(gain, abs=0.11)


def test_a_ranking_shows_places_and_shortened_texts():
    ranking = rank_items(items(groups=2), ByLabel())
    table = ranking_table(ranking, quality="depth", words=2)
    assert [column.label for column in table.columns][:4] == ["group", "place", "item", "text"]
    assert [row[1] for row in table.rows] == ["1", "2", "3", "4"] * 2
    assert all(len(row[3].split()) <= 3 for row in table.rows)
    page = ranking_report(ranking, quality="depth", judge="by label", file="x.csv").to_html()
    assert "x.csv by depth" in page
    one = ranking_table(rank_items(items(groups=1), ByLabel()), quality="depth")
    assert one.columns[0].label == "place"


def test_the_picture_has_a_cloud_for_each_outcome_and_says_what_was_left_out():
    rng = np.random.default_rng(0)
    picture = Picture(rng.normal(size=(2000, 3)), rng.integers(-1, 2, 2000), (0.5, 0.2, 0.1))
    _, first, second = picture_blocks(picture, "depth")
    assert isinstance(first, ScatterPlot)
    assert [cloud.name for cloud in first.clouds] == ["first has more depth", "second has more depth", "equal labels"]
    assert sum(len(cloud.points) for cloud in first.clouds) == 1500
    assert first.note == "1500 of 2000 pairs, drawn at random."
    assert "50% of the variance" in first.x.label
    assert "component 3 (10%" in second.y.label


def test_two_dimensions_make_one_picture():
    picture = Picture(np.eye(2), np.array([1, -1]), (0.5, 0.5))
    assert len(picture_blocks(picture, "depth")) == 2


def test_the_reliability_plot_has_the_diagonal_and_intervals_only_for_one_curve():
    known = calibration([0.1, 0.1, 0.9, 0.9], [0, 0, 1, 1])
    one = reliability_plot("R", [("a", known)])
    assert one.series[-1].reference
    assert all(point.low is not None for point in one.series[0].points)
    two = reliability_plot("R", [("a", known), ("b", known)])
    assert all(point.low is None for series in two.series for point in series.points)
    assert "Brier score 0.010 (constant 0.250)" in two.note


def test_the_ablation_table_names_what_is_missing():
    nothing, figure = Figure(None, None, None, 0), Figure(0.5, 0.25, 0.75, 4)
    found = Ablation(
        "onward", (30,), 4, 0, figure, nothing, figure, nothing, nothing, (Control(0, 0.1, None, 0.0),), 0.5
    )
    rows = ablation_table(found).rows
    assert rows[0] == ("probe's direction", "0.500 (0.250 to 0.750)", "- (-)", "50.0 (25.0-75.0)")
    assert rows[1] == ("random 1", "0.100", "-", "0.0")
    assert "accuracy" not in ablation_table(found).note
    assert ablation_table(found).note.startswith("Taken out of state 30. ")
    assert "states 2 to 4." in ablation_table(replace(found, states=(2, 3, 4))).note


def test_a_short_text_stays_whole():
    assert shortened("one two", 2) == "one two"
    assert shortened("one two three", 2) == "one two ..."
