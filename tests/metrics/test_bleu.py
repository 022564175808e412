import math

import pytest

from climaqa_cases import CASES, EMISSION_GEMMA, EMISSION_REFERENCE
from climassay.errors import InputError
from climassay.metrics import bleu, bleu_each, character_bleu, character_bleu_each

AGREEING = [case for case in CASES if (case.topic, case.model) != ("emission", "gemma-27b")]


@pytest.mark.parametrize("case", AGREEING, ids=lambda case: f"{case.topic}-{case.model}")
def test_nine_of_the_ten_printed_answers_give_the_printed_bleu(case):
    assert f"{character_bleu([case.reference], [case.answer]):.3f}" == f"{case.bleu:.3f}"


def test_the_tenth_printed_answer_needs_one_white_space_more_than_is_printed():
    as_printed = character_bleu([EMISSION_REFERENCE], [EMISSION_GEMMA])
    assert f"{as_printed:.3f}" == "0.363"
    for spaced in (f" {EMISSION_GEMMA}", f"{EMISSION_GEMMA}\n"):
        assert f"{character_bleu([EMISSION_REFERENCE], [spaced]):.3f}" == "0.364"


def test_character_bleu_worked_by_hand():
    # abcd against abce: 3 of 4 characters, 2 of 3 pairs, 1 of 2 triples, no run of four (0.1 of 1).
    assert character_bleu(["abce"], ["abcd"]) == pytest.approx((3 / 4 * 2 / 3 * 1 / 2 * 0.1 / 1) ** 0.25)
    # All runs of abcd are in abcdef: what is left is the penalty for 4 characters instead of 6.
    assert character_bleu(["abcdef"], ["abcd"]) == pytest.approx(math.exp(1 - 6 / 4))


def test_all_items_together_add_up_their_counts():
    references, candidates = ["abcd", "wxyz"], ["abcd", "abcd"]
    # 4 of 8 characters, 3 of 6 pairs, 2 of 4 triples, 1 of 2 runs of four.
    assert character_bleu(references, candidates) == pytest.approx(0.5)
    assert character_bleu_each(references, candidates) == pytest.approx([1.0, 0.0])


def test_word_bleu_worked_by_hand():
    # 4 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 runs of four.
    expected = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert bleu(["the sea rises with heat"], ["the sea rises with ice"]) == pytest.approx(expected)
    assert bleu_each(["the sea rises with heat"], ["the sea rises with ice"]) == pytest.approx([expected])


@pytest.mark.parametrize("metric", [character_bleu, character_bleu_each, bleu, bleu_each])
@pytest.mark.parametrize(
    ("references", "candidates", "word"),
    [
        (["a", "b"], ["a"], "2 references"),
        ([], [], "at least one"),
        (["a", " "], ["a", "b"], "Item 2"),
        ([[]], ["a"], "Item 1"),
    ],
    ids=["numbers", "none", "blank", "no-reference"],
)
def test_what_cannot_be_compared_is_refused(metric, references, candidates, word):
    with pytest.raises(InputError, match=word):
        metric(references, candidates)
