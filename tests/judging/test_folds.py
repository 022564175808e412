import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.judging.folds import make_folds
from climassay.judging.items import Item


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


def test_a_smaller_training_set_is_part_of_a_larger_one() -> None:
    items = grouped(9, 4)
    small, large = (make_folds(items, train_items=size, seed=3) for size in (8, 16))
    for first, second in zip(small, large, strict=True):
        assert set(first.train) < set(second.train)
        assert list(first.test) == list(second.test)


@given(st.integers(0, 20))
def test_items_of_one_group_are_split_by_item(seed) -> None:
    items = grouped(1, 30)
    made = make_folds(items, train_items=12, folds=3, pairs_per_item=4, seed=seed)
    assert sorted(np.concatenate([fold.test for fold in made])) == list(range(30))
    for fold in made:
        assert len(fold.train) == 12
        assert not set(fold.train) & set(fold.test)
        counts = np.bincount(fold.test_pairs.ravel(), minlength=30)[fold.test]
        assert counts.min() >= 4
        assert len(fold.test_pairs) == len(set(map(tuple, fold.test_pairs.tolist())))


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
