"""Options weighed over HTTP, by servers with and without log-probabilities."""

import json
import math

import pytest

from api_server import ApiServer, Behaviour, Reply
from climassay.models.contract import Message, OptionRequest
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.pacing import RetryPolicy

ABCD = ("a", "b", "c", "d")


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


def test_many_requests_at_once_wait_for_one_probe():
    with ApiServer(Behaviour(latency=0.01)) as server:
        scores, _ = weigh(server, *(request(str(number)) for number in range(40)))
        assert len(server.asked) == 40
    assert {score.method for score in scores} == {"top_logprobs"}


def test_a_server_that_lists_fewer_tokens_is_asked_for_fewer():
    with ApiServer(Behaviour(max_top_logprobs=5)) as server:
        scores, _ = weigh(server, request("one"), request("two"))
        asked = [asked.body["top_logprobs"] for asked in server.asked]
    assert {score.method for score in scores} == {"top_logprobs"}
    assert asked == [20, 5, 5]


def test_a_failed_probe_decides_nothing():
    with ApiServer() as server:
        (failed, fine), _ = weigh(server, request("[[400 too long]]"), request("short"), concurrency=1)
    assert failed.error == "The server answered 400: too long."
    assert fine.method == "top_logprobs"


def test_a_first_token_that_is_no_option_is_followed_by_a_generated_answer():
    def rambling(asked):
        if asked.body.get("logprobs"):
            return Reply("The", [[("The", -0.01)]])
        return Reply("The answer is c.")

    with ApiServer(rule=rambling) as server:
        (scores,), fallbacks = weigh(server, request("which?"))
    assert (scores.method, scores.best) == ("generated", 2)
    assert scores.usage.requests == 2
    assert scores.usage.completion_tokens == 5
    assert fallbacks == {"logprobs": 1}


def test_an_answer_that_names_no_option_is_a_failure_with_the_answer_in_it():
    with ApiServer(Behaviour(logprobs="ignore")) as server:
        (scores,), _ = weigh(server, request("[[say It depends.]]"))
    assert scores.error == "The generated answer names none of the options, or several: 'It depends.'."
    assert scores.best is None
    assert scores.usage.requests == 2


def test_options_of_several_tokens_are_told_apart_along_the_generated_text():
    def rule(asked):
        return Reply(
            "very unlikely", [[("very", math.log(0.9))], [(" unlikely", math.log(0.7)), (" likely", math.log(0.2))]]
        )

    with ApiServer(rule=rule) as server:
        (scores,), _ = weigh(server, request("how likely?", ("very likely", "very unlikely")))
        assert server.asked[0].body["max_tokens"] == 6
    assert [math.exp(logprob) for logprob in scores.logprobs] == pytest.approx([0.18, 0.63])


def test_a_prefix_is_an_instruction_here_too():
    with ApiServer() as server:
        weigh(server, request("which?", (" a", " b"), "Answer:"))
        assert "write only what follows it" in server.asked[0].content


def test_unreadable_log_probabilities_are_retried_and_then_a_failure():
    def broken(asked):
        return Reply("a", [[("a", "very likely")]])

    with ApiServer(rule=broken) as server:
        (scores,), _ = weigh(server, request("which?"))
    assert scores.error.endswith("The server's answer has log-probabilities that cannot be read.")
    assert scores.usage.requests == 3


def test_impossible_tokens_have_finite_scores():
    with ApiServer(rule=lambda asked: Reply("a", [[("a", 0.0), ("b", -9999.0)]])) as server:
        (scores,), _ = weigh(server, request("which?"))
    assert all(map(math.isfinite, scores.logprobs))
    assert scores.best == 0


def test_a_request_without_options_is_a_failure():
    with ApiServer() as server:
        (scores,), _ = weigh(server, request("which?", ()))
        assert scores.error == "The request has no options."
        assert server.asked == []


def test_the_prompt_is_rendered_as_it_is_sent():
    with ApiServer() as server:
        client = OpenAIModel("test", base_url=server.url)
        asked = request("Größer?", (" a", " b"), "Answer:")
        client.option_logprobs([asked])
        assert json.loads(client.render(asked.messages, asked.assistant_prefix)) == server.asked[0].body["messages"]
        client.close()
