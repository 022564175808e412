"""A repeated question is found, whatever its options; a question with other numbers is another question."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation.screening import DuplicateFinder
from climassay.generation.screening.check import stem, words
from screened_drafts import ANSWER, ASKED, OPTIONS, cloze, freeform, mcq


def test_the_first_of_two_is_kept_and_named():
    finder = DuplicateFinder()
    assert finder.add(freeform(id="a")) is None
    assert finder.add(freeform(f"{ASKED} ", ANSWER.upper(), id="b")) == "a"
    assert finder.add(freeform(ASKED.replace("do", "did"), id="c")) == "a"
    assert finder.add(freeform("Which dust leads among nucleating particles?", "Mineral dust.", id="d")) is None
    assert len(finder) == 2


def test_options_and_their_order_do_not_matter_but_the_answer_does():
    finder = DuplicateFinder()
    finder.add(mcq(id="a"))
    assert finder.add(mcq(options=OPTIONS[::-1], correct=2, id="b")) == "a"
    assert finder.add(mcq(options=("x", OPTIONS[1], "y", "z"), id="c")) == "a"
    assert finder.add(mcq(correct=3, id="d")) is None


def test_another_number_or_another_kind_is_no_repetition():
    finder = DuplicateFinder(jaccard=0.5)
    finder.add(cloze("Near −38 °C pure droplets of clouds freeze without the help of any particle.", id="a"))
    assert (
        finder.add(cloze("Near −33 °C pure droplets of clouds freeze without the help of any particle.", id="b"))
        is None
    )
    finder.add(freeform(id="c"))
    assert finder.add(mcq(ASKED, (ANSWER, *OPTIONS[:3]), 0, id="d")) is None


def test_a_refilled_finder_goes_on_where_it_stopped():
    drafts = [freeform(f"Why does effect {name} of cloud droplets grow?", name * 3, id=name) for name in "abcdef"]
    whole, second = DuplicateFinder(), DuplicateFinder()
    for draft in drafts:
        whole.add(draft)
    second.refill(drafts)
    again = [replace(draft, id=f"{draft.id}2") for draft in drafts]
    assert [whole.add(draft) for draft in again] == [second.add(draft) for draft in again] == list("abcdef")


WORDS = ["ice", "dust", "droplets", "freeze", "clouds", "vapour", "grow", "temperature"]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), max_size=12), st.sampled_from([0.5, 0.8, 1.0])
)
def test_the_index_finds_what_comparing_all_pairs_finds(texts, threshold):
    drafts = [freeform(" ".join(text), "Yes", id=str(number)) for number, text in enumerate(texts)]
    finder, kept = DuplicateFinder(jaccard=threshold), []
    for draft in drafts:
        pairs = _pairs(draft)
        similar = [other for other, known in kept if len(pairs & known) >= threshold * len(pairs | known) - 1e-9]
        expected = similar[0] if similar else None
        assert finder.add(draft) == expected
        if expected is None:
            kept.append((draft.id, pairs))


def _pairs(draft):
    found = ["freeform", *map(stem, words(f"{draft.wording.question} {draft.wording.answer}")), "."]
    return set(pairwise(found))


class Encoder:
    """Direction by topic: what speaks of ice, and what does not."""

    name, fingerprint, width = "local:topics", "e" * 64, 2

    def encode(self, texts, *, role="passage", on_progress=None):
        return np.array([[1.0, 0.0] if "ice" in text.lower() else [0.0, 1.0] for text in texts], dtype=np.float32)


def test_an_encoder_finds_repetitions_in_other_words():
    finder = DuplicateFinder(Encoder())
    assert finder.add(freeform("Why is ice slippery?", "It melts.", id="a")) is None
    assert finder.add(freeform("What makes frozen water (ice) smooth?", "A film of water.", id="b")) == "a"
    assert finder.add(freeform("What makes ice smooth at 5 °C?", "A film.", id="c")) is None
    refilled = DuplicateFinder(Encoder())
    refilled.refill([freeform("Why is dust red?", "Iron.", id=str(number)) for number in range(300)])
    assert refilled.add(freeform("What colours sand?", "Rust.", id="x")) == "0"


def test_thresholds_are_checked():
    for options in ({"jaccard": 0.0}, {"jaccard": 1.2}, {"cosine": 2.0}):
        with pytest.raises(InputError, match="Similarities"):
            DuplicateFinder(**options)
