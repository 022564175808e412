"""Antisymmetric log-odds [n, n] of items in descending order of quality, with Gaussian noise."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.judging import sort_items
from climassay.judging.merging import (
    interleave,
    merge_all_pairs,
    merge_beam,
    merge_exact,
    merge_greedy,
    step_logprobs,
)
from climassay.judging.preferences import Comparisons
from climassay.judging.ranking import sort_groups


def preferences(n, seed, spread=1.0, noise=1.0):
    """Antisymmetric log-odds [n, n] of items in descending order of quality, with Gaussian noise."""
    generator = np.random.default_rng(seed)
    quality = -np.arange(n) * spread
    above = np.triu(quality[:, None] - quality[None, :] + generator.normal(scale=noise, size=(n, n)), 1)
    return above - above.T


def asking(log_odds, batches=None):
    def ask(pairs):
        if batches is not None:
            batches.append(pairs.copy())
        return log_odds[pairs[:, 0], pairs[:, 1]]

    return ask


def look_up_in(log_odds):
    return Comparisons(asking(log_odds), len(log_odds)).look_up


def entropy(log_odds):
    p = 1 / (1 + math.exp(-log_odds))
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def exhaustive(left, right, log_odds, threshold, score):
    """Every interleaving that no confident comparison forbids, scored by walking through it."""
    n, found = len(left) + len(right), []
    for places in combinations(range(n), len(left)):
        i = j = made = 0
        total, allowed = 0.0, True
        for place in range(n):
            step = place in places
            if i < len(left) and j < len(right):
                x = log_odds[left[i], right[j]]
                if threshold > 0 and entropy(x) <= threshold and step != (x >= 0):
                    allowed = False
                    break
                total -= math.log1p(math.exp(-x if step else x))
                made += 1
            i, j = i + step, j + (not step)
        if allowed:
            value = total / made if score == "mean" else total
            found.append((value, interleave(left, right, [place in places for place in range(n)])))
    return max(found)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6, 0.7])
@pytest.mark.parametrize("score", ["mean", "sum"])
@pytest.mark.parametrize("prune", [True, False], ids=["pruned", "whole"])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 5), (4, 1), (3, 4), (5, 5)], ids=lambda pair: f"{pair[0]}+{pair[1]}")
def test_exact_merge_is_the_best_of_all_interleavings(lengths, prune, score, threshold):
    for seed in range(15):
        n = sum(lengths)
        log_odds = preferences(n, seed, spread=0.3)
        items = np.random.default_rng(seed).permutation(n).tolist()
        left, right = sorted(items[: lengths[0]]), sorted(items[lengths[0] :])
        look_up = look_up_in(log_odds)
        merged = merge_exact([(left, right)], look_up, threshold=threshold, score=score, prune=prune)[0]
        value, order = exhaustive(left, right, log_odds, threshold, score)
        assert merged.order == order
        mean = merged.log_likelihood / merged.comparisons
        assert (mean if score == "mean" else merged.log_likelihood) == pytest.approx(value)


def test_hand_worked_merge_where_mean_and_sum_differ():
    # Left 0, 1; right 2. P(0 before 2) = 0.6, P(1 before 2) = 0.7.
    # 2 0 1 makes one comparison: log 0.4 = -0.916. 0 2 1: log 0.6 + log 0.3 = -1.715, mean -0.857.
    # 0 1 2: log 0.6 + log 0.7 = -0.868, mean -0.434, best by both; with P(1 before 2) = 0.55 for 1 and 0.45 for 0:
    # 2 0 1: log 0.55 = -0.598, mean -0.598; 0 1 2: log 0.45 + log 0.55 = -1.396, mean -0.698.
    # With P(1 before 2) = 0.7 instead: 0 1 2 sums to -1.155 (mean -0.578): by mean it beats -0.598, by sum it does not.
    log_odds = np.zeros((3, 3))
    log_odds[0, 2], log_odds[1, 2] = math.log(0.45 / 0.55), math.log(0.7 / 0.3)
    log_odds[2, :2] = -log_odds[:2, 2]
    look_up = look_up_in(log_odds)
    by_mean, by_sum = (merge_exact([([0, 1], [2])], look_up, score=score)[0] for score in ("mean", "sum"))
    assert by_mean.order == (0, 1, 2)
    assert by_mean.log_likelihood == pytest.approx(math.log(0.45) + math.log(0.7))
    assert by_sum.order == (2, 0, 1)
    assert by_sum.log_likelihood == pytest.approx(math.log(0.55))
    assert (by_mean.comparisons, by_sum.comparisons) == (2, 1)


@pytest.mark.parametrize("score", ["mean", "sum"])
def test_exact_equals_unlimited_beam_on_500_random_merges(score):
    for trial in range(250):
        generator = np.random.default_rng(trial)
        left, right = generator.integers(1, 8, 2)
        threshold = float(generator.choice([0.0, 0.3, 0.5, 0.6]))
        log_odds = preferences(left + right, trial, spread=0.4)
        items = generator.permutation(left + right).tolist()
        merges = [(sorted(items[:left]), sorted(items[left:]))]
        look_up = look_up_in(log_odds)
        exact = merge_exact(merges, look_up, threshold=threshold, score=score)[0]
        beam = merge_beam(merges, look_up, beam_size=None, threshold=threshold, score=score)[0]
        assert exact.order == beam.order
        assert exact.log_likelihood == pytest.approx(beam.log_likelihood)


@pytest.mark.parametrize(("probability", "is_open"), [(0.70, True), (0.72, False), (0.30, True), (0.28, False)])
def test_threshold_of_the_thesis(probability, is_open):
    # Binary entropy is 0.611 nats at 0.70 and 0.593 nats at 0.72.
    blocked = np.isinf(step_logprobs(np.array([math.log(probability / (1 - probability))]), 0.6)).any()
    assert blocked != is_open


@pytest.mark.parametrize(
    "lengths", [(0, 2), (3, 0), (1, 1), (1, 5), (4, 2), (5, 5)], ids=lambda pair: f"{pair[0]}+{pair[1]}"
)
def test_all_pairs_merge_is_the_most_likely_given_every_pair(lengths):
    n = sum(lengths)
    for seed in range(15):
        log_odds = preferences(n, seed, spread=0.2)
        items = np.random.default_rng(seed).permutation(n).tolist()
        left, right = items[: lengths[0]], items[lengths[0] :]
        found = []
        for places in combinations(range(n), len(left)):
            order = interleave(left, right, [place in places for place in range(n)])
            rank = {item: place for place, item in enumerate(order)}
            signed = [log_odds[i, j] * (1 if rank[i] < rank[j] else -1) for i in left for j in right]
            found.append((-sum(math.log1p(math.exp(-x)) for x in signed), order))
        merged, padding = merge_all_pairs([(left, right), ([], [])], look_up_in(log_odds))
        assert merged.order == max(found)[1]
        assert merged.log_likelihood == pytest.approx(max(found)[0])
        assert (padding.order, padding.log_likelihood) == ((), 0.0)
    assert merge_all_pairs([], look_up_in(np.zeros((1, 1)))) == []


def table(entries, n):
    """Log-odds [n, n] from probabilities {(i, j): P(i before j)}."""
    log_odds = np.zeros((n, n))
    for (i, j), p in entries.items():
        log_odds[i, j] = math.log(p / (1 - p))
        log_odds[j, i] = -log_odds[i, j]
    return log_odds


# Left 0, 1 and right 2, 3. Greedy takes 2 first (0.55), then meets two coin flips. Taking 0 first costs a little (0.45)
# and leads to certain comparisons.
GARDEN_PATH = table({(0, 2): 0.45, (0, 3): 0.5, (1, 3): 0.5, (1, 2): 0.01}, 4)


def test_a_beam_finds_what_greed_misses():
    merges = [([0, 1], [2, 3])]
    assert merge_greedy(merges, look_up_in(GARDEN_PATH))[0].order[0] == 2
    narrow = merge_beam(merges, look_up_in(GARDEN_PATH), beam_size=1, threshold=0.0)[0]
    assert narrow.order[0] == 2
    # 0 (0.45), 2 (0.99), then 1 against 3 at 0.5: mean (log 0.45 + log 0.99 + log 0.5) / 3 = -0.501.
    # 2 (0.55), 0 (0.5), 1 (0.5): mean -0.661; 2 (0.55), 3 (0.5): mean (log 0.55 + log 0.5) / 2 = -0.645.
    wide = merge_beam(merges, look_up_in(GARDEN_PATH), beam_size=8, threshold=0.0)[0]
    assert wide.order[:2] == (0, 2)
    assert wide.comparisons == 3
    assert wide.log_likelihood / 3 == pytest.approx(-0.5006, abs=1e-4)


METHODS = ("greedy", "exact", "beam", "all-pairs")


def noisy(n, seed, spread=2.0, noise=1.0):
    generator = np.random.default_rng(seed)
    quality = generator.normal(scale=spread, size=n)
    above = np.triu(quality[:, None] - quality[None, :] + generator.normal(scale=noise, size=(n, n)), 1)
    return quality, above - above.T


@given(st.integers(0, 30), st.integers(0, 1000), st.sampled_from(METHODS), st.sampled_from(["mean", "sum"]))
def test_an_order_is_a_permutation_and_no_pair_is_asked_twice(n, seed, method, score):
    batches = []
    _, log_odds = noisy(n, seed)
    ranking = sort_items(n, asking(log_odds, batches), method=method, score=score, beam_size=20, seed=seed)
    assert sorted(ranking.order) == list(range(n))
    asked = [frozenset(pair) for batch in batches for pair in batch.tolist()]
    assert len(asked) == len(set(asked)) == ranking.comparisons
    assert all(len(pair) == 2 for pair in asked)
    assert len(batches) == ranking.batches
    assert ranking.method == method


@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 64, 100, 129])
def test_greedy_asks_at_most_n_log_n_pairs_one_a_merge_and_round(n):
    _, log_odds = noisy(n, n)
    batches = []
    ranking = sort_items(n, asking(log_odds, batches), method="greedy")
    depth = math.ceil(math.log2(n)) if n > 1 else 0
    assert ranking.comparisons <= max(n * depth - 2**depth + 1, 0)
    # A level of merges of lists of at most s items takes at most 2 s - 1 rounds: 1 + 3 + 7 + ... < 2 * 2^depth.
    assert ranking.batches <= 2 * 2**depth
    if n > 1:
        # The first round holds one comparison of every merge of the lowest level, n - 2^(depth - 1) of them.
        assert len(batches[0]) == n - 2 ** (depth - 1)


@pytest.mark.parametrize("method", ["greedy", "all-pairs"])
def test_a_planted_order_is_recovered_from_noise_free_preferences(method):
    quality, log_odds = noisy(100, 5, noise=0.0)
    assert sort_items(100, asking(log_odds), method=method).order == tuple(np.argsort(-quality).tolist())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"method": "bubble"}, "bubble"),
        ({"score": "product"}, "product"),
        ({"beam_size": 0}, "at least 1"),
        ({"threshold": -0.1}, "-0.1"),
        ({"threshold": math.nan}, "nan"),
        ({"n": -1}, "-1"),
    ],
    ids=["method", "score", "beam", "threshold", "nan", "n"],
)
def test_options_out_of_range_are_refused(options, named):
    n = options.pop("n", 3)
    with pytest.raises(InputError, match=named):
        sort_items(n, asking(np.zeros((3, 3))), **options)


def test_comparisons_serve_both_directions_from_one_answer():
    batches = []
    comparisons = Comparisons(asking(np.array([[0, 1, 2], [-1, 0, 3], [-2, -3, 0]]), batches), 3)
    assert comparisons.look_up([[1, 0], [0, 1], [1, 0], [2, 1]]).tolist() == [-1, 1, -1, -3]
    assert comparisons.look_up([[1, 2], [0, 2]]).tolist() == [3, 2]
    assert comparisons.look_up(np.empty((0, 2), dtype=int)).tolist() == []
    assert comparisons.look_up([[2, 0]]).tolist() == [-2]
    assert [batch.tolist() for batch in batches] == [[[0, 1], [1, 2]], [[0, 2]]]
    assert (comparisons.n_pairs, comparisons.batches) == (3, 2)
    pairs, log_odds = comparisons.compared_pairs()
    assert dict(zip(map(tuple, pairs.tolist()), log_odds.tolist(), strict=True)) == {(0, 1): 1, (1, 2): 3, (0, 2): 2}


def test_comparisons_refuse_what_has_no_answer():
    with pytest.raises(InputError, match="itself"):
        Comparisons(asking(np.zeros((3, 3))), 3).look_up([[1, 1]])
    with pytest.raises(InputError, match="0 to 2"):
        Comparisons(asking(np.zeros((4, 4))), 3).look_up([[1, 3]])
    with pytest.raises(InputError, match="1 of 2 comparisons gave no number"):
        Comparisons(lambda pairs: np.array([0.0, np.nan]), 3).look_up([[0, 1], [1, 2]])
    with pytest.raises(InputError, match="as many"):
        Comparisons(lambda pairs: np.zeros(3), 3).look_up([[0, 1]])
    assert np.isfinite(Comparisons(lambda pairs: np.array([np.inf]), 3).look_up([[0, 1]])).all()


@pytest.mark.parametrize("method", ["greedy", "exact", "beam", "all-pairs", "fitted", "strengths"])
def test_groups_sorted_at_once_are_sorted_as_each_alone_in_as_few_batches_as_one(method) -> None:
    generator = np.random.default_rng(5)
    odds = generator.normal(0, 2, (40, 40))
    odds = odds - odds.T
    calls = []

    def ask(pairs):
        calls.append(pairs)
        return odds[pairs[:, 0], pairs[:, 1]]

    groups = [list(range(16)), [39, 17, 20, 18], [], [25], list(range(26, 33))]
    together = sort_groups(groups, ask, method=method, seed=None)
    batches = len(calls)
    for pairs in calls:
        for pair in pairs.tolist():
            assert sum(set(pair) <= set(group) for group in groups) == 1
    alone = []
    for group in groups:
        calls.clear()
        alone.append(
            sort_items(len(group), lambda pairs, own=np.array(group, int): ask(own[pairs]), method=method, seed=None)
        )
        assert len(calls) <= batches
    assert batches == max(ranking.batches for ranking in alone)
    for group, one, all_at_once in zip(groups, alone, together, strict=True):
        assert all_at_once.order == tuple(group[index] for index in one.order)
        assert all_at_once.comparisons == one.comparisons
        assert (all_at_once.strengths is None) == (one.strengths is None)
        assert all_at_once.strengths is None or all_at_once.strengths == pytest.approx(one.strengths)


def kendall(truth, order) -> float:
    from scipy.stats import kendalltau

    place = np.empty(len(order))
    place[list(order)] = -np.arange(len(order))
    return float(kendalltau(truth, place).statistic)


def test_fitting_orders_noisy_items_better_than_merging_for_the_same_comparisons() -> None:
    gains = []
    for seed in range(10):
        truth, log_odds = noisy(60, seed, noise=1.5)
        merged, fitted = (sort_items(60, asking(log_odds), method=method) for method in ("greedy", "fitted"))
        assert fitted.comparisons == merged.comparisons
        gains.append(kendall(truth, fitted.order) - kendall(truth, merged.order))
    assert np.mean(gains) > 0.05
    assert min(gains) > -0.02
