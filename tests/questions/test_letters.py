"""Letters that models choose, in the many ways in which strong models write them."""

from time import process_time

import pytest

from climassay.models.openai.option_scores import named_option
from climassay.questions import TYPES

CHOSEN = {
    "a": (
        "A", "A.", "A: The sky", "A - the sky", "A — the sky", "The correct answer is A", "The correct answer is a",
        "The answer is A because CO2", "Option A", "Option A is correct", "The answer is a) x", "**Answer: A**",
        "**(A)** text", "A\n\nBecause", "A because it", "a, because", "A (x)", "A is correct.",
        "A is the correct answer", "a is correct", "**A** is correct", "A is right: option B ignores",
        "I would say (a).", "A, as the ocean warms", 'The answer is "a".', "A\xa0",
        "The answer: **A) Warming**", "**a**", "a\nBecause",
    ),
    "b": (
        '{"explanation": "option a is wrong", "final_answer": "b"}', "The correct answer here is b.",
        "So the answer has to be b.", "Correct: B", "Solution: B", "It’s b.", "b", "B", "**B**",
        "B. Carbon dioxide", "(b)", "Answer: B", "The answer is b.", "The correct answer is (b).",
        "The correct answer is **b) carbon dioxide**.", "Option B is correct.", "Option B", "\\boxed{B}",
        "$\\boxed{b}$", "The correct option is B", "Correct answer: B", "**Answer:** b", "**Answer: b**",
        "The answer is: **b**", '{"answer": "b"}', '```json\n{"answer": "b"}\n```', "```\nb\n```",
        "<answer>b</answer>", "Answer - b", "b\n\nExplanation: A greenhouse gas absorbs ... option a is wrong",
        "Let's think. a) is wrong because it is short. c) is wrong too. Therefore, the answer is b.",
        "The correct answer is\n\nb", "The best answer is b because",
        "Based on the passages, the answer would be b.", "I would choose b.", "I choose B", "My answer: b",
        "Final answer: b", "**Final Answer**\n\nb", "### Answer\nb", "Answer\nb", "Letter: b", "b:", "b -",
        "b – carbon dioxide", "b — because", "The answer is option b", "The correct choice is b",
        "Answer: option b", "The answer is the option b.", "answer is letter b", "Choice: B",
        "Not a, but the answer is b", "The answer is not a; it is b", "The answer is (B) and not (A).", "b。",
        "答案是b", "La réponse est b.", "Ｂ", "The correct answer is: \n**b. text**", "The answer: ‘b’", "“b”", "‘b’",
        "«b»", "Therefore, (b).", "Thus the correct option is **(b)**; option (a) is wrong.",
        "Option (a) is wrong. The correct option is (b).", "The answer is b, as option a fails",
        "The answer is a warmer ocean, i.e. option b.", "(b)\n\nOptions a, c and d are wrong", "b, c is too small",
        "B, because A, C and D ignore it", "Option b, because", "**b**: text", "- b",
        "The answer is most likely b.", "答案：Ｂ", "（Ｂ）", "Answer (b)", "Text B is better",
        "The answer cannot be a. It must be b.", "Option A ignores it. Option B is right.",
        "(a) ignores it; (b) is right.", "[b]", "b. Warmer water", "b) because aerosols cool",
        "<think>first a) then c)</think>b", "Answer: b\nExplanation: a long one",
    ),
    "c": (
        "c", "C is correct", "C is correct. CO2", "B is wrong, so it must be C.",
        "The answer is c; a and b are wrong", "<think>a) no</think>\nc", "so I pick answer c", "<choice>c</choice>",
        "Let me think about a and b. It seems C is correct.", "**Correct Answer: C) 1.5**", "Correct option: **C**",
        " C)", "C: the third", "The answer is (c).",
    ),
    "d": (
        "D", "First a) no</think>\nAnswer: D", '{"reason": "a trap", "answer": "d"}',
        "The options are a, b, c and d. The answer is d.", "d) All of the above", "D. Both A and B",
        "Answer: D (both a and b)", "The correct answer is D, both A and B.", "The answer is (d) both (a) and (b).",
        "The best choice is clearly D", "Of these, option d is right.", "(d) because",
        "The correct option is **d**",
    ),
    None: (
        "Not correct: b", "Incorrect: b", "It’s a warmer ocean.", "A greenhouse effect is b",
        "I'm sorry, I cannot answer that.", "None of the above", "Both a and b are right", "a, b", "a and b", "a/b",
        "a & b", "Options (a) and (b) are both correct.", "The answer isn't listed.", "Answer: a or b",
        "A warmer ocean holds less CO2.", "A (relatively) small share", "A decrease of the albedo follows.",
        "The answer is a decrease.", "Option B is wrong.", "I would rule out b.", "Neither a nor b is correct.",
        "It is not c", "C_4 plants fix carbon", "C stocks decline", "c-axis growth", "The wrong option is b.",
        "<think>maybe (a)", "Between (b) and (c)", "It is a myth.", "Vitamin D matters",
        "Sunlight (vitamin D) matters", "Answer: A warmer ocean", "1. b", "I don't know", "A and B interact",
        "A is the hottest year", "C is half the story", "a, b, or c", "Both a and c", "Answer: A, B",
        "The answer is 'a greenhouse gas'", "Answer: b/c of warming", "B better", "The answer is not b.",
        "Answer is: none. b is not it", "", "e", "It depends.", "b or c", "Because it is warm", "Cooling dominates",
        "I think a warmer ocean expands", "A: no. B: yes.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("letter", "text"), [(letter, text) for letter, texts in CHOSEN.items() for text in texts])
def test_the_chosen_letter_is_read_and_never_another(letter, text):
    expected = None if letter is None else "abcd".index(letter)
    assert TYPES["mcq"].parse_choice(text, 4) == expected
    assert named_option(text, (" A", " B", " C", " D")) == expected, "one reader"


@pytest.mark.parametrize("part", ["answer\n", "*", "a, b ", "answer is ", "a is the ", "a (x", "</think>", "option "])
def test_long_answers_are_read_quickly(part):
    start = process_time()
    assert TYPES["mcq"].parse_choice("So " + part * 5000, 4) is None
    assert process_time() - start < 5


def test_more_options_than_letters_are_read_by_their_words():
    words = tuple(f"term {number}" for number in range(100, 130))
    assert named_option("Term 127, because", words) == 27
