import math
import tracemalloc
from statistics import NormalDist

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.statistics import (
    accuracy_sample_size,
    bootstrap_interval,
    holm,
    mcnemar,
    mcnemar_power,
    mcnemar_sample_size,
    mean_estimate,
    mean_estimates,
    paired_difference,
    paired_differences,
    paired_tests,
    proportion,
    wilson_interval,
)


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


RANDOM = np.random.default_rng(3)
LONG, OTHER, SHORT = RANDOM.normal(0.6, 0.2, 80), RANDOM.normal(0.5, 0.3, 80), RANDOM.normal(0.2, 0.1, 30)


def test_means_are_those_of_one_column_at_a_time():
    together = mean_estimates([LONG, SHORT, OTHER], resamples=4000)
    alone = [mean_estimate(column, resamples=4000) for column in (LONG, SHORT, OTHER)]
    for one, other in zip(together, alone, strict=True):
        assert (one.value, one.n) == (other.value, other.n)
        assert one.interval == pytest.approx(other.interval, abs=0.006)


def test_differences_are_those_of_one_pair_at_a_time():
    pairs = [(OTHER, LONG), (SHORT, SHORT + 0.01), (LONG, LONG)]
    together = paired_differences(pairs)
    for one, (first, second) in zip(together, pairs, strict=True):
        alone = paired_difference(first, second, seed=1)
        assert one.difference.value == pytest.approx(alone.difference.value)
        assert one.difference.interval == pytest.approx(alone.difference.interval, abs=0.01)
        assert one.p_value == pytest.approx(alone.p_value, abs=0.02)


def test_sign_flips_of_eight_gains_have_the_exact_chance():
    [found] = paired_differences([(np.zeros(8), np.arange(1.0, 9.0))], flips=40_000)
    assert found.p_value == pytest.approx(2 / 2**8, rel=0.15)


def test_interval_and_test_of_a_difference_agree_about_zero():
    generator = np.random.default_rng(7)
    seen = {True: 0, False: 0}
    for n in (2, 4, 5, 6, 9, 30, 113):
        for shift in np.linspace(-0.6, 0.6, 21):
            for binary in (False, True):
                first = generator.random(n) < 0.5 if binary else generator.normal(size=n)
                second = generator.random(n) < 0.5 + shift if binary else first + generator.normal(shift, 0.5, n)
                [found] = paired_tests([(first, second)], [binary], seed=int(generator.integers(99)))
                low, high = found.difference.interval
                assert low <= found.difference.value <= high
                assert (found.p_value < 0.05) == (low > 0 or high < 0), (n, shift, binary)
                seen[found.p_value < 0.05] += 1
    assert min(seen.values()) > 50


def test_right_and_wrong_of_thirty_questions_have_an_interval_around_zero_where_mcnemar_finds_nothing():
    # Eight gained, two lost of thirty: a bootstrap over questions gives +0.033 to +0.4 beside p = .109.
    first, second = [0] * 8 + [1] * 2 + [1] * 20, [1] * 8 + [0] * 2 + [1] * 20
    [found] = paired_tests([(first, second)], [True], seed=0)
    assert found.p_value == pytest.approx(0.109, abs=0.001)
    assert found.difference.interval.low <= 0 < 0.3 < found.difference.interval.high


def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(0)
    gaps = generator.normal(0.3, 1.0, size=(400, 20))
    found = paired_differences([(np.zeros(20), one) for one in gaps], flips=2000)
    held = np.mean([one.difference.interval.low <= 0.3 <= one.difference.interval.high for one in found])
    assert 0.92 <= held <= 0.98


@pytest.mark.parametrize("kind", ["scores", "right and wrong"])
def test_many_items_have_the_intervals_and_p_values_of_theory_in_bounded_memory(kind):
    """All draws of 30,000 items at once would take 480 MB, all sign flips 960 MB."""
    many, generator = 30_000, np.random.default_rng(8)
    if kind == "scores":
        gaps = generator.normal(0.004, 0.5, many)
    else:
        gaps = generator.choice([-1.0, 0.0, 1.0], many, p=[0.12, 0.756, 0.124])
    tracemalloc.start()
    [found] = paired_differences([(np.zeros(many), gaps)], flips=4000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    error = gaps.std() / math.sqrt(many)
    assert found.difference.interval == pytest.approx(gaps.mean() + 1.96 * np.array([-error, error]), abs=0.2 * error)
    assert found.p_value == pytest.approx(2 * NormalDist().cdf(-abs(gaps.mean()) / error), abs=0.02)
    assert peak < 100e6


def test_what_does_not_vary_has_an_interval_without_width():
    [mean] = mean_estimates([[0.3, 0.3, 0.3]])
    [gap] = paired_differences([([0.1, 0.7], [0.1, 0.7])])
    assert mean.interval == (0.3, 0.3)
    assert gap.difference.interval == (0.0, 0.0)
    assert gap.p_value == 1


@pytest.mark.parametrize("pair", [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[2.0]])], ids=["empty", "lengths", "shape"])
def test_pairs_without_sense_are_refused(pair):
    with pytest.raises(InputError):
        paired_differences([pair])


def test_mcnemar_exact_hand_worked():
    # 1 against 9 discordant items: 2 * (C(10,0) + C(10,1)) / 2^10 = 22 / 1024.
    first = [True] * 1 + [False] * 9 + [True] * 20
    second = [False] * 1 + [True] * 9 + [True] * 20
    result = mcnemar(first, second)
    assert (result.first_only, result.second_only, result.n) == (1, 9, 30)
    assert result.p_value == pytest.approx(22 / 1024)


def test_mcnemar_without_disagreement_says_nothing():
    assert mcnemar([True, False], [True, False]).p_value == 1.0


def test_mcnemar_refuses_unpaired():
    with pytest.raises(InputError):
        mcnemar([True], [True, False])


def test_holm_hand_worked():
    # 0.01 * 3, 0.03 * 2, then 0.04 may not fall below 0.06.
    assert holm([0.03, 0.01, 0.04]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []


def test_power_agrees_with_simulation():
    gain, loss, n = 0.2, 0.08, 120
    draws = np.random.default_rng(7).multinomial(n, [gain, loss, 1 - gain - loss], size=4000)
    from scipy.stats import binomtest

    cached = {}

    def significant(won: int, lost: int) -> bool:
        if (won, lost) not in cached:
            cached[won, lost] = won + lost > 0 and binomtest(won, won + lost).pvalue <= 0.05
        return cached[won, lost]

    simulated = np.mean([significant(int(won), int(lost)) for won, lost, _ in draws])
    assert mcnemar_power(gain, loss, n) == pytest.approx(simulated, abs=0.025)


def test_sample_size_is_where_power_is_reached():
    n = mcnemar_sample_size(0.2, 0.08, power=0.8)
    assert mcnemar_power(0.2, 0.08, n) >= 0.8
    assert mcnemar_power(0.2, 0.08, n // 2) < 0.8
    with pytest.raises(InputError):
        mcnemar_sample_size(0.1, 0.1)
