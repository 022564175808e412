"""Splits: whole groups, near copies, like shares; nothing of a test item in training."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.learning import NearDuplicates, group_folds, iterate_splits


@given(st.lists(st.integers(0, 8), min_size=4, max_size=60), st.integers(2, 6), st.integers(0, 3), st.booleans())
def test_a_group_is_never_split_and_every_item_is_tested_once(groups, folds, seed, even):
    if len(set(groups)) < 2:
        return
    dealt = group_folds(groups, folds, seed=seed, even=even)
    tested = []
    for split in iterate_splits(dealt):
        assert not {groups[place] for place in split.train} & {groups[place] for place in split.test}
        tested += split.test.tolist()
    assert sorted(tested) == list(range(len(groups)))


def test_even_folds_are_of_like_size():
    groups = np.repeat(np.arange(20), np.arange(1, 21))
    sizes = np.bincount(group_folds(groups, 5, even=True))
    assert sizes.max() - sizes.min() <= 2


def test_stratified_folds_have_like_shares():
    generator = np.random.default_rng(0)
    labels = (generator.random(300) > 0.2).astype(int)
    folds = group_folds(np.arange(300) // 3, 5, labels=labels)
    zeros = np.bincount(folds, weights=1 - labels)
    assert zeros.max() - zeros.min() <= 2


def test_fewer_than_two_groups_cannot_be_dealt():
    with pytest.raises(InputError, match="at least two folds and two groups"):
        group_folds(["a", "a"], 5)


def test_near_copies_of_test_items_leave_training():
    vectors = np.eye(6, dtype=np.float32)
    vectors[5] = vectors[0]
    duplicates = NearDuplicates(list("abcdef"), vectors=vectors)
    assert len(duplicates) == 1
    folds = np.arange(6)
    for split in iterate_splits(folds, duplicates):
        [tested] = split.test.tolist()
        copies = {0: {5}, 5: {0}}.get(tested, set())
        assert set(split.train.tolist()) == set(range(6)) - {tested} - copies
    assert duplicates.of(np.array([0])).tolist() == [5]


def test_near_copies_are_found_across_the_blocks_in_which_vectors_are_compared():
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(2100, 64)).astype(np.float32)
    vectors[2050] = vectors[3]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert NearDuplicates([str(place) for place in range(2100)], vectors=vectors).of(np.array([3])).tolist() == [2050]
