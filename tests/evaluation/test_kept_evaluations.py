"""Runs that an earlier version kept are read as they were, and its stored answers serve this version."""

import gzip
import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

import kept_evaluations as kept
from climassay.evaluation import (
    EvaluationResources,
    Sources,
    load_experiment,
    parse_plan,
    run_experiment,
    score_experiment,
    score_mcq,
)
from climassay.evaluation.tables import experiment_tables, mcq_tables
from climassay.metrics import Scorer
from climassay.questions import QuestionSet
from climassay.records import Records

DATA = Path(__file__).parents[1] / "data"
FIGURES = json.loads((DATA / "kept_evaluations.json").read_text(encoding="utf-8"))


@pytest.fixture
def store(tmp_path):
    packed = (DATA / "kept_evaluations.sqlite.gz").read_bytes()
    (tmp_path / "records.sqlite").write_bytes(gzip.decompress(packed))
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as opened:
        yield opened


class Same:
    name = "same"

    def score(self, pairs):
        return [float(len(premise) % 7) / 7 for premise, _ in pairs]


def plan(**more):
    entries = {"benchmarks": ["primer"], "settings": ["default", "context"], "model": [{"name": "local:scripted"}]}
    return parse_plan({"name": "kept", **entries, **more}, where="x.toml", folder=Path())


def ask(store, questions, **more):
    sources = Sources(lambda _: None, lambda _: None)
    scorer = Scorer("local:minilm", "local:minilm", Same())
    resources = EvaluationResources(lambda *_: kept.model(), sources, scorer=lambda _: scorer)
    return run_experiment(plan(**more), {"primer": QuestionSet("primer", questions, (), "0" * 64)}, resources, store)


def choices(experiment):
    return score_mcq([one for ones in experiment.predictions.values() for one in ones])


def figures(data, path=""):
    """Every number and word of nested data, by its path."""
    if not isinstance(data, dict | list):
        return {path: data}
    parts = data.items() if isinstance(data, dict) else enumerate(data)
    return {where: value for key, part in parts for where, value in figures(part, f"{path}/{key}").items()}


OTHER_INTERVAL = re.compile("/paired/[0-9]+/difference/interval/|/position/[0-9]+/p_value")
"""Intervals of differences, which were bootstraps then and come from the sign flips of their tests now; and p-values of
position bias, which there are no more of fewer orders than options."""


NO_WIDTH = {
    f"/accuracy/{number}/accuracy/interval"
    for number, row in enumerate(FIGURES["mcq"]["scores"]["accuracy"])
    if len(set(row["accuracy"]["interval"])) == 1
}
"""Intervals of accuracies that no resample changed, which are Wilson's now."""


def as_kept(scores):
    """The figures; the names of models and families, which were not kept then, are left out."""
    found = figures(json.loads(json.dumps(asdict(scores))))
    left_out = ("model", "family", "fixed")
    return {
        path: value
        for path, value in found.items()
        if path.rpartition("/")[2] not in left_out
        and not OTHER_INTERVAL.search(path)
        and path.rpartition("/")[0] not in NO_WIDTH
    }


KEPT_CHOICES = {
    # Resamples and sign flips are drawn for all tests together since: what is random may differ in the last digit.
    path: pytest.approx(value, abs=0.01) if isinstance(value, float) else value
    for path, value in figures(FIGURES["mcq"]["scores"]).items()
    if not OTHER_INTERVAL.search(path) and path.rpartition("/")[0] not in NO_WIDTH
}


def listed(experiment):
    """The scores; where all values are the same, with the interval without width that was kept, now Wilson's."""
    rows = [
        [s.cell.setting, s.cell.task, s.metric, s.level, s.estimate.value, list(s.estimate.interval)]
        for s in score_experiment(experiment).scores
    ]
    return [
        [*row[:-1], interval] if interval[0] == interval[1] else row
        for row, (*_, interval) in zip(rows, FIGURES["experiment"]["scores"], strict=True)
    ]


def test_a_kept_evaluation_of_choices_has_the_figures_that_it_had(store):
    found = load_experiment(store, FIGURES["mcq"]["run"])
    assert as_kept(choices(found)) == KEPT_CHOICES
    assert len(found.cells) == len(kept.SCORINGS) * 2
    assert {one.name for one in experiment_tables(score_experiment(found))} >= {"mcq-cloze", "position", "settings"}


def test_a_kept_experiment_has_the_figures_that_it_had(store):
    found = load_experiment(store, FIGURES["experiment"]["run"])
    assert listed(found) == FIGURES["experiment"]["scores"]
    assert found.predictions == {}


def test_the_same_evaluation_of_choices_asks_nothing_again_and_gives_the_same_figures(store):
    done = ask(
        store, kept.few("mcq", 6), tasks=["mcq"], scorings=list(kept.SCORINGS), permutations=kept.ORDERS
    )  # fmt: skip
    assert done.tally.asked == 0 < done.tally.hits
    assert as_kept(choices(done)) == KEPT_CHOICES
    again = load_experiment(store, done.run)
    assert again.predictions == done.predictions
    assert again.outcomes == done.outcomes
    shown = [table.title for table in mcq_tables(choices(again))]
    assert shown[-1] == "Position bias (%)"


def test_the_same_experiment_asks_nothing_again_and_gives_the_same_figures(store):
    questions = (*kept.few("mcq", 6), *kept.few("freeform", 3), *kept.few("cloze", 3))
    done = ask(store, questions, tasks=["mcq", "freeform", "cloze"])
    assert done.tally.asked == 0
    # Encoders compute in float32, and its last digits differ between processors.
    wanted = {
        path: pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
        for path, value in figures(FIGURES["experiment"]["scores"]).items()
    }
    assert figures(listed(done)) == wanted
