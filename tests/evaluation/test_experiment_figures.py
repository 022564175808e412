from dataclasses import replace

import pytest

from climassay.evaluation.report import (
    calibrate_experiment,
    calibration_table,
    level_figures,
    setting_figures,
    source_figure,
)
from climassay.evaluation.scores import score_experiment
from experiments import experiment, question, questions_of


@pytest.fixture(scope="module")
def given():
    return experiment()


@pytest.fixture(scope="module")
def scores(given):
    return score_experiment(given)


def test_more_models_than_colours_are_parted():
    many = experiment({(f"m{n}", "default"): 0.5 for n in range(7)}, questions=questions_of(6, 0, 0))
    assert [len(figure.groups) for figure in level_figures(score_experiment(many), "primer")] == [5, 2]


def test_forest_plots_show_every_cell_and_the_constant_answer(scores):
    figures = {figure.axis: figure for figure in setting_figures(scores, "primer")}
    assert [dot.label for dot in figures["accuracy"].dots] == ["small, default", "small, rag-source", "large, default"]
    assert {dot.reference for dot in figures["accuracy"].dots} == {0.25}
    assert {dot.reference for dot in figures["BERTScore"].dots} == {None}
    assert all(0 <= dot.low <= dot.value <= dot.high <= 1 for figure in figures.values() for dot in figure.dots)


def test_phrase_similarity_below_zero_has_an_axis_that_reaches_it(given):
    below = [
        replace(one, scores={**one.scores, "phrase_similarity": -0.4}) if one.cell.task == "cloze" else one
        for one in given.outcomes
    ]
    figures = setting_figures(score_experiment(replace(given, outcomes=tuple(below))), "primer")
    assert [dot.value for dot in figures[-1].dots] == pytest.approx([-0.4] * 3)
    assert figures[-1].measure.low <= -0.4 < 0 <= figures[-1].measure.high


def test_questions_are_counted_over_their_sources():
    asked = [question("mcq", 0, document="a"), question("cloze", 1, document="b"), question("mcq", 2, document="b")]
    asked.append(replace(question("freeform", 3), document=None))
    figure = source_figure(asked, "Sources")
    assert [(bar.label, bar.counts) for bar in figure.bars] == [
        ("b", (1, 0, 1)),
        ("a", (1, 0, 0)),
        ("source not named", (0, 1, 0)),
    ]
    assert source_figure([replace(one, document=None) for one in asked], "Sources") is None
    assert source_figure([], "Sources") is None


def test_calibration_is_that_of_the_chosen_options(given):
    found = {one.name: one for one in calibrate_experiment(given)}
    assert set(found) == {"small, default", "small, rag-source", "large, default"}
    one = found["small, rag-source"]
    right = [o for o in given.outcomes if o.cell == one.cell]
    assert one.confidence == pytest.approx(sum(o.probability for o in right) / len(right))
    assert one.accuracy == pytest.approx(sum(o.scores["accuracy"] for o in right) / len(right))
    assert one.curve.points[-1].coverage == 1


def test_answers_without_a_probability_are_counted_and_not_covered(given):
    bare = [replace(one, probability=None) if one.question == "mcq-0" else one for one in given.outcomes]
    found = calibrate_experiment(replace(given, outcomes=tuple(bare)))
    assert {(one.n, one.without) for one in found} == {(11, 1)}
    assert found[0].curve.points[-1].coverage == pytest.approx(11 / 12)
    assert [row[-1] for row in calibration_table(found, "primer").rows] == ["-", "-", "-"]
