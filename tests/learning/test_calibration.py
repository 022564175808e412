"""Calibration: figures against hand-worked examples, scales, tie bands, calibrators and thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from climassay.errors import InputError
from climassay.judging.probe import three_way
from climassay.learning import calibration, find_threshold, fit_calibrator, group_folds, reweight
from climassay.learning.calibration import cross_fit, fit_scale, fit_tie_band


def test_summary_matches_hand_worked_example():
    found = calibration([0.9, 0.6, 0.3, 0.8], [1, 1, 0, 0], bins=10)
    assert found.n == 4
    assert found.brier_constant == pytest.approx(0.25)
    assert found.log_loss == pytest.approx(-(np.log(0.9) + np.log(0.6) + np.log(0.7) + np.log(0.2)) / 4)
    # Confidences 0.9, 0.6, 0.7, 0.8, of which only the last is wrong, each in its own bin.
    assert found.expected_calibration_error == pytest.approx((0.1 + 0.4 + 0.3 + 0.8) / 4)
    # Who says one half of everything is undecided, and right by half.
    assert calibration([0.5] * 4, [1, 0, 0, 1]).expected_calibration_error == 0.0


@pytest.mark.parametrize(
    ("probabilities", "outcomes"),
    [([], []), ([0.5], [1, 0]), ([1.2], [1]), ([0.5], [0.5]), ([float("nan")], [1])],
    ids=["empty", "lengths", "range", "outcome", "nan"],
)
def test_refuses_what_is_no_probability(probabilities, outcomes):
    with pytest.raises(InputError):
        calibration(probabilities, outcomes)


def test_scale_recovers_an_overconfident_factor():
    rng = np.random.default_rng(0)
    true = rng.normal(0, 1.5, 20_000)
    outcomes = np.where(rng.random(20_000) < expit(true), 1, -1)
    assert fit_scale(3 * true, outcomes, independent=20_000) == pytest.approx(1 / 3, rel=0.05)


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


def drawn(n, slope, intercept, seed=0):
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=n) * 3
    return scores, (generator.random(n) < expit(slope * scores + intercept)).astype(int)


def test_platt_finds_the_parameters_that_made_the_labels():
    scores, valid = drawn(20_000, 0.6, 1.2)
    found = fit_calibrator(scores, valid, "platt")
    plain = LogisticRegression(C=1e9).fit(scores[:, None], valid)
    assert found.slope == pytest.approx(float(plain.coef_[0, 0]), rel=5e-3)
    assert found.intercept == pytest.approx(float(plain.intercept_[0]), rel=5e-3)


def test_scores_against_the_labels_give_everybody_the_base_rate():
    scores, valid = drawn(400, -1.0, 1.0)
    found = fit_calibrator(scores, valid)
    assert found.slope == 0
    assert np.allclose(found(scores), valid.mean(), atol=0.01)


def test_few_labels_get_platt_and_many_isotonic():
    assert fit_calibrator(*drawn(300, 1, 1)).method == "platt"
    assert fit_calibrator(*drawn(900, 1, 0)).method == "isotonic"


@given(st.integers(0, 10_000), st.sampled_from(["platt", "isotonic"]))
def test_probabilities_never_fall_and_stay_within_bounds(seed, method):
    scores, valid = drawn(40, 0.5, 0.5, seed)
    ordered = np.linspace(-20, 20, 50)
    found = fit_calibrator(scores, valid, method)(ordered)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= -1e-12).all()


def test_each_item_is_calibrated_by_others():
    scores, valid = drawn(60, 1, 0)
    folds = np.arange(60) % 3
    found = cross_fit(scores, valid, folds)
    outside = folds != 1
    assert np.allclose(found[~outside], fit_calibrator(scores[outside], valid[outside])(scores[~outside]))


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=4, max_size=60), st.integers(0, 5))
def test_folds_part_no_group_and_share_out_the_invalid(rows, seed):
    groups, valid = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=int)
    if len(set(groups.tolist())) < 2:
        return
    folds = group_folds(groups, 3, seed=seed, labels=valid)
    assert all(len(set(folds[groups == one].tolist())) == 1 for one in set(groups.tolist()))
    invalid = [int(((folds == fold) & (valid == 0)).sum()) for fold in range(min(3, len(set(groups.tolist()))))]
    largest = max((int(((groups == one) & (valid == 0)).sum()) for one in set(groups.tolist())), default=0)
    assert max(invalid) - min(invalid) <= max(1, largest)


def test_the_lowest_threshold_that_reaches_the_precision():
    # By falling probability: 1 1 1 1 0 1 1 0 0 0; precision 6/7 at seven kept, 0.75 at eight.
    probabilities = np.linspace(1.0, 0.1, 10)
    labels = np.array([1, 1, 1, 1, 0, 1, 1, 0, 0, 0])
    found = find_threshold(0.85, labels, probabilities, min_kept=3)
    assert found.value == pytest.approx(probabilities[6])
    assert found.precision.value == pytest.approx(6 / 7)
    assert found.yield_.value == pytest.approx(0.7)
    assert found.precision.interval.low < 0.85


def test_equal_probabilities_stay_together():
    labels, probabilities = [1, 1, 0, 0], [0.9, 0.5, 0.5, 0.1]
    found = find_threshold(0.6, labels, probabilities, min_kept=1)
    assert (found.value, found.yield_.value) == (0.5, 0.75)
    with pytest.raises(InputError):
        find_threshold(0.9, labels, [0.5] * 4, min_kept=1)


def test_what_cannot_be_reached_is_refused_with_what_can():
    labels, probabilities = [1] * 15 + [0] * 15, np.tile(np.linspace(0, 1, 15), 2)
    with pytest.raises(InputError, match=r"95.0% cannot be reached .* at most 50.0%, by keeping"):
        find_threshold(0.95, labels, probabilities)


def test_too_few_labels_say_nothing():
    with pytest.raises(InputError, match="at least 20 labelled"):
        find_threshold(0.5, [1] * 5, [0.5] * 5)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10)), min_size=6, max_size=40), st.floats(0.1, 1.0))
def test_whatever_is_chosen_keeps_its_promise_on_the_labels(rows, precision):
    labels = np.array([row[0] for row in rows], dtype=int)
    probabilities = np.array([row[1] for row in rows]) / 10
    try:
        found = find_threshold(precision, labels, probabilities, min_kept=2)
    except InputError:
        shares = [labels[probabilities >= t].mean() for t in set(probabilities) if (probabilities >= t).sum() >= 2]
        assert all(share < precision for share in shares)
        return
    kept = probabilities >= found.value
    assert labels[kept].mean() == pytest.approx(found.precision.value)
    assert found.precision.value >= precision - 1e-9
    # No lower threshold would do.
    lower = [t for t in set(probabilities) if t < found.value]
    assert all(labels[probabilities >= t].mean() < precision for t in lower)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: fit_calibrator([0.5], [1, 0]), "one label for each score"),
        (lambda: find_threshold(0.9, [1], [0.5, 0.5]), "one label for each probability"),
        (lambda: find_threshold(0.0, [1], [0.5]), "give a share above 0"),
        (lambda: reweight([[0.5, 0.5]], [0.0, 1.0]), "Class shares must be positive"),
    ],
    ids=["calibrator", "labels", "precision", "shares"],
)
def test_what_cannot_be_calibrated_is_refused(asked, message):
    with pytest.raises(InputError, match=message):
        asked()


def test_scores_that_never_vary_give_the_base_rate():
    assert fit_calibrator([0.3] * 40, [1, 0, 0, 0] * 10)(0.3) == pytest.approx(0.25, abs=0.02)
