from dataclasses import replace

import pytest

from climassay.errors import InputError
from climassay.evaluation import Cell, Experiment, experiment_means, experiment_tables, score_experiment, screen_tables
from climassay.evaluation.run_comparison import compare_runs
from climassay.statistics import holm, mcnemar, wilson_interval
from experiments import experiment, outcome, question, record

QUESTIONS = tuple(question("mcq", number, level) for number, level in enumerate(["base"] * 4 + ["reasoning"] * 4))
FREEFORM = tuple(question("freeform", number, "base") for number in range(3))
PLAIN, BOOKS = Cell("set", "m", "default", "mcq"), Cell("set", "m", "rag", "mcq")
WRITTEN = Cell("set", "m", "default", "freeform")


def mcq_outcomes(cell, right):
    return [
        outcome(cell, asked, {"accuracy": float(good)}, chosen=asked.correct if good else (asked.correct + 1) % 4)
        for asked, good in zip(QUESTIONS, right, strict=True)
    ]


def matrix(*parts, questions=QUESTIONS):
    outcomes = [one for part in parts for one in part]
    cells = dict.fromkeys(one.cell for one in outcomes)
    return Experiment("r1", "name", {}, tuple(map(record, cells)), tuple(outcomes), {"set": tuple(questions)})


def test_accuracy_by_level_has_wilsons_interval():
    scores = score_experiment(matrix(mcq_outcomes(PLAIN, [1, 1, 0, 0, 1, 1, 1, 0])))
    found = {score.level: score.estimate for score in scores.scores}
    assert {level: estimate.value for level, estimate in found.items()} == {
        "base": 0.5,
        "reasoning": 0.75,
        "overall": 0.625,
    }
    assert found["overall"].interval == wilson_interval(5, 8)
    assert [score.level for score in scores.scores] == ["base", "reasoning", "overall"]


def test_values_that_are_all_the_same_are_not_known_without_error():
    halves = [replace(one, scores={"accuracy": 0.5}) for one in mcq_outcomes(PLAIN, [1] * 8)]
    alike = [outcome(WRITTEN, asked, {"bleu_char": 0.3}) for asked in FREEFORM]
    scores = score_experiment(matrix(halves)).scores + score_experiment(matrix(alike, questions=FREEFORM)).scores
    for value, n in ((0.5, 8), (0.3, 3)):
        [found] = [one.estimate for one in scores if one.level == "overall" and one.estimate.n == n]
        assert found.interval == pytest.approx(wilson_interval(value * n, n))
        assert found.interval.low < value < found.interval.high


def test_a_screen_shows_of_many_tests_those_beyond_chance():
    cells = [Cell("set", "m", f"s{number}", "mcq") for number in range(8)]
    right = [[1] * 8, *([0] * 8 for _ in cells[1:])]
    named = experiment_tables(score_experiment(matrix(*map(mcq_outcomes, cells, right))))
    [whole] = [one.table for one in named if one.name == "settings"]
    assert (len(whole.rows), whole.strong) == (28, frozenset())
    shown = {one.title: one for one in screen_tables(named, 100)}[whole.title]
    assert (shown.rows, "28 of 28 tests" in shown.note) == ((), True)
    assert whole in screen_tables(named, 100, complete=("settings",))
    beside = {one.title: one for one in screen_tables(named, 100)}
    assert len(beside["Multiple choice and cloze, set"].rows) == len(cells) + 1  # the constant answer


def test_no_cell_is_the_best_where_all_are_alike():
    named = experiment_tables(score_experiment(matrix(mcq_outcomes(PLAIN, [1] * 8), mcq_outcomes(BOOKS, [1] * 8))))
    assert not next(one.table for one in named if one.name == "mcq-cloze").marks


def test_failed_answers_score_zero_and_unscored_ones_are_in_no_mean():
    outcomes = [
        outcome(WRITTEN, FREEFORM[0], {"factual_accuracy": 0.8, "bleu_char": 0.5}),
        outcome(WRITTEN, FREEFORM[1], {"bleu_char": 0.3}),
        outcome(WRITTEN, FREEFORM[2], {}, error="no answer", answer=""),
    ]
    scores = score_experiment(matrix(outcomes, questions=FREEFORM))
    found = {(score.metric, score.level): score for score in scores.scores}
    truth, words = found["factual_accuracy", "overall"], found["bleu_char", "overall"]
    assert (truth.estimate.value, truth.estimate.n, truth.unscored) == (pytest.approx(0.4), 2, 1)
    assert (words.estimate.value, words.estimate.n, words.unscored) == (pytest.approx(0.8 / 3), 3, 0)
    [counts] = scores.counts
    assert (counts.n, counts.failed, counts.unscored) == (3, 1, (("factual_accuracy", 1),))


