import itertools
import math
import re
from pathlib import Path

import pytest

from climaqa_cases import CASES, EMISSION_GEMMA, EMISSION_REFERENCE
from climassay.errors import InputError
from climassay.metrics import bleu, bleu_each, character_bleu, character_bleu_each

PAPER = Path(__file__).parents[3] / "shared" / "papers" / "climaqa_paper.txt"
QUESTIONS = (54, 52, 55)
"""Freeform questions of the gold set by level: base, reasoning, hypothetical (Table 1)."""
LEVELS_AND_OVERALL = {
    "gemma-27b bleu": (0.381, 0.431, 0.418, 0.410),
    "gpt-3.5-turbo bleu": (0.453, 0.515, 0.579, 0.516),
    "gpt-4o bleu": (0.458, 0.483, 0.500, 0.480),
    "llama3-70b bleu": (0.312, 0.469, 0.510, 0.430),
    "mixtral-8x22b bleu": (0.374, 0.516, 0.525, 0.471),
    "gpt-4o bert": (0.887, 0.896, 0.902, 0.895),
    "llama3-70b bert": (0.873, 0.892, 0.898, 0.888),
}
"""From Table 5."""

AGREEING = [case for case in CASES if (case.topic, case.model) != ("emission", "gemma-27b")]


@pytest.mark.parametrize("case", AGREEING, ids=lambda case: f"{case.topic}-{case.model}")
def test_nine_of_the_ten_printed_answers_give_the_printed_bleu(case):
    assert f"{character_bleu([case.reference], [case.answer]):.3f}" == f"{case.bleu:.3f}"


def test_the_tenth_printed_answer_needs_one_white_space_more_than_is_printed():
    as_printed = character_bleu([EMISSION_REFERENCE], [EMISSION_GEMMA])
    assert f"{as_printed:.3f}" == "0.363"
    for spaced in (f" {EMISSION_GEMMA}", f"{EMISSION_GEMMA}\n"):
        assert f"{character_bleu([EMISSION_REFERENCE], [spaced]):.3f}" == "0.364"


def test_overall_is_the_mean_over_questions_in_the_published_table():
    for name, (base, reasoning, hypothetical, overall) in LEVELS_AND_OVERALL.items():
        sums = sum(n * value for n, value in zip(QUESTIONS, (base, reasoning, hypothetical), strict=True))
        # Three rounded figures and a fourth: half a unit each.
        assert sums / sum(QUESTIONS) == pytest.approx(overall, abs=0.001), name


@pytest.mark.skipif(not PAPER.is_file(), reason="the shared papers are absent")
def test_of_all_weights_those_numbers_of_questions_fit_the_whole_table_best():
    table = PAPER.read_text(encoding="utf-8").split("Table 5:")[1].split("A.2.2")[0]
    rows = [re.sub("</?b>", "", line).split("\t") for line in table.splitlines() if line.count("\t") == 12]
    values = [[float(cell) for cell in row[1:]] for row in rows if re.match(r"0\.\d", row[1])]
    assert len(values) == 32
    scores = [row[start : start + 4] for row in values for start in (0, 4)]

    def misfit(weights):
        return sum((sum(n * x for n, x in zip(weights, row, strict=False)) / 161 - row[3]) ** 2 for row in scores)

    triples = [(a, b, 161 - a - b) for a, b in itertools.product(range(45, 65), range(45, 65))]
    assert min(triples, key=misfit) == QUESTIONS
    assert all(
        sum(n * x for n, x in zip(QUESTIONS, row, strict=False)) / 161 == pytest.approx(row[3], abs=0.001)
        for row in scores
    )


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
