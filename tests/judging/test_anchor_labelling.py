import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.judging.anchor_labelling import insert_indices


def logit(p):
    return math.log(p / (1 - p))


def scale(size, anchors=1):
    """Labels and their anchors: label l has the anchors l * anchors, ..."""
    labels = [f"label {place}" for place in range(size)]
    return labels, {label: list(range(p * anchors, (p + 1) * anchors)) for p, label in enumerate(labels)}


def preferring(probabilities, anchors=1):
    """A new item that beats each anchor of a label with that label's probability."""
    return lambda chosen: np.array([logit(probabilities[a // anchors]) for a in chosen.tolist()])


def insert(ask_anchors, labels, anchors, **options):
    """One new item, numbered behind the anchors."""
    item = 1 + max((anchor for known in anchors.values() for anchor in known), default=0)
    return insert_indices(lambda pairs: ask_anchors(pairs[:, 1]), [item], labels, anchors, **options)[0]


def as_printed(probabilities):
    """Maiya 2024, algorithm 1, counted from 1; label m is beaten with probabilities[m - 1]."""
    low, high = 1, len(probabilities)
    while True:
        middle = (low + high) // 2
        mean = probabilities[middle - 1]
        if mean > 0.5 and middle != high:
            low = middle + 1
        elif mean < 0.5 and middle != low:
            high = middle - 1
        else:
            return middle


def test_the_printed_algorithm_never_returns_the_middle_of_five_labels():
    labels, anchors = scale(5)
    patterns = list(itertools.product([0.8, 0.2], repeat=5))
    assert len(patterns) == 32
    assert {as_printed(pattern) for pattern in patterns} == {1, 2, 4, 5}
    printed = [insert(preferring(pattern), labels, anchors, mode="printed").label for pattern in patterns]
    assert printed == [f"label {as_printed(pattern) - 1}" for pattern in patterns]
    # Ours, with an equality band too narrow to matter here: the middle label is nearer than its neighbour.
    ours = {
        insert(preferring([*pattern[:2], 0.5 + (pattern[2] - 0.5) / 2, *pattern[3:]]), labels, anchors).label
        for pattern in patterns
    }
    assert "label 2" in ours
    assert as_printed((0.9, 0.8, 0.52, 0.2, 0.1)) == 4
    assert insert(preferring((0.9, 0.8, 0.52, 0.2, 0.1)), labels, anchors).label == "label 2"


@pytest.mark.parametrize("mode", ["band", "three-way"])
@given(data=st.data(), size=st.integers(2, 9))
def test_every_label_of_every_scale_is_reachable(mode, data, size):
    labels, anchors = scale(size, anchors=12)
    target = data.draw(st.integers(0, size - 1))
    probabilities = [0.9 if place < target else 0.1 if place > target else 0.5 for place in range(size)]
    result = insert(preferring(probabilities, 12), labels, anchors, mode=mode, seed=data.draw(st.integers(0, 99)))
    assert result.label == labels[target]
    assert len(result.path) <= math.floor(math.log2(size)) + 1


@pytest.mark.parametrize(
    ("probabilities", "label", "visited"),
    [
        ((0.9, 0.9, 0.9, 0.9, 0.9), "label 4", [2, 3, 4]),
        ((0.1, 0.1, 0.1, 0.1, 0.1), "label 0", [2, 0]),
        ((0.9, 0.8, 0.52, 0.1, 0.1), "label 2", [2]),
        ((0.9, 0.9, 0.8, 0.4, 0.1), "label 3", [2, 3]),
        ((0.9, 0.9, 0.6, 0.3, 0.1), "label 2", [2, 3]),
        ((0.9, 0.75, 0.25, 0.1, 0.1), "label 1", [2, 0, 1]),
    ],
    ids=["top", "bottom", "equal", "above", "back to the middle", "a tie goes to the last"],
)
def test_hand_worked_searches(probabilities, label, visited):
    labels, anchors = scale(5)
    result = insert(preferring(probabilities), labels, anchors)
    assert result.label == label
    assert [step.label for step in result.path] == [labels[place] for place in visited]
    assert [step.preference for step in result.path] == pytest.approx([probabilities[place] for place in visited])
    assert result.comparisons == len(visited)


@pytest.mark.parametrize(
    ("log_odds", "verdict"),
    [
        ([1, 1, 1, 0, 0, -1], "higher"),
        ([-1, -1, -1, 0, 0, 1], "lower"),
        ([0, 0.1, -0.1, 1, 1, -1], "equal"),
        ([1, 1, -1, -1, 0], "equal"),
        ([1, 1, 0, 0, -1], "equal"),
        ([0.4, 0.4, 5], "equal"),
        ([0.41, 0.41, 0.4], "higher"),
    ],
    ids=["higher", "lower", "equal", "balanced", "tied with equal", "at the tie band", "beyond the tie band"],
)
def test_three_way_mode_takes_the_most_frequent_verdict(log_odds, verdict):
    result = insert(
        lambda chosen: np.array(log_odds, float), ["only"], {"only": range(len(log_odds))}, mode="three-way"
    )
    assert result.path[0].verdict == verdict
    assert result.label == "only"


def test_samples_are_drawn_without_replacement_seeded_and_no_more_than_there_are():
    labels, anchors = scale(3, anchors=100)
    drawn = {}
    for seed in (0, 0, 1):
        seen = []

        def ask(chosen, seen=seen):
            seen.append(chosen.tolist())
            return np.zeros(len(chosen))

        result = insert(ask, labels, anchors, seed=seed)
        assert result.comparisons == 10 == len(set(seen[0]))
        assert set(seen[0]) <= set(anchors["label 1"])
        assert drawn.setdefault(seed, seen) == seen
    assert drawn[0] != drawn[1]
    assert insert(lambda chosen: np.zeros(len(chosen)), *scale(3, anchors=4)).comparisons == 4


@given(st.integers(1, 9), st.integers(0, 50), st.sampled_from(["band", "three-way"]))
def test_many_items_together_equal_items_alone_in_one_call_a_step(size, seed, mode):
    generator = np.random.default_rng(seed)
    labels, anchors = scale(size, anchors=15)
    log_odds = generator.normal(scale=2, size=(20, size * 15))
    calls = []

    def ask(pairs):
        calls.append(len(pairs))
        return log_odds[pairs[:, 0] - 500, pairs[:, 1]]

    items = list(range(500, 520))
    together = insert_indices(ask, items, labels, anchors, mode=mode, seed=seed)
    assert len(calls) == max(len(result.path) for result in together) <= math.floor(math.log2(size)) + 1
    assert sum(calls) == sum(result.comparisons for result in together)
    assert calls[0] == 20 * 10
    alone = tuple(insert_indices(ask, [item], labels, anchors, mode=mode, seed=seed)[0] for item in items)
    assert together == alone


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"anchors": {"low": [1], "high": []}}, "'high' has no anchors"),
        ({"anchors": {"low": [1]}}, "'high' has no anchors"),
        ({"anchors": {"low": [1], "high": [2], "huge": [3]}}, "'huge'"),
        ({"labels": []}, "at least one label"),
        ({"labels": ["low", "low"]}, "each label only once"),
        ({"samples": 0}, "got 0"),
        ({"mode": "vote"}, "'vote'"),
        ({"band": 0.5}, "0.5"),
        ({"tie_band": -1.0}, "-1.0"),
        ({"items": [1]}, "Item 1 is one of the anchors"),
        ({"items": [-1]}, "indices starting at 0"),
        ({"ask": lambda pairs: np.full(len(pairs), np.nan)}, "NaN"),
    ],
    ids=["empty", "missing", "unknown", "none", "twice", "few", "mode", "band", "tie", "leak", "items", "nan"],
)
def test_bad_input_is_named(change, named):
    given_input = {"ask": lambda pairs: np.zeros(len(pairs)), "items": [7], "labels": ["low", "high"]}
    with pytest.raises(InputError, match=named):
        insert_indices(**{**given_input, "anchors": {"low": [1], "high": [2]}, **change})
