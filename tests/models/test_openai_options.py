"""Options weighed with listed tokens, on hand-worked lists and over HTTP; log-probabilities refused and ignored."""

import math
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_server import ApiServer, Behaviour, Reply
from climassay.models.contract import Message, OptionRequest
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.connection import RetryPolicy
from climassay.models.openai.option_scores import named_option, score_options
from climassay.models.openai.replies import Position, TopLogprob

ABCD = ("a", "b", "c", "d")


def position(chosen=None, **listed):
    """A position with probabilities by token; the first one is the generated token unless said otherwise."""
    likely = tuple(TopLogprob(token, log(p)) for token, p in listed.items())
    return Position(next((one for one in likely if one.token == chosen), likely[0]), likely)


def probabilities(options, *positions):
    scores = score_options(options, positions)
    return None if scores is None else [pytest.approx(exp(score), abs=1e-9) for score in scores]


EVERY_WAY = {"a": 0.1, " a": 0.1, "A": 0.1, "a)": 0.1, "(a": 0.1, "**A": 0.1, "\u2581a": 0.1, "and": 0.2}


@pytest.mark.parametrize(
    ("options", "listed", "option", "expected"),
    [
        pytest.param(
            "abc", {"b": 0.5, " b": 0.2, "a": 0.2, "The": 0.05}, slice(None), [0.2, 0.7, 0.05], id="docstring"
        ),
        pytest.param(ABCD, EVERY_WAY, slice(1), [0.7], id="all ways to write a letter"),
        pytest.param("ab", {"a": 0.9, "x": 0.06}, slice(1, None), [0.04], id="the floor is what is left"),
        pytest.param("ab", {"a": 0.5, "x": 0.01}, slice(1, None), [0.01], id="or the least likely token"),
        pytest.param(
            ("an increase", "a decrease"), {" a": 0.6, " an": 0.3}, slice(None), [0.3, 0.6], id="whole words win"
        ),
    ],
)
def test_listed_tokens_are_shared_out(options, listed, option, expected):
    assert probabilities(tuple(options), position(**listed))[option] == expected


def test_options_that_begin_alike_are_followed_until_they_part():
    options = ("very likely", "very unlikely", "unlikely")
    first = position(very=0.8, un=0.15)
    second = position(**{" unlikely": 0.75, " likely": 0.2})
    assert probabilities(options, first, second) == [0.8 * 0.2, 0.8 * 0.75, 0.15]


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
        ("b", 1), (" B.", 1), ("**c**", 2), ("(d)", 3), ("b) because aerosols cool", 1), ("C: the third", 2),
        ("The answer is c.", 2), ("The correct option is **d**", 3), ("Answer: b\nExplanation: a long one", 1),
        ("<think>first a) then c)</think>b", 1), ("I would say (a).", 0), ("A decrease of the albedo follows.", None),
        ("The answer is a decrease.", None), ("b or c", None), ("Between (b) and (c)", None), ("It depends.", None),
        ("", None),
    ],
)  # fmt: skip
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


def request(text, options=ABCD, prefix=""):
    return OptionRequest((Message("user", text),), options, prefix)


def weigh(server, *requests, **settings):
    client = OpenAIModel("test", base_url=server.url, policy=RetryPolicy(base=0.0, max_attempts=3), **settings)
    try:
        return client.option_logprobs(list(requests)), dict(client.fallbacks)
    finally:
        client.close()


def letters(asked):
    return Reply("b", [[("b", math.log(0.6)), (" a", math.log(0.2)), ("A", math.log(0.1)), ("The", math.log(0.04))]])


def test_listed_tokens_become_scores():
    with ApiServer(rule=letters) as server:
        (scores,), fallbacks = weigh(server, request("which?"))
        body = server.asked[0].body
    assert scores.method == "top_logprobs"
    assert [math.exp(logprob) for logprob in scores.logprobs] == pytest.approx([0.3, 0.6, 0.04, 0.04])
    assert scores.best == 1
    assert scores.usage.requests == 1
    assert {name: body[name] for name in ("logprobs", "top_logprobs", "max_tokens", "temperature")} == {
        "logprobs": True,
        "top_logprobs": 20,
        "max_tokens": 1,
        "temperature": 0.0,
    }
    assert fallbacks == {}


@pytest.mark.parametrize("ability", ["ignore", "refuse"])
def test_without_log_probabilities_the_generated_option_is_taken_and_the_probe_is_made_once(ability):
    with ApiServer(Behaviour(logprobs=ability)) as server:
        texts = [f"[[say {letter}) of course]] {number}" for number, letter in enumerate("abcd" * 5)]
        scores, fallbacks = weigh(server, *map(request, texts))
        probes = [asked for asked in server.asked if asked.body.get("logprobs")]
    assert [score.best for score in scores] == [0, 1, 2, 3] * 5
    assert {score.method for score in scores} == {"generated"}
    assert set(scores[0].logprobs) == {0.0, -100.0}
    assert len(probes) == 1
    assert fallbacks == {"logprobs": 20}


def test_a_server_that_lists_fewer_tokens_is_asked_for_fewer():
    with ApiServer(Behaviour(max_top_logprobs=5)) as server:
        scores, _ = weigh(server, request("one"), request("two"))
        asked = [asked.body["top_logprobs"] for asked in server.asked]
    assert {score.method for score in scores} == {"top_logprobs"}
    assert asked == [20, 5, 5]


def test_an_answer_that_names_no_option_is_a_failure_with_the_answer_in_it():
    with ApiServer(Behaviour(logprobs="ignore")) as server:
        (scores,), _ = weigh(server, request("[[say It depends.]]"))
    assert scores.error == "The generated answer names none of the options, or several: 'It depends.'."
    assert scores.best is None
    assert scores.usage.requests == 2


def test_unreadable_log_probabilities_are_retried_and_then_a_failure():
    def broken(asked):
        return Reply("a", [[("a", "very likely")]])

    with ApiServer(rule=broken) as server:
        (scores,), _ = weigh(server, request("which?"))
    assert scores.error.endswith("The server's answer has log-probabilities that cannot be read.")
    assert scores.usage.requests == 3


def test_a_request_without_options_is_a_failure():
    with ApiServer() as server:
        (scores,), _ = weigh(server, request("which?", ()))
        assert scores.error == "The request has no options."
        assert server.asked == []


def test_the_generated_token_counts_when_the_list_leaves_it_out():
    seen = Position(TopLogprob("b", log(0.3)), (TopLogprob("a", log(0.6)),))
    assert probabilities(("a", "b"), seen) == [0.6, 0.3]
