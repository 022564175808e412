import math

import numpy as np
import pytest

from climassay.judging.beam import merge_beam
from climassay.judging.comparisons import Comparisons
from climassay.judging.merge import merge_greedy


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
