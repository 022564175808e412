import numpy as np
import pytest

from climassay.errors import InputError
from climassay.statistics import mean_estimate, mean_estimates, paired_difference, paired_differences

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
    together = paired_differences(pairs, resamples=4000, flips=4000)
    for one, (first, second) in zip(together, pairs, strict=True):
        alone = paired_difference(first, second, resamples=4000)
        assert one.difference.value == pytest.approx(alone.difference.value)
        assert one.difference.interval == pytest.approx(alone.difference.interval, abs=0.01)
        assert one.p_value == pytest.approx(alone.p_value, abs=0.02)


def test_sign_flips_of_eight_gains_have_the_exact_chance():
    [found] = paired_differences([(np.zeros(8), np.arange(1.0, 9.0))], flips=40_000)
    assert found.p_value == pytest.approx(2 / 2**8, rel=0.15)


def test_p_values_can_survive_a_correction_for_many_tests():
    [found] = paired_differences([(np.zeros(60), np.ones(60))])
    assert found.p_value == pytest.approx(1 / 20_001)


def test_what_does_not_vary_has_an_interval_without_width():
    [mean] = mean_estimates([[0.3, 0.3, 0.3]])
    [gap] = paired_differences([([0.1, 0.7], [0.1, 0.7])])
    assert mean.interval == (0.3, 0.3)
    assert gap.difference.interval == (0.0, 0.0)
    assert gap.p_value == 1


def test_draws_depend_on_the_seed_alone():
    assert mean_estimates([LONG, OTHER], seed=1) == mean_estimates([LONG, OTHER], seed=1)
    assert mean_estimates([LONG], seed=1) == mean_estimates([LONG, SHORT], seed=1)[:1]
    assert mean_estimates([LONG], seed=1) != mean_estimates([LONG], seed=2)


def test_nothing_gives_nothing():
    assert mean_estimates([]) == []
    assert paired_differences([]) == []


@pytest.mark.parametrize("pair", [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[2.0]])], ids=["empty", "lengths", "shape"])
def test_pairs_without_sense_are_refused(pair):
    with pytest.raises(InputError):
        paired_differences([pair])
