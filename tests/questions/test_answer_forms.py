"""Forms of multiple-choice answers by language and wrapper; the parts held out were first read once it was made."""

import json
from pathlib import Path

import pytest

from climassay.questions import TYPES

FORMS = [json.loads(line) for line in Path(__file__).with_name("answer_forms.jsonl").read_text("utf-8").splitlines()]
CASES = Path(__file__).parents[3] / "shared" / "data" / "cases" / "evaluation" / "answers.jsonl"
OPTIONS = ("oxygen", "carbon dioxide", "argon", "neon")


def choices(forms):
    return [TYPES["mcq"].parse_choice(form["answer"], form["options"]) for form in forms]


@pytest.mark.parametrize("part", ["tuning", "held out", "second held out"])
def test_no_form_is_read_as_a_wrong_letter_and_few_are_unread(part):
    forms = [form for form in FORMS if form["part"] == part]
    pairs = [(form, choice) for form, choice in zip(forms, choices(forms), strict=True)]
    assert [form["answer"] for form, choice in pairs if choice not in (None, form["expected"])] == []
    assert sum(choice is None and form["expected"] is not None for form, choice in pairs) <= len(forms) // 20


@pytest.mark.skipif(not CASES.exists(), reason="the field cases are not here")
def test_the_field_cases_are_read():
    forms = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    assert [
        form["answer"] for form, choice in zip(forms, choices(forms), strict=True) if choice != form["expected"]
    ] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Carbon dioxide", 1),
        ("**carbon dioxide.**", 1),
        ("The correct answer is carbon dioxide.", 1),
        ("B) carbon dioxide", 1),
        ("The answer is B) argon", None),
        ("B. neon", None),
        ("B. It absorbs most.", 1),
        ("helium", None),
        ("carbon", None),
        ("I would go with carbon dioxide.", 1),
        ("The answer is carbon dioxide (CO2).", 1),
        ("Argon is a bad answer; carbon dioxide is right.", 1),
        ("Argon and neon are noble gases.", None),
        ("It is not argon.", None),
        ("The passage speaks of argon.", None),
        ("A) ✗\nB) ✓\nC) ✗\nD) ✗", 1),
        ("Answer: **B**\n\nA) ✗\nB) ✓\nC) ✗\nD) ✗", 1),
        ("Answer: **C**\n\nA) ✗\nB) ✓\nC) ✗\nD) ✗", None),
        ("A - incorrect\nB - correct\nC - incorrect\nD - incorrect", 1),
        ("A: True\nB: True\nC: False\nD: False", None),
        ("Wait, actually it's D. No — B. Yes, B.", None),
    ],
)
def test_the_texts_of_options_are_read_and_contradictions_choose_nothing(text, expected):
    assert TYPES["mcq"].parse_choice(text, 4, OPTIONS) == expected


def test_options_that_are_letters_are_chosen_by_their_labels():
    köppen = ("E", "A", "C", "B", "D")
    assert TYPES["mcq"].parse_choice("B", 5, köppen) == 1
    assert TYPES["mcq"].parse_choice("B) A", 5, köppen) == 1
    assert TYPES["mcq"].parse_choice("B) C", 5, köppen) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Therefore, $C = 3.7$ bits.", None),
        ("a = 3 and b = 4, so c = 5", None),
        ("Thus E = h * f and T = 2", None),
        ("(a) The heat is found first, with the mass and the heat capacity of water, which gives an energy of some "
         "kilojoules; then the temperature follows from the energy and from the mass that is known from the table in "
         "the question.", None),
        ("The closest option is (E), but it is not correct.", None),
        ("The answer is:\nA. 0\nB. 30\nC. 3\nD. 10", None),
        ("The correct options are A, ice; B, snow; and D, rain.", None),
        ("A is false, B is false, C is true, D is false, and E is true.", None),
        ("If the ice melted, then the answer would be (E).", None),
        ("Among the options, the answer is (E).", 4),
        ('{"answer": "A"}\nWait, the answer is B.', 1),
    ],
)  # fmt: skip
def test_letters_of_formulas_and_lists_are_no_answers(text, expected):
    assert TYPES["mcq"].parse_choice(text, 5) == expected
