import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.statistics import constant_baseline, expected_calibration_error, reliability_curve, selective_curve


def test_constant_baseline_beats_a_published_system():
    # Climate Feedback, 170 claims in five classes: always "incorrect" is right on 117 of them (68.82%), which is more
    # than the 64.71% of the published system.
    truth = ["incorrect"] * 117 + ["other"] * 53
    assert round(100 * constant_baseline(truth).accuracy, 2) == 68.82


def test_calibration():
    assert expected_calibration_error([0.95] * 10, [1] * 10) == pytest.approx(0.05)
    assert expected_calibration_error([0.75] * 4 + [0.25] * 4, [1, 1, 1, 0, 1, 0, 0, 0]) == pytest.approx(0.0)
    with pytest.raises(InputError):
        expected_calibration_error([], [])


ANSWERS = st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9]), st.booleans()), min_size=1, max_size=30)


def test_a_curve_worked_by_hand():
    curve = selective_curve([0.7, 0.9, 0.8], [True, True, False])
    assert [point.coverage for point in curve.points] == pytest.approx([1 / 3, 2 / 3, 1])
    assert [point.accuracy.value for point in curve.points] == pytest.approx([1, 1 / 2, 2 / 3])
    assert curve.area == pytest.approx((1 + 1 / 2 + 2 / 3) / 3)
    assert curve.aurc == pytest.approx(1 - curve.area)
    assert curve.unordered == pytest.approx(2 / 3)


def test_equally_sure_answers_make_one_point_and_the_area_of_any_order():
    curve = selective_curve([0.5] * 4, [True, False, False, True])
    assert [(point.coverage, point.accuracy.value) for point in curve.points] == [(1.0, 0.5)]
    assert curve.area == pytest.approx(curve.unordered)


@given(ANSWERS)
def test_the_gaps_of_the_reliability_curve_are_the_calibration_error(answers):
    confidence, correct = zip(*answers, strict=True)
    bins = reliability_curve(confidence, correct)
    gap = sum(abs(one.confidence - one.accuracy.value) * one.accuracy.n for one in bins) / len(answers)
    assert gap == pytest.approx(expected_calibration_error(confidence, correct), abs=1e-12)
    assert sum(one.accuracy.n for one in bins) == len(answers)
    assert all(one.low - 1e-9 <= one.confidence <= one.high + 1e-9 for one in bins)


@pytest.mark.parametrize(
    ("confidence", "correct", "items"),
    [([], [], None), ([0.5], [True, False], None), ([0.5, 0.6], [True, False], 1)],
    ids=["none", "lengths", "more answers than items"],
)
def test_a_curve_without_sense_is_refused(confidence, correct, items):
    with pytest.raises(InputError):
        selective_curve(confidence, correct, items=items)


@pytest.mark.parametrize(("confidence", "correct"), [([], []), ([1.2], [1]), ([0.5], [1, 0])])
def test_a_reliability_curve_without_sense_is_refused(confidence, correct):
    with pytest.raises(InputError):
        reliability_curve(confidence, correct)
