import pytest

from climassay.errors import InputError
from climassay.statistics import constant_baseline, expected_calibration_error


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
