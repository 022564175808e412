import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from climassay.errors import InputError
from climassay.statistics import agreement, cohen_kappa, fleiss_kappa, kendall, krippendorff_alpha, spearman
from climassay.statistics.agreement import kendall_of_resamples, spearman_of_resamples


def test_cohen_textbook_example():
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, expected 0.5, kappa 0.4.
    first = ["y"] * 25 + ["n"] * 25
    second = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)


def test_fleiss_published_example():
    # Fleiss (1971) as worked in the standard presentation: ten subjects, fourteen raters, five labels, kappa 0.210.
    counts = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=5e-4)


def test_krippendorff_published_example():
    # Krippendorff (2011), section C: four observers, twelve units, missing data.
    none = None
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, none, none, none],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, none, 3],
        [none, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, none],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, none],
    ]
    assert krippendorff_alpha(ratings) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(ratings, measurement="ordinal", order=[1, 2, 3, 4, 5]) == pytest.approx(0.815, abs=5e-4)
    assert krippendorff_alpha(ratings, measurement="interval") == pytest.approx(0.849, abs=5e-4)


def test_agreement_refuses_what_it_cannot_compare():
    with pytest.raises(InputError):
        cohen_kappa(["a"], ["a", "b"])
    with pytest.raises(InputError):
        fleiss_kappa([[1, 2], [3, 3]])
    with pytest.raises(InputError):
        krippendorff_alpha([["a", None], [None, "b"]])
    with pytest.raises(InputError, match="'c' is not in the order"):
        krippendorff_alpha([["a", "c"], ["a", "b"]], measurement="ordinal", order=["a", "b"])
    with pytest.raises(InputError, match="'c' is not in the order"):
        krippendorff_alpha([["a", "c"], ["a", "b"]], order=["a", "b"])
    with pytest.raises(InputError, match="numbers"):
        krippendorff_alpha([["a", "c"], ["a", "b"]], measurement="interval")


def test_rank_correlation_with_interval():
    first = np.arange(30.0)
    result = spearman(first, first[::-1])
    assert result.value == pytest.approx(-1)
    noisy = first + np.random.default_rng(2).normal(0, 8, 30)
    rho, tau = spearman(first, noisy), kendall(first, noisy)
    assert rho.interval.low < rho.value < rho.interval.high
    assert tau.interval.low < tau.value < tau.interval.high
    assert tau.value < rho.value
    with pytest.raises(InputError):
        spearman([1, 1, 1], [1, 2, 3])


@pytest.mark.parametrize("values", [3, 1000])
@pytest.mark.parametrize("ours", [spearman_of_resamples, kendall_of_resamples])
def test_resamples_all_at_once_have_the_correlations_that_scipy_gives_each(ours, values, monkeypatch):
    monkeypatch.setattr(agreement, "_ITEMS_AT_ONCE", 5)
    theirs = {spearman_of_resamples: spearmanr, kendall_of_resamples: kendalltau}[ours]
    random = np.random.default_rng(3)
    first, second = random.integers(0, values, (2, 12)).astype(float)
    first[0] = np.inf
    chosen = np.vstack([random.integers(0, 12, (50, 12)), np.full((1, 12), 4)])
    found = ours(first, second, chosen)
    assert np.isnan(found[-1])
    np.testing.assert_allclose(
        found[:-1], [theirs(first[row], second[row]).statistic for row in chosen[:-1]], atol=1e-12
    )
