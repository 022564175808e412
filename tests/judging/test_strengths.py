import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.judging.sorting import sort_items
from climassay.judging.strengths import fitted_strengths


def noisy(n: int, seed: int, noise: float):
    generator = np.random.default_rng(seed)
    truth = generator.normal(0, 2, n)
    errors = generator.normal(0, noise, (n, n))
    odds = truth[:, None] - truth[None] + np.triu(errors, 1) - np.triu(errors, 1).T
    return truth, lambda pairs: odds[pairs[:, 0], pairs[:, 1]]


def kendall(truth, order) -> float:
    from scipy.stats import kendalltau

    place = np.empty(len(order))
    place[list(order)] = -np.arange(len(order))
    return float(kendalltau(truth, place).statistic)


def test_a_chain_by_hand() -> None:
    # 0 beats 1 by 2 nats and 1 beats 2 by 1: strengths 5/3, -1/3, -4/3.
    pairs = np.array([[0, 1], [2, 1]])
    assert fitted_strengths(3, pairs, np.array([2.0, -1.0])) == pytest.approx([5 / 3, -1 / 3, -4 / 3], abs=0.03)


@given(st.integers(2, 12), st.integers(0, 1000))
def test_with_all_pairs_strengths_are_in_the_order_of_mean_log_odds(n: int, seed: int) -> None:
    _, ask = noisy(n, seed, 1.0)
    pairs = np.stack(np.triu_indices(n, k=1), axis=1)
    odds = ask(pairs)
    means = np.zeros(n)
    np.add.at(means, pairs[:, 0], odds)
    np.add.at(means, pairs[:, 1], -odds)
    strengths = fitted_strengths(n, pairs, odds)
    assert strengths == pytest.approx(means / n, rel=0.02, abs=1e-6)
    assert sort_items(n, ask, method="strengths").order == tuple(np.argsort(-means, kind="stable"))


def test_fitting_orders_noisy_items_better_than_merging_for_the_same_comparisons() -> None:
    gains = []
    for seed in range(10):
        truth, ask = noisy(60, seed, 1.5)
        merged, fitted = (sort_items(60, ask, method=method) for method in ("greedy", "fitted"))
        assert fitted.comparisons == merged.comparisons
        gains.append(kendall(truth, fitted.order) - kendall(truth, merged.order))
    assert np.mean(gains) > 0.05
    assert min(gains) > -0.02


def test_an_item_without_comparisons_and_no_items_at_all() -> None:
    assert fitted_strengths(3, np.array([[0, 1]]), np.array([1.0]))[2] == 0
    assert fitted_strengths(0, np.zeros((0, 2), dtype=np.int64), np.zeros(0)).shape == (0,)
    assert sort_items(1, lambda pairs: np.zeros(len(pairs)), method="strengths").order == (0,)
