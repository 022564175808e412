"""Antisymmetric log-odds [n, n] of items in descending order of quality, with Gaussian noise."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.judging.preferences import Comparisons
from climassay.judging.sorting import gains, interleave, merge_all_pairs, merge_beam, merge_exact, merge_greedy


def preferences(n, seed, spread=1.0, noise=1.0):
    """Antisymmetric log-odds [n, n] of items in descending order of quality, with Gaussian noise."""
    generator = np.random.default_rng(seed)
    quality = -np.arange(n) * spread
    above = np.triu(quality[:, None] - quality[None, :] + generator.normal(scale=noise, size=(n, n)), 1)
    return above - above.T


def comparisons_of(log_odds, seen=None):
    def ask(pairs):
        if seen is not None:
            seen.append([tuple(pair) for pair in pairs.tolist()])
        return log_odds[pairs[:, 0], pairs[:, 1]]

    return Comparisons(ask, len(log_odds))


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
        look_up = comparisons_of(log_odds).look_up
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
    look_up = comparisons_of(log_odds).look_up
    by_mean, by_sum = (merge_exact([([0, 1], [2])], look_up, score=score)[0] for score in ("mean", "sum"))
    assert by_mean.order == (0, 1, 2)
    assert by_mean.log_likelihood == pytest.approx(math.log(0.45) + math.log(0.7))
    assert by_sum.order == (2, 0, 1)
    assert by_sum.log_likelihood == pytest.approx(math.log(0.55))
    assert (by_mean.comparisons, by_sum.comparisons) == (2, 1)


def test_exact_merges_together_equal_merges_alone():
    log_odds = preferences(60, 3, spread=0.1)
    items = np.random.default_rng(0).permutation(60).tolist()
    lengths = [(4, 5), (0, 3), (7, 0), (0, 0), (12, 11), (1, 17)]
    merges = []
    for left, right in lengths:
        merges.append((sorted(items[:left]), sorted(items[left : left + right])))
        items = items[left + right :]
    look_up = comparisons_of(log_odds).look_up
    for threshold in (0.0, 0.6):
        together = merge_exact(merges, look_up, threshold=threshold)
        assert together == [merge_exact([pair], look_up, threshold=threshold)[0] for pair in merges]
    assert merge_exact([], look_up) == []


@pytest.mark.parametrize("score", ["mean", "sum"])
def test_exact_equals_unlimited_beam_on_500_random_merges(score):
    for trial in range(250):
        generator = np.random.default_rng(trial)
        left, right = generator.integers(1, 8, 2)
        threshold = float(generator.choice([0.0, 0.3, 0.5, 0.6]))
        log_odds = preferences(left + right, trial, spread=0.4)
        items = generator.permutation(left + right).tolist()
        merges = [(sorted(items[:left]), sorted(items[left:]))]
        look_up = comparisons_of(log_odds).look_up
        exact = merge_exact(merges, look_up, threshold=threshold, score=score)[0]
        beam = merge_beam(merges, look_up, beam_size=None, threshold=threshold, score=score)[0]
        assert exact.order == beam.order
        assert exact.log_likelihood == pytest.approx(beam.log_likelihood)


@pytest.mark.parametrize("score", ["mean", "sum"])
def test_exact_equals_unlimited_beam_on_long_lists_with_a_threshold(score):
    for seed in range(5):
        log_odds = preferences(120, seed, spread=1.5)
        merges = [(list(range(0, 120, 2)), list(range(1, 120, 2)))]
        look_up = comparisons_of(log_odds).look_up
        exact = merge_exact(merges, look_up, threshold=0.67, score=score)[0]
        beam = merge_beam(merges, look_up, beam_size=None, threshold=0.67, score=score)[0]
        assert exact.order == beam.order
        assert exact.comparisons == beam.comparisons
        assert exact.log_likelihood == pytest.approx(beam.log_likelihood)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 0.65]))
def test_exact_asks_only_cells_that_a_live_path_reaches(left, right, seed, threshold):
    log_odds = preferences(left + right, seed, spread=0.5)
    items = np.random.default_rng(seed).permutation(left + right).tolist()
    merge = (sorted(items[:left]), sorted(items[left:]))
    reachable, front = set(), {(0, 0)}
    while front:
        i, j = front.pop()
        if i == left or j == right or (i, j) in reachable:
            continue
        reachable.add((i, j))
        x = log_odds[merge[0][i], merge[1][j]]
        both = threshold == 0 or entropy(x) > threshold
        front |= {(i + 1, j)} if both or x >= 0 else set()
        front |= {(i, j + 1)} if both or x < 0 else set()
    asked = {}
    for prune in (False, True):
        seen = []
        merge_exact([merge], comparisons_of(log_odds, seen).look_up, threshold=threshold, prune=prune)
        flat = [frozenset(pair) for batch in seen for pair in batch]
        assert len(flat) == len(set(flat))
        asked[prune] = set(flat)
        # One anti-diagonal a call; pruning adds a greedy sweep.
        assert len(seen) <= (left + right - 1) * (2 if prune else 1)
    assert asked[False] == {frozenset((merge[0][i], merge[1][j])) for i, j in reachable}
    assert asked[True] <= asked[False]


def test_pruning_spares_comparisons_of_confident_merges():
    log_odds = preferences(80, 0, spread=2.0)
    merges = [(list(range(0, 80, 2)), list(range(1, 80, 2)))]
    whole, pruned = comparisons_of(log_odds), comparisons_of(log_odds)
    assert merge_exact(merges, whole.look_up, prune=False) == merge_exact(merges, pruned.look_up)
    assert whole.asked == 40 * 40
    assert pruned.asked < 0.25 * whole.asked


def test_threshold_above_log_2_is_the_greedy_merge():
    for seed in range(20):
        log_odds = preferences(15, seed, spread=0.1)
        items = np.random.default_rng(seed).permutation(15).tolist()
        merges = [(items[:8], items[8:])]
        look_up = comparisons_of(log_odds).look_up
        assert merge_exact(merges, look_up, threshold=0.7)[0].order == merge_greedy(merges, look_up)[0].order


def test_even_preferences_keep_the_left_list_first():
    look_up = comparisons_of(np.zeros((6, 6))).look_up
    assert merge_greedy([([3, 1, 5], [0, 2, 4])], look_up)[0].order == (3, 1, 5, 0, 2, 4)
    assert merge_exact([([3, 1, 5], [0, 2, 4])], look_up, threshold=0.6)[0].order == (3, 1, 5, 0, 2, 4)


@given(st.floats(-800, 800), st.floats(0.0, 0.8))
def test_gains_are_log_probabilities_or_blocked(log_odds, threshold):
    left, right = (float(gain[0]) for gain in gains(np.array([log_odds]), threshold))
    assert max(left, right) > -np.inf
    if min(left, right) > -np.inf:
        assert math.exp(left) + math.exp(right) == pytest.approx(1)
        assert left - right == pytest.approx(log_odds)
    else:
        assert (left > right) == (log_odds >= 0)


@pytest.mark.parametrize(("probability", "is_open"), [(0.70, True), (0.72, False), (0.30, True), (0.28, False)])
def test_threshold_of_the_thesis(probability, is_open):
    # Binary entropy is 0.611 nats at 0.70 and 0.593 nats at 0.72.
    blocked = np.isinf(gains(np.array([math.log(probability / (1 - probability))]), 0.6)).any()
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
        merged, padding = merge_all_pairs([(left, right), ([], [])], comparisons_of(log_odds).look_up)
        assert merged.order == max(found)[1]
        assert merged.log_likelihood == pytest.approx(max(found)[0])
        assert (padding.order, padding.log_likelihood) == ((), 0.0)
    assert merge_all_pairs([], comparisons_of(np.zeros((1, 1))).look_up) == []


def table(entries, n):
    """Log-odds [n, n] from probabilities {(i, j): P(i before j)}."""
    log_odds = np.zeros((n, n))
    for (i, j), p in entries.items():
        log_odds[i, j] = math.log(p / (1 - p))
        log_odds[j, i] = -log_odds[i, j]
    return log_odds


def look_up_in(log_odds, seen=None):
    def ask(pairs):
        if seen is not None:
            seen.append([tuple(pair) for pair in pairs.tolist()])
        return log_odds[pairs[:, 0], pairs[:, 1]]

    return Comparisons(ask, len(log_odds)).look_up


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


def test_sum_prefers_to_end_early():
    # The same merge by total: 2 3 0 1 costs log 0.55 + log 0.5 = -1.291, 0 2 1 3 costs -1.502.
    best = merge_beam([([0, 1], [2, 3])], look_up_in(GARDEN_PATH), threshold=0.0, score="sum")[0]
    assert best.order == (2, 3, 0, 1)
    assert best.log_likelihood == pytest.approx(math.log(0.55) + math.log(0.5))


def test_threshold_closes_confident_ways():
    # P = 0.2 has an entropy of 0.500 nats: both ways at 0.45, one way at 0.55.
    log_odds = table({(0, 1): 0.2}, 2)
    open_ways = merge_beam([([0], [1])], look_up_in(log_odds), threshold=0.45)[0]
    closed = merge_beam([([0], [1])], look_up_in(log_odds), threshold=0.55)[0]
    assert open_ways == closed
    assert closed.order == (1, 0)
    seen = []
    merge_beam([([0, 1], [2, 3])], look_up_in(table({(0, 2): 0.01, (0, 3): 0.01}, 4), seen), threshold=0.6)
    assert sorted(sorted(pair) for batch in seen for pair in batch) == [[0, 2], [0, 3]]


@pytest.mark.parametrize("beam_size", [1, 5, None], ids=["1", "5", "unlimited"])
def test_merges_together_equal_merges_alone_in_fewer_calls(beam_size):
    generator = np.random.default_rng(0)
    above = np.triu(generator.normal(size=(20, 20)), 1)
    log_odds = above - above.T
    merges = [([0, 4], [1, 2, 3]), ([], [5]), ([6, 7, 8], [9, 10, 11]), ([12], [])]
    seen = []
    together = merge_beam(merges, look_up_in(log_odds, seen), beam_size=beam_size)
    assert together == [merge_beam([pair], look_up_in(log_odds), beam_size=beam_size)[0] for pair in merges]
    assert len(seen) <= 5
    assert all(sorted(m.order) == sorted([*left, *right]) for m, (left, right) in zip(together, merges, strict=True))
    assert merge_beam([], look_up_in(log_odds)) == []
