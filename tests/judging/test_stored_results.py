"""What judging commands keep with their runs, shown again as it was shown then."""

from dataclasses import asdict

import numpy as np
import pytest

from climassay.judging.benchmark import score_judge
from climassay.judging.candidates import Learned
from climassay.judging.experiment import JudgeResult, result_row
from climassay.judging.folds import make_folds
from climassay.judging.items import Item
from climassay.judging.preferences import Judgements
from climassay.judging.probing import Cost
from climassay.judging.quality import quality
from climassay.judging.report import judge_tables
from climassay.judging.report_plots import agreement_plots, learning_plots, reliability_plots
from climassay.judging.stored_results import judge_results_of, stored_label_table, stored_ranking_table
from climassay.records import Records
from climassay.records.queries import run_details


class Noisy:
    """Knows the labels, with noise, and gives probabilities."""

    def __init__(self, items):
        self.labels = np.array([item.label for item in items])

    def prepare(self, folds):
        """Nothing to do."""

    def learn(self, fold, train_pairs=None):
        def judge(pairs):
            noise = np.random.default_rng(0).normal(0, 1, len(pairs))
            return Judgements(self.labels[pairs[:, 0]] - self.labels[pairs[:, 1]] + noise, np.zeros(len(pairs), bool))

        return Learned(judge, tie_band=0.1, layers=(2, -1), regularisation=0.5)


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
    again = judge_results_of(details)
    assert judge_tables(again) == judge_tables(results)
    assert agreement_plots(again) == agreement_plots(results)
    assert learning_plots(again) == learning_plots(results)
    assert reliability_plots(again) == reliability_plots(results)
    assert [one.quality for one in again] == [one.quality for one in results]


def test_rankings_and_labels_keep_their_whole_texts(tmp_path):
    ranked = [
        {"group": group, "place": 1, "item": "a", "text": "long " * 60, "label": label, "strength": 0.5}
        for group, label in (("g", 2.0), ("h", None))
    ]
    given = [{"item": "b", "text": "Text.", "label": "accurate", "comparisons": 3,
              "path": [{"label": "misleading", "preference": 0.75}]}]  # fmt: skip
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as records:
        with records.run("judge rank", {"quality": "relevance"}) as run:
            run.save_results("ranking", ranked)
            run.save_results("labels", given)
        details = run_details(records.database, run.id)
    table = stored_ranking_table(details)
    assert table.title == "Ranking by relevance"
    assert table.rows[0] == ("g", "1", "a", "long " * 60, "2", "+0.50")
    assert table.rows[1][4] == "-"
    assert stored_label_table(details).rows == (("b", "Text.", "accurate", "misleading 0.75", "3"),)
