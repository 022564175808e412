"""Weighing options with listed tokens, on hand-worked lists, and reading generated answers."""

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.models.openai.option_scores import generated_logprobs, named_option, score_options, tokens_to_distinguish
from climassay.models.openai.replies import Position, TopLogprob

ABCD = ("a", "b", "c", "d")


def position(chosen=None, **listed):
    """A position with probabilities by token; the first one is the generated token unless said otherwise."""
    likely = tuple(TopLogprob(token, log(p)) for token, p in listed.items())
    return Position(next((one for one in likely if one.token == chosen), likely[0]), likely)


def probabilities(options, *positions):
    scores = score_options(options, positions)
    return None if scores is None else [pytest.approx(exp(score), abs=1e-9) for score in scores]


def test_the_example_of_the_docstring():
    assert probabilities(("a", "b", "c"), position(**{"b": 0.5, " b": 0.2, "a": 0.2, "The": 0.05})) == [0.2, 0.7, 0.05]


def test_all_ways_to_write_a_letter_count_for_it():
    likely = {"a": 0.1, " a": 0.1, "A": 0.1, "a)": 0.1, "(a": 0.1, "**A": 0.1, "\u2581a": 0.1, "and": 0.2}
    assert probabilities(ABCD, position(**likely))[0] == 0.7


def test_the_floor_is_the_smaller_of_what_is_left_and_the_least_likely_token():
    assert probabilities(("a", "b"), position(a=0.9, x=0.06))[1] == 0.04
    assert probabilities(("a", "b"), position(a=0.5, x=0.01))[1] == 0.01


def test_a_list_that_adds_up_to_more_than_one_still_has_a_floor():
    scores = score_options(("a", "b"), [position(a=1.0, x=1e-3)])
    assert scores is not None
    assert scores[0] == 0.0
    assert -40 < scores[1] < -20


def test_the_generated_token_counts_when_the_list_leaves_it_out():
    seen = Position(TopLogprob("b", log(0.3)), (TopLogprob("a", log(0.6)),))
    assert probabilities(("a", "b"), seen) == [0.6, 0.3]


def test_options_in_the_form_in_which_they_follow_a_prefix():
    assert probabilities((" a", " b"), position(**{" b": 0.7, "a": 0.2})) == [0.2, 0.7]


def test_words_are_known_by_their_first_token():
    assert probabilities(("likely", "unlikely"), position(un=0.6, like=0.3, L=0.05)) == [0.35, 0.6]


def test_whole_words_win_over_beginnings():
    assert probabilities(("an increase", "a decrease"), position(**{" a": 0.6, " an": 0.3})) == [0.3, 0.6]


def test_options_that_begin_alike_are_followed_until_they_part():
    options = ("very likely", "very unlikely", "unlikely")
    first = position(very=0.8, un=0.15)
    second = position(**{" unlikely": 0.75, " likely": 0.2})
    assert probabilities(options, first, second) == [0.8 * 0.2, 0.8 * 0.75, 0.15]


def test_an_option_unlisted_where_options_part_gets_the_floor_of_that_place():
    options = ("very likely", "very unlikely")
    assert probabilities(options, position(very=0.8), position(**{" unlikely": 0.9})) == [0.8 * 0.1, 0.8 * 0.9]


def test_a_bracket_before_the_answer_is_stepped_over():
    assert probabilities(("a", "b"), position(**{"(": 0.9}), position(b=0.7, a=0.2)) == [0.9 * 0.2, 0.9 * 0.7]


def test_lists_that_do_not_decide_give_none():
    assert score_options(ABCD, [position(The=0.9)]) is None, "no option listed"
    options = ("very likely", "very unlikely", "unlikely")
    assert score_options(options, [position(very=0.8)]) is None, "the generated text ends before they part"
    assert score_options(options, [position(un=0.6, very=0.3)]) is None, "they would part off the generated text"
    assert score_options(options, [position(un=0.95, very=0.005)]) is not None, "too little to matter"
    assert score_options(ABCD, []) is None


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", " a", "B", "(c", "The", "d"]), st.floats(0.001, 0.12), min_size=1)
)
def test_no_option_gets_more_than_the_list_can_give(listed):
    scores = score_options(ABCD, [position(**listed)])
    if scores is None:
        assert not set(listed) - {"The"}
        return
    assert all(score <= 0 for score in scores)
    listed_options = sum(p for token, p in listed.items() if token != "The")
    unlisted = [o for o in ABCD if not any(o == t.strip(" (").lower() for t in listed)]
    given_to_listed = sum(exp(s) for o, s in zip(ABCD, scores, strict=True) if o not in unlisted)
    assert given_to_listed == pytest.approx(listed_options)
    floor = min(min(listed.values()), 1 - sum(listed.values()))
    assert all(exp(scores[ABCD.index(o)]) == pytest.approx(floor) for o in unlisted)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b", 1),
        (" B.", 1),
        ("**c**", 2),
        ("(d)", 3),
        ("b) because aerosols cool", 1),
        ("C: the third", 2),
        ("The answer is c.", 2),
        ("The correct option is **d**", 3),
        ("Answer: b\nExplanation: a long one", 1),
        ("<think>first a) then c)</think>b", 1),
        ("I would say (a).", 0),
        ("A decrease of the albedo follows.", None),
        ("The answer is a decrease.", None),
        ("b or c", None),
        ("Between (b) and (c)", None),
        ("It depends.", None),
        ("", None),
    ],
)
def test_the_letter_that_a_generated_answer_names(text, expected):
    assert named_option(text, ABCD) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Very likely", 1),
        ("I think it is likely.", 0),
        ("It is very likely that it warms.", 1),
        ("It may be likely or unlikely.", None),
        ("no idea", None),
    ],
)
def test_the_words_that_a_generated_answer_names(text, expected):
    assert named_option(text, ("likely", "very likely", "unlikely")) == expected


def test_generated_answers_have_an_order_and_no_more():
    assert generated_logprobs(1, ABCD) == (-100.0, 0.0, -100.0, -100.0)


@pytest.mark.parametrize(
    ("options", "expected"), [(ABCD, 1), (("yes", "no"), 1), (("very likely", "very unlikely"), 6), (("a",), 1)]
)
def test_as_many_tokens_are_generated_as_it_takes_to_tell_options_apart(options, expected):
    assert tokens_to_distinguish(options) == expected
