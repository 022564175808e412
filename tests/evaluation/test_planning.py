from dataclasses import replace

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.evaluation import assume_binary, assume_from_run, assume_mean, plan, planning
from climassay.evaluation.planning import plan_table
from climassay.statistics import mcnemar_power
from experiments import experiment, questions_of


def row(difference, assumptions, **more):
    [found] = plan([difference], assumptions, **more).rows
    return found


def test_designs_with_known_sizes():
    found = row(0.05, assume_binary(0.8, 0.2))
    # Two shares of 80 and 85 per cent: 906 a group without continuity correction; 246 for five points each side.
    assert found.unpaired == 906
    assert found.interval == 246
    # Two means half a standard deviation apart: 2 (1.96 + 0.84)^2 / 0.25 = 62.8.
    assert row(0.5, assume_mean(1.0)).unpaired == 63
    assert row(0.5, assume_mean(1.0, correlation=0.5)).paired == 32
    assert row(0.5, assume_mean(1.0)).interval == 16


@pytest.mark.parametrize(("difference", "discordance"), [(0.05, 0.1), (0.1, 0.2), (0.1, 0.4), (0.15, 0.15)])
def test_paired_sizes_reach_the_power_and_half_of_them_does_not(difference, discordance):
    found = row(difference, assume_binary(0.7, discordance))
    gain, loss = (discordance + difference) / 2, (discordance - difference) / 2
    assert found.exact
    assert mcnemar_power(gain, loss, found.paired) >= 0.8
    assert mcnemar_power(gain, loss, found.paired // 2) < 0.8


@pytest.mark.parametrize(("difference", "discordance"), [(0.05, 0.3), (0.06, 0.4), (0.07, 0.6)])
def test_the_approximation_for_large_plans_is_near_the_exact_size(difference, discordance, monkeypatch):
    exact = row(difference, assume_binary(0.8, discordance))
    assert exact.exact
    monkeypatch.setattr(planning, "MAX_EXACT_QUESTIONS", 0)
    about = row(difference, assume_binary(0.8, discordance))
    assert not about.exact
    assert about.paired == pytest.approx(exact.paired, rel=0.02)


def test_impossible_differences_have_no_size():
    found = row(0.25, assume_binary(0.8, 0.2))
    assert (found.paired, found.unpaired) == (None, None)
    assert row(0.15, assume_binary(0.8, 0.1)).unpaired is not None


def test_a_run_tells_what_to_assume():
    asked = questions_of(40, 30, 0)
    run = experiment({("a", "default"): 0.5, ("a", "rag"): 0.8, ("b", "default"): 0.7}, questions=asked)
    found = assume_from_run(run, "accuracy")
    cells = {}
    for one in run.outcomes:
        if one.cell.task == "mcq":
            cells.setdefault((one.cell.model, one.cell.setting), []).append(one.scores["accuracy"])
    assert found.mean == pytest.approx(np.median([np.mean(column) for column in cells.values()]))
    pairs = [("a", "default"), ("a", "rag")], [("a", "default"), ("b", "default")]
    assert found.discordance == pytest.approx(
        np.median([np.mean(np.not_equal(cells[first], cells[second])) for first, second in pairs])
    )
    assert "3 cells and 2 pairs of r00000001" in found.origin
    truth = assume_from_run(run, "factual_accuracy")
    assert not truth.binary
    assert 0.1 < truth.deviation < 0.4
    assert truth.paired_deviation > truth.deviation


def test_a_run_that_cannot_tell_is_refused():
    run = experiment({("a", "default"): 0.5}, questions=questions_of(6, 0, 0))
    with pytest.raises(InputError, match="no two cells to compare"):
        assume_from_run(run, "accuracy")
    same = experiment({("a", "default"): 1.0, ("b", "default"): 1.0}, questions=questions_of(6, 0, 0))
    with pytest.raises(InputError, match="nothing can be estimated"):
        assume_from_run(same, "accuracy")
    with pytest.raises(InputError, match="no metric 'rouge'"):
        assume_from_run(run, "rouge")


@pytest.mark.parametrize(
    "make",
    [
        lambda: assume_binary(1.0),
        lambda: assume_binary(0.5, 0.0),
        lambda: assume_mean(0.0),
        lambda: assume_mean(1.0, 1.0),
        lambda: plan([], assume_binary(0.5)),
        lambda: plan([-0.1], assume_binary(0.5)),
        lambda: plan([0.1], assume_binary(0.5), power=0.01),
        lambda: plan([0.1], assume_binary(0.5), alpha=1.5),
    ],
    ids=["accuracy", "discordance", "deviation", "correlation", "nothing", "negative", "power", "alpha"],
)
def test_plans_without_sense_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_the_table_marks_approximations_and_says_what_is_assumed():
    table = plan_table(plan([0.02, 0.1, 0.25], assume_binary(0.8, 0.2)))
    assert [cells[0] for cells in table.rows] == ["2", "10", "25"]
    assert table.rows[0][1].startswith("~")
    assert not table.rows[1][1].startswith("~")
    assert table.rows[2][1:3] == ("-", "-")
    assert "80.0%" in table.note
    assert "20.0%" in table.note
    means = plan_table(replace(plan([0.1], assume_mean(0.3)), metric="factual_accuracy"))
    assert "standard deviations" in means.note
    assert "factual accuracy" in means.title
