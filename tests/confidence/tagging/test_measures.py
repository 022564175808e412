import numpy as np
import pytest

from climassay.confidence.tagging.measures import (
    CLIMATEX_MIX,
    Tagged,
    by_group,
    reweighted,
    score_tagger,
    small_tests,
)
from climassay.errors import InputError


def tagged(truth, said, groups=None, levels=4) -> Tagged:
    truth = np.array(truth)
    rows = np.full((len(truth), levels), 0.1 / (levels - 1))
    rows[np.arange(len(truth)), said] = 0.9
    return Tagged(truth, rows, np.arange(len(truth)) if groups is None else np.array(groups))


def test_the_measures_by_hand() -> None:
    scores = score_tagger(tagged([0, 1, 1, 2], [0, 1, 0, 0], levels=3), resamples=20)
    assert scores.accuracy.value == 0.5
    assert scores.balanced_accuracy.value == pytest.approx((1 + 0.5 + 0) / 3)
    assert scores.macro_f1.value == pytest.approx((2 / 4 + 2 / 3 + 0) / 3)
    assert scores.ordinal_error.value == pytest.approx((1 + 2) / 4)
    assert scores.log_loss.value == pytest.approx(-(2 * np.log(0.9) + 2 * np.log(0.05)) / 4)


def test_a_constant_reaches_the_published_accuracy_on_climatex_mix() -> None:
    # Lacombe et al. 2023: always "high" is right for 100 of 300.
    truth = np.repeat([0, 1, 2, 3], [20, 200, 400, 60])
    constant = tagged(truth, np.full(len(truth), 2))
    found = score_tagger(constant, CLIMATEX_MIX, resamples=50)
    assert found.accuracy.value == pytest.approx(1 / 3)
    assert found.accuracy.interval == pytest.approx((1 / 3, 1 / 3))
    assert found.balanced_accuracy.value == 0.25


def test_the_weighted_score_is_the_mean_of_small_tests() -> None:
    generator = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2, 3], [80, 300, 500, 90])
    said = np.where(generator.random(len(truth)) < 0.5, truth, generator.integers(0, 4, len(truth)))
    one = tagged(truth, said)
    weighted = score_tagger(one, CLIMATEX_MIX, resamples=2).accuracy.value
    drawn = small_tests(one, draws=400)
    assert drawn.mean() == pytest.approx(weighted, abs=0.004)
    assert drawn.std() > 0.005


def test_intervals_are_over_sections() -> None:
    truth = np.tile([0, 1, 2, 3], 50)
    said = np.where(np.arange(200) < 100, truth, (truth + 1) % 4)
    by_statement = score_tagger(tagged(truth, said), resamples=200).accuracy.interval
    by_section = score_tagger(tagged(truth, said, np.arange(200) // 50), resamples=200).accuracy.interval
    assert by_section.high - by_section.low > 2 * (by_statement.high - by_statement.low)


def test_another_mix_follows_bayes() -> None:
    assert reweighted([[0.5, 0.5]], [0.8, 0.2], [1, 1])[0] == pytest.approx([0.2, 0.8])
    assert reweighted([[0.3, 0.7]], [0.5, 0.5], [3, 3])[0] == pytest.approx([0.3, 0.7])


def test_confusion_counts_truth_by_answer() -> None:
    found = tagged([0, 0, 1], [0, 1, 1], levels=2).confusion
    assert found.tolist() == [[1, 1], [0, 1]]


def test_scores_by_topic() -> None:
    one = tagged([0, 1, 2, 3] * 10, [0, 1, 2, 3] * 5 + [1, 2, 3, 0] * 5)
    found = by_group(one, ["ice"] * 20 + ["sea"] * 15 + ["rare"] * 5, smallest=10, resamples=5)
    assert list(found) == ["ice", "sea"]
    assert found["ice"].accuracy.value == 1.0
    assert found["sea"].accuracy.value == 0.0
    assert found["sea"].accuracy.n == 15


def test_refusals() -> None:
    one = tagged([0, 1], [0, 1])
    with pytest.raises(InputError, match="no held-out"):
        score_tagger(one, CLIMATEX_MIX)
    with pytest.raises(InputError, match="at least as many"):
        small_tests(one)
    with pytest.raises(InputError, match="2 statements have 1 groups"):
        by_group(one, ["a"])
    with pytest.raises(InputError, match="at least one"):
        Tagged(np.zeros(0, dtype=int), np.zeros((0, 4)), np.zeros(0, dtype=int))
