"""Whatever a server sends is either a reply or one sentence about what is wrong with it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.models.openai.replies import BadReplyError, parse_error_reply, parse_reply

WORDS = st.sampled_from(
    [
        "choices", "message", "content", "logprobs", "top_logprobs", "token", "logprob", "usage", "prompt_tokens",
        "error", "finish_reason", "refusal",
    ]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=12
)


def check(body):
    try:
        reply = parse_reply(body)
    except BadReplyError as problem:
        sentence = str(problem)
    else:
        check_reply(reply)
        return
    assert sentence.startswith("The server's answer ")
    assert "\n" not in sentence


def check_reply(reply):
    assert isinstance(reply.text, str)
    assert reply.prompt_tokens >= 0
    assert all(-100 <= likely.logprob <= 0 for position in reply.positions for likely in position.listed)


@given(VALUES, VALUES, VALUES, VALUES)
def test_a_completion_with_anything_in_its_parts_is_a_reply_or_a_sentence(content, logprobs, usage, top):
    entry = {"token": "a", "logprob": -1.0, "top_logprobs": top}
    for given_logprobs in (logprobs, {"content": [entry]}, {"content": logprobs}):
        choice = {"message": {"content": content}, "logprobs": given_logprobs}
        check(json.dumps({"choices": [choice], "usage": usage}).encode())
    check(json.dumps({"choices": [{"message": content}]}).encode())
    check(json.dumps({"choices": [content]}).encode())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "No more tokens"}}', "No more tokens"),
        (b'{"error": "No more tokens"}', "No more tokens"),
        (b'{"detail": "No more\\n tokens"}', "No more tokens"),
        (b'{"message": "No more tokens", "type": "x"}', "No more tokens"),
        (b"No more tokens\n", "No more tokens"),
        (b"", ""),
        (b'{"code": 3}', '{"code": 3}'),
    ],
)
def test_error_bodies_of_all_kinds(body, message):
    assert parse_error_reply(body).message == message


def test_nonsense_counts_of_tokens_are_unknown():
    usage = {"prompt_tokens": 10**30, "completion_tokens": "many"}
    reply = parse_reply(json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}).encode())
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)
