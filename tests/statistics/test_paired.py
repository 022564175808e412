import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.statistics import holm, mcnemar, mcnemar_power, mcnemar_sample_size, paired_difference


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


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_mcnemar_is_symmetric(pairs):
    first, second = zip(*pairs, strict=True)
    assert mcnemar(first, second).p_value == pytest.approx(mcnemar(second, first).p_value)


def test_paired_difference_finds_a_shift_and_never_gives_zero():
    generator = np.random.default_rng(0)
    first = generator.random(80)
    result = paired_difference(first, first + 0.2)
    assert result.difference.value == pytest.approx(0.2)
    assert result.difference.interval.low == pytest.approx(0.2)
    assert 0 < result.p_value < 0.001
    assert paired_difference(first, first).p_value == 1.0


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
