"""Several runs side by side, and single evaluations in the shape of an experiment."""

from dataclasses import replace

import pytest

from climassay.errors import InputError
from climassay.evaluation.comparing import (
    compare_runs,
    comparison_figure,
    comparison_table,
    comparison_test_table,
    metrics_in,
)
from climassay.evaluation.results import experiment_of
from climassay.evaluation.scores import score_mcq
from climassay.records import Records
from climassay.records.queries import run_details
from experiments import experiment, question
from stored_runs import store_mcq


def named(given, run):
    return replace(given, run=run)


def test_equal_runs_do_not_differ():
    one = experiment({("small", "default"): 0.5})
    found = compare_runs([named(one, "r1"), named(one, "r2")], "accuracy")
    [test] = found.tests
    assert (test.first.run, test.second.run) == ("r1", "r2")
    assert (test.difference.value, test.first_only, test.second_only, test.p_value) == (0, 0, 0, 1)
    assert len(comparison_table(found).rows) == 2
    assert len(comparison_figure(found).dots) == 2


def test_questions_are_matched_by_their_words_and_not_by_their_ids():
    first = experiment({("small", "default"): 1.0}, questions=[question("mcq", number) for number in range(8)])
    asked = [replace(question("mcq", number), id=f"other-{number}") for number in range(4, 12)]
    second = experiment({("small", "default"): 0.0}, questions=asked, benchmark="another")
    [test] = compare_runs([named(first, "r1"), named(second, "r2")], "accuracy").tests
    assert (test.difference.n, test.difference.value, test.first_only) == (4, -1, 4)
    # The same ids with other words are other questions.
    strange = [replace(question("mcq", number), question="Something else?") for number in range(8)]
    third = experiment({("small", "default"): 0.0}, questions=strange)
    found = compare_runs([named(first, "r1"), named(third, "r3")], "accuracy")
    assert found.tests == ()
    assert comparison_test_table(found) is None


def test_a_level_takes_its_questions_only():
    one, other = (named(experiment(seed=seed), f"r{seed}") for seed in (1, 2))
    found = compare_runs([one, other], "accuracy", level="base")
    assert {score.estimate.n for score in found.scores} == {4}
    assert {test.difference.n for test in found.tests} == {4}


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
    assert all(test.first_only is None for test in found.tests)
    assert all(0 < test.p_value <= test.p_holm <= 1 for test in found.tests)
    with pytest.raises(InputError, match="There is no metric 'beauty'"):
        compare_runs(runs, "beauty")


def test_a_stored_evaluation_has_the_tables_and_answers_that_it_had(tmp_path):
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as records:
        details = run_details(records.database, store_mcq(records, right=(0, 2, 5)))
    found = experiment_of(details)
    scores = score_mcq([one for ones in found.predictions.values() for one in ones])
    overall = scores.accuracy[-1]
    assert (overall.level, overall.accuracy.value, overall.accuracy.n) == ("overall", 3 / 12, 12)
    assert [one.question for one in found.outcomes if one.scores["accuracy"]] == ["mcq-0", "mcq-2", "mcq-5"]
    [cell] = found.cells
    assert (cell.cell.setting, cell.asked, cell.failed) == ("default, letter", 12, 0)
    assert found.questions["primer"][5] == question("mcq", 5, "hypothetical")
