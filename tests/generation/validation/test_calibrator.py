import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from climassay.errors import InputError
from climassay.generation.validation.calibrator import (
    check_labels,
    cross_fitted,
    fit_calibrator,
    stratified_folds,
)


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
    folds = stratified_folds(valid, groups, 3, seed=seed)
    assert all(len(set(folds[groups == one].tolist())) == 1 for one in set(groups.tolist()))
    invalid = [int(((folds == fold) & (valid == 0)).sum()) for fold in range(min(3, len(set(groups.tolist()))))]
    largest = max((int(((groups == one) & (valid == 0)).sum()) for one in set(groups.tolist())), default=0)
    assert max(invalid) - min(invalid) <= max(1, largest)


def test_one_group_cannot_be_split():
    with pytest.raises(InputError, match="1 passages"):
        stratified_folds([0, 1], [5, 5], 5)


def test_labels_of_one_kind_teach_nothing():
    with pytest.raises(InputError, match="at least two valid and two invalid"):
        check_labels([1, 1, 1, 0])
