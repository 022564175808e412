"""Tables, figures and reports, of what has just been found and of what the records keep of it."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from climassay.judging import Item, JudgeResult, make_folds, quality, rank_items
from climassay.judging.benchmark import load_judge_results, result_row, score_judge
from climassay.judging.judges import Cost
from climassay.judging.preferences import CERTAIN_LOG_ODDS, Judgements
from climassay.judging.ranking import CERTAIN_ONLY, ranking_table
from climassay.judging.report import (
    judge_sections,
    projection_blocks,
)
from climassay.judging.training import Projection, TrainedJudge
from climassay.records import Records
from climassay.records.queries import run_details
from climassay.reporting import DotPlot, LinePlot, ScatterPlot, Table
from planted_model import items


class ByLabel:
    name = "by label"

    def compare(self, items, pairs, *, on_progress=None):
        from climassay.judging.preferences import Judgements

        values = np.array([item.label for item in items])
        return Judgements(values[pairs[:, 0]] - values[pairs[:, 1]], np.zeros(len(pairs), dtype=bool))


def test_a_ranking_shows_places_and_shortened_texts():
    ranking = rank_items(items(groups=2), ByLabel())
    table = ranking_table(ranking.rows(), quality="depth", words=2)
    assert [column.label for column in table.columns][:4] == ["group", "rank", "item", "text"]
    assert [row[1] for row in table.rows] == ["1", "2", "3", "4"] * 2
    assert all(len(row[3].split()) <= 3 for row in table.rows)
    page = replace(ranking, quality="depth", method="by label", file="x.csv").report().to_html()
    assert "x.csv by depth" in page
    one = ranking_table(rank_items(items(groups=1), ByLabel()).rows(), quality="depth")
    assert one.columns[0].label == "rank"
    assert "label" in [column.label for column in one.columns]
    unknown = ranking_table([{**row, "label": None} for row in ranking.rows()])
    assert "label" not in [column.label for column in unknown.columns]


def test_a_ranking_without_probabilities_says_that_strengths_tell_the_order_alone():
    class Certain(ByLabel):
        def compare(self, items, pairs, *, on_progress=None):
            one = super().compare(items, pairs)
            return replace(one, log_odds=CERTAIN_LOG_ODDS * np.sign(one.log_odds))

    assert rank_items(items(groups=1), Certain()).note.endswith(CERTAIN_ONLY)
    assert CERTAIN_ONLY not in rank_items(items(groups=1), ByLabel()).note


def test_the_picture_has_a_cloud_for_each_outcome_and_says_what_was_left_out():
    rng = np.random.default_rng(0)
    picture = Projection(rng.normal(size=(2000, 3)), rng.integers(-1, 2, 2000), (0.5, 0.2, 0.1))
    lead, first, second = projection_blocks(picture, "ppairs")
    assert "after the answer that names the first item" in lead.text
    assert isinstance(first, ScatterPlot)
    assert [cloud.name for cloud in first.clouds] == [
        "first has the higher label",
        "second has the higher label",
        "equal labels",
    ]
    assert sum(len(cloud.points) for cloud in first.clouds) == 1500
    assert first.note == "1,500 of 2,000 pairs, drawn at random."
    assert "50% of the variance" in first.x.label
    assert "component 3 (10%" in second.y.label


def test_the_picture_of_a_method_that_reads_one_text_at_a_time_speaks_of_no_answers():
    picture = Projection(np.eye(3), np.array([1, -1, 0]), (0.5, 0.2, 0.1))
    lead = projection_blocks(picture, "pointwise-length")[0].text
    assert "on the first item and on the second" in lead
    assert "answer" not in lead


class Noisy:
    """Knows the labels, with noise, and gives probabilities."""

    def __init__(self, items):
        self.labels = np.array([item.label for item in items])

    def prepare(self, folds):
        """Nothing to do."""

    def fit_fold(self, fold, train_pairs=None):
        def judge(pairs):
            noise = np.random.default_rng(0).normal(0, 1, len(pairs))
            return Judgements(self.labels[pairs[:, 0]] - self.labels[pairs[:, 1]] + noise, np.zeros(len(pairs), bool))

        return TrainedJudge(judge, tie_band=0.1, layers=(2, -1), regularisation=0.5)


@pytest.fixture(scope="module")
def results():
    drawn = np.random.default_rng(1)
    items = [
        Item(f"{group}/{place}", "word " * int(drawn.integers(3, 30)), "", f"g{group}", float(drawn.integers(1, 5)))
        for group in range(10)
        for place in range(4)
    ]
    folds = make_folds(items, train_items=16, folds=3, seed=1)
    found = []
    for wording in (1, 2):
        asked = quality("text", "relevance", wording=wording)
        scores = score_judge(items, folds, Noisy(items), method="probe", quality=asked.name, sizes=(8,))
        found.append(JudgeResult(asked, scores, Cost(3, 400, 800, 12, 5)))
    return found


@pytest.fixture
def details(tmp_path, results):
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as records:
        config = {"model": "local:small", "qualities": [asdict(one.quality) for one in results]}
        with records.run("judge benchmark", config) as run:
            run.save_results("judges", [result_row(one) for one in results])
        yield run_details(records.database, run.id)


def test_a_stored_benchmark_has_the_tables_and_figures_of_the_fresh_one(details, results):
    again = load_judge_results(details)
    assert judge_sections(again) == judge_sections(results)
    assert {type(block) for section in judge_sections(again) for block in section.blocks} >= {DotPlot, LinePlot, Table}
    assert [one.quality for one in again] == [one.quality for one in results]
