"""Linear models: gradients against differences, fits against scikit-learn, scaling folded into the weights."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from climassay.errors import InputError
from climassay.learning import fit_linear, fit_path, softmax
from climassay.learning.linear import Scaling, ordinal_loss


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def drawn(generator, items=60, features=5, classes=3):
    rows = generator.normal(size=(items, features)) * [1, 10, 0.1, 1, 3]
    truth = (rows @ generator.normal(size=(features, classes))).argmax(axis=1)
    return rows, truth


def test_a_block_alone_is_fitted_as_scikit_learn_fits_it_standardised(generator):
    rows, truth = drawn(generator)
    model = fit_linear([rows], truth, 3, regularisation=2.0)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0) / np.sqrt(5)
    wanted = LogisticRegression(C=2.0, max_iter=300).fit(scaled, truth).predict_proba(scaled)
    assert model.probabilities([rows]) == pytest.approx(wanted, abs=1e-4)


def test_more_features_than_items_give_the_same_model_by_way_of_the_span(generator):
    wide = generator.normal(size=(30, 200))
    truth = (wide[:, 0] > 0).astype(int)
    scaling = Scaling.fit([wide])
    scaled = (wide - scaling.mean) * scaling.factor
    wanted = LogisticRegression(C=1.0, max_iter=2000, tol=1e-8).fit(scaled, truth).decision_function(scaled)
    (model,) = fit_path([wide], truth, 2, [1.0])
    assert model.log_odds([wide]) == pytest.approx(wanted, abs=1e-2)


def test_a_wide_block_does_not_drown_a_narrow_one(generator):
    narrow, wide = generator.normal(size=(200, 1)), generator.normal(size=(200, 50)) * 100
    scaling = Scaling.fit([narrow, wide])
    scaled = (np.concatenate([narrow, wide], axis=1) - scaling.mean) * scaling.factor
    assert (scaled[:, :1] ** 2).sum(axis=1).mean() == pytest.approx((scaled[:, 1:] ** 2).sum(axis=1).mean())


def test_unstandardised_features_keep_their_proportions(generator):
    block = generator.normal(size=(100, 2)) * [1.0, 5.0]
    factor = Scaling.fit([block], standardise=False).factor
    assert factor[0] == factor[1]


def test_sparse_and_dense_blocks_side_by_side(generator):
    dense = generator.normal(size=(50, 3))
    counts = generator.poisson(0.3, size=(50, 20)).astype(float)
    truth = (counts[:, 0] + dense[:, 0] > 0.3).astype(int)
    model = fit_linear([csr_array(counts), dense], truth, 2, regularisation=5.0, standardise=False)
    assert (model.probabilities([csr_array(counts), dense]).argmax(axis=1) == truth).mean() > 0.85


def test_a_constant_feature_gets_no_weight_and_an_absent_class_no_probability(generator):
    rows = np.concatenate([generator.normal(size=(40, 1)), np.ones((40, 1))], axis=1)
    model = fit_linear([rows], (rows[:, 0] > 0).astype(int) * 2, 4)
    assert (model.weights[1] == 0).all()
    assert model.probabilities([rows])[:, [1, 3]].max() < 1e-9


def test_items_of_one_class_give_a_constant(generator):
    model = fit_linear([generator.normal(size=(5, 2))], np.ones(5, dtype=int), 2)
    assert model.probabilities([generator.normal(size=(3, 2))])[:, 1] == pytest.approx(1.0)


def test_ordinal_gradients_are_those_of_differences(generator):
    truth = np.array([0, 1, 2, 3, 1, 2])
    loss = ordinal_loss(truth, 4)
    point = generator.normal(size=6 + 3)
    value = lambda at: loss(at[:6], at[6:])[0]  # noqa: E731
    slope = lambda at: np.concatenate(loss(at[:6], at[6:])[1:])  # noqa: E731
    assert check_grad(value, slope, point) < 1e-5


def test_ordinal_probabilities_are_a_staircase_with_ascending_thresholds(generator):
    scores = generator.normal(size=(300, 1))
    truth = np.digitize(scores[:, 0], [-1, 0, 1])
    model = fit_linear([scores], truth, 4, link="ordinal", regularisation=100.0)
    found = model.probabilities([scores])
    assert (np.diff(model.bias) > 0).all()
    assert found.sum(axis=1) == pytest.approx(1)
    assert (found.argmax(axis=1) == truth).mean() > 0.95


def test_softmax_stands_large_numbers_and_no_rows():
    assert softmax(np.array([[1e4, 1e4, -1e4]])) == pytest.approx(np.array([[0.5, 0.5, 0.0]]))
    assert softmax(np.zeros((0, 3))).shape == (0, 3)


def test_another_number_of_features_is_refused(generator):
    model = fit_linear([generator.normal(size=(5, 2))], np.array([0, 1, 0, 1, 0]), 2)
    with pytest.raises(InputError, match="reads 2 features, but there are 3"):
        model.probabilities([np.zeros((1, 3))])
