"""What is read from a writer's answer, and what is refused with one sentence."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation.writing import (
    FULL,
    UnreadableAnswerError,
    answer_schema,
    assign_positions,
    example_answer,
    read_wording,
)
from climassay.primer import gold_questions
from climassay.questions import Question

MCQ = {"question": "What reflects most sunlight?", "answer": "Clouds", "distractors": ["Oceans", "Forests", "Deserts"]}
FREEFORM = {"question": "Why is snow bright?", "answer": "Its grains scatter light many times."}
KINDS = pytest.mark.parametrize("kind", ["mcq", "freeform", "cloze"])


def read(kind, answer, lengths=FULL, **options):
    return read_wording(kind, answer if isinstance(answer, str) else json.dumps(answer), lengths, **options)


@KINDS
def test_examples_are_answers_of_the_schema_and_are_read_as_themselves(kind):
    questions = [question for question in gold_questions().questions if question.kind == kind]
    assert len(questions) >= 30
    for question in questions:
        written = example_answer(question)
        jsonschema.validate(json.loads(written), answer_schema(kind))
        wording = read(kind, written, position=question.correct or 0)
        assert wording.answer == (question.options[question.correct] if kind == "mcq" else question.answer)
        assert sorted(wording.options) == sorted(question.options)
        assert "<MASK>" not in wording.question


def test_an_example_needs_four_options_and_the_correct_one():
    for question in (
        Question("q1", "mcq", "Which?", "x", options=("x", "y", "z"), correct=0),
        Question("q2", "mcq", "Which?", "x", options=("x", "y", "z", "u")),
    ):
        with pytest.raises(InputError, match=question.id):
            example_answer(question)


@given(st.integers(0, 3), st.integers(0, 2**31 - 1))
def test_the_correct_option_stands_where_it_is_told_to(position, seed):
    wording = read("mcq", MCQ, position=position, seed=seed)
    assert wording.correct == position
    assert wording.options[position] == wording.answer == "Clouds"
    assert sorted(wording.options) == ["Clouds", "Deserts", "Forests", "Oceans"]
    assert read("mcq", MCQ, position=position, seed=seed) == wording


@given(st.lists(st.integers(0, 2**31 - 1), max_size=50))
def test_letters_are_balanced_within_a_call(seeds):
    positions = assign_positions(seeds)
    assert len(positions) == len(seeds)
    for start in range(0, len(seeds) - 3, 4):
        assert sorted(positions[start : start + 4]) == [0, 1, 2, 3]
    assert assign_positions(seeds) == positions


@pytest.mark.parametrize(
    ("kind", "answer", "fault"),
    [
        ("mcq", '{"question": "What', "not complete JSON"),
        ("mcq", "[1, 2]", "not a JSON object"),
        ("mcq", MCQ | {"question": ""}, "leaves the question empty"),
        ("mcq", MCQ | {"answer": " ... "}, "leaves the answer empty"),
        ("mcq", MCQ | {"distractors": ["a", "b"]}, "2 distractors instead of 3"),
        ("mcq", MCQ | {"distractors": "abc"}, "0 distractors instead of 3"),
        ("mcq", MCQ | {"distractors": ["a", "b", None]}, "leaves the distractor 3 empty"),
        ("mcq", MCQ | {"answer": "x" * FULL.option}, f"answer of the reply was cut off at {FULL.option} characters"),
        ("freeform", {"question": "Why?"}, "leaves the answer empty"),
        ("freeform", FREEFORM | {"question": 7}, "leaves the question empty"),
        ("cloze", {}, "leaves the statement empty"),
        (
            "cloze",
            {"statement": "w" * FULL.statement},
            f"statement of the reply was cut off at {FULL.statement} characters",
        ),
        ("cloze", "[" * 5000, "not complete JSON"),
    ],
)
def test_unreadable_answers_say_what_is_wrong(kind, answer, fault):
    with pytest.raises(UnreadableAnswerError, match=fault) as caught:
        read(kind, answer)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("  Snow\n is   bright. ", "Snow is bright."),
        ('"Snow is bright."', "Snow is bright."),
        ("“Snow is bright.”", "Snow is bright."),
        ('"Snow" is "bright"', '"Snow" is "bright"'),
        ("'Snow' is 'bright'", "'Snow' is 'bright'"),
        ('"', None),
    ],
)
def test_blanks_and_quotation_marks_are_tidied(written, read_as):
    if read_as is None:
        with pytest.raises(UnreadableAnswerError):
            read("cloze", {"statement": written})
    else:
        assert read("cloze", {"statement": written}).question == read_as


def test_letters_before_all_options_are_taken_away():
    labelled = {"question": "Which?", "answer": "c) Clouds", "distractors": ["a) Oceans", "(b) Forests", "D. Deserts"]}
    assert set(read("mcq", labelled).options) == {"Clouds", "Oceans", "Forests", "Deserts"}


def test_letters_that_belong_to_the_options_stay():
    for own in (["a) Oceans", "Forests", "Deserts"], ["c) Oceans", "c) Forests", "d) Deserts"]):
        assert set(own) < set(read("mcq", MCQ | {"answer": "c) Clouds", "distractors": own}).options)
