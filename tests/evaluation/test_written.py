"""Freeform and cloze answers: what is asked, what is kept, what is noted."""

import pytest

from climassay.errors import ModelError
from climassay.evaluation import ExamplePool, SourceLoaders, TaskPrompts, make_setting, parse_spec
from climassay.evaluation.tasks import ask_written
from climassay.questions import TYPES, Question
from scripted_model import ScriptedModel

FREEFORM = Question("f1", "freeform", "Why does ice melt?", "Because it is warm.")
CLOZE = Question("c1", "cloze", "The <MASK> absorbs heat.", "ocean")
POOL = ExamplePool(
    "pool",
    (
        Question("p1", "freeform", "What is albedo?", "The reflected share."),
        Question("p2", "cloze", "A <MASK> is a storm.", "cyclone"),
    ),
)
SOURCES = SourceLoaders(lambda names: None, lambda name: POOL)


def ask(question, write, setting="default", examples=1):
    model = ScriptedModel(write=write)
    chosen = make_setting(parse_spec(setting, examples=examples), SOURCES)
    [answer] = ask_written([question], model, chosen, TaskPrompts.load())
    return answer, model.texts[0]


def test_a_freeform_answer_is_asked_for_in_two_sentences_and_kept():
    answer, prompt = ask(FREEFORM, lambda prompt, schema: " It is warm.\nVery warm.\n\nQuestion: and why?")
    assert answer.text == "It is warm. Very warm."
    assert answer.violations == ()
    assert "Why does ice melt?" in prompt
    assert "at most two sentences" in prompt
    assert prompt.endswith("<answer>Answer:")


def test_a_cloze_statement_is_asked_with_its_gap():
    answer, prompt = ask(CLOZE, lambda prompt, schema: " **Ocean**.\nStatement: next")
    assert answer.text == "Ocean"
    assert answer.violations == ()
    assert "Statement: The ____ absorbs heat." in prompt
    assert "MASK" not in prompt


def test_examples_come_before_the_question_in_their_own_form():
    _, prompt = ask(CLOZE, lambda prompt, schema: "sea", "few-shot:pool")
    assert "Statement: A ____ is a storm.\nMissing word: cyclone\n\nStatement: The ____ absorbs heat." in prompt
    _, prompt = ask(FREEFORM, lambda prompt, schema: "sea", "few-shot:pool")
    assert "Question: What is albedo?\nAnswer: The reflected share.\n\nQuestion: Why does ice melt?" in prompt


def test_a_failed_call_is_an_answer_with_its_error():
    answer, _ = ask(FREEFORM, lambda prompt, schema: ModelError("The server is down."))
    assert (answer.text, answer.error, answer.violations) == ("", "The server is down.", ())


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  albedo ", "albedo"),
        ("'SO2'.", "SO2"),
        ("“sulfur dioxide”\nbecause", "sulfur dioxide"),
        ("0.5", "0.5"),
        ("", ""),
        ("\n\nice", "ice"),
    ],
)
def test_a_cloze_answer_is_its_first_line_without_wrapping(text, kept):
    assert TYPES["cloze"].parse_answer(text) == kept


@pytest.mark.parametrize(
    ("text", "broken"),
    [("ice", ()), ("ice-albedo", ()), ("sea ice", ("more than one word",)), ("", ("empty",))],
)
def test_cloze_takes_one_word(text, broken):
    assert TYPES["cloze"].violations(text, 1) == broken


@pytest.mark.parametrize(
    ("said", "broken"),
    [
        ("It warms by e.g. 1.5 °C. It melts.", ()),
        ("It warms. It melts. It flows.", ("more than two sentences",)),
    ],
)
def test_freeform_takes_two_sentences_and_knows_abbreviations(said, broken):
    assert ask(FREEFORM, lambda prompt, schema: said)[0].violations == broken


def test_a_freeform_answer_is_its_first_paragraph():
    assert TYPES["freeform"].violations("", 0) == ("empty",)
    assert TYPES["freeform"].parse_answer("A b.\n c.\n\nd.") == "A b. c."


@pytest.mark.parametrize(
    "start",
    ["**Answer:**\n\n", "**Answer**:\n", "Here is the answer:\n\n", "Here's my answer in two sentences:\n\n",
     "# Answer\n\n", "## Thermal expansion\n\n", "Answer\n\n"],
)  # fmt: skip
def test_the_paragraph_after_a_heading_is_the_freeform_answer(start):
    assert TYPES["freeform"].parse_answer(f"{start}Water\nexpands.\n\nMore.") == "Water expands."
    assert TYPES["freeform"].parse_answer(start) == start.strip(), "a heading alone is all there is"


@pytest.mark.parametrize("text", ["The answer: it warms.", "Answer: Ice melts.", "#1 is ice.", "Two things happen:"])
def test_a_first_paragraph_that_says_something_is_no_heading(text):
    assert TYPES["freeform"].parse_answer(f"{text}\n\nMore.") == text


@pytest.mark.parametrize(
    "text",
    ["Missing word: albedo", "**Missing word:** albedo", "Missing word: **albedo**", "The missing word is albedo.",
     "The missing word is **albedo**.", "The missing word is:\n\n**albedo**", "Answer: albedo", "**Answer:**\n\nalbedo",
     "**Final Answer**\n\nalbedo", "\\boxed{albedo}", "$\\boxed{\\text{albedo}}$", "```\nalbedo\n```",
     "```text\nalbedo\n```", "- albedo", "1. albedo", "* **albedo**", "Word: albedo", "albedo\n\nIt is the answer.",
     'The single scientific word missing in the statement is **"albedo"**.'],
)  # fmt: skip
def test_what_is_written_around_the_word_of_a_cloze_statement_is_left_out(text):
    assert TYPES["cloze"].parse_answer(text) == "albedo"


@pytest.mark.parametrize(
    "text", ["term", "The word ocean is missing", "The answer is missing", "answer:", "-1.5", "word-order"]
)
def test_words_that_say_something_else_stay(text):
    assert TYPES["cloze"].parse_answer(text) == text
    assert text.endswith(":") or TYPES["cloze"].parse_answer(f"{text}\n\nMore.") == text
