import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from climassay.errors import InputError
from climassay.judging.probe import three_way
from climassay.learning.calibration import fit_scale, fit_tie_band
from climassay.learning.evaluation import brier_score, calibration
from climassay.statistics import reliability_curve, wilson_interval


def test_brier_matches_hand_worked_example():
    # Squared distances: 0.01, 0.16, 0.09 and 0.64.
    assert brier_score([0.9, 0.6, 0.3, 0.8], [1, 1, 0, 0]) == pytest.approx(0.90 / 4)


def test_summary_matches_hand_worked_example():
    found = calibration([0.9, 0.6, 0.3, 0.8], [1, 1, 0, 0], bins=10)
    assert found.n == 4
    assert found.brier_constant == pytest.approx(0.25)
    assert found.log_loss == pytest.approx(-(np.log(0.9) + np.log(0.6) + np.log(0.7) + np.log(0.2)) / 4)
    # Confidences 0.9, 0.6, 0.7, 0.8, of which only the last is wrong, each in its own bin.
    assert found.expected_calibration_error == pytest.approx((0.1 + 0.4 + 0.3 + 0.8) / 4)


def test_reliability_bins_by_equal_width():
    curve = reliability_curve([0.05, 0.15, 0.95, 1.0, 0.9], [0, 1, 1, 1, 0], bins=2)
    assert [one.accuracy.n for one in curve] == [2, 3]
    assert curve[0].confidence == pytest.approx(0.1)
    assert curve[0].accuracy.value == pytest.approx(0.5)
    assert curve[1].accuracy.value == pytest.approx(2 / 3)
    assert curve[1].accuracy.interval == wilson_interval(2, 3)


def test_reliability_leaves_out_empty_bins():
    assert [one.accuracy.n for one in reliability_curve([0.1, 0.9, 0.95], [0, 1, 1], bins=10)] == [1, 2]


@pytest.mark.parametrize(
    ("probabilities", "outcomes"),
    [([], []), ([0.5], [1, 0]), ([1.2], [1]), ([0.5], [0.5]), ([float("nan")], [1])],
    ids=["empty", "lengths", "range", "outcome", "nan"],
)
def test_refuses_what_is_no_probability(probabilities, outcomes):
    with pytest.raises(InputError):
        calibration(probabilities, outcomes)


@given(st.lists(st.tuples(st.floats(0.001, 0.999), st.booleans()), min_size=1, max_size=60))
def test_swapping_every_pair_changes_nothing(rows):
    probability = np.array([p for p, _ in rows])
    outcome = np.array([float(came) for _, came in rows])
    ours, swapped = calibration(probability, outcome), calibration(1 - probability, 1 - outcome)
    assert swapped.brier == pytest.approx(ours.brier)
    assert swapped.log_loss == pytest.approx(ours.log_loss)
    assert swapped.brier_constant == pytest.approx(ours.brier_constant)


def test_scale_recovers_an_overconfident_factor():
    rng = np.random.default_rng(0)
    true = rng.normal(0, 1.5, 20_000)
    outcomes = np.where(rng.random(20_000) < expit(true), 1, -1)
    assert fit_scale(3 * true, outcomes, independent=20_000) == pytest.approx(1 / 3, rel=0.05)


def test_scale_stays_finite_without_a_single_mistake():
    few = fit_scale([1.0, 2.0], [1, 1], independent=3)
    many = fit_scale([1.0, 2.0], [1, 1], independent=300)
    assert 0.5 < few < many < 20


def test_scale_of_a_probe_that_is_wrong_gives_up_confidence():
    assert fit_scale([1.0, 2.0, -1.0], [-1, -1, 1], independent=3) == pytest.approx(1e-3)
    assert fit_scale([], [], independent=0) == 1.0


def _best_by_trying_all(odds, outcomes):
    bands = [0.0, *np.abs(odds)]
    return max(float(np.mean(three_way(odds, band) == outcomes)) for band in bands)


@given(st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1, 0, 1])), min_size=1, max_size=40))
def test_tie_band_is_as_good_as_trying_every_band(rows):
    odds = np.array([value / 2 for value, _ in rows])
    outcomes = np.array([outcome for _, outcome in rows])
    band = fit_tie_band(odds, outcomes)
    assert float(np.mean(three_way(odds, band) == outcomes)) == pytest.approx(_best_by_trying_all(odds, outcomes))
    if not (outcomes == 0).any():
        assert band == 0


def test_tie_band_lies_between_ties_and_the_rest():
    assert fit_tie_band([0.1, -0.2, 1.0, -2.0], [0, 0, 1, -1]) == pytest.approx(0.6)
