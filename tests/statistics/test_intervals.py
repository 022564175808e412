import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.statistics import accuracy_sample_size, bootstrap_interval, mean_estimate, proportion, wilson_interval


def test_wilson_matches_hand_worked_example():
    # 8 of 10: centre (0.8 + 1.9208/10) / 1.38416, half-width as in Wilson's formula.
    low, high = wilson_interval(8, 10)
    assert low == pytest.approx(0.49016, abs=1e-5)
    assert high == pytest.approx(0.94331, abs=1e-5)


def test_wilson_agrees_with_scipy():
    from scipy.stats import binomtest

    ours = wilson_interval(171, 245)
    theirs = binomtest(171, 245).proportion_ci(method="wilson")
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_the_share_and_mirrors(pair):
    successes, n = pair
    low, high = wilson_interval(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    mirrored = wilson_interval(n - successes, n)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((low, high))


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 5)])
def test_wilson_refuses_impossible_counts(successes, n):
    with pytest.raises(InputError):
        wilson_interval(successes, n)


def test_published_benchmark_size_gives_five_points_each_side():
    # 245 questions near 80%: about five points (reference of the published benchmark).
    estimate = proportion(196, 245)
    assert (estimate.interval.high - estimate.interval.low) / 2 == pytest.approx(0.05, abs=0.002)
    assert accuracy_sample_size(0.8, 0.05) == 246


def test_bootstrap_is_seeded_and_covers_the_mean():
    values = np.random.default_rng(1).normal(3, 1, 200)
    first = mean_estimate(values, seed=4)
    assert first == mean_estimate(values, seed=4)
    assert first.interval != mean_estimate(values, seed=5).interval
    half = 1.96 * values.std() / math.sqrt(200)
    assert first.interval.low == pytest.approx(values.mean() - half, abs=0.05)
    assert first.interval.high == pytest.approx(values.mean() + half, abs=0.05)


def test_bootstrap_needs_items():
    with pytest.raises(InputError):
        bootstrap_interval([], lambda rows: float(rows.mean()))
