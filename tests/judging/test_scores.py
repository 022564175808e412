"""Figures against hand-worked examples, and intervals that speak of new articles, not of new pairs."""

import numpy as np
import pytest

from climassay.judging.scores import JudgedPairs, Units, correctness, correlations, three_way_correctness


def test_correctness_by_hand() -> None:
    test = JudgedPairs(
        pairs=np.array([[0, 1], [0, 2], [1, 2], [3, 4]]),
        truth=np.array([1.0, -2.0, 0.5, 0.0]),
        log_odds=np.array([0.3, 0.1, 0.0, -0.2]),
        predicted=np.array([1, 0, 0, 0]),
    )
    assert correctness(test)[:3].tolist() == [1.0, 0.0, 0.5]
    assert three_way_correctness(test).tolist() == [1.0, 0.0, 0.0, 1.0]


def pairs_of(groups: int, each: int) -> np.ndarray:
    return np.array([(g * each + a, g * each + b) for g in range(groups) for a in range(each) for b in range(a)])


def test_an_interval_over_groups_does_not_shrink_with_more_pairs_of_the_same_groups() -> None:
    """Ten articles right throughout or wrong throughout: n is ten, however many summaries each has."""
    widths = []
    for each in (2, 12):
        pairs = pairs_of(10, each)
        right = (pairs[:, 0] // each % 2).astype(float)
        figure = Units.of([f"g{index // each}" for index in range(10 * each)], seed=1).mean(right, pairs)
        assert figure.value == pytest.approx(0.5)
        assert figure.low is not None
        assert figure.high is not None
        widths.append(figure.high - figure.low)
    assert widths[0] == pytest.approx(widths[1], abs=1e-9)
    assert 0.5 < widths[0] < 0.7  # a binomial of ten articles: 2 * 1.96 * sqrt(.25 / 10) = 0.62


def test_items_are_the_units_where_all_form_one_group() -> None:
    units = Units.of([""] * 20, seed=0)
    assert units.of_item.tolist() == list(range(20))
    pairs = np.array([(a, b) for a in range(20) for b in range(a)])
    weights = units.pair_weights(pairs)
    assert weights.shape == (2000, 190)
    # Drawn twice both: four times the pair; an item's copies are not paired with each other.
    assert weights[0, 0] == units.counts[0, 1] * units.counts[0, 0]


def test_a_paired_difference_sees_what_two_intervals_hide() -> None:
    """Articles vary widely, but one judge is better by the same bit in each of them."""
    generator = np.random.default_rng(0)
    pairs = pairs_of(40, 3)
    level = generator.uniform(0.2, 0.8, 40)[pairs[:, 0] // 3]
    worse = (generator.uniform(size=len(pairs)) < level).astype(float)
    better = np.maximum(worse, (generator.uniform(size=len(pairs)) < 0.15).astype(float))
    units = Units.of([f"g{index // 3}" for index in range(120)], seed=0)
    found = units.difference(worse, better, pairs)
    assert found.difference.low is not None
    assert found.difference.low > 0
    assert found.p_value is not None
    assert 0 < found.p_value < 0.01
    same = units.difference(worse, worse, pairs)
    assert same.difference.value == 0
    assert same.p_value == 1.0
    first, second = units.mean(worse, pairs), units.mean(better, pairs)
    assert first.high is not None
    assert second.low is not None
    assert second.low < first.high


def test_correlations_by_group_and_by_item() -> None:
    labels = np.array([1.0, 2, 3, 3, 1, 2, 5, 5, 5])
    groups = ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    rankings = [(np.arange(3) + 3 * g, np.array([1.0, 2.0, 3.0])) for g in range(3)]
    found = correlations(Units.of(groups), rankings, labels)
    # Group a: rho 1; group b (3, 1, 2 against 1, 2, 3): rho -0.5, tau -1/3; group c is constant and has none.
    assert found["spearman"].value == pytest.approx(0.25)
    assert found["kendall"].value == pytest.approx((1 - 1 / 3) / 2)
    assert found["spearman"].n == 2
    one = correlations(Units.of([""] * 6), [(np.arange(6), np.arange(6.0))], np.array([1.0, 2, 3, 4, 6, 5]))
    assert one["spearman"].value == pytest.approx(1 - 6 * 2 / (6 * 35))
    assert one["spearman"].n == 6


def test_a_judge_who_says_nothing_has_no_correlation() -> None:
    found = correlations(Units.of(["a"] * 3 + ["b"] * 3), [(np.arange(3), np.zeros(3))], np.arange(6.0))
    assert found["spearman"].value == 0.0


def test_nothing_to_measure_is_said_and_not_a_number_made_up() -> None:
    empty = Units.of(["a", "b"]).mean(np.zeros(0), np.zeros((0, 2), dtype=np.int64))
    assert (empty.value, empty.low, empty.high, empty.n) == (None, None, None, 0)
