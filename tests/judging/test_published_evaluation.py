"""The evaluation of the thesis: what it computes, and that it leaks."""

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.judging import Item
from climassay.judging.judges import Contrasts
from climassay.judging.preferences import Judgements
from climassay.judging.published_evaluation import classify_comparisons, score_comparisons
from climassay.judging.training import pairs_within


def summaries(groups=6, each=6, levels=5, seed=0):
    generator = np.random.default_rng(seed)
    return [
        Item(f"{group}/{number}", "word", "", f"g{group}", float(generator.integers(0, levels)))
        for group in range(groups)
        for number in range(each)
    ]


def all_pairs(items):
    return pairs_within([item.group for item in items], np.arange(len(items)), None, np.random.default_rng(0))


def judgements(items, pairs, failed=0):
    labels = np.array([item.label for item in items])
    has_failed = np.arange(len(pairs)) < failed
    return Judgements(np.where(has_failed, 0.0, labels[pairs[:, 0]] - labels[pairs[:, 1]]), has_failed)


def test_random_labels_look_learnable_because_the_split_leaks() -> None:
    items = summaries(groups=1, each=30, levels=1000, seed=3)
    pairs = all_pairs(items)
    generator = np.random.default_rng(4)
    states = generator.normal(size=(30, 400))
    noise = generator.normal(0, 0.3, size=(len(pairs), 400))
    differences = (states[pairs[:, 0]] - states[pairs[:, 1]] + noise).astype(np.float32)
    contrasts = Contrasts(differences, np.zeros(len(pairs)), np.zeros(len(pairs), dtype=bool))
    scores = score_comparisons(items, pairs, contrasts)
    assert scores.accuracy.value > 0.9
    assert scores.constant == pytest.approx(0.5, abs=0.1)
    assert scores.accuracy.n == len(pairs)  # half of both orders


def test_ties_count_as_not_greater() -> None:
    items = summaries()
    pairs = all_pairs(items)
    scores = score_comparisons(items, pairs, judgements(items, pairs))
    assert scores.accuracy.value == 1
    assert scores.spearman.value > 0.8
    assert scores.spearman.n == 6
    silent = Judgements(np.zeros(len(pairs)), np.zeros(len(pairs), dtype=bool))
    undecided = score_comparisons(items, pairs, silent)
    assert undecided.accuracy.value == pytest.approx(undecided.constant)
    assert undecided.constant > 0.5


def test_failed_comparisons_are_counted_and_groups_of_equal_labels_left_out() -> None:
    items = summaries() + [Item(f"equal/{number}", "word", "", "equal", 3.0) for number in range(3)]
    pairs = all_pairs(items)
    scores = score_comparisons(items, pairs, judgements(items, pairs, failed=5))
    assert scores.failed == 5
    assert scores.accuracy.n == len(pairs) - 5
    assert scores.spearman.n == 6
    with pytest.raises(InputError, match="answered none"):
        score_comparisons(items, pairs, judgements(items, pairs, failed=len(pairs)))


def test_a_perfect_order_of_tied_labels_has_a_correlation_of_one() -> None:
    items = [Item(str(number), "word", "", "g", label) for number, label in enumerate([1.0, 1.0, 2.0, 2.0, 5.0])]
    pairs = all_pairs(items)
    values = [score_comparisons(items, pairs, judgements(items, pairs), seed=seed).spearman.value for seed in range(8)]
    assert max(values) == pytest.approx(1)


def test_the_classifier_knows_three_outcomes() -> None:
    generator = np.random.default_rng(1)
    outcomes = np.tile([1, 0, -1], 60)
    states = (4.0 * outcomes[:, None] + generator.normal(0, 0.3, (180, 3))).astype(np.float32)
    assert (classify_comparisons(states[:90], outcomes[:90], states[90:]) == outcomes[90:]).mean() > 0.95
    assert classify_comparisons(states, np.ones(180, dtype=np.int64), states[:2]).tolist() == [1, 1]