def test_counts_tell_failed_unparsed_and_broken_answers_apart():
    outcomes = mcq_outcomes(PLAIN, [1] * 8)
    outcomes[0] = replace(outcomes[0], chosen=None, answer="", scores={"accuracy": 0.0})
    outcomes[1] = replace(outcomes[1], chosen=None, answer="", error="time out", scores={"accuracy": 0.0})
    outcomes[2] = replace(outcomes[2], violations=("too long", "two letters"))
    outcomes[3] = replace(outcomes[3], violations=("too long",))
    [counts] = score_experiment(matrix(outcomes)).counts
    assert (counts.n, counts.failed, counts.unparsed, counts.violations) == (8, 1, 1, 2)
    assert counts.kinds == (("too long", 2), ("two letters", 1))


def test_the_constant_answer_is_the_best_one_of_each_level():
    constants = {one.level: one for one in score_experiment(matrix(mcq_outcomes(PLAIN, [1] * 8))).constants}
    # Correct letters run a, b, c, d twice over: every letter gets a quarter, at either level.
    assert {level: one.value for level, one in constants.items()} == {
        "base": 0.25,
        "reasoning": 0.25,
        "overall": 0.25,
    }
    terms = tuple(replace(question("cloze", n), answer=answer) for n, answer in enumerate(["ice", "sea", "ice"]))
    cell = Cell("set", "m", "default", "cloze")
    found = score_experiment(matrix([outcome(cell, one, {"exact_match": 1.0}) for one in terms], questions=terms))
    assert [(one.metric, one.answer, one.value) for one in found.constants] == [
        ("exact_match", "ice", pytest.approx(2 / 3))
    ]


def test_settings_are_compared_by_the_exact_test_on_the_same_questions():
    first, second = [1, 1, 0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1, 1, 1]
    tests = score_experiment(matrix(mcq_outcomes(PLAIN, first), mcq_outcomes(BOOKS, second))).tests
    [test] = tests
    assert (test.family, test.fixed, test.first, test.second) == ("settings", "m", "default", "rag")
    assert (test.first_only, test.second_only, test.difference.value) == (1, 6, pytest.approx(5 / 8))
    assert test.p_value == mcnemar(first, second).p_value
    assert test.difference.interval.low <= 5 / 8 <= test.difference.interval.high


def test_questions_are_matched_by_their_ids_not_by_their_order():
    first, second = [1, 1, 0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1, 1, 1]
    straight = score_experiment(matrix(mcq_outcomes(PLAIN, first), mcq_outcomes(BOOKS, second)))
    turned = score_experiment(matrix(mcq_outcomes(PLAIN, first), mcq_outcomes(BOOKS, second)[::-1]))
    assert straight.tests == turned.tests


def test_further_metrics_share_one_scale():
    [table] = [one.table for one in experiment_tables(score_experiment(experiment())) if one.name == "own-metrics"]
    headings = [column.heading for column in table.columns]
    assert {"supported", "fact F1"} <= {heading.split(" Overall")[0] for heading in headings}
    values = [float(cell.split()[0]) for row in table.rows for cell in row[2:] if cell != "-"]
    assert all(0 <= value <= 1 for value in values)
    assert any(value > 0 for value in values)


def test_holm_is_over_all_tests_of_a_family():
    scores = score_experiment(experiment())
    for family in ("settings", "models"):
        tests = [test for test in scores.tests if test.family == family]
        assert len(tests) == 5
        assert [test.p_holm for test in tests] == holm([test.p_value for test in tests])
    assert {test.test for test in scores.tests if test.metric in ("accuracy", "exact_match")} == {"McNemar, exact"}
    assert {test.test for test in scores.tests if test.metric == "fact_f1"} == {"sign flip"}


def test_benchmarks_are_kept_apart():
    one, other = experiment(benchmark="gold"), experiment(benchmark="silver", seed=4)
    both = replace(
        one,
        cells=one.cells + other.cells,
        outcomes=one.outcomes + other.outcomes,
        questions={**one.questions, **other.questions},
    )
    scores = score_experiment(both)
    assert [s for s in scores.scores if s.cell.benchmark == "gold"] == list(score_experiment(one).scores)
    assert [t.p_holm for t in scores.tests if t.benchmark == "silver"] == [
        t.p_holm for t in score_experiment(other).tests
    ]


def test_a_model_whose_calls_all_failed_has_no_figure():
    failed = [
        replace(one, cell=BOOKS, error="no room", scores={"accuracy": 0.0}) for one in mcq_outcomes(PLAIN, [0] * 8)
    ]
    found = matrix(mcq_outcomes(PLAIN, [1] * 8), failed)
    scores = score_experiment(found)
    assert {one.cell for one in scores.scores} == {PLAIN}
    assert scores.tests == ()
    assert {count.cell: count.failed for count in scores.counts} == {PLAIN: 0, BOOKS: 8}
    [shown] = [one.table for one in experiment_tables(scores) if one.name == "mcq-cloze"]
    [row] = [row for row in shown.rows if row[1] == "rag"]
    assert set(row[2:]) == {"-"}
    assert [one.cell for one in compare_runs([found], "accuracy").scores] == [PLAIN]
    with pytest.raises(InputError, match="no answers"):
        experiment_means(found, "rag")
