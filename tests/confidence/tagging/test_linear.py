import numpy as np
import pytest
from scipy.sparse import csr_array

from climassay.confidence.tagging.linear import LevelModel, fit_levels
from climassay.errors import InputError


def lesson(seed=0, count=400):
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(count, 3)) + 5
    truth = np.digitize(features[:, 0] - 5 + 0.15 * generator.normal(size=count), [-1, 0, 1])
    return features, truth


@pytest.mark.parametrize("kind", ["nominal", "ordinal"])
def test_finds_levels_on_data_not_seen(kind) -> None:
    features, truth = lesson()
    model = fit_levels([features], truth, 4, kind=kind, regularisation=100.0)
    fresh, wanted = lesson(seed=1)
    found = model.probabilities([fresh])
    assert found.sum(axis=1) == pytest.approx(1)
    assert (found >= 0).all()
    assert (found.argmax(axis=1) == wanted).mean() > 0.8


def test_ordinal_gradient_leads_to_the_maximum() -> None:
    features, truth = lesson()
    model = fit_levels([features], truth, 4, kind="ordinal", regularisation=1e6)

    def loss(weights, bias) -> float:
        found = LevelModel("ordinal", weights, bias).probabilities([features])
        return float(-np.log(found[np.arange(len(truth)), truth]).sum())

    best = loss(model.weights, model.bias)
    generator = np.random.default_rng(0)
    for _ in range(20):
        other = loss(
            model.weights + 0.02 * generator.normal(size=model.weights.shape),
            model.bias + 0.02 * generator.normal(size=model.bias.shape),
        )
        assert other > best - 0.01


def test_ordinal_by_hand() -> None:
    model = LevelModel("ordinal", np.ones((1, 1)), np.array([-1.0, 1.0]))
    upper, lower = 1 / (1 + np.exp(1)), 1 / (1 + np.exp(-1))
    assert model.probabilities([np.zeros((1, 1))])[0] == pytest.approx([1 - lower, lower - upper, upper])


def test_sparse_and_dense_blocks_give_nearly_the_same() -> None:
    generator = np.random.default_rng(2)
    words = (generator.random((200, 6)) < 0.3).astype(float)
    truth = np.where(words[:, 0] > 0, 2, generator.integers(0, 2, 200))
    dense = fit_levels([words, words[:, :2]], truth, 3).probabilities([words, words[:, :2]])
    mixed = fit_levels([csr_array(words), words[:, :2]], truth, 3).probabilities([csr_array(words), words[:, :2]])
    assert (dense.argmax(axis=1) == mixed.argmax(axis=1)).mean() > 0.9


def test_a_level_that_does_not_occur_is_never_given() -> None:
    features, truth = lesson()
    kept = np.isin(truth, [0, 2])
    found = fit_levels([features[kept]], truth[kept], 4).probabilities([features])
    assert set(found.argmax(axis=1)) == {0, 2}
    assert found[:, [1, 3]].max() < 1e-6


def test_a_block_of_zeros_changes_nothing() -> None:
    features, truth = lesson()
    plain = fit_levels([features], truth, 4).probabilities([features])
    zeros = np.zeros((len(features), 2))
    more = fit_levels([features, zeros], truth, 4).probabilities([features, zeros])
    assert more == pytest.approx(plain, abs=1e-3)


def test_refusals() -> None:
    features, truth = lesson()
    with pytest.raises(InputError, match="two levels"):
        fit_levels([features], np.zeros(len(features), dtype=int), 4)
    with pytest.raises(InputError, match="no kind"):
        fit_levels([features], truth, 4, kind="cubic")
    with pytest.raises(InputError, match="reads 3 features"):
        fit_levels([features], truth, 4).probabilities([features[:, :2]])
