import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.statistics import classification_scores, constant_baseline, expected_calibration_error


def test_constant_baseline_beats_a_published_system():
    # Climate Feedback, 170 claims in five classes: always "incorrect" is right on 117 of them (68.82%), which is more
    # than the 64.71% of the published system.
    truth = ["incorrect"] * 117 + ["other"] * 53
    assert round(100 * constant_baseline(truth).accuracy, 2) == 68.82


def test_scores_agree_with_sklearn_and_count_missing():
    from sklearn.metrics import balanced_accuracy_score, f1_score

    truth = list("aaabbbccca")
    predicted = list("aabbbccccb")
    scores = classification_scores(truth, predicted)
    assert scores.macro_f1 == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert scores.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, predicted))
    assert scores.accuracy.value == pytest.approx(0.7)
    holes = classification_scores(truth, [None, *predicted[1:]])
    assert holes.missing == 1
    assert holes.accuracy.value == pytest.approx(0.6)
    assert holes.accuracy.n == 10


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["a", "b", None])), min_size=1, max_size=30))
def test_scores_stay_in_range(pairs):
    truth, predicted = zip(*pairs, strict=True)
    scores = classification_scores(truth, predicted)
    assert 0 <= scores.macro_f1 <= 1
    assert scores.accuracy.interval.low <= scores.accuracy.value <= scores.accuracy.interval.high


def test_calibration():
    assert expected_calibration_error([0.95] * 10, [1] * 10) == pytest.approx(0.05)
    assert expected_calibration_error([0.75] * 4 + [0.25] * 4, [1, 1, 1, 0, 1, 0, 0, 0]) == pytest.approx(0.0)
    with pytest.raises(InputError):
        expected_calibration_error([], [])
