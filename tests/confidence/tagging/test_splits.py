import numpy as np
import pytest

from climassay.confidence.tagging.items import LabelledItem, TaggingItem
from climassay.confidence.tagging.splits import Twins, folds, hold_out, units
from climassay.errors import InputError
from confidence.tagging.planted import planted


def vectors(count, width=30, seed=0):
    found = np.random.default_rng(seed).normal(size=(count, width))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("apart", ["statement", "document"])
def test_every_statement_is_tested_once_and_nothing_is_shared(apart) -> None:
    items = planted(120)
    rows = vectors(120)
    rows[100] = rows[3]
    rows[77] = rows[3]
    twins = Twins(rows)
    assert len(twins) == 3
    splits = folds(items, twins, apart, count=4)
    groups = units(items, apart)
    assert sorted(np.concatenate([split.test for split in splits]).tolist()) == list(range(120))
    for split in splits:
        assert not set(groups[split.train]) & set(groups[split.test])
        near = rows[split.train] @ rows[split.test].T
        assert near.max() < 0.9


def test_folds_are_about_equal_and_decided_by_the_seed() -> None:
    items = planted(120)
    twins = Twins(vectors(120))
    sizes = [len(split.test) for split in folds(items, twins, count=4, seed=5)]
    assert max(sizes) - min(sizes) <= 4
    same = folds(items, twins, count=4, seed=5)
    assert [split.test.tolist() for split in folds(items, twins, count=4, seed=5)] == [s.test.tolist() for s in same]
    assert [s.test.tolist() for s in folds(items, twins, count=4, seed=6)] != [s.test.tolist() for s in same]


def test_held_out_sections_and_their_copies_are_not_trained_on() -> None:
    items = planted(120)
    rows = vectors(120)
    split = hold_out(items, Twins(rows), 0.25, seed=1)
    assert 20 <= len(split.test) <= 30
    copied = rows.copy()
    copied[split.train[0]] = copied[split.test[0]]
    again = hold_out(items, Twins(copied), 0.25, seed=1)
    assert split.train[0] not in again.train
    assert again.test.tolist() == split.test.tolist()


def test_twins_by_words() -> None:
    texts = ["Seas rise.", "seas  rise", "Ice melts."]
    items = [LabelledItem(TaggingItem(text), "high", "r", "d", "s") for text in texts]
    assert Twins.of_words(items).of(np.array([0])).tolist() == [1]


def test_one_section_cannot_be_split() -> None:
    items = [LabelledItem(TaggingItem("Seas rise."), "high", "r", "d", "s")] * 4
    with pytest.raises(InputError, match="two sections"):
        folds(items, Twins(vectors(4)))
    with pytest.raises(InputError, match="cannot be held out"):
        hold_out(items, Twins(vectors(4)), 0.5)
