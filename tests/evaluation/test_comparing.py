"""Several runs side by side, two benchmarks, and the numbers that the paper prints."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.evaluation import (
    ModelMeans,
    experiment_means,
    published_means,
    published_scores,
    rank_agreement,
    score_experiment,
    self_preference,
)
from climassay.evaluation.paper_scores import PUBLISHED_QUESTIONS, published_models
from climassay.evaluation.run_comparison import (
    compare_runs,
    comparison_figure,
    comparison_table,
    comparison_test_table,
    metrics_in,
)
from climassay.metrics import METRICS
from climassay.questions import KINDS
from experiments import experiment, question, questions_of

GOLD, SILVER = published_means("gold"), published_means("silver")
GENERATOR = "gpt-3.5-turbo"
"""The model that wrote the published questions."""
SKILLS = {(f"m{n}", "default"): 0.25 + 0.12 * n for n in range(6)}


@pytest.fixture(scope="module")
def runs():
    asked = questions_of(90, 60, 60)
    return experiment(SKILLS, questions=asked), experiment(SKILLS, questions=asked, seed=7)


def test_published_silver_ranks_models_as_gold_does():
    found = {one.metric: one for one in rank_agreement(GOLD, SILVER, resamples=50)}
    assert set(found["accuracy"].models) == {"gemma-27b", "gpt-3.5-turbo", "gpt-4o", "llama3-70b", "mixtral-8x22b"}
    assert found["bleu_char"].spearman.value == pytest.approx(1)
    assert found["phrase_similarity"].kendall.value == pytest.approx(1)
    # Gold: 4o > llama > mixtral > gemma > 3.5; silver: 4o > mixtral > gemma > llama > 3.5. Squared gaps of ranks: 6.
    assert found["accuracy"].spearman.value == pytest.approx(1 - 6 * 6 / (5 * 24))
    assert all(one.spearman.value > 0.6 for one in found.values())


@pytest.mark.parametrize(("means", "models"), [(GOLD, 7), (SILVER, 5)], ids=["gold", "silver"])
def test_bleu_and_bert_score_favour_the_published_generator_and_factual_accuracy_does_not(means, models):
    found = {one.metric: one for one in self_preference(means, GENERATOR)}
    for metric in ("bleu_char", "bert_score"):
        assert (found[metric].rank, found[metric].excess_rank, found[metric].models) == (1, 1, models)
        assert found[metric].anchor_rank - found[metric].rank >= 4
        assert found[metric].excess > 0
    truth = found["factual_accuracy"]
    assert truth.rank > 1
    assert truth.anchor_rank - truth.rank < found["bleu_char"].anchor_rank - found["bleu_char"].rank
    assert truth.studentised < found["bleu_char"].studentised


@given(st.integers(0, 10_000), st.integers(4, 9))
def test_the_excess_is_the_residual_of_a_regression_with_the_generator_as_its_own_term(seed, size):
    random = np.random.default_rng(seed)
    x, y = random.normal(size=size), random.normal(size=size)
    names = [f"m{n}" for n in range(size)]
    tables = {"accuracy": x, "bleu_char": y}
    means = ModelMeans(
        "set", "default", {metric: dict(zip(names, map(float, v), strict=True)) for metric, v in tables.items()}
    )
    [found] = self_preference(means, "m1")
    design = np.stack([np.ones(size), x, np.eye(size)[1]], axis=1)
    weights, *_ = np.linalg.lstsq(design, y, rcond=None)
    residuals = y - design @ weights
    scale = residuals @ residuals / (size - 3)
    error = np.sqrt(scale * np.linalg.inv(design.T @ design)[2, 2])
    assert found.excess == pytest.approx(weights[2], rel=1e-6, abs=1e-9)
    assert found.studentised == pytest.approx(weights[2] / error, rel=1e-4, abs=1e-9)


def test_a_planted_favour_is_seen_and_its_absence_too(runs):
    run = runs[0]
    lifted = [
        replace(one, scores={**one.scores, "bleu_char": one.scores["bleu_char"] + 0.3})
        if one.cell.model == "m2" and one.cell.task == "freeform"
        else one
        for one in run.outcomes
    ]
    found = {one.metric: one for one in self_preference(experiment_means(replace(run, outcomes=tuple(lifted))), "m2")}
    planted, other = found["bleu_char"], found["bert_score"]
    assert (planted.excess_rank, planted.rank) == (1, 1)
    assert planted.p_value < 0.01
    assert planted.over_questions.low > 0.15
    assert other.over_questions.low < 0 < other.over_questions.high


@pytest.mark.parametrize(
    ("means", "generator", "anchor", "word"),
    [
        (GOLD, "gpt-5", "accuracy", "no accuracy of a model 'gpt-5'"),
        (GOLD, GENERATOR, "supported", "no supported of a model"),
        (ModelMeans("x", "default", {"accuracy": {"a": 1.0}, "bleu": {"a": 0.1}}), "a", "accuracy", "fewer than 4"),
    ],
    ids=["generator", "anchor", "models"],
)
def test_a_check_without_sense_is_refused(means, generator, anchor, word):
    with pytest.raises(InputError, match=word):
        self_preference(means, generator, anchor)


def test_settings_and_benchmarks_that_are_not_there_are_refused(runs):
    with pytest.raises(InputError, match="no setting 'rag': they have default, few-shot"):
        published_means("gold", "rag")
    with pytest.raises(InputError, match="in the setting 'rag': it has default"):
        experiment_means(runs[0], "rag")
    two = replace(runs[0], questions={"a": (), "b": ()})
    with pytest.raises(InputError, match="several benchmarks, a, b"):
        experiment_means(two)


def named(given, run):
    return replace(given, run=run)


def test_equal_runs_do_not_differ():
    one = experiment({("small", "default"): 0.5})
    found = compare_runs([named(one, "r1"), named(one, "r2")], "accuracy")
    [test] = found.tests
    assert (test.first.run, test.second.run) == ("r1", "r2")
    assert (test.result.difference.value, test.result.first_only, test.result.second_only, test.result.p_value) == (
        0,
        0,
        0,
        1,
    )
    assert len(comparison_table(found).rows) == 2
    assert len(comparison_figure(found).dots) == 2
    # Runs of one name are told apart by their ids; others are called by their names alone.
    assert [row[3] for row in comparison_table(found).rows] == ["test, r1", "test, r2"]
    again = compare_runs([named(one, "r1"), replace(named(one, "r2"), name="spring")], "accuracy")
    assert [dot.label for dot in comparison_figure(again).dots] == ["small, default (test)", "small, default (spring)"]


def test_a_run_has_the_interval_of_its_own_page_beside_one_with_several_option_orders():
    one = experiment({("small", "default"): 0.5}, questions=[question("mcq", number) for number in range(12)])
    halves = [replace(other, scores={"accuracy": 0.25 + other.scores["accuracy"] / 2}) for other in one.outcomes]
    found = compare_runs([named(one, "r1"), named(replace(one, outcomes=tuple(halves)), "r2")], "accuracy")
    assert found.scores[0].estimate == score_experiment(one).get(one.cells[0].cell, "accuracy").estimate


def test_questions_are_matched_by_their_words_and_not_by_their_ids():
    first = experiment({("small", "default"): 1.0}, questions=[question("mcq", number) for number in range(8)])
    asked = [replace(question("mcq", number), id=f"other-{number}") for number in range(4, 12)]
    second = experiment({("small", "default"): 0.0}, questions=asked, benchmark="another")
    [test] = compare_runs([named(first, "r1"), named(second, "r2")], "accuracy").tests
    assert (test.result.difference.n, test.result.difference.value, test.result.first_only) == (4, -1, 4)
    # The same ids with other words are other questions.
    strange = [replace(question("mcq", number), question="Something else?") for number in range(8)]
    third = experiment({("small", "default"): 0.0}, questions=strange)
    found = compare_runs([named(first, "r1"), named(third, "r3")], "accuracy")
    assert found.tests == ()
    assert comparison_test_table(found) is None


def test_many_cells_are_tested_only_where_they_share_model_or_setting():
    skills = {(model, setting): 0.5 for model in "abcdefghi" for setting in ("default", "rag")}
    given = experiment(skills, questions=[question("mcq", number) for number in range(6)])
    found = compare_runs([named(given, "r1"), named(given, "r2")], "accuracy")
    assert len(found.scores) == 36
    cells = [(test.first.cell, test.second.cell) for test in found.tests]
    assert all(a.model == b.model or a.setting == b.setting for a, b in cells)
    assert len(cells) == 18 * (9 + 1)


def test_a_metric_that_is_no_share_is_tested_by_sign_flips():
    runs = [named(experiment(seed=seed), f"r{seed}") for seed in (1, 2)]
    assert metrics_in(runs)[0] == "accuracy"
    found = compare_runs(runs, "phrase_similarity")
    assert all(test.result.exact is None for test in found.tests)
    assert all(0 < test.result.p_value <= test.result.p_holm <= 1 for test in found.tests)
    with pytest.raises(InputError, match="There is no metric 'beauty'"):
        compare_runs(runs, "beauty")


GOLD_SCORES, SILVER_SCORES = published_scores("gold"), published_scores("silver")


def value(scores, model, setting, metric, level="overall"):
    [found] = [s.value for s in scores if (s.model, s.setting, s.metric, s.level) == (model, setting, metric, level)]
    return found


def test_every_cell_of_the_four_tables_is_there():
    # 35 rows of Table 3, 32 of Table 5, five each of Tables 6 and 7; 6 or 12 numbers a row.
    assert Counter(score.task for score in GOLD_SCORES) == {"mcq": 35 * 4, "cloze": 35 * 2, "freeform": 32 * 12}
    assert Counter(score.task for score in SILVER_SCORES) == {"mcq": 5 * 4, "cloze": 5 * 2, "freeform": 5 * 12}
    names = [(s.dataset, s.model, s.setting, s.metric, s.level) for s in GOLD_SCORES + SILVER_SCORES]
    assert len(set(names)) == len(names)
    assert len(published_models()) == 8


@pytest.mark.parametrize(
    ("model", "setting", "metric", "level", "expected"),
    [
        ("gpt-4o", "default", "accuracy", "overall", 0.8571),
        ("gpt-4o", "rag-source", "accuracy", "base", 0.9577),
        ("llama3.1-8b", "rag-source", "exact_match", "overall", 0.725),
        ("mistral-7b", "fine-tuned", "accuracy", "overall", 0.7551),
        ("mistral-7b", "continued-pretraining", "bleu_char", "reasoning", 0.176),
        ("gemini-1.5-flash", "long-context-held-out", "phrase_similarity", "overall", 0.87),
        ("gpt-3.5-turbo", "few-shot", "bert_score", "hypothetical", 0.915),
        ("llama3-70b", "default", "factual_accuracy", "hypothetical", 0.85),
    ],
)
def test_numbers_are_those_printed(model, setting, metric, level, expected):
    assert value(GOLD_SCORES, model, setting, metric, level) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["accuracy", "bleu_char", "bert_score", "factual_accuracy"])
def test_overall_is_the_mean_of_the_levels_weighted_by_their_questions(metric):
    # Half a unit of rounding on either side: of 0.01 per cent, 0.001, or (factual accuracy) 0.01. No row is off.
    rounding = {"accuracy": 1e-4, "factual_accuracy": 1e-2}.get(metric, 1e-3)
    rows = {(s.model, s.setting) for s in GOLD_SCORES if s.metric == metric}
    sizes = PUBLISHED_QUESTIONS["gold", next(kind for kind in KINDS if METRICS[metric].scores(kind))]
    assert len(rows) in (32, 35)
    for model, setting in rows:
        levels = [level for level in sizes if level != "overall"]
        total = sum(sizes[level] * value(GOLD_SCORES, model, setting, metric, level) for level in levels)
        gap = total / sizes["overall"] - value(GOLD_SCORES, model, setting, metric)
        assert abs(gap) <= rounding + 1e-9, (model, setting)


def test_levels_of_the_silver_sample_can_be_told_from_its_accuracies():
    # The paper prints no sizes; 100, 53 and 47 of 200 questions reproduce every overall accuracy.
    for model in {s.model for s in SILVER_SCORES}:
        levels = [
            value(SILVER_SCORES, model, "default", "accuracy", level) for level in ("base", "reasoning", "hypothetical")
        ]
        mean = sum(n * share for n, share in zip((100, 53, 47), levels, strict=True)) / 200
        assert mean == pytest.approx(value(SILVER_SCORES, model, "default", "accuracy"), abs=1e-4)


def test_models_can_be_chosen():
    assert {score.model for score in published_scores("gold", ["gpt-4o"])} == {"gpt-4o"}
    with pytest.raises(InputError, match="no model gpt-5: they have gemma-27b"):
        published_scores("gold", ["gpt-5"])


def test_scores_of_runs_stand_beside_the_constant_of_their_questions(runs):
    for metric, level in (("accuracy", "base"), ("exact_match", "overall"), ("bleu_char", "overall")):
        found = compare_runs(runs, metric, level=level)
        constants = {
            constant.value
            for constant in score_experiment(runs[0]).constants
            if (constant.metric, constant.level) == (metric, level)
        }
        assert len(constants) == (metric != "bleu_char")
        assert {score.constant for score in found.scores} == (constants or {None})
        assert all((row[-1] == "-") == (not constants) for row in comparison_table(found).rows)
        assert {dot.reference for dot in comparison_figure(found).dots} == (constants or {None})
