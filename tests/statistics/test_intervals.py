"""Intervals, agreement and classification against hand-worked and published figures."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from climassay.errors import InputError
from climassay.statistics import (
    Interval,
    ResampledEstimate,
    accuracy_sample_size,
    agreement,
    bootstrap_interval,
    cohen_kappa,
    constant_baseline,
    expected_calibration_error,
    fleiss_kappa,
    holm,
    kendall,
    krippendorff_alpha,
    mcnemar,
    mcnemar_power,
    mean_estimate,
    mean_estimates,
    paired_difference,
    paired_differences,
    paired_tests,
    proportion,
    reliability_curve,
    selective_curve,
    spearman,
    wilson_interval,
)
from climassay.statistics.agreement import kendall_of_resamples, spearman_of_resamples
from traced_memory import peak_memory


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


@pytest.mark.parametrize("items", [[], [1.0, np.nan]])
def test_intervals_need_items_and_their_values(items):
    with pytest.raises(InputError):
        bootstrap_interval(items, lambda rows: float(rows.mean()))
    with pytest.raises(InputError):
        mean_estimates([items])


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


def test_five_gains_are_never_significant_whatever_rounding_leaves_of_their_sum():
    # All flips give 2/32; a subset of all five leaves nothing but a rounding error, which is no evidence.
    for gains in ([1.1, 0.6, 0.2, 1.2, 0.7], [0.1, 0.2, 0.3, 0.7, 0.6], [1 / 3, 0.1, 1 / 7, 0.7, 1.1]):
        [found] = paired_differences([(np.zeros(5), gains)])
        assert found.p_value == pytest.approx(2 / 2**5, abs=0.006)
    # Eight of the 32 flips are as far from 0.
    [found] = paired_differences([(np.zeros(5), [1.1, 0.6, -1.0, 1.2, 0.7])])
    assert found.p_value == pytest.approx(8 / 32, abs=0.01)


def test_means_of_groups_weigh_as_much_as_the_groups_have_items():
    generator = np.random.default_rng(3)
    sizes, gaps = generator.integers(1, 9, 7), np.round(generator.normal(0.4, 1, 7), 2)
    [found] = paired_differences([(np.zeros(7), gaps)], weights=[sizes])
    assert found.difference.value == pytest.approx(np.average(gaps, weights=sizes))
    signs = np.array(list(itertools.product([1, -1], repeat=7)))
    chance = (np.abs(signs @ (sizes * gaps)) >= abs(sizes @ gaps) - 1e-9).mean()
    assert found.p_value == pytest.approx(chance, abs=0.015)


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
def test_many_items_have_the_intervals_and_p_values_of_theory_in_bounded_memory(kind, tmp_path):
    """All draws of 30,000 items at once would take 480 MB, all sign flips 960 MB."""
    many, generator = 30_000, np.random.default_rng(8)
    if kind == "scores":
        gaps = generator.normal(0.004, 0.5, many)
    else:
        gaps = generator.choice([-1.0, 0.0, 1.0], many, p=[0.12, 0.756, 0.124])
    [found] = paired_differences([(np.zeros(many), gaps)], flips=4000)
    error = gaps.std() / math.sqrt(many)
    assert found.difference.interval == pytest.approx(gaps.mean() + 1.96 * np.array([-error, error]), abs=0.2 * error)
    assert found.p_value == pytest.approx(2 * NormalDist().cdf(-abs(gaps.mean()) / error), abs=0.02)
    np.save(tmp_path / "gaps.npy", gaps)
    setup = (
        "import numpy, scipy.stats\nfrom climassay.statistics import paired_differences\n"
        f"gaps = numpy.load({str(tmp_path / 'gaps.npy')!r})"
    )
    assert peak_memory(setup, f"paired_differences([(numpy.zeros({many}), gaps)], flips=4000)") < 100e6


def test_shares_that_differ_by_rounding_alone_are_all_alike():
    rounded = mean_estimate(1 + np.array([0, 2.2e-16, -1.1e-16, 0, 0]))
    assert rounded.interval.low == pytest.approx(mean_estimate([1.0] * 5).interval.low)


@pytest.mark.parametrize(
    ("second", "p_value"), [([1, 2, 3], 1 / 3), ([3, 2, 1], 1 / 3), ([1, 2, 2], 2 / 3), ([1, 2, 3, 4], 1 / 12)]
)
def test_few_items_in_the_same_order_prove_little(second, p_value):
    assert spearman(range(len(second)), second).p_value == pytest.approx(p_value)


def test_a_mean_of_shares_that_are_all_alike_is_not_known_exactly():
    for values in ([0.3], [1.0, 1.0, 1.0], [0.0] * 5):
        assert mean_estimate(values).interval == pytest.approx(wilson_interval(sum(values), len(values)))
        assert mean_estimate(values).value == pytest.approx(values[0])
    assert ResampledEstimate.from_resamples(0.0, Interval(0.0, 0.0), 1).interval is None


def test_what_does_not_vary_has_an_interval_without_width():
    [mean] = mean_estimates([[0.3, 0.3, 0.3]])
    [gap] = paired_differences([([0.1, 0.7], [0.1, 0.7])])
    assert mean.interval == (0.3, 0.3)
    assert gap.difference.interval == (0.0, 0.0)
    assert gap.p_value == 1


@pytest.mark.parametrize(
    "pair",
    [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[2.0]]), ([1.0, np.nan], [1.0, 0.0])],
    ids=["empty", "lengths", "shape", "missing"],
)
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
    with pytest.raises(InputError, match="1 of the values"):
        mcnemar([1, np.nan], [1, 0])


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


def test_cohen_textbook_example():
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, expected 0.5, kappa 0.4.
    first = ["y"] * 25 + ["n"] * 25
    second = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)


def test_fleiss_published_example():
    # Fleiss (1971) as worked in the standard presentation: ten subjects, fourteen raters, five labels, kappa 0.210.
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1], [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
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


def test_nan_is_a_missing_rating():
    nan = float("nan")
    gaps = [[1, 1, 2, 3, None], [1, 2, None, 3, 1], [None, 1, 2, 3, 2]]
    holes = [[nan if value is None else np.float64(value) for value in row] for row in gaps]
    for measurement in ("nominal", "interval"):
        expected = krippendorff_alpha(gaps, measurement=measurement)
        assert krippendorff_alpha(holes, measurement=measurement) == pytest.approx(expected)
    assert krippendorff_alpha([[1, 1, 2], [1, 1, nan], [nan, 1, 2]]) == 1.0
    assert cohen_kappa([1, 2, nan, 1, 2], [1, 2, 1, nan, 1]) == pytest.approx(cohen_kappa([1, 2, 2], [1, 2, 1]))
    first, second = [1.0, 2, 3, 4, nan, 6], [2.0, 1, 4, 3, 5, nan]
    assert spearman(first, second).value == pytest.approx(spearman([1, 2, 3, 4], [2, 1, 4, 3]).value)
    assert spearman(first, second).n == 4
    assert kendall(first, second).n == 4
    with pytest.raises(InputError):
        krippendorff_alpha([[1, nan], [nan, 1]])
    with pytest.raises(InputError):
        cohen_kappa([nan, 1], [1, nan])
    with pytest.raises(InputError):
        fleiss_kappa([[1, nan]])


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
    for ratings in ([["a", "c"], ["a", "b"]], [[1, np.inf], [1, 2]]):
        with pytest.raises(InputError, match="numbers"):
            krippendorff_alpha(ratings, measurement="interval")
    with pytest.raises(InputError):
        fleiss_kappa([[4, -1], [3, 0]])


def test_rank_correlation_with_interval():
    first = np.arange(30.0)
    result = spearman(first, first[::-1])
    assert result.value == pytest.approx(-1)
    noisy = first + np.random.default_rng(2).normal(0, 8, 30)
    rho, tau = spearman(first, noisy), kendall(first, noisy)
    assert rho.interval.low < rho.value < rho.interval.high
    assert tau.interval.low < tau.value < tau.interval.high
    assert tau.value < rho.value
    assert spearman([1, 2, 3], [1, 3, 2]).interval.low >= -1
    with pytest.raises(InputError):
        spearman([1, 1, 1], [1, 2, 3])


@pytest.mark.parametrize("values", [3, 1000])
@pytest.mark.parametrize("ours", [spearman_of_resamples, kendall_of_resamples])
def test_resamples_all_at_once_have_the_correlations_that_scipy_gives_each(ours, values, monkeypatch):
    monkeypatch.setattr(agreement, "_BATCH_SIZE", 5)
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


def test_constant_baseline_beats_a_published_system():
    # Climate Feedback, 170 claims in five classes: always "incorrect" is right on 117 of them (68.82%), which is more
    # than the 64.71% of the published system.
    truth = ["incorrect"] * 117 + ["other"] * 53
    assert round(100 * constant_baseline(truth).accuracy, 2) == 68.82


def test_calibration():
    assert expected_calibration_error([0.95] * 10, [1] * 10) == pytest.approx(0.05)
    assert expected_calibration_error([0.75] * 4 + [0.25] * 4, [1, 1, 1, 0, 1, 0, 0, 0]) == pytest.approx(0.0)
    for nothing in ([], []), ([float("nan"), 0.5], [1, 0]):
        with pytest.raises(InputError):
            expected_calibration_error(*nothing)


ANSWERS = st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9]), st.booleans()), min_size=1, max_size=30)


def test_a_curve_worked_by_hand():
    curve = selective_curve([0.7, 0.9, 0.8], [True, True, False])
    assert [point.coverage for point in curve.points] == pytest.approx([1 / 3, 2 / 3, 1])
    assert [point.accuracy.value for point in curve.points] == pytest.approx([1, 1 / 2, 2 / 3])
    assert curve.area == pytest.approx((1 + 1 / 2 + 2 / 3) / 3)
    assert curve.aurc == pytest.approx(1 - curve.area)
    assert curve.unordered == pytest.approx(2 / 3)


def test_equally_sure_answers_make_one_point_and_the_area_of_any_order():
    curve = selective_curve([0.5] * 4, [True, False, False, True])
    assert [(point.coverage, point.accuracy.value) for point in curve.points] == [(1.0, 0.5)]
    assert curve.area == pytest.approx(curve.unordered)


@given(ANSWERS)
def test_the_gaps_of_the_reliability_curve_are_the_calibration_error(answers):
    confidence, correct = zip(*answers, strict=True)
    bins = reliability_curve(confidence, correct)
    gap = sum(abs(one.confidence - one.accuracy.value) * one.accuracy.n for one in bins) / len(answers)
    assert gap == pytest.approx(expected_calibration_error(confidence, correct), abs=1e-12)
    assert sum(one.accuracy.n for one in bins) == len(answers)
    assert all(one.low - 1e-9 <= one.confidence <= one.high + 1e-9 for one in bins)


@pytest.mark.parametrize(
    ("confidence", "correct", "items"),
    [
        ([], [], None),
        ([0.5], [True, False], None),
        ([0.5, 0.6], [True, False], 1),
        ([0.5, np.nan], [True, False], None),
    ],
    ids=["none", "lengths", "more answers than items", "not a number"],
)
def test_a_curve_without_sense_is_refused(confidence, correct, items):
    with pytest.raises(InputError):
        selective_curve(confidence, correct, n_items=items)


def test_a_probability_in_single_precision_may_be_a_little_more_than_one():
    assert expected_calibration_error([1.00000978], [1]) == 0


@pytest.mark.parametrize(("confidence", "correct"), [([], []), ([1.2], [1]), ([0.5], [1, 0]), ([np.nan], [1])])
def test_a_reliability_curve_without_sense_is_refused(confidence, correct):
    with pytest.raises(InputError):
        reliability_curve(confidence, correct)
