import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from climassay.errors import InputError
from climassay.learning import fit_calibrator, group_folds, threshold_for
from climassay.learning.calibration import cross_fitted


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


def test_perfect_separation_does_not_claim_certainty():
    scores, valid = np.arange(20.0), np.repeat([0, 1], 10)
    found = fit_calibrator(scores, valid, "platt")(scores)
    assert 0 < found[0] < 0.5 < found[-1] < 1


def test_each_item_is_calibrated_by_others():
    scores, valid = drawn(60, 1, 0)
    folds = np.arange(60) % 3
    found = cross_fitted(scores, valid, folds)
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
    found = threshold_for(0.85, labels, probabilities, least_kept=3)
    assert found.value == pytest.approx(probabilities[6])
    assert found.precision.value == pytest.approx(6 / 7)
    assert found.yield_.value == pytest.approx(0.7)
    assert found.precision.interval.low < 0.85


def test_equal_probabilities_stay_together():
    labels, probabilities = [1, 1, 0, 0], [0.9, 0.5, 0.5, 0.1]
    found = threshold_for(0.6, labels, probabilities, least_kept=1)
    assert (found.value, found.yield_.value) == (0.5, 0.75)
    with pytest.raises(InputError):
        threshold_for(0.9, labels, [0.5] * 4, least_kept=1)


def test_what_cannot_be_reached_is_refused_with_what_can():
    labels, probabilities = [1] * 15 + [0] * 15, np.tile(np.linspace(0, 1, 15), 2)
    with pytest.raises(InputError, match=r"95.0% cannot be reached .* at most 50.0%, by keeping"):
        threshold_for(0.95, labels, probabilities)


def test_too_few_labels_say_nothing():
    with pytest.raises(InputError, match="at least 20 labelled"):
        threshold_for(0.5, [1] * 5, [0.5] * 5)


def test_surely_asks_the_interval():
    labels, probabilities = np.ones(30, dtype=int), np.linspace(0, 1, 30)
    assert threshold_for(0.95, labels, probabilities).yield_.value == 1
    with pytest.raises(InputError, match="is sure of at most 88"):
        threshold_for(0.95, labels, probabilities, surely=True)


@pytest.mark.parametrize("precision", [0.0, -1.0, 1.5])
def test_a_precision_is_a_share(precision):
    with pytest.raises(InputError, match="give a share"):
        threshold_for(precision, [1] * 30, [0.5] * 30)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10)), min_size=6, max_size=40), st.floats(0.1, 1.0))
def test_whatever_is_chosen_keeps_its_promise_on_the_labels(rows, precision):
    labels = np.array([row[0] for row in rows], dtype=int)
    probabilities = np.array([row[1] for row in rows]) / 10
    try:
        found = threshold_for(precision, labels, probabilities, least_kept=2)
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
