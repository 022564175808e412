"""The experiment around a judge whose quality is known: folds, figures, and a report of that quality alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.judging import Item, evaluate_judge, make_folds
from climassay.judging.benchmark import score_judge
from climassay.judging.judges import BootstrapUnits, correlations
from climassay.judging.preferences import Judgements
from climassay.judging.training import Fold, TrainedJudge
from climassay.statistics import wilson_interval


def articles(groups: int, each: int, seed: int = 0, ties: bool = False) -> list[Item]:
    """Summaries whose label grows with their length, but for noise."""
    generator = np.random.default_rng(seed)
    items = []
    for group in range(groups):
        for place in range(each):
            words = int(generator.integers(5, 40))
            label = float(words + generator.normal(0, 12))
            label = float(round(label / 15)) if ties else label
            items.append(Item(f"{group}/{place}", "word " * words, "", f"g{group}", label))
    return items


class Planted:
    """Knows the labels, with noise; remembers what it was trained on."""

    def __init__(self, items, noise: float = 0.0, fail: int = 0) -> None:
        self.labels = np.array([item.label for item in items])
        self.noise, self.fail = noise, fail
        self.trained: list[set[int]] = []

    def prepare(self, folds) -> None:
        assert len(folds) == 3

    def fit_fold(self, fold: Fold, train_pairs=None) -> TrainedJudge:
        pairs = fold.train_pairs if train_pairs is None else train_pairs
        self.trained.append(set(pairs.ravel().tolist()))
        quality = 1 if train_pairs is None else len(self.trained[-1])

        def judge(pairs):
            assert (pairs[:, 0] < pairs[:, 1]).all()
            odds = (self.labels[pairs[:, 0]] - self.labels[pairs[:, 1]]) / 5 / quality
            noise = np.array([np.random.default_rng([a, b]).normal(0, self.noise or 1e-12) for a, b in pairs])
            failed = np.arange(len(pairs)) < self.fail
            return Judgements(np.where(failed, 0.0, odds + noise), failed)

        return TrainedJudge(judge, tie_band=1e-6, layers=(3,), regularisation=0.5)


def scored(items, candidate, **options):
    folds = make_folds(items, train_items=options.pop("train_items", 20), folds=3, seed=1)
    return score_judge(items, folds, candidate, method=options.pop("method", "planted"), quality="q", **options)


def test_a_perfect_judge_is_perfect_beside_honest_baselines() -> None:
    items = articles(12, 5)
    found = scored(items, Planted(items))
    assert found.agreement.accuracy_differing.value == 1.0
    assert found.agreement.spearman.value == pytest.approx(1.0)
    assert found.agreement.kendall.value == pytest.approx(1.0)
    assert found.agreement.accuracy_three_way.value == 1.0
    assert found.n_pairs == found.n_pairs_differing == 12 * 10
    assert found.n_groups == 12
    pairs = [(a, b) for a in range(60) for b in range(a + 1, 60) if items[a].group == items[b].group]
    longer = []
    for a, b in pairs:
        gap = len(items[a].text) - len(items[b].text)
        longer.append(0.5 if gap == 0 else float((gap > 0) == (items[a].label > items[b].label)))
    assert found.baselines["longer"].accuracy_differing.value == pytest.approx(np.mean(longer))
    assert found.baselines["constant"].accuracy_differing.value == 0.5
    assert found.baselines["constant"].spearman.value == 0.0
    gain = found.versus_longer.difference
    assert gain.value == pytest.approx(1 - np.mean(longer))
    assert gain.low is not None
    assert gain.low > 0
    near = [
        index
        for index, (a, b) in enumerate(pairs)
        if 1 / 1.1 < len(items[a].text.split()) / len(items[b].text.split()) < 1.1
    ]
    assert found.agreement.accuracy_nearly_equal_length.n == len(near)
    expected = np.mean([longer[index] for index in near])
    assert found.baselines["longer"].accuracy_nearly_equal_length.value == pytest.approx(expected)
    assert sorted(place for _, place in found.order) == sorted([1, 2, 3, 4, 5] * 12)
    assert {found.layers, found.regularisation} == {((3,),) * 3, (0.5,) * 3}


def test_ties_count_in_three_ways_and_not_among_differing_pairs() -> None:
    items = articles(9, 6, ties=True)
    found = scored(items, Planted(items))
    labels = {item.id: item.label for item in items}
    tied = sum(labels[f"{g}/{a}"] == labels[f"{g}/{b}"] for g in range(9) for a in range(6) for b in range(a + 1, 6))
    assert tied > 10
    assert found.n_pairs - found.n_pairs_differing == tied
    assert found.agreement.accuracy_three_way.value == 1.0
    share = tied / found.n_pairs
    constant = found.baselines["constant"].accuracy_three_way.value
    assert constant in (pytest.approx(share), pytest.approx((1 - share) / 2)) or 0.3 < share < 0.37


def test_a_judge_that_is_only_evaluated_stands_beside_the_best_constant_and_the_best_length_band() -> None:
    # Of the six pairs of a group, three are of equally good items, and a difference of one word means nothing.
    texts = {"a": ("word " * 20, 1.0), "b": ("word " * 21, 1.0), "c": ("word " * 22, 1.0), "d": ("word " * 60, 2.0)}
    items = [Item(f"{g}/{name}", text, "", f"g{g}", label) for g in range(8) for name, (text, label) in texts.items()]

    class Undecided:
        name = "undecided"

        def compare(self, items, pairs, *, on_progress=None):
            return Judgements(np.zeros(len(pairs)), np.zeros(len(pairs), dtype=bool))

    found = evaluate_judge(items, Undecided(), quality="q")
    assert found.n_pairs == 48
    assert found.baselines["constant"].accuracy_three_way.value == pytest.approx(0.5)  # always "equal"
    assert found.baselines["longer"].accuracy_three_way.value == 1.0
    assert found.agreement.accuracy_three_way.value == pytest.approx(0.5)


def test_failures_are_counted_and_half_right() -> None:
    items = articles(9, 4)
    found = scored(items, Planted(items, fail=2))
    assert found.failed == 3 * 2
    assert found.agreement.accuracy_differing.value == pytest.approx(1 - 6 * 0.5 / found.n_pairs)


@pytest.mark.parametrize(("sort", "best"), [("strengths", 0), ("fitted", 6), *(("greedy", best) for best in (0, 3, 6))])
def test_a_judge_that_says_nothing_agrees_with_no_system(sort, best) -> None:
    # Every article lists the same systems in the same order, and one of them is the best everywhere.
    items = [Item(f"{g}/{s}", "word", "", f"g{g}", float(s == best)) for g in range(60) for s in range(7)]
    found = scored(items, Planted(items, fail=1000), sort=sort)
    assert found.agreement.spearman.value == pytest.approx(0.0, abs=0.0 if sort != "greedy" else 0.2)
    assert found.agreement.kendall.value == pytest.approx(0.0, abs=0.0 if sort != "greedy" else 0.2)


def test_a_judge_that_cannot_learn_is_named_and_a_small_size_is_left_out() -> None:
    class Choosy(Planted):
        least = 10

        def fit_fold(self, fold, train_pairs=None):
            learned = super().fit_fold(fold, train_pairs)
            if len(self.trained[-1]) < self.least:
                raise InputError("Too few.")
            return learned

    items = articles(12, 5)
    candidate = Choosy(items)
    found = scored(items, candidate, sizes=(5, 10, 20))
    assert [point.items for point in found.learning_curve] == [10, 20]
    candidate.least = 100
    with pytest.raises(InputError, match=r"^Fold 1 of planted: Too few\.$"):
        scored(items, candidate)


def test_the_learning_curve_uses_nested_training_items_only() -> None:
    items = articles(12, 5)
    candidate = Planted(items, noise=1.0)
    found = scored(items, candidate, sizes=(5, 10, 20, 200), train_items=20)
    assert [point.items for point in found.learning_curve] == [5, 10, 20]
    tests = [set(fold.test.tolist()) for fold in make_folds(items, train_items=20, folds=3, seed=1)]
    whole, parts = candidate.trained[:3], candidate.trained[3:]
    for number, used in enumerate(parts):
        fold = number % 3
        assert used <= whole[fold]
        assert not used & tests[fold]
    assert [len(used) for used in parts] == [5] * 3 + [10] * 3 + [20] * 3
    assert parts[0] < parts[3] < parts[6]


def test_calibration_is_over_both_orders() -> None:
    items = articles(12, 5)
    found = scored(items, Planted(items, noise=1.0))
    assert found.calibration is not None
    assert sum(part.accuracy.n for part in found.calibration.curve) == 2 * found.n_pairs_differing
    assert found.calibration.brier < 0.25
    assert scored(items, Planted(items), method="direct").calibration is None


def test_an_interval_over_groups_does_not_shrink_with_more_pairs_of_the_same_groups() -> None:
    """Ten articles right throughout or wrong throughout: n is ten, however many summaries each has."""
    widths = []
    for each in (2, 12):
        pairs = np.array([(g * each + a, g * each + b) for g in range(10) for a in range(each) for b in range(a)])
        right = (pairs[:, 0] // each % 2).astype(float)
        figure = BootstrapUnits.of([f"g{index // each}" for index in range(10 * each)], seed=1).mean(right, pairs)
        assert figure.value == pytest.approx(0.5)
        assert figure.low is not None
        assert figure.high is not None
        widths.append(figure.high - figure.low)
    assert widths[0] == pytest.approx(widths[1], abs=1e-9)
    assert 0.5 < widths[0] < 0.7  # a binomial of ten articles: 2 * 1.96 * sqrt(.25 / 10) = 0.62


def test_where_every_pair_is_right_the_interval_is_wilsons_over_the_units():
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    for value in (0.0, 1.0):
        figure = BootstrapUnits.of(["", "", ""]).proportion(np.full(3, value), pairs)
        interval = wilson_interval(3 * value, 3)
        assert (figure.value, figure.low, figure.high, figure.n) == (value, interval.low, interval.high, 3)
    some = np.array([1.0, 0.0, 1.0])
    assert BootstrapUnits.of(["", "", ""]).proportion(some, pairs) == BootstrapUnits.of(["", "", ""]).mean(some, pairs)


def test_five_groups_cannot_show_that_a_judge_is_better() -> None:
    # All flips of five groups leave a p-value of 2/32 at least; a bootstrap over them gave 0.002.
    pairs = np.array([(3 * g + a, 3 * g + b) for g in range(5) for a in range(3) for b in range(a)])
    units = BootstrapUnits.of([f"g{index // 3}" for index in range(15)])
    gains = np.where(pairs[:, 0] % 3 == 2, 0.5, 1.0)
    found = units.paired_difference(np.zeros(len(pairs)), gains, pairs)
    assert found.difference.value == pytest.approx(gains.mean())
    assert found.difference.low == 0
    assert found.p_value == pytest.approx(2 / 32, abs=0.006)


def test_correlations_by_group_and_by_item() -> None:
    labels = np.array([1.0, 2, 3, 3, 1, 2, 5, 5, 5])
    groups = ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    rankings = [(np.arange(3) + 3 * g, np.array([1.0, 2.0, 3.0])) for g in range(3)]
    found = correlations(BootstrapUnits.of(groups), rankings, labels)
    # Group a: rho 1; group b (3, 1, 2 against 1, 2, 3): rho -0.5, tau -1/3; group c is constant and has none.
    assert found["spearman"].value == pytest.approx(0.25)
    assert found["kendall"].value == pytest.approx((1 - 1 / 3) / 2)
    assert found["spearman"].n == 2
    one = correlations(BootstrapUnits.of([""] * 6), [(np.arange(6), np.arange(6.0))], np.array([1.0, 2, 3, 4, 6, 5]))
    assert one["spearman"].value == pytest.approx(1 - 6 * 2 / (6 * 35))
    assert one["spearman"].n == 6


def grouped(groups: int, each: int) -> list[Item]:
    return [Item(f"{g}/{i}", "x", "", f"g{g}", float(i)) for g in range(groups) for i in range(each)]


@given(st.integers(3, 12), st.integers(2, 5), st.integers(2, 3), st.integers(0, 50))
def test_no_group_stands_on_both_sides_and_each_is_tested_once(groups, each, folds, seed) -> None:
    items = grouped(groups, each)
    made = make_folds(items, train_items=2 * each, folds=folds, seed=seed)
    tested = np.concatenate([fold.test for fold in made])
    assert sorted(tested) == list(range(len(items)))
    for fold in made:
        train, test = ({items[index].group for index in side} for side in (fold.train, fold.test))
        assert not train & test
        assert len(fold.train) <= 2 * each
        for pairs, members in ((fold.train_pairs, fold.train), (fold.test_pairs, fold.test)):
            assert set(pairs.ravel()) <= set(members.tolist())
            assert all(items[a].group == items[b].group and a < b for a, b in pairs)


def test_too_few_groups_and_missing_labels_are_told() -> None:
    with pytest.raises(InputError, match="3 folds need at least 3 groups, there are 2"):
        make_folds(grouped(2, 5))
    with pytest.raises(InputError, match="3 folds need at least 6 items, there are 5"):
        make_folds(grouped(1, 5))
    with pytest.raises(InputError, match="only one of its group"):
        make_folds(grouped(6, 1))
    with pytest.raises(InputError, match="No two of the 1 training items of fold 1"):
        make_folds(grouped(6, 2), train_items=1)
    with pytest.raises(InputError, match="needs a label for every item"):
        make_folds([Item("a", "x"), Item("b", "y")])


@pytest.mark.parametrize(("change", "message"), [({"label": None}, "have a label"), ({"group": ""}, "only one of its")])
def test_a_judge_is_scored_on_labelled_items_that_can_be_compared(change, message):
    items = [replace(item, **({"group": item.id} if "group" in change else change)) for item in articles(2, 2)]
    with pytest.raises(InputError, match=message):
        evaluate_judge(items, None, quality="q")
