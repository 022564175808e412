from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation.publishing import Placement, SplitPlan, split_placements
from climassay.generation.publishing.splits import group_questions


def placement(number, *, passage=None, book="book", kind="mcq", level="base", question=None):
    text = passage if passage is not None else f"passage {number} " + " ".join(f"w{number}x{i}" for i in range(20))
    return Placement(kind, level, book, book, f"p{passage or number}", text, question or f"question {number}?")


def many(count, **fields):
    return [placement(number, **fields) for number in range(count)]


def test_shares_are_kept_in_every_stratum():
    items = [
        placement(number, kind=kind, level=level, book=book)
        for number, (kind, level, book) in enumerate(
            (kind, level, book)
            for _ in range(10)
            for kind in ("mcq", "freeform")
            for level in ("base", "reasoning", "hypothetical")
            for book in ("one", "two")
        )
    ]
    splits = split_placements(items, SplitPlan())
    counts = Counter(splits)
    assert (counts["train"], counts["dev"], counts["test"]) == (96, 12, 12)
    for kind in ("mcq", "freeform"):
        own = Counter(split for item, split in zip(items, splits, strict=True) if item.kind == kind)
        assert 46 <= own["train"] <= 50
        assert 4 <= own["dev"] <= 8


@given(st.integers(1, 60), st.integers(0, 20), st.integers(0, 5))
def test_what_is_appended_moves_nothing(count, more, seed):
    plan = SplitPlan(seed=seed)
    assert split_placements(many(count + more), plan)[:count] == split_placements(many(count), plan)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=30), st.booleans())
def test_no_passage_and_no_question_on_two_sides(pairs, numbers):
    items = [
        placement(number, passage=f"text {passage}", question=f"q {question}")
        for number, (passage, question) in enumerate(pairs)
    ]
    plan = (
        SplitPlan((-1, len(items) // 4, len(items) // 4))
        if numbers and len(items) > 3
        else SplitPlan((0.5, 0.25, 0.25))
    )
    splits = split_placements(items, plan)
    for one, first in zip(items, splits, strict=True):
        for other, second in zip(items, splits, strict=True):
            if one.passage == other.passage or one.question == other.question:
                assert first == second


def test_overlapping_passages_of_one_document_stay_together():
    shared = "the last whole sentence of the first passage stands again"
    first = placement(0, passage=f"Some words of its own here and then {shared}")
    second = placement(1, passage=f"{shared.upper()} with other words behind it")
    elsewhere = placement(2, passage=f"{shared} in another book", book="other")
    assert group_questions([first, second, elsewhere]) == [0, 0, 2]


def test_a_passage_that_ties_two_groups_brings_the_later_to_the_earlier():
    left, right = "a b c d e f g h i", "k l m n o p q r s"
    fill = many(30)
    for seed in range(20):
        items = [*fill, placement(100, passage=left), placement(101, passage=right)]
        before = split_placements(items, SplitPlan(seed=seed))
        after = split_placements([*items, placement(102, passage=f"{left} {right}")], SplitPlan(seed=seed))
        assert after[:31] == before[:31]
        assert after[30] == after[31] == after[32]


def test_numbers_are_met():
    items = [placement(number, kind="mcq" if number % 2 else "cloze") for number in range(50)]
    splits = split_placements(items, SplitPlan((-1, 10, 20)))
    assert Counter(splits) == {"train": 20, "dev": 10, "test": 20}
    test = Counter(item.kind for item, split in zip(items, splits, strict=True) if split == "test")
    assert test == {"mcq": 10, "cloze": 10}


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ((0.8, 0.1, 0.2), "neither shares"),
        ((-1, -1, 5), "neither shares"),
        ((-0.5, 0.5, 1), "three numbers"),
        ((2.5, 1, 1), "neither shares"),
        ((float("nan"), 0, 1), "three numbers"),
    ],
    ids=["sum", "two rests", "negative", "fraction", "nan"],
)
def test_parts_that_make_no_sense_are_refused(parts, word):
    with pytest.raises(InputError, match=word):
        SplitPlan(parts)
