"""What a cell's questions share with the texts that its model had."""

import pytest

from climassay.evaluation.contamination import ShownText, question_text, shown_text
from climassay.evaluation.settings import Prepared
from climassay.questions import Question

RUN = "the warm water of the tropics flows slowly towards the poles"
FREE = Question("f", "freeform", "Where does it flow?", f"We know that {RUN}.")
CHOICE = Question("m", "mcq", "What is true of the ocean?", "Nothing.", None, (f"{RUN}", "Nothing."), 1)
GAP = Question("c", "cloze", "the warm water of the tropics flows <MASK> towards the poles", "slowly")
OTHER = Question("o", "freeform", "Why is the sky blue?", "Because air scatters short waves.")
QUESTIONS = (FREE, CHOICE, GAP, OTHER)


def passage(text):
    return Prepared(passages=(text,), passage_ids=("p",))


def test_questions_that_stood_alone_have_nothing_to_share():
    alone = {one.id: Prepared() for one in QUESTIONS}
    assert shown_text(QUESTIONS, alone) == ShownText("", None)
    assert shown_text(QUESTIONS, {}).note == ""


@pytest.mark.parametrize("question", QUESTIONS[:3], ids=lambda one: one.kind)
def test_the_answer_the_options_and_the_filled_statement_count(question):
    found = shown_text([question, OTHER], {one.id: passage(f"As is said, {RUN}.") for one in (question, OTHER)})
    assert found == ShownText("1 passage", 1)
    assert found.note == "8 words or more of 1 of the questions stand in what the model had: 1 passage"


def test_seven_words_are_not_enough():
    seven = "warm water of the tropics flows slowly and sinks"
    assert shown_text([FREE], {"f": passage(seven)}) == ShownText("1 passage", 0)
    assert shown_text([FREE], {"f": passage("the " + seven)}).touched == 1


def test_a_passage_counts_for_the_question_that_had_it_only():
    given = {"f": passage("It is dry."), "o": passage(RUN)}
    assert shown_text([FREE, OTHER], given) == ShownText("2 passages", 0)
    assert shown_text([FREE, OTHER], given | {"f": passage(RUN)}) == ShownText("1 passage", 1)


def test_examples_and_training_texts_count_for_all():
    example = Question("e", "freeform", "What of the water?", f"It is known that {RUN}, always.")
    given = {one.id: Prepared(examples=(example, OTHER)) for one in (FREE, CHOICE)}
    assert shown_text([FREE, CHOICE], given) == ShownText("2 examples", 2)
    learned = [question_text(GAP), question_text(OTHER)]
    assert shown_text([FREE, CHOICE], {}, learned) == ShownText("2 training texts", 2)
    assert shown_text([FREE, OTHER], given, learned) == ShownText("2 examples, 2 training texts", 1)


def test_a_training_that_is_not_known_is_said_to_be_so():
    assert shown_text([FREE], {}, None) == ShownText("training texts that are not known", None)
    found = shown_text([FREE], {"f": passage(RUN)}, None)
    assert found == ShownText("1 passage, training texts that are not known", 1)
