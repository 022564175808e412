"""What a cell's questions share with the texts that its model had."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.evaluation import Cell, CellRecord, PromptContext
from climassay.evaluation.contamination import MIN_RUN, contamination, prompt_contamination, question_text
from climassay.questions import Question

SENTENCE = "Aerosol particles scatter sunlight back to space and thereby cool the surface of the Earth."
ASKED = Question("q1", "freeform", "What do aerosol particles do to the sunlight that falls on them?", SENTENCE, "base")


def words(text):
    return re.findall(r"[^\W_]+", text.casefold())


def longest_common_run(first, second):
    """By trying every pair of places."""
    best = 0
    for a in range(len(first)):
        for b in range(len(second)):
            size = 0
            while a + size < len(first) and b + size < len(second) and first[a + size] == second[b + size]:
                size += 1
            best = max(best, size)
    return best


def test_a_copied_answer_is_found_whatever_its_case_and_punctuation():
    report = contamination([ASKED], [f"We know this: {SENTENCE.upper().replace(' BACK', ', back')} And more."])
    [one] = report.overlaps
    assert (one.longest, one.shared_run.part, one.shared_run.text) == (15, "answer", "text 1")
    assert one.shared_run.shared == " ".join(words(SENTENCE))
    assert one.covered == pytest.approx(15 / (15 + 12))
    assert report.contaminated() == report.contaminated(13) == (one,)


@pytest.mark.parametrize(("length", "touched"), [(7, 0), (8, 1), (12, 1)])
def test_a_question_is_touched_from_n_words_on(length, touched):
    report = contamination([ASKED], ["x " + " ".join(words(SENTENCE)[:length]) + " y"])
    assert report.overlaps[0].longest == length
    assert len(report.contaminated()) == touched
    assert report.contaminated(13) == ()
    assert report.overlaps[0].covered == pytest.approx(length / 27 if touched else 0)


def test_runs_go_neither_across_texts_nor_across_parts():
    halves = SENTENCE.split(" and ")
    report = contamination([ASKED], [halves[0], "and " + halves[1]])
    assert report.overlaps[0].longest == 8
    joined = f"{ASKED.question} {SENTENCE}"
    assert contamination([ASKED], [joined]).overlaps[0].longest == 15


ALPHABET = st.sampled_from("abc")
TEXTS = st.lists(st.lists(ALPHABET, max_size=25).map(" ".join), min_size=1, max_size=4)


@given(st.lists(ALPHABET, min_size=1, max_size=12).map(" ".join), TEXTS, st.integers(4, 6))
def test_runs_and_coverage_are_those_of_trying_everything(asked, texts, n):
    given_question = Question("q", "freeform", asked, "z")
    [found] = contamination([given_question], texts, n).overlaps
    probe, others = asked.split(), [text.split() for text in texts]
    longest = max((longest_common_run(probe, other) for other in others), default=0)
    assert found.longest == (longest if longest >= MIN_RUN else 0)
    grams = {tuple(other[k : k + n]) for other in others for k in range(len(other) - n + 1)}
    covered = {k + j for k in range(len(probe) - n + 1) if tuple(probe[k : k + n]) in grams for j in range(n)}
    assert found.covered == pytest.approx(len(covered) / (len(probe) + 1))


@pytest.mark.parametrize(
    ("asked", "texts", "n", "word"),
    [([], ["a"], 8, "question"), ([ASKED], [], 8, "no text"), ([ASKED], ["a"], 3, "3 words")],
    ids=["no questions", "no texts", "short n-grams"],
)
def test_what_makes_no_sense_is_refused(asked, texts, n, word):
    with pytest.raises(InputError, match=word):
        contamination(asked, texts, n)


RUN = "the warm water of the tropics flows slowly towards the poles"
FREE = Question("f", "freeform", "Where does it flow?", f"We know that {RUN}.")
CHOICE = Question("m", "mcq", "What is true of the ocean?", "Nothing.", None, (f"{RUN}", "Nothing."), 1)
GAP = Question("c", "cloze", "the warm water of the tropics flows <MASK> towards the poles", "slowly")
OTHER = Question("o", "freeform", "Why is the sky blue?", "Because air scatters short waves.")
QUESTIONS = (FREE, CHOICE, GAP, OTHER)


def record(texts, contaminated):
    cell = Cell("made", "model", "default", "freeform")
    return CellRecord(cell, "model", "", {}, "", "", n_requested=0, failed=0, texts=texts, contaminated=contaminated)


def passage(text):
    return PromptContext(passages=(text,), passage_ids=("p",))


def test_questions_that_stood_alone_have_nothing_to_share():
    alone = {one.id: PromptContext() for one in QUESTIONS}
    assert prompt_contamination(QUESTIONS, alone) == ("", None)
    assert record(*prompt_contamination(QUESTIONS, {})).overlap == ""


@pytest.mark.parametrize("question", QUESTIONS[:3], ids=lambda one: one.kind)
def test_the_answer_the_options_and_the_filled_statement_count(question):
    found = prompt_contamination(
        [question, OTHER], {one.id: passage(f"As is said, {RUN}.") for one in (question, OTHER)}
    )
    assert found == ("1 passage", 1)
    assert (
        record(*found).overlap
        == "1 question shares 8 or more consecutive words with texts that the model had: 1 passage"
    )


def test_a_passage_counts_for_the_question_that_had_it_only():
    given = {"f": passage("It is dry."), "o": passage(RUN)}
    assert prompt_contamination([FREE, OTHER], given) == ("2 passages", 0)
    assert prompt_contamination([FREE, OTHER], given | {"f": passage(RUN)}) == ("1 passage", 1)


def test_examples_and_training_texts_count_for_all():
    example = Question("e", "freeform", "What of the water?", f"It is known that {RUN}, always.")
    given = {one.id: PromptContext(examples=(example, OTHER)) for one in (FREE, CHOICE)}
    assert prompt_contamination([FREE, CHOICE], given) == ("2 examples", 2)
    learned = [question_text(GAP), question_text(OTHER)]
    assert prompt_contamination([FREE, CHOICE], {}, learned) == ("2 training texts", 2)
    assert prompt_contamination([FREE, OTHER], given, learned) == ("2 examples, 2 training texts", 1)


def test_a_training_that_is_not_known_is_said_to_be_so():
    assert prompt_contamination([FREE], {}, None) == ("training texts that are not known", None)
    found = prompt_contamination([FREE], {"f": passage(RUN)}, None)
    assert found == ("1 passage, training texts that are not known", 1)
